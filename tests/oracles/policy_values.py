"""The exact value of a policy over a few decisions: every history with its probability, in dense tables and dicts.

Two models are involved: the *world*, which is acted in, and the one that an α-vector policy tracks its belief under.
Nothing here knows how episodes are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

import missmdp as mm
from oracles.alpha import Dense

__all__ = [
    "AmbiguousError",
    "Memoryless",
    "Outcome",
    "Tracking",
    "World",
    "optimal_values_by_policy_iteration",
    "outcome",
    "trajectories",
]

Array = np.ndarray


class AmbiguousError(Exception):
    """Two actions are equally good up to rounding, so that nobody can say what the policy does."""


class World:
    """A model as dense tables: b₀[s], T[a, s, s′], ρ[s, a], and P(z | s′, a) as a dict for every a and s′."""

    def __init__(self, model: mm.MissMDP | mm.POMDP) -> None:
        mdp = model.mdp if isinstance(model, mm.MissMDP) else model
        self.initial = np.array(mdp.initial)
        self.transition = np.stack([matrix.toarray() for matrix in mdp.transition])
        self.reward = np.array(mdp.reward)
        self.terminal = np.array(mdp.terminal)
        self.discount = mdp.discount
        self.actions = list(mdp.actions)
        self.acts_first = isinstance(model, mm.POMDP) and not model.observe_initial
        if isinstance(model, mm.MissMDP):
            shown = [_of_missmdp(model, state) for state in model.states]
            self.seen = [shown] * len(self.actions)
        else:
            self.seen = [
                [_labelled(model, row) for row in model.observation_of(a).toarray()]
                for a in range(len(self.actions))
            ]


def _of_missmdp(model: mm.MissMDP, state: Any) -> dict[Any, float]:
    return {tuple(z): p for z, p in model.missingness.distribution(state).items() if p > 0.0}


def _labelled(pomdp: mm.POMDP, row: Array) -> dict[Any, float]:
    return {pomdp.observations[z]: float(p) for z, p in enumerate(row) if p > 0.0}


class Actor(Protocol):
    """A policy with a memory: what it remembers at first and after more, and what it does then."""

    def first(self, seen: Any) -> tuple[Any, str | None]: ...
    def later(self, memory: Any, action: int, seen: Any) -> tuple[Any, str | None]: ...
    def choice(self, memory: Any) -> dict[int, float]: ...


class Memoryless:
    """Acts on the last observation alone; `rule` gives {index of an action: probability}."""

    def __init__(self, rule: Callable[[Any], dict[int, float]]) -> None:
        self.choice = rule

    def first(self, seen: Any) -> tuple[Any, str | None]:
        return seen, None

    def later(self, memory: Any, action: int, seen: Any) -> tuple[Any, str | None]:
        return seen, None


class Tracking:
    """An α-vector policy. Its memory is the belief under its own model, with what its agents promise on surprises."""

    def __init__(self, policy: mm.AlphaVectorPolicy) -> None:
        own = policy.model
        self.model, self.dense = World(own), Dense(policy)
        self.states = [tuple(s) for s in own.states] if isinstance(own, mm.MissMDP) else None

    def first(self, seen: Any) -> tuple[Any, str | None]:
        if seen is None:
            return tuple(self.model.initial.tolist()), None
        return self._conditioned(self.model.initial, 0, seen)

    def later(self, memory: Any, action: int, seen: Any) -> tuple[Any, str | None]:
        return self._conditioned(np.array(memory) @ self.model.transition[action], action, seen)

    def _conditioned(self, predicted: Array, action: int, seen: Any) -> tuple[Any, str | None]:
        likelihood = np.array([shown.get(seen, 0.0) for shown in self.model.seen[action]])
        if (predicted * likelihood).sum() > 0.0:
            return _rounded(predicted * likelihood), None
        if self.states is None:
            return _rounded(predicted), "ignored"
        admits = np.array([_fits(state, seen) for state in self.states])
        if (predicted * admits).sum() > 0.0:
            return _rounded(predicted * admits), "admitted"
        if not admits.any():
            return _rounded(predicted), "ignored"
        going_on = admits & ~self.model.terminal
        return _rounded(1.0 * (going_on if going_on.any() else admits)), "restarted"

    def choice(self, memory: Any) -> dict[int, float]:
        best = self.dense.actions(list(memory))
        if len(best) > 1:
            raise AmbiguousError
        return {best.pop(): 1.0}


def _fits(state: tuple[Any, ...], seen: tuple[Any, ...]) -> bool:
    return all(z is None or z == value for value, z in zip(state, seen, strict=True))


def _rounded(weights: Array) -> tuple[float, ...]:
    return tuple((weights / weights.sum()).round(13).tolist())


class Outcome(NamedTuple):
    """Expectations over episodes of a number of decisions."""

    value: float
    """E Σ_{t<L} γᵗ ρ(s_t, a_t)."""
    decisions: float
    terminated: float
    """P(a terminal state is reached)."""
    events: dict[str, float]
    """How often each fallback happens, where a decision follows."""


def outcome(world: World, actor: Actor, horizon: int) -> Outcome:
    """Return what a policy's episodes are like; histories with the same memory are added up."""
    value = decisions = 0.0
    terminated = float(world.initial[world.terminal].sum())
    events = {"admitted": 0.0, "restarted": 0.0, "ignored": 0.0}
    first = np.where(world.terminal, 0.0, world.initial)
    layer: dict[Any, Array] = {}

    def remember(into: dict[Any, Array], remembered: tuple[Any, str | None], weights: Array) -> None:
        memory, event = remembered
        into[memory] = into.get(memory, 0.0) + weights
        if event is not None:
            events[event] += float(weights.sum())

    if world.acts_first:
        remember(layer, actor.first(None), first)
    else:
        for seen, weights in _split(world, first, 0):
            remember(layer, actor.first(seen), weights)
    for t in range(horizon):
        ahead: dict[Any, Array] = {}
        for memory, weights in layer.items():
            decisions += float(weights.sum())
            for action, p in actor.choice(memory).items():
                value += world.discount**t * p * float(weights @ world.reward[:, action])
                after = p * (weights @ world.transition[action])
                terminated += float(after[world.terminal].sum())
                after = np.where(world.terminal, 0.0, after)
                for seen, part in _split(world, after, action) if t + 1 < horizon else ():
                    remember(ahead, actor.later(memory, action, seen), part)
        layer = ahead
    return Outcome(value, decisions, terminated, events)


