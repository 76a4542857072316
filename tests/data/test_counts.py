"""Counts from tables: the same as counting a dataset, whichever way they are counted, and with the same errors."""

from __future__ import annotations

import logging
import os
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import missmdp as mm
from missmdp.data.tables import count as counting
from oracles import trajectory_tables as oracle
from strategies import missmdps, seeds


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


def by_query(function, *arguments, **options):
    """Return what a function gives, or fail if it had to read rows."""

    def refuse(*_, **__):
        raise AssertionError("rows were read")

    patch = pytest.MonkeyPatch()
    patch.setattr(counting, "_by_reading", refuse)
    try:
        return function(*arguments, **options)
    finally:
        patch.undo()


def as_counter(counts):
    return Counter({tuple(z): int(n) for z, n in zip(counts.observations, counts.counts, strict=True)})


@settings(max_examples=25)
@given(
    model=missmdps(), seed=seeds(), steps=st.integers(1, 80), shuffle=st.booleans(), files=st.integers(1, 3)
)
def test_counts_of_files_are_those_of_the_dataset(model, seed, steps, shuffle, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    data = mm.collect(model, steps, seed=seed, horizon=6)
    table = data.to_arrow()
    if shuffle:
        table = table.take(np.random.default_rng(seed).permutation(steps))
    for part in range(files):
        rows = table.slice(part * steps // files, (part + 1) * steps // files - part * steps // files)
        parquet.write_table(rows, folder / f"{part}.parquet")
    expected = Counter(tuple(z) for episode in data.episodes() for z, _ in episode)
    counts = by_query(mm.ObservationCounts.from_table, folder, model.mdp)
    assert as_counter(counts) == expected
    assert counts.behaviour == "blind"
    assert counts == mm.ObservationCounts.from_dataset(mm.Dataset.from_table(folder, model.mdp))
    data.to_csv(folder / "log.csv")
    assert as_counter(mm.ObservationCounts.from_table(folder / "log.csv", model.mdp)) == expected
    assert as_counter(mm.ObservationCounts.from_table(table, model.mdp)) == expected


WORDS = pa.dictionary(pa.int32(), pa.string())
COLUMN_TYPES = {
    "level": [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64(), pa.string(), WORDS],
    "on_drip": [pa.bool_(), pa.int32(), pa.float64(), pa.large_string()],
    "episode": [pa.int16(), pa.int64(), pa.string(), pa.float64(), WORDS],
    "step": [pa.int8(), pa.int64(), pa.uint32(), pa.float64(), pa.string()],
}  # fmt: skip


@settings(max_examples=25)
@given(data=st.data())
def test_columns_of_all_types_are_counted_alike(tmp_path_factory, data):
    """Types that the engine does not see as Python does are read instead; the result must not tell."""
    mdp = oracle.small_mdp(mm)
    n = data.draw(st.integers(1, 12))
    cells = {
        "episode": [row // 4 for row in range(n)],
        "step": [row % 4 for row in range(n)],
        "ward": data.draw(st.lists(st.sampled_from(["icu", "NA", None]), min_size=n, max_size=n)),
        "level": data.draw(st.lists(st.sampled_from([1, 2, 3, None]), min_size=n, max_size=n)),
        "on_drip": data.draw(st.lists(st.sampled_from([True, False, None]), min_size=n, max_size=n)),
        "action": [None if row % 4 == 3 or row == n - 1 else "wait" for row in range(n)],
    }
    columns = {name: pa.array(values) for name, values in cells.items()}
    for name, types in COLUMN_TYPES.items():
        chosen = data.draw(st.sampled_from(types))
        array = columns[name]
        if pa.types.is_floating(chosen) and pa.types.is_boolean(array.type):
            array = array.cast(pa.int64())
        if pa.types.is_dictionary(chosen):
            array = array.cast(pa.string()).dictionary_encode()
        columns[name] = array.cast(chosen)
    if data.draw(st.booleans()) and pa.types.is_floating(columns["level"].type):
        columns["level"] = columns["level"].fill_null(float("nan"))
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    parquet.write_table(pa.table(columns), path)
    counts = mm.ObservationCounts.from_table(path, mdp)
    assert as_counter(counts) == oracle.counts(pa.table(cells).to_pylist(), mdp)
    assert counts == mm.ObservationCounts.from_dataset(mm.Dataset.from_table(path, mdp))


MISTAKES = [
    *(("step", value) for value in (0, 1, 31, 40, 2**40, -1, None)),
    *(("episode", value) for value in (None, 3)),
    *(("action", value) for value in (None, "cure")),
    *(("level", value) for value in (None, 4)),
    ("ward", "x"),
]


@st.composite
def broken_tables(draw):
    """Draw tables in which a few things may be wrong."""
    n = draw(st.integers(1, 10))

    def column(cells):
        return draw(st.lists(st.sampled_from(cells), min_size=n, max_size=n))

    table = {
        "episode": sorted(column([1, 2, 3])),
        "step": [0] * n,
        "ward": column(["icu", "NA", None]),
        "level": column([1, 2, 3, None]),
        "on_drip": column([True, False, None]),
        "action": ["wait"] * n,
        "terminated": column([False, None]),
    }
    seen = Counter()
    first = draw(st.sampled_from([0, 0, 1, 2]))
    for row, episode in enumerate(table["episode"]):
        table["step"][row] = seen[episode] + first
        seen[episode] += 1
        if row == n - 1 or table["episode"][row + 1] != episode:
            table["action"][row] = draw(st.sampled_from([None, "treat"]))
    for _ in range(draw(st.integers(0, 2))):
        name, value = draw(st.sampled_from(MISTAKES))
        table[name][draw(st.integers(0, n - 1))] = value
    order = draw(st.permutations(range(n))) if draw(st.booleans()) else range(n)
    return {name: [values[i] for i in order] for name, values in table.items()}


@settings(max_examples=25)
@given(
    table=broken_tables(),
    cut=st.integers(0, 10),
    per_file=st.booleans(),
    kind=st.sampled_from(["parquet", "csv"]),
)
def test_what_is_wrong_is_told_in_the_same_words(table, cut, per_file, kind, tmp_path_factory):
    """Either both ways give the same counts, or both give the same error."""
    mdp = oracle.small_mdp(mm)
    folder = tmp_path_factory.mktemp("log")
    schema = {"episode": pa.int64(), "step": pa.int64(), "ward": pa.string(), "level": pa.int64()}
    schema |= {"on_drip": pa.bool_(), "action": pa.string(), "terminated": pa.bool_()}
    whole = pa.table(table, schema=pa.schema(schema))
    parts = [whole.slice(0, cut), whole.slice(cut)]
    for number, part in enumerate(part for part in parts if part.num_rows):
        if kind == "csv":
            part.to_pandas(types_mapper=lambda t: pd.Int64Dtype() if t == pa.int64() else None).to_csv(
                folder / f"{number}.csv", index=False
            )
        else:
            parquet.write_table(part, folder / f"{number}.parquet")

    def outcome(read):
        try:
            return read()
        except mm.DataError as error:
            return str(error)

    whole = outcome(
        lambda: mm.ObservationCounts.from_dataset(mm.Dataset.from_table(folder, mdp, per_file=per_file))
    )
    counted = outcome(lambda: mm.ObservationCounts.from_table(folder, mdp, per_file=per_file))
    assert counted == whole


def test_rows_out_of_order_over_several_batches_are_understood(mdp, tmp_path, monkeypatch):
    from missmdp.data.tables import parts

    monkeypatch.setattr(parts, "_BLOCK_BYTES", 200)
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "episode": np.repeat(np.arange(30), 7),
            "step": np.tile(np.arange(7), 30),
            "ward": rng.choice(["icu", "NA"], 210),
            "level": rng.integers(1, 4, 210),
            "on_drip": rng.random(210) < 0.5,
            "action": ["wait", "treat", "wait", "wait", "wait", "wait", None] * 30,
        }
    )
    shuffled = table.take(rng.permutation(210))
    for rows in (table, shuffled):
        pl.from_arrow(rows).write_csv(tmp_path / "log.csv")
        expected = oracle.counts(oracle.read_words(tmp_path / "log.csv"), mdp)
        assert as_counter(mm.ObservationCounts.from_table(tmp_path / "log.csv", mdp)) == expected
    broken = shuffled.set_column(1, "step", pa.array(np.where(np.arange(210) == 77, 70, shuffled["step"])))
    pl.from_arrow(broken).write_csv(tmp_path / "log.csv")
    row = broken.slice(77, 1).to_pylist()[0]
    with pytest.raises(mm.DataError) as caught:
        mm.ObservationCounts.from_table(tmp_path / "log.csv", mdp)
    assert f"episode '{row['episode']}'" in str(caught.value)
    with pytest.raises(mm.DataError) as again:
        mm.Dataset.from_table(tmp_path / "log.csv", mdp)
    assert str(again.value) == str(caught.value)


def connect(backend, tmp_path, table):
    import ibis

    parquet.write_table(table, tmp_path / "log.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ibis calls DuckDB in ways that will change
        if backend == "duckdb":
            return ibis.duckdb.connect().read_parquet(tmp_path / "log.parquet")
        return ibis.polars.connect().read_parquet(tmp_path / "log.parquet", table_name="log")


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_queries_are_counted_by_their_back_end(backend, tmp_path, caplog):
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 3000, seed=4)
    log = connect(backend, tmp_path, data.to_arrow())
    some = log.filter(log.episode < 5)
    with caplog.at_level(logging.INFO), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = by_query if backend == "duckdb" else lambda function, *arguments: function(*arguments)
        counts = read(mm.ObservationCounts.from_table, some, model.mdp)
        assert counts.n_steps == data.offsets[5]
        assert counts == mm.ObservationCounts.from_dataset(mm.Dataset.from_table(some, model.mdp))
        with pytest.raises(mm.DataError, match="'infection' cannot be 7"):
            mm.ObservationCounts.from_table(log.mutate(infection=log.infection.fill_null(7)), model.mdp)
        with pytest.raises(mm.DataError, match="no column 'test'"):
            mm.ObservationCounts.from_table(log.drop("test"), model.mdp)


def test_bins_are_computed_by_the_query(mdp, tmp_path):
    levels = [36.9, -1e300, 37, 37.5, 38, None, float("nan"), float("inf")]
    table = {
        "episode": [1] * 8,
        "step": range(8),
        "ward": ["icu"] * 8,
        "level": pa.array(levels),
        "on_drip": [True] * 8,
        "action": ["wait"] * 7 + [None],
    }
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    bins = {"level": mm.Binning.from_edges([37, 38])}
    counts = by_query(mm.ObservationCounts.from_table, tmp_path / "log.parquet", mdp, bins=bins)
    assert {z.level: int(n) for z, n in zip(counts.observations, counts.counts, strict=True)} == {
        1: 2,
        2: 2,
        3: 2,
        None: 2,
    }
    with pytest.raises(mm.DataError, match="put them into bins"):
        mm.ObservationCounts.from_table(tmp_path / "log.parquet", mdp)


@pytest.mark.parametrize(
    ("name", "row", "value", "fragment"),
    [
        ("action", 0, "cure", "row 1, episode 1: 'action' cannot be 'cure'"),
        ("level", 1, 5, "row 2, episode 1: 'level' cannot be 5"),
        ("terminated", 1, 7, "row 2, episode 1: 'terminated' cannot be 7"),
        ("action", 0, None, "row 1, episode 1: 'action' is missing at step 0"),
        ("step", 1, 0, "rows 1 and 2, episode 1: two rows for 'step' 0"),
        ("episode", 1, None, "row 2: 'episode' is missing"),
        ("step", 1, None, "row 2, episode 1: 'step' is missing"),
        ("step", 2, 2, "row 3, episode 2: 'step' starts at 2"),
    ],
)
def test_mistakes_that_only_a_query_sees_are_told_precisely(name, row, value, fragment, mdp, tmp_path):
    table = {
        "episode": [1, 1, 2],
        "step": [0, 1, 0],
        "ward": ["icu", None, "NA"],
        "level": [1, 2, None],
        "on_drip": [True, None, False],
        "action": ["wait", None, "treat"],
        "terminated": [0, 1, None],
    }
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    assert by_query(mm.ObservationCounts.from_table, tmp_path / "log.parquet", mdp).n_steps == 3
    table[name][row] = value
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    with pytest.raises(mm.DataError) as caught:
        mm.ObservationCounts.from_table(tmp_path / "log.parquet", mdp)
    assert fragment in str(caught.value)
    assert "log.parquet" in str(caught.value)


def test_names_of_files_are_no_patterns(tmp_path):
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 200, seed=4)
    data.to_parquet(tmp_path / "log [1].parquet")
    mm.collect(model, 100, seed=5).to_parquet(tmp_path / "log 1.parquet")
    counts = mm.ObservationCounts.from_table(tmp_path / "log [1].parquet", model.mdp)
    assert counts == mm.ObservationCounts.from_dataset(data)


