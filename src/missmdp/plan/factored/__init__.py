"""Planning by features: for models where many features go missing, with too many states and observations to list.

- `search`: the loop; `parts`: a model in small tables
- `grid`: the upper bound; `refine`: how the grid gets finer; `seen`: full observation, if the grid is too large
- `memory`: the lower bound; `nodes`: what it remembers
- `sweeps`: what grid and memory share: values that become bounds
- `cores`, `links`, `mixtures`, `causes`, `told`: their arithmetic; `sizes`: the memory they take; `team`: threads
- `policy`: what is deployed; `agent`: how it acts; `explain`: why
- `alike`: the same for features that are alike
"""
