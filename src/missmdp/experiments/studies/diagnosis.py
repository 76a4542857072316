"""How often `diagnose` names the type of missingness right: many logs of every benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypedDict

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.data.collect import collect
from missmdp.experiments.grid.cell import Cell, CellResult, Share
from missmdp.experiments.reproduce.cells import BenchmarkCell, benchmark_model
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table
from missmdp.learn.diagnosis.diagnose import diagnose

SIZES = (10_000, 100_000)
RUNS = 100
TESTED = ("MCAR", "simple MAR", "no self-censoring")
LEVEL = 0.01
"""Of the tests."""


class Named(TypedDict):
    """What a diagnosis says."""

    type: str
    self_censoring: list[str]
    same_graph: bool
    p_values: dict[str, Share]


@dataclass(frozen=True)
class DiagnosisCell(BenchmarkCell, kind="diagnosis", version=1):
    """What is found in one log, which shows what an analyst sees."""

    size: int
    run: int
    data_seed: int

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"diagnosis-{self.benchmark}-{self.size}-{self.run:02d}"

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return 1.5 + 1e-4 * self.size

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return Named

    def work(self) -> CellResult:
        """Return the type, what censors itself, whether the m-graph is the true one, and the tests."""
        truth = benchmark_model(self.benchmark)
        log = collect(truth, self.size, seed=self.data_seed, progress=False)
        found = diagnose(log, truth.mdp, draws=0, dynamics=False, progress=False)
        return CellResult(
            {
                "type": found.type,
                "self_censoring": list(found.self_censoring),
                "same_graph": found.graph.edges == truth.mgraph().edges,
                "p_values": {test.null: float(test.p_value) for test in found.tests},
            }
        )


def cells() -> list[Cell]:
    """Return all cells: one log of every benchmark after the other, long ones first."""
    return [
        DiagnosisCell(benchmark, size, run, 9_000_000 + 1000 * len(str(size)) + run)
        for size, run, benchmark in product(SIZES[::-1], range(RUNS), list_benchmarks())
    ]


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per log."""
    found = [
        {
            "benchmark": cell.benchmark,
            "steps": str(cell.size),
            "run": str(cell.run),
            "type": result.found["type"],
            "self_censoring": " ".join(result.found["self_censoring"]),
            "same_graph": str(result.found["same_graph"]),
            **{f"p {null}": _p_value(result.found["p_values"].get(null)) for null in TESTED},
        }
        for cell, result in finished.items()
    ]
    return {"diagnosis": found}


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return how many logs were diagnosed right, and how many tests rejected."""
    lines: list[tuple[str, ...]] = []
    for name, size in product(list_benchmarks(), SIZES):
        own = [row for row in found["diagnosis"] if (row["benchmark"], row["steps"]) == (name, str(size))]
        if not own:
            continue
        truth = benchmark_model(name).types()
        censoring = list(truth.self_censoring)
        lines.append(
            (
                name,
                truth.name + (f", {', '.join(censoring)} self-censoring" if censoring else ""),
                f"{size:,}",
                str(len(own)),
                str(sum(row["type"] == truth.name for row in own)),
                str(sum(row["self_censoring"].split() == censoring for row in own)),
                str(sum(row["same_graph"] == "True" for row in own)),
                *(_rejected([row[f"p {null}"] for row in own]) for null in TESTED),
            )
        )
    columns = ("benchmark", "truth", "steps", "logs", "right type", "right self-censoring", "right m-graph")
    return {
        "diagnosis": markdown_table(
            (*columns, *(f"{null} rejected" for null in TESTED)), lines, words=range(2)
        )
    }


def _rejected(p_values: list[str]) -> str:
    """Return how many p-values are below the level; a class that coincides with a narrower one has none."""
    there = [float(p) for p in p_values if p]
    return str(sum(p < LEVEL for p in there)) if there else "–"


DIAGNOSIS = Study(
    "diagnosis",
    "how often the type of missingness is named right, in 100 logs of each size: hours",
    "diagnosis.md",
    cells,
    rows,
    tables,
)
