"""Controllers evaluated exactly, and against nature."""

import numpy as np
import pytest

import missmdp as mm
from missmdp.errors import ModelError
from missmdp.evaluation.certificate import controller_value as product_module
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.uniform import policy_uniform, value_span
from missmdp.learn.groups import all_patterns
from oracles.controllers import controller_value, random_controller, random_model, within

ALL = np.ones(2, dtype=bool)
MANY = pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 150), marks=pytest.mark.slow)], ids=["some", "many"]
)


def values_of(controller, missingness, can_go_missing=None):
    span = value_span(controller.model.mdp)
    return ControllerValues.of(controller_product(controller, missingness, can_go_missing), span)


def controllers(seeds):
    """Yield random controllers and those that a solver found, for random models."""
    for seed in seeds:
        rng, model = random_model(seed)
        if seed % 2:
            yield rng, model, random_controller(rng, model)
        else:
            yield rng, model, mm.Sarsop(precision=1e-3, max_trials=3, progress=False).solve(model).controller


def test_the_value_is_that_of_the_agent():
    for rng, model, controller in controllers(range(20)):
        for M in (
            model.missingness,
            within(rng, model.missingness, np.ones(model.n_states), all_patterns(ALL)),
        ):
            low, high = values_of(controller, M).value()
            assert low - 1e-9 <= controller_value(controller, M) <= high + 1e-9
            assert high - low <= 1e-4 * (1.0 + abs(low))


@pytest.mark.parametrize("discount", [0.9, 0.99])
@pytest.mark.parametrize("n", [2, 3, 8])
def test_states_that_follow_each_other_in_circles(n, discount):
    """Extrapolated sweeps would lead away from the value here: changes do not shrink by one factor."""
    mdp = mm.FactoredMDP(
        {"hour": range(n)},
        ["wait"],
        [np.roll(np.eye(n), 1, axis=1)],
        np.eye(n)[:, :1],
        np.eye(n)[0],
        discount=discount,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"hour": 0.5}))
    controller = mm.Sarsop(max_trials=1, progress=False).solve(model).controller
    low, high = values_of(controller, model.missingness).value()
    assert low - 1e-9 <= 1.0 / (1.0 - discount**n) <= high + 1e-9
    assert high - low < 1e-6


def test_a_solvers_controller_is_worth_what_was_promised():
    for seed in range(30):
        _, model = random_model(seed)
        result = mm.Sarsop(precision=1e-2, max_trials=4, progress=False).solve(model)
        _, high = values_of(result.controller, model.missingness).value()
        assert high >= result.lower - 1e-9
        assert values_of(result.controller, model.missingness).value()[0] <= result.upper + 1e-9


@MANY
def test_nature_brackets_every_value_in_the_ball(seeds):
    reached = []
    for rng, model, controller in controllers(seeds):
        epsilon = rng.random(model.n_states) * rng.choice([0.02, 0.2, 1.0])
        values = values_of(controller, model.missingness, ALL)
        worst, best = values.at_worst(epsilon), values.at_best(epsilon)
        nominal = controller_value(controller, model.missingness)
        uniform = policy_uniform(values.span, epsilon)
        assert nominal - uniform - 1e-4 <= worst <= nominal + 1e-9
        assert nominal - 1e-9 <= best <= nominal + uniform + 1e-4
        for extreme in (False, True, True, True):
            M = within(rng, model.missingness, epsilon, all_patterns(ALL), extreme=extreme)
            found = controller_value(controller, M)
            assert worst - 1e-9 <= found <= best + 1e-9
            room = best - nominal if found > nominal else nominal - worst
            if room > 1e-3:
                reached.append((found - nominal) / room)
    # Some of them come close to the ends, so that ends which are too near would be noticed.
    assert max(reached) > 0.9
    assert min(reached) < -0.9


@MANY
def test_what_nobody_counts_gets_no_more_than_it_may(seeds):
    narrower = 0
    for rng, model, controller in controllers(seeds):
        epsilon = rng.random(model.n_states) * rng.choice([0.1, 0.6])
        unlisted = epsilon * rng.random(model.n_states) * 0.5
        values = values_of(controller, model.missingness, ALL)
        worst, best = values.at_worst(epsilon, unlisted), values.at_best(epsilon, unlisted)
        for _ in range(4):
            M = moved_twice(rng, model.missingness, epsilon, unlisted)
            assert worst - 1e-9 <= controller_value(controller, M) <= best + 1e-9
        narrower += worst > values.at_worst(epsilon) + 1e-6
    assert narrower >= 3


def moved_twice(rng, missingness, epsilon, unlisted):
    """Return an M with some probability on a pattern that M̂ does not have, and some moved between those that it has."""
    listed = missingness.patterns
    others = [row for row in all_patterns(ALL) if not (listed == row).all(axis=1).any()]
    table = np.concatenate([missingness.probabilities, np.zeros((len(epsilon), len(others)))], axis=1)
    for s in range(len(table)):
        moves = [(rng.integers(len(listed)), epsilon[s] - unlisted[s])]
        if others:
            moves.append((len(listed) + rng.integers(len(others)), unlisted[s]))
        for target, budget in moves:
            source = rng.integers(len(listed))
            share = min(budget, table[s, source])
            table[s, source] -= share
            table[s, target] += share
    return mm.MissingnessFunction(missingness.space, np.array([*listed, *others]), table)


