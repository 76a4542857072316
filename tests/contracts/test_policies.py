"""What every policy must do: make agents that answer observations with actions, the same for the same seed."""

import numpy as np
import pytest

import missmdp as mm
from policies import random_policy

MEMORYLESS = {
    "uniform": mm.UniformPolicy(),
    "blind": mm.BlindPolicy({"wait": 0.25, "test": 0.75}),
    "observation": mm.ObservationPolicy(
        lambda seen: {"antibiotics": 0.9, "wait": 0.1} if seen.infection is not None else "test"
    ),
}
POLICIES = {**MEMORYLESS, "alpha-vectors": random_policy(mm.load_benchmark("icu-smar"), 0)}


@pytest.fixture(scope="module")
def model():
    return mm.load_benchmark("icu-smar")


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]


def history(model):
    return [seen for seen, _ in mm.collect(model, 300, seed=0).episode(0)]


def act(agent, observations):
    return [agent.reset(observations[0]), *(agent.step(seen) for seen in observations[1:])]


def test_it_is_a_policy_and_its_agents_are_agents(policy, model):
    assert isinstance(policy, mm.Policy)
    assert isinstance(policy.agent(model, seed=0), mm.Agent)


def test_agents_answer_with_actions_and_repeat_with_their_seed(policy, model):
    seen = history(model)
    taken = act(policy.agent(model, seed=3), seen)
    assert set(taken) <= set(model.actions)
    assert taken == act(policy.agent(model, seed=3), seen)


def test_agents_take_mappings_tuples_and_nan(policy, model):
    seen = history(model)[:50]
    names = model.space.features.names
    plain = act(policy.agent(model, seed=1), seen)
    assert plain == act(policy.agent(model, seed=1), [dict(zip(names, z, strict=True)) for z in seen])
    assert plain == act(
        policy.agent(model, seed=1), [tuple(np.nan if v is None else v for v in z) for z in seen]
    )


@pytest.mark.parametrize("name", MEMORYLESS)
def test_the_table_says_what_the_agents_do(name, model):
    """Empirical action frequencies lie within 5 standard errors of the table, for every row of it."""
    policy = MEMORYLESS[name]
    table = policy.table(model)
    assert table.probabilities.sum(axis=1) == pytest.approx(np.ones(len(table.probabilities)))
    s, k = 17, model.missingness.n_patterns - 1
    seen = model.space.features.decode_observation(model.missingness.observe(np.array([s]), np.array([k]))[0])
    agent = policy.agent(model, seed=0)
    taken = [model.mdp.action_index(agent.step(seen)) for _ in range(2000)]
    share = np.bincount(taken, minlength=model.n_actions) / len(taken)
    expected = table.probabilities[table.row[s, k]]
    assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / len(taken))).all()


def test_memoryless_policies_need_a_model():
    with pytest.raises(mm.ModelError, match="agent\\(model\\)"):
        mm.UniformPolicy().agent()


def test_bad_probabilities_are_named(model):
    with pytest.raises(mm.ModelError, match="sum to 0.5"):
        mm.BlindPolicy({"wait": 0.5}).agent(model).reset((0, 0, 0, 0))
    with pytest.raises(mm.ModelError, match="infection=0"):
        mm.ObservationPolicy(lambda seen: {"wait": 2.0}).agent(model).reset((0, 0, 0, 0))
    with pytest.raises(mm.ModelError, match="KeyError"):
        mm.ObservationPolicy(lambda seen: {}[1]).agent(model).reset((0, 0, 0, 0))
