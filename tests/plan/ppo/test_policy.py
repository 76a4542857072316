"""Network policies with random weights: agents, bulk simulation, files; nothing here needs torch."""

import zipfile
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from missmdp._kernels.random import DRAW_ACTION, episode_key, uniform
from missmdp._kernels.simulator import first_state, next_state, seen_as
from missmdp.data.simulation import BulkPolicy, compile_simulation, seed_words
from missmdp.plan.ppo.encoding import Encoder
from missmdp.plan.ppo.policy import Layer, PPOPolicy
from policies import random_policy
from strategies import missmdps, seeds


def network_policy(model, seed=0, *, encoding="scaled", frames=4, units=(7, 5), deterministic=False):
    rng = np.random.default_rng(seed)
    encoder = Encoder(model.space.features, model.n_actions, encoding, frames)
    sizes = [encoder.size, *units, model.n_actions]
    layers = [Layer(rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    return PPOPolicy(model.actions, layers, encoder, deterministic=deterministic)


class Addressed:
    """The draws that the simulator gives to the actions of one episode."""

    def __init__(self, key):
        self.key = key
        self.step = 0

    def random(self):
        self.step += 1
        return uniform(self.key, self.step - 1, DRAW_ACTION)


def by_agents(policy, model, words, count, horizon):
    """Return what agents make of the episodes 0, …, count − 1 with the simulator's draws."""
    simulation = compile_simulation(model)
    seen = model.missingness.occurring().observations
    rows = []
    for episode in range(count):
        key = np.uint64(episode_key(words, episode))
        agent = policy.agent(model)
        agent._random = Addressed(key)
        state, action, total, step = first_state(simulation, key), 0, 0.0, 0
        while step < horizon and not model.mdp.terminal[state]:
            shown = seen[seen_as(simulation, key, step, state, action)]
            action = model.mdp.action_index((agent.step if step else agent.reset)(shown))
            total += model.discount**step * model.mdp.reward[state, action]
            step += 1
            state = next_state(simulation, key, step, state, action)
        rows.append((total, step, bool(model.mdp.terminal[state])))
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def icu():
    return mm.load_benchmark("icu-smar")


@given(
    missmdps(),
    seeds(),
    st.sampled_from([("one-hot", None), ("scaled", 1), ("mixed", 3), ("one-hot", 2)]),
    st.booleans(),
    st.integers(1, 12),
)
def test_agents_and_bulk_simulation_decide_alike(model, seed, seeing, deterministic, horizon):
    encoding, frames = seeing
    policy = network_policy(model, seed, encoding=encoding, frames=frames, deterministic=deterministic)
    _, words = seed_words(seed)
    runner = policy.runner(model, compile_simulation(model), words, horizon)
    out = runner.run(0, 20)
    returns, decisions, terminated = by_agents(policy, model, words, 20, horizon)
    assert (out.decisions == decisions).all()
    assert (out.terminated == terminated).all()
    assert out.returns == pytest.approx(returns, abs=1e-9)


@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-smar"])
def test_agents_and_bulk_simulation_decide_alike_in_benchmarks(name):
    model = mm.load_benchmark(name)
    policy = network_policy(model, 3, frames=30, units=(64, 64))
    _, words = seed_words(5)
    out = policy.runner(model, compile_simulation(model), words, 60).run(0, 5)
    returns, decisions, terminated = by_agents(policy, model, words, 5, 60)
    assert out.returns == pytest.approx(returns)
    assert (out.decisions == decisions).all()
    assert (out.terminated == terminated).all()


def test_episodes_do_not_depend_on_who_is_simulated_beside_them(icu):
    policy = network_policy(icu)
    runner = policy.runner(icu, compile_simulation(icu), seed_words(1)[1], 40)
    whole = runner.run(0, 100)
    for first, count in [(0, 1), (1, 7), (8, 60), (68, 32)]:
        part = runner.run(first, count)
        for mine, all_of_them in zip(part, whole, strict=True):
            assert (mine == all_of_them[first : first + count]).all()


def test_advantages_are_summed_besides_rewards(icu):
    """With h = 0 the advantage is the reward; with a constant h, all that is added sums to −h."""
    policy = network_policy(icu)
    out = policy.runner(icu, compile_simulation(icu), seed_words(1)[1], 40).run(0, 20)
    assert (out.advantages == out.returns).all()
    lifted = compile_simulation(icu, np.full(icu.n_states, 7.0))
    out = policy.runner(icu, lifted, seed_words(1)[1], 40).run(0, 20)
    np.testing.assert_allclose(out.advantages, out.returns - 7.0, atol=1e-9)


def test_it_can_be_evaluated_and_shares_luck_with_others(icu):
    policy = network_policy(icu)
    assert isinstance(policy, BulkPolicy)
    found = mm.evaluate(policy, icu, episodes=500, seed=3)
    again = mm.evaluate(policy, icu, episodes=300, seed=3)
    assert (found.returns[:300] == again.returns).all()
    assert found.decisions.max() == icu.mdp.horizon()
    other = mm.evaluate(mm.UniformPolicy(), icu, episodes=500, seed=3)
    assert found.shares_luck_with(other)


@pytest.mark.parametrize("frames", [None, 148])
def test_agents_keep_the_contract_of_policies(icu, frames):
    policy = network_policy(icu, encoding="scaled" if frames else "one-hot", frames=frames)
    assert isinstance(policy, mm.Policy)
    assert isinstance(policy.agent(icu, seed=0), mm.Agent)
    seen = [z for z, _ in mm.collect(icu, 60, seed=0).episode(0)]

    def act(observations):
        agent = policy.agent(icu, seed=3)
        return [agent.reset(observations[0]), *(agent.step(z) for z in observations[1:])]

    taken = act(seen)
    assert set(taken) <= set(icu.actions)
    assert len(set(taken)) > 1
    names = icu.space.features.names
    assert taken == act([dict(zip(names, z, strict=True)) for z in seen])
    assert taken == act([tuple(np.nan if v is None else v for v in z) for z in seen])


def test_action_probabilities_are_those_that_the_agent_draws_from(icu):
    policy = network_policy(icu, frames=2)
    agent = policy.agent(seed=1)
    z0, z1, z2 = (None, 0, 1, 4), (2, 0, 1, None), (None, 0, 3, 9)
    a0 = agent.reset(z0)
    assert agent.probabilities == policy.action_probabilities(z0)
    a1 = agent.step(z1)
    assert agent.probabilities == policy.action_probabilities(z0, a0, z1)
    assert agent.last_action == a1
    agent.step(z2)
    asked = policy.action_probabilities(z0, a0, z1, a1, z2)
    assert agent.probabilities == asked
    assert sum(asked.values()) == pytest.approx(1.0)
    assert asked != policy.action_probabilities(z0, "test", z1, "wait", z2) or (a0, a1) == ("test", "wait")
    assert asked == policy.action_probabilities((3, 4, 3, 0), "wait", z1, a1, z2) or a0 != "wait"
    certain = policy.likeliest().action_probabilities(z0, a0, z1, a1, z2)
    assert certain == {action: float(p == max(asked.values())) for action, p in asked.items()}


def test_without_memory_only_the_last_observation_counts(icu):
    policy = network_policy(icu, encoding="one-hot", frames=None)
    z0, z1 = (None, 0, 1, 4), (2, 0, 1, None)
    assert not policy.memory
    assert policy.action_probabilities(z0, "wait", z1) == policy.action_probabilities(z1)


def test_misuse_is_named(icu):
    policy = network_policy(icu)
    with pytest.raises(mm.ModelError, match="begins and ends with an observation"):
        policy.action_probabilities((0, 0, 0, 0), "wait")
    with pytest.raises(mm.ModelError, match="no action 'surgery'"):
        policy.action_probabilities((0, 0, 0, 0), "surgery", (0, 0, 0, 0))
    with pytest.raises(mm.ModelError, match="call reset first"):
        policy.agent().step((0, 0, 0, 0))
    with pytest.raises(mm.ModelError, match="call reset first"):
        _ = policy.agent().probabilities
    agent = policy.agent(seed=0)
    agent.reset((0, 0, 0, 0))
    before = agent.probabilities
    with pytest.raises(mm.ModelError, match="cannot be 99"):
        agent.step((99, 0, 0, 0))
    assert agent.probabilities == before


def test_it_acts_only_where_features_and_actions_are_its_own(icu):
    policy = network_policy(icu)
    predator = mm.load_benchmark("predator-smar")
    words = seed_words(0)[1]
    with pytest.raises(mm.ModelError, match="the policy has the actions"):
        policy.agent(predator)
    with pytest.raises(mm.ModelError, match="the policy has the actions"):
        policy.runner(predator, compile_simulation(predator), words, 5)
    with pytest.raises(mm.ModelError, match="needs a MissMDP, this is a POMDP"):
        policy.runner(icu.to_pomdp(), compile_simulation(icu.to_pomdp()), words, 5)
    other = network_policy(predator)
    larger = mm.load_benchmark("predator-mcar")
    with pytest.raises(mm.ModelError, match="the policy has the features"):
        other.agent(larger)
    assert policy.agent(mm.load_benchmark("icu-mnar-id")) is not None


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "at least one layer"),
        ([Layer(np.zeros((3, 3)), np.zeros(3))], "layer 0 must have a weight of shape"),
        ([Layer(np.zeros((20, 2)), np.zeros(2))], "must have 3 outputs"),
        ([Layer(np.full((20, 3), np.nan), np.zeros(3))], "not finite"),
    ],
)
def test_networks_that_do_not_fit_are_named(icu, layers, message):
    with pytest.raises(mm.ModelError, match=message):
        PPOPolicy(icu.actions, layers, Encoder(icu.space.features, 3, "scaled", 4))


