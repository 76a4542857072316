"""Dynamics learned from the log alone, and what policies are worth beside those learned from completed logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.evaluation.value import standard_error, student_interval
from missmdp.experiments.baselines import BaselineSettings
from missmdp.experiments.grid.cell import Cell
from missmdp.experiments.reproduce.cells import BaselineCell
from missmdp.experiments.reproduce.summary import ratio_of_means
from missmdp.experiments.studies.beyond import (
    END_TRIALS,
    RUNS,
    VALUE_EPISODES,
    VALUE_RUNS,
    VALUE_TRIALS,
    data_seed,
    episode_seed,
)
from missmdp.experiments.studies.learned_dynamics_cells import (
    METHODS,
    PLANNERS,
    ImputationCell,
    LearnedDynamicsCell,
)
from missmdp.experiments.studies.learned_dynamics_page import PAGE, draw_dynamics_figure
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table

BENCHMARKS = tuple(list_benchmarks())
FEWER_RUNS = {"predator-mcar": {10_000: 5, 100_000: 5}}
"""Benchmark → steps → how many logs, where that is less than in the study `beyond`: this one takes longest."""
IMPUTED_STEPS, IMPUTED_RUNS = 100_000, 5
"""What completed logs are learned from."""
OWN = "JointEM"
SHOWN_METHODS = {
    "complete": "complete cases",
    "last": "last observation",
    "mode": "commonest value",
    "multiple": "multiple imputation",
}
SHOWN_PLANNERS = {"counted": "counted T", "fitted": "fitted Q"}
OTHERS = {
    (method, planner): f"{SHOWN_METHODS[method]}, {SHOWN_PLANNERS[planner]}"
    for method, planner in product(METHODS, PLANNERS)
}
"""Policies learned from completed logs, and what the tables call them."""
_ICU_TRIALS, _PREDATOR_TRIALS, _MCAR_TRIALS = (
    END_TRIALS["icu-mnar-unid"],
    END_TRIALS["predator-mnar-unid"],
    (64, 12),
)
_TRIALS = {"icu": _ICU_TRIALS, "predator": _PREDATOR_TRIALS}
"""Trials for the true and the prior model, by family; predator-mcar takes longer to come near its optimum."""
_FEW_TRIALS = 8
"""For learned models that take long to solve: those of predator-mcar, which are large, and those of 10⁴ steps. Further
trials prove more than they improve: from one log of icu-mnar-unid, the policy is worth −73.47, −73.46 and −73.45 after
4, 8 and 12 trials, in 4, 14 and 200 seconds."""
_ALL_SEEDS = 1_000_000
"""Steps from which there are few logs, and each policy meets the random numbers of all runs."""


def cells() -> list[Cell]:
    """Return all cells: the ends of the scale, then run by run all sizes and benchmarks."""
    return [*_ends(), *(cell for run in range(max(RUNS.values())) for cell in _cells_of(run))]


def _ends() -> Iterator[Cell]:
    """Yield the same cells as the study `beyond` where it has them."""
    seeds = tuple(map(episode_seed, range(VALUE_RUNS)))
    for benchmark in BENCHMARKS:
        trials = _MCAR_TRIALS if benchmark == "predator-mcar" else _TRIALS[benchmark.partition("-")[0]]
        for policy, most in zip(("optimal", "prior"), trials, strict=True):
            settings = BaselineSettings(max_trials=most, solve_timeout=None)
            yield BaselineCell(benchmark, policy, 0, False, settings, seeds, VALUE_EPISODES)


def _cells_of(run: int) -> Iterator[Cell]:
    for steps, benchmark in product(RUNS, BENCHMARKS):
        if run >= FEWER_RUNS.get(benchmark, RUNS).get(steps, 0):
            continue
        few = benchmark == "predator-mcar" or steps == min(RUNS)
        seeds = (data_seed(steps, run), episode_seed(run % VALUE_RUNS), VALUE_EPISODES)
        met = (
            (data_seed(steps, run), episode_seed(0), VALUE_RUNS * VALUE_EPISODES)
            if steps >= _ALL_SEEDS
            else seeds
        )
        trials = _FEW_TRIALS if few else VALUE_TRIALS
        yield LearnedDynamicsCell(benchmark, steps, run, *met, precision=1e-3, max_trials=trials)
        if steps == IMPUTED_STEPS and run < IMPUTED_RUNS:
            for method, planner in OTHERS:
                yield ImputationCell(benchmark, method, planner, steps, run, *seeds)


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per log, of what was learned, and per log and policy, of what it is worth."""
    return {
        "dynamics-learning": list(_learning_rows(finished)),
        "dynamics-values": list(_value_rows(finished)),
    }


def _learning_rows(finished: Finished) -> Iterator[dict[str, str]]:
    for cell, result in finished.items():
        if isinstance(cell, LearnedDynamicsCell):
            yield {
                "benchmark": cell.benchmark,
                "steps": str(cell.size),
                "run": str(cell.run),
                **{name: f"{result.found[name]:.6f}" for name in ("tv", "atv")},
                "gain": f"{result.found['gain']:.3f}",
                "parameters": str(result.found["parameters"]),
                "fit_seconds": f"{result.found['fit_seconds']:.1f}",
            }


