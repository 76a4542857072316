"""Whatever bytes or cells come in, a result or a `DataError` comes out."""

from __future__ import annotations

import contextlib
import datetime
import math
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table
from oracles import trajectory_tables as oracle

MDP = oracle.small_mdp(mm)
BINS = {"level": mm.Binning.from_edges([1.5, 2.5])}
TABLE = {
    "episode": ["a", "a", "a", "b", "b", "c"],
    "step": [0, 1, 2, 0, 1, 0],
    "ward": ["icu", None, "NA", "south wing", None, "icu"],
    "level": [1, 3, None, 2, None, 1],
    "on_drip": [True, None, False, None, None, False],
    "action": ["wait", "treat", None, "treat", None, None],
    "terminated": [None, False, True, False, None, None],
    "reward": [0.5, -1.0, None, 0.0, None, None],
}
READERS = {
    "dataset": lambda source, **options: mm.Dataset.from_table(source, MDP, **options),
    "counts": lambda source, **options: mm.ObservationCounts.from_table(source, MDP, **options),
    "log": lambda source, **options: log_from_table(source, **options),
    "no model": lambda source, **options: mm.Dataset.from_table(source, **options),
    "validate": lambda source, **options: str(mm.validate(source, MDP, **options)),
}


def try_all(source, **options):
    """Return what reading a source in all ways gives, a result or an error; counts must be those of the dataset."""
    results = {}
    for name, read in READERS.items():
        try:
            results[name] = read(source, **options)
        except mm.DataError as error:
            results[name] = error
    dataset, counts = results["dataset"], results["counts"]
    if isinstance(dataset, mm.Dataset) and isinstance(counts, mm.ObservationCounts):
        assert counts == mm.ObservationCounts.from_dataset(dataset)
    return results


def messages(results):
    """Return what the errors among results say."""
    return [str(result) for result in results.values() if isinstance(result, mm.DataError)]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few places changed, cut out, doubled or swapped."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(6):
            case 0:
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                changed[at] = rng.randrange(256)
            case 2:
                del changed[at : at + rng.randint(1, 20)]
            case 3:
                changed[at:at] = changed[at : at + rng.randint(1, 20)]
            case 4:
                changed[at:at] = rng.choice(
                    [b"\0", b'"', b"\n", b"\r", b",", b";", b"\xff\xfe", b"\xe2\x82", b"NaN", b"-"]
                )
            case _:
                del changed[at:]
    return bytes(changed)


def csv_bytes():
    return pd.DataFrame(TABLE).to_csv(index=False).encode()


def parquet_bytes(folder, **options):
    parquet.write_table(pa.table(TABLE), folder / "whole.parquet", **options)
    return (folder / "whole.parquet").read_bytes()


@pytest.mark.parametrize("seed", range(60))
def test_damaged_csv_files(seed, tmp_path):
    rng = random.Random(seed)
    path = tmp_path / "log.csv"
    path.write_bytes(damaged(csv_bytes(), rng))
    results = try_all(path)
    assert isinstance(results["dataset"], mm.DataError) == isinstance(results["counts"], mm.DataError)


def fuzz_parquet(seed, folder):
    rng = random.Random(seed)
    path = folder / "log.parquet"
    options = {"compression": rng.choice(["none", "snappy"]), "use_dictionary": rng.random() < 0.5}
    path.write_bytes(damaged(parquet_bytes(folder, **options), rng))
    results = try_all(path)
    # The query engine does not look at checksums, so counts may be there where a dataset is not.
    assert not isinstance(results["counts"], mm.DataError) or isinstance(results["dataset"], mm.DataError)
    assert all(str(path) in message for message in messages(results))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_parquet_files(seed, tmp_path):
    fuzz_parquet(seed, tmp_path)


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    for seed in range(1000, 1600):
        fuzz_parquet(seed, tmp_path)
    path = tmp_path / "log.csv"
    for seed in range(1000, 2500):
        path.write_bytes(damaged(csv_bytes(), random.Random(seed)))
        results = try_all(path)
        assert isinstance(results["dataset"], mm.DataError) == isinstance(results["counts"], mm.DataError)


