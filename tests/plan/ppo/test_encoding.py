"""What the network sees, against a definition in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from missmdp.model.space import FeatureSpace
from missmdp.plan.ppo.encoding import Encoder, n_frames
from missmdp.plan.ppo.policy import Layer, PPOPolicy
from oracles.frames import network_input
from strategies import ACTIONS, POOL

FEATURES = {**POOL, "constant": ("only",)}


def policy_for(encoding, frames, actions=ACTIONS, features=FEATURES):
    encoder = Encoder(FeatureSpace(features), len(actions), encoding, frames)
    zeros = Layer(np.zeros((encoder.size, len(actions))), np.zeros(len(actions)))
    return PPOPolicy(actions, [zeros], encoder)


def observations():
    return st.tuples(*(st.sampled_from([*values, None]) for values in FEATURES.values()))


@st.composite
def histories(draw):
    rest = draw(st.lists(st.tuples(st.sampled_from(ACTIONS), observations()), max_size=6))
    return [draw(observations()), *(part for pair in rest for part in pair)]


def test_148_frames_as_in_the_paper():
    assert n_frames(0.95) == 148
    assert n_frames(0.99) == 916
    assert n_frames(0.0) == n_frames(0.05) == 1
    with pytest.raises(mm.ModelError, match="precision"):
        n_frames(0.95, 0.0)


def test_icu_with_148_frames_has_740_inputs():
    model = mm.load_benchmark("icu-smar")
    assert mm.PPO(memory=True, encoding="scaled").encoder(model).size == 148 * (4 + 1) == 740
    assert mm.PPO(memory=True).encoder(model).size == 740 + 27
    assert mm.PPO(memory=True, encoding="one-hot").encoder(model).size == 4588
    assert mm.PPO().encoder(model).size == 5 + 6 + 5 + 11


@given(histories(), st.sampled_from(["one-hot", "scaled", "mixed"]), st.sampled_from([None, 1, 2, 5]))
def test_inputs_are_what_the_definition_says(history, encoding, frames):
    """Padding before the start, missing values, and frames that move on."""
    policy = policy_for(encoding, frames)
    inputs = policy.seen(policy.encoder.blank(), history[0])
    for action, observation in zip(history[1::2], history[2::2], strict=True):
        inputs = policy.seen(inputs, observation, ACTIONS.index(action))
    expected = network_input(FEATURES, ACTIONS, encoding, frames, history)
    assert inputs.dtype == np.float32
    assert inputs == pytest.approx(expected)
    assert len(expected) == policy.encoder.size


@pytest.mark.parametrize("encoding", ["one-hot", "scaled", "mixed"])
def test_missing_differs_from_every_value(encoding):
    policy = policy_for(encoding, None)
    for i, values in enumerate(FEATURES.values()):
        seen = set()
        for value in [*values, None]:
            observation = [v[0] for v in FEATURES.values()]
            observation[i] = value
            seen.add(tuple(policy.seen(policy.encoder.blank(), tuple(observation))))
        assert len(seen) == len(values) + 1


def test_an_episode_that_begins_again_has_forgotten_everything():
    policy = policy_for("mixed", 3)
    agent = policy.agent(seed=0)
    first = ("north", None, False, "only")
    agent.reset(first)
    before = agent._inputs.copy()
    for _ in range(5):
        agent.step(("icu", 2, None, None))
    agent.reset(first)
    assert (agent._inputs == before).all()


def test_old_frames_weigh_less_while_training():
    encoder = policy_for("mixed", 3).encoder
    width = len(FEATURES) + 1
    assert encoder.recency()[: 3 * width] == pytest.approx(np.repeat([1 / 3, 1 / 2, 1], width))
    assert (encoder.recency()[3 * width :] == 1.0).all()
    assert (policy_for("one-hot", None).encoder.recency() == 1.0).all()
