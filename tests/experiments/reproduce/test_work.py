"""Cells against the library called by hand."""

from dataclasses import replace

import numpy as np
import pytest

import missmdp as mm
from missmdp.experiments.baselines import make_baseline
from missmdp.experiments.grid.cell import run_cell
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.plan import all_cells

CONFIG = ReproduceConfig(
    benchmarks=("predator-smar",),
    sizes=(500,),
    runs=2,
    value_sizes=(500,),
    value_runs=2,
    episodes=40,
    max_trials=2,
    optimal_trials=2,
    prior_trials=1,
    solve_timeout=None,
    baseline_timeout=None,
    baseline_seeds=1,
    pomcp_episodes=3,
    tree_queries=20,
    ppo_steps=2_048,
    ppo_episodes=30,
)


def cell_of(config=CONFIG, **wanted):
    (found,) = [
        cell
        for cell in all_cells(config)
        if all(getattr(cell, name, None) == value for name, value in wanted.items())
    ]
    return found


@pytest.fixture(scope="module")
def truth():
    return mm.load_benchmark("predator-smar")


def learned(learner, truth, cell):
    return learner().fit(mm.collect(truth, 500, seed=cell.data_seed, progress=False))


@pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")
def test_learning(truth):
    cell = cell_of(kind="learning", run=1)
    found = run_cell(cell).found
    for name, learner in {"AMCAR": mm.AMCAR, "AsMAR": mm.AsMAR, "AIMI": mm.AIMI}.items():
        fitted = learned(learner, truth, cell)
        distance = mm.total_variation(fitted.missingness_, truth.missingness)
        assert found[name] == {
            "atv": distance.average,
            "weighted": mm.total_variation(fitted.missingness_, truth).weighted,
            "wtv": distance.worst,
            "parameters": fitted.n_parameters_,
        }


def test_the_value_of_a_learned_policy_is_measured_in_the_truth(truth):
    cell = cell_of(kind="value", policy="AsMAR", run=1)
    result = run_cell(cell)
    solved = mm.Sarsop(max_trials=2, progress=False).solve(
        truth.with_missingness(learned(mm.AsMAR, truth, cell).missingness_)
    )
    value = mm.evaluate(solved.policy, truth, 40, cell.evaluation_seed, control_variate=True, progress=False)
    assert result.found["lower"] == solved.lower
    assert result.found["status"] == "trials"
    np.testing.assert_array_equal(result.estimates, [value.estimates])


def test_the_ends_of_the_scale_meet_the_luck_of_every_run(truth):
    cell = cell_of(kind="baseline", policy="optimal")
    result = run_cell(cell)
    policy = mm.Sarsop(max_trials=2, progress=False).solve(truth).policy
    seeds = [cell_of(kind="value", policy="AIMI", run=run).evaluation_seed for run in range(2)]
    values = [mm.evaluate(policy, truth, 40, seed, control_variate=True, progress=False) for seed in seeds]
    np.testing.assert_array_equal(result.estimates, [value.estimates for value in values])


@pytest.mark.parametrize("fully_observed", [False, True])
def test_pomcp(truth, fully_observed):
    cell = cell_of(kind="baseline", policy="pomcp", fully_observed=fully_observed)
    model = mm.fully_observed_model(truth) if fully_observed else truth
    policy = mm.POMCP(tree_queries=20).solve(model).policy
    value = mm.evaluate(policy, model, 3, cell.evaluation_seeds[0], control_variate=True, progress=False)
    np.testing.assert_array_equal(run_cell(cell).estimates, [value.estimates])


def test_random_needs_no_solver(truth):
    cell = cell_of(kind="baseline", policy="random")
    value = mm.evaluate(None, truth, 40, cell.evaluation_seeds[1], control_variate=True, progress=False)
    np.testing.assert_array_equal(run_cell(cell).estimates[1], value.estimates)


def test_an_interrupted_search_is_no_result(monkeypatch):
    from missmdp.experiments.reproduce import cells

    def interrupted(*arguments, **options):
        return replace(make_baseline(*arguments, **options), status="interrupted")

    monkeypatch.setattr(cells, "make_baseline", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell_of(kind="baseline", policy="random"))


@pytest.mark.parametrize("policy", ["ppo", "ppo-memory"])
def test_ppo_trains_to_the_same_policy_again_for_real(policy):
    pytest.importorskip("stable_baselines3")
    cell = cell_of(kind="baseline", policy=policy, fully_observed=False)
    first, second = run_cell(cell), run_cell(cell)
    assert first.estimates.shape == (1, 30)
    np.testing.assert_array_equal(first.estimates, second.estimates)
