"""Bins: against plain comparisons, and what cannot be bins is refused."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table
from oracles import trajectory_tables as oracle

NUMBERS = st.floats(-100, 100) | st.integers(-100, 100)
EDGES = st.lists(st.integers(-50, 50).map(lambda n: n / 4), min_size=1, max_size=6, unique=True).map(sorted)


@given(edges=EDGES, values=st.lists(st.none() | st.just(math.nan) | st.floats() | NUMBERS, max_size=30))
def test_a_value_falls_into_the_bin_between_its_edges(edges, values):
    found = mm.Binning.from_edges(edges)(values)
    for value, code in zip(values, found.tolist(), strict=True):
        if value is None or value != value:
            assert code == mm.MISSING
        else:
            assert code == sum(value >= edge for edge in edges)


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        iter,
        np.array,
        pd.Series,
        pl.Series,
        pa.array,
        lambda values: pd.array(values, dtype="Int64"),
    ],
)
def test_all_kinds_of_columns_can_be_binned(kind):
    assert mm.Binning.from_edges([2, 4])(kind([1, 2, 3, 9])).tolist() == [0, 1, 1, 2]


def test_missing_values_of_all_kinds_stay_missing():
    cells = [None, math.nan, pd.NA, pd.NaT, np.float32("nan"), "3"]
    assert mm.Binning.from_edges([2])(cells).tolist() == [-1] * 5 + [1]


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60), st.integers(2, 6))
def test_quantiles_fill_all_bins_or_say_why_not(values, bins):
    edges = np.quantile(values, np.arange(1, bins) / bins)
    wanted = np.bincount([sum(value >= edge for edge in edges) for value in values], minlength=bins)
    if wanted.min() == 0:
        with pytest.raises(mm.DataError, match="values are the same or few; ask for fewer bins"):
            mm.Binning.quantiles([*values, None, math.nan], bins)
        return
    binning = mm.Binning.quantiles([*values, None, math.nan], bins)
    filled = np.bincount(binning(values), minlength=bins)
    assert filled.tolist() == wanted.tolist()
    assert len(binning) == bins


def test_quantiles_of_distinct_values_hold_equally_many():
    values = np.random.default_rng(0).permutation(1000)
    assert np.bincount(mm.Binning.quantiles(values, 8)(values)).tolist() == [125] * 8
    assert len(mm.Binning.quantiles(values)) == 4


@given(EDGES)
def test_bins_survive_json_and_are_compared_by_edges(edges):
    binning = mm.Binning.from_edges(edges)
    assert mm.Binning.from_json(binning.to_json()) == binning
    assert hash(mm.Binning.from_edges(iter(edges))) == hash(binning)
    assert binning != mm.Binning.from_edges([*edges, 1000])


def test_bins_are_described():
    text = str(mm.Binning.from_edges([36.5, 38]))
    assert text == "3 bins: below 36.5; 36.5 to below 38; 38 and above"
    import missmdp.data.binning

    assert doctest.testmod(missmdp.data.binning) == (0, 3)


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: mm.Binning.from_edges([]), "at least one edge"),
        (lambda: mm.Binning.from_edges([1, 1]), "strictly increasing, got [1.0, 1.0]"),
        (lambda: mm.Binning.from_edges([2, 1]), "strictly increasing"),
        (lambda: mm.Binning.from_edges([1, math.inf]), "finite"),
        (lambda: mm.Binning.from_edges([math.nan]), "finite"),
        (lambda: mm.Binning.from_edges(["a"]), "list of numbers"),
        (lambda: mm.Binning.from_edges("12"), "list of numbers"),
        (lambda: mm.Binning.from_edges(3), "list of numbers"),
        (lambda: mm.Binning.quantiles([1, 1, 1, 2], 4), "ask for fewer bins"),
        (lambda: mm.Binning.quantiles([None]), "at least one value"),
        (lambda: mm.Binning.quantiles([1, 2], 1), "at least 2"),
        (lambda: mm.Binning.quantiles([1, 2], 2.5), "must be an integer"),
        (lambda: mm.Binning.quantiles([1, "warm"], 2), "value 2 is 'warm', not a number"),
        (lambda: mm.Binning.from_edges([1])([True]), "value 1 is True, not a number"),
        (lambda: mm.Binning.from_edges([1])(5), "values must be a list of numbers"),
        (lambda: mm.Binning.from_json({"edge": [1]}), "expected bins such as"),
        (lambda: mm.Binning.from_json([1]), "expected bins such as"),
        (lambda: mm.Binning.from_json({"edges": [1, "b"]}), "list of numbers"),
    ],
)
def test_what_cannot_be_bins_is_refused(make, fragment):
    with pytest.raises(mm.DataError) as caught:
        make()
    assert fragment in str(caught.value)


TABLE = {
    "episode": [1, 1, 1, 2],
    "step": [0, 1, 2, 0],
    "ward": ["icu", "icu", None, "NA"],
    "level": [0.5, 37.0, None, 99.25],
    "on_drip": [True, False, True, None],
    "action": ["wait", "wait", None, None],
}
BINS = {"level": mm.Binning.from_edges([37, 38])}


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


def sources(table, folder):
    parquet.write_table(pa.table(table), folder / "log.parquet")
    pd.DataFrame(table).to_csv(folder / "log.csv", index=False)
    words = {**table, "level": [None if v is None else str(v) for v in table["level"]]}
    return [
        table,
        words,
        folder / "log.csv",
        folder / "log.parquet",
        pd.DataFrame(table),
        pl.DataFrame(table),
    ]


def test_the_kth_bin_is_the_kth_value(mdp, tmp_path):
    for source in sources(TABLE, tmp_path):
        dataset = mm.Dataset.from_table(source, mdp, bins=BINS)
        levels = [z.level for episode in dataset.episodes() for z, _ in episode]
        assert levels == [1, 2, None, 3]
        assert dataset.bins == BINS
        assert mm.ObservationCounts.from_table(source, mdp, bins=BINS) == mm.ObservationCounts.from_dataset(
            dataset
        )
    # Bins are kept with the data, whose table has values and is not binned again.
    dataset.to_parquet(tmp_path / "binned.parquet")
    again = mm.Dataset.from_table(tmp_path / "binned.parquet", mdp)
    assert again.bins == BINS
    assert np.array_equal(again.observations, dataset.observations)


@pytest.mark.parametrize("value", ["warm", "1_0", "0x10"])
def test_what_is_no_number_cannot_be_binned(value, mdp, tmp_path):
    table = {**TABLE, "level": ["36", "37.5", "", value]}
    pd.DataFrame(table).to_csv(tmp_path / "log.csv", index=False)
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError) as caught:
            read(tmp_path / "log.csv", mdp, bins=BINS)
        for fragment in ("log.csv, row 4, episode '2'", "'level'", repr(value), "not a number", "below 37"):
            assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("bins", "fragment"),
    [
        ({"level": mm.Binning.from_edges([1])}, "'level' has 3 values but 2 bins"),
        ({"lvl": mm.Binning.from_edges([1, 2])}, "no feature 'lvl'; the features are ward, level, on_drip"),
        ({"level": [1, 2]}, "expected a Binning for 'level'"),
        (5, "bins must be a mapping from features to Binning"),
    ],
)
def test_bins_that_do_not_fit_the_features_are_refused(bins, fragment, mdp):
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset.from_table(TABLE, mdp, bins=bins)
    assert fragment in str(caught.value)


def test_notes_say_which_value_each_bin_became(mdp, tmp_path, caplog):
    said = "level: below 37 → 1, from 37 to below 38 → 2, from 38 → 3"
    for source in sources(TABLE, tmp_path):
        dataset = mm.Dataset.from_table(source, mdp, bins=BINS)
        assert dataset.notes[0] == said
        assert said in mm.validate(dataset, mdp).notes
        assert said in mm.validate(source, mdp, bins=BINS).notes
        caplog.clear()
        with caplog.at_level("INFO", logger="missmdp"):
            mm.ObservationCounts.from_table(source, mdp, bins=BINS)
        assert said in caplog.messages
        assert log_from_table(source, mdp.space.features, bins=BINS).notes[0] == said
    assert not any("→" in note for note in mm.Dataset.from_table(dataset.to_arrow(), mdp).notes)
