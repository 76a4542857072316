"""The study of dynamics learned from the log alone: distances, rewards, cells, tables and the page."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import missmdp as mm
from missmdp.experiments.grid.cell import CellResult, run_cell
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.cells import BaselineCell
from missmdp.experiments.studies.beyond import BEYOND
from missmdp.experiments.studies.learned_dynamics import DYNAMICS, OTHERS, OWN
from missmdp.experiments.studies.learned_dynamics_cells import (
    ImputationCell,
    LearnedDynamicsCell,
    log_alone,
    missingness_on,
    reward_of,
    transition_distance,
)

SIZES = {"x": range(3), "y": range(2)}


def two_mdps():
    """Return an MDP over five of six states, the last of them terminal, and one over all six in another order."""
    random = np.random.default_rng(11)
    some = [(0, 0), (0, 1), (1, 0), (2, 1), (2, 0)]
    every = [(2, 1), (0, 0), (1, 1), (1, 0), (2, 0), (0, 1)]

    def mdp(states):
        tables = {
            (state, action): dict(zip(states, random.dirichlet(np.ones(len(states))), strict=True))
            for state in states
            for action in "ab"
        }
        return mm.FactoredMDP(
            features=SIZES,
            actions=("a", "b"),
            transition=lambda state, action: tables[tuple(state), action],
            reward=lambda state, action: 0.0,
            initial=dict.fromkeys(states, 1.0 / len(states)),
            terminal=lambda state: tuple(state) == (2, 0),
            discount=0.9,
        ), tables

    return mdp(some), mdp(every)


def test_total_variation_of_transitions_is_that_of_dictionaries():
    (truth, tables), (learned, others) = two_mdps()
    share = np.random.default_rng(12).dirichlet(np.ones(5))
    expected = total = 0.0
    for state, weight in zip(map(tuple, truth.space.states), share, strict=True):
        if state == (2, 0):
            continue
        total += weight
        for action in "ab":
            mine, theirs = others[state, action], tables[state, action]
            apart = sum(abs(mine[after] - theirs.get(after, 0.0)) for after in mine)
            expected += 0.5 * weight * apart / 2.0
    assert learned.n_states == 6
    assert truth.n_states == 5
    assert transition_distance(learned, truth, share) == pytest.approx(expected / total, rel=1e-12)
    assert transition_distance(truth, truth, share) == 0.0


def test_total_variation_of_missingness_is_that_of_patterns():
    (truth, _), (learned, _) = two_mdps()
    model = mm.MissMDP(truth, mm.MissingnessFunction.independent(truth, {"x": lambda s: 0.2 + 0.2 * s.y}))
    own = mm.MissingnessFunction.independent(
        learned, {"x": lambda s: 0.1 + 0.3 * s.y, "y": lambda s: 0.1 * s.x}
    )
    expected = []
    for x, y in map(tuple, truth.space.states):
        p, q, r = 0.2 + 0.2 * y, 0.1 + 0.3 * y, 0.1 * x
        apart = abs(p - q * (1 - r)) + abs((1 - p) - (1 - q) * (1 - r)) + q * r + (1 - q) * r
        expected.append(0.5 * apart)
    found = mm.total_variation(missingness_on(own, model), model)
    assert found.average == pytest.approx(np.mean(expected), rel=1e-12)


@pytest.mark.parametrize("benchmark", mm.list_benchmarks())
def test_rewards_of_steps_add_up_to_those_of_the_benchmark(benchmark):
    mdp = mm.load_benchmark(benchmark).mdp
    reward, states = reward_of(benchmark), mdp.space.states
    random = np.random.default_rng(13)
    for s in random.permutation(np.flatnonzero(mdp.reachable & ~mdp.terminal))[:60].tolist():
        for a, action in enumerate(mdp.actions):
            row = mdp.transition[a][[s]].tocoo()
            steps = zip(row.col.tolist(), row.data.tolist(), strict=True)
            expected = sum(p * reward(states[s], action, states[after]) for after, p in steps)
            assert expected == pytest.approx(mdp.reward[s, a], abs=1e-12)


@pytest.mark.parametrize("benchmark", ["icu-smar", "predator-mcar"])
def test_the_first_reward_is_that_of_the_benchmark(benchmark):
    mdp = mm.load_benchmark(benchmark).mdp
    reward, states = reward_of(benchmark), mdp.space.states
    (start,) = np.flatnonzero(mdp.initial)[:1]
    for a, action in enumerate(mdp.actions):
        row = mdp.transition[a][[start]].tocoo()
        steps = zip(row.col.tolist(), row.data.tolist(), strict=True)
        expected = sum(p * reward(states[start], action, states[after]) for after, p in steps)
        assert expected == pytest.approx(mdp.reward[start, a], abs=1e-12)


def test_learners_get_the_log_without_its_model():
    log, full = log_alone("icu-smar", 1_000, 1), mm.collect(mm.load_benchmark("icu-smar"), 1_000, seed=1)
    assert log.mdp is None
    assert log.states is None
    assert np.array_equal(log.observations, full.observations)
    assert np.array_equal(log.terminated, full.terminated)


@pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")
def test_dynamics_are_learned_solved_and_evaluated():
    cell = LearnedDynamicsCell("predator-smar", 2_000, 0, 1, 2, 40, precision=1e-2, max_trials=2)
    result = run_cell(cell)
    assert result.estimates.shape == cell.estimates_shape()
    truth = mm.load_benchmark("predator-smar")
    learner = mm.JointEM(discount=0.95, reward=reward_of("predator-smar"), progress=False)
    learner.fit(log_alone("predator-smar", 2_000, 1))
    true = mm.log_likelihood(mm.collect(truth, 2_000, seed=1), truth).total
    assert result.found["gain"] == pytest.approx(learner.log_likelihood_ - true, rel=1e-6)
    assert 0.0 < result.found["tv"] < 1.0
    assert 0.0 <= result.found["atv"] < 0.2


@pytest.mark.parametrize("method", ["complete", "last", "mode", "multiple"])
@pytest.mark.parametrize("planner", ["counted", "fitted"])
def test_a_completed_log_makes_a_policy(method, planner):
    if method == "multiple" or planner == "fitted":
        pytest.importorskip("sklearn")
    cell = ImputationCell("icu-smar", method, planner, 1_000, 0, 1, 2, 20)
    first, second = run_cell(cell), run_cell(cell)
    assert first.estimates.shape == (1, 20)
    assert np.array_equal(first.estimates, second.estimates)


def test_the_ends_of_the_scale_are_those_of_the_other_study():
    ours = {cell.key for cell in DYNAMICS.cells() if isinstance(cell, BaselineCell)}
    theirs = {cell.key for cell in BEYOND.cells() if isinstance(cell, BaselineCell)}
    assert len(ours) == 12
    assert theirs < ours


LEARNED = {
    "tv": 0.25,
    "atv": 0.125,
    "gain": -3.0,
    "parameters": 7,
    "converged": True,
    "fit_seconds": 2.0,
    "lower": 0.0,
    "upper": 1.0,
    "status": "converged",
    "returns": 0.0,
    "impossible": 0,
    "decisions": 1,
}


def made_up(imputed):
    """Return results where the optimal policy earns 2, the prior's 0, JointEM 1.5 and others what is given."""
    finished = {}
    for cell in DYNAMICS.cells():
        if isinstance(cell, BaselineCell):
            luck = np.tile(np.arange(10.0)[:, None], (1, 4000))
            end = {
                "lower": None,
                "upper": None,
                "status": None,
                "returns": 0.0,
                "impossible": 0,
                "decisions": 1,
            }
            finished[cell] = CellResult(end, luck + 2.0 * (cell.policy == "optimal"))
        elif cell.run < 12:
            luck = np.array(cell.seeds, dtype=float)[:, None] - 9_000_000.0
            found = {"returns": 0.0, "impossible": 0, "decisions": 1}
            if isinstance(cell, LearnedDynamicsCell):
                found, value = LEARNED, 1.5
            else:
                value = imputed(cell)
            finished[cell] = CellResult(found, np.tile(value + luck, (1, 4000)))
    return finished


