"""Models: MDPs over named features, missingness functions, and what follows from the two.

`space` has features and states as codes, `mdp` the MDP, `missingness` the missingness function and `missmdp` both
together. What users write down is checked in `given` (functions, matrices), `tables` (CSV, Parquet, frames) and
`probabilities`. `types` says what missingness depends on, `mgraph` shows it as a graph. `pomdp` is what solvers see,
`belief` tracks states, `policy` has the contract of policies and the simple ones. `equal_rows` finds states with the
same future; `archive` writes and reads files, `picture` draws.
"""
