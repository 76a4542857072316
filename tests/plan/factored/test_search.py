"""The structured search against the search with listed states and observations: bounds hold whenever it ends."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import missmdp as mm
from missmdp.plan.factored import cores as cores_module
from missmdp.plan.factored import search as search_module
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Ties
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.search import StructuredSearch, structured_parts
from missmdp.plan.sarsop import solver
from missmdp.plan.sarsop import structured as structured_module
from missmdp.plan.stopping import Goal, SearchLimits
from oracles.factored import Ticks, blind_values, memory_value, searched, seen_value
from random_factored import random_factored

N_FAST, N_ALL = 16, 320
"""At least 300 of all models qualify: see `test_enough_models_qualify`."""
SLACK = 1e-9


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make grids and memories as small as the models."""
    monkeypatch.setattr(search_module, "_FIRST_ENTRIES", 500.0)
    monkeypatch.setattr(search_module, "_LARGEST", 6000.0)


@cache
def listed(seed: int) -> mm.SolveResult:
    """Return what the search with listed states and observations finds."""
    before, solver.solve_structured = solver.solve_structured, lambda *args, **options: None
    try:
        return mm.Sarsop(precision=1e-4, max_trials=15, timeout=1.0).solve(random_factored(seed))
    finally:
        solver.solve_structured = before


def assert_between(search: StructuredSearch, other: mm.SolveResult) -> None:
    """Assert that no row of the trace contradicts the bounds of another search, and that rows only improve."""
    trace, slack = search.trace.build(), SLACK * search._scale
    assert len(trace) > 0
    assert np.isfinite(trace.lower).all()
    assert np.isfinite(trace.upper).all()
    assert trace.lower.max() <= other.upper + slack
    assert trace.upper.min() >= other.lower - slack
    assert trace.lower[-1] == search.lower
    assert (np.diff(trace.lower) >= 0.0).all()
    assert (np.diff(trace.upper) <= slack).all()
    assert search.lower <= search.upper + slack


def some(count: int) -> list[Any]:
    return [pytest.param(k, marks=[] if k < count else pytest.mark.slow) for k in range(N_ALL)]


@pytest.mark.parametrize("seed", some(N_FAST))
def test_bounds_hold_however_it_ends(seed):
    # Steps are few for most, so that searches end at all kinds of moments.
    ticks = int(np.random.default_rng(seed).choice([20, 60, 150, 400]))
    model = random_factored(seed)
    try:
        search, status = searched(model, Ticks(ticks), max_trials=2)
    except TooTiedError:
        pytest.skip("too much is tied together")
    assert status in ("precision", "exhausted", "timeout", "trials")
    assert_between(search, listed(seed))
    search.policy()


def qualifies(seed: int) -> bool:
    """Return whether a model has three features that can go missing, and is not too tied for a grid."""
    model = random_factored(seed)
    assert len(model.missingness.can_go_missing) >= 3
    try:
        Ties(Parts(model), Ticks(10**9))
    except TooTiedError:
        return False
    return True


@pytest.mark.parametrize(
    ("count", "least"), [(N_FAST, N_FAST - 1), pytest.param(N_ALL, 300, marks=pytest.mark.slow)]
)
def test_enough_models_qualify(count, least):
    assert sum(map(qualifies, range(count))) >= least


@pytest.mark.parametrize(
    "seed", [2, 3, 13, *(pytest.param(k, marks=pytest.mark.slow) for k in (11, 18, 23, 192))]
)
def test_bounds_hold_at_every_moment(seed):
    for ticks in (0, 7, 19, 41, 83, 167, 311):
        search, _ = searched(random_factored(seed), Ticks(ticks))
        assert_between(search, listed(seed))


