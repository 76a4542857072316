"""Why a policy does what it does at a belief, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import condition
from missmdp.checks import checked_integer
from missmdp.plan.state_text import full_text
from missmdp.plan.value_function import NO_VECTOR
from missmdp.sums import one_by_one
from missmdp.words import count, significant

if TYPE_CHECKING:
    from missmdp.plan.alpha import AlphaVectorPolicy


@dataclass(frozen=True)
class ActionValue:
    """What an action is worth, looking one step ahead: immediate + future."""

    action: Any
    value: float
    difference: float
    """To the best lookahead, 0 or less."""
    immediate: float
    """ρ(b, a)."""
    future: float
    """γ Σ_z P(z | b, a) V(τ(b, a, z))."""


@dataclass(frozen=True)
class NextObservation:
    """Something that may be seen after the action, and what would be done then."""

    observation: Any
    probability: float
    action: Any
    """The action that would follow, or None where the episode would be over."""
    value: float
    """V at the belief after it."""


@dataclass(frozen=True)
class Explanation:
    """What a policy does at a belief and why. Printing it gives text for people.

    The list of states and that of next observations are cut at the same length; the rest is summed up.
    """

    action: Any
    """The action that the policy takes."""
    value: float
    """V(b)."""
    decided_by: str
    """What decided: "vector", "lookahead" (the belief spans components), or "end" (only terminal states)."""
    n_rivals: int
    """How many vectors the component has; 0 where no vector decided."""
    states: tuple[tuple[Any, float], ...]
    """The most probable states with their probabilities, most probable first."""
    n_states: int
    """How many states are possible."""
    actions: tuple[ActionValue, ...]
    """Every action's one-step lookahead, best first."""
    next_observations: tuple[NextObservation, ...]
    """The most likely observations after the action, most likely first."""
    n_observations: int
    """How many observations are possible after the action."""
    follow_up: tuple[tuple[Any, float], ...]
    """Next action → probability over all observations, most likely first; None where the episode is over."""
    texts: tuple[tuple[str, ...], tuple[str, ...]]
    """How states and next observations are called in print."""

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the explanation as plain text."""
        return "\n\n".join(
            part for part in (self._head(), self._belief(), self._actions(), self._next()) if part
        )

    def _head(self) -> str:
        if self.decided_by == "end":
            return f"The episode is over: every action is worth 0. By convention: {self.action}."
        reason = (
            f"the best of {self.n_rivals} vectors at this belief"
            if self.decided_by == "vector"
            else "by looking one step ahead, since this belief spans sets of states that any observation tells apart"
        )
        text = f"Action: {self.action}   (value {significant(self.value)}; {reason})"
        best = self.actions[0]
        if best.action != self.action:
            text += (
                f"\nLooking one step ahead, {best.action} is worth {significant(best.value)}: "
                "the vectors are not exact here, and a longer search may change the decision."
            )
        return text

    def _belief(self) -> str:
        rows = [(f"{p:.3f}", text) for text, (_, p) in zip(self.texts[0], self.states, strict=True)]
        return (
            "Belief\n"
            + _table(rows)
            + _rest(self.n_states - len(self.states), "state", 1.0 - one_by_one(p for _, p in self.states))
        )

    def _actions(self) -> str:
        if self.decided_by == "end":
            return ""
        head = ("action", "value", "to the best", "now", "later")
        rows = [
            (
                str(row.action),
                significant(row.value),
                _gap(row.difference),
                significant(row.immediate),
                significant(row.future),
            )
            for row in self.actions
        ]
        return "One step ahead\n" + _table([head, *rows], right=(1, 2, 3, 4))

    def _next(self) -> str:
        if self.decided_by == "end":
            return ""
        shown = [
            (f"{seen.probability:.3f}", text, f"→ {_or_end(seen.action)}")
            for text, seen in zip(self.texts[1], self.next_observations, strict=True)
        ]
        rest = 1.0 - one_by_one(seen.probability for seen in self.next_observations)
        more = _rest(self.n_observations - len(shown), "observation", rest)
        total = ", ".join(f"{_or_end(action)} {p:.3f}" for action, p in self.follow_up)
        return (
            f"What may be seen after {self.action}, and what then\n{_table(shown)}{more}\n  in all: {total}"
        )


def explain(policy: AlphaVectorPolicy, belief: NDArray[np.float64], *, most: int = 5) -> Explanation:
    """Return what a policy does at a belief and why."""
    most = checked_integer("most", most, least=1)
    values, pomdp = policy.value_function, policy.pomdp
    decision = values.decide(belief)
    ended = bool(pomdp.terminal[belief > 0.0].all())
    rivals = (
        0 if decision.vector == NO_VECTOR else len(policy.components[values.place_of(decision.vector)[0]])
    )
    likely = _largest(belief, most)
    seen, n_seen, follow_up = _next_observations(policy, belief, decision.action, most)
    return Explanation(
        action=pomdp.actions[decision.action],
        value=decision.value,
        decided_by="end" if ended else "lookahead" if decision.vector == NO_VECTOR else "vector",
        n_rivals=rivals,
        states=tuple((pomdp.states[s], float(belief[s])) for s in likely),
        n_states=int(np.count_nonzero(belief)),
        actions=_action_values(policy, belief),
        next_observations=seen,
        n_observations=n_seen,
        follow_up=follow_up,
        texts=(
            tuple(full_text(pomdp.states[s], policy.model) for s in likely),
            tuple(full_text(one.observation, policy.model) for one in seen),
        ),
    )


def _action_values(policy: AlphaVectorPolicy, belief: NDArray[np.float64]) -> tuple[ActionValue, ...]:
    immediate = policy.value_function.immediate(belief)
    total = policy.value_function.action_values(belief)
    best = total.max()
    return tuple(
        ActionValue(
            policy.pomdp.actions[a],
            float(total[a]),
            float(total[a] - best),
            float(immediate[a]),
            float(total[a] - immediate[a]),
        )
        for a in np.argsort(-total, kind="stable").tolist()
    )


def _next_observations(
    policy: AlphaVectorPolicy, belief: NDArray[np.float64], action: int, most: int
) -> tuple[tuple[NextObservation, ...], int, tuple[tuple[Any, float], ...]]:
    values, pomdp = policy.value_function, policy.pomdp
    predicted = values.predicted(belief, action)
    outcomes = values.outcomes(predicted, action)
    possible = np.flatnonzero(outcomes.probability)
    posterior = np.empty(pomdp.n_states)
    shares: dict[Any, float] = {}
    listed: list[NextObservation] = []
    for z in _largest(outcomes.probability, len(possible)):
        probability = condition(predicted, values.likelihood(z, action), posterior)
        then = values.decide(posterior)
        # Whoever sees that the episode is over does nothing more.
        over = bool(pomdp.terminal[posterior > 0.0].all())
        name = None if over else pomdp.actions[then.action]
        shares[name] = shares.get(name, 0.0) + probability
        if len(listed) < most:
            listed.append(NextObservation(pomdp.observations[z], probability, name, then.value))
    order = sorted(shares.items(), key=lambda item: -item[1])
    return tuple(listed), len(possible), tuple(order)


def _largest(weights: NDArray[np.float64], most: int) -> list[int]:
    """Return the indices of the largest positive weights, largest first, the first of equal ones first."""
    support = np.flatnonzero(weights)
    return support[np.argsort(-weights[support], kind="stable")][:most].tolist()


def _gap(difference: float) -> str:
    return "best" if difference == 0.0 else significant(difference)


def _or_end(action: Any) -> str:
    return "the episode is over" if action is None else str(action)


def _rest(left: int, what: str, probability: float) -> str:
    return f"\n  {max(probability, 0.0):.3f}  … {count(left, f'more {what}')}" if left > 0 else ""


def _table(rows: list[tuple[str, ...]], right: tuple[int, ...] = ()) -> str:
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))] if rows else []
    lines = [
        "  ".join(
            cell.rjust(w) if j in right else cell.ljust(w)
            for j, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(f"  {line}".rstrip() for line in lines)
