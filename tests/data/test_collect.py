"""Simulated data: shapes and conventions, independence of threads, and frequencies that match T and M."""

import os
import signal
import threading

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from missmdp.data.simulation import row_sampler
from missmdp.model.space import MISSING

FAILURE = 1e-6
"""Probability with which a statistical test here fails by chance, per test; seeds are fixed."""


@pytest.fixture(scope="module")
def icu():
    return mm.load_benchmark("icu-mnar-unid")


@pytest.fixture(scope="module")
def predator():
    return mm.load_benchmark("predator-smar")


class CyclingPolicy:
    """Has memory: takes the actions in turn."""

    def agent(self, model=None, *, seed=None):
        return CyclingAgent(model.actions)


class CyclingAgent:
    def __init__(self, actions):
        self.actions = actions

    def reset(self, observation):
        self.taken = 0
        return self.actions[0]

    def step(self, observation):
        self.taken += 1
        return self.actions[self.taken % len(self.actions)]


class SteadyAgentPolicy:
    """The same behaviour as a blind policy with one action, but run through agents."""

    def __init__(self, action):
        self.action = action

    def agent(self, model=None, *, seed=None):
        return self

    def reset(self, observation):
        return self.action

    step = reset


@pytest.mark.parametrize("name", mm.list_benchmarks())
@pytest.mark.parametrize("steps", [1, 2, 236, 1000, 4321])
def test_lengths_sum_to_steps_and_obey_the_conventions(name, steps):
    model = mm.load_benchmark(name)
    data = mm.collect(model, steps, seed=3, keep_states=True)
    assert len(data) == data.n_steps == steps
    assert data.lengths.sum() == steps
    assert data.lengths.max() <= model.mdp.horizon()
    last = data.offsets[1:] - 1
    assert (data.actions[last] == -1).all()
    assert (np.delete(data.actions, last) >= 0).all()
    assert np.array_equal(model.mdp.terminal[data.states[last]], data.terminated)
    assert not model.mdp.terminal[np.delete(data.states, last)].any()
    assert (data.lengths[~data.terminated][:-1] == model.mdp.horizon()).all()
    assert data.observations.dtype == np.int8
    assert data.actions.dtype == np.int8


def test_observations_show_the_state_or_nothing(icu):
    data = mm.collect(icu, 5000, seed=0, keep_states=True)
    codes = icu.space.codes[data.states]
    assert ((data.observations == codes) | (data.observations == MISSING)).all()
    assert set(data.always_observed()) == {"test", "temperature"}


def test_the_number_of_threads_does_not_matter(predator):
    one = mm.collect(predator, 700_000, seed=7, keep_states=True, threads=1)
    for threads in (2, 5):
        other = mm.collect(predator, 700_000, seed=7, keep_states=True, threads=threads)
        for field in ("observations", "actions", "offsets", "terminated", "states"):
            assert np.array_equal(getattr(one, field), getattr(other, field)), field


def test_more_steps_extend_what_fewer_steps_gave(predator):
    """An episode depends on the seed and its number only."""
    short, long = (mm.collect(predator, steps, seed=1) for steps in (3_000, 450_000))
    assert np.array_equal(short.observations, long.observations[:3_000])
    assert np.array_equal(short.actions[:-1], long.actions[:2_999])


def test_seeds_matter_and_fresh_ones_are_recorded(icu):
    first, second = mm.collect(icu, 500, seed=1), mm.collect(icu, 500, seed=2)
    assert not np.array_equal(first.observations, second.observations)
    fresh = mm.collect(icu, 500)
    assert np.array_equal(fresh.observations, mm.collect(icu, 500, seed=fresh.seed).observations)


def test_policies_with_memory_run_as_agents(icu):
    data = mm.collect(icu, 600, CyclingPolicy(), seed=0)
    for start, stop in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        taken = data.actions[start : stop - 1]
        assert np.array_equal(taken, np.arange(len(taken)) % 3)


def test_agents_and_kernels_meet_the_same_luck(predator):
    """Random numbers are addressed by episode, step and purpose, however the policy is run."""
    kernel = mm.collect(predator, 2000, mm.BlindPolicy({"east": 1.0}), seed=5, keep_states=True)
    agent = mm.collect(predator, 2000, SteadyAgentPolicy("east"), seed=5, keep_states=True)
    assert np.array_equal(kernel.states, agent.states)
    assert np.array_equal(kernel.observations, agent.observations)


def test_common_random_numbers_couple_different_missingness(icu):
    """Under another M the states stay the same as long as actions do."""
    blind = icu.with_missingness(mm.load_benchmark("icu-smar").missingness)
    one, two = (mm.collect(m, 3000, seed=2, keep_states=True) for m in (icu, blind))
    assert np.array_equal(one.states, two.states)
    assert not np.array_equal(one.observations, two.observations)


