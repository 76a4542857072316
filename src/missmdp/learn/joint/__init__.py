"""JointEM: T, b₀, rewards and M from a log alone.

`estimator` is the learner. `layout` makes a log ready for expectation steps; `given` turns what the user knows into
rules. `dynamics` is T and b₀ as chains of families, each with a partition of its contexts (`trees`); `structure` grows
them from expected counts, `fit` repeats expectation and maximisation for T, b₀ and M together, and `search` decides
what to try. `model` makes an MDP of it, `rewards` gives it rewards, and `visits` says how much of the log it rests on.
`findings` is what to doubt, `description` says it in words and pictures.
"""
