"""Traces and results of solvers: columns, gaps, CSV, pictures, sentences."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from missmdp.plan.solving import Solver
from missmdp.plan.trace import TraceBuilder
from oracles.alpha import backed_up, tiger

ROWS = [
    (0.5, 0, 0, -20.0, 200.0, 3, 2),
    (1.0, 10, 130, 0.0, 1 / 3, 5, 11),
    (2.25, 1200, 5210, 0.1, 0.1, 7, 90),
]
NAMES = ("seconds", "trials", "backups", "lower", "upper", "vectors", "points")


def trace(rows=ROWS):
    builder = TraceBuilder()
    for row in rows:
        builder.append(**dict(zip(NAMES, row, strict=True)))
    assert len(builder) == len(rows)
    return builder.build()


def result(lower, upper, *, status="timeout", rows=ROWS, seconds=60.04):
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)])
    return mm.SolveResult(
        policy=policy,
        lower=lower,
        upper=upper,
        status=status,
        trace=trace(rows),
        beliefs=sparse.csr_array((412, 2)),
        seconds=seconds,
    )


def test_rows_come_back_as_they_were_put_in():
    made = trace()
    assert made.rows() == ROWS
    assert made.rows()[1].upper == 1 / 3
    assert len(made) == 3
    assert made.trials.dtype == np.int64
    assert made.seconds.dtype == np.float64
    assert repr(made) == "Trace(3 rows, 2.2 s, value in [0.1, 0.1])"


def test_gaps_row_by_row():
    made = trace()
    assert made.gap.tolist() == [220.0, 1 / 3, 0.0]
    assert made.relative_gap.tolist() == [11.0, math.inf, 0.0]


def test_csv_has_every_digit(tmp_path):
    path = trace().to_csv(tmp_path / "trace.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(NAMES)
    assert float(rows[1]["upper"]) == 1 / 3
    assert rows[2]["backups"] == "5210"


def test_pandas_has_the_same_columns():
    frame = trace().to_pandas()
    assert list(frame.columns) == list(NAMES)
    assert frame["upper"].tolist() == [row[4] for row in ROWS]


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS[:1], [(1.0, 1, 1, 0.0, 0.0, 1, 1)], [(1.0, 1, 1, 0.0, 5.0, 1, 1)]]
)
def test_pictures_are_drawn_whatever_the_bounds(tmp_path, rows):
    first = trace(rows).plot(tmp_path / "a.svg", title="$ and _")
    assert first.read_bytes() == trace(rows).plot(tmp_path / "b.svg", title="$ and _").read_bytes()


def test_there_must_be_something_to_draw(tmp_path):
    with pytest.raises(mm.MissMDPError, match="no rows"):
        trace([]).plot(tmp_path / "a.svg")
    with pytest.raises(mm.MissMDPError, match="must end in"):
        trace().plot(tmp_path / "a.jpeg")
    assert repr(trace([])) == "Trace(0 rows)"
    assert trace([]).rows() == []


def test_gaps_of_results():
    assert result(-69.5, -69.31).gap == pytest.approx(0.19)
    assert result(-69.5, -69.31).relative_gap == pytest.approx(0.19 / 69.5)
    assert result(0.0, 1.0).relative_gap == math.inf
    assert result(0.0, 0.0).relative_gap == 0.0
    assert result(2.0, 2.0).relative_gap == 0.0


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (-69.5, -69.31, "value in [−69.50, −69.31] (gap 0.19, 0.27 %)"),
        (0.29, 0.29, "value in [0.29, 0.29] (gap 0, 0 %)"),
        (1.23456, 1.23459, "value in [1.234560, 1.234590] (gap 3e-05, 0.0024 %)"),
        (-1.005, 12345.001, "value in [−1.01, 12345.01] (gap 12,346.01)"),
        (0.0, 5.0, "value in [0.00, 5.00] (gap 5.00)"),
        (-5.0, math.inf, "value in [−5.00, inf] (gap inf)"),
    ],
)
def test_results_in_one_sentence(lower, upper, text):
    """Bounds are rounded outwards, so that what is said is true."""
    assert str(result(lower, upper)).startswith(text)


def test_what_stopped_the_search_and_how_much_was_done():
    assert str(result(1.0, 2.0)).endswith(
        "stopped by timeout after 60.0 s: 1,200 trials, 5,210 backups, 5 vectors"
    )
    assert "reached its precision after" in str(result(1.0, 2.0, status="precision"))
    assert str(result(1.0, 2.0, rows=[])).endswith("s: 5 vectors")
    text = result(1.0, 2.0).describe()
    assert "412 beliefs" in text
    assert "5 vectors in 1 component" in text
    assert "timeout" in text
    assert repr(result(1.0, 2.0)).startswith("SolveResult(value in [1.00, 2.00]")


def test_results_plot_their_trace(tmp_path):
    made = result(1.0, 2.0)
    assert made.plot(tmp_path / "a.svg").read_bytes() == made.trace.plot(tmp_path / "b.svg").read_bytes()


def test_anything_that_solves_is_a_solver():
    class Mine:
        def solve(self, model):
            return result(0.0, 1.0)

    assert isinstance(Mine(), Solver)
    assert not isinstance(object(), Solver)


def test_a_trace_that_follows_counts_on():
    both = trace().followed_by(trace())
    assert both.trials.tolist() == [0, 10, 1200, 1200, 1210, 2400]
    assert both.backups.tolist() == [0, 130, 5210, 5210, 5340, 10420]
    assert both.upper.tolist() == [200.0, 1 / 3, 0.1, 0.1, 0.1, 0.1]
    assert trace([]).followed_by(trace()).rows() == ROWS
    assert trace().followed_by(trace([])).rows() == ROWS
    assert trace().rows() == ROWS
