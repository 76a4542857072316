"""Gaps that come together: tables of flags, operators and searches against all patterns, one by one."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import missmdp as mm
from missmdp.model.missing_factors import Part as MissingPart
from missmdp.plan.factored import links as links_module
from missmdp.plan.factored import search as search_module
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Grid, Ties
from missmdp.plan.factored.links import Shown, shown
from missmdp.plan.factored.memory import Memory
from missmdp.plan.factored.parts import Gaps, Part, Parts
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.factored.search import StructuredSearch
from missmdp.plan.factored.told import Local, told_after, told_before, told_by_kernel
from missmdp.plan.sarsop import solver
from missmdp.plan.stopping import Goal, SearchLimits, Stopwatch
from oracles.factored import Ticks, memory_value, searched, seen_value
from random_joint import STYLES, random_joint, random_patterns

SLACK = 1e-9


def split(table: np.ndarray, sites: tuple[int, ...] | None = None) -> Shown:
    """Return a table of patterns, given as gaps of one scene, as links."""
    patterns = np.array(list(product([False, True], repeat=table.ndim)))
    order = np.random.default_rng(0).permutation(len(patterns))
    given = Part((), table.ravel()[order])
    return shown([Gaps(sites or tuple(range(table.ndim)), patterns[order], given)])


def multiplied(found: Shown, n_sites: int) -> np.ndarray:
    """Return P(pattern) that links and gaps make."""
    operands: list = []
    for gaps in found.gaps:
        assert len(gaps.of) == 1
        assert gaps.patterns.tolist() == [[False], [True]]
        operands += [gaps.given.table, [gaps.of[0]]]
    for link in found.links:
        operands += [link.table, [*link.sites, *(n_sites + bond for bond in link.bonds)]]
    return np.einsum(*operands, list(range(n_sites)))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("n_sites", [2, 3, 5, 8])
def test_links_make_the_patterns(style, n_sites):
    for seed in range(5):
        table = random_patterns(np.random.default_rng([seed, n_sites]), style, n_sites)
        found = split(table)
        np.testing.assert_allclose(multiplied(found, n_sites), table, atol=1e-15, rtol=0.0)
        assert found.flagged.isdisjoint({gaps.of[0] for gaps in found.gaps})
        if style == "independent":
            assert not found.links
        if style == "two groups":
            halves = [set(range(n_sites // 2)), set(range(n_sites // 2, n_sites))]
            assert all(any(set(link.sites) <= half for half in halves) for link in found.links)


def test_few_causes_make_a_chain():
    table = random_patterns(np.random.default_rng(1), "one cause", 8)
    found = split(table)
    assert len(found.links) == 8
    assert max(max(link.table.shape) for link in found.links) == 2
    whole = split(random_patterns(np.random.default_rng(1), "any", 6))
    assert [link.sites for link in whole.links] == [(0, 1, 2, 3, 4, 5)]


def test_a_chain_that_is_not_exact_is_not_taken(monkeypatch):
    table = random_patterns(np.random.default_rng(1), "one cause", 8)
    monkeypatch.setattr(links_module, "_EXACT", 0.0)
    assert [len(link.sites) for link in split(table).links] == [8]


def test_sites_in_any_order():
    table = random_patterns(np.random.default_rng(3), "any", 3)
    found = split(table, (4, 0, 2))
    assert found.flagged == {0, 2, 4}
    assert found.links[0].sites == (4, 0, 2)


def test_values_that_make_no_difference_are_left_out():
    patterns = np.array(list(product([False, True], repeat=2)))
    row = np.array([0.1, 0.2, 0.3, 0.4])
    same = Gaps((0, 1), patterns, Part((1, 2), np.broadcast_to(row, (3, 2, 4))))
    assert shown([same]).flagged == {0, 1}
    differ = Gaps((0, 1), patterns, Part((1,), np.stack([row, row[::-1]])))
    assert shown([differ]) == ([differ], [])
    many = Gaps(tuple(range(20)), np.eye(20, dtype=bool), Part((), np.full(20, 0.05)))
    assert [gaps.of for gaps in shown([many]).gaps] == [many.of]


def random_grid(seed: int) -> Grid:
    rng = np.random.default_rng(seed)
    ties = Ties(Parts(random_joint(seed)))
    beliefs = [np.vstack([np.eye(n), rng.dirichlet(np.ones(n), size=2)]) for n in ties.parts.sizes]
    return Grid(ties, beliefs, [(rows**2).sum(axis=1) for rows in beliefs])


def patterns_of(parts: Parts, scene: int) -> list[tuple[float, dict[int, bool]]]:
    """Return all patterns in a scene, with their probabilities."""
    found = [(1.0, dict[int, bool]())]
    for gaps in parts.gaps(scene):
        assert not gaps.given.sites
        found = [
            (before * float(chance), flags | dict(zip(gaps.of, map(bool, pattern), strict=True)))
            for before, flags in found
            for pattern, chance in zip(gaps.patterns, gaps.given.table, strict=True)
        ]
    return found


@pytest.mark.parametrize("seed", range(24))
def test_grid_operators(seed):
    try:
        grid = random_grid(seed)
    except TooTiedError:
        pytest.skip("too much is tied together")
    parts, rng = grid.parts, np.random.default_rng(seed)
    values, weights = rng.normal(size=grid.shape), rng.random(grid.shape)
    for move, operator in grid.moves[::3]:
        told = [
            *map(told_before, move.signs),
            *(told_by_kernel(k, kernel) for k, kernel in enumerate(move.kernels)),
            *map(told_after, parts.goes_on(move.after)),
        ]
        pulled, pushed = np.zeros(grid.shape), np.zeros(grid.shape)
        missing = np.zeros(parts.n_sites)
        for chance, flags in patterns_of(parts, move.after):
            one = grid.operator(
                [*told, *([{k: Local(seen=seen)}] for k, seen in flags.items())], [], grid.beliefs
            )
            pulled += chance * one.pull(values)
            pushed += chance * one.push(weights)
            missing += [chance * (not flags[k]) for k in range(parts.n_sites)]
        close = {"atol": 1e-12, "rtol": 1e-12}
        np.testing.assert_allclose(np.broadcast_to(operator.pull(values), grid.shape), pulled, **close)
        np.testing.assert_allclose(operator.push(weights), pushed, **close)
        if len(told) == parts.n_sites and all(len(tie) == 1 for tie in told):
            for site in range(parts.n_sites):
                found = sum(mass.sum(axis=1) for mass in grid.missing(move, site))
                np.testing.assert_allclose(found, missing[site], atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_corners_are_full_observation(seed):
    model = random_joint(seed)
    try:
        ties = Ties(Parts(model))
        eyes = [np.eye(size) for size in ties.parts.sizes]
        grid = Grid(ties, eyes, [np.zeros(len(eye)) for eye in eyes])
    except TooTiedError:
        pytest.skip("too much is tied together")
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-12) / (1.0 - model.discount)
    assert grid.solve(Stopwatch(None), 1e-9 * scale) == pytest.approx(seen_value(model), abs=2e-9 * scale)


SMALL = [seed for seed in range(400) if random_joint(seed).n_states <= 12][:6]


@pytest.mark.parametrize("seed", SMALL)
@pytest.mark.parametrize("style", ["any", "one cause", "two groups"])
def test_memories_are_exact(seed, style, monkeypatch):
    if style == "one cause":  # a chain, however short
        monkeypatch.setattr(links_module, "_LENGTH", 1e-9)
    model, rng = random_joint(seed, style), np.random.default_rng(seed)
    parts = Parts(model)
    beliefs = [np.vstack([np.eye(n), rng.dirichlet(np.ones(n), size=1)]) for n in parts.sizes]
    shape = tuple(len(site) for site in beliefs)
    actions = [rng.integers(parts.n_actions, size=shape).astype(np.int16) for _ in parts.scenes]
    memory = Memory(parts, beliefs, [rng.dirichlet(np.ones(n)) for n in parts.sizes], actions)
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-12) / (1.0 - model.discount)
    for controller in (memory, memory.proposed(Stopwatch(None), 0.5, "steps")):
        wanted = memory_value(MemoryPolicy.from_memory(model, controller))
        assert controller.solve(Stopwatch(None), 1e-10 * scale) == pytest.approx(wanted, abs=1e-9 * scale)


@pytest.fixture
def small(monkeypatch):
    """Make grids and memories as small as the models."""
    monkeypatch.setattr(search_module, "_FIRST_ENTRIES", 500.0)
    monkeypatch.setattr(search_module, "_LARGEST", 6000.0)


@cache
def listed(seed: int) -> mm.SolveResult:
    """Return what the search with listed states and observations finds."""
    before, solver.structured_parts = solver.structured_parts, lambda model: None
    try:
        return mm.Sarsop(precision=1e-4, max_trials=15, timeout=1.0).solve(random_joint(seed))
    finally:
        solver.structured_parts = before


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[] if k < 16 else pytest.mark.slow) for k in range(120)]
)
@pytest.mark.usefixtures("small")
def test_searches_agree_with_lists(seed):
    ticks = int(np.random.default_rng(seed).choice([60, 400, 1500]))
    try:
        search, _ = searched(random_joint(seed), Ticks(ticks), max_trials=2)
    except TooTiedError:
        pytest.skip("too much is tied together")
    trace, slack = search.trace.build(), SLACK * search._scale
    assert trace.lower.max() <= listed(seed).upper + slack
    assert trace.upper.min() >= listed(seed).lower - slack
    assert search.lower <= search.upper + slack


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small")
def test_independent_gaps_in_one_table_are_the_same_as_each_for_itself(seed):
    """The joint table of independent gaps, kept in one factor, gives the very same search."""
    model = random_joint(seed, "independent")
    (one,) = {len(factor.features) for factor in model.missingness.factors}
    assert one == 1
    parts = Parts(model)
    joint = Parts(model)
    joint.gaps = lambda scene: [in_one_table(parts.gaps(scene))]  # type: ignore[method-assign]
    try:
        found = [search_of(some) for some in (parts, joint)]
    except TooTiedError:
        pytest.skip("too much is tied together")
    slack = SLACK * found[0]._scale
    assert found[0].lower == pytest.approx(found[1].lower, abs=slack)
    assert found[0].upper == pytest.approx(found[1].upper, abs=slack)


def in_one_table(gaps: list[Gaps]) -> Gaps:
    """Return gaps that are independent as one table of patterns."""
    patterns = np.array(list(product(*(one.patterns[:, 0] for one in gaps))))
    table = np.array([np.prod(chances) for chances in product(*(one.given.table for one in gaps))])
    return Gaps(tuple(one.of[0] for one in gaps), patterns, Part((), table))


def search_of(parts: Parts) -> StructuredSearch:
    search = StructuredSearch(parts, Ticks(600), Goal(1e-4, None, 2), lambda text: None)
    search.run()
    return search


def test_no_room_for_patterns_leaves_what_is_known_at_once():
    names = [f"f{i}" for i in range(8)]
    rng = np.random.default_rng(4)
    mdp = mm.FactoredMDP.from_factors(
        {name: range(2) for name in names},
        range(2),
        {name: ([name], rng.dirichlet(np.ones(2), size=(2, 2))) for name in names},
        [([name], rng.normal(size=(2, 2))) for name in names],
        dict.fromkeys(names, 0),
        discount=0.8,
    )
    patterns = np.array(list(product([False, True], repeat=8)))
    table = random_patterns(rng, "any", 8).reshape(1, -1)
    part = MissingPart(tuple(range(8)), patterns, table, ())
    model = mm.MissMDP(mdp, mm.MissingnessFunction.from_parts(mdp.space, [part]))
    search, status = searched(model, SearchLimits(None, 0.03), precision=1e-9)
    assert (status, search.too_tied) == ("memory", True)
    assert search.upper == pytest.approx(seen_value(model), abs=0.05 * search._scale)
    assert search.lower <= search.upper