def test_without_any_doubt_both_ends_are_the_value():
    for _, model, controller in controllers(range(20)):
        values = values_of(controller, model.missingness, ALL)
        nominal, nothing = controller_value(controller, model.missingness), np.zeros(model.n_states)
        assert values.at_worst(nothing) == pytest.approx(nominal, abs=1e-4)
        assert values.at_best(nothing) == pytest.approx(nominal, abs=1e-4)


def test_more_doubt_never_helps():
    for rng, model, controller in controllers(range(30)):
        values = values_of(controller, model.missingness, ALL)
        epsilon = rng.random(model.n_states) * 0.3
        larger = np.minimum(epsilon * 2.0, 1.0)
        assert values.at_worst(larger) <= values.at_worst(epsilon) + 1e-4
        assert values.at_best(larger) >= values.at_best(epsilon) - 1e-4


def test_charges_are_discounted_visits():
    for rng, model, controller in controllers(range(30)):
        charge = rng.random(model.n_states) * ~model.mdp.terminal
        # What is charged on entering a state is a reward there, since every state is observed before it is acted in.
        mdp = model.mdp
        rewarded = mm.FactoredMDP(
            mdp.features,
            mdp.actions,
            mdp.transition,
            np.repeat(charge[:, None], mdp.n_actions, axis=1),
            mdp.initial,
            mdp.terminal,
            mdp.discount,
            states=mdp.space,
        )
        policy = mm.AlphaVectorPolicy(mm.MissMDP(rewarded, model.missingness), controller.policy.components)
        same = mm.FiniteController(policy, controller.plan)
        found = values_of(controller, model.missingness).charged(charge)
        assert found == pytest.approx(controller_value(same, model.missingness), abs=1e-4)


@MANY
def test_the_difference_is_at_most_the_charge_for_visits(seeds):
    for rng, model, controller in controllers(seeds):
        epsilon = rng.random(model.n_states) * 0.3
        values = values_of(controller, model.missingness)
        most = values.charged(epsilon * values.span.width)
        nominal = controller_value(controller, model.missingness)
        for extreme in (False, True, True):
            M = within(rng, model.missingness, epsilon, all_patterns(ALL), extreme=extreme)
            assert abs(controller_value(controller, M) - nominal) <= most + 1e-9


def test_patterns_that_are_too_many_to_list_are_bounded_by_the_worst_controller(monkeypatch):
    for rng, model, controller in controllers(range(20)):
        epsilon = rng.random(model.n_states) * 0.3
        listed = values_of(controller, model.missingness, ALL)
        with monkeypatch.context() as patched:
            patched.setattr(product_module, "_MOST_ROWS", 0)
            unlisted = values_of(controller, model.missingness, ALL)
        assert not unlisted.product.all_listed
        assert unlisted.at_worst(epsilon) <= listed.at_worst(epsilon) + 1e-4
        assert unlisted.at_best(epsilon) >= listed.at_best(epsilon) - 1e-4


def test_what_is_too_large_is_said_to_be(monkeypatch):
    _, model = random_model(1)
    monkeypatch.setattr(product_module, "TOO_LARGE", 0)
    with pytest.raises(ModelError, match="the policy graph is too large: .* nodes × .* classes of states"):
        controller_product(mm.Sarsop(progress=False).solve(model).controller, model.missingness)


def test_policies_that_act_before_they_see_anything():
    for seed in range(20):
        _, model = random_model(seed)
        result = mm.Sarsop(precision=1e-3, observe_initial=False, progress=False).solve(model)
        low, high = values_of(result.controller, model.missingness).value()
        assert high >= result.lower - 1e-9
        assert low <= result.upper + 1e-9


def test_states_that_follow_each_other_in_a_cycle_are_evaluated_too():
    n, discount = 7, 0.95
    rng = np.random.default_rng(0)
    cycle = np.roll(np.eye(n), 1, axis=1)
    reward = np.repeat(rng.normal(size=(n, 1)), 2, axis=1)
    features, start = {"phase": tuple(range(n))}, np.eye(n)[0]
    mdp = mm.FactoredMDP(features, ["a", "b"], [cycle, cycle], reward, start, discount=discount)
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"phase": 0.5}))
    values = values_of(mm.Sarsop(progress=False).solve(model).controller, model.missingness)
    visits = np.linalg.solve(np.eye(n) - discount * cycle.T, mdp.initial)
    charge = rng.random(n)
    low, high = values.value()
    assert low - 1e-9 <= visits @ reward[:, 0] <= high + 1e-9
    assert values.charged(charge) == pytest.approx(visits @ charge, abs=1e-4)
