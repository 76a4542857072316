"""Evaluate all baselines on all benchmarks and write the tables of docs/baselines.md.

Every cell (model, policy, seed) is kept in a folder when it is finished, so that a run can be stopped and gone on with:

    python docs/make_baselines.py --folder baselines

takes about an hour on two cores, most of it for PPO. PPO needs the extra `ppo`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import missmdp as mm
from missmdp.evaluation.compare import difference
from missmdp.experiments.baselines import BaselineSettings, baseline_settings, make_baseline
from missmdp.experiments.fingerprint import content_hash, model_hash
from missmdp.experiments.kept_policies import KEPT, PolicyFolder
from missmdp.model.value_iteration import optimal_values

PAGE = Path(__file__).parent / "baselines.md"
FIRST_EVALUATION_SEED = 1_000
"""Policies that were made with seed k are evaluated with seed 1,000 + k: on luck of their own."""
SOLVE_TIMEOUT = 120.0
DATA_STEPS = 100_000
PLANS = {
    # policy: (seeds, episodes per seed)
    "random": (1, 20_000),
    "prior": (1, 20_000),
    "optimal": (1, 20_000),
    "pomcp": (4, 125),
    "ppo": (3, 2_000),
    "ppo-memory": (3, 2_000),
}
LEARNERS = {"AMCAR": mm.AMCAR, "AsMAR": mm.AsMAR, "AIMI": mm.AIMI}
DATA_SEEDS = range(3)
UNIDENTIFIABLE = ("icu-mnar-unid", "predator-mnar-unid")
FULL = {"ICU": "icu-smar", "Predator": "predator-smar", "Predator, large map": "predator-mcar"}
"""The MDPs without missingness, and a benchmark with each."""
PAIRED = 2_000
"""Episodes at which the separation of optimal and prior is judged."""


@dataclass(frozen=True)
class Cell:
    """One policy, made with one seed, in one model."""

    benchmark: str
    policy: str
    seed: int
    episodes: int
    full: bool = False

    @property
    def evaluation_seed(self) -> int:
        """The seed of its episodes."""
        return FIRST_EVALUATION_SEED + self.seed

    @property
    def settings(self) -> BaselineSettings:
        """How its policy is made, if it is a baseline."""
        return BaselineSettings(solve_timeout=SOLVE_TIMEOUT, seed=self.seed)

    def model(self) -> mm.MissMDP:
        """Return the model that is acted in."""
        model = mm.load_benchmark(self.benchmark)
        return mm.fully_observed_model(model) if self.full else model

    @cached_property
    def name(self) -> str:
        """The name of its file; a hash of model and settings is in it, so that nothing stale is found."""
        made = {} if self.policy in LEARNERS else baseline_settings(self.policy, self.settings)
        key = {"model": model_hash(self.model()), "made": made, "timeout": SOLVE_TIMEOUT, "steps": DATA_STEPS}
        words = (
            self.benchmark,
            *(["full"] if self.full else []),
            self.policy,
            str(self.seed),
            str(self.episodes),
        )
        return "-".join((*words, content_hash(key)[:8]))


def cells() -> Iterator[Cell]:
    """Yield all cells, cheap ones first."""
    for policy, (seeds, episodes) in PLANS.items():
        for seed in range(seeds):
            for benchmark in mm.list_benchmarks():
                yield Cell(benchmark, policy, seed, episodes)
            if policy in ("pomcp", "ppo"):
                for benchmark in FULL.values():
                    yield Cell(benchmark, policy, seed, episodes, full=True)
    for learner in LEARNERS:
        for seed in DATA_SEEDS:
            for benchmark in UNIDENTIFIABLE:
                yield Cell(benchmark, learner, seed, 20_000)


def run(cell: Cell, folder: Path) -> None:
    """Make the policy, evaluate it and keep what came out."""
    warnings.simplefilter("ignore", mm.AssumptionWarning)
    model = cell.model()
    value = mm.evaluate(
        policy_of(cell, model, folder),
        model,
        cell.episodes,
        cell.evaluation_seed,
        control_variate=True,
        workers=1,
        progress=False,
    )
    target = folder / f"{cell.name}.npz"
    with target.with_suffix(".part").open("wb") as file:
        np.savez(file, controlled=value.estimates, returns=value.returns, events=json.dumps(value.events))
    target.with_suffix(".part").rename(target)


def policy_of(cell: Cell, model: mm.MissMDP, folder: Path) -> mm.Policy:
    """Return the policy of a cell: made, or kept from an earlier run."""
    if cell.policy in LEARNERS:
        learner = LEARNERS[cell.policy]().fit(mm.collect(model, DATA_STEPS, seed=cell.seed, progress=False))
        learned = model.with_missingness(learner.missingness_)
        return mm.Sarsop(timeout=SOLVE_TIMEOUT, progress=False).solve(learned).policy
    kept = PolicyFolder(folder / "policies", model, cell.settings)
    made = kept.find(cell.policy) if cell.policy in KEPT else None
    if made is None:
        made = make_baseline(cell.policy, model, cell.settings, progress=False)
        if cell.policy in KEPT:
            kept.keep(cell.policy, made)
    return made.policy


class Results:
    """What was kept, as evaluations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def value(self, cell: Cell) -> mm.Evaluation:
        """Return a cell's evaluation; cells of one model and seed share their luck."""
        with np.load(self.folder / f"{cell.name}.npz") as kept:
            returns, controlled = kept["returns"], kept["controlled"]
            events: dict[str, int] = json.loads(str(kept["events"]))
        empty = np.empty(0)
        return mm.Evaluation(
            returns,
            empty.astype(np.int64),
            empty.astype(np.bool_),
            events,
            0,
            0.0,
            cell.evaluation_seed,
            "episodes",
            0.0,
            controlled,
            cell.model(),
        )

    def seeds(self, benchmark: str, policy: str, *, full: bool = False) -> list[mm.Evaluation]:
        """Return a policy's evaluations, one per seed."""
        seeds, episodes = PLANS[policy]
        return [self.value(Cell(benchmark, policy, seed, episodes, full)) for seed in range(seeds)]


