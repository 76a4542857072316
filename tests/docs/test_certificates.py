"""The committed table of certificates says what certificates must say."""

import itertools
import math

import pytest

from missmdp.experiments.studies.certificates import METHODS, SIZES, cells
from missmdp.experiments.studies.study import read_rows

WORDS = ("benchmark", "learner", "method", "vacuous")


@pytest.fixture
def rows(request):
    path = request.config.rootpath / "docs" / "results" / "tables" / "certificates.csv"
    return [
        {name: value if name in WORDS else float(value) for name, value in row.items()}
        for row in read_rows([path])["certificates"]
    ]


def test_every_benchmark_and_size_is_there(rows):
    assert [(row["benchmark"], row["learner"], row["samples"]) for row in rows] == [
        (cell.benchmark, cell.learner, cell.size) for cell in cells()
    ]
    assert len(rows) == 4 * len(SIZES)


def test_the_smallest_certificate_is_given(rows):
    for row in rows:
        found = [row[method.replace(" ", "_")] for method in METHODS]
        assert row["epsilon"] == pytest.approx(min(*found, row["trivial"]), rel=1e-4)
        parts = row["solver"] + row["before_planning"] + row["after_planning"]
        assert row["vacuous"] == "True" or math.isclose(parts, row["epsilon"], rel_tol=1e-3)
        assert row["closed_form"] <= row["closed_form_okamoto"]


def test_more_data_make_learning_cost_less(rows):
    for before, after in itertools.pairwise(rows):
        if before["benchmark"] == after["benchmark"]:
            assert after["after_planning"] < before["after_planning"]
