from collections import Counter
from dataclasses import replace

import pytest

from experiments.reproduce.pretend import TINY
from missmdp.experiments.reproduce.cells import SCALE
from missmdp.experiments.reproduce.config import PROFILES
from missmdp.experiments.reproduce.plan import all_cells


def test_there_is_a_cell_for_everything_once():
    cells = all_cells(TINY)
    assert len({cell.name for cell in cells}) == len(cells)
    # Two benchmarks: sizes × runs; sizes × runs × learners; three made once and two seeds of POMCP.
    assert Counter(cell.kind for cell in cells) == {"learning": 12, "value": 12, "baseline": 10 + 4}
    assert sum(cell.fully_observed for cell in cells if cell.kind == "baseline") == 4


def test_without_missingness_the_three_icu_benchmarks_are_one():
    cells = [cell for cell in all_cells(PROFILES["paper"]) if cell.kind == "baseline" and cell.fully_observed]
    assert {cell.benchmark for cell in cells if cell.benchmark.startswith("icu")} == {"icu-smar"}
    assert {cell.policy for cell in cells} == {"pomcp", "ppo"}


def test_a_name_changes_with_all_that_decides_the_result_and_with_nothing_else():
    before = {cell.name for cell in all_cells(TINY) if cell.kind == "value"}
    assert before == {
        cell.name
        for cell in all_cells(replace(TINY, runs=5, tree_queries=7, prior_trials=3))
        if cell.kind == "value"
    }
    for change in (
        {"seed": 1},
        {"max_trials": 3},
        {"episodes": 60},
        {"precision": 0.5},
        {"solve_timeout": 1.0},
    ):
        after = {cell.name for cell in all_cells(replace(TINY, **change)) if cell.kind == "value"}
        assert not before & after


def test_baselines_have_no_more_episodes_than_what_they_are_paired_with():
    few = replace(TINY, episodes=15, baselines=("prior", "optimal", "pomcp", "ppo"), ppo_episodes=5)
    counts = {
        cell.policy: cell.episodes
        for cell in all_cells(few)
        if cell.kind == "baseline" and cell.policy in ("pomcp", "ppo")
    }
    assert counts == {"pomcp": 15, "ppo": 5}


def test_seeds_come_from_keys():
    cells = all_cells(TINY)
    by_data = Counter(
        (cell.data_seed, cell.benchmark, cell.size, cell.run) for cell in cells if cell.kind != "baseline"
    )
    # A dataset is that of its benchmark, size and run, for whoever uses it.
    assert len({seed for seed, *_ in by_data}) == len(by_data) == 2 * 2 * 3
    seeds = {(cell.benchmark, cell.run): cell.evaluation_seed for cell in cells if cell.kind == "value"}
    assert len(set(seeds.values())) == 4
    assert not set(seeds.values()) & {cell.data_seed for cell in cells if cell.kind != "baseline"}
    # Whatever is compared meets the same luck.
    for cell in cells:
        if cell.kind == "baseline":
            runs = range(2) if cell.policy in SCALE else [cell.run]
            assert cell.evaluation_seeds == tuple(seeds[cell.benchmark, run] for run in runs)


@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_has_an_expected_time(name):
    assert all(0.0 < cell.expected_seconds() < 10_000.0 for cell in all_cells(PROFILES[name]))
