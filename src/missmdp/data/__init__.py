"""Logs: where they come from, what is in them, and whether they fit a model.

`dataset` is a log in memory and `counts` what counting learners need of it; `tables` reads and writes both, with
`binning` for measurements, and `translation` puts a log in terms of an MDP. `collect` simulates a log on top of
`simulation`, the simulator that evaluation and planning use too; `coverage` says what a behaviour policy visits.
`description` describes what is missing, `validation` compares a log with a model, with `support` for the states that
remain possible. `statistics` has two tests and intervals of counts.
"""
