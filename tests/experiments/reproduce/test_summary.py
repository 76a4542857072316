"""Tables against what is computed by hand from the cells."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from experiments.reproduce.pretend import TINY, pretend
from missmdp.experiments.reproduce.findings import claims, compared_policies
from missmdp.experiments.reproduce.page import write_page
from missmdp.experiments.reproduce.pictures import draw_figures
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.runner import reproduce
from missmdp.experiments.reproduce.summary import Scale, summarise


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("summary")
    reproduce(TINY, path, workers=1, progress=False, work=pretend)
    return path


@pytest.fixture(scope="module")
def summary(folder):
    return summarise(folder)


def row_of(rows, **wanted):
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def cell_of(**wanted):
    (found,) = [
        cell
        for cell in all_cells(TINY)
        if all(getattr(cell, name) == value for name, value in wanted.items())
    ]
    return found


def test_total_variation_over_runs(summary):
    values = np.array(
        [
            pretend(cell_of(kind="learning", benchmark="icu-smar", size=1_000, run=run)).found["AIMI"]["wtv"]
            for run in range(3)
        ]
    )
    row = row_of(summary.learning, benchmark="icu-smar", learner="AIMI", size=1_000)
    assert row["runs"] == 3
    assert row["wtv"] == pytest.approx(values.mean())
    assert row["wtv_stderr"] == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    quartiles = [row[f"wtv_{name}"] for name in ("q25", "median", "q75")]
    assert quartiles == pytest.approx(np.quantile(values, (0.25, 0.5, 0.75)).tolist())


def estimates_of(policy, run=None):
    kind = "baseline" if policy in ("optimal", "prior") else "value"
    wanted = {"kind": kind, "benchmark": "predator-smar", "policy": policy}
    if kind == "value":
        return pretend(cell_of(**wanted, size=100, run=run)).estimates[0]
    return pretend(cell_of(**wanted)).estimates[run]


def test_a_normalised_value_is_paired_with_its_own_run(summary):
    learned, optimal, prior = (estimates_of(policy, 1) for policy in ("AsMAR", "optimal", "prior"))
    row = row_of(summary.value_runs, benchmark="predator-smar", learner="AsMAR", size=100, run=1)
    ratio = (learned - prior).mean() / (optimal - prior).mean()
    assert row["value"] == pytest.approx(learned.mean())
    assert row["normalised"] == pytest.approx(ratio)
    residual = (learned - prior) - ratio * (optimal - prior)
    error = residual.std(ddof=1) / np.sqrt(50) / (optimal - prior).mean()
    assert row["normalised_stderr"] == pytest.approx(error)


def test_normalised_values_over_runs_are_a_ratio_of_means(summary):
    above, whole = (
        np.array([(estimates_of(policy, run) - estimates_of("prior", run)).mean() for run in range(2)])
        for policy in ("AsMAR", "optimal")
    )
    row = row_of(summary.values, benchmark="predator-smar", learner="AsMAR", size=100)
    ratio = above.mean() / whole.mean()
    assert row["normalised"] == pytest.approx(ratio)
    error = (above - ratio * whole).std(ddof=1) / np.sqrt(2) / whole.mean()
    assert row["normalised_stderr"] == pytest.approx(error)
    assert row["normalised_low"] < ratio < row["normalised_high"]
    # One degree of freedom: an interval of many errors.
    assert row["normalised_high"] - row["normalised_low"] > 10 * error


def test_the_ends_of_the_scale_are_0_and_1_without_error(summary):
    for policy, end in (("prior", 0.0), ("optimal", 1.0)):
        row = row_of(summary.baselines, benchmark="icu-smar", policy=policy, missing="as in the benchmark")
        assert row["normalised"] == end
        assert row["normalised_stderr"] == pytest.approx(0.0, abs=1e-12)
        assert (row["seeds"], row["episodes"]) == (1, 100)


def test_baselines_with_seeds_have_errors_between_seeds_and_a_best_one(summary):
    runs = [
        pretend(
            cell_of(kind="baseline", benchmark="icu-smar", policy="pomcp", run=run, fully_observed=False)
        ).estimates[0]
        for run in range(2)
    ]
    row = row_of(summary.baselines, benchmark="icu-smar", policy="pomcp", missing="as in the benchmark")
    means = np.array([run.mean() for run in runs])
    assert row["value"] == pytest.approx(means.mean())
    assert row["stderr"] == pytest.approx(means.std(ddof=1) / np.sqrt(2))
    best = runs[int(means.argmax())]
    assert (row["best"], row["best_stderr"]) == pytest.approx((best.mean(), best.std(ddof=1) / np.sqrt(20)))
    assert (row["seeds"], row["episodes"]) == (2, 40)


def test_fewer_episodes_are_paired_and_the_scale_has_all_of_them(summary):
    """POMCP has 20 episodes per run, the ends of its scale have 50."""
    optimal, prior = (
        pretend(cell_of(kind="baseline", benchmark="icu-smar", policy=name)).estimates
        for name in ("optimal", "prior")
    )
    wanted = {"kind": "baseline", "benchmark": "icu-smar", "policy": "pomcp", "fully_observed": False}
    above = np.array(
        [(pretend(cell_of(**wanted, run=run)).estimates[0] - prior[run, :20]).mean() for run in range(2)]
    )
    whole = (optimal - prior).mean(axis=1)
    row = row_of(summary.baselines, benchmark="icu-smar", policy="pomcp", missing="as in the benchmark")
    assert row["normalised"] == pytest.approx(above.mean() / whole.mean())


def test_one_seed_has_the_error_of_its_episodes():
    """By the delta method, with what the first episodes have in common."""
    random = np.random.default_rng(7)
    scale = Scale(5.0 + random.normal(size=(1, 400)), random.normal(size=(1, 400)))
    estimates = 3.0 + 0.8 * scale.prior[0, :100] + random.normal(size=100)
    value = scale.of_run(estimates, 0)
    above, whole = estimates - scale.prior[0, :100], scale.optimal[0] - scale.prior[0]
    variance = (
        above.var(ddof=1) / 100
        + value.mean**2 * whole.var(ddof=1) / 400
        - 2 * value.mean * np.cov(above, whole[:100])[0, 1] / 400
    )
    assert value.stderr == pytest.approx(np.sqrt(variance) / whole.mean())


def test_without_missingness_the_optimum_stands_beside(summary):
    row = row_of(summary.baselines, benchmark="icu-smar", policy="pomcp", missing="nothing")
    assert row["optimum"] == pytest.approx(-48.25, abs=0.01)
    assert row["normalised"] is None


def test_separation(summary):
    optimal, prior = (
        pretend(cell_of(kind="baseline", benchmark="icu-smar", policy=name)).estimates
        for name in ("optimal", "prior")
    )
    row = row_of(summary.separation, benchmark="icu-smar")
    assert row["optimal_minus_prior"] == pytest.approx((optimal - prior).mean())
    assert row["share"] == pytest.approx(2.0 / 7.0, abs=0.02)


def test_tables_are_what_the_summary_says_and_wall_times_are_elsewhere(folder, summary):
    for name, rows in summary.tables().items():
        with (folder / "tables" / f"{name}.csv").open(newline="") as file:
            written = list(csv.DictReader(file))
        assert len(written) == len(rows)
        assert list(written[0]) == list(rows[0])
        assert not any("second" in column for column in written[0])
    with (folder / "timings.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(all_cells(TINY))


def test_an_unfinished_run_has_what_it_has(tmp_path):
    def only_learning(cell):
        if cell.kind != "learning":
            raise RuntimeError
        return pretend(cell)

    reproduce(TINY, tmp_path, workers=1, progress=False, work=only_learning)
    summary = summarise(tmp_path)
    assert (len(summary.learning), summary.values, summary.baselines, summary.separation) == (12, [], [], [])


def test_values_without_a_scale_are_not_normalised(tmp_path):
    def no_prior(cell):
        if getattr(cell, "policy", "") == "prior":
            raise RuntimeError
        return pretend(cell)

    reproduce(TINY, tmp_path, workers=1, progress=False, work=no_prior)
    summary = summarise(tmp_path)
    assert {row["normalised"] for row in summary.value_runs} == {None}
    assert {row["normalised_low"] for row in summary.values} == {None}


@pytest.mark.parametrize("above", [0.0, 1.0])
def test_where_the_prior_is_as_good_as_the_optimal_policy_there_is_no_scale(tmp_path, above):
    """A scale that is turned around would make the worst policies look best."""

    def turned(cell):
        result = pretend(cell)
        if getattr(cell, "policy", "") == "optimal":
            estimates = np.full_like(result.estimates, 3.0)
        elif getattr(cell, "policy", "") == "prior":
            estimates = np.full_like(result.estimates, 3.0 + above)
        else:
            return result
        return replace(result, estimates=estimates)

    reproduce(TINY, tmp_path, workers=1, progress=False, work=turned)
    summary = summarise(tmp_path)
    names = ("normalised", "normalised_stderr", "normalised_low", "normalised_high", "normalised_median")
    assert {row[name] for row in summary.values for name in names} == {None}
    assert {row["normalised"] for row in (*summary.value_runs, *summary.baselines)} == {None}
    assert claims(summary) == []
    assert compared_policies(summary, "icu-smar") == []
    assert draw_figures(summary)
    assert "q4" in write_page(summary).read_text(encoding="utf-8")
