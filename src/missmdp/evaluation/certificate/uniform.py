"""How much any policy's value can differ between two miss-MDPs whose observations are close (THEORY: coupling).

Both processes can be run so that they have the same states until their observations first differ, which happens in
state s with probability at most ε(s). From then on their values differ by at most W(s), the value of the best
controller that sees everything minus that of the worst. So for every policy, whatever it remembers,

    |V_P(π) − V_P̂(π)| ≤ b₀ · U,   U(s) = ε(s) W(s) + (1 − ε(s)) γ max_a (T_a U)(s),

and, with one ε for all states and Δρ the range of rewards, U ≤ Δρ ε/((1 − γ)(1 − γ + γε)), which is attained.

All iterations end with what they may still be off by added to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from missmdp.model.mdp import FactoredMDP
from missmdp.model.pomdp import action_values, check_values
from missmdp.plan.stopping import Stopwatch

_SMALL = 1e-10
"""Of the largest value that rewards allow: iterations end when they can be off by no more than that."""


MOST_SWEEPS = 100_000
"""More than any discount below 0.9995 needs. Beyond, bounds are wider: they hold wherever sweeps end."""


@dataclass(frozen=True, eq=False)
class ValueSpan:
    """What controllers that see every state can get, at best and at worst."""

    mdp: FactoredMDP
    low: NDArray[np.float64]
    """A lower bound on V^min, the value of the worst controller, shape (S,)."""
    high: NDArray[np.float64]
    """An upper bound on V^max, the value of the best, shape (S,)."""
    clock: Stopwatch | None = None
    """When to stop sweeps over a large MDP; None for never."""

    @cached_property
    def width(self) -> NDArray[np.float64]:
        """W(s) = V^max(s) − V^min(s), shape (S,)."""
        return self.high - self.low

    @property
    def trivial(self) -> float:
        """b₀ · W: no policy is farther from optimal than that."""
        return float(self.mdp.initial @ self.width)

    @cached_property
    def matters(self) -> NDArray[np.bool_]:
        """Where it matters what is observed: in reachable states that are not terminal, shape (S,)."""
        return self.mdp.reachable & ~self.mdp.terminal

    @cached_property
    def negligible(self) -> float:
        """What rounding may amount to."""
        return _slack(self.mdp).small

    @cached_property
    def reward_range(self) -> float:
        """Δρ over reachable states that are not terminal; 0 is in the range where episodes can end."""
        mdp = self.mdp
        rewards = mdp.reward[mdp.reachable & ~mdp.terminal]
        if not rewards.size:
            return 0.0
        low, high = float(rewards.min()), float(rewards.max())
        if (mdp.reachable & mdp.terminal).any():
            low, high = min(low, 0.0), max(high, 0.0)
        return high - low


def value_span(mdp: FactoredMDP, timeout: float | None = None) -> ValueSpan:
    """Return the values of the best and of the worst controller that sees everything.

    Parameters
    ----------
    mdp
        The MDP.
    timeout
        Seconds for this, and for what is worked out from it later, where the MDP is large. Bounds are wider if they
        do not suffice.

    Raises
    ------
    ModelError
        If the MDP is so large that it would take minutes.
    """
    check_values(
        "the best and the worst values",
        mdp,
        "there is no certificate for a model of this size; simulate it with evaluate instead",
    )
    clock = None if mdp.is_small or timeout is None else Stopwatch(timeout)
    high, low = np.zeros(mdp.n_states), np.zeros(mdp.n_states)
    slack = _slack(mdp)
    rise = fall = 0.0
    for _ in range(MOST_SWEEPS):
        higher, lower = action_values(mdp, high).max(axis=1), action_values(mdp, low).min(axis=1)
        rise, fall = float((higher - high).max(initial=0.0)), float((low - lower).max(initial=0.0))
        change = max(rise, fall, float((high - higher).max()), float((lower - low).max()))
        high, low = higher, lower
        if change * slack.left <= slack.small or _is_over(clock):
            break
    going_on = ~mdp.terminal
    return ValueSpan(mdp, low - fall * slack.left * going_on, high + rise * slack.left * going_on, clock)


def _is_over(clock: Stopwatch | None) -> bool:
    return clock is not None and clock.stopped_by is not None


def policy_uniform(span: ValueSpan, epsilon: NDArray[np.float64], *, observe_initial: bool = True) -> float:
    """Return b₀ · U, by which the values of any one policy differ at most.

    Parameters
    ----------
    span
        The best and the worst values.
    epsilon
        ε(s), bounds on the total variation between the observations of each state, shape (S,).
    observe_initial
        Whether an observation comes before the first action.
    """
    mdp, width = span.mdp, span.width
    slack = _slack(mdp)
    differs, rise = np.zeros(mdp.n_states), 0.0
    for _ in range(MOST_SWEEPS):
        further = epsilon * width + (1.0 - epsilon) * _later(mdp, differs)
        rise = float((further - differs).max(initial=0.0))
        differs = further
        if rise * slack.left <= slack.small or _is_over(span.clock):
            break
    differs = np.minimum(differs + rise * slack.left * (width > 0.0), width)
    return float(mdp.initial @ (differs if observe_initial else _later(mdp, differs)))


def _later(mdp: FactoredMDP, differs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return γ max_a (T_a U)(s), shape (S,)."""
    after = np.stack([mdp.expect(differs, a) for a in range(mdp.n_actions)]).max(axis=0)
    return np.where(mdp.terminal, 0.0, mdp.discount * after)


def closed_form(span: ValueSpan, epsilon: NDArray[np.float64]) -> float:
    """Return Δρ ε/((1 − γ)(1 − γ + γε)), with ε the largest of all states where it matters."""
    most = float(epsilon[span.matters].max(initial=0.0))
    rest = 1.0 - span.mdp.discount
    return span.reward_range * most / (rest * (rest + span.mdp.discount * most))


def inverse_closed_form(span: ValueSpan, difference: float) -> float:
    """Return the largest ε with which `closed_form` is at most `difference`; 1 where any is small enough."""
    rest = 1.0 - span.mdp.discount
    below = span.reward_range - span.mdp.discount * difference * rest
    epsilon = difference * rest**2 / below if below > 0.0 else math.inf
    return min(epsilon, 1.0)


@dataclass(frozen=True)
class _Slack:
    left: float
    """γ/(1 − γ): how many times the last change an iteration can still move."""
    small: float


def _slack(mdp: FactoredMDP) -> _Slack:
    scale = float(np.abs(mdp.reward).max(initial=0.0)) / (1.0 - mdp.discount)
    return _Slack(mdp.discount / (1.0 - mdp.discount), _SMALL * scale)
