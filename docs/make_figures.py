"""Draw the pictures in docs/figures: `make figures`. The same library versions give the same files."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import missmdp as mm
from missmdp.interop import read_model
from missmdp.plan.trace import TraceBuilder

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"


def draw_all(folder: Path) -> list[Path]:
    """Draw m-graphs of all models, what is missing in a log, a policy and a search; return the paths."""
    drawn: list[Path] = []
    for name in [*mm.list_benchmarks(), *mm.list_examples()]:
        types = mm.load_benchmark(name).types()
        path = folder / f"mgraph-{name}.svg"
        drawn.append(mm.load_benchmark(name).mgraph().draw(path, title=f"{name}: {types.name}"))
    return [*drawn, draw_description(folder), draw_policy(folder), draw_search(folder)]


def draw_description(folder: Path) -> Path:
    """Draw what is missing in a simulated log of the ICU."""
    name, steps, seed = "icu-mnar-unid", 10_000, 0
    data = mm.collect(mm.load_benchmark(name), steps, seed=seed)
    title = f"{name}: what is missing in {steps:,} simulated steps (seed {seed})"
    return mm.describe(data).draw(folder / f"describe-{name}.svg", title=title)


def draw_policy(folder: Path) -> Path:
    """Draw what to do in the tiger problem."""
    policy = mm.Sarsop(precision=1e-6, progress=False).solve(read_model(DOCS / "tiger.pomdp")).policy
    return policy.graph().draw(folder / "policy-tiger.svg", title="tiger.pomdp: what to do")


def draw_search(folder: Path) -> Path:
    """Draw the bounds of a search that was recorded, but for its first second, in which they are far apart.

    Times differ from run to run. To record another:
    `missmdp solve icu-smar --precision 0 --timeout 30 --trace docs/trace-icu-smar.csv`.
    """
    trace = TraceBuilder()
    with (DOCS / "trace-icu-smar.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            counts = {name: int(row[name]) for name in ("trials", "backups", "vectors", "points")}
            numbers = {name: float(row[name]) for name in ("seconds", "lower", "upper")}
            if numbers["seconds"] >= 1.0:
                trace.append(**counts, **numbers)
    return trace.build().plot(folder / "trace-icu-smar.svg", title="icu-smar: bounds over time")


if __name__ == "__main__":
    for figure in draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES):
        print(figure)
