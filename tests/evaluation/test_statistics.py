"""Standard errors, Student's intervals, and how numbers are said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from missmdp.evaluation.value import standard_error, student_interval
from missmdp.words import decimals, interval_text, rounded_up, signed


def evaluation(
    returns, *, controlled=None, seed=0, events=None, terminated=None, status="episodes", model=None
):
    """Return a made-up evaluation."""
    returns = np.asarray(returns, dtype=float)
    return mm.Evaluation(
        returns=returns,
        decisions=np.full(len(returns), 7),
        terminated=np.zeros(len(returns), bool) if terminated is None else np.asarray(terminated),
        events={} if events is None else events,
        horizon=10,
        truncation=1e-3,
        seed=seed,
        status=status,
        seconds=0.1,
        controlled=None if controlled is None else np.asarray(controlled, dtype=float),
        model=model,
    )


def test_the_standard_error_by_hand():
    assert standard_error(np.array([1.0, 2.0, 3.0, 6.0])) == pytest.approx(math.sqrt(14 / 3 / 4))
    assert math.isnan(standard_error(np.array([1.0])))
    assert math.isnan(standard_error(np.array([])))
    assert standard_error(np.array([2.0, 2.0])) == 0.0


def test_students_interval_by_the_table():
    """t(0.975; 9) = 2.262157, t(0.95; 1) = 6.313752."""
    assert student_interval(1.0, 2.0, 10, 0.95) == pytest.approx(
        (1 - 2 * 2.262157, 1 + 2 * 2.262157), abs=1e-5
    )
    assert student_interval(0.0, 1.0, 2, 0.9) == pytest.approx((-6.313752, 6.313752), abs=1e-5)
    assert student_interval(1.0, math.nan, 1, 0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize("count", [2, 4, 12])
def test_students_interval_covers_what_it_says(count):
    """Of 4,000 intervals, five standard errors around 90 % cover: fails by chance with 6e-7."""
    rng = np.random.default_rng(count)
    covered = 0
    for sample in rng.normal(3.0, 2.0, size=(4000, count)):
        low, high = evaluation(sample).interval(0.9)
        covered += low <= 3.0 <= high
    assert abs(covered / 4000 - 0.9) <= 5 * math.sqrt(0.9 * 0.1 / 4000)


def test_an_evaluation_says_what_its_returns_say():
    returns = [1.0, -2.0, 4.0, 0.5, 1.5]
    found = evaluation(returns)
    assert found.mean == pytest.approx(1.0)
    assert found.std == pytest.approx(np.std(returns, ddof=1))
    assert found.stderr == pytest.approx(found.std / math.sqrt(5))
    assert found.interval(0.8) == pytest.approx(
        stats.t.interval(0.8, 4, loc=found.mean, scale=found.stderr), rel=1e-12
    )
    assert found.interval() == found.interval(0.95)
    assert found.quantile(0.5) == 1.0
    assert isinstance(found.quantile(0.5), float)
    assert found.quantile([0.0, 1.0]).tolist() == [-2.0, 4.0]
    assert found.quantiles == pytest.approx({0.05: -1.5, 0.25: 0.5, 0.5: 1.0, 0.75: 1.5, 0.95: 3.5})
    assert found.episodes == 5
    assert found.impossible == 0


def test_controlled_estimates_are_averaged_and_returns_are_kept():
    found = evaluation([0.0, 10.0, 5.0], controlled=[4.0, 5.0, 6.0])
    assert found.mean == 5.0
    assert found.stderr == pytest.approx(1 / math.sqrt(3))
    assert found.std == pytest.approx(5.0), "of the returns"
    assert found.quantile(1.0) == 10.0
    assert found.estimates.tolist() == [4.0, 5.0, 6.0]


@pytest.mark.parametrize(("value", "text"), [(0.00061, "0.0007"), (123.0, "200"), (0.0, "0"), (1.0, "1")])
def test_bounds_are_rounded_up(value, text):
    assert rounded_up(value) == text


def test_one_episode_is_no_evidence():
    found = evaluation([2.0])
    assert found.mean == 2.0
    assert math.isnan(found.stderr)
    assert math.isnan(found.std)
    assert found.interval() == (-math.inf, math.inf)
    assert str(found).startswith("2.0000 ± nan (1 episode;")
    assert "95 % interval [−∞, ∞]" in found.describe()


def test_numbers_are_said_with_a_minus_and_the_digits_that_count():
    assert [decimals(e) for e in (12.0, 0.5, 0.0123, 3e-5, 1e-30, 0.0, math.nan, math.inf)] == [
        2, 2, 3, 6, 12, 4, 4, 4
    ]  # fmt: skip
    assert signed(-1.256, 2) == "−1.26"
    assert signed(3.0, 1) == "3.0"
    assert signed(-0.0, 2) == "0.00"
    assert signed(-0.001, 2) == "0.00", "zero has no sign"
    assert interval_text((-1.5, 2.25), 2) == "[−1.50, 2.25]"
    assert interval_text((-math.inf, math.inf), 2) == "[−∞, ∞]"


def test_an_evaluation_is_described_in_words():
    found = evaluation(
        [-1.0, -2.0, -4.0, -8.0],
        seed=42,
        events={"admitted": 1234, "restarted": 0, "ignored": 2},
        terminated=[True, False, False, False],
        status="interrupted",
    )
    assert str(found) == "−3.75 ± 1.55 (4 episodes; 95 % interval [−8.68, 1.18])"
    assert repr(found) == f"Evaluation({found})"
    text = found.describe()
    assert text.splitlines() == [
        "value         −3.75   standard error 1.55",
        "95 % interval [−8.68, 1.18]",
        "episodes      4 of at most 10 decisions, seed 42",
        "returns       5 % −7.40, quartiles −5.00, −3.00, −1.75, 95 % −1.15",
        "ended early   25.0 % of episodes, after 7.0 decisions on average",
        "events        1,234 admitted, 2 ignored",
        "stopped       interrupted before all episodes were simulated",
    ]
    assert found.impossible == 1236
    assert "-" not in text.replace("\n", "")


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 95, -0.5, "0.95", None, math.nan, True])
@pytest.mark.parametrize("episodes", [1, 3])
def test_confidences_are_between_0_and_1(confidence, episodes):
    with pytest.raises(mm.DataError, match="confidence must be a number between 0 and 1"):
        evaluation([1.0, 2.0, 4.0][:episodes]).interval(confidence)


@pytest.mark.parametrize("q", [-0.1, 1.5, [0.5, 2.0], "x", None, math.nan])
def test_quantiles_are_between_0_and_1(q):
    with pytest.raises(mm.DataError, match="between 0 and 1"):
        evaluation([1.0, 2.0]).quantile(q)
