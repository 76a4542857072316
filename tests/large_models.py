"""Small models, as they are and treated as if they were large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import missmdp as mm
from missmdp.model import mdp as mdp_module
from missmdp.model import missingness as missingness_module


def treat_all_as_large(patch: pytest.MonkeyPatch) -> None:
    """Have every model that is made from now on, and was given by factors, drawn and judged feature by feature."""
    patch.setattr(mdp_module, "_FEW_ENTRIES", -1)
    patch.setattr(missingness_module, "_SMALL", -1)


def _is_one(value: int) -> bool:
    return value == 1


def random_model(seed: int, *, terminal: bool = False) -> Callable[[], mm.MissMDP]:
    """Return what makes a random model by factors, the same one each time it is called."""

    def made() -> mm.MissMDP:
        random = np.random.default_rng(seed)
        sizes = [int(size) for size in random.integers(2, 4, size=3)]
        names = [f"f{i}" for i in range(len(sizes))]

        def some_parents(most: int = 3) -> list[int]:
            return random.permutation(len(sizes))[: random.integers(0, most)].tolist()

        transitions: dict[str, Any] = {}
        for i, name in enumerate(names):
            parents = some_parents()
            weights = random.random([*(sizes[p] for p in parents), 2, sizes[i]]) + 0.05
            weights *= random.random(weights.shape) < 0.8
            weights[..., 0] += 0.1
            transitions[name] = (
                [names[p] for p in parents],
                weights / weights.sum(axis=-1, keepdims=True),
            )
        mdp = mm.FactoredMDP.from_factors(
            {name: range(size) for name, size in zip(names, sizes, strict=True)},
            ["a", "b"],
            transitions,
            [([name], random.normal(size=(size, 2))) for name, size in zip(names, sizes, strict=True)],
            {name: dict.fromkeys(range(size), 1.0 / size) for name, size in zip(names, sizes, strict=True)},
            ("f0", _is_one) if terminal else None,
            0.8,
        )
        missing: dict[Any, Any] = {}
        left = names.copy()
        while left:
            block = tuple(left[: random.integers(1, 3)])
            del left[: len(block)]
            parents = some_parents()
            rates = random.choice([0.1, 0.3, 0.6], size=[sizes[p] for p in parents])
            if random.random() < 0.7 or not (left or missing):
                missing[block] = ([names[p] for p in parents], rates)
        return mm.MissMDP(mdp, mm.MissingnessFunction.blocks(mdp, missing))

    return made


def pair(
    seed: int, monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False
) -> tuple[mm.MissMDP, mm.MissMDP]:
    """Return a model as it is, and the same one treated as large."""
    made = random_model(seed, terminal=terminal)
    small = made()
    assert small.mdp.is_small
    assert small.missingness.is_small
    treat_all_as_large(monkeypatch)
    large = made()
    assert not large.mdp.is_small
    assert not large.missingness.is_small
    return small, large


def two_machines(
    *,
    watched: bool = False,
    terminal: Any = None,
    initial: Any = None,
    coupled: bool = False,
) -> mm.FactoredMDP:
    """A load that is always seen, two machines that wear, and a lamp that shows the wear of the first if `watched`."""

    def wear(w, load, action):
        return {0: 0.9, 1: 0.1} if action == "fix" else {w: 0.7 - 0.2 * load, (w + 1) % 3: 0.3 + 0.2 * load}

    def pushed(w, other, action):
        return {w: 0.5, (w + 1) % 3: 0.5} if other == 2 else {w: 0.8, (w + 1) % 3: 0.2}

    def lamp(w, action):
        return {0: 0.9 - 0.4 * w, 1: 0.1 + 0.4 * w}

    return mm.FactoredMDP.from_factors(
        {"load": (0, 1), "a": (0, 1, 2), "lamp": (0, 1), "b": (0, 1, 2)},
        ["run", "fix"],
        {
            "load": ("load", [[[0.6, 0.4]] * 2, [[0.3, 0.7]] * 2]),
            "a": (["a", "load"], wear),
            "b": (["b", "a"], pushed) if coupled else (["b", "load"], wear),
            "lamp": ("a", lamp) if watched else ([], [[0.5, 0.5]] * 2),
        },
        0.0,
        initial or {"load": {0: 0.5, 1: 0.5}, "a": {0: 0.8, 1: 0.2}, "lamp": 0, "b": 0},
        terminal,
    )


def log_of(mdp: mm.FactoredMDP, missing: dict[str, Any], steps: int = 1500, seed: int = 0) -> mm.Dataset:
    return mm.collect(mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, missing)), steps, seed=seed)


MISSING = {"a": ("a", [0.2, 0.5, 0.8]), "b": ("load", [0.3, 0.6])}
