"""Expectation steps with T and b₀ as dense arrays, by going through all hidden paths of every episode."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np

from missmdp.data.dataset import Dataset


def steps_by_paths(log: Dataset, transition, initial, missing_chance, ended_chance=None):
    """Return expected counts of steps {(codes, action, codes, ending)}, of starts, and the log-likelihood.

    `transition(s, a, s')`, `initial(s)` and `missing_chance(pattern, s)` are functions of tuples of codes, and
    `ended_chance(s)` is how likely an episode ends in a state, None if the log does not say.
    """
    sizes = [len(values) for values in log.feature_space.values]
    states = list(product(*map(range, sizes)))
    moved, began, total = defaultdict(float), defaultdict(float), 0.0
    for e in range(log.n_episodes):
        rows = range(int(log.offsets[e]), int(log.offsets[e + 1]))
        possible = [
            [s for s in states if all(z in (-1, x) for z, x in zip(log.observations[t], s, strict=True))]
            for t in rows
        ]
        weights = {}
        for path in product(*possible):
            weight = initial(path[0])
            for k, t in enumerate(rows):
                pattern = tuple(bool(z >= 0) for z in log.observations[t])
                weight *= missing_chance(pattern, path[k])
                last = k == len(rows) - 1
                if ended_chance is not None and (not last or log.terminated[e]):
                    chance = ended_chance(path[k])
                    weight *= chance if last else 1.0 - chance
                if k:
                    weight *= transition(path[k - 1], int(log.actions[t - 1]), path[k])
            weights[path] = weight
        evidence = sum(weights.values())
        total += np.log(evidence)
        for path, weight in weights.items():
            began[path[0]] += weight / evidence
            for k in range(1, len(rows)):
                moved[path[k - 1], int(log.actions[rows[k] - 1]), path[k]] += weight / evidence
    return moved, began, total
