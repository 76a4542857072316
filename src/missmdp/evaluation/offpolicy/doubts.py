"""Whether an estimate can be believed: why there is no interval, and what else speaks against it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.offpolicy.decisions import discounts
from missmdp.evaluation.offpolicy.logged import heavy_tail
from missmdp.evaluation.offpolicy.method import EPISODE_WISE, Method
from missmdp.evaluation.offpolicy.target import Choices
from missmdp.evaluation.offpolicy.weights import Weights
from missmdp.words import count, percent

LEAST_EFFECTIVE = 50.0
"""Effective episodes below which no interval is given; docs/off-policy.md has the coverage that was measured."""
_REACH = 0.95
"""The share of discounted decisions at which there must be as many."""
_LEAST_DECIDING = 5.0
"""See `heavy_tail`. Fewer would let rare rewards pass; more would select the logs in which the tail was not seen."""
_SURPRISING = 4.5
"""Standard errors of a mean weight from 1 on which something is wrong; chance does that once in 10⁵ times."""


def why_no_interval(
    method: Method, weights: Weights, discount: float, terms: NDArray[np.float64], plain: NDArray[np.float64]
) -> str | None:
    """Return why an interval would not hold as often as it says; None if it was found to do so.

    Action values hide how rare rewards are, so what the weights alone say must not have a heavy tail either.
    """
    few = _too_few(method, weights, discount)
    return few or heavy_tail(terms, _LEAST_DECIDING) or heavy_tail(plain, _LEAST_DECIDING)


def _too_few(method: Method, weights: Weights, discount: float) -> str | None:
    least = f"fewer than {LEAST_EFFECTIVE:.0f}"
    if method in EPISODE_WISE:
        if weights.effective >= LEAST_EFFECTIVE:
            return None
        return f"the weights leave {weights.effective:,.1f} effective episodes, {least}"
    decisions = weights.decisions
    mass = np.bincount(decisions.step, discounts(decisions, discount), minlength=decisions.longest)
    enough = weights.effective_by_step >= LEAST_EFFECTIVE
    reached = float(mass[enough].sum() / mass.sum())
    if reached >= _REACH:
        return None
    first = int(np.argmin(enough))
    return (
        f"from step {first} on the weights leave {least} effective episodes "
        f"({percent(1.0 - reached)} of what counts)"
    )


def warnings_of(weights: Weights, chosen: Choices) -> tuple[str, ...]:
    """Return what else speaks against an estimate."""
    found: list[str] = []
    nothing = np.flatnonzero(weights.totals == 0.0)
    if nothing.size:
        found.append(
            f"from step {int(nothing[0])} on no episode did what the policy would do: the log says nothing of what it "
            "earns there"
        )
    enough = np.flatnonzero(weights.effective_by_step >= LEAST_EFFECTIVE)
    odd = enough[weights.surprises[enough] > _SURPRISING]
    if odd.size:
        mean = weights.totals[odd[0]] / weights.decisions.episodes
        found.append(
            f"the mean weight at step {int(odd[0])} is {mean:.3g}, which chance does not explain; it is 1 if the "
            "probabilities of what was done are right and all that the policy would do was done at times"
        )
    if chosen.impossible:
        what = count(chosen.impossible, "observation")
        found.append(f"the model that the policy was made for excludes {what} of the log")
    if not chosen.known.all():
        found.append("the policy could only be followed up to where it disagrees with what was done")
    return tuple(found)