def lines(table, benchmark):
    return [line for line in table.splitlines() if line.startswith(f"| {benchmark} ")]


def test_tables_have_means_on_the_scale_of_their_runs():
    tables = DYNAMICS.tables(DYNAMICS.rows(made_up(lambda cell: -1.0)))
    assert lines(tables["dynamics"], "icu-smar") == [
        f"| icu-smar | {steps} | {logs} | 0.2500 ± 0.0000 | 0.1250 ± 0.0000 | −3 ± 0 | 0.750 ± 0.000 | 2 |"
        for steps, logs in (("10,000", 12), ("100,000", 12), ("1,000,000", 5))
    ]
    assert lines(tables["imputation"], OWN)[0].count("0.750 ± 0.000") == 6
    for other in OTHERS.values():
        assert lines(tables["imputation"], other)[0].count("−0.500 ± 0.000") == 6


def test_policies_are_compared_by_log():
    """Better by 1, worse by 0.5, and by 0.1 ± more than that in some logs."""

    def value(cell):
        if (cell.method, cell.planner) == ("mode", "counted"):
            return 2.0 if cell.benchmark == "icu-smar" else 0.5
        if cell.method == "last":
            return 0.9 if cell.run == 0 else 1.4
        return 0.5

    table = DYNAMICS.tables(DYNAMICS.rows(made_up(value)))["verdict"]
    (worse,) = lines(table, "icu-smar")
    assert worse == "| icu-smar | 5 | commonest value, counted T | −0.50 ± 0.00 | 5 | 1 | no |"
    (better,) = lines(table, "icu-mnar-id")
    # By 0.6, 0.1, 0.1, 0.1, 0.1: 0.2 ± 0.1, which is not significant with four degrees of freedom.
    assert better == "| icu-mnar-id | 5 | last observation, counted T | 0.20 ± 0.10 | 6 | 0 | yes |"


