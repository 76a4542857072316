"""Agents: beliefs as by Bayes' rule over whole histories, and what they do on observations that cannot be."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from missmdp.plan.value_function import ComponentVectors, state_components
from oracles.alpha import Dense, backed_up, tiger
from oracles.bayes import Tables, belief_after, random_history
from policies import policies, random_policy, tiny_pomdps
from strategies import missmdps, seeds


@given(missmdps(), seeds(), st.integers(0, 4))
def test_beliefs_are_bayes_rule_and_actions_the_policys(model, seed, length):
    policy = random_policy(model, seed)
    tables, dense, agent = Tables(model), Dense(policy), policy.agent()
    # The agent chooses the actions, so histories are drawn step by step.
    rng = np.random.default_rng(seed)
    state = int(rng.choice(model.n_states, p=tables.initial))
    seen, done = [], []
    for t in range(length + 1):
        listed = list(tables.missingness[state])
        seen.append(listed[rng.choice(len(listed), p=list(tables.missingness[state].values()))])
        action = agent.reset(seen[0]) if t == 0 else agent.step(seen[-1])
        np.testing.assert_allclose(agent.belief, belief_after(tables, seen, done), rtol=1e-9, atol=1e-12)
        assert agent.last_action == action
        assert tables.actions.index(action) in dense.actions(agent.belief.tolist())
        assert agent.value == pytest.approx(dense.value(agent.belief.tolist()), abs=1e-9)
        done.append(tables.actions.index(action))
        state = int(rng.choice(model.n_states, p=tables.transition[done[-1]][state]))
    assert agent.impossible == 0


@given(tiny_pomdps(), seeds())
def test_beliefs_of_pomdps_are_bayes_rule_in_dense_tables(pomdp, seed):
    policy = random_policy(pomdp, seed)
    agent, rng = policy.agent(), np.random.default_rng(seed)
    T = [matrix.toarray() for matrix in pomdp.transition]
    state = int(rng.choice(pomdp.n_states, p=pomdp.initial))
    belief = pomdp.initial.copy()

    def look(action, prior):
        table = pomdp.observation_of(action).toarray()
        z = int(rng.choice(pomdp.n_observations, p=table[state]))
        posterior = prior * table[:, z]
        return pomdp.observations[z], posterior / posterior.sum()

    if pomdp.observe_initial:
        seen, belief = look(0, belief)
        action = agent.reset(seen)
    else:
        action = agent.reset()
    for _ in range(3):
        np.testing.assert_allclose(agent.belief, belief, rtol=1e-9, atol=1e-12)
        a = list(pomdp.actions).index(action)
        state = int(rng.choice(pomdp.n_states, p=T[a][state]))
        seen, belief = look(a, belief @ T[a])
        action = agent.step(seen)
    np.testing.assert_allclose(agent.belief, belief, rtol=1e-9, atol=1e-12)


@given(policies(plain=False), seeds(), seeds())
def test_agents_never_stop_and_count_what_cannot_be(policy, seed, other):
    """Two histories mixed: whatever comes, the belief is a distribution, and surprises are counted exactly."""
    tables, agent = Tables(policy.model), policy.agent()
    first, _ = random_history(tables, 2, np.random.default_rng(seed))
    second, _ = random_history(tables, 2, np.random.default_rng(other))
    surprises = 0
    for t, seen in enumerate([first[0], second[1], first[2], second[0]]):
        before, last = agent.belief, agent.last_action
        possible = True
        try:
            mm.initial_belief(seen, policy.model) if t == 0 else mm.update_belief(
                before, last, seen, policy.model
            )
        except mm.ImpossibleObservation:
            possible = False
        action = agent.reset(seen) if t == 0 else agent.step(seen)
        surprises += not possible
        assert action in policy.actions
        assert agent.belief.sum() == pytest.approx(1.0)
        assert agent.impossible == surprises == sum(agent.fallbacks.values())


@pytest.fixture
def ward():
    """A ward where the drug is given in level 2 only, and the level is missing only while it is below 2.

    `drug` is always seen. Levels rise by one with "wait"; "treat" ends in level 0.
    """
    levels = {"level": range(4), "drug": ["no", "yes"]}
    drug = {0: "no", 1: "no", 2: "yes", 3: "no"}
    mdp = mm.FactoredMDP(
        levels,
        ["wait", "treat"],
        lambda s, a: (
            {(0, "no"): 1.0} if a == "treat" else {(min(s.level + 1, 3), drug[min(s.level + 1, 3)]): 1.0}
        ),
        lambda s, a: -float(s.level),
        {(0, "no"): 0.75, (1, "no"): 0.25},
        terminal=lambda s: s.level == 3,
        discount=0.9,
    )
    M = mm.MissingnessFunction.independent(mdp, {"level": lambda s: 0.5 if s.level < 2 else 0.0})
    model = mm.MissMDP(mdp, M)
    pomdp = model.to_pomdp()
    return mm.AlphaVectorPolicy(
        model,
        [ComponentVectors(s, np.full((1, len(s)), -1.0), np.array([0])) for s in state_components(pomdp)],
    )


def belief_of(agent):
    states = agent.policy.pomdp.states
    return {tuple(states[s]): round(float(p), 12) for s, p in enumerate(agent.belief) if p > 0.0}


def test_a_pattern_that_cannot_be_leaves_the_values(ward, caplog):
    """Level 2 is never missing: seeing (missing, "yes") is impossible, yet only level 2 has the drug."""
    agent = ward.agent()
    agent.reset({"level": 1, "drug": "no"})
    with caplog.at_level(logging.WARNING):
        agent.step({"drug": "yes"})
    assert belief_of(agent) == {(2, "yes"): 1.0}
    assert agent.fallbacks == {"admitted": 1, "restarted": 0, "ignored": 0}
    assert "Observation(level=None, drug='yes') has probability zero after the action 'wait'" in caplog.text
    assert "values alone" in caplog.text


def test_values_that_cannot_follow_restart_the_belief(ward, caplog):
    """From level 0 nothing leads to level 0 by waiting: the belief restarts from what admits the observation."""
    agent = ward.agent()
    agent.reset((0, "no"))
    agent.step((0, "no"))
    assert belief_of(agent) == {(0, "no"): 1.0}
    assert agent.fallbacks == {"admitted": 0, "restarted": 1, "ignored": 0}
    # Levels 0, 1 and the terminal 3 have no drug: those that go on share the belief.
    agent.reset((None, "yes"))
    assert belief_of(agent) == {(2, "yes"): 1.0}
    agent.reset((1, "no"))
    agent.step((None, "no"))
    assert belief_of(agent) == {(0, "no"): 0.5, (1, "no"): 0.5}
    agent.step((3, "no"))
    assert belief_of(agent) == {(3, "no"): 1.0}, "terminal states where no other admits it"
    assert agent.last_action == "wait"
    assert agent.value == 0.0
    assert agent.impossible == 4
    assert len(caplog.records) == 1, "one warning per agent"


def test_what_no_state_admits_is_ignored(ward):
    agent = ward.agent()
    agent.reset((0, "no"))
    agent.step((3, "yes"))
    assert belief_of(agent) == {(1, "no"): 1.0}, "the predicted belief"
    agent.reset((0, "yes"))
    assert belief_of(agent) == {(0, "no"): 0.75, (1, "no"): 0.25}, "b₀"
    assert agent.fallbacks == {"admitted": 0, "restarted": 0, "ignored": 2}


def test_a_belief_that_spans_components_after_a_surprise_is_decided_by_lookahead():
    model = mm.load_benchmark("example-1")
    policy = random_policy(model, 0)
    agent = policy.agent()
    agent.reset({})  # `first` is never missing
    assert len({policy.value_function.table.label[s] for s in np.flatnonzero(agent.belief)}) == 2
    ahead = policy.action_values(agent.belief)
    assert agent.last_action == max(ahead, key=ahead.get)
    assert agent.value == max(ahead.values())


def test_pomdps_ignore_observations_that_cannot_be():
    told = changed(tiger(), observation=(sparse.csr_array(np.eye(2)),), initial=np.array([1.0, 0.0]))
    agent = mm.AlphaVectorPolicy(told, split(backed_up(tiger(), 3), action=0)).agent()
    agent.reset()
    agent.step("hear left")
    assert agent.impossible == 0
    agent.step("hear right")
    assert agent.fallbacks == {"admitted": 0, "restarted": 0, "ignored": 1}
    assert agent.belief.tolist() == [1.0, 0.0]


def changed(pomdp, **parts):
    """Return a POMDP with some parts exchanged."""
    return mm.POMDP(**{**{name: getattr(pomdp, name) for name in pomdp.__dataclass_fields__}, **parts})


def split(component, action):
    """Return vectors over two states as two components, all with one action."""
    actions = np.full(len(component), action)
    return [ComponentVectors(np.array([s]), component.values[:, [s]], actions) for s in range(2)]


def test_observations_come_as_dicts_tuples_and_with_nan(ward):
    forms = [
        {"level": None, "drug": "no"},
        {"drug": "no"},
        {"drug": "no", "level": float("nan")},
        (None, "no"),
        [np.nan, "no"],
    ]
    beliefs = []
    for form in forms:
        agent = ward.agent()
        agent.reset((0, "no"))
        agent.step(form)
        beliefs.append(agent.belief.tolist())
    assert beliefs == [beliefs[0]] * len(forms)


def test_unknown_values_are_named_and_change_nothing(ward):
    agent = ward.agent()
    agent.reset((0, "no"))
    before = agent.belief
    for seen, message in [
        ({"level": 9}, "'level' cannot be 9"),
        ({"lvl": 1}, "no feature 'lvl'"),
        ((0,), "expected 2 values"),
        (None, "expected 2 values"),
    ]:
        with pytest.raises(mm.ModelError, match=message):
            agent.step(seen)
    assert (agent.belief == before).all()
    assert agent.impossible == 0
    tigers = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)]).agent()
    tigers.reset()
    for seen in ("hear nothing", ["unhashable"]):
        with pytest.raises(mm.ModelError, match="there is no observation .*'hear left', 'hear right'"):
            tigers.step(seen)


def test_who_acts_first_says_so():
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)])
    agent = policy.agent()
    with pytest.raises(mm.ModelError, match="call reset first"):
        agent.step("hear left")
    with pytest.raises(mm.ModelError, match="call reset first"):
        _ = agent.value
    assert agent.last_action is None
    with pytest.raises(mm.ModelError, match=r"call reset\(\) without one"):
        agent.reset("hear left")
    assert agent.reset() == "listen"
    looking = mm.AlphaVectorPolicy(tiger(observe_initial=True), [backed_up(tiger(), 2)]).agent()
    with pytest.raises(mm.ModelError, match=r"call reset\(observation\)"):
        looking.reset()
    assert looking.reset("hear left") == "listen"
    assert looking.belief == pytest.approx([0.85, 0.15])


def test_none_is_an_observation_where_there_is_one_feature():
    mdp = mm.FactoredMDP({"sign": [0, 1]}, ["go"], lambda s, a: {(1,): 1.0}, 1.0, {(0,): 1.0}, discount=0.5)
    policy = random_policy(mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"sign": 0.5})), 0)
    agent = policy.agent()
    assert agent.reset(None) == "go"
    assert agent.impossible == 0


def test_the_belief_is_a_copy(ward):
    agent = ward.agent()
    agent.reset((0, "no"))
    agent.belief[:] = 7.0
    assert agent.belief.sum() == 1.0


def test_a_policy_made_for_a_learned_model_acts_in_the_true_one():
    truth = mm.load_benchmark("example-1")
    learned = truth.with_missingness(mm.MissingnessFunction.independent(truth.mdp, {"second": 0.3}))
    policy = random_policy(learned, 0)
    data = mm.collect(truth, 200, policy=policy, seed=0)
    agent = policy.agent(truth)
    for t, (seen, action) in enumerate(data.episode(0)):
        if action is not None:
            assert (agent.reset(seen) if t == 0 else agent.step(seen)) == action


def test_models_that_speak_another_language_are_refused():
    policy = random_policy(mm.load_benchmark("example-1"), 0)
    with pytest.raises(mm.ModelError, match="tracks the belief under the model .*has the actions"):
        policy.agent(mm.load_benchmark("icu-smar"))
    with pytest.raises(mm.ModelError, match="a MissMDP, this is a POMDP"):
        policy.agent(policy.pomdp)
    other = mm.load_benchmark("example-1").mdp
    renamed = mm.FactoredMDP(
        {"first": ["x", "y"], "third": ["x", "y"]},
        other.actions,
        lambda s, a: {s: 1.0},
        0.0,
        {("x", "x"): 1.0},
        discount=0.9,
    )
    with pytest.raises(mm.ModelError, match="features .*third"):
        policy.agent(mm.MissMDP(renamed, mm.MissingnessFunction.fully_observed(renamed)))
    plain = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)])
    assert plain.agent(tiger()).reset() == "listen"
    deaf = changed(tiger(), observations=["left", "right"])
    with pytest.raises(mm.ModelError, match="other observations"):
        plain.agent(deaf)
