"""The probability of a history as a sum over all paths of hidden states, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import missmdp as mm
from oracles.bayes import Tables

__all__ = ["log_probability", "log_probability_by_beliefs"]


def log_probability(model: mm.MissMDP, steps: Sequence[tuple[Any, Any]]) -> float:
    """Return log P(observations | actions) of one episode, given as (observation, action) pairs; −inf for 0."""
    tables = Tables(model)
    actions = [tables.actions.index(action) for _, action in steps[:-1]]
    total = math.fsum(p for _, p in tables.trajectories([z for z, _ in steps], actions))
    return math.log(total) if total > 0.0 else -math.inf


def log_probability_by_beliefs(model: mm.MissMDP, steps: Sequence[tuple[Any, Any]]) -> float:
    """Return the same from `update_belief`: Σ_t log Σ_s′ M(z_t | s′) Σ_s T(s′ | s, a) b(s)."""
    first, _ = steps[0]
    try:
        total = math.log(float(model.mdp.initial @ model.missingness.likelihood(first)))
        belief = mm.initial_belief(first, model)
        for (_, action), (seen, _) in pairwise(steps):
            predicted = belief @ model.mdp.transition[model.mdp.action_index(action)]
            total += math.log(float(predicted @ model.missingness.likelihood(seen)))
            belief = mm.update_belief(belief, action, seen, model)
    except (mm.ImpossibleObservation, ValueError):  # the logarithm of zero
        return -math.inf
    return total
