"""Datasets as tables: writing and reading gives the same data, whatever the values and the format."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import missmdp as mm
from missmdp.model.space import FeatureSpace
from oracles import trajectory_tables as oracle
from oracles.trajectory_tables import (
    histories,
)
from strategies import missmdps, seeds


def test_features_called_reward_and_terminated_are_features():
    mdp = oracle.chain_mdp(mm, {"reward": [0, 1], "terminated": ["no", "yes"]})
    data = mm.Dataset(
        mdp, np.array([[0, 1], [1, -1]]), np.array([0, -1]), np.array([0, 2]), np.array([False])
    )
    table = data.to_arrow()
    assert table.column_names == ["episode", "step", "reward", "terminated", "action"]
    assert np.array_equal(mm.Dataset.from_table(table, mdp).observations, data.observations)


def written(dataset, kind, folder):
    match kind:
        case "csv" | "parquet":
            path = folder / f"log.{kind}"
            getattr(dataset, f"to_{kind}")(path)
            return path
        case "dict":
            return dataset.to_arrow().to_pydict()
        case _:
            return getattr(dataset, f"to_{kind}")()


KINDS = ("arrow", "pandas", "polars", "csv", "parquet", "dict")


def assert_same(one, other):
    for field in ("observations", "actions", "offsets", "terminated"):
        mine, theirs = getattr(one, field), getattr(other, field)
        assert np.array_equal(mine, theirs), field
        assert mine.dtype == theirs.dtype, field
    assert one.episode_ids == other.episode_ids


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(model=missmdps(), seed=seeds(), steps=st.integers(1, 60), keep=st.booleans(), data=st.data())
def test_writing_and_reading_gives_the_same_data(kind, model, seed, steps, keep, data, tmp_path_factory):
    dataset = mm.collect(model, steps, seed=seed, horizon=5, keep_states=keep)
    if data.draw(st.booleans()):
        words = st.one_of(
            st.integers(-5, 10**6), st.text("ab,\"'\n é☃1", min_size=1).filter(lambda w: w.strip() == w)
        )
        ids = data.draw(
            st.lists(words, min_size=dataset.n_episodes, max_size=dataset.n_episodes, unique_by=str)
        )
        ids = [str(i) for i in ids] if any(isinstance(i, str) for i in ids) else ids
        if all(str(i).isdecimal() for i in ids):
            ids = [f"x{i}" for i in ids]
        dataset = replace(dataset, episode_ids=tuple(ids))
    again = mm.Dataset.from_table(written(dataset, kind, tmp_path_factory.mktemp("log")), model.mdp)
    assert_same(dataset, again)
    assert again.notes == ()
    if kind in ("arrow", "parquet"):
        assert (again.seed, again.behaviour) == (seed, "blind")


VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.tuples(st.integers(), st.text("ab")),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(values=st.lists(VALUES, min_size=1, max_size=6, unique=True), codes=st.data())
def test_values_of_all_kinds_survive(kind, values, codes, tmp_path_factory):
    """Or it is said that a table could not tell them apart."""
    mdp = oracle.chain_mdp(mm, {"x": values})
    seen = codes.draw(st.lists(st.integers(-1, len(values) - 1), min_size=1, max_size=8))
    n = len(seen)
    dataset = mm.Dataset(
        mdp, np.array(seen, dtype=np.int8)[:, None], np.array([0] * (n - 1) + [-1], dtype=np.int8),
        np.array([0, n]), np.array([False])
    )  # fmt: skip
    words = [str(value) for value in values]
    stripped = [word.strip() for word in words]
    try:
        source = written(dataset, kind, tmp_path_factory.mktemp("log"))
    except mm.DataError:
        assert len(set(stripped)) < len(stripped) or "" in stripped
        return
    assert_same(dataset, mm.Dataset.from_table(source, mdp))


def test_columns_have_the_types_of_values_and_come_in_order(tmp_path):
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 300, seed=1, keep_states=True)
    table = data.to_arrow()
    expected = ["episode", "step", *model.features, "action", "reward", "terminated"]
    assert table.column_names == expected
    assert table.schema.field("heart_rate").type == pa.int64()
    frame = data.to_pandas()
    assert list(frame.columns) == expected
    assert frame["infection"].dtype == pd.Int64Dtype()
    assert frame["infection"].isna().mean() == pytest.approx(data.missing_rates()["infection"])
    assert data.to_polars().schema["infection"] == pl.Int64
    acting = data.actions != -1
    assert np.allclose(frame["reward"][acting].to_numpy(dtype=float), data.rewards[acting])
    assert frame["reward"][~acting].isna().all()
    assert "reward" not in mm.collect(model, 10, seed=1).to_arrow().column_names
    data.to_csv(tmp_path / "deep" / "log.csv")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["log.csv"]
    lines = oracle.read_words(tmp_path / "deep" / "log.csv")
    assert list(oracle.read_histories(lines, model.mdp).values()) == histories(data)


def test_files_are_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    data = mm.collect(mm.load_benchmark("icu-smar"), 50, seed=1)
    for kind, module, name in [("csv", csv, "CSVWriter"), ("parquet", parquet, "ParquetWriter")]:
        path = tmp_path / f"log.{kind}"
        path.write_bytes(b"old")

        class Failing(getattr(module, name)):
            def write_batch(self, batch):
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, name, Failing)
        with pytest.raises(mm.MissMDPError, match=rf"log\.{kind}: cannot be written \(No space left"):
            getattr(data, f"to_{kind}")(path)
        assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(mm.MissMDPError, match="cannot be written"):
        data.to_parquet(tmp_path / "log.csv" / "log.parquet")


def test_parquet_keeps_seed_behaviour_and_bins_and_tolerates_nonsense(tmp_path):
    model = mm.load_benchmark("icu-smar")
    data = mm.collect(model, 50, seed=2**100)
    bins = {"temperature": mm.Binning.from_edges([36, 37, 38.5])}
    path = tmp_path / "log.parquet"
    replace(data, bins=bins).to_parquet(path)
    again = mm.Dataset.from_table(path, model.mdp)
    assert (again.seed, again.behaviour, again.bins) == (2**100, "blind", bins)
    table = parquet.read_table(path)
    for nonsense in (b"{", b"[]", b'{"seed": -1, "behaviour": "odd", "bins": {"temperature": 3}}', b"\xff"):
        again = mm.Dataset.from_table(table.replace_schema_metadata({b"missmdp": nonsense}), model.mdp)
        assert (again.seed, again.behaviour, again.bins) == (None, None, None)
    # Two files are two simulations.
    mm.collect(model, 50, seed=3).to_parquet(tmp_path / "other.parquet")
    both = mm.Dataset.from_table(tmp_path, model.mdp, per_file=True)
    assert (both.seed, both.behaviour) == (None, "blind")


@pytest.mark.parametrize(
    ("features", "fragments"),
    [
        ({"x": ["1", 1]}, ["'x'", "'1' and 1 are written alike"]),
        ({"x": ["a", "\ud800"]}, ["'x'", "cannot be written as text"]),
        ({"step": [1, 2]}, ["'step'", "column of steps"]),
    ],
)
def test_what_cannot_be_written_is_refused(features, fragments):
    mdp = oracle.chain_mdp(mm, features)
    data = mm.Dataset(mdp, np.array([[0]]), np.array([-1]), np.array([0, 1]), np.array([False]))
    with pytest.raises(mm.DataError) as caught:
        data.to_arrow()
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_what_csv_cannot_tell_apart_is_refused(tmp_path):
    for values in (["", "a"], ["a", " a"], ["a", " "]):
        mdp = oracle.chain_mdp(mm, {"x": values})
        data = mm.Dataset(mdp, np.array([[0]]), np.array([-1]), np.array([0, 1]), np.array([False]))
        assert_same(
            mm.Dataset.from_table(data.to_arrow(), mdp),
            replace(
                data, observations=data.observations.astype(np.int8), actions=data.actions.astype(np.int8)
            ),
        )
        with pytest.raises(mm.DataError, match="write Parquet instead"):
            data.to_csv(tmp_path / "log.csv")


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.tsv", "log.TSV.GZ", "a.tsv.csv"])
def test_csv_files_are_what_their_name_says(name, tmp_path):
    data = mm.collect(mm.load_benchmark("icu-smar"), 200, seed=0)
    path = tmp_path / name
    data.to_csv(path)
    content = path.read_bytes()
    assert content.startswith(b"\x1f\x8b") == name.lower().endswith(".gz")
    text = gzip.decompress(content) if name.lower().endswith(".gz") else content
    assert (b"\t" in text) == (".tsv" in name.lower() and name != "a.tsv.csv")
    assert_same(data, mm.Dataset.from_table(path, data.mdp))


def test_other_names_are_refused(tmp_path):
    data = mm.collect(mm.load_benchmark("example-1"), 5, seed=0)
    for name in ("log", "log.txt", "log.gz", "log.parquet", "log.csv.zip", "log.xlsx"):
        with pytest.raises(mm.DataError, match=r"must end in \.csv or \.csv\.gz.* to_parquet"):
            data.to_csv(tmp_path / name)
    for name in ("log", "log.csv", "log.parquet.gz", "log.feather"):
        with pytest.raises(mm.DataError, match=r"must end in \.parquet or \.pq.* to_csv"):
            data.to_parquet(str(tmp_path / name))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(
    cells=st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 1)), min_size=2, max_size=12),
    rewards=st.lists(st.floats(-1e9, 1e9) | st.just(np.nan), min_size=12, max_size=12),
    ended=st.booleans(),
)
def test_logs_without_a_model_come_back_with_their_rewards(kind, cells, rewards, ended, tmp_path_factory):
    """As they were, if the features are named; values that do not occur are known only then."""
    n = len(cells)
    rewards = np.array([*rewards[: n - 1], np.nan])
    log = mm.Dataset(
        None,
        np.array(cells, dtype=np.int8),
        np.array([*([1, 0] * n)[: n - 1], -1], dtype=np.int8),
        np.array([0, n]),
        np.array([ended]),
        feature_space=FeatureSpace({"x": ["low", "mid", "high"], "y": [1.5, 2.5]}),
        action_names=("a", "b"),
        logged_rewards=rewards,
        seed=3,
        behaviour="adaptive",
        bins={"x": mm.Binning.from_edges([1, 2])},
    )
    source = written(log, kind, tmp_path_factory.mktemp("log"))
    if np.isnan(rewards).all():
        with pytest.raises(mm.DataError, match="no reward"):
            mm.Dataset.from_table(source, reward="reward")
        return
    again = mm.Dataset.from_table(source, features=log.features, reward="reward")
    assert again.features == log.features
    assert np.array_equal(again.observations, log.observations)
    assert np.array_equal(again.logged_rewards, rewards, equal_nan=True)
    assert np.array_equal(again.terminated, log.terminated)
    names = [None if code < 0 else again.action_names[code] for code in again.actions]
    assert names == [None if code < 0 else log.action_names[code] for code in log.actions]
    if kind in ("arrow", "parquet"):
        assert (again.seed, again.behaviour, again.bins) == (3, "adaptive", log.bins)


def test_bins_keep_their_order_in_parquet_files(tmp_path):
    table = {"episode": [1] * 3, "step": [0, 1, 2], "bp": [95, 120, None], "action": ["a", "b", None]}
    bins = {"bp": mm.Binning.from_edges([90, 100, 110])}
    log = mm.Dataset.from_table(table, bins=bins)
    assert log.features["bp"] == ("below 90", "90 to below 100", "100 to below 110", "110 and above")
    log.to_parquet(tmp_path / "log.parquet")
    again = mm.Dataset.from_table(tmp_path / "log.parquet")
    assert again.features == log.features
    assert again.bins == bins
    assert_same(log, again)
