"""The bootstrap, for learners without a bound: what resampled logs say about M. It is not guaranteed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_confidence
from missmdp.data.counts import ObservationCounts
from missmdp.data.dataset import Dataset
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.groups import Counter, count_groups, group_states
from missmdp.learn.limits import known_visits
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import StateSpace

FEWEST_EPISODES = 20
"""With fewer, smaller pieces of the log are drawn instead of whole episodes."""

FEWEST_UNITS = 10
"""With fewer episodes, pieces or observations there is no bootstrap: logs drawn from them are too much alike."""


def units(data: Dataset | ObservationCounts, *, histories: bool = False) -> int:
    """Return how many episodes or observations `drawn_anew` draws from."""
    if isinstance(data, Dataset) and (histories or data.n_episodes >= FEWEST_EPISODES):
        return data.n_episodes
    return data.n_steps


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
            yield ObservationCounts.from_ranks(data.known_mdp, ranks, times @ per_episode, data.behaviour)
        return
    counts = data if isinstance(data, ObservationCounts) else ObservationCounts.from_dataset(data)
    ranks = counts.mdp.space.features.rank(counts.codes)
    for _ in range(draws):
        times = rng.multinomial(counts.n_steps, counts.counts / counts.n_steps)
        yield ObservationCounts.from_ranks(counts.mdp, ranks, times.astype(np.int64), counts.behaviour)


def _counts_by_episode(data: Dataset) -> tuple[NDArray[np.int64], sparse.csr_array]:
    """Return the distinct observations by rank, shape (D,), and how often each occurs by episode, shape (E, D)."""
    ranks, place = np.unique(data.feature_space.rank(data.observations), return_inverse=True)
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
        data.known_mdp,
        data.observations[rows],
        data.actions[rows],
        offsets,
        data.terminated[chosen],
        behaviour=data.behaviour,
    )


def bootstrap_bound(
    learned: MissingnessFunction,
    drawn: Iterable[MissingnessFunction],
    counts: ObservationCounts,
    confidence: float,
    assumes: str,
    declared: Sequence[str] = (),
) -> Bound:
    """Return the spread of M over what was learned from resampled logs, each interval at `confidence` on its own.

    No interval is narrower than the exact one for as many rows in known states.

    Parameters
    ----------
    learned
        M̂.
    drawn
        What was learned from each log; nothing if there are too few data to draw from, and then nothing is claimed.
    counts
        The data of M̂: for each group, how many observations show the values that its states share.
    declared
        The features that are known to be always observed.
    """
    confidence = checked_confidence(confidence)
    failure = 1.0 - confidence
    reachable = counts.mdp.reachable
    groups = _Groups.of(learned, counts)
    tables: list[NDArray[np.float64]] = []
    cells: list[NDArray[np.float64]] = []
    distance: list[NDArray[np.float64]] = []
    for one in drawn:
        table = _aligned(learned.patterns, one)
        apart = np.abs(table[:, :-1] - learned.probabilities)
        # What a drawing gives to patterns that M̂ does not have is all apart.
        cells.append(np.maximum(apart.max(axis=1), table[:, -1]))
        distance.append(0.5 * (apart.sum(axis=1) + table[:, -1]))
        tables.append(table[groups.states, :-1])
    known, all_known = (
        Known.of_groups(
            [groups.counts],
            [groups.estimate],
            [groups.label],
            own,
            never_missing(learned, counts.n_steps, declared, own),
        )
        for own in (failure, failure / max(len(groups.states), 1))
    )
    return known_bound(
        cells, distance, known, all_known, reachable, confidence, assumes, groups.bounds(tables, confidence)
    )


class Known(NamedTuple):
    """How far M̂ may be from M even if the state of every row were known, shape (S,) each."""

    cells: NDArray[np.float64]
    """|M̂ − M|."""
    tv: NDArray[np.float64]

    @classmethod
    def of_groups(
        cls,
        counts: Sequence[NDArray[np.float64]],
        estimates: Sequence[NDArray[np.float64]],
        labels: Sequence[NDArray[np.int64]],
        failure: float,
        never: float,
    ) -> Known:
        """Return it for independent parts, whose errors add up like those of independent measurements.

        Parameters
        ----------
        counts, estimates
            Of each part, shape (G, K).
        labels
            The group of each state in each part, shape (S,); or of each pattern and state, shape (K, S).
        never
            How often features that were never missing may be missing.
        """
        squares: list[NDArray[np.float64]] = []
        for own_counts, estimate, label in zip(counts, estimates, labels, strict=True):
            limits = known_visits(own_counts, estimate, failure)
            own = np.stack([limits.radius(estimate)[label], limits.tv[label]])
            squares.append((own.max(axis=1) if label.ndim == 2 else own) ** 2)
        total = np.minimum(np.sqrt(sum(squares) + never**2), 1.0)
        return cls(total[0], total[1])


def never_missing(
    learned: MissingnessFunction, n_steps: int, declared: Sequence[str], failure: float
) -> float:
    """Return how often something may be missing that never was; 0 if all such features are declared."""
    if set(learned.always_observed) <= set(declared):
        return 0.0
    return 1.0 - failure ** (1.0 / n_steps)


def known_bound(
    cells: Sequence[NDArray[np.float64]],
    distance: Sequence[NDArray[np.float64]],
    known: Known,
    all_known: Known,
    reachable: NDArray[np.bool_],
    confidence: float,
    assumes: str,
    groups: Iterable[GroupBound],
) -> Bound:
    """Return the bound of a bootstrap.

    Parameters
    ----------
    cells, distance
        The largest |M̂ − M| and the total variation by state for each drawn log, shape (S,) each; none if there was
        too little to draw from.
    known, all_known
        What is not known better in any case: at each state on its own, and at all of them together.
    """
    ones = np.ones(len(reachable))
    worst = tv = 1.0
    per_state, per_state_tv = ones, ones.copy()
    if len(cells):
        of_cells, of_tv = np.stack(cells), np.stack(distance)
        per_state = np.maximum(np.quantile(of_cells, confidence, axis=0), known.cells)
        per_state_tv = np.maximum(np.quantile(of_tv, confidence, axis=0), known.tv)
        worst, tv = (
            float(max(np.quantile(drawn[:, reachable].max(axis=1), confidence), least[reachable].max()))
            for drawn, least in ((of_cells, all_known.cells), (of_tv, all_known.tv))
        )
        per_state = np.minimum(per_state, per_state_tv)
        per_state[~reachable] = per_state_tv[~reachable] = 1.0
    return Bound(
        confidence,
        "bootstrap",
        "adaptive",
        assumes,
        tuple(groups),
        per_state,
        per_state_tv,
        min(worst, tv),
        tv,
        guaranteed=False,
    )


def drawn_ends(
    drawn: Sequence[NDArray[np.float64]],
    estimate: NDArray[np.float64],
    counts: NDArray[np.float64],
    confidence: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of intervals, shape (G, K) each, and total variation, shape (G,), of groups.

    Parameters
    ----------
    drawn
        What was learned from each drawn log, shape (G, K) each; if there is none, nothing is claimed.
    counts
        Expected counts, shape (G, K).
    """
    if not len(drawn):
        return np.zeros_like(estimate), np.ones_like(estimate), np.ones(len(estimate))
    tables = np.stack(drawn)
    low, high = np.quantile(tables, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    tv = np.quantile(0.5 * np.abs(tables - estimate).sum(axis=2), confidence, axis=0)
    known = known_visits(counts, estimate, 1.0 - confidence)
    return np.minimum(low, known.lower), np.maximum(high, known.upper), np.maximum(tv, known.tv)


def _aligned(patterns: NDArray[np.bool_], other: MissingnessFunction) -> NDArray[np.float64]:
    """Return the probabilities of some patterns, and of all others in the last column, shape (S, K + 1)."""
    places = {row.tobytes(): k for k, row in enumerate(patterns)}
    column = [places.get(row.tobytes(), len(patterns)) for row in other.patterns]
    table = np.zeros((len(other.probabilities), len(patterns) + 1))
    np.add.at(table.T, column, other.probabilities.T)
    return table


class _Groups(NamedTuple):
    """The states for which M̂ is the same, group by group: G groups with reachable states, K patterns."""

    learned: MissingnessFunction
    given: NDArray[np.bool_]
    """The features that decide, shape (n,)."""
    values: NDArray[np.signedinteger]
    """Codes that the states of each group share, shape (G, n)."""
    label: NDArray[np.int64]
    """The group of each state, shape (S,); 0 for states that cannot be reached and are in none."""
    states: NDArray[np.int64]
    """A state of each group, shape (G,)."""
    samples: NDArray[np.int64]
    """Rows that show the values of each group, shape (G,)."""
    counts: NDArray[np.float64]
    """Rows of each pattern, estimated, shape (G, K)."""

    @classmethod
    def of(cls, learned: MissingnessFunction, counts: ObservationCounts) -> _Groups:
        space, reachable = learned.space, counts.mdp.reachable
        given = _matters(space, learned.probabilities, reachable)
        values, label = group_states(space, given)
        chosen, first = np.unique(label[reachable], return_index=True)
        states = np.flatnonzero(reachable)[first]
        samples = count_groups(counts, Counter(np.zeros_like(given), given, together=False)).samples[chosen]
        estimate = learned.probabilities[states]
        # Rows that hide a value of the group do not show that they belong to it.
        shown = estimate[:, learned.patterns[:, given].all(axis=1)].sum(axis=1)
        visits = np.divide(samples, shown, out=np.zeros(len(states)), where=shown > 0.0)
        place = np.zeros(len(values), dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        return cls(learned, given, values[chosen], place[label], states, samples, visits[:, None] * estimate)

    @property
    def estimate(self) -> NDArray[np.float64]:
        return self.learned.probabilities[self.states]

    def bounds(self, tables: Sequence[NDArray[np.float64]], confidence: float) -> Iterator[GroupBound]:
        """Yield what is known of each group, from tables of shape (G, K)."""
        features = self.learned.space.features
        can_go_missing: NDArray[np.bool_] = ~np.all(self.learned.patterns, axis=0)
        if not can_go_missing.any():
            return
        lower, upper, tv = drawn_ends(tables, self.estimate, self.counts, confidence)
        for g, estimate in enumerate(self.estimate):
            own = {
                name: column[self.values[g, place]]
                for place, (name, column) in enumerate(features.as_dict().items())
                if self.given[place]
            }
            yield GroupBound(
                features.chosen(can_go_missing),
                own,
                int(self.samples[g]),
                self.learned.patterns[:, can_go_missing],
                estimate,
                lower[g],
                upper[g],
                float(np.maximum(upper[g] - estimate, estimate - lower[g]).max()),
                float(tv[g]),
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
