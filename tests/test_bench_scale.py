"""The measurements of how cost grows: tables and picture from cells made by hand, and one cell measured."""

import json
import subprocess
import sys

import pytest

from benchmarks import bench_scale, scale_report
from benchmarks.scale_cell import STEPS, levels
from benchmarks.scale_report import Cell

CELLS = [
    Cell("fleet-2", 18, "solve", 20.0, 1.25, 2.0, 200.4, "[40.00, 40.10]"),
    Cell("fleet-8", 13122, "solve", 20.0, 19.5, 63.0, 2500.0, "[-20.00, -15.00]"),
    Cell("fleet-8", 13122, "EM", 20.0, None, None, 300.0, "too large"),
    Cell("fleet-8", 13122, "count", 20.0, None, None, None, "ended by the limit of time"),
    Cell("levels-3", 18, "EM", 20.0, 0.5, 0.5, 170.0, "DynamicsEM"),
]


def test_tables_say_what_was_not_done():
    text = scale_report.markdown_tables(CELLS)
    assert "| `fleet-8` | 13,122 | 20 | – | > 20 |" in text
    assert "| `fleet-8` | 13,122 | 2,500 | – | – |" in text
    assert "| `levels-3` | 18 |  | 0.5 |  |" in text
    assert "| `fleet-2` | [40.00, 40.10] | 0.10 |" in text
    assert "- `fleet-8`, EM: too large" in text


def test_growth_is_the_slope_in_logarithms():
    sizes = [10, 100, 1_000, 10_000, 100_000]
    cells = [
        Cell(f"levels-{n}", n, "EM", 20.0, 5e-4 * n**0.8, 1.0, 100.0, "")
        for n in sizes[1:4]  # from 0.02 s to 0.8 s: what is over in no time does not count
    ]
    assert scale_report.markdown_tables(cells).splitlines()[-1] == "| levels |  |"
    cells += [Cell("levels-5", 100_000, "EM", 20.0, 5e-4 * 100_000**0.8, 1.0, 100.0, "")]
    assert scale_report.markdown_tables(cells).splitlines()[-1] == "| levels | 0.8 |"
    cells += [Cell("levels-9", 10**7, "EM", 20.0, 20.0, 1.0, 100.0, "stopped at the limit")]
    assert scale_report.markdown_tables(cells).splitlines()[-1] == "| levels | 0.8 |"


def test_an_earlier_run_is_shown_again(tmp_path):
    cells, page = tmp_path / "cells.csv", tmp_path / "page.md"
    scale_report.write_cells(CELLS, cells)
    assert scale_report.read_cells(cells) == CELLS
    page.write_text("before\n<!-- measured -->\nold\n<!-- end of measured -->\nafter\n")
    bench_scale.run(["--cells", str(cells), "--page", str(page)])
    assert (tmp_path / "figures" / "scale.svg").read_text().startswith("<?xml")
    assert scale_report.read_cells(tmp_path / "tables" / "scale.csv") == CELLS
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "13,122" in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="no lines"):
        scale_report.fill_page(CELLS, page)


def test_an_interrupted_run_keeps_its_cells(tmp_path, monkeypatch):
    measured = []

    def made(todo, options, jobs):
        for model, step in todo:
            if (model, step) == stop_at:
                raise KeyboardInterrupt
            measured.append((model, step))
            yield Cell(model, 18, step, options.seconds, 1.0, 1.0, 1.0, "made")

    monkeypatch.setattr(bench_scale, "_run_cells", made)
    options = ["--models", "levels-3", "levels-4", "--steps", "collect", "count", "--output", str(tmp_path)]
    stop_at = "levels-4", "collect"
    with pytest.raises(KeyboardInterrupt):
        bench_scale.run(options)
    stop_at, measured = None, []
    bench_scale.run(options)
    assert [key for key in measured if key[0] != "fleet-2"] == [
        ("levels-4", "collect"),
        ("levels-4", "count"),
    ]
    assert not (tmp_path / "unfinished.csv").exists()
    cells = scale_report.read_cells(tmp_path / "scale.csv")
    assert [cell.model for cell in cells] == ["levels-3", "levels-3", "levels-4", "levels-4"]
    measured = []
    bench_scale.run(options)
    assert len([key for key in measured if key[0] != "fleet-2"]) == 4  # a finished run is measured anew


def test_one_cell():
    command = [sys.executable, "-m", "benchmarks.scale_cell", "levels-3", "collect", "30", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    record = json.loads(done.stdout.splitlines()[-1])
    assert record["states"] == 18
    assert record["said"] == "10,000 steps"
    assert record["memory"] > 10.0


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of CPU seconds is set on Linux")
def test_a_cell_that_takes_too_long_is_ended(tmp_path):
    bench_scale.run(
        [
            "--models",
            "levels-100",
            "--steps",
            "certify",
            "--seconds",
            "0",
            "--output",
            str(tmp_path),
            "--jobs",
            "1",
        ]
    )
    (cell,) = scale_report.read_cells(tmp_path / "scale.csv")
    assert (cell.states, cell.seconds, cell.said) == (20_000, None, "ended by the limit of time")


def test_two_machines_with_many_levels():
    model = levels(7)
    assert model.n_states == 2 * 7**2
    assert model.mdp.reachable.all()
    assert model.missingness.can_go_missing == ("first", "second")
    assert set(STEPS) == {"collect", "count", "EM", "diagnose", "solve", "evaluate", "certify"}
