"""What an observation variable of a `.pomdpx` file shows: the values of features, or that they are missing.

What a value of the variable means follows from where it is possible. If it is possible with one value of a feature
only, it shows that value. If it is called `missing`, or is possible with several values of the feature, it means that
the feature is missing. Every such reading is right if it is one-to-one: then what is seen says exactly as much as the
variable does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError
from missmdp.interop.outgoing import MISSING_NAME
from missmdp.interop.pomdpx.document import Document
from missmdp.interop.pomdpx.tables import Table
from missmdp.interop.pomdpx.variables import Variable
from missmdp.model.factors import Scope
from missmdp.model.missing_factors import Part

_HIDDEN = -1
"""In place of a value: it is missing."""

_BETWEEN = "-"
"""Separates the words in the name of a value that shows several features."""


class Rows(Protocol):
    """P(what a variable says | values of some features); see `by_features`."""

    @property
    def scope(self) -> Scope: ...
    @property
    def wrong(self) -> NDArray[np.bool_]: ...
    @property
    def table(self) -> Table: ...


class _Signal(NamedTuple):
    """One observation variable."""

    variable: Variable
    rows: Rows
    alone: dict[int, NDArray[np.int64]]
    """Feature → for each value that occurs, the only value of the feature that it is possible with, or `_HIDDEN`."""
    occurs: list[int]
    """The values that occur."""
    words: list[list[str]]
    """What each of them is called, split at hyphens."""


def what_is_shown(document: Document, rows: Sequence[Rows]) -> list[Part]:
    """Return how often which features are missing, for each observation variable of a file that shows some.

    Parameters
    ----------
    document
        The file.
    rows
        The tables of its observation variables.

    Raises
    ------
    FormatError
        If a variable shows anything else.
    """
    states = document.variables.states
    free = {i for i, variable in enumerate(states) if not variable.fully_observed}
    signals = [_signal(document, one) for one in rows]
    found: list[Part] = []
    left = [signal for signal in signals if signal.alone and len(signal.occurs) > 1]
    # Variables that show one feature come first, which leaves the other features to those that show several.
    for several, by_name in ((False, True), (True, True), (False, False), (True, False)):
        for signal in list(left):
            if by_name and several != (_words(signal) > 1):
                continue
            choices = (
                _several(signal, free) if several else ((i,) for i in _likely_first(signal, free, states))
            )
            meant = _first_clear(signal, choices, states)
            if meant is not None:
                features, meanings = meant
                found.append(_shown(signal, features, meanings))
                free -= set(features)
                left.remove(signal)
    for signal in left:
        raise _unclear(signal, states, free)
    return found


def _first_clear(
    signal: _Signal, choices: Iterable[tuple[int, ...]], states: Sequence[Variable]
) -> tuple[tuple[int, ...], dict[int, tuple[int, ...]]] | None:
    """Return the first features for which all values of a variable have a clear meaning, and these meanings."""
    for features in choices:
        meanings = _meanings(signal, features, states)
        if meanings is not None:
            return features, meanings
    return None


def _signal(document: Document, rows: Rows) -> _Signal:
    variable = document.variables.slots[rows.table.child]
    parents, table = rows.scope
    possible = table > 0.0
    others = {
        parent: tuple(k for k in range(len(parents)) if k != axis) for axis, parent in enumerate(parents)
    }
    occurs = np.flatnonzero(possible.reshape(-1, table.shape[-1]).any(axis=0))
    alone: dict[int, NDArray[np.int64]] = {}
    for parent, axes in others.items():
        support = np.asarray(possible.any(axis=axes))[:, occurs]  # (values of the feature, what is said)
        alone[parent] = np.where(support.sum(axis=0) == 1, support.argmax(axis=0), _HIDDEN)
    words = [str(variable.labels[z]).lower().split(_BETWEEN) for z in occurs.tolist()]
    return _Signal(variable, rows, alone, occurs.tolist(), words)


def _likely_first(signal: _Signal, free: Iterable[int], states: Sequence[Variable]) -> list[int]:
    """Return the single features that a variable may show, the likeliest first, by its name and its values."""
    called = {_BETWEEN.join(words) for words in signal.words}

    def doubt(feature: int) -> tuple[bool, bool, bool, int]:
        own = states[feature]
        return (
            not signal.variable.label.startswith(own.label),
            not called & own.words,
            len(own) + 1 != len(signal.variable),
            feature,
        )

    return sorted((i for i in free if i in signal.alone), key=doubt)


def _several(signal: _Signal, free: Iterable[int]) -> Iterable[tuple[int, ...]]:
    """Yield sets of features that a variable may show together, large ones first."""
    told = [i for i in sorted(free) if i in signal.alone and (signal.alone[i] != _HIDDEN).any()]
    if len(told) > 12:
        yield tuple(told)
        return
    sizes = set(range(2, len(told) + 1))
    if len(set(zip(*(signal.alone[i].tolist() for i in told), strict=True))) < len(signal.occurs):
        # All of them together do not tell the values apart, so some of them do only with the help of names.
        sizes &= {len(words) for words in signal.words if MISSING_NAME in words}
    # As many as its values have words, or else as many as can be.
    for size in sorted(sizes, key=lambda n: (n != _words(signal), -n)):
        yield from combinations(told, size)


def _words(signal: _Signal) -> int:
    """Return how many features the names of a variable's values refer to: two for s1-missing; 1 if that is unclear."""
    counts = {len(words) for words in signal.words}
    return counts.pop() if len(counts) == 1 and any(MISSING_NAME in words for words in signal.words) else 1


