"""The command `report`."""

import sys
import types

from experiments.report.sample_run import sample, write


def test_it_writes_the_page_and_says_where(run, tmp_path):
    write(sample(), tmp_path)
    result = run("report", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'report.html'}\n"
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_folders_of_reproduce_get_their_own_page(run, tmp_path, monkeypatch):
    page = types.ModuleType("missmdp.experiments.reproduce.page")
    page.write_page = lambda folder: folder / "index.html"
    monkeypatch.setitem(sys.modules, page.__name__, page)
    (tmp_path / "tables").mkdir()
    (tmp_path / "config.toml").write_text("")
    result = run("report", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'index.html'}\n"


def test_other_folders_are_refused_in_one_line(run, tmp_path):
    for folder, words in (
        (tmp_path, "is not a folder of `missmdp run`"),
        (tmp_path / "absent", "does not exist"),
    ):
        result = run("report", folder)
        assert result.exit_code == 2
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
    (tmp_path / "run.json").write_text("{")
    result = run("report", tmp_path)
    assert result.exit_code == 2
    assert "damaged" in result.stderr
    assert len(result.stderr.splitlines()) == 1
