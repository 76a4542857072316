"""Draw the pictures in docs/figures: `make figures`. The same library versions give the same files."""

from __future__ import annotations

import sys
from pathlib import Path

import missmdp as mm

FIGURES = Path(__file__).parent / "figures"


def draw_all(folder: Path) -> list[Path]:
    """Draw the m-graph of every benchmark and example, and what is missing in a log; return the paths."""
    drawn: list[Path] = []
    for name in [*mm.list_benchmarks(), *mm.list_examples()]:
        types = mm.load_benchmark(name).types()
        path = folder / f"mgraph-{name}.svg"
        drawn.append(mm.load_benchmark(name).mgraph().draw(path, title=f"{name}: {types.name}"))
    return [*drawn, draw_description(folder)]


def draw_description(folder: Path) -> Path:
    """Draw what is missing in a simulated log of the ICU."""
    name, steps, seed = "icu-mnar-unid", 10_000, 0
    data = mm.collect(mm.load_benchmark(name), steps, seed=seed)
    title = f"{name}: what is missing in {steps:,} simulated steps (seed {seed})"
    return mm.describe(data).draw(folder / f"describe-{name}.svg", title=title)


if __name__ == "__main__":
    for figure in draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES):
        print(figure)