def test_observation_policies_act_on_what_is_seen(icu):
    policy = mm.ObservationPolicy(
        lambda seen: "test" if seen.infection is None else {"wait": 0.5, "antibiotics": 0.5}
    )
    data = mm.collect(icu, 20_000, policy, seed=0)
    acted = data.actions >= 0
    unseen = data.observations[:, 0] == MISSING
    assert (data.actions[acted & unseen] == 2).all()
    counts = np.bincount(data.actions[acted & ~unseen], minlength=3)
    assert counts[2] == 0
    assert stats.binomtest(int(counts[0]), int(counts.sum())).pvalue > FAILURE


def test_a_function_of_the_observation_is_a_policy(icu):
    data = mm.collect(icu, 500, lambda seen: "wait" if seen.temperature < 2 else "test", seed=0)
    acted = data.actions >= 0
    assert np.array_equal(data.actions[acted], np.where(data.observations[acted, 2] < 2, 0, 2))


@pytest.mark.parametrize("policy", ["uniform", 3, lambda seen: ["wait"]])
def test_what_is_no_policy_is_refused(icu, policy):
    with pytest.raises(mm.ModelError):
        mm.collect(icu, 10, policy, seed=0)


@pytest.mark.parametrize("thing", [None, "icu-smar"])
def test_what_is_no_model_is_refused(icu, thing):
    for call in (lambda: mm.collect(thing, 10), lambda: mm.behaviour_coverage(icu.mdp)):
        with pytest.raises(mm.ModelError, match="expected a MissMDP"):
            call()


def short_episodes(discount):
    """Ends after a few steps, whatever the horizon allows."""
    mdp = mm.FactoredMDP(
        {"x": [0, 1]}, ["go"], lambda s, a: {(0,): 0.7, (1,): 0.3}, 1.0, {(0,): 1.0}, [(1,)], discount
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": 0.5}))


def test_a_horizon_far_beyond_the_episodes_changes_nothing():
    near, far = (mm.collect(short_episodes(discount), 5000, seed=0) for discount in (0.9, 0.99999))
    assert far.mdp.horizon() > 1_000_000
    assert np.array_equal(near.observations, far.observations)
    assert np.array_equal(near.offsets, far.offsets)


def test_one_episode_may_be_longer_than_a_task(icu):
    data = mm.collect(icu, 700_000, seed=0, horizon=600_000)
    assert data.lengths.tolist() == [600_000, 100_000]


def test_rewards_come_from_the_true_states(predator):
    data = mm.collect(predator, 5000, seed=0, keep_states=True)
    acted = np.flatnonzero(data.actions >= 0)
    expected = np.zeros(len(data))
    expected[acted] = predator.mdp.reward[data.states[acted], data.actions[acted]]
    assert np.array_equal(data.rewards, expected)
    with pytest.raises(mm.DataError, match="true states"):
        _ = mm.collect(predator, 10, seed=0).rewards


def test_episodes_decode_to_the_users_values(icu):
    data = mm.collect(icu, 1000, seed=0)
    steps = data.episode(-1)
    assert len(steps) == data.lengths[-1]
    assert steps[-1][1] is None
    row = int(data.offsets[-2])
    observation, action = steps[0]
    assert icu.space.features.encode_observation(observation) == tuple(data.observations[row])
    assert action == icu.actions[data.actions[row]]
    assert sum(len(episode) for episode in data.episodes()) == 1000
    with pytest.raises(mm.ParameterError):
        data.episode(data.n_episodes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"steps": True}, "steps"),
        ({"steps": 10, "seed": -1}, "seed"),
        ({"steps": 10, "seed": "x"}, "seed"),
        ({"steps": 10, "horizon": 0}, "horizon"),
        ({"steps": 10, "threads": 0}, "threads"),
    ],
)
def test_bad_arguments_are_named(icu, arguments, message):
    with pytest.raises(mm.DataError, match=message):
        mm.collect(icu, **arguments)


def test_what_does_not_fit_into_memory_is_refused_with_an_estimate(icu):
    with pytest.raises(mm.DataError, match="GB"):
        mm.collect(icu, 10**15, seed=0)


def test_unknown_actions_of_policies_are_named(icu):
    with pytest.raises(mm.ModelError, match="sleep"):
        mm.collect(icu, 10, mm.BlindPolicy({"sleep": 1.0}), seed=0)
    with pytest.raises(mm.ModelError, match="sleep"):
        mm.collect(icu, 10, SteadyAgentPolicy("sleep"), seed=0)


def test_draws_invert_the_cdf():
    """The guided search finds exactly what a linear search finds."""
    from missmdp._kernels.random import draw

    random = np.random.default_rng(0)
    rows = random.random((40, 23)) ** 8 * (random.random((40, 23)) < 0.6)
    rows[:, 5] += 1e-9
    sampler = row_sampler(rows / rows.sum(axis=1, keepdims=True))
    for row in range(len(rows)):
        targets = sampler.target[sampler.start[row] : sampler.start[row + 1]]
        cdf = sampler.cdf[sampler.start[row] : sampler.start[row + 1]]
        edges = np.concatenate([cdf[:-1], np.nextafter(cdf[:-1], 0.0), np.arange(23) / 23])
        for u in np.concatenate([random.random(200), edges[edges < 1.0], [0.0, np.nextafter(1.0, 0.0)]]):
            assert draw(sampler, row, u) == targets[np.searchsorted(cdf, u, side="right")]


