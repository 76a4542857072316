"""The committed table of certificates: the page is made from it, and it says what certificates must say."""

import itertools
import math
import runpy

import pytest


@pytest.fixture
def script(request):
    return runpy.run_path(str(request.config.rootpath / "docs" / "make_certificates.py"))


@pytest.fixture
def rows(request, script):
    path = request.config.rootpath / "docs" / "results" / "tables" / "certificates.csv"
    return script["read"](path.read_text())


def test_the_page_is_that_of_the_table(request, script, rows):
    page = request.config.rootpath / "docs" / "results" / "certificates.md"
    assert page.read_text() == script["page"](rows)


def test_every_benchmark_and_size_is_there(script, rows):
    assert [(row["benchmark"], row["samples"]) for row in rows] == [
        (name, size) for name in script["LEARNERS"] for size in script["SIZES"]
    ]


def test_the_smallest_certificate_is_given(script, rows):
    for row in rows:
        found = [row[method.replace(" ", "_")] for method in script["METHODS"]]
        assert row["epsilon"] == pytest.approx(min(*found, row["trivial"]), rel=1e-4)
        parts = row["solver"] + row["before_planning"] + row["after_planning"]
        assert row["vacuous"] or math.isclose(parts, row["epsilon"], rel_tol=1e-3)
        assert row["closed_form"] <= row["closed_form_okamoto"]


def test_more_data_make_learning_cost_less(rows):
    for before, after in itertools.pairwise(rows):
        if before["benchmark"] == after["benchmark"]:
            assert after["after_planning"] < before["after_planning"]
