"""How probable a log is under a model: log P(z⁽⁰⁾, …, z⁽ᵗ⁾ | a⁽⁰⁾, …, a⁽ᵗ⁻¹⁾), summed over all paths of hidden states.

What the behaviour policy did is given, not judged: as long as it reacts to nothing but the history, its
probabilities are the same factor for every model. That an episode ended, and where, is not judged either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.histories import FilterModel, filter_episodes
from missmdp.data.dataset import Dataset, check_terms
from missmdp.errors import DataError, ParameterError
from missmdp.learn.em.clusters import Cluster, find_clusters
from missmdp.memory import check_fits
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.space import MISSING, NO_ACTION
from missmdp.words import decimals, signed

_MOST_ENTRIES = 100_000_000
"""Entries of transition matrices above which histories are filtered in clusters."""
_MADE_PER_SECOND, _FILTERED_PER_SECOND = 5e6, 5e8
"""Entries of transition matrices that are multiplied out, and used in filtering, per second."""

_PIECE = 5000
"""Observations that one thread takes at a time, but whole episodes."""


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """log P(observations | actions) of the episodes of a log, in nats."""

    per_episode: NDArray[np.float64]
    """−∞ for an episode of probability zero, shape (E,)."""
    steps: int
    """The number of observations."""

    @cached_property
    def total(self) -> float:
        """Of the whole log: the sum over its episodes."""
        return float(self.per_episode.sum())

    @property
    def per_step(self) -> float:
        """`total` by the number of observations."""
        return self.total / self.steps

    @property
    def impossible(self) -> tuple[int, ...]:
        """The episodes (their numbers in the log) that have probability zero."""
        return tuple(np.flatnonzero(np.isneginf(self.per_episode)).tolist())

    def __str__(self) -> str:
        text = f"log-likelihood {signed(self.total, 2)}, {signed(self.per_step, decimals(1e-3))} per step"
        left = len(self.impossible)
        return text + (f"; {left:,} of {len(self.per_episode):,} episodes have probability 0" if left else "")

    def __repr__(self) -> str:
        return f"LogLikelihood({self})"


def log_likelihood(dataset: Dataset, model: MissMDP) -> LogLikelihood:
    """Return the log-probability of a log's observations, given its actions, under T and M of a model.

    Parameters
    ----------
    dataset
        The log. Its features, values and actions must be the model's; its dynamics need not be.
    model
        The miss-MDP under which to compute it.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-smar")
    >>> log = mm.collect(truth, 2000, seed=0)
    >>> mm.log_likelihood(log, truth).total > mm.log_likelihood(log, mm.prior_model(truth)).total
    True
    """
    checked_model(model)
    check_same_features(dataset, model.mdp)
    if dataset.n_steps == 0:
        raise DataError("there are no observations whose probability could be computed")
    logs = log_predictions(dataset, model)
    return LogLikelihood(np.add.reduceat(logs, dataset.offsets[:-1]), dataset.n_steps)


def log_predictions(dataset: Dataset, model: MissMDP) -> NDArray[np.float64]:
    """Return log P(z_t | z_0, a_0, …, a_{t−1}) of every observation, shape (N,).

    From the first observation of probability zero to the end of its episode it is −∞. Episodes are filtered in
    parallel, each on its own, so the result does not depend on the number of threads.
    """
    if _is_large(model):
        features = model.space.features
        hidden = features.mask(model.missingness.can_go_missing) | (dataset.observations == MISSING).any(
            axis=0
        )
        clusters = _clusters(model, hidden)
        if clusters:
            return _by_clusters(dataset, model, clusters, hidden)
        _check_whole(model)
    compiled = _compiled(model)
    patterns = _pattern_numbers(dataset.observations, model.missingness)
    out = np.empty(dataset.n_steps)

    def run(episodes: tuple[int, int]) -> None:
        offsets = dataset.offsets[episodes[0] : episodes[1] + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        # Copies of one type: kernels are compiled again for other types and for arrays that cannot be written to.
        filter_episodes(
            compiled,
            np.array(dataset.observations[rows], dtype=np.int64),
            patterns[rows],
            np.array(dataset.actions[rows], dtype=np.int64),
            np.array(offsets - offsets[0], dtype=np.int64),
            out[rows],
        )

    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="missmdp-likelihood") as threads:
        for _ in threads.map(run, _pieces(dataset.offsets)):
            pass
    return out


def filter_seconds(model: MissMDP, n_steps: int) -> float:
    """Return about how long `log_predictions` takes for so many steps, where that can be long; else 0."""
    if not _is_large(model) or _clusters(model, model.space.features.mask(model.missingness.can_go_missing)):
        return 0.0
    entries = float(model.mdp.n_entries)
    return entries / _MADE_PER_SECOND + n_steps * entries / (model.n_actions * _FILTERED_PER_SECOND)


def _is_large(model: MissMDP) -> bool:
    """Return whether matrices or tables of a model are too large to filter histories with."""
    return model.mdp.by_factors and (not model.missingness.is_small or model.mdp.n_entries > _MOST_ENTRIES)


def _check_whole(model: MissMDP) -> None:
    """Raise `ModelError` if there is too little memory to filter histories in a model as a whole."""
    entries = float(model.mdp.n_entries)
    check_fits(
        f"filtering histories in this model as a whole, with {entries:.2g} transitions,",
        # Each takes 12 bytes and is copied once, and 120 while it is made.
        entries * (28.0 + 120.0 / model.n_actions),
        "models of this size are filtered in parts, where no state is terminal and the features that go missing fall "
        "into groups that move on their own; compare learners whose M falls into such groups too, such as "
        "AIMI(assume='simple MAR')",
    )


def _clusters(model: MissMDP, hidden: NDArray[np.bool_]) -> list[Cluster]:
    """Return the clusters in which histories can be filtered; none if there is only the whole."""
    factors = model.missingness.factors
    # Terminal states hold all features, whichever of them made them terminal.
    if factors is None or model.mdp.terminal.any():
        return []
    return find_clusters(model.mdp, hidden, [(*factor.features, *factor.parents) for factor in factors])


def _by_clusters(
    dataset: Dataset, model: MissMDP, clusters: Sequence[Cluster], hidden: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return log P(z_t | …) as a sum over clusters, and over features that are always seen and move on their own."""
    first, moved = dataset.offsets[:-1], {i for cluster in clusters for i in cluster.moved}
    seen = np.flatnonzero(~hidden).tolist()
    out = _log_seen(dataset, model.mdp, seen, [i for i in seen if i not in moved])
    for cluster in clusters:
        parts = [
            factor._replace(
                features=tuple(cluster.kept.index(i) for i in factor.features),
                parents=tuple(cluster.kept.index(i) for i in factor.parents),
            ).as_part()
            for factor in model.missingness.factors or ()
            if factor.features[0] in cluster.hidden
        ]
        own = MissMDP(cluster.mdp, MissingnessFunction.from_parts(cluster.mdp.space, parts))
        logs = log_predictions(cluster.log(dataset), own) + cluster.log_chance[1]
        logs[first] += cluster.log_chance[0] - cluster.log_chance[1]
        out += logs
    return out