@pytest.mark.parametrize("seed", [9, 13, *(pytest.param(k, marks=pytest.mark.slow) for k in (21, 22, 30))])
def test_the_policy_is_worth_the_lower_bound(seed):
    model = random_factored(seed)
    search, _ = searched(model, Ticks(1500), max_trials=2)
    policy = search.policy()
    report = mm.evaluate(policy, model, episodes=2000, seed=seed)
    assert report.mean >= search.lower - 4.0 * report.stderr - 2e-3
    if np.prod(policy.nodes) * model.n_states <= 1500:
        assert memory_value(policy) >= search.lower - SLACK * search._scale


@pytest.mark.parametrize("seed", [3, 12, 13])
def test_the_same_result_again(seed):
    one, other = (searched(random_factored(seed), Ticks(600), max_trials=1)[0] for _ in range(2))
    assert (one.lower, one.upper, one.sweeps) == (other.lower, other.upper, other.sweeps)
    assert np.array_equal(one.policy().table, other.policy().table)


def test_no_memory_at_all():
    search, status = searched(random_factored(3), SearchLimits(None, 1e-6))
    assert status == "memory"
    assert_between(search, listed(3))


class Short(Ticks):
    """A limit under which there never seems to be time for anything large."""

    left = 1e-3


def test_what_time_kept_small_has_not_converged():
    search, status = searched(hostile([2, 2, 2]), Short(1000), precision=0.0)
    assert status == "timeout"
    assert search.memory is not None


def test_time_for_entries_does_not_depend_on_how_many_are_wanted():
    search, _ = searched(hostile([2, 2, 2]), Short(100), precision=0.0)
    grid = search._grid
    most = [search._most_entries(grid, wanted, 0.5, 30.0) for wanted in (3000.0, 5000.0)]
    assert most[0] == most[1] < 3000.0
    assert search._short_of == "time"
    # So many entries are worth that time: work grows with the length of an axis.
    n_scenes, length = len(search.parts.scenes), (most[0] / len(search.parts.scenes)) ** (1.0 / 3.0)
    per_entry = grid.work() / (np.prod(grid.shape) * n_scenes * np.mean(grid.shape)) * length
    share = min(0.5 * search._pressed, 1.0)
    assert 30.0 * per_entry * most[0] == pytest.approx(share * Short.left * search._speed)


def test_where_no_finer_grid_fits_memories_are_improved_all_the_same(monkeypatch):
    def refine(search, ties, most):
        raise TooTiedError

    monkeypatch.setattr(StructuredSearch, "_refine", refine)
    search, _ = searched(hostile([2, 2, 2]), Ticks(400), precision=0.0)
    assert search.memory is not None
    assert search.lower <= search.upper


@pytest.mark.parametrize("megabytes", [0.02, 0.1, 0.5])
def test_little_memory(megabytes):
    limits = Ticks(20_000)
    limits.memory = 1e6 * megabytes
    search, status = searched(random_factored(13), limits, precision=0.0)
    assert status == "memory"
    assert_between(search, listed(13))


