"""Diagnose many logs of every benchmark: the table of docs/results/diagnosis.md.

What single runs found is kept in docs/results/tables/diagnosis.csv: a run that is there is not done again, so that
the script can be stopped and started at any time.

    python docs/make_diagnosis.py runs      # 100 logs of 10⁴ and of 10⁵ steps each: hours
    python docs/make_diagnosis.py table     # the table, from what is there
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from pathlib import Path

import missmdp as mm

HERE = Path(__file__).parent / "results"
PAGE, RUNS = HERE / "diagnosis.md", HERE / "tables" / "diagnosis.csv"
SIZES = (10_000, 100_000)
N_RUNS = 100
TESTED = ("MCAR", "simple MAR", "no self-censoring")


def data_seed(steps: int, run: int) -> int:
    """Return a seed that no two logs share."""
    return 9_000_000 + 1000 * len(str(steps)) + run


def diagnosed(name: str, steps: int, run: int) -> dict[str, object]:
    """Return what is found in one log, beside the truth."""
    truth = mm.load_benchmark(name)
    log = mm.collect(truth, steps, seed=data_seed(steps, run))
    found = mm.diagnose(log, truth.mdp, draws=0, progress=False)
    p_values = {test.null: f"{test.p_value:.3g}" for test in found.tests}
    return {
        "benchmark": name,
        "steps": steps,
        "run": run,
        "type": found.type,
        "self_censoring": " ".join(found.self_censoring),
        "same_graph": found.graph.edges == truth.mgraph().edges,
        **{f"p {null}": p_values.get(null, "") for null in TESTED},
    }


def read_runs() -> list[dict[str, str]]:
    """Return the runs that are there."""
    if not RUNS.exists():
        return []
    with RUNS.open(newline="") as file:
        return list(csv.DictReader(file))


def make_runs() -> None:
    """Do the runs that are not there."""
    there = {(row["benchmark"], row["steps"], row["run"]) for row in read_runs()}
    for steps, run, name in product(SIZES[::-1], range(N_RUNS), mm.list_benchmarks()):
        if (name, str(steps), str(run)) in there:
            continue
        row = diagnosed(name, steps, run)
        new = not RUNS.exists()
        with RUNS.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)


def table(runs: list[dict[str, str]]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| benchmark | truth | steps | logs | right type | right self-censoring | right m-graph | "
        + " | ".join(f"{null} rejected" for null in TESTED)
        + " |",
        "|---|---|---|---|---|---|---|" + "---|" * len(TESTED),
    ]
    for name, steps in product(mm.list_benchmarks(), SIZES):
        own = [row for row in runs if row["benchmark"] == name and row["steps"] == str(steps)]
        if not own:
            continue
        truth = mm.load_benchmark(name).types()
        right = sum(row["type"] == truth.name for row in own)
        censoring = sum(row["self_censoring"].split() == list(truth.self_censoring) for row in own)
        graphs = sum(row["same_graph"] == "True" for row in own)
        words = truth.name + (
            f", {', '.join(truth.self_censoring)} self-censoring" if truth.self_censoring else ""
        )
        tests = " | ".join(_rejected([row[f"p {null}"] for row in own]) for null in TESTED)
        lines.append(
            f"| {name} | {words} | {steps:,} | {len(own)} | {right} | {censoring} | {graphs} | {tests} |"
        )
    return "\n".join(lines)


def _rejected(p_values: list[str]) -> str:
    """Return how many p-values are below 1 %; a class that coincides with a narrower one has none."""
    there = [float(p) for p in p_values if p]
    return str(sum(p < 0.01 for p in there)) if there else "–"


def make_table() -> None:
    """Write the table into its page."""
    before, rest = PAGE.read_text().split("<!-- diagnosis -->")
    after = rest.split("<!-- end of diagnosis -->")[1]
    PAGE.write_text(f"{before}<!-- diagnosis -->\n{table(read_runs())}\n<!-- end of diagnosis -->{after}")
    print(f"wrote the table of {PAGE}")


if __name__ == "__main__":
    {"runs": make_runs, "table": make_table}[sys.argv[1]]()
