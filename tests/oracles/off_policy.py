"""Every episode of a tiny miss-MDP under a policy, with its probability, and naive estimators over episodes.

Episodes are lists in Python; estimators are written as their formulas, one episode and one step at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import missmdp as mm
from missmdp.model.space import NO_ACTION

__all__ = ["Episode", "all_episodes", "as_log", "effective", "estimate", "returns"]

Rule = Callable[[Any], dict[Any, float]]


class Episode(NamedTuple):
    """One more observation and state than there are actions and rewards."""

    seen: list[Any]
    states: list[int]
    actions: list[Any]
    rewards: list[float]
    probability: float
    terminated: bool


def all_episodes(model: mm.MissMDP, act: Rule, horizon: int) -> Iterator[Episode]:
    """Yield every episode of at most `horizon` decisions under a policy that looks at observations."""
    matrices = {a: m.toarray() for a, m in zip(model.actions, model.mdp.transition, strict=True)}
    shown = [[(z, p) for z, p in model.missingness.distribution(s).items() if p > 0.0] for s in model.states]

    def extend(episode: Episode, state: int) -> Iterator[Episode]:
        over = bool(model.mdp.terminal[state])
        for z, p in shown[state]:
            here = episode._replace(
                seen=[*episode.seen, z],
                states=[*episode.states, state],
                probability=episode.probability * p,
                terminated=over,
            )
            if over or len(here.actions) == horizon:
                yield here
                continue
            for a, action in enumerate(model.actions):
                chosen = act(z).get(action, 0.0)
                for after in np.flatnonzero(chosen * matrices[action][state]):
                    yield from extend(
                        here._replace(
                            actions=[*here.actions, action],
                            rewards=[*here.rewards, float(model.mdp.reward[state, a])],
                            probability=here.probability * chosen * matrices[action][state][after],
                        ),
                        int(after),
                    )

    for s in np.flatnonzero(model.mdp.initial):
        yield from extend(Episode([], [], [], [], float(model.mdp.initial[s]), False), int(s))


def as_log(model: mm.MissMDP, episodes: Sequence[Episode]) -> mm.Dataset:
    """Return episodes as a log."""
    encode = model.space.features.encode_observation
    return mm.Dataset(
        model.mdp,
        np.array([encode(z) for e in episodes for z in e.seen]),
        np.array([a for e in episodes for a in [*map(model.mdp.action_index, e.actions), NO_ACTION]]),
        np.cumsum([0, *(len(e.seen) for e in episodes)]),
        np.array([e.terminated for e in episodes]),
        np.array([s for e in episodes for s in e.states], dtype=np.int32),
    )


def returns(episode: Episode, discount: float) -> float:
    """Return Σ γᵗ r_t."""
    return sum(discount**t * r for t, r in enumerate(episode.rewards))


def estimate(
    method: str,
    rewards: Sequence[Sequence[float]],
    ratios: Sequence[Sequence[float]],
    discount: float,
    times: Sequence[float] | None = None,
) -> float:
    """Return an importance-sampling estimate from each episode's rewards and ratios π / β.

    Episode e counts `times[e]` times, once by default.
    """
    times = [1.0] * len(rewards) if times is None else times
    total, longest = sum(times), max(map(len, rewards))
    if method in ("is", "wis"):
        weights = [math.prod(own) for own in ratios]
        earned = [sum(discount**t * r for t, r in enumerate(own)) for own in rewards]
        below = total if method == "is" else sum(n * w for n, w in zip(times, weights, strict=True))
        return sum(n * w * g for n, w, g in zip(times, weights, earned, strict=True)) / below
    value = 0.0
    for t in range(longest):
        weights = [math.prod(own[: t + 1]) for own in ratios]
        below = total if method == "pdis" else sum(n * w for n, w in zip(times, weights, strict=True))
        if below == 0.0:
            continue
        now = [own[t] if t < len(own) else 0.0 for own in rewards]
        value += discount**t * sum(n * w * r for n, w, r in zip(times, weights, now, strict=True)) / below
    return value


def effective(weights: Sequence[float]) -> float:
    """Return (Σ w)² / Σ w²."""
    squares = sum(w * w for w in weights)
    return sum(weights) ** 2 / squares if squares > 0.0 else 0.0
