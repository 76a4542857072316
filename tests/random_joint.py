"""Random miss-MDPs whose gaps come together: a table of patterns for each combination of what is always seen."""

from __future__ import annotations

from itertools import product

import numpy as np

import missmdp as mm
from missmdp.model.missing_factors import Part
from random_factored import random_factored

__all__ = ["STYLES", "random_joint", "random_patterns"]

STYLES = ("any", "few", "independent", "one cause", "two groups", "nearly independent", "odd")


def random_patterns(rng: np.random.Generator, style: str, n_sites: int) -> np.ndarray:
    """Return P(pattern), shape (2, …, 2), where 0 is missing and 1 is seen."""
    shape = (2,) * n_sites
    rates = rng.uniform(0.1, 0.9, size=(3, n_sites))

    def independent(row: np.ndarray) -> np.ndarray:
        whole = np.ones(())
        for rate in row:
            whole = np.multiply.outer(whole, [rate, 1.0 - rate])
        return whole

    match style:
        case "any":
            return rng.dirichlet(np.ones(2**n_sites)).reshape(shape)
        case "few":
            weights = rng.dirichlet(np.ones(2**n_sites)) * (rng.random(2**n_sites) < 0.3)
            weights[rng.integers(2**n_sites)] += 0.1
            return (weights / weights.sum()).reshape(shape)
        case "independent":
            return independent(rates[0])
        case "one cause":
            return 0.3 * independent(rates[0]) + 0.7 * independent(rates[1])
        case "two groups":
            half = n_sites // 2
            return np.multiply.outer(*(random_patterns(rng, "any", n) for n in (half, n_sites - half)))
        case "nearly independent":
            return (1.0 - 1e-6) * independent(rates[0]) + 1e-6 * random_patterns(rng, "any", n_sites)
        case _:  # an odd number of sites is seen: no two are dependent, but all are
            odd = np.indices(shape).sum(axis=0) % 2 == 1
            return odd / odd.sum()


def random_joint(seed: int, style: str | None = None) -> mm.MissMDP:
    """Return a random factored miss-MDP with gaps that depend on each other and on what is always seen."""
    rng = np.random.default_rng([seed, 23])
    mdp = random_factored(seed).mdp
    names = mdp.space.features.names
    sizes = [int(size) for size in mdp.space.features.sizes]
    hidden = [i for i, name in enumerate(names) if name[0] == "h"]
    seen = [i for i in range(len(names)) if i not in hidden]
    patterns = np.array(list(product([False, True], repeat=len(hidden))))
    table = [
        random_patterns(rng, style or str(rng.choice(STYLES)), len(hidden)).ravel()
        for _ in product(*(range(sizes[i]) for i in seen))
    ]
    part = Part(tuple(hidden), patterns, np.array(table), tuple(seen))
    return mm.MissMDP(mdp, mm.MissingnessFunction.from_parts(mdp.space, [part]))