def test_many_values_in_little_memory():
    """Nodes for so many values do not fit; bounds hold, and no more is taken than there is."""
    limits = Ticks(10_000)
    limits.memory = 20e6
    model = hostile([60, 2, 2], deterministic([60, 2, 2]))
    tracemalloc.start()
    try:
        search, status = searched(model, limits, 0.0, max_trials=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert status in ("memory", "trials", "timeout")
    assert search.lower <= search.upper
    assert peak < 5.0 * limits.memory


def test_sarsop_takes_the_same_path(monkeypatch):
    monkeypatch.setattr(search_module, "_FEW_OBSERVATIONS", 1)
    monkeypatch.setattr(structured_module, "_FEW_LISTED", 0.0)
    model = random_factored(13)
    result = mm.Sarsop(max_trials=1, timeout=20.0).solve(model)
    assert result.status in ("trials", "precision", "timeout")
    assert "grid" in result.sources
    assert result.lower <= listed(13).upper + SLACK
    assert result.upper >= listed(13).lower - SLACK


def test_sources_say_where_each_bound_came_from(monkeypatch):
    monkeypatch.setattr(search_module, "_FEW_OBSERVATIONS", 1)
    monkeypatch.setattr(structured_module, "_FEW_LISTED", 0.0)
    model = random_factored(13)
    grid = "upper bound from a grid of beliefs, one axis per feature"
    found = {trials: mm.Sarsop(max_trials=trials).solve(model).sources for trials in (0, 2)}
    assert found[0] == f"lower bound and policy from one action for ever; {grid}"
    assert found[2] == f"lower bound and policy from the last observation alone; {grid}"
    monkeypatch.setattr(search_module, "_MOST_SEEN", 0.0)
    found[2] = mm.Sarsop(max_trials=2).solve(model).sources
    assert found[2] == f"lower bound and policy from a memory with one node per feature; {grid}"
    nothing = mm.Sarsop(timeout=0.0).solve(model)
    assert nothing.sources == "both bounds from the rewards alone"
    reward = model.mdp.reward
    assert nothing.upper <= reward.max(initial=0.0) / (1.0 - model.discount) + SLACK


def test_sources_of_a_search_that_was_stopped_before_it_began(monkeypatch):
    monkeypatch.setattr(solver, "LARGE", 0)
    result = mm.Sarsop(timeout=0.0).solve(mm.load_benchmark("icu-smar"))
    assert result.status == "timeout"
    assert result.sources == "both bounds from the rewards alone"
    assert "rewards alone" in result.describe()


def test_sources_of_two_searches_are_those_of_the_better_bounds(monkeypatch):
    monkeypatch.setattr(search_module, "_FEW_OBSERVATIONS", 1)
    model = random_factored(13)
    by_lists = listed(13)
    nothing = replace(by_lists, lower=-1e9, upper=1e9, lower_source="rewards", upper_source="rewards")
    both = structured_module.joined(Parts(model), nothing, by_lists, Goal(1e-4))
    assert (both.lower_source, both.upper_source, both.sources) == ("vectors", "points", "")
    half = structured_module.joined(
        Parts(model), nothing, replace(by_lists, upper=2e9, upper_source="grid"), Goal(1e-4)
    )
    assert half.sources == "lower bound and policy from α-vectors; upper bound from the rewards alone"
    worse = replace(by_lists, lower=-1e10, upper=1e10)
    both = structured_module.joined(Parts(model), nothing, worse, Goal(1e-4))
    assert both.sources == "both bounds from the rewards alone"
    assert mm.Sarsop(max_trials=1).solve(model).sources == ""  # lists alone


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(search_module, "_FEW_OBSERVATIONS", 1)
    monkeypatch.setattr(structured_module, "_FEW_LISTED", 0.0)
    for seed in (3, 13):
        one, two = (mm.Sarsop(max_trials=2, threads=n).solve(random_factored(seed)) for n in (1, 2))
        assert "grid" in one.sources
        assert len(one.trace) > 3
        for name in ("trials", "backups", "lower", "upper", "vectors", "points"):
            assert np.array_equal(one.trace.column(name), two.trace.column(name)), name
        assert np.array_equal(one.policy.table, two.policy.table)


def hostile(
    sizes, transitions=None, missing=0.5, reward=None, n_actions=2, initial=None, terminal=None, discount=0.8
):
    """Return a model with features f0, f1, …; each goes missing by itself unless said otherwise."""
    rng = np.random.default_rng(5)
    names = [f"f{i}" for i in range(len(sizes))]
    if transitions is None:
        transitions = {
            name: ([name], rng.dirichlet(np.ones(n), size=(n, n_actions)))
            for name, n in zip(names, sizes, strict=True)
        }
    if reward is None:
        reward = [([name], rng.normal(size=(n, n_actions))) for name, n in zip(names, sizes, strict=True)]
    mdp = mm.FactoredMDP.from_factors(
        {name: range(n) for name, n in zip(names, sizes, strict=True)},
        range(n_actions),
        transitions,
        reward,
        initial or dict.fromkeys(names, 0),
        terminal,
        discount,
    )
    if not isinstance(missing, dict):
        missing = dict.fromkeys(names, missing)
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, missing))


