"""What the policy that made a log earned: the mean discounted return of its episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.data.dataset import Dataset
from missmdp.evaluation.offpolicy.decisions import (
    EmptyRewards,
    after_the_cut,
    checked_discount,
    checked_log,
    decisions_of,
    discounts,
    rewards_of,
)
from missmdp.evaluation.value import standard_error, student_interval
from missmdp.pages.notebook import notebook_table
from missmdp.words import UNKNOWN, count, decimals, interval_text, percent, sentence, signed, with_error

_FEW = 20
"""Episodes below which Student's interval rests on little more than the hope that returns are normal."""
_ROUNDING = 1e-12
_COCHRAN = 25.0
"""Cochran's rule: a mean is close enough to normal for a 95 % interval from 25 · skewness² samples on."""


@dataclass(frozen=True, eq=False)
class LoggedValue:
    """What the policy that made a log earned, per episode."""

    returns: NDArray[np.float64]
    """Discounted return of each episode, up to where it ended or was cut, shape (episodes,)."""
    decisions: NDArray[np.int64]
    """Decisions per episode, shape (episodes,)."""
    terminated: NDArray[np.bool_]
    """Whether the episode ended within what counts, shape (episodes,)."""
    cut: NDArray[np.bool_]
    """Whether the log leaves out how the episode went on, shape (episodes,)."""
    discount: float
    horizon: int | None
    """The most decisions that count; None for all."""
    reward_range: tuple[float, float]
    """The smallest and the largest reward in the log."""
    after_the_cut: tuple[float, float]
    """By how much what followed the cuts could change `mean`, down and up; it assumes that rewards stay in
    `reward_range`."""

    @property
    def episodes(self) -> int:
        """How many episodes there are."""
        return len(self.returns)

    @cached_property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @cached_property
    def stderr(self) -> float:
        """The standard error of `mean` over episodes; nan for a single one."""
        return standard_error(self.returns)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Student's interval for the policy's expected return up to the cuts; see `doubts`."""
        return student_interval(self.mean, self.stderr, self.episodes, confidence)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why the interval may hold less often than it says; empty if nothing speaks against it."""
        found: list[str] = []
        if self.episodes < _FEW:
            found.append(f"there are only {count(self.episodes, 'episode')}")
        heavy = heavy_tail(self.returns)
        return (*found, heavy) if heavy else tuple(found)

    def __str__(self) -> str:
        places = decimals(self.stderr)
        text = f"{with_error(self.mean, self.stderr)} ({count(self.episodes, 'episode')}"
        return f"{text}; 95 % interval {interval_text(self.interval(), places)})"

    def __repr__(self) -> str:
        return f"LoggedValue({self})"

    def _repr_html_(self) -> str:
        """Return the value as a table, for notebooks."""
        between = interval_text(self.interval(), decimals(self.stderr))
        row = [with_error(self.mean, self.stderr), between, f"{self.episodes:,}", f"{int(self.cut.sum()):,}"]
        return notebook_table(
            "What the log earned", ["mean return", "95 % interval", "episodes", "cut"], [row]
        )

    def describe(self) -> str:
        """Return the result in a few lines of text."""
        places = decimals(self.stderr)
        low, high = (signed(value, 2) for value in self.reward_range)
        lines = [
            f"mean return   {signed(self.mean, places)}   standard error {error_text(self.stderr)}",
            f"95 % interval {interval_text(self.interval(), places)}",
            f"episodes      {self.episodes:,}, with {self.decisions.mean():.1f} decisions on average",
            f"discount      {self.discount:g}" + up_to(self.horizon),
            f"rewards       from {low} to {high} per decision",
            *cut_lines(self.cut, self.after_the_cut),
            *(f"doubtful      {sentence(doubt)}" for doubt in self.doubts),
        ]
        return "\n".join(lines)


def heavy_tail(values: NDArray[np.float64], least: float = _COCHRAN) -> str | None:
    """Return why the mean of some values is not close to normal; None if it may well be.

    Parameters
    ----------
    values
        The values.
    least
        How many values times skewness⁻² it takes. Where a few are 1 and the others 0, it is about how many are 1.
    """
    spread = float(values.std())
    if spread <= _ROUNDING * float(np.abs(values).max(initial=0.0)):
        return "all episodes are worth the same, so nothing is known of their spread"
    skewness = float((((values - values.mean()) / spread) ** 3).mean())
    if len(values) >= least * skewness**2:
        return None
    return f"a few episodes decide the mean (skewness {skewness:.1f})"


def error_text(stderr: float) -> str:
    """Return a standard error with the decimals that it deserves, if there is one."""
    return f"{stderr:.{decimals(stderr)}f}" if math.isfinite(stderr) else UNKNOWN


def up_to(horizon: int | None) -> str:
    """Return what counts of an episode, in words."""
    return "" if horizon is None else f", the first {count(horizon, 'decision')} of each episode"


def cut_lines(cut: NDArray[np.bool_], after: tuple[float, float] | None = None) -> list[str]:
    """Return what is to be said of episodes that were cut, as lines."""
    if not cut.any():
        return []
    share = f"{int(cut.sum()):,} of {len(cut):,} episodes ({percent(float(cut.mean()))}) were cut before they ended"
    lines = [f"cut off       {share}; the value is of what came before"]
    if after is None:
        return lines
    if math.isinf(after[0]) or math.isinf(after[1]):
        effect = "without a discount, nothing bounds what the rest is worth"
    else:
        down, up = signed(after[0], 2), signed(after[1], 2)
        effect = (
            f"the rest could change the mean by {down} to {up} if rewards stay in their range, an assumption"
        )
    return [*lines, f"              {effect}"]


def logged_value(
    log: Dataset,
    *,
    discount: float,
    horizon: int | None = None,
    rewards: ArrayLike | None = None,
    empty_rewards: EmptyRewards = "error",
) -> LoggedValue:
    """Return what the policy that made a log earned: the mean discounted return of its episodes.

    Parameters
    ----------
    log
        The log, with rewards.
    discount
        γ, from 0 to 1. It is never assumed: 1 is right where episodes end and all rewards count alike.
    horizon
        How many decisions of each episode count; by default all.
    rewards
        What each row earned instead of what the log says, shape (rows of the log,); the last row of an episode is
        ignored.
    empty_rewards
        "error" to refuse a log with empty rewards, "zero" to count them as 0.

    Raises
    ------
    DataError
        If rewards are missing; the message names the rows.

    Examples
    --------
    >>> import missmdp as mm
    >>> log = mm.collect(mm.load_benchmark("icu-smar"), 20_000, seed=0, keep_states=True)
    >>> value = mm.logged_value(log, discount=0.95)
    >>> value.interval()[0] < value.mean < value.interval()[1]
    True
    """
    log, discount = checked_log(log), checked_discount(discount)
    decisions = decisions_of(log, horizon)
    earned = rewards_of(log, decisions, rewards, empty_rewards)
    return LoggedValue(
        returns=decisions.summed(discounts(decisions, discount) * earned),
        decisions=decisions.counts,
        terminated=decisions.terminated,
        cut=decisions.cut,
        discount=discount,
        horizon=horizon,
        reward_range=(float(earned.min(initial=np.inf)), float(earned.max(initial=-np.inf)))
        if len(earned)
        else (0.0, 0.0),
        after_the_cut=after_the_cut(decisions, earned, discount),
    )
