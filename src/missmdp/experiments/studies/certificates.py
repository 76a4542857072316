"""What is certified from how much data, for every benchmark with a learner whose assumption holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.data.collect import collect
from missmdp.data.counts import ObservationCounts
from missmdp.evaluation.certificate.certify import REFERENCE, certify
from missmdp.experiments.grid.cell import Cell, CellResult, Number
from missmdp.experiments.reproduce.cells import BenchmarkCell, benchmark_model, registered
from missmdp.experiments.reproduce.findings import right_learner
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table
from missmdp.learn.base import CountingEstimator
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.plan.stopping import raise_if_interrupted

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CHUNK = 1_000_000
"""Steps that fit into memory."""
SEED = 2026
METHODS = ("closed form", "policy-uniform", "occupancy", "robust", "revealing")
_TERMS = ("solver", "before_planning", "after_planning")
_COLUMNS = (
    *("epsilon", "method", "vacuous", *_TERMS),
    *(method.replace(" ", "_") for method in METHODS),
    *("closed_form_okamoto", "trivial", "seconds"),
)


_Found: Any = cast("Any", TypedDict)(
    "_Found", dict.fromkeys(_COLUMNS, Number) | {"method": str, "vacuous": bool}
)


@dataclass(frozen=True)
class CertificateCell(BenchmarkCell, kind="certificate", version=1):
    """The certificate of one policy. Solving is limited in time, so another machine may find other numbers."""

    learner: str
    size: int
    data_seed: int
    """Of the first million steps; the next has the next seed."""
    confidence: float = 0.95
    precision: float = 2e-3
    timeout: float = 40.0

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"certificate-{self.benchmark}-{self.size}"

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return _Found

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return 2.5 * self.timeout

    def work(self) -> CellResult:
        """Learn, solve the learned model, and certify its policy."""
        truth = benchmark_model(self.benchmark)
        learner = cast("CountingEstimator", registered(self.learner).make(truth.mdp)).fit(self._counts())
        solved = Sarsop(precision=self.precision, timeout=self.timeout, progress=False).solve(
            truth.with_missingness(learner.missingness_)
        )
        raise_if_interrupted(solved.status)
        began = time.monotonic()
        solver = Sarsop(precision=self.precision, timeout=self.timeout, warm_start=solved, progress=False)
        found = certify(solved, learner, self.confidence, halve=False, solver=solver, progress=False)
        return CellResult(
            {
                "epsilon": found.epsilon,
                "method": found.method,
                "vacuous": found.vacuous,
                **{term: getattr(found.terms, term) for term in _TERMS},
                **{method.replace(" ", "_"): found.alternatives[method].epsilon for method in METHODS},
                "closed_form_okamoto": found.alternatives[REFERENCE].epsilon,
                "trivial": found.trivial,
                "seconds": time.monotonic() - began,
            }
        )

    def _counts(self) -> ObservationCounts:
        """Return the observations of a log, in pieces that fit into memory."""
        model = benchmark_model(self.benchmark)
        parts = [
            ObservationCounts.from_dataset(
                collect(
                    model,
                    min(CHUNK, self.size - first),
                    seed=self.data_seed + first // CHUNK,
                    progress=False,
                )
            )
            for first in range(0, self.size, CHUNK)
        ]
        return sum(parts[1:], parts[0])


def cells() -> list[Cell]:
    """Return all cells, one benchmark after the other."""
    return [
        CertificateCell(benchmark, learner, size, SEED)
        for benchmark in list_benchmarks()
        if (learner := right_learner(benchmark)) is not None
        for size in SIZES
    ]


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per certificate."""
    return {
        "certificates": [
            {
                "benchmark": cell.benchmark,
                "learner": cell.learner,
                "samples": str(cell.size),
                **{name: _text(result.found[name]) for name in _COLUMNS},
            }
            for cell, result in finished.items()
        ]
    }


def _text(value: float | str | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return ε beside what it is made of, and beside certificates that look at less."""
    columns = (
        "benchmark",
        "learner",
        "samples",
        "ε",
        "by",
        "mostly",
        "of the trivial bound",
        "robust, with b₀·U",
    )
    columns += ("policy-uniform", "closed form", "closed form, Okamoto", "trivial")
    lines = [_line(row) for row in found["certificates"]]
    lines += [
        (name, "none", "any", "no certificate: type not covered", *[""] * (len(columns) - 4))
        for name in list_benchmarks()
        if right_learner(name) is None
    ]
    return {"certificates": markdown_table(columns, lines, words=(0, 1, 4, 5))}


def _line(row: dict[str, str]) -> tuple[str, ...]:
    epsilon, trivial = float(row["epsilon"]), float(row["trivial"])
    terms = {
        "learning, before": float(row["before_planning"]),
        "learning, after": float(row["after_planning"]),
        "solver": float(row["solver"]),
    }
    others = [float(row[key]) for key in ("robust", "policy-uniform", "closed_form", "closed_form_okamoto")]
    return (
        row["benchmark"],
        row["learner"],
        f"{int(row['samples']):,}",
        f"**{_number(epsilon)}**",
        row["method"],
        max(terms, key=lambda name: terms[name]),
        "vacuous" if row["vacuous"] == "True" else f"{100 * epsilon / trivial:.2g} %",
        *(f"{_number(value)} (vacuous)" if value >= trivial else _number(value) for value in others),
        _number(trivial),
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


CERTIFICATES = Study(
    "certificates",
    "what is certified from how much data: half an hour",
    "certificates.md",
    cells,
    rows,
    tables,
)
