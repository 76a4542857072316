"""Hyperparameters: what they may be, and their way to JSON and back."""

import dataclasses
import subprocess
import sys

import pytest

import missmdp as mm


def test_settings_survive_json():
    settings = mm.PPOSettings(memory=True, frames=12, entropy=0.02, target_kl=None, encoding="one-hot")
    again = mm.PPOSettings.from_json(settings.to_json())
    assert again == settings
    assert mm.PPOSettings.from_json('{"steps": 5}') == mm.PPOSettings(steps=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.steps = 3


def test_a_trainer_is_made_from_settings_and_says_what_differs_from_the_defaults():
    settings = mm.PPOSettings(units=32, epochs=10, minibatch=64)
    trainer = mm.PPO.from_settings(settings, seed=4)
    assert trainer.settings == settings
    assert trainer.seed == 4
    assert repr(trainer) == "PPO(units=32, minibatch=64, epochs=10, seed=4)"
    assert repr(mm.PPO()) == "PPO()"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"layers": 1.5}, "layers"),
        ({"clip_range": 0.0}, "clip_range must be a positive number"),
        ({"entropy": -1e-3}, "entropy must be a number of at least 0"),
        ({"target_kl": 0.0}, "target_kl must be a positive number"),
        ({"actor_learning_rate": float("inf")}, "actor_learning_rate"),
        ({"critic_learning_rate": "fast"}, "critic_learning_rate"),
        ({"trace": 1.5}, "trace must be a number from 0 to 1"),
        ({"memory": 1}, "memory must be True or False"),
        ({"anneal": None}, "anneal must be True or False"),
        ({"minibatch": 1000}, "must .* divide environments · rollout = 4096"),
        ({"minibatch": 1}, "at least 2"),
        ({"frames": 5}, "frames: it is for memory=True"),
        ({"encoding": "words"}, "encoding must be 'one-hot', 'scaled', 'mixed' or None"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_wrong_settings_are_named(wrong, message):
    with pytest.raises(mm.MissMDPError, match=message):
        mm.PPO(**wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not JSON"), ("[]", "JSON object"), ('{"speed": 1}', "no setting 'speed'")],
)
def test_wrong_json_is_named(text, message):
    with pytest.raises(mm.ModelError, match=message):
        mm.PPOSettings.from_json(text)


def test_training_needs_a_missmdp():
    with pytest.raises(mm.ModelError, match="expected a MissMDP, got str"):
        mm.PPO().solve("icu-smar")


def test_rounds_that_would_not_fit_into_memory_are_refused():
    pytest.importorskip("stable_baselines3")
    with pytest.raises(mm.ModelError, match="takes 16.4 GB, more than 4; set fewer frames"):
        mm.PPO(memory=True, frames=100_000, encoding="scaled").solve(mm.load_benchmark("icu-smar"))


def test_without_the_extra_one_is_told_how_to_get_it():
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "import missmdp as mm\n"
        "try: mm.PPO(steps=1).solve(mm.load_benchmark('example-1'))\n"
        "except mm.MissingExtra as error: print(isinstance(error, mm.MissMDPError), error.name, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True stable_baselines3")
    assert 'pip install "missmdp[ppo]"' in done.stdout
    assert "Traceback" not in done.stderr
