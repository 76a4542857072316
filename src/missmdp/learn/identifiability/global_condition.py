"""Conditions on T under which M is identified among all M of a structure, for almost every M with positive patterns.

The probability that nothing is missing, M(∅ | s), is known for every state that follows a known pair: no other
state shows the same. The rest goes part by part; parts of the structure are independent of each other given the state.

- *Odds*: where only blocks of the part are missing, P(z | s, a) = Σ_{s′} T(s′ | s, a) M(∅ | s′) · odds(s′), and
  odds depend on the part's groups only: linear, with known weights.
- *Margins*: forget what other parts show. P(z | s, a) = Σ_{s′} T(s′ | s, a) P(the part's pattern | s′).
- *The last one*: if all other parts are known, M is linear in the last one's probabilities.

Each is a matter of full column rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.possible_observations import PossibleObservations, members_of
from missmdp.learn.identifiability.spans import null_space, one_step_spans, stacked
from missmdp.learn.identifiability.tangent import Tangent
from missmdp.model.mdp import FactoredMDP


def globally_identified(
    mdp: FactoredMDP,
    factors: Factors,
    seen: PossibleObservations,
    whole: sparse.csr_array,
    rows: sparse.csc_array,
    tangent: Tangent,
) -> float:
    """Return by how much the conditions hold, as the smallest singular value that counts; 0 decides nothing.

    Parameters
    ----------
    whole
        What one step says at each observation, as functions of M, shape (rows, K · S).
    rows
        The rows of T, with b₀, that are known.
    tangent
        M at a random point, which stands for almost every M.
    """
    reachable = np.flatnonzero(mdp.reachable)
    margin = _full_rank(whole[:, reachable])
    if not margin:
        return 0.0
    visited = np.unique(np.concatenate(seen.members))
    open_: list[tuple[int, ...]] = []
    for part in _parts(factors):
        own = _by_odds(factors, part, whole, tangent.table, reachable)
        own = own or _by_margins(mdp, factors, part, rows, visited, reachable)
        if own:
            margin = min(margin, own)
        else:
            open_.append(part)
    if not open_:
        return margin
    last, *others = open_
    if others or len(last) != 1:
        return 0.0
    own = np.flatnonzero(tangent.owner == last[0])
    free = np.flatnonzero(np.diff(sparse.csc_array(tangent.entries[own]).indptr))
    return min(margin, _full_rank(whole @ tangent.jacobian[:, free]))


def identified_by_odds(
    mdp: FactoredMDP, factors: Factors, whole: sparse.csr_array, tangent: Tangent
) -> float:
    """Return by how much the odds of all parts are determined, with T unknown, as in `globally_identified`.

    With T unknown the known weights are P(s′ is next, and seen in full | s, a), which the law shows.
    """
    reachable = np.flatnonzero(mdp.reachable)
    margin = 1.0
    for part in _parts(factors):
        margin = min(margin, _by_odds(factors, part, whole, tangent.table, reachable))
        if not margin:
            break
    return margin


def _full_rank(matrix: Any) -> float:
    """Return the smallest singular value that counts where all columns are independent, otherwise 0."""
    found = null_space(sparse.csr_array(matrix))
    return 0.0 if found.dimension else found.margin


def _parts(factors: Factors) -> list[tuple[int, ...]]:
    """Return the factors in groups; a factor that looks at the indicators of another is in its group."""
    home = {block: f for f, factor in enumerate(factors.parts) for block in factor.blocks}
    label = list(range(len(factors.parts)))
    for f, factor in enumerate(factors.parts):
        for block in factor.after:
            one, other = label[f], label[home[block]]
            label = [one if mark == other else mark for mark in label]
    return [tuple(f for f, mark in enumerate(label) if mark == group) for group in dict.fromkeys(label)]


def _patterns(factors: Factors, part: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the patterns in which nothing is missing but blocks of a part, nothing at all first."""
    own = [block for f in part for block in factors.parts[f].blocks]
    others = np.delete(factors.blocks.missing, own, axis=1)
    return np.flatnonzero(~others.any(axis=1))


def _by_odds(
    factors: Factors,
    part: tuple[int, ...],
    whole: sparse.csr_array,
    table: NDArray[np.float64],
    reachable: NDArray[np.int64],
) -> float:
    margin = 1.0
    for k in _patterns(factors, part)[1:]:
        labels = [factors.parts[f].label[row, reachable] for f in part for row in (0, k)]
        merged = _merged(labels, table[0, reachable])
        margin = min(margin, _full_rank(whole[:, k * table.shape[1] + reachable] @ merged))
        if not margin:
            break
    return margin


def _by_margins(
    mdp: FactoredMDP,
    factors: Factors,
    part: tuple[int, ...],
    rows: sparse.csc_array,
    visited: NDArray[np.int64],
    reachable: NDArray[np.int64],
) -> float:
    own = {name for f in part for block in factors.parts[f].blocks for name in factors.blocks.names[block]}
    hidden = mdp.space.features.mask(name for name in factors.blocks.features if name not in own)
    margins: list[float] = []
    for k in _patterns(factors, part):
        members = members_of(mdp, factors.blocks.patterns[k] & ~hidden, visited)
        spans = one_step_spans(rows, members)
        seen = stacked(spans, members, np.zeros(len(members), dtype=np.int64), mdp.n_states)
        labels = [factors.parts[f].label[k, reachable] for f in part]
        margins.append(_full_rank(seen[:, reachable] @ _merged(labels, np.ones(len(reachable)))))
        if margins.count(0.0) > 1:
            return 0.0
    # Probabilities add up to one, so one pattern may stay open: the one with the least margin.
    return sorted(margins)[1]


def _merged(labels: Sequence[NDArray[np.int64]], weight: NDArray[np.float64]) -> sparse.csr_array:
    """Return the matrix that adds up weighted states with the same labels, shape (states, classes)."""
    _, place = np.unique(np.stack(labels), axis=1, return_inverse=True)
    place = place.reshape(-1)
    entries = (weight, (np.arange(len(place)), place))
    return sparse.csr_array(sparse.coo_array(entries, shape=(len(place), int(place.max()) + 1)))
