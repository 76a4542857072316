"""Certify policies for every benchmark from ever more data, and write docs/results/certificates.md and its table.

python docs/make_certificates.py            # about half an hour
python docs/make_certificates.py icu-smar   # one benchmark, printed only
"""

from __future__ import annotations

import csv
import io
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import missmdp as mm
from missmdp.evaluation.certificate.certify import REFERENCE
from missmdp.model.archive import write_atomically

TARGET = Path(__file__).parent / "results"
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CHUNK = 1_000_000
CONFIDENCE = 0.95
SEED = 2026
LEARNERS = {
    "icu-smar": mm.AsMAR(),
    "icu-mnar-id": mm.AIMI(),
    "predator-smar": mm.AsMAR(),
    "predator-mcar": mm.AMCAR(),
}
"""The learner of the paper whose assumption the benchmark fulfils; for the others there is none."""
METHODS = ("closed form", "policy-uniform", "occupancy", "robust", "revealing")


def counts(model: mm.MissMDP, steps: int) -> mm.ObservationCounts:
    """Return the observations of a log, in pieces that fit into memory."""
    parts = [
        mm.ObservationCounts.from_dataset(
            mm.collect(model, min(CHUNK, steps - first), seed=SEED + first // CHUNK, progress=False)
        )
        for first in range(0, steps, CHUNK)
    ]
    return sum(parts[1:], parts[0])


def certify(name: str, steps: int) -> dict[str, Any]:
    """Return a row of the table."""
    truth, learner = mm.load_benchmark(name), LEARNERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        learner.fit(counts(truth, steps))
    model = truth.with_missingness(learner.missingness_)
    result = mm.Sarsop(precision=2e-3, timeout=40.0, progress=False).solve(model)
    began = time.monotonic()
    solver = mm.Sarsop(precision=2e-3, timeout=40.0, warm_start=result, progress=False)
    found = mm.certify(result, learner, CONFIDENCE, halve=False, solver=solver, progress=False)
    return {
        "benchmark": name,
        "learner": type(learner).__name__,
        "samples": steps,
        "epsilon": found.epsilon,
        "method": found.method,
        "vacuous": found.vacuous,
        "solver": found.terms.solver,
        "before_planning": found.terms.before_planning,
        "after_planning": found.terms.after_planning,
        **{method.replace(" ", "_"): found.alternatives[method].epsilon for method in METHODS},
        "closed_form_okamoto": found.alternatives[REFERENCE].epsilon,
        "trivial": found.trivial,
        "seconds": time.monotonic() - began,
    }


def page(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a page."""
    lines = [
        "# Certificates against dataset size",
        "",
        "With probability at least 0.95 the policy graph is within ε of optimal in the true miss-MDP, by "
        "[`certify`](../certificates.md). The data come from uniformly random actions, one dataset of each size; what "
        "is always observed is not declared. Each benchmark has the learner of the paper whose assumption it fulfils. "
        "ε is also given as a share of the trivial bound, the value of the best minus that of the worst controller; "
        "beyond that a bound is vacuous. Beside it are certificates that look at less, and the closed form with the "
        "paper's radii (Okamoto). Models were solved for 40 seconds at most, on two cores that were busy with other "
        "things; where the solver's gap is most of ε, more time would do more than more data.",
        "",
        "| benchmark | learner | samples | ε | by | mostly | of the trivial bound | robust, with b₀·U | "
        "policy-uniform | closed form | closed form, Okamoto | trivial |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        bounds = [
            _bounded(row[key], row["trivial"])
            for key in ("robust", "policy-uniform", "closed_form", "closed_form_okamoto")
        ]
        share = "vacuous" if row["vacuous"] else f"{100 * row['epsilon'] / row['trivial']:.2g} %"
        lines.append(
            f"| {row['benchmark']} | {row['learner']} | {int(row['samples']):,} | **{_number(row['epsilon'])}** | "
            f"{row['method']} | {_mostly(row)} | {share} | {' | '.join(bounds)} | {_number(row['trivial'])} |"
        )
    lines += [
        *(
            f"| {name} | none | any | no certificate: type not covered | | | | | | | | |"
            for name in mm.list_benchmarks()
            if name not in LEARNERS
        ),
        "",
        "On the benchmarks whose self-censoring single observations do not show, no learner of the paper is valid, "
        "and so is no certificate: a bound under an assumption that is false says nothing. `DynamicsEM` learns them, "
        "but no bound on its error is known for a finite number of samples; `value_interval` gives intervals that are "
        "labelled as no guarantee.",
        "",
        "All numbers, with the terms that ε is the sum of: [certificates.csv](tables/certificates.csv). "
        "`python docs/make_certificates.py` makes this page.",
    ]
    return "\n".join(lines) + "\n"


def _mostly(row: dict[str, Any]) -> str:
    terms = {
        "learning, before": row["before_planning"],
        "learning, after": row["after_planning"],
        "solver": row["solver"],
    }
    return max(terms, key=lambda name: terms[name])


def _bounded(value: float, trivial: float) -> str:
    return f"{_number(value)} (vacuous)" if value >= trivial else _number(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    return text.getvalue()


def read(text: str) -> list[dict[str, Any]]:
    """Return the rows of a CSV."""
    words = ("benchmark", "learner", "method", "vacuous")
    return [
        {k: v if k in words else float(v) for k, v in row.items()} | {"vacuous": row["vacuous"] == "True"}
        for row in csv.DictReader(io.StringIO(text))
    ]


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(LEARNERS)
    rows = []
    for name in wanted:
        for steps in SIZES:
            rows.append(certify(name, steps))
            print({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    if not sys.argv[1:]:
        write_atomically(TARGET / "tables" / "certificates.csv", table(rows).encode())
        write_atomically(TARGET / "certificates.md", page(read(table(rows))).encode())
        print(f"wrote {TARGET / 'certificates.md'}")
