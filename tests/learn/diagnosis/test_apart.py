"""Diagnoses of clusters put together, against the diagnosis of the whole."""

from __future__ import annotations

import pytest

import missmdp as mm
from large_models import MISSING, log_of, two_machines
from missmdp.learn.em import clusters


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ({"a": 0.4, "b": 0.3}, "MCAR"),
        ({"a": ("load", [0.2, 0.6]), "b": 0.3}, "simple MAR"),
        ({"a": ("a", [0.1, 0.4, 0.9]), "b": ("load", [0.2, 0.6])}, "MNAR"),
    ],
)
def test_clusters_say_what_the_whole_says(missing, kind, monkeypatch):
    mdp = two_machines()
    log = log_of(mdp, missing, 4000)
    whole = mm.diagnose(log, mdp, draws=0)
    monkeypatch.setattr(clusters, "_MOST_WAYS", 0)
    apart = mm.diagnose(log, mdp, draws=0)
    assert apart.type == whole.type == kind
    assert apart.self_censoring == whole.self_censoring
    assert apart.graph == whole.graph
    assert (apart.blocks, apart.rates) == (whole.blocks, whole.rates)
    assert apart.recommended == whole.recommended
    assert "2 clusters" in apart.notes[-1]
    assert [(driver.features, driver.driver) for driver in apart.drivers] == [
        (driver.features, driver.driver) for driver in whole.drivers
    ]
    rows = {row.name: row for row in whole.classes}
    mine = {row.name: row for row in apart.classes}
    # What the likelihood of the whole has besides: how features move that are always seen.
    shift = rows["MCAR"].log_likelihood - mine["MCAR"].log_likelihood
    assert mine["simple MAR"].log_likelihood + shift == pytest.approx(
        rows["simple MAR"].log_likelihood, abs=3.0
    )
    assert min(row.behind for row in apart.classes) == 0.0
    for test in apart.tests:
        assert test.features == ("a", "b")
    first = next(test for test in whole.tests if test.null == "MCAR")
    assert (apart.tests[0].null, apart.tests[0].rejected) == ("MCAR", first.rejected)
    assert [test.features for test in apart.own_tests] == [("a",), ("b",)]


def test_a_cluster_of_two_features_has_more_classes(monkeypatch):
    mdp = two_machines(watched=True)
    log = log_of(mdp, {**MISSING, "lamp": 0.3}, 3000)
    monkeypatch.setattr(clusters, "_MOST_WAYS", 0)
    found = mm.diagnose(log, mdp, draws=0)
    assert [row.name for row in found.classes] == [
        "MCAR", "simple MAR", "MAR", "no self-censoring", "all parents",
    ]  # fmt: skip
    assert [(test.null, test.alternative) for test in found.tests] == [
        ("MCAR", "simple MAR"), ("simple MAR", "no self-censoring"), ("no self-censoring", "all parents"),
    ]  # fmt: skip
    assert found.type == "MNAR"
    assert found.learner().get_params()["structure"] == found.graph
