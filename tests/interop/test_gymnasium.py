"""The Gymnasium environment."""

import warnings

import numpy as np
import pytest

import missmdp as mm
from missmdp.interop.gymnasium_ids import IDS

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from missmdp.interop.gymnasium import MissMDPEnv  # noqa: E402


def test_there_is_an_id_for_every_benchmark():
    assert {arguments["model"] for arguments in IDS.values()} == set(mm.list_benchmarks())
    assert set(IDS) <= set(gymnasium.registry)


@pytest.mark.parametrize("name", IDS)
def test_environments_pass_the_checker_without_warnings(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, render_mode="ansi")
        check_env(env.unwrapped)
    model = env.unwrapped.model
    assert env.unwrapped.horizon == model.mdp.horizon()
    assert (env.observation_space.nvec == model.space.features.sizes + 1).all()
    if "full" in name:
        assert model.missingness.can_go_missing == ()


@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-smar"])
def test_episodes_are_those_of_the_simulator(name):
    """Taken the actions of a collected log, everything seen is what the log has; a seed numbers its episodes."""
    model = mm.load_benchmark(name)
    log = mm.collect(model, 2000, seed=7)
    env = MissMDPEnv(model)
    for e in range(4):
        seen, info = env.reset(seed=7) if e == 0 else env.reset()
        for observation, action in log.episode(e):
            assert env.decode(seen) == observation
            state = info["state"]
            assert [v is not None for v in observation] == info["observed"].tolist()
            for value, true in zip(observation, state, strict=True):
                assert value is None or value == true
            if action is None:
                break
            a = model.mdp.action_index(action)
            seen, reward, terminated, _, info = env.step(a)
            assert reward == model.mdp.reward[model.space.index(state), a]
            assert terminated == model.mdp.terminal[model.space.index(info["state"])]


def test_missing_is_the_last_value_of_the_space():
    model = mm.load_benchmark("icu-smar")
    env = MissMDPEnv(model)
    env.reset(seed=0)
    missing = np.zeros(4, dtype=int)
    for _ in range(200):
        seen, _, _, _, info = env.step(0)
        assert ((seen == [4, 5, 4, 10]) == ~info["observed"]).all()
        missing += ~info["observed"]
    assert missing[0] > 0 < missing[3]
    assert missing[1] == missing[2] == 0


def test_an_episode_is_truncated_after_the_horizon_and_terminated_at_its_end():
    env = MissMDPEnv("icu-smar", horizon=5)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(5)] == [(False, False)] * 4 + [(False, True)]
    predator = MissMDPEnv("predator-smar", horizon=10_000)
    predator.reset(seed=0)
    rng = np.random.default_rng(0)
    while True:
        _, _, terminated, truncated, info = predator.step(rng.integers(4))
        assert not truncated
        if terminated:
            break
    assert predator.model.mdp.terminal[predator.model.space.index(info["state"])]


def test_resets_repeat_with_their_seed_and_go_on_without():
    env = MissMDPEnv("icu-smar")

    def states(seed):
        _, info = env.reset(seed=seed)
        return [info["state"], *(env.step(i % 3)[4]["state"] for i in range(30))]

    first, second = states(3), states(None)
    assert first != second
    assert (states(3), states(None)) == (first, second)
    assert states(4) != first


def test_it_is_rendered_as_a_line():
    env = MissMDPEnv("icu-smar", render_mode="ansi")
    assert env.render() is None
    env.reset(seed=0)
    assert env.render().startswith("step 0: infection [")
    env.step(2)
    assert env.render().startswith("step 1 after test: ")
    silent = MissMDPEnv("icu-smar")
    silent.reset(seed=0)
    assert silent.render() is None


def test_it_runs_vectorised():
    many = gymnasium.make_vec("missmdp/Predator-sMAR-v0", num_envs=3, vectorization_mode="sync")
    seen, info = many.reset(seed=1)
    assert seen.shape == (3, 4)
    assert len(info["state"]) == 3
    assert many.step([0, 1, 2])[0].shape == (3, 4)
    many.close()


def test_misuse_is_named():
    env = MissMDPEnv("icu-smar")
    with pytest.raises(mm.ModelError, match="call reset first"):
        env.step(0)
    env.reset(seed=0)
    for wrong in (3, -1, "wait", 0.5):
        with pytest.raises(mm.ModelError, match="an integer from 0 to 2"):
            env.step(wrong)
    with pytest.raises(mm.ModelError, match="observation must be one of this environment"):
        env.decode(np.array([9, 9, 9, 9]))
    with pytest.raises(mm.ModelError, match="render_mode"):
        MissMDPEnv("icu-smar", render_mode="human")
    with pytest.raises(mm.ModelError, match="expected a MissMDP"):
        MissMDPEnv(3)
    with pytest.raises(mm.MissMDPError, match="horizon"):
        MissMDPEnv("icu-smar", 0)
