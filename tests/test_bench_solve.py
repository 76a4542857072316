"""The measurements of the solver: tables, picture and files from traces made by hand, and one short run."""

import math
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import solve_report
from missmdp.plan.trace import TraceBuilder


@pytest.fixture
def report():
    return solve_report


@pytest.fixture
def trace():
    return traced((0.5, 0.0, 2.0), (1.5, 1.0, 1.5), (4.0, 1.25, 1.375), (9.0, 1.25, 1.250625))


def traced(*rows):
    builder = TraceBuilder()
    for number, (seconds, lower, upper) in enumerate(rows):
        builder.append(
            seconds=seconds,
            trials=number,
            backups=10 * number,
            lower=lower,
            upper=upper,
            vectors=1000 * number,
            points=number,
        )
    return builder.build()


def test_gaps_are_those_of_the_last_row(report, trace):
    assert math.isnan(report.gap_after(trace, 0.4))
    assert report.gap_after(trace, 0.5) == math.inf
    assert report.gap_after(trace, 1.5) == 0.5
    assert report.gap_after(trace, 3.9) == 0.5
    assert report.gap_after(trace, 100.0) == pytest.approx(0.0005)


def test_times_are_those_of_the_first_row(report, trace):
    assert report.seconds_to(trace, 0.5) == 1.5
    assert report.seconds_to(trace, 0.49) == 4.0
    assert report.seconds_to(trace, 0.1) == 4.0
    assert math.isnan(report.seconds_to(trace, 0.0001))


def test_tables(report, trace):
    measured = [
        report.Measured("predator-mcar", trace, 10.0, 0.5),
        report.Measured("Tiger.pomdp", traced((0.1, -1.0, -0.75)), 2.0, 1.0),
    ]
    head, ours, tiger = report.gap_table(measured)
    assert head[:6] == ["model", "1 s", "2 s", "5 s", "6 s", "10 s"], "no times after the limit"
    assert ours[:6] == ["predator-mcar", "∞", "50", "10", "10", "0.05"]
    assert ours[6:] == ["1.250", "1.251", "0.000625", "50 %"]
    assert tiger[:6] == ["Tiger.pomdp", "25", "25", "", "", ""]
    assert tiger[6:8] == ["−1.000", "−0.750"]
    _, ours, tiger = report.time_table(measured)
    assert ours == ["predator-mcar", "9.0", "9.0", "9.0", "9.0", "42 %", "4.0", "9.0"]
    assert tiger == ["Tiger.pomdp", "–", "–", "–", "–", "", "", "0.1"]
    for text in (report.plain_tables(measured), report.markdown_tables(measured)):
        assert text.count("predator-mcar") == text.count("Tiger.pomdp") == 2
    rows = [line for line in report.markdown_tables(measured).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows[:4]}) == 1


def test_traces_come_back_from_their_file(report, trace, tmp_path):
    measured = [
        report.Measured("a", trace, 10.0, 0.75),
        report.Measured("b", traced((1 / 3, -1, 2)), 5.0, 1.0),
    ]
    back = report.read_traces(report.write_traces(measured, tmp_path / "traces.csv"))
    assert [(one.name, one.limit, one.cpu_share) for one in back] == [("a", 10.0, 0.75), ("b", 5.0, 1.0)]
    for one, other in zip(back, measured, strict=True):
        assert one.trace.rows() == other.trace.rows()
        assert one.trace.vectors.dtype == np.int64


def test_tables_go_between_the_marks_of_a_page(report, trace, tmp_path):
    measured, page = [report.Measured("a", trace, 10.0, 1.0)], tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.fill_page(measured, page)
    text = page.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\nRelative gap")
    assert text.endswith(f"\n{report.END}\nafter\n")
    assert report.markdown_tables(measured) in text
    assert "old" not in text
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="no lines"):
        report.fill_page(measured, page)


def test_the_picture_is_the_same_for_the_same_traces(report, trace, tmp_path):
    measured = [report.Measured(name, trace, 10.0, 1.0) for name in ("predator-mcar", "b prior")]
    measured.append(report.Measured("closed", traced((1.0, 1.0, 1.0)), 10.0, 1.0))
    first, second = (
        report.draw_gaps(measured, tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two")
    )
    assert first == second


@pytest.mark.usefixtures("same_matplotlib")
def test_the_page_shows_the_run_whose_traces_it_has(report, request, tmp_path):
    docs = request.config.rootpath / "docs"
    measured = report.read_traces(docs / "figures" / "solver-gap.csv")
    assert report.markdown_tables(measured) in (docs / "solving.md").read_text()
    drawn = report.draw_gaps(measured, tmp_path / "solver-gap.svg")
    assert drawn.read_bytes() == (docs / "figures" / "solver-gap.svg").read_bytes()


def test_the_references_are_benchmarks(report):
    import missmdp as mm

    assert set(report.REFERENCE) - {"predator scattered"} == set(mm.list_benchmarks()) - {
        "predator-mnar-unid"
    }


def test_a_short_run(request, tmp_path):
    file = tmp_path / "guess.pomdp"
    file.write_text(
        "discount: 0.5\nvalues: reward\nstates: 2\nactions: 2\nobservations: 1\n"
        "T: *\nidentity\nO: *\nuniform\nR: 0 : 0 : * : * 1\nR: 1 : 1 : * : * 1\n"
    )
    options = ["--seconds", "1", "--no-compilation", "--models", "predator-smar", "icu-smar prior"]
    options += ["--file", str(file), "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "solve", *options],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in ("predator-smar", "icu-smar prior", "guess.pomdp"):
        assert sum(line.startswith(f"{name} ") for line in done.stdout.splitlines()) == 3
    assert (tmp_path / "solver-gap.svg").exists()
    assert len((tmp_path / "solver-gap.csv").read_text().splitlines()) > 6
