"""DynamicsEM: M by maximum likelihood from whole histories.

`estimator` is the learner. `observation_classes` and `histories` prepare a log, so an expectation step is cheap;
`structures` and `logistic` are what M may look like; `iterate` repeats expectation and maximisation; `search` finds
a structure, with the `trees` of each block. `resampling` is the bootstrap, and `learned_structure` says what was
found. Large models are learned in `clusters`, and `apart` puts these together.
"""