def test_files_that_number_their_own_episodes_are_counted_by_a_query(tmp_path):
    model = mm.load_benchmark("icu-smar")
    parts = [mm.collect(model, 300, seed=seed) for seed in (4, 5)]
    for number, data in enumerate(parts):
        data.to_parquet(tmp_path / f"{number}.parquet")
    counts = by_query(mm.ObservationCounts.from_table, tmp_path, model.mdp, per_file=True)
    assert counts == sum(map(mm.ObservationCounts.from_dataset, parts))


def test_names_that_the_engine_would_misread_are_no_trouble(tmp_path):
    """Columns that differ in case only, and one that the engine would add."""
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 200, seed=4)
    table = (
        data.to_arrow()
        .append_column("TEST", pa.array(["x"] * 200))
        .append_column("filename", pa.array([1] * 200))
    )
    parquet.write_table(table, tmp_path / "log.parquet")
    counts = mm.ObservationCounts.from_table(tmp_path, model.mdp)
    assert counts == mm.ObservationCounts.from_dataset(data)


def test_files_of_different_types_are_counted_together(mdp, tmp_path):
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 400, seed=4)
    data.to_parquet(tmp_path / "a.parquet")
    replace(data, episode_ids=tuple(f"x{e}" for e in range(data.n_episodes))).to_parquet(
        tmp_path / "b.parquet"
    )
    replace(data, episode_ids=tuple(range(100, 100 + data.n_episodes))).to_csv(tmp_path / "c.csv")
    counts = mm.ObservationCounts.from_table(tmp_path, model.mdp)
    one = mm.ObservationCounts.from_dataset(data)
    assert counts == one + one + one
    assert counts.behaviour is None