def plus_minus(mean: float, error: float, places: int) -> str:
    """Return a mean with its error."""
    return f"{mean:.{places}f} ± {error:.{places}f}".replace("-", "−")


def over_seeds(values: list[mm.Evaluation], places: int) -> str:
    """Return the mean over seeds, with its error, and the best seed's value with its own."""
    if len(values) == 1:
        return plus_minus(values[0].mean, values[0].stderr, places)
    means = np.array([value.mean for value in values])
    best = max(values, key=lambda value: value.mean)
    error = float(means.std(ddof=1) / np.sqrt(len(means)))
    return f"{plus_minus(float(means.mean()), error, places)}; {plus_minus(best.mean, best.stderr, places)}"


def baseline_table(results: Results) -> str:
    """Return the values of all baselines on all benchmarks."""
    lines = ["| | " + " | ".join(PLANS) + " |", "|---" * (len(PLANS) + 1) + "|"]
    for benchmark in mm.list_benchmarks():
        places = 1 if benchmark.startswith("icu") else 3
        found = [over_seeds(results.seeds(benchmark, policy), places) for policy in PLANS]
        lines.append(f"| {benchmark} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def normalised_table(results: Results) -> str:
    """Return the values on the scale on which prior is 0 and optimal is 1."""
    shown = ("random", "pomcp", "ppo", "ppo-memory")
    lines = ["| | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for benchmark in mm.list_benchmarks():
        optimal, prior = (results.seeds(benchmark, name)[0] for name in ("optimal", "prior"))
        found: list[str] = []
        for policy in shown:
            scaled = [
                mm.normalised_value(value, optimal, prior) for value in results.seeds(benchmark, policy)
            ]
            best = max(scaled, key=float)
            mean = float(np.mean([float(value) for value in scaled]))
            text = f"{mean:.2f}; " if len(scaled) > 1 else ""
            found.append(f"{text}{best.mean:.2f} ± {best.stderr:.2f}".replace("-", "−"))
        lines.append(f"| {benchmark} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def full_table(results: Results) -> str:
    """Return POMCP and PPO where nothing goes missing, beside the optimum."""
    lines = ["| | optimum | pomcp | ppo |", "|---|---|---|---|"]
    for label, benchmark in FULL.items():
        mdp = mm.load_benchmark(benchmark).mdp
        places = 2 if benchmark.startswith("icu") else 3
        optimum = f"{mdp.initial @ optimal_values(mdp):.{places}f}".replace("-", "−")
        found = [
            over_seeds(results.seeds(benchmark, policy, full=True), places) for policy in ("pomcp", "ppo")
        ]
        lines.append(f"| {label} | {optimum} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def separation_table(results: Results) -> str:
    """Return how far optimal and prior are apart, at 2,000 episodes, against luck and against random."""
    lines = [
        "| | optimal − prior | its error at 2,000 episodes | in errors | share of optimal − random |",
        "|---|---|---|---|---|",
    ]
    for benchmark in mm.list_benchmarks():
        optimal, prior, random = (
            results.seeds(benchmark, name)[0] for name in ("optimal", "prior", "random")
        )
        gap, whole = difference(optimal, prior), difference(optimal, random)
        error = float((optimal.returns - prior.returns)[:PAIRED].std(ddof=1) / np.sqrt(PAIRED))
        places = 2 if benchmark.startswith("icu") else 3
        found = plus_minus(gap.mean, gap.stderr, places)
        share = 100 * gap.mean / whole.mean
        lines.append(
            f"| {benchmark} | {found} | {error:.{places}f} | {gap.mean / error:.0f} | {share:.1f} % |"
        )
    return "\n".join(lines)


def learner_table(results: Results) -> str:
    """Return the normalised values of learned policies where M cannot be identified from snapshots."""
    lines = ["| | " + " | ".join(LEARNERS) + " |", "|---" * (len(LEARNERS) + 1) + "|"]
    for benchmark in UNIDENTIFIABLE:
        optimal, prior = (results.seeds(benchmark, name)[0] for name in ("optimal", "prior"))
        found: list[str] = []
        for learner in LEARNERS:
            values = [results.value(Cell(benchmark, learner, seed, 20_000)) for seed in DATA_SEEDS]
            scaled = [float(mm.normalised_value(value, optimal, prior)) for value in values]
            found.append(
                plus_minus(float(np.mean(scaled)), float(np.std(scaled, ddof=1) / np.sqrt(len(scaled))), 3)
            )
        lines.append(f"| {benchmark} | " + " | ".join(found) + " |")
    return "\n".join(lines)


TABLES = {
    "baselines": baseline_table,
    "normalised": normalised_table,
    "full": full_table,
    "separation": separation_table,
    "learners": learner_table,
}


def write_page(folder: Path) -> None:
    """Put the tables into the page, each between its marks."""
    text = PAGE.read_text()
    for name, table in TABLES.items():
        before, rest = text.split(f"<!-- {name} -->")
        after = rest.split(f"<!-- end of {name} -->")[1]
        text = f"{before}<!-- {name} -->\n{table(Results(folder))}\n<!-- end of {name} -->{after}"
    PAGE.write_text(text)
    print(f"wrote the tables of {PAGE}")


def main() -> None:
    """Run the cells that are missing, then write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("baselines"), help="where cells are kept")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="policies to run; no tables are written then")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    missing = [
        cell
        for cell in cells()
        if (not chosen.only or cell.policy in chosen.only)
        and not (chosen.folder / f"{cell.name}.npz").exists()
    ]
    with ProcessPoolExecutor(chosen.workers) as executor:
        tasks = {executor.submit(run, cell, chosen.folder): cell for cell in missing}
        for done, task in enumerate(as_completed(tasks), 1):
            task.result()
            print(f"{done} of {len(missing)}: {tasks[task].name}", flush=True)
    if not chosen.only:
        write_page(chosen.folder)


if __name__ == "__main__":
    main()
