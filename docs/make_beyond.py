"""Learn from the dynamics on every benchmark, beside the paper's learners: the tables of docs/results/beyond.md.

What single runs found is kept in docs/results/tables/beyond-learning.csv and beyond-values.csv: a run that is there is
not done again, so that the script can be stopped and started at any time.

    python docs/make_beyond.py learning    # total variation: 20 datasets of 10⁴ and 10⁵ steps, 5 of 10⁶
    python docs/make_beyond.py values      # normalised values on the benchmarks that the paper calls unidentifiable
    python docs/make_beyond.py tables      # the tables, from what is there
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import missmdp as mm

HERE = Path(__file__).parent / "results"
PAGE = HERE / "beyond.md"
LEARNING, VALUES = HERE / "tables" / "beyond-learning.csv", HERE / "tables" / "beyond-values.csv"
RUNS = {10_000: 20, 100_000: 20, 1_000_000: 5}
VALUE_STEPS, VALUE_RUNS, VALUE_TRIALS, VALUE_EPISODES = 100_000, 10, 24, 4000
END_TRIALS = {"icu-mnar-unid": (64, 64), "predator-mnar-unid": (24, 6)}
"""Of the true and of the prior model, which is large on Predator: nearly everything can be missing."""
LEARNERS: dict[str, Callable[[mm.MissMDP], Any]] = {
    "AMCAR": lambda truth: mm.AMCAR(),
    "AsMAR": lambda truth: mm.AsMAR(),
    "AIMI": lambda truth: mm.AIMI(),
    "DynamicsEM, m-graph": lambda truth: mm.DynamicsEM(truth.mdp, truth.mgraph()),
    "DynamicsEM, auto": lambda truth: mm.DynamicsEM(truth.mdp),
}


def data_seed(steps: int, run: int) -> int:
    """Return a seed that no two datasets share."""
    return 7_000_000 + 1000 * len(str(steps)) + run


def done(path: Path) -> set[tuple[str, ...]]:
    """Return what is in a file of runs: benchmark, steps, run, learner."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {(row["benchmark"], row["steps"], row["run"], row["learner"]) for row in csv.DictReader(file)}


def append(path: Path, row: dict[str, Any]) -> None:
    """Add a line to a file of runs."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def fitted(name: str, truth: mm.MissMDP, log: mm.Dataset) -> Any:
    """Return a learner that has learned; that assumptions fail is what some runs are there to show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        return LEARNERS[name](truth).fit(log)


def learning() -> None:
    """Measure how far M̂ is from M, one run on all benchmarks after the other."""
    known = done(LEARNING)
    for steps, runs in RUNS.items():
        for run in range(runs):
            for benchmark in mm.list_benchmarks():
                wanted = [n for n in LEARNERS if (benchmark, str(steps), str(run), n) not in known]
                if wanted:
                    learn_one(benchmark, steps, run, wanted)
            print(f"{steps:,} steps: run {run} of {runs}", flush=True)


def learn_one(benchmark: str, steps: int, run: int, wanted: list[str]) -> None:
    """Let some learners learn from one log."""
    truth = mm.load_benchmark(benchmark)
    log = mm.collect(truth, steps, seed=data_seed(steps, run), progress=False)
    for name in wanted:
        learner = fitted(name, truth, log)
        tv = mm.total_variation(learner.missingness_, truth)
        append(
            LEARNING,
            {
                "benchmark": benchmark,
                "steps": steps,
                "run": run,
                "learner": name,
                "atv": f"{tv.average:.6f}",
                "weighted": f"{tv.weighted:.6f}",
                "wtv": f"{tv.worst:.6f}",
                "parameters": getattr(learner, "n_parameters_", ""),
            },
        )


