"""Training: it learns, repeats with its seed, can be interrupted, and leaves nothing behind."""

import os
import random
import re
import signal
from contextlib import contextmanager

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.simulation import seed_words

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from missmdp.plan.ppo import training  # noqa: E402
from missmdp.plan.ppo.training import Environments  # noqa: E402

SMALL = {"steps": 1024, "environments": 8, "rollout": 32, "minibatch": 64, "seed": 5}


@pytest.fixture(scope="module")
def icu():
    return mm.load_benchmark("icu-smar")


def learner_for(model, settings):
    environments = Environments(
        model,
        mm.PPO.from_settings(settings).encoder(model),
        settings.environments,
        horizon=20,
        words=seed_words(0)[1],
        reward_scale=1.0,
    )
    return environments, training.make_learner(environments, settings, model.discount, 0)


@pytest.mark.parametrize(("memory", "layers"), [(False, 1), (True, 2), (False, 4)])
def test_the_exported_network_is_the_trained_one(icu, memory, layers):
    settings = mm.PPOSettings(memory=memory, layers=layers, units=16, environments=6, rollout=4, minibatch=8)
    environments, learner = learner_for(icu, settings)
    with training.undisturbed():
        learner.learn(200)
    exported = training.actor_layers(learner.policy, environments.recency)
    policy = mm.PPOPolicy(icu.actions, exported, mm.PPO.from_settings(settings).encoder(icu))
    inputs = environments.reset()
    for _ in range(5):
        inputs, *_ = environments.step(np.zeros(6, dtype=int))
    with torch.no_grad():
        theirs = learner.policy.get_distribution(torch.as_tensor(inputs)).distribution.probs.numpy()
    ours = np.array([policy.probabilities(row / environments.recency) for row in inputs])
    assert ours == pytest.approx(theirs, abs=1e-5)
    assert np.ptp(ours, axis=0).max() > 0.0


def test_actor_and_critic_keep_their_own_learning_rates(icu):
    settings = mm.PPOSettings(
        actor_learning_rate=1e-5,
        critic_learning_rate=3e-3,
        anneal=False,
        environments=4,
        rollout=16,
        minibatch=32,
        target_kl=None,
    )
    _, learner = learner_for(icu, settings)
    policy = learner.policy
    actor, critic = policy.optimizer.param_groups
    assert len(actor["params"]) == len(critic["params"]) == 6
    everything = {id(p) for group in (actor, critic) for p in group["params"]}
    assert everything == {id(p) for p in policy.parameters()}
    before = [[p.detach().clone() for p in group["params"]] for group in (actor, critic)]
    with training.undisturbed():
        learner.learn(128)
    assert (actor["lr"], critic["lr"]) == (1e-5, 3e-3)
    moved = [
        max((p - old).abs().max().item() for p, old in zip(group["params"], olds, strict=True))
        for group, olds in zip((actor, critic), before, strict=True)
    ]
    # Adam moves a parameter by about its rate per step; there were 16 steps.
    assert 0.0 < moved[0] <= 16 * 1e-5 * 1.5
    assert moved[1] > 20 * moved[0]


def test_annealed_rates_go_down_together(icu):
    settings = mm.PPOSettings(
        actor_learning_rate=1e-4,
        critic_learning_rate=1e-3,
        environments=4,
        rollout=16,
        minibatch=32,
        steps=250,
        anneal=True,
    )
    _, learner = learner_for(icu, settings)
    rates = []
    update = learner._update_learning_rate

    def note(optimizer):
        update(optimizer)
        rates.append([group["lr"] for group in optimizer.param_groups])

    learner._update_learning_rate = note
    with training.undisturbed():
        learner.learn(settings.steps)
    # A round has 64 steps, and what is left counts when it begins.
    left = np.array([1.0, 1 - 64 / 250, 1 - 128 / 250, 1 - 192 / 250])
    assert np.array(rates) == pytest.approx(left[:, None] * [1e-4, 1e-3])


@pytest.mark.parametrize("memory", [False, True])
def test_the_same_seed_gives_the_same_policy(icu, memory):
    first, again, other = (mm.PPO(**{**SMALL, "seed": seed}, memory=memory).solve(icu) for seed in (5, 5, 6))
    assert (first.policy.network.weights == again.policy.network.weights).all()
    assert (first.curve.returns == again.curve.returns).all()
    assert (first.policy.network.weights != other.policy.network.weights).any()
    assert first.seed == 5


def test_the_result_says_what_was_done(icu):
    result = mm.PPO(**SMALL, horizon=10).solve(icu)
    assert result.status == "trained"
    assert result.steps == 1024
    assert result.settings == mm.PPO(**SMALL, horizon=10).settings
    assert result.policy.settings == result.settings
    assert 0.0 < result.environment_seconds < result.seconds
    assert (np.diff(result.curve.steps) > 0).all()
    assert result.curve.steps[-1] == 1024
    # 8 environments end an episode every 10 decisions.
    assert result.curve.episodes.sum() == 1024 // 80 * 8
    assert "1,024 steps" in str(result)
    assert (result.curve.returns < 0.0).all()
    assert isinstance(mm.PPO(**SMALL).solve(icu).policy, mm.PPOPolicy)


def test_steps_are_made_in_whole_rounds(icu):
    assert mm.PPO(**{**SMALL, "steps": 257}).solve(icu).steps == 512


