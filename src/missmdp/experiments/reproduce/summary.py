"""The tables of a run, made from its finished cells alone: per run, and over runs as in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.compare import NormalisedValue
from missmdp.experiments.grid.cell import Cell, CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.cells import SCALE, BaselineCell, LearningCell, ValueCell, benchmark_model
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.tables import write_table
from missmdp.model.pomdp import optimal_values


@dataclass(frozen=True, eq=False)
class Scale:
    """The values of the optimal policy and of the prior's, in the episodes of every run."""

    optimal: NDArray[np.float64]
    """Shape (runs, episodes)."""
    prior: NDArray[np.float64]

    def gaps(
        self, estimates: NDArray[np.float64], run: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return V − V_prior in a policy's own episodes, and V_optimal − V_prior in all of the run: maybe more."""
        return estimates - self.prior[run, : len(estimates)], self.optimal[run] - self.prior[run]

    def of_run(self, estimates: NDArray[np.float64], run: int) -> NormalisedValue | None:
        """Return the normalised value of one policy; its error is that of the episodes. None without a scale."""
        return ratio_of_means(*self.gaps(estimates, run))


def over_runs(
    runs: Sequence[tuple[int, NDArray[np.float64]]],
    scale: Scale | None,
    confidence: float = 0.95,
    *,
    pooled: bool = False,
) -> dict[str, Any]:
    """Return the normalised value over runs, its standard error, and its interval.

    Runs are independent: each has data, or a seed, and episodes of its own. So the means of a run are one draw, and
    the ratio of their means has an error (delta method) and an interval (Fieller's) that hold for new data too.
    With a single run, or one policy in all of them (`pooled`), the error is that of the episodes. All is None where
    the optimal policy is worth no more than the prior's: such a scale would turn losses into gains.
    """
    names = ("normalised", "normalised_stderr", "normalised_low", "normalised_high")
    if scale is None:
        return dict.fromkeys(names)
    gaps = [scale.gaps(estimates, run) for run, estimates in runs]
    if pooled or len(gaps) == 1:
        value = ratio_of_means(*map(np.concatenate, zip(*gaps, strict=True)))
    else:
        value = ratio_of_means(*(np.array([gap[i].mean() for gap in gaps]) for i in (0, 1)))
    if value is None:
        return dict.fromkeys(names)
    low, high = value.interval(confidence)
    found = (value.mean, value.stderr, low, high)
    return {
        name: float(number) if math.isfinite(number) else None
        for name, number in zip(names, found, strict=True)
    }


def ratio_of_means(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> NormalisedValue | None:
    """Return the ratio of two means, of which the first entries are pairs; None without a scale."""
    if not denominator.mean() > 0.0:
        return None
    both, most = sorted((len(numerator), len(denominator)))
    together = float(np.cov(numerator[:both], denominator[:both])[0, 1] / most)
    return NormalisedValue(
        float(numerator.mean()),
        float(denominator.mean()),
        ((_variance_of_mean(numerator), together), (together, _variance_of_mean(denominator))),
        both,
    )


def _variance_of_mean(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1) / len(values))


Rows = list[dict[str, Any]]
C = TypeVar("C", bound=Cell)


class Summary:
    """What the finished cells of a run say, as rows.

    Parameters
    ----------
    folder
        Of the run.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.config = ReproduceConfig.of_run(folder)
        self.cells = all_cells(self.config)
        store = CellStore(self.folder / "cells")
        store.check()
        self.results = {cell: result for cell in self.cells if (result := store.read(cell)) is not None}

    @property
    def finished(self) -> int:
        """How many cells are finished."""
        return len(self.results)

    def _of_kind(self, kind: type[C]) -> list[tuple[C, CellResult]]:
        return [(cell, result) for cell, result in self.results.items() if isinstance(cell, kind)]

    def _grouped(self, rows: Rows) -> Iterable[tuple[dict[str, Any], Rows]]:
        """Yield (benchmark, learner, size) with its rows, in the order of the configuration."""
        names = ("benchmark", "learner", "size")
        groups: dict[tuple[Any, ...], Rows] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
        benchmarks, learners = self.config.benchmarks, self.config.learners
        for key in sorted(groups, key=lambda key: (benchmarks.index(key[0]), learners.index(key[1]))):
            yield dict(zip(names, key, strict=True)), groups[key]

    @cached_property
    def learning_runs(self) -> Rows:
        """Total variation, one row per dataset and learner."""
        return [
            {
                "benchmark": cell.benchmark,
                "learner": learner,
                "size": cell.size,
                "run": cell.run,
                "atv": result.found[learner]["atv"],
                "wtv": result.found[learner]["wtv"],
                "data_seed": cell.data_seed,
            }
            for cell, result in self._of_kind(LearningCell)
            for learner in self.config.learners
        ]

    @cached_property
    def learning(self) -> Rows:
        """Total variation over runs: mean with its standard error, and quartiles."""
        return [
            {**group, "runs": len(rows), **_spread("atv", rows), **_spread("wtv", rows)}
            for group, rows in self._grouped(self.learning_runs)
        ]

    @cached_property
    def value_runs(self) -> Rows:
        """Values of learned policies, one row per dataset and learner."""
        rows: Rows = []
        for cell, result in self._of_kind(ValueCell):
            estimates, found = result.estimates[0], result.found
            row: dict[str, Any] = {
                "benchmark": cell.benchmark,
                "learner": cell.policy,
                "size": cell.size,
                "run": cell.run,
                "value": float(estimates.mean()),
                "stderr": _stderr(estimates),
                "normalised": None,
                "normalised_stderr": None,
            }
            scale = self._scale(cell.benchmark)
            normalised = None if scale is None else scale.of_run(estimates, cell.run)
            if normalised is not None:
                row |= {"normalised": normalised.mean, "normalised_stderr": normalised.stderr}
            row |= {
                "lower": found["lower"],
                "upper": found["upper"],
                "status": found["status"],
                "vectors": found["vectors"],
                "atv": found["atv"],
                "wtv": found["wtv"],
                "impossible": found["impossible"],
                "decisions": found["decisions"],
                "data_seed": cell.data_seed,
                "evaluation_seed": cell.evaluation_seed,
            }
            rows.append(row)
        return rows

    @cached_property
    def values(self) -> Rows:
        """Values over runs: means with standard errors between runs, 95 % intervals, and quartiles."""
        by_group: dict[tuple[str, str, int], list[tuple[int, NDArray[np.float64]]]] = {}
        for cell, result in self._of_kind(ValueCell):
            key = cell.benchmark, cell.policy, cell.size
            by_group.setdefault(key, []).append((cell.run, result.estimates[0]))
        rows: Rows = []
        for group, runs in self._grouped(self.value_runs):
            estimates = by_group[group["benchmark"], group["learner"], group["size"]]
            rows.append(
                {
                    **group,
                    "runs": len(runs),
                    **_spread("value", runs),
                    **over_runs(estimates, self._scale(group["benchmark"])),
                    **_quartiles("normalised", runs),
                }
            )
        return rows

    @cached_property
    def baselines(self) -> Rows:
        """Values of baselines: over the episodes of all runs for those made once, else over seeds, with the best."""
        groups: dict[tuple[str, str, bool], list[tuple[BaselineCell, CellResult]]] = {}
        for cell, result in self._of_kind(BaselineCell):
            groups.setdefault((cell.benchmark, cell.policy, cell.fully_observed), []).append((cell, result))
        return [self._baseline_row(*group, found) for group, found in groups.items()]

    def _baseline_row(
        self, benchmark: str, policy: str, fully_observed: bool, found: list[tuple[BaselineCell, CellResult]]
    ) -> dict[str, Any]:
        once = policy in SCALE
        runs = [
            (run if once else cell.run, estimates)
            for cell, result in found
            for run, estimates in enumerate(result.estimates)
        ]
        means = np.array([estimates.mean() for _, estimates in runs])
        best = runs[int(np.argmax(means))][1]
        # A policy that was made once has one value, and episodes are its sample; others are a sample of policies.
        sample = np.concatenate([estimates for _, estimates in runs]) if once else means
        scale = None if fully_observed else self._scale(benchmark)
        row: dict[str, Any] = {
            "benchmark": benchmark,
            "missing": "nothing" if fully_observed else "as in the benchmark",
            "policy": policy,
            "seeds": 1 if once else len(runs),
            "episodes": int(sum(len(estimates) for _, estimates in runs)),
            "value": float(sample.mean()),
            "stderr": _stderr(sample),
            "best": float(sample.mean()) if once else float(best.mean()),
            "best_stderr": _stderr(sample) if once else _stderr(best),
            **over_runs(runs, scale, pooled=once),
            "optimum": None,
            **{name: found[0][1].found[name] for name in ("lower", "upper", "status")},
            "impossible": sum(result.found["impossible"] for _, result in found),
        }
        if fully_observed:
            mdp = benchmark_model(benchmark).mdp
            row["optimum"] = float(mdp.initial @ optimal_values(mdp))
        return row

    @cached_property
    def separation(self) -> Rows:
        """How far optimal, prior and random are apart."""
        rows: Rows = []
        for benchmark in self.config.benchmarks:
            found = {
                cell.policy: result.estimates
                for cell, result in self._of_kind(BaselineCell)
                if cell.benchmark == benchmark and cell.policy in SCALE
            }
            if set(found) != set(SCALE):
                continue
            gap, whole = found["optimal"] - found["prior"], found["optimal"] - found["random"]
            rows.append(
                {
                    "benchmark": benchmark,
                    "episodes": gap.size,
                    "optimal_minus_prior": float(gap.mean()),
                    "stderr": _stderr(gap.ravel()),
                    "optimal_minus_random": float(whole.mean()),
                    "share": float(gap.mean() / whole.mean()),
                }
            )
        return rows

    @cached_property
    def timings(self) -> Rows:
        """Wall time per cell; not among the tables, since it differs from run to run."""
        return [
            {"cell": cell.name, "kind": cell.kind, "benchmark": cell.benchmark, "seconds": result.seconds}
            for cell, result in self.results.items()
        ]

    def tables(self) -> dict[str, Rows]:
        """Return all tables by name."""
        names = ("learning", "learning_runs", "values", "value_runs", "baselines", "separation")
        return {name: getattr(self, name) for name in names}

    def _scale(self, benchmark: str) -> Scale | None:
        return self._scales.get(benchmark)

    @cached_property
    def _scales(self) -> dict[str, Scale]:
        ends: dict[tuple[str, str], NDArray[np.float64]] = {
            (cell.benchmark, cell.policy): result.estimates
            for cell, result in self._of_kind(BaselineCell)
            if cell.policy in ("optimal", "prior")
        }
        return {
            benchmark: Scale(ends[benchmark, "optimal"], ends[benchmark, "prior"])
            for benchmark in self.config.benchmarks
            if (benchmark, "optimal") in ends and (benchmark, "prior") in ends
        }


def summarise(folder: str | Path) -> Summary:
    """Return what a run's finished cells say, also of a run that is not finished."""
    return Summary(folder)


def write_tables(folder: str | Path) -> Summary:
    """Write the tables of a run as .csv and .parquet files, and the wall times beside them; return what is in them."""
    summary = summarise(folder)
    target = Path(folder) / "tables"
    for name, rows in summary.tables().items():
        for suffix in (".csv", ".parquet"):
            write_table(rows, target / f"{name}{suffix}")
    write_table(summary.timings, Path(folder) / "timings.csv")
    return summary


def _spread(name: str, rows: Rows) -> dict[str, Any]:
    values = np.array([row[name] for row in rows])
    return {name: float(values.mean()), f"{name}_stderr": _stderr(values), **_quartiles(name, rows)}


def _quartiles(name: str, rows: Rows) -> dict[str, Any]:
    values = [row[name] for row in rows if row[name] is not None]
    levels = {f"{name}_q25": 0.25, f"{name}_median": 0.5, f"{name}_q75": 0.75}
    return {key: float(np.quantile(values, level)) if values else None for key, level in levels.items()}


def _stderr(values: NDArray[np.float64] | Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
