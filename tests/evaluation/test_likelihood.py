"""The probability of logs, against sums over all hidden paths and against belief updates."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.evaluation.likelihood import log_predictions
from oracles.bayes import Tables, random_history
from oracles.likelihood import log_probability, log_probability_by_beliefs
from oracles.logs import dataset_of, episodes_of
from strategies import missmdps, rows, seeds


def drawn_episode(model, length, rng):
    tables = Tables(model)
    seen, actions = random_history(tables, length, rng)
    return list(zip(seen, [*(tables.actions[a] for a in actions), None], strict=True))


@given(missmdps(), seeds())
def test_the_sum_over_all_hidden_paths(model, seed):
    rng = np.random.default_rng(seed)
    episodes = [drawn_episode(model, length, rng) for length in (0, 3, 1)]
    found = mm.log_likelihood(episodes_of(model.mdp, episodes), model)
    np.testing.assert_allclose(
        found.per_episode, [log_probability(model, episode) for episode in episodes], rtol=1e-9, atol=1e-12
    )
    assert found.impossible == ()
    assert found.steps == 7
    assert found.total == pytest.approx(sum(found.per_episode))
    assert found.per_step == pytest.approx(found.total / 7)


@given(missmdps(), st.data())
@settings(max_examples=60)
def test_whatever_was_seen(model, data):
    """Observations that the model did not make, most of them impossible: zero where the sum has no path."""
    features = model.space.features
    episodes = [
        [
            *(
                (data.draw(rows(features, missing=True)), data.draw(st.sampled_from(model.actions)))
                for _ in range(2)
            ),
            (data.draw(rows(features, missing=True)), None),
        ]
        for _ in range(2)
    ]
    episodes = [[(features.Observation(*z), a) for z, a in episode] for episode in episodes]
    found = mm.log_likelihood(episodes_of(model.mdp, episodes), model)
    expected = np.array([log_probability(model, episode) for episode in episodes])
    np.testing.assert_allclose(found.per_episode, expected, rtol=1e-9)
    assert found.impossible == tuple(np.flatnonzero(expected == -math.inf))
    assert math.isinf(found.total) == bool(found.impossible)


@pytest.mark.parametrize("name", ["icu-smar", "icu-mnar-unid", "predator-mcar", "predator-smar"])
def test_the_normalisers_of_belief_updates(name):
    truth = mm.load_benchmark(name)
    log = mm.collect(truth, 500, seed=3)
    for model in (truth, mm.prior_model(truth), mm.fully_observed_model(truth)):
        found = mm.log_likelihood(log, model).per_episode
        expected = [log_probability_by_beliefs(model, episode) for episode in log.episodes()]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@given(missmdps(max_features=2))
@settings(max_examples=30)
def test_the_probabilities_of_all_observations_sum_to_one(model):
    """Over all first observations and all second ones after the first action."""
    action = model.actions[0]
    seen = list(model.observations)
    pairs = [[(z, action), (after, None)] for z, after in itertools.product(seen, seen)]
    found = mm.log_likelihood(episodes_of(model.mdp, pairs), model)
    assert np.exp(found.per_episode).sum() == pytest.approx(1.0)


def test_long_episodes_in_pieces_are_the_same_as_alone():
    """Neither the other episodes nor the number of threads change what an episode gets."""
    model = mm.load_benchmark("icu-mnar-id")
    log = mm.collect(model, 20_000, seed=1)
    together = log_predictions(log, model)
    cut = log.offsets[-2]
    last = mm.Dataset(
        model.mdp,
        log.observations[cut:],
        log.actions[cut:],
        np.array([0, log.n_steps - cut]),
        np.array([False]),
    )
    np.testing.assert_array_equal(log_predictions(last, model), together[cut:])
    np.testing.assert_allclose(
        mm.log_likelihood(log, model).per_episode,
        [together[i:j].sum() for i, j in itertools.pairwise(log.offsets)],
        rtol=1e-12,
    )


def test_an_impossible_observation_is_minus_infinity_to_the_end_of_its_episode_only():
    model = mm.load_benchmark("example-1")
    possible = drawn_episode(model, 2, np.random.default_rng(0))
    hidden = (model.space.features.Observation(None, None), None)
    log = episodes_of(
        model.mdp, [possible, [*possible[:1], (hidden[0], possible[0][1]), possible[2]], possible]
    )
    found = log_predictions(log, model)
    assert np.isfinite(found[[0, 1, 2, 3, 6, 7, 8]]).all()
    assert (found[4:6] == -np.inf).all()
    np.testing.assert_array_equal(found[:3], found[6:])
    result = mm.log_likelihood(log, model)
    assert result.impossible == (1,)
    assert "1 of 3 episodes have probability 0" in str(result)
    assert "−∞" in str(result)


def test_another_mdp_with_the_same_features_may_judge_a_log():
    one, other = mm.load_benchmark("icu-smar"), mm.load_benchmark("icu-mnar-id")
    log = mm.collect(one, 100, seed=0)
    assert mm.log_likelihood(log, other).total < mm.log_likelihood(log, one).total


def test_what_cannot_be_judged_is_named():
    model = mm.load_benchmark("icu-smar")
    log = mm.collect(model, 50, seed=0)
    with pytest.raises(mm.DataError, match="other features, values or actions"):
        mm.log_likelihood(log, mm.load_benchmark("predator-smar"))
    with pytest.raises(mm.DataError, match="expected a Dataset, got list"):
        mm.log_likelihood([1, 2], model)
    with pytest.raises(mm.ModelError, match="expected a MissMDP"):
        mm.log_likelihood(log, model.mdp)
    empty = mm.Dataset(
        model.mdp, log.observations[:0], log.actions[:0], np.array([0]), np.zeros(0, dtype=bool)
    )
    with pytest.raises(mm.DataError, match="no observations"):
        mm.log_likelihood(empty, model)
    holes = dataset_of(model.mdp, [log.episode(0)[0][0]] * 3)
    broken = mm.Dataset(
        model.mdp, holes.observations, np.array([0, -1, -1], np.int8), holes.offsets, holes.terminated
    )
    with pytest.raises(mm.DataError, match="episode 0, step 1: there is no action"):
        mm.log_likelihood(broken, model)
