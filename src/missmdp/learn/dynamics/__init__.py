"""Is the MDP that was given right? Tests of T and b₀ against a log with gaps.

`check` asks, `result` is the answer. `next_rows` finds the rows of probabilities of each feature's next value, and what
is tested; `tilted` is the likelihood when such rows are changed; `climbing` finds its maximum; `ratios` are the tests.
"""
