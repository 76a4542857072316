"""How much any policy's value can differ: the closed form and the fixed point."""

import numpy as np
import pytest

import missmdp as mm
from large_models import pair
from missmdp.evaluation.certificate.uniform import (
    closed_form,
    inverse_closed_form,
    policy_uniform,
    value_span,
)
from missmdp.learn.groups import all_patterns
from oracles.controllers import controller_value, random_controller, random_model, within


def one_state(discount=0.9):
    """Return a model of one state, with a good and a bad action, and nothing missing."""
    mdp = mm.FactoredMDP(
        {"light": ["on"]},
        ["good", "bad"],
        [np.ones((1, 1))] * 2,
        np.array([[3.0, -1.0]]),
        [1.0],
        discount=discount,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_the_closed_form_is_attained_by_a_policy_that_despairs_when_something_is_missing(epsilon, discount):
    span = value_span(one_state(discount).mdp)
    # Good until the first hole, which comes with probability ε at each step, and bad from then on.
    lost = epsilon * 4.0 / (1.0 - discount) / (1.0 - (1.0 - epsilon) * discount)
    assert closed_form(span, np.array([epsilon])) == pytest.approx(lost, rel=1e-12)
    assert policy_uniform(span, np.array([epsilon])) == pytest.approx(lost, rel=1e-8)


@pytest.mark.parametrize("difference", [0.01, 1.0, 20.0])
def test_the_inverse_of_the_closed_form(difference):
    span = value_span(one_state().mdp)
    epsilon = inverse_closed_form(span, difference)
    assert closed_form(span, np.array([epsilon])) == pytest.approx(difference)
    assert inverse_closed_form(span, 4.0 / (1.0 - 0.9)) == pytest.approx(1.0)
    assert inverse_closed_form(span, 1000.0) == 1.0


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 300), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_controller_differs_by_more(seeds):
    attained = 0.0
    for seed in seeds:
        rng, model = random_model(seed)
        epsilon = rng.random(model.n_states) * rng.choice([0.05, 0.3, 1.0])
        span = value_span(model.mdp)
        uniform, closed = policy_uniform(span, epsilon), closed_form(span, epsilon)
        assert uniform <= closed + 1e-7
        assert uniform <= span.trivial + 1e-9
        controller = random_controller(rng, model)
        other = within(rng, model.missingness, epsilon, all_patterns(np.ones(2, bool)), extreme=seed % 2 == 0)
        differs = abs(controller_value(controller, model.missingness) - controller_value(controller, other))
        assert differs <= uniform + 1e-9
        attained = max(attained, differs / uniform if uniform > 1e-6 else 0.0)
    # The test would notice a bound that is a few times too small.
    assert attained > 0.3


def test_larger_radii_never_make_the_bound_smaller():
    for seed in range(60):
        rng, model = random_model(seed)
        span, epsilon = value_span(model.mdp), rng.random(model.n_states)
        larger = np.minimum(epsilon + rng.random(model.n_states) * 0.3, 1.0)
        assert policy_uniform(span, epsilon) <= policy_uniform(span, larger) + 1e-9
        assert closed_form(span, epsilon) <= closed_form(span, larger) + 1e-12


def test_best_and_worst_are_those_of_the_mdp():
    for seed in range(40):
        _, model = random_model(seed)
        mdp, span = model.mdp, value_span(model.mdp)
        for bound, best in ((span.high, np.max), (span.low, np.min)):
            after = np.stack([m @ bound for m in mdp.transition], axis=1)
            backed_up = np.where(mdp.terminal, 0.0, best(mdp.reward + mdp.discount * after, axis=1))
            np.testing.assert_allclose(bound, backed_up, atol=1e-7)
        assert (span.width[mdp.terminal] == 0.0).all()


def chain(rewards, *, ends):
    """Return a model with a state to wait in, a last one, and one that cannot be reached."""
    stay = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    leave = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return mm.FactoredMDP(
        {"place": ["here", "there", "nowhere"]},
        ["stay", "leave"],
        [stay, leave],
        np.array([rewards, [0.0, 0.0], [100.0, -100.0]]),
        [1.0, 0.0, 0.0],
        [False, ends, False],
        discount=0.5,
    )


def test_states_out_of_reach_and_after_the_end_do_not_count():
    span = value_span(chain([1.0, 2.0], ends=True))
    # Rewards here are 1 or 2; after the end they are 0, which is in the range too.
    assert span.reward_range == 2.0
    # Whoever stays gets 2, and so does who leaves.
    assert span.trivial == pytest.approx(0.0, abs=1e-6)
    assert span.matters.tolist() == [True, False, False]
    ended = np.array([0.0, 1.0, 1.0])
    assert closed_form(span, ended) == 0.0
    assert policy_uniform(span, ended) == pytest.approx(0.0, abs=1e-6)


def test_what_comes_before_the_first_action_counts_only_if_it_is_observed():
    mdp = chain([1.0, 0.0], ends=True)
    span = value_span(mdp)
    assert span.width[0] == pytest.approx(2.0)
    first_only = np.array([0.25, 0.0, 0.0])
    # Staying goes on for ever: U = ε W + (1 − ε) γ U.
    assert policy_uniform(span, first_only) == pytest.approx(0.25 * 2.0 / (1.0 - 0.75 * 0.5))
    later = 0.5 * 0.25 * 2.0 / (1.0 - 0.75 * 0.5)
    assert policy_uniform(span, first_only, observe_initial=False) == pytest.approx(later)


@pytest.mark.parametrize("seed", [1, 2])
def test_large_models_have_the_same_span_and_wider_ones_in_less_time(seed, monkeypatch):
    small, large = (model.mdp for model in pair(seed, monkeypatch))
    expected, found, hasty = value_span(small), value_span(large), value_span(large, timeout=1e-9)
    np.testing.assert_allclose(found.low, expected.low, atol=1e-8)
    np.testing.assert_allclose(found.high, expected.high, atol=1e-8)
    assert (hasty.low <= found.low).all()
    assert (hasty.high >= found.high).all()
    assert hasty.trivial > found.trivial
    epsilon = np.linspace(0.0, 0.5, small.n_states)
    assert policy_uniform(found, epsilon) == pytest.approx(policy_uniform(expected, epsilon), abs=1e-7)
    assert policy_uniform(hasty, epsilon) >= policy_uniform(found, epsilon)
    assert "transition" not in vars(large)


def test_spans_that_would_take_minutes_are_refused(monkeypatch):
    _, large = pair(1, monkeypatch)
    monkeypatch.setattr("missmdp.model.pomdp._MOST_WORK", 0.0)
    with pytest.raises(
        mm.ModelError,
        match="the best and the worst values of .* sweeps, about 1 minute; there is no certificate",
    ):
        mm.plan_data(large, epsilon=1.0)
