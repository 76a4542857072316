"""Studies beyond the paper: grids of cells, and the tables of the documents that are made from them.

`study` says what a study is; `catalogue` lists them all. `beyond` compares learners that use the dynamics with the
paper's, `diagnosis` counts how often the type of missingness is named right, `certificates` shows what is certified
from how much data, `bounds` how often bounds hold, `learning` what options do for learners, and `check_dynamics` how
often a check of T rejects one that is right, and one that is wrong. `learned_dynamics` learns T from the log alone,
beside filling in its gaps.
"""
