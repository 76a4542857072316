"""What a log says of another policy, in numbers and words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.offpolicy.logged import cut_lines, error_text, up_to
from missmdp.evaluation.offpolicy.method import WORDS, Method
from missmdp.evaluation.value import Evaluation, standard_error, student_interval
from missmdp.pages.notebook import notebook_table
from missmdp.words import UNKNOWN, count, decimals, interval_text, percent, sentence, signed, with_error

_COLUMNS = ("value", "95 % interval", "method", "effective episodes")


@dataclass(frozen=True, eq=False)
class OffPolicyValue:
    """An estimate of what a policy would have earned, from a log that another policy made."""

    method: Method
    terms: NDArray[np.float64]
    """One number per episode, whose mean is the estimate and whose standard error is that of the estimate; for "model"
    the returns of simulated episodes."""
    discount: float
    horizon: int | None
    """The most decisions that count; None for all."""
    behaviour: str
    """Where the probabilities of what was done come from, in words."""
    cut: NDArray[np.bool_]
    """Which episodes of the log were cut, shape (episodes of the log,)."""
    decisions: int
    """The decisions of the log that count."""
    agreement: float
    """With what probability the policy does what was done, on average over the decisions at which it could be followed;
    nan for "model"."""
    followed: float
    """The share of decisions at which the policy could be followed; nan for "model"."""
    effective: float
    """The effective sample size of whole episodes: (Σ W)² / Σ W²; nan for "model"."""
    effective_by_step: NDArray[np.float64]
    """The same for the weights up to each step, shape (steps,)."""
    mean_weight_by_step: NDArray[np.float64]
    """The mean weight at each step. It is 1 but for chance if the probabilities of what was done are right."""
    largest_weight: float
    """The largest weight of a decision; nan for "model"."""
    no_interval: str | None
    """Why there is no interval; None if there is one."""
    warnings: tuple[str, ...] = ()
    """What else speaks against the estimate."""
    evaluation: Evaluation | None = None
    """The simulation, for "model"."""

    @cached_property
    def mean(self) -> float:
        """The estimate; nan where no episode of the log says anything."""
        return float(self.terms.mean())

    @cached_property
    def stderr(self) -> float:
        """The standard error of `mean` over episodes."""
        return standard_error(self.terms)

    @property
    def episodes(self) -> int:
        """How many episodes there are: in the log, or for "model" simulated ones."""
        return len(self.terms)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the value, (nan, nan) where there is none: `no_interval` says why."""
        interval = student_interval(self.mean, self.stderr, self.episodes, confidence)
        return (math.nan, math.nan) if self.no_interval is not None else interval

    def _interval_text(self) -> str:
        if self.no_interval is not None:
            return UNKNOWN
        return interval_text(self.interval(), decimals(self.stderr))

    def _value(self) -> str:
        return with_error(self.mean, self.stderr) if math.isfinite(self.mean) else UNKNOWN

    def __str__(self) -> str:
        rests = count(self.episodes, "simulated episode" if self.method == "model" else "episode")
        if self.method != "model":
            rests += f", effectively {self.effective:,.1f}"
        if self.no_interval is not None:
            return f"{self._value()} ({self.method}; {rests}; no interval: {self.no_interval})"
        return f"{self._value()} ({self.method}; {rests}; 95 % interval {self._interval_text()})"

    def __repr__(self) -> str:
        return f"OffPolicyValue({self})"

    def _repr_html_(self) -> str:
        """Return the value as a table, for notebooks."""
        effective = UNKNOWN if self.method == "model" else f"{self.effective:,.1f} of {self.episodes:,}"
        row = [self._value(), self._interval_text(), self.method, effective]
        return notebook_table("Off-policy value", _COLUMNS, [row])

    def describe(self) -> str:
        """Return the result in a few lines of text."""
        places = decimals(self.stderr)
        between = self._interval_text() if self.no_interval is None else f"none: {self.no_interval}"
        mean = signed(self.mean, places) if math.isfinite(self.mean) else UNKNOWN
        lines = [
            f"value         {mean}   standard error {error_text(self.stderr)}",
            f"95 % interval {between}",
            f"method        {self.method}: {WORDS[self.method]}",
            f"discount      {self.discount:g}" + up_to(self.horizon),
            *(self._of_model() if self.evaluation is not None else self._of_log()),
            *(f"warning       {sentence(warning)}" for warning in self.warnings),
        ]
        return "\n".join(lines)

    def _of_model(self) -> list[str]:
        assert self.evaluation is not None
        most = count(self.evaluation.horizon, "decision")
        return [
            f"episodes      {self.episodes:,} simulated in the model, of at most {most}",
            "assumed       The model is right; the log has no part in this number.",
        ]

    def _of_log(self) -> list[str]:
        steps = len(self.effective_by_step)
        shown = sorted({0, 1, 2, 4, 9, 19, 49, 99, steps - 1} & set(range(steps)))
        sizes = ", ".join(f"{self.effective_by_step[t]:,.1f} at step {t}" for t in shown)
        weights = ", ".join(f"{self.mean_weight_by_step[t]:.2f} at step {t}" for t in shown)
        return [
            f"episodes      {self.episodes:,}, with {count(self.decisions, 'decision')}",
            f"agreement     {percent(self.agreement, 1)} with what was done, on average"
            + (
                "" if self.followed == 1.0 else f" over the {percent(self.followed, 1)} of decisions followed"
            ),
            f"effective     {self.effective:,.1f} whole episodes; {sizes}",
            f"mean weight   {weights} (1 but for chance)",
            f"largest       weight {self.largest_weight:,.1f}",
            f"behaviour     {self.behaviour}",
            *cut_lines(self.cut),
            "assumed       What was done rested on the recorded history only, and all that the policy would do was",
            "              done at times after such a history. No test can confirm the first.",
        ]
