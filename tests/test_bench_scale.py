"""The measurements of how cost grows: tables and picture from cells made by hand, and one cell measured."""

import json
import subprocess
import sys

import pytest

from benchmarks import bench_scale
from benchmarks.bench_scale import Cell
from benchmarks.scale_cell import STEPS, levels

CELLS = [
    Cell("fleet-2", 18, "solve", 1.25, 2.0, 200.4, "[40.0, 40.1], gap 0.1"),
    Cell("fleet-8", 13122, "solve", 61.0, 63.0, 2500.0, "[-20.0, -15.0], gap 5.0"),
    Cell("fleet-8", 13122, "EM", None, None, 300.0, "too large"),
    Cell("levels-3", 18, "EM", 0.5, 0.5, 170.0, "DynamicsEM"),
]


def test_tables_say_what_failed():
    text = bench_scale.markdown_tables(CELLS)
    assert "| `fleet-8` | 13,122 | 61 s, 2,500 MB | – |" in text
    assert "| `levels-3` | 18 |  | 0.5 s, 170 MB |" in text
    assert "| `fleet-2` | [40.0, 40.1], gap 0.1 |" in text
    assert "- `fleet-8`, EM: too large" in text


def test_an_earlier_run_is_shown_again(tmp_path):
    cells, page = tmp_path / "cells.json", tmp_path / "page.md"
    cells.write_text(json.dumps([cell._asdict() for cell in CELLS]))
    page.write_text("before\n<!-- measured -->\nold\n<!-- end of measured -->\nafter\n")
    bench_scale.run(["--cells", str(cells), "--output", str(tmp_path), "--page", str(page)])
    assert (tmp_path / "scale.svg").read_text().startswith("<?xml")
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text and "13,122" in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="no lines"):
        bench_scale.fill_page(CELLS, page)


def test_one_cell():
    command = [sys.executable, "-m", "benchmarks.scale_cell", "levels-3", "collect", "30", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    assert record["states"] == 18
    assert record["said"] == "10,000 steps"
    assert record["memory"] > 10.0


def test_two_machines_with_many_levels():
    model = levels(7)
    assert model.n_states == 2 * 7**2
    assert model.mdp.reachable.all()
    assert model.missingness.can_go_missing == ("first", "second")
    assert set(STEPS) == {"collect", "count", "EM", "diagnose", "solve", "evaluate", "certify"}
