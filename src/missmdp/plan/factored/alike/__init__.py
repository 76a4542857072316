"""The structured search where all features that go missing are alike: what counts is how many are how.

- `multisets`: functions of several things whose order does not matter, and what happens to all of them at once
- `model`: finds out whether features are alike, and says what happens to one of them
- `grid`, `memory`: the bounds, as in the structured search, on multisets of beliefs and of nodes
- `search`: rounds of both, finer and finer
"""
