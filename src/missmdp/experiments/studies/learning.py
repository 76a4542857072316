"""How close learners come with ever more data, and what helps AIMI: to be told more than its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypedDict

import numpy as np

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.data.collect import collect
from missmdp.data.counts import as_counts
from missmdp.evaluation.distance import total_variation
from missmdp.experiments.grid.cell import Cell, CellResult, Share, each
from missmdp.experiments.reproduce.cells import BenchmarkCell, benchmark_model, registered
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table

SIZES = (1_000, 10_000, 100_000, 1_000_000)
RUNS = 10
_SPECIAL: dict[str, tuple[str, str, Any]] = {
    "icu": ("AIMI, simple MAR", "assume", "simple MAR"),
    "predator": ("AIMI, block (x, y)", "blocks", (("x", "y"),)),
}
"""Family of benchmarks → what AIMI is told besides: its name in the table, the option, the value."""


class Distance(TypedDict):
    """How far what a learner made of a dataset is from the truth."""

    atv: Share
    wtv: Share


@dataclass(frozen=True)
class OptionsCell(BenchmarkCell, kind="options", version=1):
    """Total variation of learners with options, on one dataset."""

    learners: tuple[tuple[str, str, tuple[tuple[str, Any], ...]], ...]
    """What it is called, the learner, and its options."""
    size: int
    run: int
    data_seed: int

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"options-{self.benchmark}-{self.size}-{self.run:02d}"

    def found_type(self) -> Any:
        """Return the type of what is found, by learner."""
        return each(tuple(shown for shown, _, _ in self.learners), Distance)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return 0.1 + 1e-6 * self.size

    def work(self) -> CellResult:
        """Return average and worst total variation by learner."""
        truth = benchmark_model(self.benchmark)
        counts = as_counts(collect(truth, self.size, seed=self.data_seed, threads=1, progress=False))
        found: dict[str, Any] = {}
        for shown, learner, options in self.learners:
            fitted = registered(learner).make(truth.mdp, **dict(options)).fit(counts)
            distance = total_variation(fitted.missingness_, truth.missingness)
            found[shown] = {"atv": distance.average, "wtv": distance.worst}
        return CellResult(found)


def cells() -> list[Cell]:
    """Return all cells, the runs of all sizes on one benchmark after the other."""
    return [
        OptionsCell(benchmark, _learners(benchmark), size, run, run)
        for benchmark, size, run in product(list_benchmarks(), SIZES, range(RUNS))
    ]


def _learners(benchmark: str) -> tuple[tuple[str, str, tuple[tuple[str, Any], ...]], ...]:
    shown, option, value = _SPECIAL[benchmark.partition("-")[0]]
    plain = tuple((name, name, ()) for name in ("AMCAR", "AsMAR", "AIMI"))
    return (*plain, (shown, "AIMI", ((option, value),)))


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per dataset and learner."""
    return {
        "learning-options": [
            {
                "benchmark": cell.benchmark,
                "learner": learner,
                "steps": str(cell.size),
                "run": str(cell.run),
                **{measure: f"{result.found[learner][measure]:.6f}" for measure in ("atv", "wtv")},
            }
            for cell, result in finished.items()
            for learner, _, _ in cell.learners
        ]
    }


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return average and worst total variation, averaged over runs."""
    own: dict[tuple[str, str], dict[int, list[tuple[float, float]]]] = {}
    for row in found["learning-options"]:
        sizes = own.setdefault((row["benchmark"], row["learner"]), {})
        sizes.setdefault(int(row["steps"]), []).append((float(row["atv"]), float(row["wtv"])))
    lines = [
        (*names, *(" / ".join(f"{mean:.3f}" for mean in np.mean(sizes[size], axis=0)) for size in SIZES))
        for names, sizes in own.items()
    ]
    return {
        "learning": markdown_table(
            ("benchmark", "learner", *(f"{size:,}" for size in SIZES)), lines, words=range(2)
        )
    }


LEARNING = Study(
    "learning", "how close learners come, and what options do: minutes", "../learning.md", cells, rows, tables
)
