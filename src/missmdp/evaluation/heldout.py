"""Which learner predicts observations that it has not seen: cross-validated log-likelihood.

All learners are judged with the same T, so what tells them apart is M̂ alone: the probabilities of which features
are seen, and what follows from them for the hidden states. Two missingness functions that give observations the
same law have the same likelihood, however much data there is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.support import FIRST
from missmdp.checks import checked_integer, checked_seed
from missmdp.data.dataset import Dataset
from missmdp.data.support import distinct_observations, follow
from missmdp.errors import AssumptionWarning, DataError, ParameterError
from missmdp.evaluation.likelihood import check_same_features, log_predictions
from missmdp.learn.base import MissingnessEstimator
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import NO_ACTION
from missmdp.progress import show_progress
from missmdp.words import count, decimals, signed

_BLOCKS_PER_FOLD = 4
"""Into how many blocks a fold is cut for the standard error, where folds are not made of episodes."""

Learners = Mapping[str, Callable[[], MissingnessEstimator]]


@dataclass(frozen=True)
class HeldOutScore:
    """How well a learner predicts observations that it was not fitted on, in nats."""

    per_step: float
    """Log-likelihood by the number of observations; −∞ if something held out has probability zero."""
    stderr: float
    """The standard error of `per_step` over `by`; nan where there is none."""
    steps: int
    """The observations that were scored."""
    folds: int
    """In how many parts the log was held out, one after the other."""
    difference: float
    """`per_step` minus that of the best learner; 0 for the best."""
    difference_stderr: float
    """The standard error of `difference`, paired over `by`."""
    impossible: int
    """How many of `by` have probability zero under what was learned from the rest."""
    by: Literal["episodes", "blocks"]
    """What counts as one independent observation of the score."""
    outside: int
    """Observations left out for all learners: those after which T rules out the rest of an episode, whatever M is."""
    units: int
    """How many of `by` there are: with few of them, errors are rough."""

    def __str__(self) -> str:
        text = f"{_with_error(self.per_step, self.stderr)} per step"
        if self.difference != 0.0:
            text += f", {_with_error(self.difference, self.difference_stderr)} to the best"
        return text + (
            f"; {count(self.impossible, self.by[:-1])} of probability 0" if self.impossible else ""
        )


def _with_error(value: float, stderr: float) -> str:
    places = decimals(stderr)
    return signed(value, places) + ("" if math.isnan(stderr) else f" ± {stderr:.{places}f}")


class _Plan(NamedTuple):
    """What is held out when, per observation, shape (N,) each."""

    fold: NDArray[np.int64]
    unit: NDArray[np.int64]
    """The episode or block that an observation counts for."""
    folds: int
    by: Literal["episodes", "blocks"]


def held_out_likelihood(
    learners: Learners,
    dataset: Dataset,
    mdp: FactoredMDP,
    folds: int = 5,
    seed: int = 0,
    progress: bool | None = None,
) -> dict[str, HeldOutScore]:
    """Return how well each learner predicts observations that it was not fitted on.

    Episodes are dealt into folds at random. Each learner is fitted on all folds but one and scored by the
    log-likelihood of that one, for every fold in turn. Warnings about assumptions are silenced here; `fit` gives
    them.

    Where there are fewer episodes than folds, the log is cut into contiguous folds instead. A part in the
    middle of an episode is then scored by P(part | what came before in the episode): the filter has seen what
    came before, the learner is fitted on all but the part. Standard errors are over blocks then, four to a fold, and
    rougher, since blocks of one episode are not quite independent.

    An episode that T rules out whatever M is (see `validate`) is scored up to where it becomes impossible, for all
    learners alike. An episode or block that only what was learned rules out makes `per_step` −∞; differences are −∞
    then too, unless the same episodes are impossible for the best learner, where they are left out of the difference.

    Parameters
    ----------
    learners
        Name → a function that returns a new learner, such as {"AsMAR": mm.AsMAR}.
    dataset
        The log.
    mdp
        The MDP that all learners are judged with.
    folds
        How many parts to hold out in turn, at least 2.
    seed
        Decides which episode is in which fold.
    progress
        Whether to show progress; by default on a terminal.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-smar")
    >>> log = mm.collect(truth, 5000, seed=0)
    >>> found = mm.held_out_likelihood({"AsMAR": mm.AsMAR, "AMCAR": mm.AMCAR}, log, truth.mdp)
    >>> found["AsMAR"].difference, found["AMCAR"].difference < -0.1
    (0.0, True)
    """
    mdp = checked_mdp(mdp)
    check_same_features(dataset, mdp)
    named = _checked_learners(learners)
    folds = checked_integer("folds", folds, least=2)
    log = _in_terms_of(dataset, mdp)
    plan = _plan(log, folds, checked_seed(seed))
    scored = _possible(log)
    if not scored.any():
        raise DataError("no observation of the log is possible in the MDP, whatever is missing; see validate")
    scores = {name: np.empty(log.n_steps) for name in named}
    with show_progress("Holding out", plan.folds * len(named), enabled=progress) as advance:
        for fold in range(plan.folds):
            held = plan.fold == fold
            rest, judged, rows = _part(log, ~held), *_episodes_with(log, held)
            for name, make in named.items():
                scores[name][held] = log_predictions(judged, _learned(make, rest, mdp))[held[rows]]
                advance()
    return _results(scores, plan, scored)


def _checked_learners(learners: Any) -> Learners:
    empty: Mapping[Any, Any] = {}
    given = cast("Mapping[Any, Any]", learners) if isinstance(learners, Mapping) else empty
    if not given:
        words = "{name: a function that returns a learner}, such as {'AsMAR': mm.AsMAR}"
        raise ParameterError("learners", cast("object", learners), words, f"expected {words}")
    for name, make in given.items():
        if not callable(make):
            words = "a function that returns a new learner"
            problem = f"{name!r}: expected {words}, got {type(make).__name__}"
            raise ParameterError("learners", given, words, problem)
    return given


def _learned(make: Callable[[], MissingnessEstimator], data: Dataset, mdp: FactoredMDP) -> MissMDP:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return MissMDP(mdp, make().fit(data).missingness_)


def _plan(log: Dataset, folds: int, seed: int) -> _Plan:
    """Return folds of whole episodes, dealt at random, or contiguous ones where episodes are too few."""
    n, n_episodes = log.n_steps, log.n_episodes
    if n < 2:
        raise DataError("at least two observations are needed: some to learn from and some to hold out")
    episode = np.repeat(np.arange(n_episodes), log.lengths)
    if n_episodes >= folds:
        dealt = np.empty(n_episodes, dtype=np.int64)
        dealt[np.random.default_rng(seed).permutation(n_episodes)] = np.arange(n_episodes) % folds
        return _Plan(dealt[episode], episode, folds, "episodes")
    folds = min(folds, n)
    fold = np.arange(n) * folds // n
    block = np.arange(n) * (_BLOCKS_PER_FOLD * folds) // n
    # Numbers of (episode, block): a block ends where an episode does.
    _, unit = np.unique(episode * (_BLOCKS_PER_FOLD * folds) + block, return_inverse=True)
    return _Plan(fold, unit.reshape(-1).astype(np.int64), folds, "blocks")


def _possible(log: Dataset) -> NDArray[np.bool_]:
    """Return which observations can happen after all before them in their episode, under some M, shape (N,)."""
    begins = np.zeros(log.n_steps, dtype=np.int8)
    begins[log.offsets[:-1]] = FIRST
    verdicts = follow(
        log.known_mdp, distinct_observations(log.feature_space, log.observations), log.actions, begins
    )
    wrong = np.cumsum(verdicts.no_state | verdicts.no_start | verdicts.conflict)
    before = np.append(0, wrong)[log.offsets[:-1]]
    return wrong == np.repeat(before, log.lengths)


def _in_terms_of(dataset: Dataset, mdp: FactoredMDP) -> Dataset:
    """Return the log as one of another MDP with the same features, without what learners must not know."""
    return Dataset(
        mdp,
        dataset.observations,
        dataset.actions,
        dataset.offsets,
        dataset.terminated,
        behaviour=dataset.behaviour,
    )


def _part(log: Dataset, rows: NDArray[np.bool_]) -> Dataset:
    """Return the chosen rows as a log in which episodes end where a row is left out."""
    chosen = np.flatnonzero(rows)
    starts = np.zeros(log.n_steps, dtype=np.bool_)
    starts[log.offsets[:-1]] = True
    begins = starts[chosen] | (np.diff(chosen, prepend=-2) > 1)
    offsets = np.append(np.flatnonzero(begins), len(chosen)).astype(np.int64)
    last = chosen[offsets[1:] - 1]
    ends_log = np.isin(last + 1, log.offsets[1:])
    episode = np.searchsorted(log.offsets, last, side="right") - 1
    actions = log.actions[chosen]
    actions[offsets[1:] - 1] = NO_ACTION
    return Dataset(
        log.known_mdp,
        log.observations[chosen],
        actions,
        offsets,
        log.terminated[episode] & ends_log,
        behaviour=log.behaviour,
    )


def _episodes_with(log: Dataset, rows: NDArray[np.bool_]) -> tuple[Dataset, NDArray[np.bool_]]:
    """Return the whole episodes that have some of the rows, and which rows of the log these are."""
    chosen = np.repeat(np.logical_or.reduceat(rows, log.offsets[:-1]), log.lengths)
    return _part(log, chosen), chosen


def _results(
    scores: Mapping[str, NDArray[np.float64]], plan: _Plan, scored: NDArray[np.bool_]
) -> dict[str, HeldOutScore]:
    unit = plan.unit[scored]
    counts = np.bincount(unit)
    used = counts > 0
    sizes = counts[used].astype(np.float64)
    totals = {name: _sums(unit, values[scored])[used] for name, values in scores.items()}
    best = min(totals, key=lambda name: _badness(totals[name], sizes))
    found: dict[str, HeldOutScore] = {}
    for name, own in totals.items():
        gap = _gap(own, totals[best], sizes) if name != best else (0.0, 0.0)
        found[name] = HeldOutScore(
            *_ratio(own, sizes),
            steps=int(scored.sum()),
            folds=plan.folds,
            difference=gap[0],
            difference_stderr=gap[1],
            impossible=int(np.isneginf(own).sum()),
            by=plan.by,
            outside=int((~scored).sum()),
            units=int(used.sum()),
        )
    return found


def _sums(unit: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.bincount(unit, values), dtype=np.float64)


def _badness(totals: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[int, float]:
    """Return what to minimise: first what is impossible, then minus the score of the rest."""
    possible = np.isfinite(totals)
    rest = float(totals[possible].sum() / sizes[possible].sum()) if possible.any() else 0.0
    return int((~possible).sum()), -rest


def _gap(
    own: NDArray[np.float64], best: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the difference of scores per step and its error; −∞ where only the best finds all of it possible."""
    possible = np.isfinite(own)
    if not np.array_equal(possible, np.isfinite(best)):
        return -math.inf, math.nan
    if not possible.any():
        return math.nan, math.nan
    return _ratio(own[possible] - best[possible], sizes[possible])


def _ratio(totals: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[float, float]:
    """Return Σ totals / Σ sizes and the standard error of a ratio of means, both random."""
    mean = float(totals.sum() / sizes.sum())
    many = len(sizes)
    if many < 2 or not math.isfinite(mean):
        return mean, math.nan
    residual = totals - mean * sizes
    return mean, float(math.sqrt(residual @ residual * many / (many - 1)) / sizes.sum())
