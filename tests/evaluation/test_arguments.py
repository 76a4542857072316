"""What a user can get wrong in `evaluate` and `compare` is named."""

from __future__ import annotations

import math

import numpy as np
import pytest

import missmdp as mm
from policies import random_policy
from random_pomdps import build, tiger

QUIET = {"progress": False}
NO_COUNTS = [0, -3, 2.0, 2.5, True, "10", None, [3], math.nan]
NO_POSITIVE = [0, 0.0, -1.0, math.nan, math.inf, True, "0.1", [0.1], 10**400]


@pytest.fixture(scope="module")
def model():
    return mm.load_benchmark("example-1")


def fails(what, message, kind=mm.DataError):
    """Check that both functions refuse in the same words."""
    with pytest.raises(kind, match=message) as caught:
        what(lambda *args, **options: mm.evaluate(None, *args, **(QUIET | options)))
    with pytest.raises(kind, match=message):
        what(lambda *args, **options: mm.compare([None], *args, **(QUIET | options)))
    assert issubclass(kind, mm.MissMDPError)
    return str(caught.value)


@pytest.mark.parametrize("bad", NO_COUNTS)
def test_episodes(model, bad):
    text = fails(lambda run: run(model, bad, 0), "episodes must be an integer of at least 1, got")
    assert repr(bad) in text


@pytest.mark.parametrize("bad", [bad for bad in NO_COUNTS if bad is not None])
@pytest.mark.parametrize("name", ["horizon", "threads", "max_episodes"])
def test_counts(model, name, bad):
    fails(
        lambda run: run(model, 5, 0, **{"until_stderr": 1.0, name: bad}),
        f"{name} must be an integer of at least 1, got",
    )


@pytest.mark.parametrize("bad", [-1, 1.0, True, "0", [1, 2], math.nan])
def test_seeds(model, bad):
    fails(lambda run: run(model, 5, bad), "seed must be an integer of at least 0, got")


@pytest.mark.parametrize("bad", NO_POSITIVE)
@pytest.mark.parametrize("name", ["until_stderr", "timeout"])
def test_positive_numbers(model, name, bad):
    fails(lambda run: run(model, 5, 0, **{name: bad}), f"{name} must be a positive number, got")


def test_numbers_of_numpy_are_numbers(model):
    found = mm.evaluate(
        None,
        model,
        np.int64(5),
        np.uint8(3),
        horizon=np.int32(4),
        until_stderr=np.float32(1e9),
        timeout=np.int64(100),
        threads=np.int16(2),
        max_episodes=np.int64(9),
        **QUIET,
    )
    assert (found.episodes, found.horizon, found.seed, found.status) == (9, 4, 3, "stderr")


def test_the_most_episodes_go_with_an_error(model):
    fails(lambda run: run(model, 5, 0, max_episodes=7), "max_episodes goes with until_stderr")


@pytest.mark.parametrize("horizon", [10**13, 10**30, 10**400])
def test_horizons_have_an_end(model, horizon):
    fails(lambda run: run(model, 5, 0, horizon=horizon), "horizon must be at most")


def test_large_seeds_are_seeds(model):
    one, other = (mm.evaluate(None, model, 20, seed, horizon=5, **QUIET) for seed in (2**64, 2**64 + 1))
    assert one.seed == 2**64
    assert (one.returns != other.returns).any()


@pytest.mark.parametrize("bad", [None, "icu-smar", 7, mm.UniformPolicy()])
def test_what_is_no_model(bad):
    fails(lambda run: run(bad, 5, 0), "expected a MissMDP or a POMDP to act in, got", mm.ModelError)


def test_an_mdp_is_no_model(model):
    fails(lambda run: run(model.mdp, 5, 0), "got FactoredMDP", mm.ModelError)


@pytest.mark.parametrize("bad", ["uniform", 7, ["a"], mm.UniformPolicy, object()])
def test_what_is_no_policy(model, bad):
    with pytest.raises(mm.ModelError, match="expected a policy, which has"):
        mm.evaluate(bad, model, 5, 0, **QUIET)
    with pytest.raises(mm.ModelError, match="expected a policy, which has"):
        mm.compare({"bad": bad}, model, 5, 0, **QUIET)


