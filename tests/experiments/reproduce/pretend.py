"""Cells that take no time: what comes out is drawn from their own seeds, so that results are recognised."""

import os
import signal
import time

import numpy as np

from missmdp.experiments.grid.cell import CellResult
from missmdp.experiments.reproduce.config import ReproduceConfig

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
    seeds = cell.evaluation_seeds if cell.kind == "baseline" else (cell.data_seed,)
    random = np.random.default_rng(seeds[0])
    if cell.kind == "learning":
        return CellResult(
            {
                name: {
                    "atv": float(random.uniform()),
                    "weighted": 0.5,
                    "wtv": float(random.uniform()),
                    "parameters": 3,
                }
                for name in cell.learners
            },
            seconds=0.5,
        )
    luck = seeds if cell.kind == "baseline" else (cell.evaluation_seed,)
    own = LEVEL.get(cell.policy, 1.0) + (0.0 if cell.policy in LEVEL else 0.1 * random.normal())
    estimates = np.stack([own + np.random.default_rng(seed).normal(size=cell.episodes) for seed in luck])
    estimates += 0.1 * random.normal(size=estimates.shape)
    found = {"lower": own - 0.1, "upper": own + 0.1, "status": "trials"}
    if cell.kind == "value":
        found |= {"vectors": 7, "atv": 0.25, "wtv": 0.5}
    found |= {"returns": float(estimates.mean()), "impossible": 3, "decisions": estimates.size}
    return CellResult(found, estimates, seconds=1.5)


def is_pomcp(cell):
    return cell.kind == "baseline" and cell.policy == "pomcp"


def fails_on_pomcp(cell):
    if is_pomcp(cell):
        raise RuntimeError(f"no particles in {cell.benchmark}")
    return pretend(cell)


def dies_on_pomcp(cell):
    """End the process that runs the cell, as the system does when memory is short."""
    if is_pomcp(cell) and cell.run == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return pretend(cell)


def slow_pretend(cell):
    """Take a moment, so that workers have something to do when one of them is killed."""
    time.sleep(0.05)
    return pretend(cell)
