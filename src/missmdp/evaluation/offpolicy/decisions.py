"""A log as decisions: who decided what, when, and what was earned."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.checks import checked_choice, checked_instance, checked_integer, checked_number, checked_shape
from missmdp.data.dataset import Dataset
from missmdp.errors import Argument, DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.probabilities import as_floats
from missmdp.model.space import NO_ACTION, FeatureSpace
from missmdp.words import listed

EmptyRewards = Literal["error", "zero"]
"""What an empty reward counts as."""
_MOST_NAMED = 5
"""Rows that an error names."""


class Decisions(NamedTuple):
    """The decisions of a log, one episode after the other: all rows but the last of each episode."""

    rows: NDArray[np.int64]
    """The rows of the log, shape (D,)."""
    episode: NDArray[np.int64]
    step: NDArray[np.int64]
    """Both by decision, shape (D,)."""
    start: NDArray[np.int64]
    """Episode e has the decisions start[e] .. start[e + 1], shape (E + 1,)."""
    terminated: NDArray[np.bool_]
    """Whether nothing followed the last of them, shape (E,)."""
    cut: NDArray[np.bool_]
    """Whether the log leaves out what followed, shape (E,)."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of decisions of each episode, shape (E,)."""
        return np.diff(self.start)

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.cut)

    @property
    def longest(self) -> int:
        """The most decisions of an episode."""
        return int(self.counts.max(initial=0))

    def summed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of something over the decisions of each episode, shape (E,)."""
        return np.asarray(np.bincount(self.episode, values, minlength=self.episodes), dtype=np.float64)

    def named(self, where: NDArray[np.int64]) -> str:
        """Return some decisions in words."""
        shown = [f"episode {self.episode[i]}, step {self.step[i]}" for i in where[:_MOST_NAMED]]
        more = len(where) - len(shown)
        return listed([*shown, f"{more:,} more"] if more else shown, most=_MOST_NAMED + 1)


def features_of(log: Dataset) -> FeatureSpace:
    """Return the features of a log."""
    return log.feature_space


def actions_of(log: Dataset) -> tuple[Any, ...]:
    """Return the names of a log's actions."""
    return log.action_names


def stand_in(log: Dataset) -> MissMDP:
    """Return a model of one state for policies that only ask for names of features and actions."""
    features, actions = features_of(log), actions_of(log)
    mdp = FactoredMDP(
        features,
        actions,
        [np.eye(1)] * len(actions),
        0.0,
        [1.0],
        discount=0.0,
        states=[tuple(values[0] for values in features.values)],
    )
    return MissMDP(mdp, MissingnessFunction.fully_observed(mdp))


def check_same_names(log: Dataset, model: MissMDP) -> None:
    """Raise `DataError` unless a model has a log's features, values and actions."""
    if features_of(log) != model.space.features or actions_of(log) != model.actions:
        raise DataError("the model has other features, values or actions than the log")


def checked_log(log: object) -> Dataset:
    """Return a log with at least one episode."""
    advice = "read a table with Dataset.from_table"
    checked = checked_instance("log", log, Dataset, "a Dataset", advice)
    if checked.n_episodes == 0:
        raise DataError("the log has no episode")
    return checked


def checked_discount(discount: object) -> float:
    """Return a discount from 0 to 1."""
    return checked_number("discount", discount, least=0.0, most=1.0)


def decisions_of(log: Dataset, horizon: int | None) -> Decisions:
    """Return the decisions of a log, the first `horizon` of each episode."""
    counts = log.lengths - 1
    cut = ~log.terminated
    if horizon is not None:
        most = checked_integer("horizon", horizon, least=1)
        cut = cut & (counts < most)
        counts = np.minimum(counts, most)
    start = np.append(0, np.cumsum(counts)).astype(np.int64)
    episode = np.repeat(np.arange(log.n_episodes), counts)
    step = np.arange(int(start[-1])) - start[episode]
    rows = log.offsets[episode] + step
    ended = log.terminated & (counts == log.lengths - 1)
    decisions = Decisions(rows, episode, step, start, ended, cut)
    lacking = np.flatnonzero(log.actions[rows] == NO_ACTION)
    if lacking.size:
        raise DataError(f"there is no action, but the episode goes on: {decisions.named(lacking)}")
    return decisions


def rewards_of(
    log: Dataset, decisions: Decisions, rewards: ArrayLike | None, empty: EmptyRewards
) -> NDArray[np.float64]:
    """Return what each decision earned, shape (D,).

    Raises
    ------
    DataError
        If the log has no rewards, or empty ones that count as errors.
    """
    choices: list[EmptyRewards] = ["error", "zero"]
    empty = checked_choice("empty_rewards", empty, choices)
    given = log.rewards if rewards is None else _as_rewards(rewards, log.n_steps)
    found = np.array(given[decisions.rows], dtype=np.float64)
    lacking = np.flatnonzero(np.isnan(found))
    if lacking.size and empty == "error":
        raise DataError(
            f"rewards are empty: {decisions.named(lacking)}; ",
            Argument("empty_rewards", "zero"),
            " counts them as 0",
        )
    found[lacking] = 0.0
    if not np.isfinite(found).all():
        raise DataError(f"rewards are infinite: {decisions.named(np.flatnonzero(np.isinf(found)))}")
    return found


def _as_rewards(rewards: ArrayLike, n_steps: int) -> NDArray[np.float64]:
    return checked_shape("rewards", as_floats(rewards, "rewards"), (n_steps,), "(rows of the log,)")


def discounts(decisions: Decisions, discount: float) -> NDArray[np.float64]:
    """Return γᵗ for every decision, shape (D,)."""
    return cast("NDArray[np.float64]", np.power(discount, decisions.step))


def after_the_cut(decisions: Decisions, rewards: NDArray[np.float64], discount: float) -> tuple[float, float]:
    """Return by how much the mean return could change at most, down and up, if no cut episode had been cut.

    It assumes that later rewards stay in the range of those in the log: each is worth γᵀ / (1 − γ) times its extremes
    at most, where T decisions were made before the cut. An episode may also end, so 0 is always possible.
    """
    if not decisions.cut.any():
        return 0.0, 0.0
    low, high = min(float(rewards.min(initial=0.0)), 0.0), max(float(rewards.max(initial=0.0)), 0.0)
    weight = float(np.power(discount, decisions.counts[decisions.cut]).sum() / decisions.episodes)
    if discount < 1.0:
        weight /= 1.0 - discount
        return weight * low, weight * high
    return (-np.inf if low < 0.0 else 0.0), (np.inf if high > 0.0 else 0.0)
