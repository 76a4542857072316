"""Agents that are told that another action was taken than they returned go on from what was done."""

import numpy as np
import pytest

import missmdp as mm
from memory_policies import random_memory, small_model
from missmdp.plan.ppo.policy import Layer
from policies import random_policy

MODEL = mm.load_benchmark("example-3")
ICU = mm.load_benchmark("icu-smar")


def agents():
    """Return an agent of each kind that follows a belief, for the same model."""
    return {
        "alpha-vectors": random_policy(ICU, 3).agent(),
        "pomcp": mm.POMCP(tree_queries=8, max_depth=3).solve(ICU).policy.agent(seed=0),
    }


@pytest.mark.parametrize("kind", ["alpha-vectors", "pomcp"])
def test_the_belief_follows_what_was_done(kind):
    log = mm.collect(ICU, 40, seed=1, horizon=40)
    agent, belief, before = agents()[kind], None, None
    for seen, done in log.episode(0)[:15]:
        if before is None:
            agent.reset(seen)
            belief = mm.initial_belief(seen, ICU)
        else:
            agent.step(seen)
            belief = mm.update_belief(belief, before, seen, ICU)
        own = agent.belief if kind == "alpha-vectors" else agent.exact_belief
        assert own == pytest.approx(belief)
        agent.took(done)
        assert agent.last_action == done
        before = done


@pytest.mark.parametrize("seed", range(5))
def test_nodes_follow_what_was_done(seed):
    """The nodes after the next observation are possible after what was done, given the nodes before."""
    model = small_model()
    policy = random_memory(model, seed)
    agent = policy.agent(seed=0)
    with pytest.raises(mm.ModelError, match="has not started"):
        agent.took("fix")
    position = model.space.features.position
    before, number = None, 0
    for seen, done in mm.collect(model, 30, seed=seed, horizon=30).episode(0)[:-1]:
        (agent.step if before else agent.reset)(seen)
        now, codes = agent.situation, model.space.features.encode_observation(seen)
        for site, steps in enumerate(policy.steps if before else ()):
            code, node = codes[position(policy.sites[site])], now.nodes[site]
            likely = steps[number, before.scene, now.scene, before.nodes[site]]
            assert node == code if code >= 0 else likely[node] > 0.0
        agent.took(done)
        assert agent.last_action == done
        before, number = now, model.actions.index(done)


def test_ppo_with_memory_remembers_what_was_done():
    encoder = mm.PPO(memory=True).encoder(MODEL)
    weights = np.random.default_rng(0).normal(size=(encoder.size, MODEL.n_actions))
    layer = Layer(weights.astype(np.float32), np.zeros(MODEL.n_actions, dtype=np.float32))
    policy = mm.PPOPolicy(MODEL.actions, [layer], encoder)
    agent, history = policy.agent(seed=0), []
    with pytest.raises(mm.ModelError, match="has not started"):
        agent.took(MODEL.actions[0])
    for seen, done in mm.collect(MODEL, 6, seed=1, horizon=6).episode(0)[:-1]:
        (agent.step if history else agent.reset)(seen)
        history.append(seen)
        assert agent.probabilities == pytest.approx(policy.action_probabilities(*history))
        agent.took(done)
        history.append(done)


@pytest.mark.parametrize("kind", ["alpha-vectors", "pomcp"])
def test_only_actions_of_the_model_after_the_start(kind):
    agent = agents()[kind]
    with pytest.raises(mm.ModelError, match="has not started"):
        agent.took("test")
    agent.reset(mm.collect(ICU, 2, seed=0).episode(0)[0][0])
    with pytest.raises(mm.ModelError, match="no action 'dance'"):
        agent.took("dance")
    assert np.isfinite(agent.belief).all()
