"""Worlds that differ a little from a model.

The missingness function is moved within a learner's bound: to the ends of its intervals, or to random places between
them. Transition probabilities become T′ = (1 − share) · T + share · D.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import DataError, ModelError
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.memory import check_fits
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missing_factors import Part, distinct_patterns, marginal
from missmdp.model.missingness import MissingnessFunction, missingness_distance, pattern_distance
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import MISSING

_SAME = 1e-6
"""How far the bound's estimates may be from the model's M̂, in total variation."""


class Intervals(NamedTuple):
    """What a bound says of one factor of M̂. Shapes: G groups, K patterns, n features, S states."""

    patterns: NDArray[np.bool_]
    """Indicators over all features, True for those of other factors, shape (K, n)."""
    label: NDArray[np.int64]
    """The group of each state, −1 for states of which the bound says nothing, shape (S,)."""
    estimate: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """Shape (G, K) each."""


def intervals_of(bound: Bound, model: MissMDP) -> list[Intervals]:
    """Return what a bound says of each factor of the model's M̂.

    Features that M̂ takes as always observed, since they were never missing in the data, are left out.

    Raises
    ------
    DataError
        If the bound is not one on the model's missingness function.
    """
    by_features: dict[tuple[str, ...], list[GroupBound]] = {}
    for group in bound.per_group:
        if not group.never_missing:
            by_features.setdefault(group.features, []).append(group)
    try:
        factors = [factor_intervals(groups, model) for groups in by_features.values()]
    except ModelError as error:
        raise DataError(f"the bound is of other features or values than the model has: {error}") from error
    same = with_probabilities(model, factors, [factor.estimate for factor in factors])
    if distance(same, model) > _SAME:
        raise DataError(
            "the bound is of another missingness function than the model's; give the bound of the learner "
            "whose missingness_ the model has"
        )
    return factors


def factor_intervals(groups: list[GroupBound], model: MissMDP) -> Intervals:
    """Return what the groups of one factor say."""
    features, first = model.space.features, groups[0]
    given = features.mask(first.given)
    codes = np.array([features.encode_observation(group.given) for group in groups])
    group_ranks = features.rank(codes)
    order = np.argsort(group_ranks)
    ranks = features.rank(np.where(given, model.space.codes, MISSING))
    place = np.minimum(np.searchsorted(group_ranks[order], ranks), len(order) - 1)
    label = np.where(group_ranks[order][place] == ranks, order[place], -1)
    patterns = np.ones((len(first.patterns), len(features)), dtype=np.bool_)
    patterns[:, [features.position(name) for name in first.features]] = first.patterns
    return Intervals(
        patterns,
        label.astype(np.int64),
        np.stack([group.estimate for group in groups]),
        np.stack([group.lower for group in groups]),
        np.stack([group.upper for group in groups]),
    )


def furthest(factor: Intervals, *, observed: bool) -> NDArray[np.float64]:
    """Return the distributions within the intervals that show the most features on average, or the fewest, (G, K).

    Probability above the lower ends goes to the pattern that shows most (or least), up to its upper end, then to the
    next. No distribution within the intervals shows more (or less).
    """
    shown = factor.patterns.sum(axis=1)
    found = factor.lower.copy()
    left = 1.0 - found.sum(axis=1)
    for k in np.argsort(-shown if observed else shown, kind="stable"):
        more = np.clip(factor.upper[:, k] - found[:, k], 0.0, np.maximum(left, 0.0))
        found[:, k] += more
        left -= more
    return found


def random_within(factor: Intervals, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a random distribution within the intervals of each group, shape (G, K).

    Each probability is drawn uniformly from its interval; what the sum lacks or has too much moves all of them
    towards their upper or lower ends by the same fraction of what is left to the end.
    """
    drawn = rng.uniform(factor.lower, factor.upper)
    excess = drawn.sum(axis=1, keepdims=True) - 1.0
    end = np.where(excess > 0.0, factor.lower, factor.upper)
    room = (end - drawn).sum(axis=1, keepdims=True)
    return drawn + (end - drawn) * np.divide(-excess, room, out=np.zeros_like(room), where=room != 0.0)


def with_probabilities(
    model: MissMDP, factors: list[Intervals], probabilities: list[NDArray[np.float64]]
) -> MissMDP:
    """Return the model with the product of these factors, shape (G, K) each; M̂ where they say nothing."""
    own = model.missingness
    known = np.ones(model.n_states, dtype=np.bool_)
    for factor in factors:
        known &= factor.label >= 0
    if own.is_small or not (known.all() or _within_factors(own, factors)):
        made = _by_table(own, known, factors, probabilities)
    else:
        parts = [_part(own, known, *pair) for pair in zip(factors, probabilities, strict=True)]
        made = MissingnessFunction.from_parts(own.space, parts)
    return model.with_missingness(made)


def _by_table(
    own: MissingnessFunction,
    known: NDArray[np.bool_],
    factors: list[Intervals],
    probabilities: list[NDArray[np.float64]],
) -> MissingnessFunction:
    """Return the product of factors where they are known, and M̂ elsewhere, pattern by pattern."""
    n_states = len(known)
    n_patterns = math.prod(len(factor.patterns) for factor in factors)
    what = f"moving M within its bound, a table of {n_patterns:,} patterns by {n_states:,} states,"
    check_fits(what, 32.0 * n_states * n_patterns, "give a bound in which indicators are independent (AIMI)")
    patterns = np.ones((1, len(own.space.features)), dtype=np.bool_)
    table = np.ones((n_states, 1))
    for factor, rows in zip(factors, probabilities, strict=True):
        patterns = (patterns[:, None, :] & factor.patterns[None]).reshape(-1, patterns.shape[1])
        table = (table[:, :, None] * rows[factor.label][:, None, :]).reshape(n_states, -1)
    distinct, place = distinct_patterns(np.concatenate([patterns, own.patterns]))
    full = np.zeros((n_states, len(distinct)))
    full[:, place[: len(patterns)]] = table
    unknown = np.flatnonzero(~known)
    full[unknown] = 0.0
    full[np.ix_(unknown, place[len(patterns) :])] = own.probabilities[unknown]
    return MissingnessFunction(own.space, distinct, full)