def test_nothing_is_left_behind(icu):
    torch.set_num_threads(2)
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    handler = signal.getsignal(signal.SIGINT)
    mm.PPO(**SMALL).solve(icu)
    assert torch.get_num_threads() == 2
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert (torch.get_rng_state() == states[2]).all()
    assert signal.getsignal(signal.SIGINT) is handler


def test_nothing_is_written(icu, monkeypatch, tmp_path):
    """Not even to the temporary directory, which need not be writable."""
    (tmp_path / "there").mkdir()
    for folder in ("there", "not-there"):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / folder))
        mm.PPO(**SMALL).solve(icu)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_training_has_luck_of_its_own(icu, monkeypatch):
    """Who evaluates with the seed of the training does not do so on the same episodes."""
    for seed in (0, 5, 2**64):
        (same, evaluated), (again, trained) = seed_words(seed), seed_words(seed, training=True)
        assert same == again == seed
        assert (evaluated != trained).all()
    given = []
    make = Environments.__init__

    def note(self, *arguments, words, **options):
        given.append(words)
        make(self, *arguments, words=words, **options)

    monkeypatch.setattr(Environments, "__init__", note)
    mm.PPO(**SMALL).solve(icu)
    assert (given[0] == seed_words(SMALL["seed"], training=True)[1]).all()


def test_ctrl_c_ends_training_with_the_policy_so_far(icu, monkeypatch):
    @contextmanager
    def press(description, *, enabled):
        reports = []

        def say(text):
            reports.append(text)
            if len(reports) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        yield say

    monkeypatch.setattr("missmdp.plan.ppo.solver.show_status", press)
    result = mm.PPO(**{**SMALL, "steps": 100_000_000}).solve(icu)
    assert result.status == "interrupted"
    # The signal came when three rounds had been simulated, and is seen after the next minibatch.
    assert result.steps == 3 * 256
    assert "interrupted" in str(result)
    assert set(result.policy.action_probabilities((None, 0, 1, 4))) == set(icu.actions)


def test_ctrl_c_after_the_last_minibatch_is_not_lost(icu, monkeypatch):
    """A caller that trains several times, such as `tune-ppo`, would go on to the next trial."""
    train = training.train

    def then_ctrl_c(*arguments, **options):
        trained = train(*arguments, **options)
        signal.raise_signal(signal.SIGINT)
        return trained

    monkeypatch.setattr(training, "train", then_ctrl_c)
    result = mm.PPO(**SMALL).solve(icu)
    assert (result.status, result.steps) == ("interrupted", SMALL["steps"])


def test_training_stops_between_minibatches(icu):
    settings = mm.PPOSettings(environments=8, rollout=32, minibatch=64, epochs=4)
    environments, _ = learner_for(icu, settings)
    asked = 0

    def stop():
        nonlocal asked
        asked += 1
        return asked > settings.rollout + 2  # in the first round, after two minibatches

    trained = training.train(
        environments, settings, discount=icu.discount, seed=0, stop=stop, report=lambda steps, value: None
    )
    assert trained.stopped
    assert trained.steps == settings.environments * settings.rollout
    assert asked == settings.rollout + 3


def test_progress_tells_steps_and_return(icu, monkeypatch):
    said = []

    @contextmanager
    def listen(description, *, enabled):
        assert (description, enabled) == ("PPO", True)
        yield said.append

    monkeypatch.setattr("missmdp.plan.ppo.solver.show_status", listen)
    mm.PPO(**SMALL, horizon=40, progress=True).solve(icu)
    assert said[0] == "256 of 1,024 steps (25 %)"
    assert re.fullmatch(r"1,024 of 1,024 steps \(100 %\), return −[0-9.]+", said[-1])


def test_it_trains_on_a_model_without_rewards_and_with_one_action():
    mdp = mm.FactoredMDP({"x": range(2)}, ["go"], [np.full((2, 2), 0.5)], 0.0, [0.5, 0.5], discount=0.0)
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda s: 0.5}))
    result = mm.PPO(**{**SMALL, "steps": 256}, memory=True).solve(model)
    assert result.policy.encoder.frames == 1
    assert result.policy.agent(model, seed=0).reset((None,)) == "go"


def optimum(mdp):
    """Return the value of an MDP at its start, by value iteration to 10⁻⁹."""
    value = np.zeros(mdp.n_states)
    for _ in range(int(np.log(1e-12) / np.log(mdp.discount))):
        looked_ahead = [
            mdp.reward[:, a] + mdp.discount * (mdp.transition[a] @ value) for a in range(mdp.n_actions)
        ]
        value = np.max(looked_ahead, axis=0)
    return mdp.initial @ value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "random_value", "steps"), [("icu-smar", -161.5, 250_000), ("predator-smar", 0.3, 400_000)]
)
def test_it_learns_fully_observed_benchmarks_to_near_the_optimum(name, random_value, steps):
    """At least 97 % of the way from random to optimal, 4 standard errors of 4,000 episodes allowed on top."""
    mdp = mm.load_benchmark(name).mdp
    model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
    result = mm.PPO(steps=steps, seed=0).solve(model)
    value = mm.evaluate(result.policy, model, episodes=4000, seed=1)
    best = optimum(mdp)
    assert value.mean + 4 * value.stderr >= random_value + 0.97 * (best - random_value)
    assert value.mean - 4 * value.stderr <= best
