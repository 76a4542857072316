"""Random miss-MDPs written down feature by feature, one per seed: what ties features together in every way.

Every model draws, independently of each other:

- 3 to 5 features that can go missing (2 or 3 values each, at times one has a single value) and 0 to 2 that are always
  seen; so few values in all that states and observations can still be listed;
- parents of each feature's next value: itself, other features that can go missing, features that are always seen;
  tables that are dense, sparse, deterministic, nearly even or the same for all actions;
- gaps: each feature for itself, or two at a time by joint patterns; they depend on nothing, on other features that may
  be missing themselves, on their own feature (self-censoring), on what is always seen; some are certain (0 or 1);
- an initial distribution that is one state, a product, or any;
- terminal states: none, by features that are seen, by hidden ones, by both; an episode may be over when it begins;
- rewards that add up over features or do not, of several signs and sizes, at times zero; 1 to 3 actions; discounts
  from 0.5 to 0.95.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import missmdp as mm
from missmdp.model.missing_factors import Part

__all__ = ["random_factored"]

Array = np.ndarray
_FEWEST = 3
"""Features that can go missing, at least."""


def random_factored(seed: int, *, most_observations: int = 600) -> mm.MissMDP:
    """Return a random factored miss-MDP; see the top of this file."""
    rng = np.random.default_rng([seed, 17])
    while True:
        model = _drawn(rng, most_observations)
        # Gaps may be drawn that never occur.
        if len(model.missingness.can_go_missing) >= _FEWEST:
            return model


def _drawn(rng: np.random.Generator, most_observations: int) -> mm.MissMDP:
    while True:
        n_hidden, n_seen = int(rng.choice([3, 4, 5], p=[0.6, 0.25, 0.15])), int(rng.integers(0, 3))
        sizes = [2] * n_seen + [int(rng.choice([2, 3], p=[0.6, 0.4])) for _ in range(n_hidden)]
        if rng.random() < 0.08:
            sizes[-1] = 1
        if int(np.prod(sizes[:n_seen] + [size + 1 for size in sizes[n_seen:]])) <= most_observations:
            break
    order = rng.permutation(len(sizes))
    names = [("s" if i < n_seen else "h") + str(i) for i in range(len(sizes))]
    names, sizes = [names[i] for i in order], [sizes[i] for i in order]
    mdp = _mdp(rng, names, sizes)
    hidden = [i for i, name in enumerate(names) if name[0] == "h"]
    parts = _gaps(rng, hidden, sizes)
    return mm.MissMDP(mdp, mm.MissingnessFunction.from_parts(mdp.space, parts))


def _mdp(rng: np.random.Generator, names: list[str], sizes: list[int]) -> mm.FactoredMDP:
    n_actions = int(rng.choice([1, 2, 3], p=[0.05, 0.6, 0.35]))
    transitions: dict[str, Any] = {}
    coupled = rng.random() < 0.75
    for i, name in enumerate(names):
        parents = [i] if rng.random() < 0.8 else []
        if coupled:
            others = [k for k in range(len(names)) if k != i]
            parents += [int(p) for p in rng.permutation(others)[: rng.integers(0, 3)]]
        parents = [int(p) for p in rng.permutation(parents)]
        table = _rows(rng, [*(sizes[p] for p in parents), n_actions], sizes[i])
        if rng.random() < 0.2:
            table[..., :, :] = table[..., :1, :]
        transitions[name] = ([names[p] for p in parents], table)
    return mm.FactoredMDP.from_factors(
        {name: range(size) for name, size in zip(names, sizes, strict=True)},
        [f"a{a}" for a in range(n_actions)],
        transitions,
        _reward(rng, names, sizes, n_actions),
        _initial(rng, names, sizes),
        terminal=_terminal(rng, names, sizes),
        discount=float(rng.choice([0.5, 0.7, 0.8, 0.9, 0.95], p=[0.2, 0.25, 0.25, 0.2, 0.1])),
    )


def _rows(rng: np.random.Generator, shape: list[int], size: int) -> Array:
    """Return random distributions, shape (*shape, size)."""
    match rng.choice(
        ["dense", "staying", "sparse", "deterministic", "nearly even"], p=[0.35, 0.3, 0.15, 0.1, 0.1]
    ):
        case "dense":
            return rng.dirichlet(np.ones(size), size=shape)
        case "staying":
            return 0.8 * np.eye(size)[rng.integers(size, size=shape)] + 0.2 * rng.dirichlet(
                np.ones(size), shape
            )
        case "sparse":
            weights = rng.integers(0, 3, size=[*shape, size]).astype(float)
            weights[..., 0] += weights.sum(axis=-1) == 0
            return weights / weights.sum(axis=-1, keepdims=True)
        case "deterministic":
            return np.eye(size)[rng.integers(size, size=shape)]
        case _:
            weights = 1.0 + float(rng.choice([1e-4, 1e-9])) * rng.random([*shape, size])
            return weights / weights.sum(axis=-1, keepdims=True)


def _reward(rng: np.random.Generator, names: list[str], sizes: list[int], n_actions: int) -> Any:
    scale = float(rng.choice([1.0, 1e4, 1e-4], p=[0.8, 0.1, 0.1]))
    offset = scale * float(rng.choice([0.0, 20.0, -20.0], p=[0.6, 0.2, 0.2]))
    costs = ([], scale * rng.normal(size=n_actions) + offset)
    match rng.choice(["additive", "joint", "matching", "zero"], p=[0.35, 0.2, 0.42, 0.03]):
        case "additive":
            return [
                costs,
                *(
                    ([name], scale * rng.normal(size=(n, n_actions)) * 2)
                    for name, n in zip(names, sizes, strict=True)
                ),
            ]
        case "joint":
            return [(list(names), scale * rng.normal(size=(*sizes, n_actions)) + offset)]
        case "matching":  # each action is right for one value of a pair of features: it pays to know them
            pair = [int(i) for i in rng.permutation(len(names))[:2]]
            table = rng.normal(size=[*(sizes[i] for i in pair), n_actions])
            for place in product(*(range(sizes[i]) for i in pair)):
                table[(*place, sum(place) % n_actions)] += 4.0
            return [costs, ([names[i] for i in pair], scale * table)]
        case _:
            return 0.0


def _initial(rng: np.random.Generator, names: list[str], sizes: list[int]) -> Any:
    match rng.choice(["state", "product", "any", "few"], p=[0.2, 0.45, 0.15, 0.2]):
        case "state":
            return {name: int(rng.integers(size)) for name, size in zip(names, sizes, strict=True)}
        case "product":
            return {
                name: dict(enumerate(rng.dirichlet(np.ones(size))))
                if rng.random() < 0.7
                else int(rng.integers(size))
                for name, size in zip(names, sizes, strict=True)
            }
        case "any":
            states = list(np.ndindex(*sizes))
            return dict(zip(states, rng.dirichlet(np.ones(len(states))), strict=True))
        case _:
            states = [tuple(int(rng.integers(size)) for size in sizes) for _ in range(3)]
            weights: dict[tuple[int, ...], float] = {}
            for state, weight in zip(states, rng.dirichlet(np.ones(3)), strict=True):
                weights[state] = weights.get(state, 0.0) + float(weight)
            return weights


def _terminal(rng: np.random.Generator, names: list[str], sizes: list[int]) -> Any:
    if rng.random() < 0.55:
        return None
    chosen = [int(i) for i in rng.permutation(len(names))[: rng.integers(1, 3)]]
    ends = rng.random([sizes[i] for i in chosen]) < 0.35
    if ends.all():
        ends.flat[0] = False
    return ([names[i] for i in chosen], lambda *values: bool(ends[tuple(values)]))


def _gaps(rng: np.random.Generator, hidden: list[int], sizes: list[int]) -> list[Part]:
    blocks = [[i] for i in hidden]
    if rng.random() < 0.4:
        blocks = [hidden[:2], *([i] for i in hidden[2:])]
    parts: list[Part] = []
    style = rng.choice(["any", "never depends", "self"], p=[0.7, 0.2, 0.1])
    for block in blocks:
        parents = [int(p) for p in rng.permutation(len(sizes))[: rng.integers(0, 3)]]
        parents = {"any": parents, "never depends": [], "self": list(block)}[str(style)]
        patterns = np.array(list(product([True, False], repeat=len(block))))
        n_groups = int(np.prod([sizes[p] for p in parents], dtype=int))
        table = rng.dirichlet(np.ones(len(patterns)), size=n_groups)
        certain = rng.random(n_groups) < rng.choice([0.0, 0.5])
        table[certain] = np.eye(len(patterns))[rng.integers(len(patterns), size=int(certain.sum()))]
        if rng.random() < 0.1:
            table[:] = np.eye(len(patterns))[-1]  # always missing
        elif rng.random() < 0.25:
            table[..., -1] += 2.0
            table /= table.sum(axis=1, keepdims=True)
        parts.append(Part(tuple(block), patterns, table, tuple(parents)))
    return parts
