"""The committed results: what the page says is in the tables, and the tables are those of the profile."""

import csv
import re
from pathlib import Path

import pytest

from missmdp.experiments.grid.cell import run_cell
from missmdp.experiments.reproduce.config import PROFILES, ReproduceConfig
from missmdp.experiments.reproduce.findings import right_learner
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.studies.beyond import BEYOND
from missmdp.experiments.studies.diagnosis import DIAGNOSIS
from missmdp.experiments.studies.learning import LEARNING

STEPS = 100_000


@pytest.fixture
def results():
    return Path(__file__).parents[2] / "docs" / "results"


def rows(results, name):
    with (results / "tables" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_they_are_those_of_the_profile_small(results):
    config = ReproduceConfig.load(results / "config.toml")
    assert config == PROFILES["small"]
    cells = all_cells(config)
    assert len(rows(results, "learning_runs")) == 3 * sum(cell.kind == "learning" for cell in cells)
    assert len(rows(results, "value_runs")) == sum(cell.kind == "value" for cell in cells)
    assert {row["learner"] for row in rows(results, "values")} == set(config.learners)


@pytest.mark.parametrize("benchmark", ["icu-smar", "icu-mnar-id", "predator-mcar", "predator-smar"])
def test_the_right_learner_is_nearly_optimal(results, benchmark):
    (row,) = [
        row
        for row in rows(results, "values")
        if row["benchmark"] == benchmark
        and row["learner"] == right_learner(benchmark)
        and int(row["size"]) == STEPS
    ]
    assert float(row["normalised_stderr"]) <= 0.02
    assert float(row["normalised_low"]) >= 0.93


def test_the_page_has_the_numbers_of_the_tables(results):
    text = (results / "index.md").read_text().replace("\N{NO-BREAK SPACE}", " ")
    table = text.split("<!-- values -->")[1].split("<!-- end of values -->")[0]
    shown = {
        tuple(line.strip("| ").split(" | ")[:2]): line.split(" | ")[3:] for line in table.splitlines()[3:]
    }
    for row in rows(results, "values"):
        column = PROFILES["small"].value_sizes.index(int(row["size"]))
        cell = shown[row["benchmark"], row["learner"]][column].strip(" |").replace("−", "-")
        mean, error = map(float, cell.split(" ± "))
        places = len(cell.split(" ± ")[0].partition(".")[2])
        assert (mean, error) == pytest.approx(
            (float(row["normalised"]), float(row["normalised_stderr"])), abs=0.51 * 10**-places
        )


def test_figures_that_are_shown_are_there(results):
    figures = re.findall(r"\]\((figures/[^)]+)\)", (results / "index.md").read_text())
    assert len(figures) == 4
    assert all((results / figure).stat().st_size > 10_000 for figure in figures)


CHANGED = "the same cell finds something else than what is committed: raise the version of its kind, and run it again"


@pytest.mark.parametrize("benchmark", ["icu-mnar-id", "predator-mcar"])
def test_cells_of_the_paper_still_find_what_is_committed(results, benchmark):
    (cell,) = [
        cell
        for cell in all_cells(PROFILES["small"])
        if (cell.kind, cell.benchmark) == ("learning", benchmark) and (cell.size, cell.run) == (1_000, 3)
    ]
    found = run_cell(cell).found
    for row in rows(results, "learning_runs"):
        if (row["benchmark"], row["size"], row["run"]) == (benchmark, "1000", "3"):
            assert int(row["data_seed"]) == cell.data_seed
            # All digits but the last, which may differ between machines.
            for measure in ("atv", "wtv"):
                assert float(row[measure]) == pytest.approx(found[row["learner"]][measure], rel=1e-12), (
                    CHANGED
                )


@pytest.mark.parametrize(
    ("study", "table"),
    [(BEYOND, "beyond-learning"), (DIAGNOSIS, "diagnosis"), (LEARNING, "learning-options")],
)
def test_cells_of_studies_still_find_what_is_committed(results, study, table):
    """One of the smallest datasets; all of them take hours."""
    committed = rows(results, table)
    smallest = min(int(row["steps"]) for row in committed)
    cells = [
        cell
        for cell in study.cells()
        if cell.kind in ("learning", "diagnosis", "options")
        and (cell.benchmark, cell.size, cell.run) == ("predator-smar", smallest, 0)
    ]
    found = study.rows({cell: run_cell(cell) for cell in cells})[table]
    assert found
    assert all(row in committed for row in found), CHANGED