def chi_square_pvalue(observed, expected):
    """P-value of counts against expected counts, cells below 5 pooled."""
    small = expected < 5
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        if expected[-1] < 5 and len(expected) > 1:
            smallest = int(np.argmin(expected[:-1]))
            observed[smallest] += observed[-1]
            expected[smallest] += expected[-1]
            observed, expected = observed[:-1], expected[:-1]
    if len(expected) < 2:
        return 1.0
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def check_frequencies(model, steps, seed):
    """Compare every T(· | s, a), M(· | s), b₀ and the actions with a simulation.

    Rows with enough visits give a p-value each; the smallest must exceed FAILURE / number of rows, so that the
    whole check fails by chance with probability at most FAILURE (up to the chi-square approximation).
    """
    data = mm.collect(model, steps, seed=seed, keep_states=True)
    states, actions = data.states, data.actions
    pvalues = []
    first = states[data.offsets[:-1]]
    pvalues.append(
        chi_square_pvalue(
            np.bincount(first, minlength=model.n_states).astype(float), model.mdp.initial * len(first)
        )
    )
    assert (model.mdp.initial[first] > 0).all()
    acted = np.flatnonzero(actions >= 0)
    taken = np.bincount(actions[acted], minlength=model.n_actions).astype(float)
    pvalues.append(chi_square_pvalue(taken, np.full(model.n_actions, len(acted) / model.n_actions)))

    pair = states[acted].astype(np.int64) * model.n_actions + actions[acted]
    order = np.argsort(pair, kind="stable")
    bounds = np.searchsorted(pair[order], np.arange(model.n_states * model.n_actions + 1))
    following = states[acted + 1][order]
    for row in np.flatnonzero(np.diff(bounds) >= 50):
        s, a = divmod(int(row), model.n_actions)
        counts = np.bincount(following[bounds[row] : bounds[row + 1]], minlength=model.n_states).astype(float)
        probabilities = model.mdp.transition[a][[s]].toarray()[0]
        assert counts[probabilities == 0].sum() == 0
        possible = probabilities > 0
        pvalues.append(chi_square_pvalue(counts[possible], probabilities[possible] * counts.sum()))

    weights = 1 << np.arange(len(model.space.features))
    number = {int(pattern @ weights): k for k, pattern in enumerate(model.missingness.patterns)}
    pattern = np.array([number.get(j, -1) for j in range(2 ** len(weights))])[data.observed @ weights]
    assert (pattern >= 0).all()
    n_patterns = model.missingness.n_patterns
    table = np.bincount(states.astype(np.int64) * n_patterns + pattern, minlength=model.n_states * n_patterns)
    table = table.reshape(model.n_states, n_patterns).astype(float)
    assert (table[model.missingness.probabilities == 0] == 0).all()
    for s in np.flatnonzero(table.sum(axis=1) >= 50):
        possible = model.missingness.probabilities[s] > 0
        expected = model.missingness.probabilities[s][possible] * table[s].sum()
        pvalues.append(chi_square_pvalue(table[s][possible], expected))

    assert len(pvalues) > 500
    assert min(pvalues) > FAILURE / len(pvalues)
    # And they are uniform on the whole, which one smallest value would not show: the mean of m p-values has
    # standard deviation 1/√(12 m); discreteness pushes it up, never down.
    assert np.mean(pvalues) > 0.5 - 5 / np.sqrt(12 * len(pvalues))


@pytest.mark.parametrize("name", mm.list_benchmarks())
def test_frequencies_match_the_model(name):
    check_frequencies(mm.load_benchmark(name), 1_000_000, seed=11)


@pytest.mark.slow
@pytest.mark.parametrize("name", mm.list_benchmarks())
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_frequencies_match_the_model_with_more_data(name, seed):
    check_frequencies(mm.load_benchmark(name), 20_000_000, seed=seed)


def test_draws_of_different_purposes_steps_and_episodes_are_uncorrelated():
    from missmdp._kernels.random import episode_key, uniform
    from missmdp.data.simulation import seed_words

    _, words = seed_words(0)
    draws = np.array(
        [
            [[uniform(np.uint64(episode_key(words, e)), t, p) for p in range(3)] for t in range(40)]
            for e in range(400)
        ]
    )
    assert stats.kstest(draws.reshape(-1), "uniform").pvalue > FAILURE
    for axis in range(3):
        near = np.moveaxis(draws, axis, 0)
        one, two = near[:-1].reshape(-1), near[1:].reshape(-1)
        assert abs(np.corrcoef(one, two)[0, 1]) < 5 / np.sqrt(len(one))


def test_ctrl_c_ends_an_episode_of_any_length():
    mdp = mm.FactoredMDP(
        features={"x": range(2)},
        actions=["go"],
        transition=lambda state, action: {(0,): 0.5, (1,): 0.5},
        reward=1.0,
        initial={(0,): 1.0},
        discount=1.0 - 1e-9,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
    mm.collect(model, 10, seed=0, progress=False)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            mm.collect(model, 10**9, seed=0, progress=False)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)
