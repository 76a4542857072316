"""The committed results: what the page says is in the tables, and the tables are those of the profile."""

import csv
import re
from pathlib import Path

import pytest

from missmdp.experiments.reproduce.config import PROFILES, ReproduceConfig
from missmdp.experiments.reproduce.findings import right_learner
from missmdp.experiments.reproduce.plan import all_cells

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
