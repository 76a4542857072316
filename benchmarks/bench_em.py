"""Learning from the dynamics: one fit against reading the data."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import missmdp as mm
from benchmarks.timing import interleaved, row

ROWS = 1_000_000


def run() -> None:
    """Print the figures of DynamicsEM."""
    warnings.simplefilter("ignore", mm.AssumptionWarning)
    truth = mm.load_benchmark("icu-mnar-unid")
    data = mm.collect(truth, ROWS, seed=0)
    graph = truth.mgraph()
    for structure in ("auto", graph):
        mm.DynamicsEM(truth.mdp, structure).fit(mm.collect(truth, 1000, seed=0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "icu.csv"
        data.to_csv(path)
        reading, table, lumped = interleaved(
            lambda: mm.Dataset.from_table(path, truth.mdp),
            lambda: mm.DynamicsEM(truth.mdp, graph, lump=False, starts=1).fit(data),
            lambda: mm.DynamicsEM(truth.mdp, graph, starts=1).fit(data),
            repeats=1,
        )
    (auto,) = interleaved(lambda: mm.DynamicsEM(truth.mdp).fit(data), repeats=1)
    row("10⁶ ICU rows: reading the CSV", f"{reading:.1f} s")
    row(
        "EM with the m-graph, one start / reading",
        f"{table / reading:.1f}",
        f"{table:.1f} s; goal: under 2 min",
    )
    row("EM with the m-graph and lumped values / reading", f"{lumped / reading:.1f}", f"{lumped:.1f} s")
    row("EM with the structure found, two starts / reading", f"{auto / reading:.1f}", f"{auto:.1f} s")