def values() -> None:
    """Measure what the policies are worth: one dataset and one seed of episodes for each run."""
    known = done(VALUES)
    for benchmark, (best, least) in END_TRIALS.items():
        runs = [(str(run), name) for run in range(VALUE_RUNS) for name in LEARNERS]
        if all((benchmark, str(VALUE_STEPS), *run) in known for run in runs):
            continue
        truth = mm.load_benchmark(benchmark)
        ends = {
            "optimal": solved(truth, best),
            "prior": solved(mm.prior_model(truth), least),
        }
        for run in range(VALUE_RUNS):
            wanted = [n for n in LEARNERS if (benchmark, str(VALUE_STEPS), str(run), n) not in known]
            if not wanted:
                continue
            log = mm.collect(truth, VALUE_STEPS, seed=data_seed(VALUE_STEPS, run), progress=False)
            scale = {name: worth(policy, truth, run) for name, policy in ends.items()}
            for name in wanted:
                model = truth.with_missingness(fitted(name, truth, log).missingness_)
                value = worth(solved(model, VALUE_TRIALS), truth, run)
                append(
                    VALUES,
                    {
                        "benchmark": benchmark,
                        "steps": VALUE_STEPS,
                        "run": run,
                        "learner": name,
                        "value": f"{value:.6f}",
                        "optimal": f"{scale['optimal']:.6f}",
                        "prior": f"{scale['prior']:.6f}",
                    },
                )
            print(f"{benchmark}: run {run} of {VALUE_RUNS}", flush=True)


def solved(model: mm.MissMDP, trials: int) -> Any:
    """Return a policy; so many trials rather than seconds, so that every machine finds the same."""
    return mm.Sarsop(max_trials=trials, timeout=None, progress=False).solve(model).policy


def worth(policy: Any, truth: mm.MissMDP, run: int) -> float:
    """Return the value in the episodes of a run, which all policies share."""
    seed = 9_000_000 + run
    found = mm.evaluate(policy, truth, VALUE_EPISODES, seed, control_variate=True, progress=False)
    return float(found.estimates.mean())


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file of runs."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def learning_table(column: str) -> Iterator[str]:
    """Yield the lines of a table of distances: mean over runs and standard error."""
    rows = rows_of(LEARNING)
    yield "| benchmark | learner | " + " | ".join(f"{steps:,} steps" for steps in RUNS) + " |"
    yield "| :--- | :--- |" + " ---: |" * len(RUNS)
    for benchmark in mm.list_benchmarks():
        for name in LEARNERS:
            cells: list[str] = []
            for steps in RUNS:
                key = (benchmark, str(steps), name)
                found = np.array(
                    [float(r[column]) for r in rows if (r["benchmark"], r["steps"], r["learner"]) == key]
                )
                cells.append(cell(found, RUNS[steps]))
            yield f"| {benchmark} | {name} | " + " | ".join(cells) + " |"


def cell(found: np.ndarray, runs: int) -> str:
    """Return mean and standard error, and how many runs there are where some are still to be done."""
    if not len(found):
        return ""
    error = f" ± {found.std(ddof=1) / np.sqrt(len(found)):.4f}" if len(found) > 1 else ""
    return f"{found.mean():.4f}{error}" + ("" if len(found) == runs else f" ({len(found)})")


def value_table() -> Iterator[str]:
    """Yield the lines of the table of normalised values: ratio of means over runs, Fieller's interval over runs."""
    from missmdp.experiments.reproduce.summary import ratio_of_means

    rows = rows_of(VALUES)
    yield "| benchmark | learner | normalised value | 95 % interval |"
    yield "| :--- | :--- | ---: | ---: |"
    for benchmark in END_TRIALS:
        for name in LEARNERS:
            own = [r for r in rows if (r["benchmark"], r["learner"]) == (benchmark, name)]
            value, optimal, prior = (
                np.array([float(r[key]) for r in own]) for key in ("value", "optimal", "prior")
            )
            found = ratio_of_means(value - prior, optimal - prior)
            assert found is not None, "the optimal policy beats the prior's"
            low, high = found.interval()
            numbers = f"{found.mean:.3f} ± {found.stderr:.3f} | {low:.3f} to {high:.3f}"
            yield f"| {benchmark} | {name} | {numbers.replace('-', '−')} |"


def tables() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text()
    for mark, lines in (
        ("learning", learning_table("atv")),
        ("weighted", learning_table("weighted")),
        ("values", value_table()),
    ):
        before, rest = text.split(f"<!-- {mark} -->")
        after = rest.split(f"<!-- end of {mark} -->")[1]
        text = f"{before}<!-- {mark} -->\n" + "\n".join(lines) + f"\n<!-- end of {mark} -->{after}"
    PAGE.write_text(text)
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    for step in sys.argv[1:] or ["learning", "values", "tables"]:
        {"learning": learning, "values": values, "tables": tables}[step]()
