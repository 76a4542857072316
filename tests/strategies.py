"""Hypothesis strategies for tiny random models: shapes are drawn, numbers come from a drawn seed.

Weights are small integers, so that equal probabilities are common and every type of missingness occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

import missmdp as mm
from missmdp.model.space import FeatureSpace

KINDS = ("any", "mcar", "simple mar", "mar", "independent", "blocks")
MAR_KINDS = ("mcar", "simple mar", "mar")
POOL: dict[str, tuple[Any, ...]] = {
    "ward": ("north", "south", "icu"),
    "level": (0, 1, 2),
    "on drip": (False, True, "n/a"),
}
"""Features and values of random models, of several types and with one name that is no identifier."""
ACTIONS = ("wait", "treat", 7)

State = tuple[Any, ...]
Pattern = tuple[int, ...]


def seeds() -> st.SearchStrategy[int]:
    """Draw seeds for numpy."""
    return st.integers(0, 2**32 - 1)


@st.composite
def feature_dicts(draw: st.DrawFn, max_features: int = 3) -> dict[str, tuple[Any, ...]]:
    """Draw one to three features of two or three values each."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=1, max_size=max_features))
    return {name: POOL[name][:size] for name, size in zip(POOL, sizes, strict=False)}


def rows(space: FeatureSpace, *, missing: bool) -> st.SearchStrategy[State]:
    """Draw a state of a feature space, or an observation with None for missing."""
    return st.tuples(*(st.sampled_from([*v, None] if missing else list(v)) for v in space.values))


@st.composite
def mdps(draw: st.DrawFn, *, full: bool = False, max_features: int = 3) -> mm.FactoredMDP:
    """Draw an MDP with sparse transitions, over all combinations of values or over some of them.

    Unless `full`, states are left out, some may be terminal, and some may be out of reach. With `full`,
    every combination is a state that can be reached.
    """
    features = draw(feature_dicts(max_features))
    n_actions = draw(st.integers(1, 3))
    return random_mdp(np.random.default_rng(draw(seeds())), features, n_actions, full=full)


def random_mdp(
    rng: np.random.Generator, features: Mapping[str, Sequence[Any]], n_actions: int, *, full: bool = False
) -> mm.FactoredMDP:
    """Return a random MDP; see `mdps`."""
    states = list(product(*features.values()))
    if not full:
        keep = rng.integers(1, min(len(states), 12) + 1)
        states = [states[i] for i in np.sort(rng.choice(len(states), size=keep, replace=False))]
    n = len(states)
    initial = np.full(n, 1.0 / n) if full else some_weights(rng, n)
    terminal = np.zeros(n, dtype=bool) if full or rng.random() < 0.5 else rng.random(n) < 0.3
    return mm.FactoredMDP(
        features,
        ACTIONS[:n_actions],
        [np.stack([some_weights(rng, n, most=3) for _ in range(n)]) for _ in range(n_actions)],
        rng.integers(-4, 5, size=(n, n_actions)) / 2.0,
        initial,
        terminal,
        discount=float(rng.choice([0.0, 0.5, 0.9])),
        states=states,
    )


@st.composite
def missmdps(
    draw: st.DrawFn, kinds: Sequence[str] = KINDS, *, full: bool = False, max_features: int = 3
) -> mm.MissMDP:
    """Draw an MDP with a missingness function of one of the given kinds."""
    mdp = draw(mdps(full=full, max_features=max_features))
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(seeds()))
    return mm.MissMDP(mdp, random_missingness(rng, mdp, kind), name=kind)


def random_missingness(rng: np.random.Generator, mdp: mm.FactoredMDP, kind: str) -> mm.MissingnessFunction:
    """Return a random missingness function of one of `KINDS`.

    The kinds "mcar", "simple mar" and "mar" have that type (or a narrower one, by luck), "independent"
    has independent indicators, "blocks" has blocks that go missing together, "any" promises nothing.
    """
    match kind:
        case "any":
            return mm.MissingnessFunction.from_patterns(mdp, _by_values(rng, mdp, set(mdp.features)))
        case "mcar":
            return mm.MissingnessFunction.from_patterns(mdp, _by_values(rng, mdp, set()))
        case "simple mar":
            return _simple_mar(rng, mdp)
        case "mar":
            return mm.MissingnessFunction.from_patterns(mdp, _revealing(rng, mdp))
        case "independent":
            rates = {name: _random_rate(rng, mdp) for name in mdp.features if rng.random() < 0.8}
            return mm.MissingnessFunction.independent(mdp, rates)
        case "blocks":
            label = rng.integers(0, 3, size=len(mdp.features))
            blocks = [
                tuple(name for name, own in zip(mdp.features, label, strict=True) if own == block)
                for block in (0, 1)
            ]
            return mm.MissingnessFunction.blocks(mdp, {b: _random_rate(rng, mdp) for b in blocks if b})
        case _:
            raise ValueError(kind)


