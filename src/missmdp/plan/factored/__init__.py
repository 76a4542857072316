"""Planning by features: for models with many features that go missing, whose states and observations are too many.

`parts` is a model in small tables, `grid` the upper bound and `refine` where it gets finer, `memory` the lower bound.
`cores`, `mixtures`, `causes` and `told` are their arithmetic. `policy` is what is deployed, `agent` how it acts, and
`explain` what it says of itself.
"""