def test_policies_for_other_worlds(model):
    policy = random_policy(model, 0)
    for world, message in (
        (mm.load_benchmark("icu-smar"), "has the actions"),
        (model.to_pomdp(), "a MissMDP, this is a POMDP"),
    ):
        with pytest.raises(mm.ModelError, match=message):
            mm.evaluate(policy, world, 5, 0, **QUIET)
    renamed = mm.FactoredMDP(
        {"first": ["x", "y"], "third": ["x", "y"]},
        model.actions,
        lambda s, a: {s: 1.0},
        0.0,
        {("x", "x"): 1.0},
        discount=0.9,
    )
    other = mm.MissMDP(renamed, mm.MissingnessFunction.fully_observed(renamed))
    with pytest.raises(mm.ModelError, match="has the features"):
        mm.evaluate(policy, other, 5, 0, **QUIET)
    turned = mm.FactoredMDP(
        {"first": ["x", "y"], "second": ["y", "x"]},
        model.actions,
        lambda s, a: {s: 1.0},
        0.0,
        {("x", "x"): 1.0},
        discount=0.9,
    )
    another = mm.MissMDP(turned, mm.MissingnessFunction.fully_observed(turned))
    with pytest.raises(
        mm.ModelError, match=r"\['x', 'y'\] of second, in this order; this model has \['y', 'x'\]"
    ):
        mm.evaluate(policy, another, 5, 0, **QUIET)
    deaf = build(np.ones((1, 1, 1)), np.ones((1, 1)), [[0.0]], [1.0])
    louder = build(np.ones((1, 1, 1)), np.full((1, 2), 0.5), [[0.0]], [1.0])
    with pytest.raises(mm.ModelError, match="other observations"):
        mm.evaluate(random_policy(deaf, 0), louder, 5, 0, **QUIET)


def test_who_looks_first_does_not_act_where_nothing_is_shown_first(model):
    """In bulk as step by step: an observation that the model does not make is not made up."""
    looks, acts = tiger(observe_initial=True), tiger()
    cases = [
        (random_policy(looks, 0), acts, "acts on the first observation, and this model acts first"),
        (random_policy(acts, 0), looks, "acts before the first observation, and this model shows one"),
        (
            mm.AlphaVectorPolicy(model, random_policy(model, 0).components, observe_initial=False),
            model,
            "acts before the first observation",
        ),
    ]
    for policy, world, message in cases:
        with pytest.raises(mm.ModelError, match=message):
            mm.evaluate(policy, world, 5, 0, **QUIET)

        class Agents:
            def agent(self, model=None, *, seed=None, policy=policy):
                return policy.agent(model, seed=seed)

        with pytest.raises(mm.ModelError, match="this policy acts (on|before)"):
            mm.evaluate(Agents(), world, 5, 0, **QUIET)


@pytest.mark.parametrize("policy", [lambda seen: "fly", mm.BlindPolicy({"fly": 1.0})])
def test_actions_that_do_not_exist(model, policy):
    with pytest.raises(mm.ModelError, match="no action 'fly'; the actions are"):
        mm.evaluate(policy, model, 5, 0, **QUIET)


def test_agents_with_actions_that_do_not_exist(model):
    class Flying:
        def agent(self, model=None, *, seed=None):
            return self

        def reset(self, *seen):
            return "fly"

        step = reset

    for world in (model, tiger()):
        with pytest.raises(mm.ModelError, match="no action 'fly'"):
            mm.evaluate(Flying(), world, 5, 0, **QUIET)


@pytest.mark.parametrize("policy", [lambda seen: "a0", mm.BlindPolicy({"a0": 1.0})])
def test_in_a_pomdp_only_uniform_policies_have_no_belief(policy):
    with pytest.raises(mm.ModelError, match="only UniformPolicy"):
        mm.evaluate(policy, tiger(), 5, 0, **QUIET)


def test_probabilities_of_functions_are_checked(model):
    with pytest.raises(mm.ModelError, match="sum to 0.5"):
        mm.evaluate(lambda seen: {model.actions[0]: 0.5}, model, 5, 0, **QUIET)
    with pytest.raises(mm.ModelError, match="ZeroDivisionError"):
        mm.evaluate(lambda seen: 1 / 0, model, 5, 0, **QUIET)
