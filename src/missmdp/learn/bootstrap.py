"""The bootstrap, for learners without a bound: what resampled logs say about M. It is not guaranteed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_confidence
from missmdp.data.counts import ObservationCounts
from missmdp.data.dataset import Dataset
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.groups import Counter, count_groups, group_states
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import StateSpace

FEWEST_EPISODES = 20
"""With fewer, smaller pieces of the log are drawn instead of whole episodes."""


def drawn_anew(
    data: Dataset | ObservationCounts, draws: int, seed: int, *, histories: bool = False
) -> Iterator[Dataset | ObservationCounts]:
    """Yield logs of the same size that are drawn from a log with replacement.

    Whole episodes are drawn. Where there are few of them, or where only counts are left, observations are drawn one
    by one: given the states, indicators of different observations are independent.

    Parameters
    ----------
    data
        The log, or its counts.
    draws
        How many logs to draw.
    seed
        Decides what is drawn.
    histories
        Whether logs with their order are needed, rather than counts; then episodes are drawn in any case.
    """
    rng = np.random.default_rng(seed)
    if histories and isinstance(data, Dataset):
        for _ in range(draws):
            yield _episodes(data, rng.integers(data.n_episodes, size=data.n_episodes))
        return
    if isinstance(data, Dataset) and data.n_episodes >= FEWEST_EPISODES:
        ranks, per_episode = _counts_by_episode(data)
        for _ in range(draws):
            times = np.bincount(
                rng.integers(data.n_episodes, size=data.n_episodes), minlength=data.n_episodes
            )
            yield ObservationCounts.from_ranks(data.mdp, ranks, times @ per_episode, data.behaviour)
        return
    counts = data if isinstance(data, ObservationCounts) else ObservationCounts.from_dataset(data)
    ranks = counts.mdp.space.features.rank(counts.codes)
    for _ in range(draws):
        times = rng.multinomial(counts.n_steps, counts.counts / counts.n_steps)
        yield ObservationCounts.from_ranks(counts.mdp, ranks, times.astype(np.int64), counts.behaviour)


def _counts_by_episode(data: Dataset) -> tuple[NDArray[np.int64], sparse.csr_array]:
    """Return the distinct observations by rank, shape (D,), and how often each occurs by episode, shape (E, D)."""
    ranks, place = np.unique(data.mdp.space.features.rank(data.observations), return_inverse=True)
    episode = np.repeat(np.arange(data.n_episodes), data.lengths)
    ones = np.ones(data.n_steps, dtype=np.int64)
    shape = (data.n_episodes, len(ranks))
    return ranks, sparse.csr_array(sparse.coo_array((ones, (episode, place.reshape(-1))), shape=shape))


def _episodes(data: Dataset, chosen: NDArray[np.int64]) -> Dataset:
    """Return some episodes of a log, as often as they are named."""
    lengths = data.lengths[chosen]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    rows: NDArray[np.int64] = np.arange(int(offsets[-1])) + np.repeat(
        data.offsets[:-1][chosen] - offsets[:-1], lengths
    )
    return Dataset(
        data.mdp,
        data.observations[rows],
        data.actions[rows],
        offsets,
        data.terminated[chosen],
        behaviour=data.behaviour,
    )


def bootstrap_bound(
    learned: MissingnessFunction,
    drawn: Sequence[MissingnessFunction],
    counts: ObservationCounts,
    confidence: float,
    assumes: str,
) -> Bound:
    """Return the spread of M over what was learned from resampled logs, each interval at `confidence` on its own.

    Parameters
    ----------
    learned
        M̂.
    drawn
        What was learned from each log.
    counts
        The data of M̂: for each group, how many observations show the values that its states share.
    """
    confidence = checked_confidence(confidence)
    reachable = counts.mdp.reachable
    patterns, table = learned.patterns, learned.probabilities
    tables = np.stack([_aligned(patterns, one) for one in drawn])
    apart = np.abs(tables[:, :, :-1] - table)
    # What a drawing gives to patterns that M̂ does not have is all apart.
    cells = np.maximum(apart.max(axis=2), tables[:, :, -1])
    distance = 0.5 * (apart.sum(axis=2) + tables[:, :, -1])
    per_state, per_state_tv = (np.quantile(spread, confidence, axis=0) for spread in (cells, distance))
    worst, tv = (
        float(np.quantile(spread[:, reachable].max(axis=1), confidence)) for spread in (cells, distance)
    )
    per_state = np.minimum(per_state, per_state_tv)
    per_state[~reachable] = per_state_tv[~reachable] = 1.0
    groups = tuple(_groups(learned, tables[:, :, :-1], counts, confidence))
    return Bound(
        confidence,
        "bootstrap",
        "adaptive",
        assumes,
        groups,
        per_state,
        per_state_tv,
        min(worst, tv),
        tv,
        guaranteed=False,
    )


def _aligned(patterns: NDArray[np.bool_], other: MissingnessFunction) -> NDArray[np.float64]:
    """Return the probabilities of some patterns, and of all others in the last column, shape (S, K + 1)."""
    places = {row.tobytes(): k for k, row in enumerate(patterns)}
    column = [places.get(row.tobytes(), len(patterns)) for row in other.patterns]
    table = np.zeros((len(other.probabilities), len(patterns) + 1))
    np.add.at(table.T, column, other.probabilities.T)
    return table


def _groups(
    learned: MissingnessFunction,
    tables: NDArray[np.float64],
    counts: ObservationCounts,
    confidence: float,
) -> Iterator[GroupBound]:
    """Yield what is known of the states for which M̂ is the same, group by group."""
    space, reachable = learned.space, counts.mdp.reachable
    features = space.features
    can_go_missing: NDArray[np.bool_] = ~np.all(learned.patterns, axis=0)
    if not can_go_missing.any():
        return
    given = _matters(space, learned.probabilities, reachable)
    values, label = group_states(space, given)
    samples = count_groups(counts, Counter(np.zeros_like(given), given, together=False)).samples
    shown = learned.patterns[:, can_go_missing]
    names = features.chosen(can_go_missing)
    ends = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    chosen, first = np.unique(label[reachable], return_index=True)
    states = np.flatnonzero(reachable)[first]
    low, high = np.quantile(tables[:, states], ends, axis=0)
    spread = np.quantile(
        0.5 * np.abs(tables[:, states] - learned.probabilities[states]).sum(axis=2), confidence, axis=0
    )
    for i, (group, state) in enumerate(zip(chosen, states, strict=True)):
        estimate = learned.probabilities[state]
        lower, upper = np.minimum(low[i], estimate), np.maximum(high[i], estimate)
        own = {
            name: column[values[group, place]]
            for place, (name, column) in enumerate(features.as_dict().items())
            if given[place]
        }
        radius = float(np.maximum(upper - estimate, estimate - lower).max())
        yield GroupBound(
            names, own, int(samples[group]), shown, estimate, lower, upper, radius, float(spread[i])
        )


def _matters(
    space: StateSpace, table: NDArray[np.float64], reachable: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return features whose values decide the rows of a table over reachable states, as few as possible, shape (n,)."""
    given = np.ones(len(space.features), dtype=np.bool_)
    states = np.flatnonzero(reachable)
    for place in range(len(given)):
        given[place] = False
        _, first, label = np.unique(
            group_states(space, given)[1][states], return_index=True, return_inverse=True
        )
        given[place] = not np.array_equal(table[states], table[states[first]][label.reshape(-1)])
    return given