def test_nothing_is_left_behind(tmp_path, monkeypatch, mdp):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 400, seed=4)
    data.to_parquet("log.parquet")
    pl.DataFrame(data.to_polars()).sample(fraction=1, shuffle=True, seed=1).write_csv("log.csv")
    for path in ("log.parquet", "log.csv"):
        mm.ObservationCounts.from_table(path, model.mdp)
        with pytest.raises(mm.DataError):
            mm.ObservationCounts.from_table(path, mdp)
    assert sorted(os.listdir(tmp_path)) == ["log.csv", "log.parquet", "temporary"]
    assert os.listdir(tmp_path / "temporary") == []


def test_importing_and_counting_in_memory_needs_no_query_engine():
    import subprocess
    import sys

    code = (
        "import sys, missmdp as mm; m = mm.load_benchmark('icu-smar'); d = mm.collect(m, 50, seed=0); "
        "mm.ObservationCounts.from_dataset(d); mm.validate(d, m.mdp); mm.Binning.from_edges([1]); "
        "print([name for name in ['ibis', 'duckdb', 'pyarrow', 'pandas', 'polars'] if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_more_combinations_than_fit_a_table_are_counted(tmp_path: Path):
    """Twelve features of ten values have more ranks than there is memory for one counter each."""
    from missmdp.data.counts import RankCounter
    from missmdp.model.space import FeatureSpace

    features = FeatureSpace({f"x{i}": range(10) for i in range(12)})
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 1, size=(500, 12))
    counter = RankCounter(features)
    for part in np.array_split(codes, 3):
        counter.add(part)
    ranks, counts = counter.result()
    expected = Counter(map(tuple, codes.tolist()))
    assert (
        Counter(dict(zip(map(tuple, features.unrank(ranks).tolist()), counts.tolist(), strict=True)))
        == expected
    )


@pytest.mark.parametrize("given", [pd.DataFrame({"x": [1]}), "log.csv", None])
def test_only_datasets_are_counted_as_datasets(given):
    with pytest.raises(mm.DataError, match=r"expected a Dataset, got .*ObservationCounts\.from_table"):
        mm.ObservationCounts.from_dataset(given)
