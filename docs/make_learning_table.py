"""Learn every benchmark with every learner from ever more data, and write the table of docs/learning.md."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import missmdp as mm

PAGE = Path(__file__).parent / "learning.md"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SEEDS = range(10)
BLOCK = [("x", "y")]
LEARNERS = {
    "icu": {
        "AMCAR": mm.AMCAR(),
        "AsMAR": mm.AsMAR(),
        "AIMI": mm.AIMI(),
        "AIMI, simple MAR": mm.AIMI(assume="simple MAR"),
    },
    "predator": {
        "AMCAR": mm.AMCAR(),
        "AsMAR": mm.AsMAR(),
        "AIMI": mm.AIMI(),
        "AIMI, block (x, y)": mm.AIMI(blocks=BLOCK),
    },
}


def measure(name: str) -> dict[str, list[tuple[float, float]]]:
    """Return learner → ATV and WTV for each size, averaged over seeds."""
    model = mm.load_benchmark(name)
    learners = LEARNERS[name.split("-")[0]]
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in learners}
    for steps in SIZES:
        distances = {label: [] for label in learners}
        for seed in SEEDS:
            counts = mm.ObservationCounts.from_dataset(mm.collect(model, steps, seed=seed))
            for label, learner in learners.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", mm.AssumptionWarning)
                    learner.fit(counts)
                tv = mm.total_variation(learner.missingness_, model.missingness)
                distances[label].append((tv.average, tv.worst))
        for label, pairs in distances.items():
            average, worst = np.mean(pairs, axis=0)
            found[label].append((float(average), float(worst)))
    return found


def learning_table() -> str:
    """Return all benchmarks as a table in Markdown."""
    lines = [
        "| benchmark | learner | " + " | ".join(f"{steps:,}" for steps in SIZES) + " |",
        "|---|---|" + "---|" * len(SIZES),
    ]
    for name in mm.list_benchmarks():
        for label, pairs in measure(name).items():
            cells = " | ".join(f"{average:.3f} / {worst:.3f}" for average, worst in pairs)
            lines.append(f"| {name} | {label} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    before, rest = PAGE.read_text().split("<!-- learning -->")
    after = rest.split("<!-- end of learning -->")[1]
    PAGE.write_text(f"{before}<!-- learning -->\n{learning_table()}\n<!-- end of learning -->{after}")
    print(f"wrote the table of {PAGE}")
