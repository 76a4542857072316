"""Folders of runs that nobody ran: every cell has made-up numbers, decided by what the cell is."""

import hashlib

import numpy as np

from missmdp.experiments.grid.cell import CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.plan import all_cells

TINY = ReproduceConfig(
    benchmarks=("icu-smar", "predator-mnar-unid"),
    sizes=(10, 1_000, 100_000),
    runs=4,
    value_sizes=(1_000, 100_000),
    value_runs=3,
    episodes=50,
    baseline_seeds=3,
    pomcp_episodes=20,
    max_trials=1,
    solve_timeout=None,
    baseline_timeout=None,
)
"""All that can be drawn, with few cells."""

ENDS = {"icu": (-86.0, -69.0, -161.0), "predator": (6.0, 6.6, 0.3)}
"""Values of prior, optimal and random, made up."""
SHARES = {"AMCAR": 0.05, "AsMAR": 0.98, "AIMI": -2.0, "pomcp": -0.8, "ppo": 0.6, "ppo-memory": 0.7}
"""Of the way from prior to optimal, made up."""


def fake_run(folder, config=TINY, left_out=lambda cell: False):
    """Write a run's folder without the cells that are to be left out."""
    store = CellStore(folder / "cells")
    config.save(folder / "config.toml")
    for cell in all_cells(config):
        if not left_out(cell):
            store.write(cell, fake_result(cell))
    return folder


def fake_result(cell):
    """Return made-up numbers of a cell."""
    digest = hashlib.sha256(cell.name.encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    if cell.kind == "learning":
        return CellResult({name: _distances(name, cell.size, random) for name in cell.learners}, seconds=0.5)
    found = {"lower": 1.25, "upper": 2.5, "status": "trials"}
    if cell.kind == "value":
        found |= {"vectors": 7, "atv": 0.1, "wtv": 0.5}
    found |= {"returns": 0.0, "impossible": 2, "decisions": 1000}
    return CellResult(found, _estimates(cell, random), 3.25)


def _distances(learner, size, random):
    average = min(
        1.0,
        {"AMCAR": 0.2, "AsMAR": 0.01, "AIMI": 0.1}.get(learner, 0.02) + random.uniform(0.5, 1.5) / size**0.5,
    )
    return {"atv": average, "weighted": average, "wtv": min(1.0, 2.0 * average), "parameters": 3}


def _estimates(cell, random):
    prior, optimal, worst = ENDS[cell.benchmark.split("-")[0]]
    once = {"random": worst, "prior": prior, "optimal": optimal}
    mean = once.get(cell.policy)
    if mean is None:
        size, nothing_missing = getattr(cell, "size", np.inf), getattr(cell, "fully_observed", False)
        share = SHARES.get(cell.policy, 0.9) + random.normal(0.0, 0.03) - 3.0 / size**0.5
        mean = prior + share * (optimal - prior) + 30.0 * nothing_missing * (optimal < 0.0)
    runs = len(cell.evaluation_seeds) if cell.kind == "baseline" else 1
    return mean + 0.1 * abs(optimal - prior) * random.normal(size=(runs, cell.episodes))