def _log_seen(
    dataset: Dataset, mdp: FactoredMDP, seen: Sequence[int], alone: Sequence[int]
) -> NDArray[np.float64]:
    """Return log P of the first values of features that are always seen, and of the moves of some of them."""
    factors, observations = mdp.factors, dataset.observations.astype(np.int64)
    assert factors is not None
    first = dataset.offsets[:-1]
    later = np.setdiff1d(np.arange(dataset.n_steps), first)
    others = tuple(i for i in range(len(factors.sizes)) if i not in seen)
    start = mdp.initial.reshape(factors.sizes).sum(axis=others)
    out = np.zeros(dataset.n_steps)
    with np.errstate(divide="ignore"):
        out[first] = np.log(start[tuple(observations[first, i] for i in seen)])
        for i in alone:
            scope = factors.scopes[i]
            given = [observations[later - 1, p] for p in scope.parents]
            out[later] += np.log(scope.table[(*given, dataset.actions[later - 1], observations[later, i])])
    # As for the whole: what comes after the impossible is impossible too.
    for begin, end in zip(first, dataset.offsets[1:], strict=True):
        out[begin:end][np.logical_or.accumulate(np.isneginf(out[begin:end]))] = -np.inf
    return out


def check_same_features(dataset: Dataset, mdp: FactoredMDP) -> None:
    """Raise `DataError` unless a log has an MDP's features, values and actions, and an action between all steps."""
    if not isinstance(dataset, Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"expected a Dataset, got {type(dataset).__name__} (read a table with Dataset.from_table(table, mdp))"
        raise ParameterError("dataset", dataset, "a Dataset", problem)
    check_terms(dataset, mdp)
    acts = np.ones(dataset.n_steps, dtype=np.bool_)
    acts[dataset.offsets[1:] - 1] = False
    lacking = np.flatnonzero(acts & (dataset.actions == NO_ACTION))
    if lacking.size:
        row = int(lacking[0])
        episode = int(np.count_nonzero(dataset.offsets <= row)) - 1
        step = row - int(dataset.offsets[episode])
        raise DataError(f"episode {episode}, step {step}: there is no action, but the episode goes on")


def _pieces(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of episodes, of some thousand observations each."""
    first, n_episodes = 0, len(offsets) - 1
    while first < n_episodes:
        within = np.searchsorted(offsets, int(offsets[first]) + _PIECE)
        last = min(max(int(within), first + 1), n_episodes)
        yield first, last
        first = last


def _compiled(model: MissMDP) -> FilterModel:
    mdp = model.mdp
    stacked = sparse.csr_array(sparse.vstack(mdp.transition, format="csr"))
    return FilterModel(
        initial=np.array(mdp.initial, dtype=np.float64),
        start=np.array(stacked.indptr, dtype=np.int64),
        target=np.array(stacked.indices, dtype=np.int32),
        probability=np.array(stacked.data, dtype=np.float64),
        codes=np.array(mdp.space.codes, dtype=np.int64),
        missingness=np.array(model.missingness.probabilities, dtype=np.float64),
    )


def _pattern_numbers(
    observations: NDArray[np.integer[Any]], missingness: MissingnessFunction
) -> NDArray[np.int64]:
    """Return which of M's patterns each observation has, −1 for none of them, shape (N,)."""
    numbers = {pattern.tobytes(): k for k, pattern in enumerate(missingness.patterns)}
    seen, label = np.unique(np.packbits(observations != MISSING, axis=1), axis=0, return_inverse=True)
    width = observations.shape[1]
    shown = np.unpackbits(seen, axis=1, count=width).astype(np.bool_)
    return np.array([numbers.get(row.tobytes(), -1) for row in shown], dtype=np.int64)[label.reshape(-1)]
