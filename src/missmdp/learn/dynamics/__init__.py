"""Is the MDP that was given right? Tests of T and b₀ against a log with gaps.

`check` asks, `result` is the answer, and `telling` puts one into the other. `next_rows` finds the rows of probabilities
of each feature's next value, and what is tested; `models` are the kinds of M that are fitted along; `tilted` is the
likelihood when rows are changed; `climbing` finds its maximum; `ratios` are the tests.
"""
