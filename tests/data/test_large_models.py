"""Large models are drawn from feature by feature: frequencies and values against the same models multiplied out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from large_models import pair
from missmdp.data.simulation import compile_simulation

FAILURE = 1e-6
"""Probability with which a test here fails by chance; seeds are fixed, so it fails always or never."""


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of counts, rows of which have distributions; cells that expect little are left out."""
    assert (observed[expected == 0.0] == 0).all()
    large = expected >= 5.0
    rest = [(cells * ~large).sum(axis=1) for cells in (observed, expected)]
    statistic = ((observed - expected) ** 2 / np.where(large, expected, 1.0))[large].sum()
    joined = rest[1] >= 5.0
    statistic += ((rest[0] - rest[1])[joined] ** 2 / rest[1][joined]).sum()
    freedom = (np.maximum(large.sum(axis=1) + joined - 1, 0)).sum()
    return float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0


@pytest.mark.parametrize("seed", range(4))
def test_frequencies_are_those_of_the_model(seed, monkeypatch):
    small, large = pair(seed, monkeypatch, terminal=seed % 2 == 1)
    data = mm.collect(large, 60_000, seed=seed, keep_states=True, horizon=20)
    assert data.states is not None
    states, last = data.states, data.actions < 0
    n, A = small.n_states, small.n_actions
    moves = np.zeros((n * A, n))
    now = np.flatnonzero(~last)
    np.add.at(moves, (states[now] * A + data.actions[now], states[now + 1]), 1)
    T = np.stack([matrix.toarray() for matrix in small.mdp.transition], axis=1).reshape(n * A, n)
    assert chi_square(moves, moves.sum(axis=1, keepdims=True) * T) > FAILURE
    M = small.missingness
    patterns = {tuple(pattern): k for k, pattern in enumerate(M.patterns.tolist())}
    seen = np.zeros(M.probabilities.shape)
    shown = data.observations >= 0
    for state, row in zip(states, shown.tolist(), strict=True):
        seen[state, patterns[tuple(row)]] += 1
    assert chi_square(seen, seen.sum(axis=1, keepdims=True) * M.probabilities) > FAILURE
    assert (data.observations[shown] == small.space.codes[states][shown]).all()
    first = np.bincount(states[data.offsets[:-1]], minlength=n)[None, :].astype(float)
    assert chi_square(first, first.sum() * small.mdp.initial[None, :]) > FAILURE


def test_draws_do_not_depend_on_threads_and_extend(monkeypatch):
    _, large = pair(3, monkeypatch)
    one = mm.collect(large, 5000, seed=1, threads=1)
    for other in (mm.collect(large, 5000, seed=1, threads=3), mm.collect(large, 7000, seed=1)):
        np.testing.assert_array_equal(other.observations[:5000], one.observations)
        np.testing.assert_array_equal(other.actions[:4999], one.actions[:4999])


@pytest.mark.parametrize("seed", [1, 2])
def test_values_agree(seed, monkeypatch):
    small, large = pair(seed, monkeypatch, terminal=True)

    def rule(z):
        return "a" if z.f0 is None else {"a": 0.3, "b": 0.7}

    for policy in (mm.UniformPolicy(), mm.BlindPolicy({"b": 1.0}), rule):
        few = 1000 if policy is rule else 20_000
        mine = mm.evaluate(policy, large, episodes=few, seed=0)
        theirs = mm.evaluate(policy, small, episodes=20_000, seed=0)
        assert abs(mine.mean - theirs.mean) < 6.0 * np.hypot(mine.stderr, theirs.stderr)
    controlled = mm.evaluate(mm.UniformPolicy(), large, episodes=2000, seed=0, control_variate=True)
    theirs = mm.evaluate(mm.UniformPolicy(), small, episodes=20_000, seed=0, control_variate=True)
    assert abs(controlled.mean - theirs.mean) < 6.0 * np.hypot(controlled.stderr, theirs.stderr)


def test_only_what_is_large_is_drawn_by_factors(monkeypatch):
    """A table of patterns that is large, with matrices that were given: each is drawn in its own way."""
    small, large = pair(5, monkeypatch)
    given = mm.FactoredMDP(
        small.features, small.actions, small.mdp.transition, small.mdp.reward, small.mdp.initial, None, 0.8
    )
    mixed = mm.MissMDP(given, large.missingness)
    assert mixed.mdp.is_small
    simulation = compile_simulation(mixed)
    assert type(simulation.transition).__name__ == "RowSampler"
    assert type(simulation.observation).__name__ == "PatternDraws"
    data, other = (mm.collect(model, 3000, seed=2, keep_states=True) for model in (mixed, small))
    np.testing.assert_array_equal(data.states, other.states)


def test_coverage_is_simulated(monkeypatch):
    small, large = pair(6, monkeypatch)
    found, exact = (mm.behaviour_coverage(model, steps=50_000) for model in (large, small))
    assert exact.exact
    assert not found.exact
    np.testing.assert_allclose(found.share, exact.share, atol=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_beliefs_agree(seed, monkeypatch):
    small, large = pair(seed, monkeypatch, terminal=True)
    data = mm.collect(small, 40, seed=seed, horizon=8)
    for trajectory in range(data.n_episodes):
        rows = range(data.offsets[trajectory], data.offsets[trajectory + 1])
        beliefs = []
        for model in (small, large):
            decode = model.space.features.decode_observation
            belief = mm.initial_belief(decode(data.observations[rows[0]]), model)
            for row in rows[1:]:
                action = model.actions[data.actions[row - 1]]
                belief = mm.update_belief(belief, action, decode(data.observations[row]), model)
            beliefs.append(belief)
        np.testing.assert_allclose(beliefs[1], beliefs[0], atol=1e-12)


def test_optimal_values_that_would_take_too_long_say_so(monkeypatch):
    _, large = pair(1, monkeypatch)
    monkeypatch.setattr("missmdp.model.pomdp._MOST_WORK", 0.0)
    with pytest.raises(mm.ModelError, match="sweeps, about .* without a control variate"):
        mm.evaluate(None, large, episodes=10, seed=0, control_variate=True)
    assert mm.evaluate(None, large, episodes=10, seed=0).mean is not None


@pytest.mark.slow
def test_a_million_states():
    """The whole way on 12 machines: 1,062,882 states and 4,096 patterns, none of which is multiplied out."""
    model = mm.load_benchmark("fleet-12")
    data = mm.collect(model, 20_000, seed=0)
    learner = mm.AIMI(assume="simple MAR").fit(data)
    assert learner.bound().tv < 0.5
    assert model.types().name == "simple MAR"
    assert len(model.mgraph().edges) == 12
    assert mm.evaluate(None, model, episodes=50, seed=0).mean < 0.0
    with pytest.raises(mm.ModelError, match="of memory"):
        model.to_pomdp()