def test_what_the_kernels_would_follow_astray_is_refused(icu):
    policy = network_policy(icu)
    blank, seen = policy.encoder.blank(), icu.missingness.occurring().observations[0]
    for inputs in (blank[:-1], np.zeros(10**6, dtype=np.float32), blank[None], "x", None):
        for use in (policy.logits, policy.probabilities, lambda given: policy.seen(given, seen)):
            with pytest.raises(mm.ModelError):
                use(inputs)
    for action in (-1, 3, 2**40, "wait", 1.5):
        with pytest.raises(mm.ModelError, match="action"):
            policy.seen(blank, seen, action)
    with pytest.raises(mm.ModelError, match="it is for 9 actions"):
        PPOPolicy(icu.actions, policy.layers, Encoder(icu.space.features, 9, "scaled", 4))
    for wrong in ((None, 3, "scaled"), (icu.space.features, 0, "scaled"), (icu.space.features, 3, "hot")):
        with pytest.raises(mm.ModelError):
            Encoder(*wrong)
    for layers in (None, 5, "ab", [5], [None], [(1,)], [("a", "b")]):
        with pytest.raises(mm.ModelError):
            PPOPolicy(icu.actions, layers, policy.encoder)


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_saved_policy_is_the_same_policy(icu, tmp_path, deterministic):
    policy = network_policy(icu, deterministic=deterministic)
    policy.settings = mm.PPOSettings(steps=7, target_kl=None)
    policy.save(tmp_path / "icu.mmpolicy")
    for loaded in (mm.PPOPolicy.load(tmp_path / "icu.mmpolicy"), mm.load_policy(tmp_path / "icu.mmpolicy")):
        assert isinstance(loaded, PPOPolicy)
        assert loaded.encoder == policy.encoder
        assert (loaded.actions, loaded.settings) == (policy.actions, policy.settings)
        assert loaded.deterministic == deterministic
        assert (loaded.network.weights == policy.network.weights).all()
        assert repr(loaded) == repr(policy)
    policy.save(tmp_path / "again.mmpolicy")
    assert (tmp_path / "icu.mmpolicy").read_bytes() == (tmp_path / "again.mmpolicy").read_bytes()


