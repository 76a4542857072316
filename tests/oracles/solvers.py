"""What the result of any solver must satisfy, whatever made it stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import missmdp as mm
from oracles.pomdp import Optimum, Tables, optimum
from oracles.pomdp_trees import policy_value

__all__ = ["SLACK", "assert_policy_keeps_its_promise", "assert_same_result", "assert_sound", "start_bounds"]

SLACK = 1e-9
"""What bounds may be off by for rounding, relative to the largest value that any policy could have."""


def start_bounds(exact: Optimum, result: mm.SolveResult) -> tuple[float, float]:
    """Return the optimal value at the start that a result is about: with or without a first observation."""
    return exact.observing if result.policy.observe_initial else exact.acting


def assert_sound(result: mm.SolveResult, bounds: tuple[float, float], scale: float) -> None:
    """Assert lower ≤ V* ≤ upper all along the trace, for V* within `bounds`, and that bounds only improve."""
    low, high = bounds
    slack = SLACK * scale
    trace = result.trace
    assert len(trace) > 0
    assert np.isfinite(trace.lower).all()
    assert np.isfinite(trace.upper).all()
    assert trace.lower.max() <= high + slack
    assert trace.upper.min() >= low - slack
    assert result.lower <= high + slack
    assert result.upper >= low - slack
    assert result.upper >= result.lower - slack
    assert (np.diff(trace.lower) >= -slack).all()
    assert (np.diff(trace.upper) <= slack).all()
    for column in (trace.seconds, trace.trials, trace.backups):
        assert (np.diff(column) >= 0).all()
    assert result.lower >= trace.lower[-1] - slack
    assert result.upper <= trace.upper[-1] + slack
    assert result.gap == result.upper - result.lower
    assert result.beliefs.shape[1] == result.policy.pomdp.n_states
    rows = result.beliefs.toarray()
    assert (rows >= 0.0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)


def assert_policy_keeps_its_promise(
    result: mm.SolveResult, pomdp: mm.POMDP, exact: Optimum | None = None, *, nodes: int = 60
) -> None:
    """Assert that the policy's value at the start is at least `lower`.

    Its vectors must say so, and its actions must live up to them. The latter is checked from above, by unrolling the
    policy with optimal values past the `nodes` beliefs that weigh most, and step by step: at these beliefs, the
    action taken is worth at least the value that the policy claims.
    """
    exact = exact or optimum(pomdp)
    tables, policy = Tables(pomdp), result.policy
    slack = SLACK * exact.scale
    assert policy.initial_value >= result.lower - slack
    actions = list(pomdp.actions)
    met: list[tuple[np.ndarray, int]] = []

    def act(belief: np.ndarray) -> int:
        action = actions.index(policy.action(belief))
        met.append((belief, action))
        return action

    unrolled = replace(pomdp, observe_initial=policy.observe_initial)
    value = policy_value(unrolled, act, nodes=nodes, ceiling=lambda belief: exact.at(belief)[1])
    assert value[1] >= result.lower - slack
    for belief, action in met:
        after = sum(p * policy.value(then) for p, then in tables.next_beliefs(belief, action))
        claimed = policy.value(belief)
        assert claimed <= exact.at(belief)[1] + slack
        assert float(belief @ tables.reward[:, action]) + tables.discount * after >= claimed - slack


def assert_same_result(one: mm.SolveResult, other: mm.SolveResult) -> None:
    """Assert that two results are the same, times apart."""
    assert (one.lower, one.upper, one.status) == (other.lower, other.upper, other.status)
    for name in ("trials", "backups", "lower", "upper", "vectors", "points"):
        np.testing.assert_array_equal(one.trace.column(name), other.trace.column(name))
    np.testing.assert_array_equal(one.beliefs.toarray(), other.beliefs.toarray())
    assert len(one.policy.components) == len(other.policy.components)
    for mine, theirs in zip(one.policy.components, other.policy.components, strict=True):
        np.testing.assert_array_equal(mine.states, theirs.states)
        np.testing.assert_array_equal(mine.values, theirs.values)
        np.testing.assert_array_equal(mine.actions, theirs.actions)
