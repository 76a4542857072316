"""Total variation between missingness functions, against sums over observations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from oracles.definitions import reachable_states
from oracles.learners import total_variation as over_observations
from strategies import KINDS, missmdps, random_missingness, seeds


def two_of_one(model, seed, kind):
    other = random_missingness(np.random.default_rng(seed), model.mdp, kind)
    expected = {
        tuple(s): over_observations(
            {tuple(z): p for z, p in other.distribution(s).items()},
            {tuple(z): p for z, p in model.missingness.distribution(s).items()},
        )
        for s in model.states
    }
    return other, expected


@given(missmdps(), seeds(), st.sampled_from(KINDS))
def test_it_is_half_the_sum_over_observations(model, seed, kind):
    """½ Σ_z |M̂(z | s) − M(z | s)|, average and worst over reachable states only."""
    other, expected = two_of_one(model, seed, kind)
    got = mm.total_variation(other, model)
    assert got.per_state.tolist() == pytest.approx([expected[tuple(s)] for s in model.states], abs=1e-12)
    reached = [expected[s] for s in reachable_states(model.mdp)]
    assert got.average == pytest.approx(sum(reached) / len(reached), abs=1e-12)
    assert got.worst == pytest.approx(max(reached), abs=1e-12)
    assert tuple(got.worst_state) in reachable_states(model.mdp)
    assert expected[tuple(got.worst_state)] == pytest.approx(got.worst, abs=1e-12)
    share = mm.behaviour_coverage(model).share
    assert got.weighted == pytest.approx(float(share @ got.per_state), abs=1e-12)
    everywhere = mm.total_variation(other, model.missingness)
    assert everywhere.worst == pytest.approx(max(expected.values()), abs=1e-12)
    assert np.array_equal(mm.total_variation(model.missingness, other).per_state, everywhere.per_state)


@given(missmdps(), seeds(), st.sampled_from(KINDS))
def test_it_is_a_distance(model, seed, kind):
    other, _ = two_of_one(model, seed, kind)
    third = random_missingness(np.random.default_rng(seed + 1), model.mdp, "any")
    one, two, whole = (
        mm.total_variation(a, b).per_state
        for a, b in ((model.missingness, other), (other, third), (model.missingness, third))
    )
    assert (whole <= one + two + 1e-12).all()
    assert ((one >= 0) & (one <= 1 + 1e-12)).all()
    assert mm.total_variation(other, other).worst == 0.0


@pytest.fixture
def model():
    """Three states given by matrices, of which the last cannot be reached."""
    mdp = mm.FactoredMDP(
        {"a": [0, 1, 2]},
        ["go"],
        [np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])],
        np.zeros((3, 1)),
        np.array([1.0, 0.0, 0.0]),
        np.zeros(3, dtype=bool),
        0.5,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"a": lambda s: [0.1, 0.4, 0.2][s.a]}))


@pytest.fixture
def estimate(model):
    return mm.MissingnessFunction.independent(model.mdp, {"a": lambda s: [0.2, 0.1, 0.9][s.a]})


def test_unreachable_states_do_not_count(model, estimate):
    got = mm.total_variation(estimate, model)
    assert got.per_state == pytest.approx([0.1, 0.3, 0.7])
    assert (got.average, got.worst) == (pytest.approx(0.2), pytest.approx(0.3))
    assert got.worst_state == (1,)
    assert got.reachable.tolist() == [True, True, False]
    everywhere = mm.total_variation(estimate, model.missingness)
    assert (everywhere.average, everywhere.worst) == (pytest.approx(1.1 / 3), pytest.approx(0.7))
    chosen = mm.total_variation(estimate, model, reachable=[True, False, True])
    assert (chosen.average, chosen.worst, chosen.worst_state) == (
        pytest.approx(0.4),
        pytest.approx(0.7),
        (2,),
    )


def test_the_weighted_mean_follows_the_visits(model, estimate):
    coverage = mm.behaviour_coverage(model, horizon=2)
    got = mm.total_variation(estimate, model, visits=coverage)
    # State 0 first; then 0 or 1 with one half each.
    assert got.weighted == pytest.approx((1.5 * 0.1 + 0.5 * 0.3) / 2)
    by_hand = mm.total_variation(estimate, model.missingness, visits=[3, 1, 0])
    assert by_hand.weighted == pytest.approx(got.weighted)
    assert "weighted=0.15" in repr(got)
    assert (
        repr(mm.total_variation(estimate, model.missingness)) == "TotalVariation(average=0.3667, worst=0.7)"
    )


def test_patterns_of_one_function_only_count_in_full(model):
    nothing = mm.MissingnessFunction.fully_observed(model.mdp)
    always = mm.MissingnessFunction.independent(model.mdp, {"a": 1.0})
    assert mm.total_variation(nothing, always).per_state.tolist() == [1.0, 1.0, 1.0]
    assert mm.total_variation(nothing, model).average == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reachable": [True, False]}, "reachable: expected one number for each of the 3 states"),
        ({"reachable": [False, False, False]}, "no state is reachable"),
        ({"visits": [1, 2]}, "visits: expected one number for each of the 3 states"),
        ({"visits": [0, 0, 0]}, "some must be positive"),
        ({"visits": [1, -1, 1]}, "may be negative"),
        ({"visits": [1, np.nan, 1]}, "visits: expected one number"),
        ({"visits": [1, np.inf, 1]}, "visits: no share may be negative"),
    ],
)
def test_bad_options_are_named(model, estimate, options, message):
    with pytest.raises(mm.ModelError, match=message):
        mm.total_variation(estimate, model, **options)


def test_what_is_no_missingness_function_is_refused(model, estimate):
    for wrong in (None, model, estimate.probabilities):
        with pytest.raises(mm.ModelError, match="expected a MissingnessFunction"):
            mm.total_variation(wrong, estimate)
    with pytest.raises(mm.ModelError, match="expected a MissingnessFunction or a MissMDP"):
        mm.total_variation(estimate, model.mdp)
    other = mm.MissingnessFunction.fully_observed(mm.load_benchmark("icu-smar").mdp)
    with pytest.raises(mm.ModelError, match="different states"):
        mm.total_variation(other, model)
    with pytest.raises(mm.ModelError, match="needs the shares of visits"):
        _ = mm.total_variation(estimate, model.missingness).weighted
