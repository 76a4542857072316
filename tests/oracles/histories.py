"""All histories of a tiny miss-MDP with their probabilities: states, observations and actions, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import missmdp as mm

__all__ = ["all_histories"]


def all_histories(
    model: mm.MissMDP, act: Callable[[Any], dict[Any, float]], horizon: int
) -> Iterator[tuple[list[tuple[Any, Any]], float]]:
    """Yield [(state, observation), …] and its probability, for a policy observation → {action: probability}.

    A history ends in a terminal state or after `horizon` observations.
    """
    states = [tuple(s) for s in model.states]
    matrices = {a: m.toarray().tolist() for a, m in zip(model.actions, model.mdp.transition, strict=True)}
    seen_in = [[(tuple(z), p) for z, p in model.missingness.distribution(s).items()] for s in states]
    decode = model.space.features.Observation

    def extend(path: list[tuple[Any, Any]], s: int, weight: float) -> Iterator[tuple[list[Any], float]]:
        for z, p in seen_in[s]:
            longer = [*path, (states[s], z)]
            if len(longer) == horizon or model.mdp.terminal[s]:
                yield longer, weight * p
                continue
            for action, chosen in act(decode(*z)).items():
                for t, step in enumerate(matrices[action][s]):
                    if chosen * step > 0.0:
                        yield from extend(longer, t, weight * p * chosen * step)

    for s, b in enumerate(model.mdp.initial.tolist()):
        if b > 0.0:
            yield from extend([], s, b)
