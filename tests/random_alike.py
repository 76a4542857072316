"""Random miss-MDPs whose features that go missing are all alike, one per seed.

Every model draws 3 or 4 such features with 2 or 3 values, at times a feature that is always seen, actions for all
features and actions on one of them (one or two kinds of each), gaps by what is seen and by the own value, rewards that
are and are not sums over features, and an initial distribution that is or is not a product.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np

import missmdp as mm

__all__ = ["random_alike"]


def random_alike(seed: int, *, n_sites: int | None = None, n_values: int | None = None) -> mm.MissMDP:
    """Return a random miss-MDP with features that are alike; see the top of this file."""
    rng = np.random.default_rng([seed, 23])
    n_sites = n_sites or int(rng.choice([3, 4], p=[0.7, 0.3]))
    n_values = n_values or int(rng.choice([2, 3]))
    n_scenes = int(rng.choice([1, 2]))
    n_all, n_one = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    names = [f"h{i}" for i in range(n_sites)]
    roles = [("all", k, None) for k in range(n_all)]
    roles += [("one", k, i) for k in range(n_one) for i in range(n_sites)]
    roles = [roles[k] for k in rng.permutation(len(roles))]
    usual = {(what, k): _rows(rng, n_scenes, n_values) for what, k, _ in roles}
    acted = {k: _rows(rng, n_scenes, n_values, reset=rng.random() < 0.5) for k in range(n_one)}
    transitions: dict[str, Any] = {}
    for i, name in enumerate(names):
        tables = [acted[k] if on == i else usual[what, k] for what, k, on in roles]
        transitions[name] = ([name, "scene"], np.stack(tables, axis=2))
    scenes = {(what, k): rng.dirichlet(np.ones(n_scenes), n_scenes) for what, k, _ in roles}
    transitions["scene"] = (["scene"], np.stack([scenes[what, k] for what, k, _ in roles], axis=1))
    features = {**dict.fromkeys(names, range(n_values)), "scene": range(n_scenes)}
    mdp = mm.FactoredMDP.from_factors(
        features,
        [f"{what} {k}" + ("" if on is None else f" {names[on]}") for what, k, on in roles],
        transitions,
        _reward(rng, names, n_values, n_scenes, roles),
        _initial(rng, n_sites, n_values, n_scenes),
        discount=float(rng.choice([0.6, 0.8, 0.9])),
    )
    rates = rng.random((n_scenes, n_values)) * (rng.random((n_scenes, n_values)) < 0.9)
    rates.flat[0] = 0.5
    gaps = {name: (["scene", name], rates) for name in names}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, gaps))


def _rows(rng: np.random.Generator, n_scenes: int, n_values: int, *, reset: bool = False) -> np.ndarray:
    """Return P(next value | value, scene), shape (values, scenes, values); the same for all values if it is a reset."""
    rows = rng.dirichlet(np.full(n_values, 0.7), (1 if reset else n_values, n_scenes))
    return np.broadcast_to(rows, (n_values, n_scenes, n_values))


def _reward(
    rng: np.random.Generator, names: list[str], n_values: int, n_scenes: int, roles: list[Any]
) -> Any:
    """Return rewards as parts of a sum; a last part depends on all features at once, in any order."""
    by_value = {(what, k): rng.normal(size=n_values) for what, k, _ in roles}
    on_it = {k: rng.normal(size=n_values) for _, k, on in roles if on is not None}
    parts: list[Any] = [
        (name, np.stack([on_it[k] if on == i else by_value[what, k] for what, k, on in roles], axis=1))
        for i, name in enumerate(names)
    ]
    by_scene = {(what, k): rng.normal(size=n_scenes) for what, k, _ in roles}
    parts.append(("scene", np.stack([by_scene[what, k] for what, k, _ in roles], axis=1)))
    if rng.random() < 0.5:
        worst = rng.normal(size=n_values).cumsum()
        table = np.zeros((n_values,) * len(names) + (len(roles),))
        for values in product(range(n_values), repeat=len(names)):
            table[values] = worst[max(values)]
        parts.append((names, table))
    return parts


def _initial(rng: np.random.Generator, n_sites: int, n_values: int, n_scenes: int) -> Any:
    """Return first states with their probabilities."""
    first = rng.dirichlet(np.ones(n_scenes))
    if rng.random() < 0.5:
        one = rng.dirichlet(np.ones(n_values))
        return {
            (*values, scene): float(np.prod(one[list(values)]) * first[scene])
            for values in product(range(n_values), repeat=n_sites)
            for scene in range(n_scenes)
        }
    orders = {*permutations(rng.integers(0, n_values, n_sites).tolist())}
    return {
        (*values, scene): float(first[scene] / len(orders)) for values in orders for scene in range(n_scenes)
    }