@given(content=st.binary(max_size=300), suffix=st.sampled_from([".csv", ".tsv", ".csv.gz", ".parquet"]))
@settings(max_examples=25)
def test_random_bytes(content, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / f"log{suffix}"
    path.write_bytes(content)
    results = try_all(path)
    assert all(isinstance(result, mm.DataError) for result in results.values())


@given(text=st.text('0123456789.,;\t\n\r" ae-NA\0é', max_size=200), bins=st.sampled_from([None, BINS]))
@settings(max_examples=25)
def test_random_text_below_a_good_header(text, bins, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.csv"
    header = "episode,step,ward,level,on_drip,action\n1,0,icu,1,1,wait\n"
    path.write_text(header + text, encoding="utf-8", newline="")
    results = try_all(path, bins=bins)
    assert isinstance(results["dataset"], mm.DataError) == isinstance(results["counts"], mm.DataError)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.sampled_from(
        ["icu", "NA", "wait", "treat", "0", "1", 0, 1, 2, 3, pd.NA, pd.NaT, math.nan, 1e300, 10**400]
    ),
    st.sampled_from(
        [np.int8(1), np.float32("nan"), np.datetime64("NaT", "D"), datetime.date(2024, 2, 29), 1 + 2j]
    ),
    st.tuples(st.integers(0, 2)),
    st.lists(st.integers(0, 2), max_size=2),
    st.just({"a": 1}),
)


@given(data=st.data(), bins=st.sampled_from([None, BINS]))
@settings(max_examples=30)
def test_frames_with_odd_cells(data, bins):
    table = {name: list(values) for name, values in TABLE.items()}
    for _ in range(data.draw(st.integers(1, 5))):
        name = data.draw(st.sampled_from(list(table)))
        table[name][data.draw(st.integers(0, 5))] = data.draw(CELLS)
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})
    for source in (table, frame):
        results = try_all(source, bins=bins)
        assert isinstance(results["dataset"], mm.DataError) == isinstance(results["counts"], mm.DataError)
        assert all(any(repr(name) in message for name in table) for message in messages(results))


ARROW_TYPES = [
    pa.null(),
    pa.bool_(),
    pa.uint64(),
    pa.float16(),
    pa.decimal128(5, 2),
    pa.date32(),
    pa.timestamp("ns", tz="UTC"),
    pa.duration("s"),
    pa.time64("us"),
    pa.binary(),
    pa.large_string(),
    pa.string_view(),
    pa.list_(pa.int64()),
    pa.struct({"a": pa.int64()}),
    pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int8(), pa.int64()),
    pa.month_day_nano_interval(),
]


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
@pytest.mark.parametrize("name", ["episode", "step", "level", "action", "terminated", "reward"])
def test_columns_of_odd_types(name, kind, tmp_path):
    """All cells null, then the first cells of the table as far as they can be cast."""
    whole = pa.table(TABLE)
    options = {"reward": name} if name == "reward" else {}
    columns = [pa.nulls(6, kind)]
    with contextlib.suppress(pa.ArrowException):
        columns.append(pa.array(range(6)).cast(kind))
    for column in columns:
        table = whole.set_column(whole.column_names.index(name), name, column)
        try_all(table, **options)
        try:
            parquet.write_table(table, tmp_path / "log.parquet")
        except pa.ArrowException:
            continue
        results = try_all(tmp_path / "log.parquet", **options)
        if name == "reward":
            continue  # counts do not mind if no reward is left, or if rewards differ from the model's
        assert isinstance(results["dataset"], mm.DataError) == isinstance(results["counts"], mm.DataError)


@given(st.data())
@settings(max_examples=30)
def test_odd_options(data):
    odd = st.sampled_from([None, 5, "", "x", "level", "step", b"step", ["step"], {"level": 3}, math.nan])
    names = ["episode", "step", "action", "terminated", "reward", "bins", "per_file"]
    options = {name: data.draw(odd) for name in data.draw(st.lists(st.sampled_from(names), max_size=3))}
    told = messages(try_all(TABLE, **options))
    assert all(any(name in message for name in options) for message in told)
    assert not told or options
    if options.get("per_file", True) is None or options.get("episode", "episode") in (None, 5, "", "x"):
        assert len(told) == len(READERS)
