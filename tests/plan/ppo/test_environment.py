"""The environments that are stepped together, against one environment at a time."""

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.simulation import seed_words
from oracles.frames import network_input

pytest.importorskip("stable_baselines3")

from missmdp.interop.gymnasium import MissMDPEnv
from missmdp.plan.ppo.encoding import Encoder
from missmdp.plan.ppo.training import Environments


class OneAtATime:
    """Single environments in the places of the many, with inputs in plain Python."""

    def __init__(self, model, encoder, n, *, horizon, seed):
        self.model, self.encoder, self.horizon, self.seed = model, encoder, horizon, seed
        self.episodes = 0
        self.places = [self.begin() for _ in range(n)]

    def begin(self):
        env = MissMDPEnv(self.model, self.horizon)
        observation, info = env.reset(seed=self.seed)
        for _ in range(self.episodes):  # the episode of this number
            observation, info = env.reset()
        self.episodes += 1
        return {"env": env, "history": [env.decode(observation)], "state": info["state"], "rewards": []}

    def input(self, place):
        encoder = self.encoder
        plain = network_input(
            self.model.features, self.model.actions, encoder.encoding, encoder.frames, place["history"]
        )
        return plain * encoder.recency()

    def step(self, i, action):
        place = self.places[i]
        observation, reward, terminated, truncated, info = place["env"].step(action)
        place["history"] += [self.model.actions[action], place["env"].decode(observation)]
        place["state"] = info["state"]
        place["rewards"].append(reward)
        return reward, terminated, truncated


@pytest.mark.parametrize(
    ("name", "encoding", "frames", "horizon"),
    [
        ("icu-smar", "one-hot", None, 7),
        ("icu-mnar-unid", "mixed", 4, 9),
        ("predator-mnar-unid", "scaled", 3, 60),
        ("predator-mcar", "one-hot", 2, 11),
    ],
)
def test_stepping_together_is_stepping_one_at_a_time(name, encoding, frames, horizon):
    """Same draws, same observations, rewards, ends, inputs and returns, over many ends of episodes."""
    model, n = mm.load_benchmark(name), 5
    encoder = Encoder(model.space.features, model.n_actions, encoding, frames)
    many = Environments(model, encoder, n, horizon=horizon, words=seed_words(3)[1], reward_scale=4.0)
    one = OneAtATime(model, encoder, n, horizon=horizon, seed=3)
    inputs = many.reset()
    rng = np.random.default_rng(0)
    ends = {"terminated": 0, "truncated": 0}
    for _ in range(200):
        assert inputs == pytest.approx(np.array([one.input(place) for place in one.places]))
        assert [model.states[s] for s in many.states] == [place["state"] for place in one.places]
        actions = rng.integers(model.n_actions, size=n)
        inputs, rewards, ended, infos = many.step(actions)
        for i in range(n):
            reward, terminated, truncated = one.step(i, int(actions[i]))
            assert rewards[i] == pytest.approx(reward / 4.0)
            assert ended[i] == (terminated or truncated)
            if not ended[i]:
                assert infos[i] == {}
                continue
            ends["truncated" if truncated else "terminated"] += 1
            place = one.places[i]
            assert infos[i]["terminal_observation"] == pytest.approx(one.input(place))
            assert infos[i]["TimeLimit.truncated"] == truncated
            assert infos[i]["episode"]["l"] == len(place["rewards"])
            total = sum(model.discount**t * r for t, r in enumerate(place["rewards"]))
            assert infos[i]["episode"]["r"] == pytest.approx(total)
            one.places[i] = one.begin()
    assert sum(ends.values()) == len(many.returns)
    assert ends["truncated"] > 3
    assert ends["terminated"] > 0 or name != "predator-mnar-unid"


def test_what_was_returned_is_not_changed_by_the_next_step():
    model = mm.load_benchmark("icu-smar")
    encoder = Encoder(model.space.features, model.n_actions, "scaled", 2)
    many = Environments(model, encoder, 3, horizon=2, words=seed_words(0)[1], reward_scale=1.0)
    kept = [many.reset(), *many.step(np.zeros(3, dtype=int))[:3]]
    copies = [array.copy() for array in kept]
    many.step(np.ones(3, dtype=int))
    for array, copy in zip(kept, copies, strict=True):
        assert (array == copy).all()


def test_it_is_a_vecenv_with_spaces_that_hold_what_is_seen():
    from stable_baselines3.common.vec_env import VecEnv

    model = mm.load_benchmark("icu-smar")
    for encoding in ("scaled", "one-hot"):
        encoder = Encoder(model.space.features, model.n_actions, encoding, 3)
        many = Environments(model, encoder, 4, horizon=10, words=seed_words(0)[1], reward_scale=1.0)
        assert isinstance(many, VecEnv)
        assert all(many.observation_space.contains(row) for row in many.reset())
        assert many.action_space.n == 3
        assert many.get_attr("num_envs") == [4] * 4
        assert many.env_is_wrapped(object) == [False] * 4
        for refused in (lambda e=many: e.set_attr("x", 1), lambda e=many: e.env_method("x")):
            with pytest.raises(AttributeError, match="one array"):
                refused()
        many.close()
