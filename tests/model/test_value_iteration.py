"""Values of those who see the state, against linear solves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
import missmdp.model.pomdp as pomdp_module
from missmdp.model.pomdp import action_values, advantages, optimal_values
from oracles.policy_values import World, optimal_values_by_policy_iteration
from random_pomdps import build, pomdps
from strategies import missmdps


def models():
    return st.one_of(missmdps(), pomdps())


def dynamics(model):
    return model.mdp if isinstance(model, mm.MissMDP) else model


@given(models())
def test_values_are_those_of_the_best_policy(model):
    mdp, world = dynamics(model), World(model)
    scale = max(1e-12, float(np.abs(mdp.reward).max())) / (1.0 - mdp.discount)
    found = optimal_values(mdp)
    assert found.shape == (mdp.n_states,)
    np.testing.assert_allclose(found, optimal_values_by_policy_iteration(world), rtol=0, atol=2e-10 * scale)
    assert (found[mdp.terminal] == 0.0).all()


@given(models())
def test_advantages_are_never_positive_and_zero_for_the_best_action(model):
    mdp, world = dynamics(model), World(model)
    values = optimal_values(mdp)
    found = advantages(mdp, values)
    slack = 1e-9 * max(1e-12, float(np.abs(mdp.reward).max())) / (1.0 - mdp.discount)
    assert found.shape == mdp.reward.shape
    assert found.max() <= slack
    assert np.abs(found.max(axis=1)).max() <= slack
    assert (found[mdp.terminal] == 0.0).all()
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            ahead = world.reward[s, a] + world.discount * float(world.transition[a, s] @ values)
            expected = 0.0 if world.terminal[s] else ahead - values[s]
            assert found[s, a] == pytest.approx(expected, abs=slack)
            assert action_values(mdp, values)[s, a] == pytest.approx(expected + values[s], abs=slack)


def test_a_chain_by_hand():
    """Wait for 1 per step for ever (10 at γ = 0.9), or take 12 and end: taking is better by 2."""
    T = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    model = build(T, np.eye(2), [[1.0, 12.0], [0.0, 0.0]], [1, 0], terminal=[0, 1], discount=0.9)
    values = optimal_values(model)
    assert values == pytest.approx([12.0, 0.0])
    assert advantages(model, values)[0] == pytest.approx([1.0 + 0.9 * 12.0 - 12.0, 0.0])


def test_values_that_are_not_optimal_have_advantages_too():
    """Any h that is 0 in terminal states will do: ρ + γ E h − h."""
    T = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    model = build(T, np.eye(2), [[3.0], [5.0]], [1, 0], terminal=[0, 1], discount=0.5)
    assert advantages(model, np.array([2.0, 0.0])).tolist() == [[3.0 + 0.5 * 0.5 * 2.0 - 2.0], [0.0]]


def test_values_without_a_future_or_without_rewards():
    T = np.full((2, 2, 2), 0.5)
    short = build(T, np.eye(2), [[1.0, 2.0], [-3.0, -4.0]], [1, 0], discount=0.0)
    assert optimal_values(short).tolist() == [2.0, -3.0]
    nothing = build(T, np.eye(2), np.zeros((2, 2)), [1, 0], discount=0.9)
    assert optimal_values(nothing).tolist() == [0.0, 0.0]


@given(models(), st.sampled_from([0.9995, 1.0 - 1e-7, 1.0 - 1e-12]))
def test_a_discount_next_to_one_ends_too(model, discount):
    """By policy iteration; the values solve Bellman's equation as precisely as rounding allows."""
    mdp = dynamics(model)
    if isinstance(mdp, mm.POMDP):
        mdp = replace(mdp, discount=discount)
    else:
        parts = (
            mdp.space.features,
            mdp.actions,
            mdp.transition,
            mdp.reward,
            mdp.initial,
            mdp.terminal,
            discount,
        )
        mdp = mm.FactoredMDP(*parts, states=mdp.space)
    found = optimal_values(mdp)
    largest = float(np.abs(found).max())
    np.testing.assert_allclose(action_values(mdp, found).max(axis=1), found, rtol=0, atol=1e-12 * largest)


@given(models())
def test_both_ways_give_the_same_values(model):
    mdp = dynamics(model)
    scale = max(1e-12, float(np.abs(mdp.reward).max())) / (1.0 - mdp.discount)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pomdp_module, "_MOST_SWEEPS", 0)
        by_policies = optimal_values(mdp)
    np.testing.assert_allclose(by_policies, optimal_values(mdp), rtol=0, atol=2e-10 * scale)