def _meanings(
    signal: _Signal, features: tuple[int, ...], states: Sequence[Variable]
) -> dict[int, tuple[int, ...]] | None:
    """Return what each value of a variable says of some features, `_HIDDEN` for missing; None if that is not clear."""
    if len(signal.occurs) > 2 * math.prod(len(states[feature]) + 1 for feature in features):
        return None  # more values than there is to say
    columns = [_meaning(signal, features, k, states[feature]) for k, feature in enumerate(features)]
    found = dict(zip(signal.occurs, zip(*columns, strict=True), strict=True))
    if len(set(found.values())) == len(found):
        return found
    return _told_apart(signal, states[features[0]], found) if len(features) == 1 else None


def _told_apart(
    signal: _Signal, own: Variable, found: dict[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]] | None:
    """Return what values say of one feature where two of them are possible with one value only.

    The one that is not called like a value says that it is missing.
    """
    called = dict(zip(signal.occurs, map(_BETWEEN.join, signal.words), strict=True))
    twins: dict[tuple[int, ...], list[int]] = {}
    for z, said in found.items():
        twins.setdefault(said, []).append(z)
    for said, both in twins.items():
        strange = [z for z in both if called[z] not in own.words]
        if said != (_HIDDEN,) and len(both) == 2 and len(strange) == 1:
            found[strange[0]] = (_HIDDEN,)
    return found if len(set(found.values())) == len(found) else None


def _meaning(signal: _Signal, features: tuple[int, ...], k: int, own: Variable) -> list[int]:
    """Return, for each value that occurs, the value of one of some features that it shows, or `_HIDDEN`."""
    shown = signal.alone[features[k]].tolist()
    if MISSING_NAME in own.words:
        return shown
    # What shows several features may be called like s1-missing.
    return [
        _HIDDEN if len(words) == len(features) and words[k] == MISSING_NAME else value
        for value, words in zip(shown, signal.words, strict=True)
    ]


def _shown(signal: _Signal, features: tuple[int, ...], meanings: dict[int, tuple[int, ...]]) -> Part:
    """Return how often which of its features are missing, from how often the variable says what."""
    patterns: dict[tuple[bool, ...], list[int]] = {}
    for z, said in meanings.items():
        patterns.setdefault(tuple(value != _HIDDEN for value in said), []).append(z)
    rows = signal.rows.scope.table.reshape(-1, signal.rows.scope.table.shape[-1])
    # In every row, at most one value of the variable has a pattern.
    table = np.column_stack([rows[:, zs].sum(axis=1) for zs in patterns.values()])
    wrong = signal.rows.wrong.reshape(-1)
    table[wrong] = np.eye(1, len(patterns))[0]
    return Part(features, np.array(list(patterns)), table, signal.rows.scope.parents)


def _unclear(signal: _Signal, states: Sequence[Variable], free: set[int]) -> FormatError:
    """Return the error for a variable whose meaning is not clear."""
    told = [i for i in signal.alone if i in free]
    names = " or ".join(repr(states[i].current) for i in told[:3]) or "a feature that nothing else shows"
    return signal.rows.table.element.error(
        f"{signal.variable.label!r} does not just show the value of {names}, or that it is missing; each of its values "
        f"must be possible with one value only, but for one that means missing (call it {MISSING_NAME!r})"
    )
