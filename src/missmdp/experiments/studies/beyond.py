"""Beyond the paper: learning from the dynamics, beside the paper's learners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.experiments.baselines import BaselineSettings
from missmdp.experiments.grid.cell import Cell
from missmdp.experiments.reproduce.cells import BaselineCell, LearningCell, ValueCell
from missmdp.experiments.reproduce.summary import ratio_of_means
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table

RUNS = {10_000: 20, 100_000: 20, 1_000_000: 5}
"""Steps → how many datasets total variation is measured on."""
TOGETHER = (("AMCAR", "AsMAR", "AIMI"), ("DynamicsEM+graph",), ("DynamicsEM",))
"""Learners of one cell: those that count share a dataset."""
SHOWN = {
    "AMCAR": "AMCAR",
    "AsMAR": "AsMAR",
    "AIMI": "AIMI",
    "DynamicsEM+graph": "DynamicsEM, m-graph",
    "DynamicsEM": "DynamicsEM, auto",
}
"""Learners, and what the tables call them."""
VALUE_STEPS, VALUE_RUNS, VALUE_TRIALS, VALUE_EPISODES = 100_000, 10, 24, 4000
END_TRIALS = {"icu-mnar-unid": (64, 64), "predator-mnar-unid": (24, 6)}
"""Benchmark that the paper calls unidentifiable → trials for the true and the prior model. Predator's prior model is
large: nearly everything can be missing."""


def data_seed(steps: int, run: int) -> int:
    """Return a seed that no two datasets of a benchmark share."""
    return 7_000_000 + 1000 * len(str(steps)) + run


def episode_seed(run: int) -> int:
    """Return the seed of the episodes of a run, which all policies share."""
    return 9_000_000 + run


def cells() -> list[Cell]:
    """Return all cells: total variation of one run on all benchmarks after the other, then values."""
    return [*_learning_cells(), *_value_cells()]


def _learning_cells() -> Iterator[Cell]:
    for steps, runs in RUNS.items():
        for run in range(runs):
            for benchmark in list_benchmarks():
                for learners in TOGETHER:
                    yield LearningCell(benchmark, learners, steps, run, data_seed(steps, run))


def _value_cells() -> Iterator[Cell]:
    """Yield solving limited by trials rather than seconds, so every machine finds the same."""
    seeds = tuple(map(episode_seed, range(VALUE_RUNS)))
    for benchmark, trials in END_TRIALS.items():
        for policy, most in zip(("optimal", "prior"), trials, strict=True):
            settings = BaselineSettings(max_trials=most, solve_timeout=None)
            yield BaselineCell(benchmark, policy, 0, False, settings, seeds, VALUE_EPISODES)
    for run in range(VALUE_RUNS):
        for benchmark in END_TRIALS:
            for learner in SHOWN:
                yield ValueCell(
                    benchmark,
                    learner,
                    VALUE_STEPS,
                    run,
                    data_seed(VALUE_STEPS, run),
                    episode_seed(run),
                    VALUE_EPISODES,
                    precision=1e-3,
                    max_trials=VALUE_TRIALS,
                    timeout=None,
                )


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per dataset and learner, of total variation and of values."""
    return {"beyond-learning": list(_learning_rows(finished)), "beyond-values": list(_value_rows(finished))}


def _learning_rows(finished: Finished) -> Iterator[dict[str, str]]:
    for cell, result in finished.items():
        if isinstance(cell, LearningCell):
            for learner in cell.learners:
                found = result.found[learner]
                yield {
                    "benchmark": cell.benchmark,
                    "steps": str(cell.size),
                    "run": str(cell.run),
                    "learner": SHOWN[learner],
                    **{name: f"{found[name]:.6f}" for name in ("atv", "weighted", "wtv")},
                    "parameters": str(found["parameters"]),
                }


def _value_rows(finished: Finished) -> Iterator[dict[str, str]]:
    ends = {
        (cell.benchmark, cell.policy): result.estimates.mean(axis=1)
        for cell, result in finished.items()
        if isinstance(cell, BaselineCell)
    }
    for cell, result in finished.items():
        if isinstance(cell, ValueCell) and {(cell.benchmark, "optimal"), (cell.benchmark, "prior")} <= set(
            ends
        ):
            yield {
                "benchmark": cell.benchmark,
                "steps": str(cell.size),
                "run": str(cell.run),
                "learner": SHOWN[cell.policy],
                "value": f"{result.estimates.mean():.6f}",
                **{end: f"{ends[cell.benchmark, end][cell.run]:.6f}" for end in ("optimal", "prior")},
            }


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return average and visit-weighted total variation, and normalised values."""
    learning, values = found.get("beyond-learning"), found.get("beyond-values")
    return {
        **({"learning": _learning_table(learning, "atv")} if learning else {}),
        **({"weighted": _learning_table(learning, "weighted")} if learning else {}),
        **({"values": _value_table(values)} if values else {}),
    }


def _learning_table(found: Rows, measure: str) -> str:
    """Return means over runs with standard errors."""
    own: dict[tuple[str, str, str], list[float]] = {}
    for row in found:
        own.setdefault((row["benchmark"], row["learner"], row["steps"]), []).append(float(row[measure]))
    lines = [
        (
            benchmark,
            learner,
            *(_mean(own.get((benchmark, learner, str(steps)), []), RUNS[steps]) for steps in RUNS),
        )
        for benchmark in list_benchmarks()
        for learner in SHOWN.values()
    ]
    return markdown_table(
        ("benchmark", "learner", *(f"{steps:,} steps" for steps in RUNS)), lines, words=range(2)
    )


def _mean(values: list[float], runs: int) -> str:
    """Return mean and standard error, and how many runs there are where some are still to be done."""
    if not values:
        return ""
    found = np.array(values)
    error = f" ± {found.std(ddof=1) / np.sqrt(len(found)):.4f}" if len(found) > 1 else ""
    return f"{found.mean():.4f}{error}" + ("" if len(found) == runs else f" ({len(found)})")


def _value_table(found: Rows) -> str:
    """Return the ratio of means over runs, and Fieller's interval over runs."""
    lines: list[tuple[str, ...]] = []
    for benchmark in END_TRIALS:
        for learner in SHOWN.values():
            own = [row for row in found if (row["benchmark"], row["learner"]) == (benchmark, learner)]
            if len(own) < 2:
                continue
            value, optimal, prior = (
                np.array([float(row[name]) for row in own]) for name in ("value", "optimal", "prior")
            )
            ratio = ratio_of_means(value - prior, optimal - prior)
            assert ratio is not None, "the optimal policy beats the prior's"
            low, high = ratio.interval()
            numbers = (f"{ratio.mean:.3f} ± {ratio.stderr:.3f}", f"{low:.3f} to {high:.3f}")
            lines.append((benchmark, learner, *(number.replace("-", "−") for number in numbers)))
    return markdown_table(
        ("benchmark", "learner", "normalised value", "95 % interval"), lines, words=range(2)
    )


BEYOND = Study(
    "beyond",
    "how far learning from the dynamics gets, beside the paper's learners: hours",
    "beyond.md",
    cells,
    rows,
    tables,
)
