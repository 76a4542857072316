"""A model as the variables of a factored file: what is always seen, what is hidden, and what is seen of it.

APPL allows a fully observed variable no parents in its own time slice, and a hidden one only fully observed ones there.
So an exact factorisation of any model has one of each: P(x′ | x, y, a) and P(y′ | x, y, a, x′). x combines the features
of a miss-MDP that are always observed, y combines the others, and one observation variable combines what is seen of
those, since values may go missing together. Of each only the combinations that occur are values.

A factored file holds P(x) and P(y | x); who reads it computes fl(P(x) · P(y | x)), which need not be the P(x, y)
that one started from. The total of a group is only fixed up to rounding, so there are many neighbouring floats to
choose it from. For most of them some product is off by one unit in the last place; nearly always one can be found for
which every product is right. Where none is near, the best is taken, and a product may be off by one unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.space import MISSING, FeatureSpace

_NEAR, _FAR = 250, 4000
"""How many floats to either side of the sum are tried at least and at most: a relative change below 10⁻¹²."""


_BUDGET = 200_000_000
"""Products to be tried beyond the near floats; with many difficult groups the search does not go as far."""


_MARGIN = 8
"""So much further is searched for a total that leaves no product wrong.

Reading a file whose products are off moves the sums of groups by a few units, so the total that was used is then still
found, and writing what was read gives it back exactly.
"""


@dataclass(frozen=True, eq=False)
class StateVariable:
    """One state variable: its name, its values, and which of them each state has."""

    name: str
    labels: Sequence[Any]
    of_state: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Factored:
    """A model's states as an observed and a hidden part, one of which may be absent."""

    observed: StateVariable | None
    hidden: StateVariable | None
    signals: Sequence[Any]
    """What is seen of the hidden part; empty where there is none."""
    observation: tuple[sparse.csr_array, ...]
    """P(signal | state), one matrix, or one per action."""


def factorise(model: POMDP | MissMDP) -> Factored:
    """Return the parts of a model; a plain POMDP is one hidden variable."""
    if isinstance(model, POMDP):
        hidden = StateVariable("state", model.states, np.arange(model.n_states))
        return Factored(None, hidden, model.observations, model.observation)
    features, codes = model.space.features, model.space.codes
    always = features.mask(model.missingness.always_observed)
    if always.all():
        return Factored(StateVariable("state", model.states, np.arange(model.n_states)), None, (), ())
    pomdp = model.to_pomdp()
    if not always.any():
        hidden = StateVariable("state", model.states, np.arange(model.n_states))
        return Factored(None, hidden, pomdp.observations, pomdp.observation)
    seen = model.missingness.occurring()
    rows, signal = np.unique(seen.observations.codes[:, ~always], axis=0, return_inverse=True)
    matrix = sparse.csr_array(
        (
            model.missingness.probabilities[seen.state, seen.pattern],
            (seen.state, signal.reshape(-1)[seen.place]),
        ),
        shape=(model.n_states, len(rows)),
    )
    matrix.sort_indices()
    return Factored(
        _part(features, codes, always),
        _part(features, codes, ~always),
        _labels(features, rows, ~always),
        (matrix,),
    )


def _part(features: FeatureSpace, codes: NDArray[np.integer[Any]], mask: NDArray[np.bool_]) -> StateVariable:
    rows, of_state = np.unique(codes[:, mask], axis=0, return_inverse=True)
    return StateVariable("_".join(features.chosen(mask)), _labels(features, rows, mask), of_state.reshape(-1))


def _labels(features: FeatureSpace, rows: NDArray[np.integer[Any]], mask: NDArray[np.bool_]) -> list[Any]:
    """Return combinations of values as tuples, of one feature as the values themselves; None for missing."""
    values = [features.values[i] for i in np.flatnonzero(mask)]
    labels = [tuple(None if c == MISSING else v[c] for v, c in zip(values, row, strict=True)) for row in rows]
    return [label[0] for label in labels] if len(values) == 1 else labels


Floats = NDArray[np.float64]


def split_groups(values: Floats, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the total of each group and the share of each value in its group's.

    Parameters
    ----------
    values
        Positive probabilities, group after group, shape (n,).
    starts
        Where each group starts, shape (groups,); no group is empty.

    Returns
    -------
    totals, shares
        Shapes (groups,) and (n,): `totals[group] * shares` is `values`, exactly wherever that can be had.
    """
    stops = np.append(starts[1:], len(values))
    sizes = stops - starts
    totals = np.array([math.fsum(values[i:j]) for i, j in zip(starts, stops, strict=True)])
    totals = np.where(sizes == 1, values[starts], np.minimum(totals, 1.0))
    shares = np.ones(len(values))
    open_groups = np.flatnonzero(sizes > 1)
    sums, fewest = totals.copy(), np.full(len(starts), np.iinfo(np.int64).max)
    radius = _FAR
    for offset in sorted(range(-_FAR - _MARGIN, _FAR + _MARGIN + 1), key=abs):
        if abs(offset) == _NEAR + 1 and radius == _FAR:
            radius = min(_FAR, max(_NEAR, _BUDGET // max(int(sizes[open_groups].sum()), 1)))
        if not open_groups.size or abs(offset) > radius + _MARGIN:
            break
        size = sizes[open_groups]
        first = np.cumsum(size) - size
        place = np.repeat(starts[open_groups] - first, size) + np.arange(int(size.sum()))
        candidate = (sums[open_groups].view(np.int64) + offset).view(np.float64)
        share, wrong = _shares(values[place], np.repeat(candidate, size))
        misses = np.add.reduceat(wrong.astype(np.int64), first)
        better = (misses < fewest[open_groups]) & (candidate <= 1.0)
        # Beyond the radius only a perfect total counts; see the margin.
        better &= (abs(offset) <= radius) | (misses == 0)
        kept = np.repeat(better, size)
        totals[open_groups[better]] = candidate[better]
        fewest[open_groups[better]] = misses[better]
        shares[place[kept]] = share[kept]
        open_groups = open_groups[fewest[open_groups] > 0]
    return totals, shares


def _shares(values: Floats, totals: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return shares that multiply with the totals to the values where possible, and where that is not so."""
    nearest = np.minimum(values / totals, 1.0)
    share = nearest
    for neighbour in (nearest, np.nextafter(nearest, 0.0), np.minimum(np.nextafter(nearest, 2.0), 1.0)):
        share = np.where((share * totals != values) & (neighbour * totals == values), neighbour, share)
    return share, share * totals != values
