"""Studies beyond the paper: what their cells do, and what becomes of them."""

from dataclasses import replace

import numpy as np
import pytest

import missmdp as mm
from missmdp.experiments.grid.cell import CellResult, run_cell
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.cells import LearningCell
from missmdp.experiments.studies.beyond import BEYOND
from missmdp.experiments.studies.catalogue import STUDIES
from missmdp.experiments.studies.certificates import CertificateCell
from missmdp.experiments.studies.check_dynamics import CHECK_DYNAMICS, DynamicsCell
from missmdp.experiments.studies.diagnosis import DIAGNOSIS, DiagnosisCell
from missmdp.experiments.studies.study import read_rows, write_study


@pytest.mark.parametrize("name", STUDIES)
def test_cells_are_there_once_and_all_have_an_expected_time(name):
    cells = STUDIES[name].cells()
    assert len({cell.name for cell in cells}) == len(cells)
    assert all(0.0 < cell.expected_seconds() < 10_000.0 for cell in cells)


def test_a_log_is_diagnosed():
    cell = DiagnosisCell("predator-smar", 2_000, 0, 5)
    truth = mm.load_benchmark("predator-smar")
    expected = mm.diagnose(mm.collect(truth, 2_000, seed=5), truth.mdp, draws=0, progress=False)
    found = run_cell(cell).found
    assert found["type"] == expected.type
    assert found["self_censoring"] == list(expected.self_censoring)
    assert found["p_values"] == {test.null: test.p_value for test in expected.tests}


def test_a_log_is_checked():
    cell = DynamicsCell("load", "by chance", "reacts", 500, 7, logs=2)
    found = run_cell(cell).found
    assert found["rejected"] == found["load"] == 2
    assert 5 < found["rows"] < 40
    finished = {cell: run_cell(cell), (right := replace(cell, truth="nothing")): run_cell(right)}
    tables = CHECK_DYNAMICS.tables(CHECK_DYNAMICS.rows(finished))
    assert (
        "| P(full load): 0.45, true 0.85 | by chance | nothing | 2 | 100.0% |"
        in tables["check-dynamics-power"]
    )
    assert "| by chance | reacts | 2 | 0 | 0.0% | 1 |" in tables["check-dynamics-level"]


def test_a_policy_is_certified():
    cell = CertificateCell("predator-smar", "AsMAR", 1_000, 2026, timeout=0.5)
    found = run_cell(cell).found
    parts = found["solver"] + found["before_planning"] + found["after_planning"]
    assert found["vacuous"] or found["epsilon"] == pytest.approx(parts, rel=1e-6)
    assert found["epsilon"] <= found["trivial"]


def test_dynamics_em_is_told_the_graph_or_finds_it():
    for learner in ("DynamicsEM", "DynamicsEM+graph"):
        found = run_cell(LearningCell("predator-smar", (learner,), 5_000, 0, 3)).found[learner]
        assert found["atv"] < 0.02


def test_tables_say_how_many_logs_there_are(tmp_path):
    result = CellResult(
        {
            "type": "MCAR",
            "self_censoring": [],
            "same_graph": True,
            "p_values": {"MCAR": 0.5, "simple MAR": 0.001},
        }
    )
    store = CellStore(tmp_path / "cells")
    for cell in DIAGNOSIS.cells():
        if cell.benchmark == "predator-mcar" and cell.run < 3 and cell.size == 10_000:
            store.write(cell, result)
    rows = write_study(DIAGNOSIS, tmp_path)
    assert read_rows([tmp_path / "tables" / "diagnosis.csv"]) == rows
    (line,) = [line for line in DIAGNOSIS.tables(rows)["diagnosis"].splitlines() if "predator-mcar" in line]
    assert line == "| predator-mcar | MCAR | 10,000 | 3 | 3 | 3 | 3 | 0 | 3 | – |"


def test_values_are_on_the_scale_of_their_run():
    ends = {"optimal": 2.0, "prior": 0.0}
    finished = {}
    for cell in BEYOND.cells():
        if cell.kind == "baseline":
            luck = np.arange(10.0)[:, None] * np.ones((1, 5))
            finished[cell] = CellResult({}, ends[cell.policy] * (1.0 + 0.01 * luck) + luck)
        elif cell.kind == "value":
            finished[cell] = CellResult({}, np.full((1, 5), 1.5 * (1.0 + 0.01 * cell.run) + cell.run))
    rows = BEYOND.rows(finished)
    table = BEYOND.tables(rows)["values"]
    assert table.count("| 0.750 ± 0.000 | 0.750 to 0.750 |") == 10


def test_a_run_that_is_not_finished_shows_its_count():
    cells = [cell for cell in BEYOND.cells() if cell.kind == "learning" and cell.size == 1_000_000]
    one = {"atv": 0.25, "weighted": 0.5, "wtv": 0.75, "parameters": 3}
    finished = {
        replace(cell): CellResult(dict.fromkeys(cell.learners, one)) for cell in cells if cell.run < 2
    }
    table = BEYOND.tables(BEYOND.rows(finished))["learning"]
    assert "| icu-smar | AMCAR |  |  | 0.2500 ± 0.0000 (2) |" in table
