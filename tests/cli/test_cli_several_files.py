"""Commands that write several files: what can be written is, and the error names what cannot."""

import pytest

from missmdp.errors import MissMDPError
from missmdp.model import archive
from missmdp.model.mgraph import MissingnessGraph


def refuse(path, *content):
    raise MissMDPError(f"{path}: cannot be written (No space left on device)")


@pytest.fixture
def log(run, tmp_path):
    run("collect", "example-1", "--steps", 200, "-o", tmp_path / "log.csv")
    return tmp_path / "log.csv"


def ended(result, failed):
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [f"Error: {failed}: cannot be written (No space left on device)"]


def test_learn_writes_the_table_though_the_model_cannot_be(run, log, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "write_atomically", refuse)
    model, table = tmp_path / "o.mmdp", tmp_path / "other.csv"
    result = run("learn", "example-1", log, "-o", model, "-o", table)
    ended(result, model)
    assert "estimate" in table.read_text()
    assert f"Written to {table}" in result.stdout
    assert f"Written to {model}" not in result.stdout


def test_diagnose_writes_the_rest_though_the_picture_cannot_be(run, log, tmp_path, monkeypatch):
    monkeypatch.setattr(MissingnessGraph, "draw", lambda graph, path, title: refuse(path))
    picture, found = tmp_path / "g.svg", tmp_path / "found.json"
    result = run("diagnose", "example-1", log, "-o", picture, "-o", found, "-o", tmp_path / "g.dot")
    ended(result, picture)
    assert found.is_file()
    assert (tmp_path / "g.dot").is_file()


def test_solve_writes_the_trace_though_the_policy_cannot_be(run, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "write_atomically", refuse)
    policy, trace = tmp_path / "p.mmpolicy", tmp_path / "t.csv"
    ended(run("solve", "example-1", "-o", policy, "--trace", trace), policy)
    assert trace.is_file()
