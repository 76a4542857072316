"""Wide components: a search that makes fewer passes is as sound, and finds the same values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import missmdp as mm
from missmdp._kernels.jit import kernel
from missmdp._kernels.sarsop.points import add_beliefs
from missmdp._kernels.sarsop.successors import mix
from missmdp.benchmarks.rocksample import Map, rocksample
from missmdp.plan.sarsop import compile as compile_module
from missmdp.plan.sarsop.compile import compile_pomdp
from missmdp.plan.sarsop.loop import Loop
from missmdp.plan.sarsop.search import Search
from missmdp.plan.sarsop.start import set_up
from missmdp.plan.stopping import Goal, SearchLimits
from oracles.pomdp import optimum
from oracles.solvers import assert_policy_keeps_its_promise, assert_sound, start_bounds
from random_pomdps import random_pomdp

N_FAST, N_ALL = 40, 400
SMALL_ROCKS = Map(4, (0, 1), ((1, 0), (3, 1), (0, 3), (2, 3), (3, 3), (2, 1), (1, 2), (3, 0)))


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[] if s < N_FAST else pytest.mark.slow) for s in range(N_ALL)]
)
def test_bounds_hold_all_along_and_the_policy_keeps_them(seed, monkeypatch):
    # Random models are small: let components be wide from two or three classes on, and some models large.
    monkeypatch.setattr(compile_module, "WIDE", 1 + seed % 2)
    monkeypatch.setattr(compile_module, "MANY", 1000 * (seed % 3 // 2))
    model = random_pomdp(seed)
    exact = optimum(model)
    solver = mm.Sarsop(
        precision=1e-3, absolute_precision=1e-6 * exact.scale or None, max_trials=40, timeout=2.0
    )
    result = solver.solve(model)
    assert_sound(result, start_bounds(exact, result), exact.scale)
    assert_policy_keeps_its_promise(result, model, exact)


def test_wide_and_narrow_searches_meet(monkeypatch):
    closed = 0
    for seed in range(30):
        model = random_pomdp(seed)
        solver = mm.Sarsop(precision=1e-3, max_trials=60, timeout=2.0)
        narrow = solver.solve(model)
        with monkeypatch.context() as patched:
            patched.setattr(compile_module, "WIDE", 2)
            patched.setattr(compile_module, "MANY", 1000 * (seed % 2))
            wide = solver.solve(model)
        slack = 1e-9 * max(1.0, abs(narrow.lower))
        assert wide.lower <= narrow.upper + slack
        assert narrow.lower <= wide.upper + slack
        closed += wide.relative_gap <= 1e-3
    assert closed >= 20


def test_a_wide_model_as_it_is(monkeypatch):
    """RockSample with 256 classes in each component, wide as it stands and narrow on request."""
    model = rocksample(SMALL_ROCKS)
    assert compile_pomdp(model, observe_initial=False).is_wide
    solver = mm.Sarsop(max_trials=6, timeout=20.0)
    wide = solver.solve(model)
    with monkeypatch.context() as patched:
        patched.setattr(compile_module, "WIDE", 1000)
        narrow = solver.solve(model)
    assert (np.diff(wide.trace.lower) >= -1e-9).all()
    assert (np.diff(wide.trace.upper) <= 1e-9).all()
    assert wide.lower <= narrow.upper
    assert narrow.lower <= wide.upper
    mean = mm.evaluate(wide.policy, model, episodes=2000, seed=1)
    assert mean.mean >= wide.lower - 4 * mean.stderr
    assert mean.mean <= wide.upper + 4 * mean.stderr


def test_the_same_seed_gives_the_same_result():
    model = rocksample(SMALL_ROCKS)
    solver = mm.Sarsop(max_trials=4, seed=3)
    one, other = solver.solve(model), solver.solve(model)
    assert (one.lower, one.upper) == (other.lower, other.upper)


@kernel
def mixed(model, points, scratch, n, max_steps, counters):
    """Call a function that only kernels can call."""
    return mix(model, points, scratch, n, max_steps, counters)


def one_component(n_states: int, rng: np.random.Generator) -> mm.POMDP:
    """Return a model in which nothing can be told for certain."""
    return mm.POMDP(
        states=range(n_states),
        actions=["a"],
        observations=["x", "y"],
        transition=(rng.dirichlet(np.ones(n_states), n_states),),
        reward=rng.random((n_states, 1)),
        observation=(rng.dirichlet(np.ones(2), n_states),),
        initial=rng.dirichlet(np.ones(n_states)),
        terminal=np.zeros(n_states),
        discount=0.5,
        observe_initial=False,
    )


@pytest.mark.parametrize("seed", range(5))
def test_mixtures_of_wide_beliefs_solve_the_linear_program(seed, monkeypatch):
    """With few points besides corners in the best mixture, and with bounds that have nothing to do with the model."""
    rng = np.random.default_rng(seed)
    n, n_beliefs = 12, 9
    monkeypatch.setattr(compile_module, "WIDE", n - 1)
    search = Search(
        compile_pomdp(one_component(n, rng), observe_initial=False), SearchLimits(), np.random.default_rng(0)
    )
    set_up(search)
    points, scratch = search.pools.points, search.pools.scratch
    assert len(scratch.inverse) == n - 1
    beliefs = rng.dirichlet(np.full(n, 0.7), n_beliefs)
    ends = np.arange(n_beliefs + 1) * n
    classes = np.tile(np.arange(n, dtype=np.int32), n_beliefs)
    add_beliefs(*search.lower_arrays(), ends, classes, beliefs.ravel(), 0, 10**9)
    count = search.pools.n_points
    points.upper[:n] = 1.0 + rng.random(n)
    points.upper[n:count] = rng.random(count - n)
    for _ in range(20):
        belief = rng.dirichlet(np.ones(n))
        scratch.support[:n], scratch.prob[:n] = np.arange(n), belief
        size, _ = mixed(search.model, points, scratch, n, 1000, search.pools.counters)
        weights = np.zeros(count)
        np.add.at(weights, scratch.mixed[:size], scratch.weight[:size])
        columns = np.zeros((n, count))
        for j in range(count):
            part = slice(points.start[j], points.start[j + 1])
            columns[points.support[part], j] = points.prob[part]
        assert columns @ weights == pytest.approx(belief, abs=1e-13)
        best = linprog(points.upper[:count], A_eq=columns, b_eq=belief)
        assert weights @ points.upper[:count] == pytest.approx(best.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_mixtures_of_narrow_beliefs_may_have_more_than_the_belief(seed):
    """As the linear program does: what a mixture has beyond the belief is worth at least the least values."""
    rng = np.random.default_rng(seed)
    n, n_beliefs = 9, 12
    compiled = compile_pomdp(one_component(n, rng), observe_initial=False)
    search = Search(compiled, SearchLimits(), np.random.default_rng(0))
    set_up(search)
    points, scratch, least = search.pools.points, search.pools.scratch, search.model.least
    beliefs = rng.dirichlet(np.full(n, 0.7), n_beliefs)
    classes = np.tile(np.arange(n, dtype=np.int32), n_beliefs)
    ends = np.arange(n_beliefs + 1) * n
    add_beliefs(*search.lower_arrays(), ends, classes, beliefs.ravel(), 0, 10**9)
    count = search.pools.n_points
    least[:] = rng.uniform(-0.3, 0.0, n)
    scratch.price[:n] = least[:n]
    points.upper[:n] = 1.0 + rng.random(n)
    points.upper[n:count] = rng.random(count - n)
    columns = np.zeros((n, count))
    for j in range(count):
        part = slice(points.start[j], points.start[j + 1])
        columns[points.support[part], j] = points.prob[part]
    for _ in range(20):
        size = int(rng.integers(2, n + 1))
        support = np.sort(rng.choice(n, size, replace=False))
        belief = np.zeros(n)
        belief[support] = rng.dirichlet(np.ones(size))
        scratch.support[:size], scratch.prob[:size] = support, belief[support]
        used, excess = mixed(search.model, points, scratch, size, 1000, search.pools.counters)
        weights = np.zeros(count)
        np.add.at(weights, scratch.mixed[:used], scratch.weight[:used])
        beyond = columns @ weights - belief
        assert beyond.min() >= -1e-13
        assert excess == pytest.approx(least @ beyond, abs=1e-12)
        best = linprog(
            np.append(points.upper[:count], -least), A_eq=np.hstack([columns, -np.eye(n)]), b_eq=belief
        )
        assert weights @ points.upper[:count] - excess == pytest.approx(best.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_every_vector_is_worth_the_least_values(seed):
    model = random_pomdp(seed)
    search = Search(compile_pomdp(model, observe_initial=True), SearchLimits(), np.random.default_rng(0))
    Loop(search, Goal(precision=1e-3, max_trials=5), say=lambda _: None).run()
    vectors, arrays = search.pools.vectors, search.model
    for k in range(search.pools.n_vectors):
        begin, end = arrays.component_start[vectors.component[k] :][:2]
        if begin >= search.compiled.class_of.max() + 1:
            continue  # the start, where actions other than the first one are ruled out
        values = vectors.values[vectors.start[k] : vectors.start[k] + end - begin]
        assert (values >= arrays.least[begin:end] - 1e-3 * search.compiled.scale).all()