def _within_factors(own: MissingnessFunction, factors: list[Intervals]) -> bool:
    """Return whether M̂ is the product of what it says of each factor's features."""
    groups = [{*_features(factor)} for factor in factors]
    return own.factors is not None and all(
        any({*one.features} <= group for group in groups) for one in own.factors
    )


def _features(factor: Intervals) -> tuple[int, ...]:
    """Return the positions of the features that go missing in a factor."""
    return tuple(np.flatnonzero(~factor.patterns.all(axis=0)).tolist())


def _part(
    own: MissingnessFunction, known: NDArray[np.bool_], factor: Intervals, rows: NDArray[np.float64]
) -> Part:
    """Return a factor with these probabilities where all factors are known, and as M̂ has it elsewhere."""
    features = _features(factor)
    patterns = factor.patterns[:, list(features)]
    if known.all():
        return Part(features, patterns, rows, factor.label)
    unknown = np.flatnonzero(~known)
    label = factor.label.copy()
    label[unknown] = len(rows) + np.arange(len(unknown))
    check_fits(
        f"moving M within its bound, in {len(known):,} states of which it says nothing,",
        16.0 * len(known) * len(patterns),
        "give a bound on a model without states that cannot be reached",
    )
    elsewhere = marginal(own.space, own.parts, features, patterns)[:, unknown].T
    return Part(features, patterns, np.concatenate([rows, elsewhere]), label)


def distance(one: MissMDP, other: MissMDP) -> float:
    """Return the largest total variation between two missingness functions over reachable states."""
    mine, theirs = one.missingness, other.missingness
    reachable = other.mdp.reachable
    if not (mine.is_small and theirs.is_small):
        return float(missingness_distance(mine, theirs)[reachable].max())
    far = pattern_distance(
        mine.patterns, mine.probabilities[reachable], theirs.patterns, theirs.probabilities[reachable]
    )
    return float(far.max())


_PLACES = 10
"""To how many random states each row leads under `anywhere`; over all rows together that is everywhere."""

TransitionRows = list[NDArray[np.float64]]
"""For every action, probabilities in the order of the stored entries of its matrix T."""


def mixed(mdp: FactoredMDP, rows: TransitionRows, share: float) -> FactoredMDP:
    """Return the MDP with (1 − share) · T + share · rows, whose next states are those of T."""
    return _with_transition(
        mdp,
        [
            sparse.csr_array(
                ((1.0 - share) * matrix.data + share * other, matrix.indices, matrix.indptr),
                shape=matrix.shape,
            )
            for matrix, other in zip(mdp.transition, rows, strict=True)
        ],
    )


def random_rows(mdp: FactoredMDP, rng: np.random.Generator) -> TransitionRows:
    """Return a random distribution on the next states of each state and action, all equally likely: Dirichlet(1)."""
    drawn: TransitionRows = []
    for matrix in mdp.transition:
        weights = rng.exponential(size=matrix.nnz)
        sums = np.add.reduceat(weights, matrix.indptr[:-1])
        drawn.append(weights / np.repeat(sums, np.diff(matrix.indptr)))
    return drawn


def worst_successors(mdp: FactoredMDP, values: NDArray[np.float64]) -> TransitionRows:
    """Return certainty of the next state with the lowest of the given values, for each state and action."""
    found: TransitionRows = []
    for matrix in mdp.transition:
        worth = values[matrix.indices]
        lowest = np.minimum.reduceat(worth, matrix.indptr[:-1])
        row = np.repeat(np.arange(mdp.n_states), np.diff(matrix.indptr))
        place = np.flatnonzero(worth == lowest[row])
        # The first of each row, where several are equally bad.
        _, first = np.unique(row[place], return_index=True)
        certain = np.zeros(matrix.nnz)
        certain[place[first]] = 1.0
        found.append(certain)
    return found


def anywhere(mdp: FactoredMDP, share: float, rng: np.random.Generator) -> FactoredMDP:
    """Return the MDP in which a share of every transition leads to random reachable states instead.

    Ten states for every state and action, so the matrices stay sparse. Terminal states stay as they are.
    """
    n = mdp.n_states
    reachable = np.flatnonzero(mdp.reachable)
    go_on = np.flatnonzero(~mdp.terminal)
    kept = sparse.diags_array(np.where(mdp.terminal, 1.0, 1.0 - share))
    matrices: list[sparse.csr_array] = []
    for matrix in mdp.transition:
        target = rng.choice(reachable, size=(len(go_on), _PLACES))
        jumps = sparse.coo_array(
            (np.full(target.size, share / _PLACES), (np.repeat(go_on, _PLACES), target.reshape(-1))),
            shape=(n, n),
        )
        matrices.append(sparse.csr_array(kept @ matrix + sparse.csr_array(jumps)))
    return _with_transition(mdp, matrices)


def _with_transition(mdp: FactoredMDP, matrices: list[sparse.csr_array]) -> FactoredMDP:
    return FactoredMDP(
        mdp.space.features,
        mdp.actions,
        matrices,
        mdp.reward,
        mdp.initial,
        mdp.terminal,
        mdp.discount,
        states=mdp.space,
    )
