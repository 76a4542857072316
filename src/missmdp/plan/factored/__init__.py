"""Planning by features: for models with many features that go missing, whose states and observations are too many.

`search` is the loop. `parts` is a model in small tables, `grid` the upper bound and `refine` where it gets finer.
`memory` is the lower bound and `nodes` what it remembers; `sweeps` is what makes bounds of both. `cores`, `mixtures`,
`causes` and `told` do their arithmetic, `sizes` says what they take, and `team` has the threads. `policy` is what is
deployed, `agent` how it acts, and `explain` what it says of itself. `alike` does all this for features that are alike.
"""
