"""Experiments: whole pipelines, grids of cells, and what is written about them.

`run` is one analysis from data to a recommendation, `report` its page. `grid` is the engine that does pieces of work
once and keeps them; `reproduce` (the paper's experiments) and `studies` (those beyond it) are grids. `baselines` makes
the policies that others are compared with, `policy_store` keeps them, `ppo_search` and `ppo_trials` look for PPO's
settings. `tables` and `value_table` write rows to files.
"""
