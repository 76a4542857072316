"""Logistic structures: the log-odds of going missing are sums of effects of values, and of pairs of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, States
from missmdp.learn.em.iterate import Maximised

_NEWTON_STEPS = 3
_RIDGE = 1e-8
"""Keeps Newton's steps finite where effects cannot be told apart."""
_MOST_EFFECTS = 2000


@dataclass(frozen=True, eq=False)
class Logistic:
    """Independent indicators with log-odds that are linear in effects: S states, p effects of each block."""

    name: str
    blocks: Blocks
    designs: tuple[NDArray[np.float64], ...]
    """The effects of each block, shape (S, p) each; the first is always 1."""
    pseudo: tuple[NDArray[np.float64], ...]
    """Pseudo-counts of seen and missing in each state, shape (S, 2) each."""
    labels: tuple[tuple[str, ...], ...]
    """What each effect is, for each block."""
    given: tuple[tuple[str, ...], ...]
    """The features on which the indicator of each block depends."""

    def n_parameters(self, reachable: NDArray[np.bool_]) -> int:
        """Return how many effects can be told apart among reachable states."""
        return sum(int(np.linalg.matrix_rank(design[reachable])) for design in self.designs)

    def maximise(self, expected: NDArray[np.float64], before: Maximised | None = None) -> Maximised:
        """Return an M that explains expected counts at least as well as the one before, by Newton's method."""
        effects: list[NDArray[np.float64]] = []
        log_prior = 0.0
        table = np.ones(expected.shape)
        for i, (design, pseudo) in enumerate(zip(self.designs, self.pseudo, strict=True)):
            missing = self.blocks.missing[:, i]
            own = np.stack([expected[~missing].sum(axis=0), expected[missing].sum(axis=0)], axis=1)
            start = np.zeros(design.shape[1]) if before is None else before.parameters[i]
            effect = newton_effects(design, own + pseudo, start)
            effects.append(effect)
            odds = design @ effect
            logs = np.stack([log_expit(-odds), log_expit(odds)], axis=1)
            log_prior += float((pseudo * logs).sum()) - 0.5 * _RIDGE * float(effect @ effect)
            table *= np.where(missing[:, None], np.exp(logs[:, 1]), np.exp(logs[:, 0]))
        return Maximised(table, log_prior, tuple(effects))


def logistic_model(
    mdp: States,
    blocks: Blocks,
    features: Sequence[Sequence[str]],
    start: NDArray[np.float64],
    pseudo_count: float,
    *,
    order: int = 2,
) -> Logistic:
    """Return the logistic structure in which each block depends on some features.

    Parameters
    ----------
    features
        For each block, what its indicator may depend on.
    start
        P(pattern | state) towards which pseudo-counts go, shape (K, S).
    pseudo_count
        Pseudo-observations for each effect, spread evenly over the reachable states.
    order
        1 for effects of single values, 2 for those of pairs too.
    """
    designs: list[NDArray[np.float64]] = []
    labels: list[tuple[str, ...]] = []
    pseudo: list[NDArray[np.float64]] = []
    for i, names in enumerate(features):
        columns = dict(_effects(mdp, names, order))
        if len(columns) > _MOST_EFFECTS:
            raise DataError(f"a logistic structure would have {len(columns):,} effects, too many")
        design = np.stack(list(columns.values()), axis=1)
        designs.append(design)
        labels.append(tuple(columns))
        rate = start[blocks.missing[:, i]].sum(axis=0)
        each = pseudo_count * design.shape[1] / int(mdp.reachable.sum())
        weight = np.where(mdp.reachable, each, 0.0)
        pseudo.append(np.stack([weight * (1.0 - rate), weight * rate], axis=1))
    return Logistic(
        "logistic", blocks, tuple(designs), tuple(pseudo), tuple(labels), tuple(map(tuple, features))
    )


def _effects(mdp: States, names: Sequence[str], order: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the effects that vary among reachable states: 1, single values, pairs of values."""
    features, codes = mdp.space.features, mdp.space.codes
    yield "1", np.ones(mdp.n_states)
    single: dict[str, list[tuple[str, NDArray[np.float64]]]] = {}
    for name in names:
        place = features.position(name)
        present = np.unique(codes[mdp.reachable, place])
        # One value is what the others are compared with.
        single[name] = [
            (f"{name}={features.values[place][code]}", (codes[:, place] == code).astype(np.float64))
            for code in present[1:]
        ]
        yield from single[name]
    if order < 2:
        return
    for one, other in combinations(names, 2):
        for label, column in single[one]:
            for label2, column2 in single[other]:
                both = column * column2
                if both[mdp.reachable].any():
                    yield f"{label}, {label2}", both


def newton_effects(
    design: NDArray[np.float64], counts: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return effects that raise the likelihood of counts of seen and missing, shape (rows, 2), from a start."""
    total = counts.sum(axis=1)
    used = total > 0.0
    design, counts, total = design[used], counts[used], total[used]

    def value(effect: NDArray[np.float64]) -> float:
        odds = design @ effect
        return float(
            counts[:, 0] @ log_expit(-odds)
            + counts[:, 1] @ log_expit(odds)
            - 0.5 * _RIDGE * (effect @ effect)
        )

    effect, now = start, value(start)
    for _ in range(_NEWTON_STEPS):
        rate = np.exp(log_expit(design @ effect))
        slope = design.T @ (counts[:, 1] - total * rate) - _RIDGE * effect
        bend = (design * (total * rate * (1.0 - rate))[:, None]).T @ design
        bend[np.diag_indices_from(bend)] += _RIDGE + 1e-9 * float(np.trace(bend)) / len(bend)
        step = _solved(bend, slope)
        size = 1.0
        while (then := value(effect + size * step)) < now and size > 1e-4:
            size *= 0.5
        if then <= now:
            break
        effect, gain, now = effect + size * step, then - now, then
        if gain < 1e-9 * max(abs(now), 1.0):
            break
    return effect


def log_expit(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the probability that log-odds stand for."""
    return -np.logaddexp(0.0, -odds)


def _solved(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