def test_files_of_the_other_kind_are_told_apart(icu, tmp_path):
    alpha, network = random_policy(icu, 0), network_policy(icu)
    alpha.save(tmp_path / "alpha.mmpolicy")
    network.save(tmp_path / "network.mmpolicy")
    assert isinstance(mm.load_policy(tmp_path / "alpha.mmpolicy"), mm.AlphaVectorPolicy)
    with pytest.raises(mm.FormatError, match="holds 'policy', not 'PPO policy'"):
        mm.PPOPolicy.load(tmp_path / "alpha.mmpolicy")
    with pytest.raises(mm.FormatError, match="holds 'PPO policy', not 'policy'"):
        mm.AlphaVectorPolicy.load(tmp_path / "network.mmpolicy")
    icu.save(tmp_path / "model.mmdp")
    with pytest.raises(mm.FormatError, match="holds 'miss-MDP'"):
        mm.load_policy(tmp_path / "model.mmdp")
    with pytest.raises(mm.FormatError, match="cannot be read"):
        mm.load_policy(tmp_path / "absent.mmpolicy")
    (tmp_path / "text.mmpolicy").write_text("no zip")
    with pytest.raises(mm.FormatError, match="not a file of missmdp"):
        mm.load_policy(tmp_path / "text.mmpolicy")


def test_damaged_files_are_named(icu, tmp_path):
    network_policy(icu).save(tmp_path / "good.mmpolicy")
    with zipfile.ZipFile(tmp_path / "good.mmpolicy") as good:
        members = {name: good.read(name) for name in good.namelist()}
    for name in members:
        with zipfile.ZipFile(tmp_path / "bad.mmpolicy", "w") as bad:
            for other, content in members.items():
                if other != name:
                    bad.writestr(other, content)
        with pytest.raises(mm.FormatError, match="bad.mmpolicy"):
            mm.load_policy(tmp_path / "bad.mmpolicy")
