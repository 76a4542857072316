"""The command `report`."""

import copy
import json
import sys
import types
from pathlib import Path

import pytest

from experiments.report.sample_run import sample, write

DOCS = Path(__file__).parents[2] / "docs"


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


def test_the_schema_is_printed_and_published(run):
    result = run("report", "--schema")
    assert result.exit_code == 0
    schema = json.loads(result.stdout)
    assert schema["$defs"]["RunRecord"]["required"][:3] == ["kind", "format", "version"]
    assert schema["$defs"]["RunRecord"]["additionalProperties"] is False
    assert (DOCS / "run-schema.json").read_text(encoding="utf-8") == result.stdout, (
        "write it again: missmdp report --schema > docs/run-schema.json"
    )


def places(value, path=()):
    """Yield the path of every field of objects in a run, one of each kind: rows of one list are alike."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value[:1]):
            yield from places(item, (*path, i))


def changed(run, path, change):
    """Return a run in which one field is gone, of another type, or has a stranger beside it."""
    run = copy.deepcopy(run)
    place = run
    for key in path[:-1]:
        place = place[key]
    if change == "missing":
        del place[path[-1]]
    elif change == "extra":
        place["stranger"] = 1
    else:
        place[path[-1]] = change
    return run


OPEN = {"table", "timings", "missing_rates", "given", "terms", "alternatives"}
"""Mappings from any name: nothing is missing from them, and nothing too much in them."""
ANY = ("settings", "table")
"""How a table was read may be anything."""


def damages():
    """Yield runs with one fault, and what the message must name."""
    run = sample()
    for path in places(run):
        if path[:2] == ANY and len(path) > 2:
            continue
        inside = any(key in OPEN for key in path[:-1])
        name = next(key for key in reversed(path) if isinstance(key, str))
        wrong = ["odd"] if isinstance(value_at(run, path), dict) or path == ANY else {"odd": []}
        for change in ([] if inside else ["missing", "extra"]) + [wrong]:
            named = "stranger" if change == "extra" else "" if inside else name
            yield changed(run, path, change), named


def value_at(run, path):
    for key in path:
        run = run[key]
    return run


def test_whatever_is_wrong_in_a_run_is_told_in_one_line_that_names_the_field(run, tmp_path):
    cases = list(damages())
    assert len(cases) > 600
    for damaged, named in cases:
        write(damaged, tmp_path)
        result = run("report", tmp_path)
        (line,) = result.stderr.splitlines()
        assert result.exit_code == 2, line
        assert line.startswith(f"Error: {tmp_path / 'run.json'}: "), line
        if damaged.get("kind") == "missmdp run" and "format" in damaged:
            assert named in line.removeprefix(f"Error: {tmp_path}"), line
        assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run["recommended"].update(label="ppo"), "recommended.label: there is no learner 'ppo'"),
        (lambda run: run.update(learners=[]), "recommended.label: there is no learner 'asmar'"),
        (lambda run: run.update(values=[]), "values: there is no world 'truth' or 'asmar'"),
        (
            lambda run: run["values"][0].update(rows=[]),
            "values: there is no row of 'asmar' in the world 'truth'",
        ),
        (
            lambda run: run["values"][0]["rows"][2].update(value="high"),
            "values[0].rows[2].value: expected a number, got a string",
        ),
    ],
)
def test_what_does_not_go_together_is_told(run, tmp_path, change, message):
    damaged = sample()
    change(damaged)
    write(damaged, tmp_path)
    result = run("report", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_mistake_of_ours_is_not_called_a_damaged_file(run, tmp_path, monkeypatch):
    from missmdp.experiments.report import write as writing

    def fail(record):
        return {}["values"]

    monkeypatch.setattr(writing, "report_page", fail)
    result = run("report", write(sample(), tmp_path))
    assert result.exit_code == 70
    assert "unexpected KeyError" in result.stderr
