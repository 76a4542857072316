"""A small model in which two features go missing, and policies with memory for it whose nodes are random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import missmdp as mm

_WORSE = {"new": "old", "old": "broken", "broken": "new"}


def small_model(*, load_missing: float = 0.0) -> mm.MissMDP:
    """Return a model: load and shift are always seen (load unless told otherwise), wear and leak go missing."""
    mdp = mm.FactoredMDP(
        {"load": [0, 1], "wear": list(_WORSE), "shift": ["day", "night"], "leak": [False, True]},
        ["run", "fix"],
        _next,
        lambda s, a: s.load - 2.0 * (s.wear == "broken") - 1.0 * s.leak - 0.5 * (a == "fix"),
        {(0, "new", "day", False): 0.3, (1, "new", "night", True): 0.4, (1, "old", "night", False): 0.3},
        discount=0.9,
    )
    gaps = {"wear": 0.6, "leak": 0.5}
    if load_missing:
        gaps["load"] = load_missing
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, gaps))


def _next(s: Any, action: str) -> list[tuple[tuple[Any, ...], float]]:
    wears = (
        {"new": 1.0} if action == "fix" else {s.wear: 0.7 - 0.2 * s.load, _WORSE[s.wear]: 0.3 + 0.2 * s.load}
    )
    leaks = 0.8 if s.leak else 0.1
    return [
        ((load, wear, shift, leak), p * q * 0.5 * (leaks if leak else 1.0 - leaks))
        for load, p in ((0, 0.6), (1, 0.4))
        for wear, q in wears.items()
        for shift in ("day", "night")
        for leak in (False, True)
    ]


def random_memory(model: mm.MissMDP, seed: int, extra: int = 2) -> mm.MemoryPolicy:
    """Return a policy with so many nodes more than values, and random moves between them."""
    rng = np.random.default_rng(seed)
    features = model.space.features.as_dict()
    sites = list(model.missingness.can_go_missing)
    n_scenes = int(np.prod([len(values) for name, values in features.items() if name not in sites]))
    beliefs: list[NDArray[np.float64]] = []
    steps: list[NDArray[np.float64]] = []
    first: list[NDArray[np.float64]] = []
    for name in sites:
        size = len(features[name])
        n = size + extra
        beliefs.append(np.concatenate([np.eye(size), rng.dirichlet(np.ones(size), extra)]))
        moves = rng.dirichlet(np.full(n, 0.3), (model.n_actions, n_scenes, n_scenes, n))
        moves[moves < 0.05] = 0.0
        steps.append(moves / moves.sum(axis=-1, keepdims=True))
        first.append(rng.dirichlet(np.ones(n), n_scenes))
    table = rng.integers(0, model.n_actions, (n_scenes, *map(len, beliefs)))
    return mm.MemoryPolicy(model, beliefs, steps, first, table)