def test_nothing_is_said_of_what_was_not_done():
    cell = next(cell for cell in DYNAMICS.cells() if isinstance(cell, LearnedDynamicsCell))
    tables = DYNAMICS.tables(DYNAMICS.rows({cell: CellResult(LEARNED, np.zeros((1, 4000)))}))
    assert list(tables) == ["dynamics"]
    assert tables["dynamics"].count("\n") == 2
    assert DYNAMICS.tables({}) == {}


def test_the_page_is_made_with_tables_and_figure(tmp_path, monkeypatch):
    store = CellStore(tmp_path / "cells")
    for cell, result in made_up(lambda cell: 0.0).items():
        store.write(cell, result)
    path = Path(__file__).parents[3] / "docs" / "make.py"
    spec = importlib.util.spec_from_file_location("docs_make", path)
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    results = tmp_path / "results"
    (results / "tables").mkdir(parents=True)
    monkeypatch.setattr(make, "RESULTS", results)
    monkeypatch.setattr(make, "FIGURES_OF_RESULTS", results / "figures")
    monkeypatch.setattr(make, "STUDIES", {"dynamics": DYNAMICS})
    make.make_results(tmp_path)
    page = (results / "dynamics.md").read_text()
    assert page.startswith("# Dynamics learned from the log alone")
    for mark in ("dynamics", "imputation", "verdict"):
        assert f"<!-- {mark} -->\n| " in page
    assert "<svg" in (results / "figures" / "dynamics.svg").read_text()
    again = page.replace("says", "tells")
    (results / "dynamics.md").write_text(again)
    make.make_results(tmp_path)
    assert (results / "dynamics.md").read_text() == again
