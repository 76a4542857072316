"""Policies whose features are alike: which of several features is acted on is drawn, each as likely."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import missmdp as mm


@pytest.fixture(scope="module")
def policy() -> mm.MemoryPolicy:
    """Return a policy for four machines: fix one that was last seen broken; run if there is none."""
    model = mm.load_benchmark("fleet-4")
    actions = np.zeros((2, 3, 3, 3, 3), dtype=int)
    for place in np.ndindex(3, 3, 3, 3):
        if 2 in place:
            actions[(slice(None), *place)] = 1 + place.index(2)
    stay = np.broadcast_to(np.eye(3), (5, 2, 2, 3, 3))
    alike = [[-1] * 4, *([[1, 2, 3, 4]] * 4)]
    return mm.MemoryPolicy(model, [np.eye(3)] * 4, [stay] * 4, [np.eye(3)[[0, 0]]] * 4, actions, alike)


def test_one_of_those_at_the_same_node_is_drawn(policy):
    agent = policy.agent(seed=0)
    taken = Counter(agent.reset({"load": 0, "wear_2": 2, "wear_4": 2}) for _ in range(400))
    assert set(taken) == {"fix 2", "fix 4"}
    # Fails by chance in 1 of 15,000 cases.
    assert abs(taken["fix 2"] - 200) <= 4.0 * 10.0
    assert agent.last_action in taken
    assert agent.reset({"load": 0, "wear_3": 2}) == "fix 3"
    assert agent.reset({"load": 0}) == "run"


def test_explanations_say_what_is_drawn(policy):
    agent = policy.agent(seed=0)
    agent.reset({"load": 0, "wear_2": 2, "wear_4": 2})
    explanation = policy.explain(agent.situation)
    assert explanation.drawn_from == ("fix 2", "fix 4")
    assert "Action: one of fix 2 and fix 4, each as likely" in str(explanation)
    agent.reset({"load": 0})
    assert str(policy.explain(agent.situation)).startswith("Action: run ")


def test_kernels_draw_as_agents_do(policy):
    class ByAgents:
        """The same policy without its kernel."""

        observe_initial = True

        def agent(self, model=None, *, seed=None):
            return policy.agent(seed=seed)

    model = policy.model
    fast = mm.evaluate(policy, model, episodes=4000, seed=1)
    slow = mm.evaluate(ByAgents(), model, episodes=300, seed=2)
    error = np.hypot(fast.stderr, slow.stderr)
    # Fails by chance in 1 of 15,000 cases.
    assert abs(fast.mean - slow.mean) <= 4.0 * error


def test_files(policy, tmp_path):
    policy.save(tmp_path / "fleet.mmpolicy")
    again = mm.load_policy(tmp_path / "fleet.mmpolicy")
    assert np.array_equal(again.alike, policy.alike)
    one, other = (mm.evaluate(p, policy.model, episodes=50, seed=3) for p in (policy, again))
    assert np.array_equal(one.returns, other.returns)


def test_first_actions(policy):
    assert policy.first_actions == ("run",)
    broken = mm.MemoryPolicy(
        policy.model,
        policy.beliefs,
        policy.steps,
        [np.eye(3)[[2, 2]]] * 4,
        policy.table,
        policy.alike,
    )
    assert broken.first_actions == ("run", "fix 1", "fix 2", "fix 3", "fix 4")


@pytest.mark.parametrize(
    "alike",
    [
        [[1, 2, 3, 4]] * 5,
        [[-1] * 4] + [[1, 2, 3, 3]] * 4,
        [[-1] * 4] + [[1, 2, 3, 5]] * 4,
        [[-1] * 4, [1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]],
        [[-1] * 3] * 5,
    ],
)
def test_wrong_arguments(policy, alike):
    with pytest.raises(mm.ParameterError, match="alike"):
        mm.MemoryPolicy(policy.model, policy.beliefs, policy.steps, policy.first, policy.table, alike)


def test_the_solver_makes_such_policies():
    model = mm.load_benchmark("fleet-4")
    result = mm.Sarsop(precision=0.05, timeout=60.0).solve(model)
    assert isinstance(result.policy, mm.MemoryPolicy)
    assert result.policy.alike is not None
    report = mm.evaluate(result.policy, model, episodes=2000, seed=4)
    assert report.mean >= result.lower - 4.0 * report.stderr
