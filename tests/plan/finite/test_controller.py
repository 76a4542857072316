"""Finite controllers: what they do, as agents, in bulk and in files."""

from dataclasses import replace

import numpy as np
import pytest

import missmdp as mm
from missmdp.errors import FormatError, ModelError
from missmdp.model.pomdp import POMDP
from missmdp.plan.finite.plan import ControllerPlan
from oracles.controllers import controller_value, random_controller, random_model
from random_pomdps import random_pomdp, tiger


@pytest.fixture(scope="module")
def solved():
    truth = mm.load_benchmark("example-3")
    return truth, mm.Sarsop(precision=1e-3, progress=False).solve(truth)


def test_simulated_and_exact_values_agree():
    for seed in range(12):
        rng, model = random_model(seed)
        controller = random_controller(rng, model)
        found = mm.evaluate(controller, model, 4000, seed=seed, progress=False)
        # Five standard errors: fails once in 10⁵ times by chance.
        most = 5.0 * found.stderr + found.truncation + 1e-9
        assert abs(found.mean - controller_value(controller, model.missingness)) <= most


def test_kernels_do_what_agents_do():
    for seed in range(8):
        rng, model = random_model(seed)
        controller = random_controller(rng, model)

        class Agents:
            def agent(self, model=None, *, seed=None, controller=controller):
                return controller.agent(model)

        kernel = mm.evaluate(controller, model, 60, seed=3, progress=False)
        agents = mm.evaluate(Agents(), model, 60, seed=3, progress=False)
        np.testing.assert_array_equal(kernel.returns, agents.returns)


def test_in_pomdps_too():
    for seed in range(25):
        model = random_pomdp(seed)
        result = mm.Sarsop(precision=1e-3, max_trials=30, progress=False).solve(model)
        found = mm.evaluate(result.controller, model, 3000, seed=seed, progress=False)
        slack = 5.0 * found.stderr + found.truncation + 1e-9 * max(1.0, abs(result.lower))
        assert result.lower - slack <= found.mean <= result.upper + slack


def test_a_tiger_is_listened_to():
    agent = mm.Sarsop(progress=False).solve(tiger()).controller.agent()
    assert agent.reset() == "a0"
    assert isinstance(agent.controller.model, POMDP)
    for label in agent.controller.model.observations:
        assert agent.step(label) in agent.controller.actions
    with pytest.raises(ModelError, match="acts before the first observation"):
        agent.reset("z0")


def test_observations_that_cannot_be_have_an_answer(solved):
    truth, result = solved
    agent = result.controller.agent()
    with pytest.raises(ModelError, match="has not started"):
        agent.step({})
    assert agent.last_action is None
    nothing = dict.fromkeys(truth.features)
    assert agent.reset(nothing) in truth.actions
    assert agent.step(nothing) in truth.actions
    assert agent.last_action in truth.actions
    assert "impossible" in repr(agent)


def test_the_default_is_best_if_all_states_that_admit_it_are_equally_likely():
    for seed in range(20):
        rng, model = random_model(seed)
        controller = random_controller(rng, model)
        policy = controller.policy
        for codes in model.space.all_observations():
            admitted = model.space.admit(codes) & ~model.mdp.terminal
            sizes = [admitted[component.states].sum() for component in policy.components]
            node = controller.defaults_of_codes(codes[None])[0]
            if not sum(sizes):
                assert node == 0
                continue
            largest = int(np.argmax(sizes))
            component = policy.components[largest]
            worth = component.values[:, admitted[component.states]].sum(axis=1)
            first = sum(len(b) for b in policy.components[:largest])
            assert worth[node - first] == worth.max()


def test_policies_can_be_followed():
    for seed in range(25):
        _, model = random_model(seed)
        result = mm.Sarsop(precision=1e-4, max_trials=10, progress=False).solve(model)
        value = controller_value(mm.FiniteController.from_policy(result.policy), model.missingness)
        # Where vectors stand for several beliefs the controller may be a little worse.
        assert value <= result.upper + 1e-6
        assert value >= result.lower - 0.1 * (1.0 + abs(result.lower))


@pytest.mark.parametrize("seed", range(12))
def test_policies_of_pomdps_can_be_followed(seed):
    model = random_pomdp(seed)
    result = mm.Sarsop(precision=1e-4, max_trials=10, progress=False).solve(model)
    controller = mm.FiniteController.from_policy(result.policy)
    found = mm.evaluate(controller, model, 2000, seed=seed, progress=False)
    slack = 5.0 * found.stderr + found.truncation + 1e-9
    assert found.mean <= result.upper + slack
    assert found.mean >= result.lower - slack - 0.1 * (1e-3 + abs(result.lower))


def test_files(solved, tmp_path):
    truth, result = solved
    path = tmp_path / "graph.mmpolicy"
    result.controller.save(path)
    for load in (mm.load_policy, mm.FiniteController.load):
        loaded = load(path)
        assert isinstance(loaded, mm.FiniteController)
        value = controller_value(result.controller, truth.missingness)
        assert controller_value(loaded, truth.missingness) == value
    result.policy.save(path)
    with pytest.raises(FormatError, match="not 'finite controller'"):
        mm.FiniteController.load(path)


def test_parts_must_fit_together(solved):
    _, result = solved
    plan = result.controller.plan
    parts = {name: getattr(plan, name) for name in ("action", "start", "sight", "successor", "sight_of")}
    for wrong in (
        {"root": plan.n_nodes},
        {"successor": plan.successor + plan.n_nodes},
        {"sight": plan.sight[::-1]},
        {"action": plan.action + 50},
        {"sight_of": plan.sight_of[:, 1:]},
    ):
        with pytest.raises(ModelError, match="controller"):
            mm.FiniteController(result.policy, ControllerPlan(**{"root": plan.root, **parts, **wrong}))


@pytest.mark.parametrize("name", ["action", "start", "sight", "successor", "sight_of"])
def test_arrays_of_another_kind_are_refused(solved, name):
    _, result = solved
    plan = result.controller.plan
    array = getattr(plan, name)
    changed = np.array(array)
    changed.reshape(-1)[-1] = 2**40
    negative = np.array(array)
    negative.reshape(-1)[-1] = -7
    for wrong in (
        changed,
        negative,
        array[..., None],
        array[:0],
        array.reshape(-1)[0],
        array + 0.5,
        None,
        "x",
        [[0], [1, 2]],
    ):
        with pytest.raises(ModelError):
            mm.FiniteController(result.policy, replace(plan, **{name: wrong}))
    with pytest.raises(ModelError):
        replace(plan, root="first")
    # Other integers, and lists, are fine.
    other = mm.FiniteController(result.policy, replace(plan, **{name: array.astype(np.int16).tolist()}))
    np.testing.assert_array_equal(getattr(other.plan, name), array)
    assert getattr(other.plan, name).dtype == np.int64


def test_another_model_must_look_alike(solved):
    _, result = solved
    with pytest.raises(ModelError, match="this model has"):
        result.controller.agent(mm.load_benchmark("icu-smar"))