def _split(world: World, weights: Array, action: int) -> Iterator[tuple[Any, Array]]:
    shown = world.seen[action]
    for seen in dict.fromkeys(z for s in np.flatnonzero(weights) for z in shown[s]):
        yield seen, weights * np.array([row.get(seen, 0.0) for row in shown])


def trajectories(world: World, actor: Actor, horizon: int) -> Iterator[tuple[float, list[int], list[int]]]:
    """Yield every episode one by one: its probability, its states and its actions."""

    def go_on(p: float, states: list[int], actions: list[int], memory: Any) -> Iterator[Any]:
        if len(actions) == horizon or world.terminal[states[-1]]:
            yield p, states, actions
            return
        if actions or not world.acts_first:
            looks = world.seen[actions[-1] if actions else 0][states[-1]].items()
        else:
            looks = [(None, 1.0)]
        for seen, likely in looks:
            known, _ = actor.later(memory, actions[-1], seen) if actions else actor.first(seen)
            for action, chosen in actor.choice(known).items():
                for after, moved in enumerate(world.transition[action, states[-1]]):
                    if p * likely * chosen * moved > 0.0:
                        yield from go_on(
                            p * likely * chosen * moved, [*states, after], [*actions, action], known
                        )

    for s, p in enumerate(world.initial):
        if p > 0.0:
            yield from go_on(float(p), [s], [], None)


def optimal_values_by_policy_iteration(world: World) -> Array:
    """Return V* of those who see the state: the best of all deterministic policies, each by a linear solve.

    Policies are improved where one action is better by more than rounding; with few states all are tried instead.
    """
    n, n_actions = world.reward.shape
    reward = np.where(world.terminal[:, None], 0.0, world.reward)

    def solved(policy: Array) -> Array:
        moves = world.transition[policy, np.arange(n)] * ~world.terminal[:, None]
        return np.linalg.solve(np.eye(n) - world.discount * moves, reward[np.arange(n), policy])

    if n_actions**n <= 300:
        return np.max([solved(np.array(p)) for p in product(range(n_actions), repeat=n)], axis=0)
    policy = np.zeros(n, dtype=int)
    while True:
        value = solved(policy)
        ahead = reward + world.discount * np.einsum("ast,t->sa", world.transition, value)
        better = ahead.max(axis=1) > ahead[np.arange(n), policy] + 1e-11 * (1.0 + np.abs(value).max())
        better &= ~world.terminal
        if not better.any():
            return value
        policy = np.where(better, ahead.argmax(axis=1), policy)
