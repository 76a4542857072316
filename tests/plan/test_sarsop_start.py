"""How a search of a large model starts: limits hold while it is compiled, and what there is by then is sound."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp.benchmarks.rocksample import Map, rocksample
from missmdp.plan.sarsop import compile as compile_module
from missmdp.plan.sarsop import solver as solver_module
from missmdp.plan.sarsop.compile import compile_pomdp, joint_entries
from missmdp.plan.stopping import SearchLimits, Stop
from oracles.pomdp import optimum
from oracles.solvers import assert_policy_keeps_its_promise, assert_same_result, assert_sound, start_bounds
from random_pomdps import random_pomdp

ROCKS = Map(5, (0, 2), ((0, 0), (4, 0), (0, 4), (2, 2), (4, 4), (3, 1), (1, 0), (1, 3)))


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(solver_module, "LARGE", 0)


def assert_sound_and_kept(result: mm.SolveResult, model: mm.POMDP) -> None:
    exact = optimum(model)
    assert_sound(result, start_bounds(exact, result), exact.scale)
    assert_policy_keeps_its_promise(result, model, exact, nodes=20)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("observe_initial", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_without_time_to_compile_there_are_bounds_and_a_policy(seed, observe_initial):
    model = random_pomdp(seed)
    result = mm.Sarsop(timeout=0, observe_initial=observe_initial).solve(model)
    assert (result.status, len(result.trace)) == ("timeout", 1)
    assert result.policy.observe_initial == observe_initial
    assert_sound_and_kept(result, model)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_wherever_a_search_is_interrupted(seed, monkeypatch):
    """Ctrl-C at the first look at the limits, at the second, and so on, beyond the end of the compilation."""
    model = random_pomdp(seed)
    for looks in range(0, 30, 3):
        left = iter(range(looks))

        def check(self: SearchLimits, left=left) -> None:
            if next(left, None) is None:
                raise Stop("interrupted")

        with monkeypatch.context() as patched:
            patched.setattr(SearchLimits, "check", check)
            result = mm.Sarsop(max_trials=3, precision=0.0).solve(model)
        assert result.status in ("interrupted", "trials", "precision", "converged")
        assert_sound_and_kept(result, model)


@pytest.mark.usefixtures("all_are_large")
def test_limits_change_nothing_else(monkeypatch):
    model = random_pomdp(1)
    large = mm.Sarsop(max_trials=5).solve(model)
    monkeypatch.setattr(solver_module, "LARGE", 10**9)
    assert_same_result(large, mm.Sarsop(max_trials=5).solve(model))


@pytest.mark.usefixtures("all_are_large")
def test_memory_is_estimated_first(monkeypatch):
    model = random_pomdp(0)
    result = mm.Sarsop(memory=1e-6).solve(model)
    assert result.status == "memory"
    assert_sound_and_kept(result, model)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 100.0)
    with pytest.raises(
        mm.ModelError, match=r"searching a model .* would take about .* is free; plan while acting"
    ):
        mm.Sarsop().solve(model)


@pytest.mark.parametrize("seed", range(10))
def test_the_estimate_of_joint_probabilities_is_never_too_small(seed):
    model = random_pomdp(seed)
    compiled = compile_pomdp(model, observe_initial=False)
    assert joint_entries(model) >= len(compiled.arrays.prob) - model.n_actions * len(
        compiled.arrays.pair_class
    )


def test_in_a_wide_model_the_first_upper_bound_lets_the_state_be_seen_after_one_action():
    """Then the fast informed bound, which is no lower here: nothing but what is seen is random."""
    model = rocksample(ROCKS)
    result = mm.Sarsop(max_trials=0).solve(model)
    q = np.zeros((model.n_states, model.n_actions))
    for _ in range(500):
        best = np.where(model.terminal, 0.0, q.max(axis=1))
        q = model.reward + model.discount * np.stack([matrix @ best for matrix in model.transition], axis=1)
    assert result.trace.upper[0] == pytest.approx((model.initial @ q).max(), abs=1e-3)
    assert (np.diff(result.trace.upper) <= 0.0).all()


def test_results_do_not_depend_on_the_number_of_threads():
    model = rocksample(ROCKS)
    one = mm.Sarsop(max_trials=2, threads=1).solve(model)
    for threads in (2, None):
        assert_same_result(one, mm.Sarsop(max_trials=2, threads=threads).solve(model))


@pytest.mark.parametrize("seed", range(15))
def test_nor_do_those_of_small_models(seed, monkeypatch):
    monkeypatch.setattr(compile_module, "WIDE", seed % 3)
    model = random_pomdp(seed)
    one, two = (mm.Sarsop(max_trials=10, threads=threads).solve(model) for threads in (1, 2))
    assert_same_result(one, two)


def test_a_limit_ends_both_threads():
    result = mm.Sarsop(timeout=0, threads=2).solve(rocksample(ROCKS))
    assert result.status == "timeout"
    assert result.lower <= 0.0
    assert result.upper >= 30.0


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two"])
def test_threads_are_checked(threads):
    with pytest.raises(mm.ParameterError, match="threads"):
        mm.Sarsop(threads=threads)