def some_weights(rng: np.random.Generator, size: int, most: int | None = None) -> np.ndarray:
    """Return a random distribution over `size` things, at most `most` of them possible."""
    weights = np.zeros(size)
    chosen = rng.choice(size, size=rng.integers(1, min(size, most or size) + 1), replace=False)
    weights[chosen] = rng.integers(1, 4, size=len(chosen))
    return weights / weights.sum()


def _patterns(n: int) -> list[Pattern]:
    return list(product((1, 0), repeat=n))


def _values_of(mdp: mm.FactoredMDP, names: set[str]) -> Callable[[State], State]:
    """Return the function that picks the values of some features from a state."""
    positions = [i for i, name in enumerate(mdp.features) if name in names]
    return lambda state: tuple(state[i] for i in positions)


def _by_values(
    rng: np.random.Generator, mdp: mm.FactoredMDP, names: set[str], always: set[str] = frozenset()
) -> Callable[[State], dict[Pattern, float]]:
    """Return P(pattern | state) as a random function of some features, where `always` are never missing."""
    shown = [i for i, name in enumerate(mdp.features) if name in always]
    allowed = [pattern for pattern in _patterns(len(mdp.features)) if all(pattern[i] for i in shown)]
    pick = _values_of(mdp, names)
    table: dict[State, dict[Pattern, float]] = {}
    for values in sorted({pick(state) for state in mdp.states}, key=repr):
        table[values] = dict(zip(allowed, some_weights(rng, len(allowed)), strict=True))
    return lambda state: table[pick(state)]


def _simple_mar(rng: np.random.Generator, mdp: mm.FactoredMDP) -> mm.MissingnessFunction:
    always = {name for name in mdp.features if rng.random() < 0.5}
    return mm.MissingnessFunction.from_patterns(mdp, _by_values(rng, mdp, always, always))


def _revealing(rng: np.random.Generator, mdp: mm.FactoredMDP) -> Callable[[State], dict[Pattern, float]]:
    """Return a MAR function: features are revealed one by one, and what is revealed decides what is next.

    At every point one feature more is revealed or the process stops, with probabilities that depend only
    on the features and values revealed so far. So P(r | s) depends only on what r shows.
    """
    n = len(mdp.features)
    choices: dict[tuple[Any, ...], np.ndarray] = {}

    def weights(shown: tuple[Any, ...]) -> np.ndarray:
        if shown not in choices:
            hidden = [i for i in range(n) if shown[i] is None]
            choices[shown] = some_weights(rng, len(hidden) + 1)
        return choices[shown]

    def distribution(state: State) -> dict[Pattern, float]:
        total: dict[Pattern, float] = {}

        def walk(pattern: Pattern, probability: float) -> None:
            shown = tuple(value if seen else None for value, seen in zip(state, pattern, strict=True))
            hidden = [i for i in range(n) if not pattern[i]]
            stop, *reveal = weights(shown)
            total[pattern] = total.get(pattern, 0.0) + probability * stop
            for i, weight in zip(hidden, reveal, strict=True):
                if weight > 0.0:
                    walk((*pattern[:i], 1, *pattern[i + 1 :]), probability * float(weight))

        walk((0,) * n, 1.0)
        return total

    return distribution


def _random_rate(rng: np.random.Generator, mdp: mm.FactoredMDP) -> Callable[[State], float] | float:
    """Return P(missing) as a random function of some of the features, or one number."""
    if rng.random() < 0.2:
        return float(rng.choice([0.25, 0.5, 1.0]))
    pick = _values_of(mdp, {name for name in mdp.features if rng.random() < 0.5})
    table = {
        values: float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]))
        for values in sorted(map(pick, mdp.states), key=repr)
    }
    return lambda state: table[pick(state)]
