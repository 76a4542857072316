"""Cells that take no time: what comes out is drawn from their own seeds, so that results are recognised."""

import os
import signal
import time

import numpy as np

from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.work import CellResult

TINY = ReproduceConfig(
    benchmarks=("icu-smar", "predator-smar"),
    sizes=(100, 1_000),
    runs=3,
    value_sizes=(100,),
    value_runs=2,
    episodes=50,
    baselines=("random", "prior", "optimal", "pomcp"),
    baseline_seeds=2,
    pomcp_episodes=20,
)
"""A grid with every kind of cell that needs no extra."""
LEVEL = {"random": -5.0, "prior": 0.0, "optimal": 2.0}


def pretend(cell):
    """Return what a cell might find: learned policies are between prior and optimal, more data are better."""
    random = np.random.default_rng(cell.data_seed if cell.size else cell.evaluation_seed(cell.run))
    if cell.kind == "learning":
        return CellResult(
            {
                name: {"atv": float(random.uniform()), "wtv": float(random.uniform())}
                for name in cell["learners"]
            },
            seconds=0.5,
        )
    luck = [np.random.default_rng(cell.evaluation_seed(run)) for run in _runs(cell)]
    own = LEVEL.get(cell.policy, 1.0) + (0.0 if cell.policy in LEVEL else 0.1 * random.normal())
    estimates = np.stack([own + draw.normal(size=_episodes(cell)) for draw in luck])
    estimates += 0.1 * random.normal(size=estimates.shape)
    found = {
        "lower": own - 0.1,
        "upper": own + 0.1,
        "status": "trials",
        "vectors": 7,
        "atv": 0.25,
        "wtv": 0.5,
    }
    found |= {"returns": float(estimates.mean()), "impossible": 3, "decisions": estimates.size}
    return CellResult(found, estimates, seconds=1.5)


def _runs(cell):
    return range(cell["value_runs"]) if cell.policy in LEVEL else [cell.run]


def _episodes(cell):
    return cell["pomcp_episodes" if cell.policy == "pomcp" else "episodes"]


def fails_on_pomcp(cell):
    if cell.policy == "pomcp":
        raise RuntimeError(f"no particles in {cell.benchmark}")
    return pretend(cell)


def dies_on_pomcp(cell):
    """End the process that runs the cell, as the system does when memory is short."""
    if cell.policy == "pomcp" and cell.run == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return pretend(cell)


def slow_pretend(cell):
    """Take a moment, so that workers have something to do when one of them is killed."""
    time.sleep(0.05)
    return pretend(cell)
