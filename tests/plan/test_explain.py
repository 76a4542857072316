"""Explanations: their numbers against loops over dense tables, their text for people."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from missmdp.plan.value_function import ComponentVectors
from oracles.alpha import Dense, backed_up, tiger
from policies import beliefs, policies, random_policy
from strategies import seeds


@given(policies(), seeds())
def test_the_numbers_are_those_of_the_policy(policy, seed):
    dense = Dense(policy)
    for belief in beliefs(policy, seed, count=2):
        why = policy.explain(belief, most=2)
        assert why.action == policy.action(belief)
        assert why.value == policy.value(belief)
        assert [s for s, _ in why.states] == [
            policy.pomdp.states[s] for s in sorted(np.flatnonzero(belief), key=lambda s: -belief[s])
        ][:2]
        assert why.n_states == np.count_nonzero(belief)
        ahead = {row.action: row for row in why.actions}
        assert {a: row.value for a, row in ahead.items()} == policy.action_values(belief)
        assert why.actions[0].difference == 0.0
        for a, action in enumerate(policy.actions):
            row = ahead[action]
            now = sum(p * policy.pomdp.reward[s, a] for s, p in enumerate(belief) if not dense.terminal[s])
            assert row.immediate == pytest.approx(now, abs=1e-9)
            assert row.immediate + row.future == pytest.approx(row.value, abs=1e-9)
            assert row.difference == pytest.approx(row.value - why.actions[0].value, abs=1e-12)
        assert sum(p for _, p in why.follow_up) == pytest.approx(1.0)
        check_next(policy, dense, belief, why)
        assert str(why) == why.describe()
        assert str(why.action) in str(why)


def check_next(policy, dense, belief, why):
    a = policy.actions.index(why.action)
    predicted = belief @ np.array(dense.T[a])
    table = np.array(dense.O[a])
    likely = predicted @ table
    assert why.n_observations == np.count_nonzero(likely)
    assert [seen.probability for seen in why.next_observations] == pytest.approx(
        np.sort(likely)[::-1][: min(2, why.n_observations)], abs=1e-12
    )
    for seen in why.next_observations:
        z = next(
            j for j, label in enumerate(policy.pomdp.observations) if repr(label) == repr(seen.observation)
        )
        posterior = predicted * table[:, z] / likely[z]
        assert seen.value == pytest.approx(dense.value(posterior.tolist()), abs=1e-9)
        if seen.action is None:
            assert policy.pomdp.terminal[posterior > 0].all()
        else:
            assert policy.actions.index(seen.action) in dense.actions(posterior.tolist())


def test_tiger_in_words():
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 100)])
    text = str(policy.explain({"tiger left": 0.85, "tiger right": 0.15}))
    lines = text.splitlines()
    assert lines[0].startswith("Action: listen   (value ")
    assert "the best of " in lines[0]
    assert "  0.850  tiger left" in lines
    assert "  0.745  hear left   → open right" in lines
    assert "  0.255  hear right  → listen" in lines
    assert "  in all: open right 0.745, listen 0.255" in lines
    assert next(line for line in lines if line.startswith("  listen")).split()[2] == "best"


def test_missing_values_and_what_is_left_out_are_said():
    model = mm.load_benchmark("icu-smar")
    policy = random_policy(model, 1)
    text = str(policy.explain(mm.initial_belief({"test": 0, "temperature": 2}, model), most=3))
    assert "infection=" in text
    assert "heart_rate=?" in text
    assert "more states" in text
    assert "more observations" in text


def test_where_the_lookahead_disagrees_it_is_said():
    listening_is_bad = ComponentVectors(
        np.arange(2), np.array([[20.0, 20.0], [19.0, 19.0]]), np.array([1, 0])
    )
    why = mm.AlphaVectorPolicy(tiger(), [listening_is_bad]).explain([0.5, 0.5])
    assert why.action == "open left"
    assert "Looking one step ahead, listen is worth 18" in str(why)


def test_a_belief_that_spans_components_and_one_that_is_over():
    policy = random_policy(mm.load_benchmark("predator-smar"), 0)
    why = policy.explain(np.where(policy.pomdp.terminal, 0.0, 1.0 / np.sum(~policy.pomdp.terminal)))
    assert why.decided_by == "lookahead"
    assert "spans sets of states" in str(why)
    over = np.zeros(policy.pomdp.n_states)
    over[np.flatnonzero(policy.pomdp.terminal)[0]] = 1.0
    why = policy.explain(over)
    assert why.decided_by == "end"
    assert str(why).startswith("The episode is over")
    with pytest.raises(mm.ModelError, match="most must be an integer of at least 1"):
        policy.explain(over, most=0)