def _value_rows(finished: Finished) -> Iterator[dict[str, str]]:
    ends = {
        (cell.benchmark, cell.policy): result.estimates.mean(axis=1)
        for cell, result in finished.items()
        if isinstance(cell, BaselineCell)
    }
    for cell, result in finished.items():
        if not isinstance(cell, LearnedDynamicsCell | ImputationCell):
            continue
        if not {(cell.benchmark, "optimal"), (cell.benchmark, "prior")} <= set(ends):
            continue
        met = [seed - episode_seed(0) for seed in cell.seeds]
        policy = OWN if isinstance(cell, LearnedDynamicsCell) else OTHERS[cell.method, cell.planner]
        yield {
            "benchmark": cell.benchmark,
            "steps": str(cell.size),
            "run": str(cell.run),
            "policy": policy,
            "value": f"{result.estimates.mean():.6f}",
            **{end: f"{ends[cell.benchmark, end][met].mean():.6f}" for end in ("optimal", "prior")},
        }


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return what JointEM learned, and what its policies are worth, alone and beside others."""
    learning, values = found.get("dynamics-learning", []), found.get("dynamics-values", [])
    own = [row for row in values if row["policy"] == OWN]
    same = [row for row in values if row["steps"] == str(IMPUTED_STEPS) and int(row["run"]) < IMPUTED_RUNS]
    beside = any(row["policy"] != OWN for row in values)
    return {
        **({"dynamics": _learning_table(learning, own)} if learning else {}),
        **({"imputation": _value_table(same), "verdict": _verdict_table(same)} if beside else {}),
    }


def _learning_table(learning: Rows, values: Rows) -> str:
    """Return a line per benchmark and size: means over runs with standard errors."""
    columns = ("tv", "atv", "gain", "fit_seconds")
    lines: list[tuple[str, ...]] = []
    for benchmark, steps in product(BENCHMARKS, RUNS):
        own = [row for row in learning if (row["benchmark"], row["steps"]) == (benchmark, str(steps))]
        if own:
            tv, atv, gain, seconds = (np.array([float(row[name]) for row in own]) for name in columns)
            worth = _normalised(
                [row for row in values if (row["benchmark"], row["steps"]) == (benchmark, str(steps))]
            )
            numbers = (_mean(tv, 4), _mean(atv, 4), _mean(gain, 0), worth, f"{seconds.mean():.0f}")
            lines.append((benchmark, f"{steps:,}", str(len(own)), *numbers))
    names = ("TV of T̂", "ATV of M̂", "log-likelihood − that of the truth", "normalised value", "seconds")
    return markdown_table(("benchmark", "steps", "logs", *names), lines, words=range(1))


def _value_table(found: Rows) -> str:
    """Return a line per policy and a column per benchmark."""
    lines = [
        (
            policy,
            *(
                _normalised(
                    [row for row in found if (row["benchmark"], row["policy"]) == (benchmark, policy)]
                )
                for benchmark in BENCHMARKS
            ),
        )
        for policy in (OWN, *OTHERS.values())
    ]
    return markdown_table(("learned by", *BENCHMARKS), lines, words=range(1))


def _verdict_table(found: Rows) -> str:
    """Return JointEM against each of the others, paired by log: a line per benchmark."""
    lines: list[tuple[str, ...]] = []
    for benchmark in BENCHMARKS:
        by_run = {
            policy: {int(row["run"]): float(row["value"]) for row in found if _is(row, benchmark, policy)}
            for policy in (OWN, *OTHERS.values())
        }
        runs = sorted(set[int].intersection(*(set(values) for values in by_run.values())))
        if len(runs) < 2:
            continue
        worth = {policy: np.array([values[run] for run in runs]) for policy, values in by_run.items()}
        gaps = {policy: worth[OWN] - worth[policy] for policy in OTHERS.values()}
        intervals = {policy: _interval(gap) for policy, gap in gaps.items()}
        best = min(gaps, key=lambda policy: float(gaps[policy].mean()))
        lines.append(
            (
                benchmark,
                str(len(runs)),
                best,
                _mean(gaps[best], 2),
                str(sum(low > 0.0 for low, _ in intervals.values())),
                str(sum(high < 0.0 for _, high in intervals.values())),
                "yes" if gaps[best].mean() > 0.0 else "no",
            )
        )
    names = (
        "best of the others",
        "JointEM earns more by",
        "significantly better than",
        "significantly worse than",
    )
    return markdown_table(("benchmark", "logs", *names, "better than all"), lines, words=(0, 2, 6))


def _is(row: Mapping[str, str], benchmark: str, policy: str) -> bool:
    return (row["benchmark"], row["policy"]) == (benchmark, policy)


def _interval(gap: NDArray[np.float64]) -> tuple[float, float]:
    """Return Student's 95 % interval for a mean difference, over runs."""
    return student_interval(float(gap.mean()), standard_error(gap), len(gap), 0.95)


def _normalised(found: Rows) -> str:
    """Return the ratio of means over runs, with its standard error; nothing without a scale or with one run."""
    if len(found) < 2:
        return ""
    value, optimal, prior = (
        np.array([float(row[name]) for row in found]) for name in ("value", "optimal", "prior")
    )
    ratio = ratio_of_means(value - prior, optimal - prior)
    return "" if ratio is None else f"{ratio.mean:.3f} ± {ratio.stderr:.3f}".replace("-", "−")


def _mean(values: NDArray[np.float64], places: int) -> str:
    """Return mean and standard error."""
    error = f" ± {standard_error(values):.{places}f}" if len(values) > 1 else ""
    return f"{values.mean():.{places}f}{error}".replace("-", "−")


DYNAMICS = Study(
    "dynamics",
    "how far dynamics learned from the log alone get, beside filling in its gaps: hours",
    "dynamics.md",
    cells,
    rows,
    tables,
    draw=draw_dynamics_figure,
    template=PAGE,
)