def deterministic(sizes):
    return {
        f"f{i}": ([f"f{i}"], np.eye(n)[(np.arange(n)[:, None] + [0, 1]) % n]) for i, n in enumerate(sizes)
    }


HOSTILE = {
    "one value": lambda: hostile([1, 2, 3, 2]),
    "one value each": lambda: hostile([1, 1, 1]),
    "deterministic": lambda: hostile([3, 3, 3], deterministic([3, 3, 3])),
    "always missing": lambda: hostile([2, 3, 2], missing=1.0),
    "hardly ever missing": lambda: hostile([2, 3, 2], missing=1e-12),
    "missing where it never is": lambda: hostile(
        [2, 2, 2],
        {f"f{i}": ([], lambda action: {0: 1.0}) for i in range(3)},
        missing={f"f{i}": (f"f{i}", [0.0, 1.0]) for i in range(3)},
    ),
    "hardly ever missing by value": lambda: hostile(
        [3, 3, 3, 2], missing={"f0": 0.5, "f1": 0.5, "f2": 0.5, "f3": ("f3", [0.0, 1e-13])}
    ),
    "one action": lambda: hostile([2, 2, 3], n_actions=1),
    "ten actions": lambda: hostile([3, 3, 3], n_actions=10),
    "self-censoring": lambda: hostile(
        [3, 3, 3], missing={f"f{i}": (f"f{i}", [0.0, 0.4, 1.0]) for i in range(3)}
    ),
    "no rewards": lambda: hostile([2, 3, 2], reward=0.0),
    "over at once": lambda: hostile([2, 2, 2], terminal=("f0", lambda value: value == 0)),
    "always over": lambda: hostile([2, 2, 2], terminal=((), lambda: True)),
    "over next": lambda: hostile(
        [2, 2, 2, 2],
        {f"f{i}": ([], lambda action: {1: 1.0}) for i in range(4)},
        missing={"f1": 0.5, "f2": 0.5, "f3": 0.5},
        terminal=("f0", lambda value: value == 1),
    ),
    "no future": lambda: hostile([2, 3, 2], discount=0.0),
    "twelve features": lambda: hostile([2] * 12),
    "many values": lambda: hostile([7, 7, 7]),
    "a hub": lambda: hostile(
        [2] * 6,
        {"f0": (["f0"], np.full((2, 2, 2), 0.5))}
        | {
            f"f{i}": (["f0", f"f{i}"], np.random.default_rng(i).dirichlet([1, 1], (2, 2, 2)))
            for i in range(1, 6)
        },
        missing={f"f{i}": ("f0", [0.3, 0.6]) for i in range(6)},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models(name):
    model = HOSTILE[name]()
    try:
        search, _ = searched(model, Ticks(120), max_trials=1)
    except TooTiedError:
        assert name == "a hub"
        return
    assert search.lower <= search.upper + SLACK * max(search._scale, 1.0)
    policy = search.policy()
    if model.n_states > 1000:
        return
    report = mm.evaluate(policy, model, episodes=300, seed=1)
    assert report.mean >= search.lower - 5.0 * report.stderr - 2e-3
    assert report.mean <= search.upper + 5.0 * report.stderr + 2e-3


def test_an_episode_that_is_over_is_worth_nothing():
    for name in ("over at once", "always over"):
        search, status = searched(HOSTILE[name](), Ticks(500))
        assert (search.lower, search.upper, status) == (0.0, 0.0, "precision")


def test_only_the_first_reward_where_all_is_over_next():
    model = HOSTILE["over next"]()
    search, _ = searched(model, Ticks(2000), precision=1e-9)
    best = float(model.mdp.reward[model.mdp.initial > 0.0].max())
    assert search.lower == pytest.approx(best)
    assert search.upper == pytest.approx(best)


def test_every_site_needs_a_factor_of_its_gaps(monkeypatch):
    model = hostile([3, 3, 3, 3], missing=0.5)
    assert structured_parts(model) is not None
    fewer = model.missingness.factors[1:]
    monkeypatch.setattr(mm.MissingnessFunction, "factors", property(lambda missingness: fewer))
    assert structured_parts(model) is None


def too_tied(n_features: int = 5) -> mm.MissMDP:
    """Return a model in which everything depends on everything."""
    names = [f"f{i}" for i in range(n_features)]
    rng = np.random.default_rng(0)
    transitions = {name: (names, rng.dirichlet([1, 1], (2,) * (n_features + 1))) for name in names}
    gaps = {name: (names[:2], rng.random((2, 2))) for name in names}
    return hostile([2] * n_features, transitions, missing=gaps)


@pytest.mark.parametrize("ended", [False, True])
def test_what_is_too_tied_has_the_bounds_that_are_known_at_once(ended):
    model = too_tied()
    if ended:
        mdp = mm.FactoredMDP.from_factors(
            {name: range(2) for name in model.space.features.names},
            range(2),
            {
                name: ([model.space.features.names[p] for p in scope.parents], scope.table)
                for name, scope in zip(model.space.features.names, model.mdp.factors.scopes, strict=True)
            },
            [(["f0", "f3"], np.random.default_rng(1).normal(size=(2, 2, 2)))],
            dict.fromkeys(model.space.features.names, 0),
            terminal=(["f1", "f3"], lambda one, three: one == three == 1),
            discount=0.8,
        )
        model = mm.MissMDP(mdp, model.missingness)
    with pytest.raises(TooTiedError):
        Ties(Parts(model))
    search, status = searched(model, Ticks(10_000), precision=1e-9)
    assert (status, search.too_tied) == ("exhausted", True)
    scale = search._scale
    assert search.upper == pytest.approx(seen_value(model), abs=0.05 * scale)
    assert search.upper >= seen_value(model) - SLACK * scale
    assert search.lower >= max(blind_values(model)) - 2e-3 * scale
    assert search.lower <= search.upper
    policy = search.policy()
    assert isinstance(policy, mm.MemoryPolicy)
    value = mm.evaluate(policy, model, 4000, seed=3, progress=False)
    assert value.mean >= search.lower - 4.0 * value.stderr
    if search.lower_source == "observation":
        assert value.mean <= search.lower + 4.0 * value.stderr + 2e-3 * scale


def test_what_is_too_tied_is_listed_afterwards(monkeypatch):
    monkeypatch.setattr(structured_module, "_FEW_LISTED", 0.0)
    monkeypatch.setattr(structured_module, "_MOST_LISTED", 0.0)
    result = mm.Sarsop(timeout=4.0, max_trials=5).solve(too_tied())
    assert result.lower_source == "vectors"

    def refuse(*args, **options):
        raise mm.ModelError("lists do not fit")

    monkeypatch.setattr(mm.Sarsop, "_listed", refuse)
    kept = mm.Sarsop(timeout=20.0).solve(too_tied())
    assert kept.sources.endswith("upper bound from full observation")
    assert kept.lower <= result.upper
    assert kept.upper >= result.lower
    monkeypatch.setattr(solver, "solve_structured", lambda *args: None)
    with pytest.raises(mm.ModelError, match="lists do not fit"):
        mm.Sarsop(timeout=20.0).solve(too_tied())


def test_no_room_even_for_what_is_known_at_once(monkeypatch):
    monkeypatch.setattr(cores_module, "MOST_IN_CORE", 10)
    with pytest.raises(TooTiedError):
        searched(too_tied(), Ticks(10_000))
    assert mm.Sarsop(timeout=1.0, max_trials=1).solve(too_tied()).sources == ""
    monkeypatch.undo()
    search, status = searched(too_tied(), Ticks(3))
    assert (status, search.lower <= search.upper) == ("timeout", True)
