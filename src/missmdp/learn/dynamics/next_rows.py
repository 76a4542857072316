"""The probabilities of a feature's next value: distinct rows of T for each feature, and which of them are tested.

Summed over all other features, T gives each feature a distribution of its next value. States and actions with the
same distribution share a *row*. Where a feature follows another one within a step, as a symptom follows an illness, its
distributions given the next value of that one are rows too. A test changes some rows of a feature and leaves all else:
how the other features go on given this one's next value, and how the one goes on that it follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.histories import Histories
from missmdp.learn.em.observation_classes import Classes
from missmdp.model.mdp import FactoredMDP
from missmdp.words import listed, shown

_DIGITS = 12
"""Rows that agree to so many digits are one."""

_SHARE = 0.05
"""Share of all steps that a row or a value must have to be tested on its own."""

_MOST_ENTRIES = 5_000_000
"""Probabilities above which it is not looked at whether a feature follows another one."""


@dataclass(frozen=True, eq=False)
class NextRows:
    """The rows of one feature: K cells, V values. Cells with equal rows differ in action or in the present value."""

    feature: int
    follows: int | None
    """The feature given whose next value these are the probabilities; None for none."""
    led: bool
    """Whether there are rows given another feature's next value; these are tested instead of those without."""
    probability: NDArray[np.float64]
    """Of each next value, shape (K, V)."""
    action: NDArray[np.int64]
    """The action of each cell; the number of actions for the first step."""
    own: NDArray[np.int64]
    """The feature's present value, −1 where that makes no difference, shape (K,)."""
    row: NDArray[np.int64]
    """Cells with equal probabilities have the same number, shape (K,)."""
    after: NDArray[np.int64]
    """The next value of the feature that it follows, −1 where it follows none, shape (K,)."""
    cell: NDArray[np.int64]
    """The cell of each class, action and next value of the feature that it follows, shape (C + 1, A + 1, V)."""
    place: NDArray[np.int64]
    """Cell · V + next value of each detail of the histories."""

    def counts(self, uses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how often each cell led to each value, shape (K, V)."""
        flat = np.bincount(self.place, uses, minlength=self.probability.size)
        return flat.astype(np.float64).reshape(self.probability.shape)

    def tilted(self, cells: NDArray[np.bool_], tilt: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities with those of some cells changed: p(w) · exp(tilt(w)), normalised, shape (K, V)."""
        changed = self.probability.copy()
        changed[cells] *= np.exp(tilt - tilt.max())
        changed[cells] /= changed[cells].sum(axis=1, keepdims=True)
        return changed


def next_rows(mdp: FactoredMDP, classes: Classes, histories: Histories, feature: int) -> list[NextRows]:
    """Return the rows of a feature; and those given the next value of another one, if there are fewer of these."""
    sizes = [int(size) for size in mdp.space.features.sizes]
    alone = _chances(mdp, classes, feature, None)
    fewest, follows = _distinct(alone), None
    for other in range(len(sizes)):
        if other == feature or len(alone) * sizes[other] * sizes[feature] > _MOST_ENTRIES:
            continue
        number = _distinct(_chances(mdp, classes, feature, other))
        if number < fewest:
            fewest, follows = number, other
    found = [_rows(mdp, classes, histories, feature, None, alone, led=follows is not None)]
    if follows is not None:
        chances = _chances(mdp, classes, feature, follows)
        found.append(_rows(mdp, classes, histories, feature, follows, chances, led=True))
    return found


def _chances(mdp: FactoredMDP, classes: Classes, feature: int, other: int | None) -> NDArray[np.float64]:
    """Return P(next value | class, action, next value of another), shape (C + 1, A + 1, V of the other, V).

    Zeros stand where it cannot happen; the last class is that of the start, left by the last action only.
    """
    sizes, codes = mdp.space.features.sizes, mdp.space.codes.astype(np.int64)
    first, n_first = (0, 1) if other is None else (codes[:, other], int(sizes[other]))
    n_values, n_classes, n_actions = int(sizes[feature]), classes.count, mdp.n_actions
    one_hot = (first * n_values + codes[:, feature])[:, None] == np.arange(n_first * n_values)
    joint = np.zeros((n_classes + 1, n_actions + 1, n_first * n_values))
    for action, matrix in enumerate(classes.transition):
        joint[:n_classes, action] = matrix @ one_hot.astype(np.float64)
    joint[n_classes, n_actions] = mdp.initial @ one_hot
    joint = joint.reshape(n_classes + 1, n_actions + 1, n_first, n_values)
    total = joint.sum(axis=3, keepdims=True)
    return np.divide(joint, total, out=np.zeros_like(joint), where=total > 1e-12)


def _distinct(chances: NDArray[np.float64]) -> int:
    """Return how many different rows there are that can be tested."""
    flat = np.round(chances[:-1].reshape(-1, chances.shape[3]), _DIGITS)
    return len(np.unique(flat[(flat > 0.0).sum(axis=1) > 1], axis=0))


def _rows(
    mdp: FactoredMDP,
    classes: Classes,
    histories: Histories,
    feature: int,
    follows: int | None,
    chances: NDArray[np.float64],
    *,
    led: bool,
) -> NextRows:
    codes = mdp.space.codes.astype(np.int64)
    n_classes, n_actions, n_first, n_values = (int(size) for size in chances.shape)
    # The present value, where all states of a class have the same.
    own = np.full(n_classes, -1, dtype=np.int64)
    own[classes.of_state] = codes[:, feature]
    own[classes.of_state[own[classes.of_state] != codes[:, feature]]] = -1
    flat = chances.reshape(-1, n_values)
    row = np.unique(np.round(flat, _DIGITS), axis=0, return_inverse=True)[1].reshape(-1)
    action = np.tile(np.repeat(np.arange(n_actions), n_first), n_classes)
    after = (
        np.tile(np.arange(n_first), n_classes * n_actions) if follows is not None else np.full(len(row), -1)
    )
    key = np.stack([action, np.repeat(own, n_actions * n_first), row, after], axis=1)
    kinds, first, cell = np.unique(key, axis=0, return_index=True, return_inverse=True)
    cell = cell.reshape(-1).astype(np.int64)
    state = histories.details.place % mdp.n_states
    start = histories.origins() * n_first + (0 if follows is None else codes[state, follows])
    return NextRows(
        feature,
        follows,
        led,
        flat[first],
        kinds[:, 0],
        kinds[:, 1],
        kinds[:, 2],
        kinds[:, 3],
        cell.reshape(n_classes, n_actions, n_first),
        cell[start] * n_values + codes[state, feature],
    )


@dataclass(frozen=True, eq=False)
class Target:
    """What a test changes: the rows of some cells of a feature, all in one way."""

    rows: NextRows
    cells: NDArray[np.bool_]
    """Shape (K,)."""
    values: NDArray[np.int64]
    """The next values whose odds against the most frequent one are changed."""
    action: int | None
    """The action, where it is about one; the number of actions for the first step."""
    kind: str
    """"feature", "action", "row", "value" or "start"."""


def targets(rows: NextRows, n_actions: int, counts: NDArray[np.float64]) -> Iterator[Target]:
    """Yield what is tested of a feature, widest first; nothing twice, and nothing that has only one next value.

    Parameters
    ----------
    counts
        How often each cell led to each value, shape (K, V).
    """
    used = counts.sum(axis=1)
    # A row with one possible value cannot be changed: other values are impossible then.
    free = (used > 0.0) & ((rows.probability > 0.0).sum(axis=1) > 1)
    later = free & (rows.action < n_actions)
    total = float(used[rows.action < n_actions].sum())
    met: set[bytes] = set()
    for kind, action, cells in _candidates(rows, n_actions, free, later, used, _SHARE * total):
        key = np.packbits(cells).tobytes()
        if not cells.any() or key in met:
            continue
        met.add(key)
        possible = np.flatnonzero((rows.probability[cells] > 0.0).any(axis=0))
        most = possible[np.argmax(used[cells] @ rows.probability[cells][:, possible])]
        yield Target(rows, cells, possible[possible != most], action, kind)


def _candidates(
    rows: NextRows,
    n_actions: int,
    free: NDArray[np.bool_],
    later: NDArray[np.bool_],
    used: NDArray[np.float64],
    least: float,
) -> Iterator[tuple[str, int | None, NDArray[np.bool_]]]:
    if rows.follows is None:
        yield "feature", None, later
    for action in range(n_actions if rows.follows is None else 0):
        yield "action", action, later & (rows.action == action)
    labels = [] if rows.led and rows.follows is None else [("row", rows.row)]
    for kind, label in labels if rows.follows is not None else [*labels, ("value", rows.own)]:
        for number in np.unique(label[later]):
            cells = later & (label == number)
            if number >= 0 and used[cells].sum() >= least:
                actions = np.unique(rows.action[cells])
                yield kind, int(actions[0]) if len(actions) == 1 else None, cells
    if rows.follows is None:
        yield "start", n_actions, free & (rows.action == n_actions)


def where_words(mdp: FactoredMDP, classes: Classes, rows: NextRows, cells: NDArray[np.bool_]) -> str:
    """Return where some cells lead on, such as "wear is new and load is half"; "" for everywhere."""
    features = mdp.space.features
    grid: NDArray[np.bool_] = np.asarray(cells[rows.cell][:-1, :-1].any(axis=(1, 2)), dtype=np.bool_)
    everywhere = mdp.reachable & ~mdp.terminal
    inside = grid[classes.of_state] & everywhere
    parts: list[str] = []
    for name, codes, values in zip(features.names, mdp.space.codes.T, features.values, strict=True):
        here = np.unique(codes[inside])
        if 0 < len(here) < len(np.unique(codes[everywhere])):
            parts.append(f"{name} is {_values(values, here)}")
    if rows.follows is not None:
        after = np.unique(rows.after[cells])
        parts.append(
            f"next {features.names[rows.follows]} is {_values(features.values[rows.follows], after)}"
        )
    return " and ".join(parts)


def _values(values: Sequence[Any], codes: NDArray[np.integer[Any]]) -> str:
    named = [values[int(code)] for code in codes]
    return listed([value if isinstance(value, str) else shown(value) for value in named], "or")
