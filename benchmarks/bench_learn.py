"""Learning: in memory against one count of as many integers, from files against another engine's group-by."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import missmdp as mm
from benchmarks.timing import child_peak_memory, interleaved, row

ROWS = 10_000_000


def run() -> None:
    """Print the figures of the learners."""
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, ROWS, seed=0)
    warnings.simplefilter("ignore", mm.AssumptionWarning)
    mm.AIMI().fit(mm.collect(model, 1000, seed=0))
    codes = np.random.default_rng(0).integers(0, 1650, ROWS)
    count, asmar, aimi = interleaved(
        lambda: np.bincount(codes), lambda: mm.AsMAR().fit(data), lambda: mm.AIMI().fit(data)
    )
    row("AsMAR on 10⁷ ICU rows / np.bincount of 10⁷ int64", f"{asmar / count:.2f}", "goal: 10 or less")
    row("AIMI on 10⁷ ICU rows / np.bincount of 10⁷ int64", f"{aimi / count:.2f}", "goal: 10 or less")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "icu.parquet"
        (writing,) = interleaved(lambda: data.to_parquet(path), repeats=1)
        row("write 10⁷ rows to Parquet", f"{writing:.2f} s", f"{path.stat().st_size / 1e6:.0f} MB")
        _files(model, path)


def _files(model: mm.MissMDP, path: Path) -> None:
    names = model.space.features.names
    ours, theirs, reading = interleaved(
        lambda: mm.ObservationCounts.from_table(path, model.mdp),
        lambda: pl.scan_parquet(path).group_by(names).len().collect(),
        lambda: mm.Dataset.from_table(path, model.mdp),
        repeats=3,
    )
    row("counts from the file, checked", f"{ours:.2f} s")
    row("polars' group-by of the same columns, unchecked", f"{theirs:.2f} s")
    row("counts / polars' group-by", f"{ours / theirs:.2f}")
    row("Dataset.from_table", f"{reading:.2f} s")
    load = f"import missmdp as mm; mdp = mm.load_benchmark('icu-smar').mdp; path = {str(path)!r}"
    peak = child_peak_memory(f"{load}; mm.ObservationCounts.from_table(path, mdp)")
    row("peak memory of counting the file", f"{peak:,.0f} MB", "goal: under 1,500 MB")
    peak = child_peak_memory(f"{load}; mm.Dataset.from_table(path, mdp)")
    row("peak memory of reading the file", f"{peak:,.0f} MB")
