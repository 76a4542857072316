"""POMCP: planning while acting, by Monte Carlo tree search.

`solver` is `POMCP` and its policy, `agent` what is deployed, `episodes` the same decisions in bulk, and `search` what a
search is given. The kernels are in `_kernels.pomcp`.
"""
