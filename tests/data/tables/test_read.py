"""Trajectory tables: every kind of source gives the same data, and cells mean what they should."""

from __future__ import annotations

import logging
import random
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table
from missmdp.model.space import FeatureSpace
from oracles import trajectory_tables as oracle
from oracles.trajectory_tables import (
    FEATURES,
    HISTORIES,
    TABLE,
    csv_file,
    histories,
    parquet_file,
    split,
    with_cell,
)
from strategies import seeds


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


def ibis_table(table, path):
    import ibis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ibis calls DuckDB in ways that will change
        return ibis.duckdb.connect().read_parquet(parquet_file(table, path))


SOURCES = {
    "csv": csv_file,
    "csv as str": lambda table, path: str(csv_file(table, path)),
    "csv with semicolons": lambda table, path: csv_file(table, path, delimiter=";"),
    "csv with tabs": lambda table, path: csv_file(table, path, delimiter="\t"),
    "tsv": lambda table, path: csv_file(table, path, ".tsv", "\t"),
    "gzip": lambda table, path: csv_file(table, path, ".csv.gz"),
    "parquet": parquet_file,
    "pq": lambda table, path: parquet_file(table, path, ".PQ"),
    "list of files": lambda table, path: split(table, [0, 3, 4], csv_file, path),
    "iterator of files": lambda table, path: iter(split(table, [0, 3, 4], csv_file, path)),
    "folder": lambda table, path: (
        split(table, [0, 1, 2], parquet_file, path / "deep")[0].parent.parent
        if path.mkdir() is None
        else None
    ),
    "glob": lambda table, path: f"{split(table, [0, 1, 2, 5], parquet_file, path)[0].parent}/*.parquet",
    "csv and parquet": lambda table, path: [
        split(table, [0, 1], csv_file, path)[0],
        split(table, [0, 1], parquet_file, path)[1],
    ],
    "dict": lambda table, path: table,
    "dict of arrays": lambda table, path: {n: np.array(v, dtype=object) for n, v in table.items()},
    "pandas": lambda table, path: pd.DataFrame(table),
    "pandas objects": lambda table, path: pd.DataFrame(table, dtype=object),
    "pandas nullable": lambda table, path: pd.DataFrame(table).astype(
        {"level": "Int8", "on_drip": "boolean", "ward": "string"}
    ),
    "pandas categories": lambda table, path: pd.DataFrame(table).astype(
        {"ward": "category", "level": "category", "episode": pd.CategoricalDtype(["z", "c", "b", "a"])}
    ),
    "pandas index": lambda table, path: pd.DataFrame(table).set_index(["episode", "step"]),
    "polars": lambda table, path: pl.DataFrame(table),
    "polars lazy": lambda table, path: pl.LazyFrame(table),
    "polars categories": lambda table, path: pl.DataFrame(table).cast(
        {"ward": pl.Categorical, "action": pl.Enum(["treat", "unused", "wait"]), "episode": pl.Categorical}
    ),
    "pyarrow": lambda table, path: pa.table(table),
    "pyarrow chunks": lambda table, path: pa.concat_tables(pa.table(table).slice(i, 2) for i in (0, 2, 4)),
    "pyarrow dictionaries": lambda table, path: pa.table(
        {n: pa.array(v).dictionary_encode() for n, v in table.items()}
    ),
    "pyarrow views": lambda table, path: pa.table(table).set_column(
        2, "ward", pa.array(table["ward"], pa.string_view())
    ),
    "pyarrow bytes": lambda table, path: pa.table(table).set_column(
        2, "ward", pa.array([w and w.encode() for w in table["ward"]])
    ),
    "record batches": lambda table, path: pa.table(table).to_reader(max_chunksize=2),
    "ibis": lambda table, path: ibis_table(table, path),
    "columns the other way round": lambda table, path: dict(reversed(list(table.items()))),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_histories(kind, mdp, tmp_path):
    dataset = mm.Dataset.from_table(SOURCES[kind](TABLE, tmp_path / "log"), mdp)
    found = dict(zip(dataset.episode_ids, histories(dataset), strict=True))
    assert found == dict(zip("abc", HISTORIES, strict=True))
    assert dataset.observations.dtype == dataset.actions.dtype == np.int8
    assert dataset.notes == ()
    if kind not in ("list of files", "iterator of files", "glob", "ibis"):  # b's or c's rows come first there
        assert dataset.episode_ids == ("a", "b", "c")


def test_a_csv_file_as_people_write_them(mdp, tmp_path):
    """A byte order mark, quotes, quoted line ends, blank lines, spaces, and every way to write a value."""
    (tmp_path / "log.csv").write_text(
        '\ufeff\n"episode" ; step;ward;level;"on_drip";note;action;reward\n'
        '7;0; south wing ;1.0;TRUE;"two\nlines; and ""quotes""";wait;3\n'
        "7;1.0;NA;+2;false;;treat;\n\n"
        '7;2;N/A;nan;1;;"";\n'
        "8;0;<NA>;3e0;0;;null;",
        encoding="utf-8",
    )
    dataset = mm.Dataset.from_table(tmp_path / "log.csv", mdp)
    assert histories(dataset) == [
        [(("south wing", 1, True), "wait"), (("NA", 2, False), "treat"), ((None, None, True), None)],
        [((None, 3, False), None)],
    ]
    assert dataset.episode_ids == (7, 8)
    assert dataset.notes == ("1 column is ignored: 'note'",)


@pytest.mark.parametrize(
    ("values", "cells", "codes"),
    [
        ([1, 2], [1.0, "2", " 2", "1.0", np.int8(2), True, None, "2e0"], [0, 1, 1, 0, 1, 0, -1, 1]),
        ([False, True], [1, 0.0, "true", "False", "1", True], [1, 0, 1, 0, 1, 1]),
        (["1", "2"], [1, 2.0, "1", "2", "2.0"], [0, 1, 0, 1, None]),
        (["true", "x"], [True, "x", "True"], [0, 1, None]),
        ([0.5, 1.5], [0.5, "0.50", "1.5", 1.5], [0, 0, 1, 1]),
        ([(0, 1), "hall", 2**70], [(0, 1), "(0, 1)", "hall", 2**70, str(2**70)], [0, 0, 1, 2, 2]),
        (["a", "b"], ["a", "A", " b"], [0, None, None]),
        ([1, 11], ["1_1", "11", "01"], [None, 1, 0]),
        (["nan", ""], ["nan", "", None], [0, 1, -1]),
    ],
)
def test_what_cells_of_a_frame_mean(values, cells, codes):
    """None among the codes means that the cell is refused."""
    features = FeatureSpace({"x": values})
    for cell, code in zip(cells, codes, strict=True):
        table = {"episode": [1], "step": [0], "x": [cell]}
        if code is None:
            with pytest.raises(mm.DataError, match="'x' cannot be"):
                log_from_table(table, features)
        else:
            assert log_from_table(table, features).observations.tolist() == [[code]], cell


def test_words_that_several_values_are_written_like_are_refused_in_csv(tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,x\n1,0,1\n")
    with pytest.raises(mm.DataError, match="row 1, episode '1': 'x' cannot be '1'; it could mean several"):
        log_from_table(tmp_path / "log.csv", FeatureSpace({"x": ["1", 1]}))


def test_order_of_rows_does_not_matter(mdp):
    order = [4, 2, 5, 0, 3, 1]
    table = {name: [values[i] for i in order] for name, values in TABLE.items()}
    dataset = mm.Dataset.from_table(table, mdp)
    assert dataset.episode_ids == ("b", "a", "c")
    assert histories(dataset) == [HISTORIES[1], HISTORIES[0], HISTORIES[2]]


def test_steps_may_count_from_one_if_all_do(mdp):
    from_one = {**TABLE, "step": [step + 1 for step in TABLE["step"]]}
    assert histories(mm.Dataset.from_table(from_one, mdp)) == HISTORIES
    assert log_from_table(from_one, FeatureSpace(FEATURES)).step.tolist() == TABLE["step"]
    with pytest.raises(mm.DataError, match="row 1, episode 'a': 'step' starts at 1; steps count from 0"):
        mm.Dataset.from_table(with_cell(from_one, "step", 6, 0), mdp)


def test_an_action_in_the_last_row_is_left_out_with_a_note(mdp, caplog):
    table = with_cell(with_cell(TABLE, "action", 3, "wait"), "action", 6, "treat")
    with caplog.at_level(logging.INFO):
        dataset = mm.Dataset.from_table(table, mdp)
    assert histories(dataset) == HISTORIES
    assert dataset.notes[0].startswith("episodes that end with an action whose result was not logged: 2 of 3")
    assert dataset.notes[0] in caplog.messages


def test_other_columns_are_ignored_with_a_note_except_rewards(mdp, caplog):
    table = {"nurse": list("xyzxyz"), **TABLE, "reward": ["?"] * 6, "time": range(6)}
    with caplog.at_level(logging.INFO):
        dataset = mm.Dataset.from_table(table, mdp)
    assert histories(dataset) == HISTORIES
    assert dataset.notes == ("2 columns are ignored: 'nurse', 'time'",)
    assert dataset.notes[0] in caplog.messages


def test_columns_can_have_other_names(mdp):
    renamed = {
        {"episode": "patient", "step": "hour", "action": "drug"}.get(n, n): v for n, v in TABLE.items()
    }
    dataset = mm.Dataset.from_table(renamed, mdp, episode="patient", step="hour", action="drug")
    assert histories(dataset) == HISTORIES
    with pytest.raises(mm.DataError, match="no column 'step'.*the columns are patient, hour, ward.*step='…'"):
        mm.Dataset.from_table(renamed, mdp, episode="patient", action="drug")


def test_terminated_is_read_where_it_is_said_and_follows_from_the_model_where_not(mdp):
    """Only (icu, 1, False) and (icu, 1, True) are terminal."""
    assert mm.Dataset.from_table(TABLE, mdp).terminated.tolist() == [False, False, True]
    told = {**TABLE, "terminated": [0, 0, 1, False, "true", None]}
    assert mm.Dataset.from_table(told, mdp).terminated.tolist() == [True, True, True]
    told = {**TABLE, "terminated": [None, None, None, None, True, False]}
    assert mm.Dataset.from_table(told, mdp).terminated.tolist() == [False, True, False]
    told = {"end" if name == "terminated" else name: v for name, v in told.items()}
    assert mm.Dataset.from_table(told, mdp, terminated="end").terminated.tolist() == [False, True, False]
    # Without on_drip it is still certain, without level it is not.
    for name, ended in [("on_drip", True), ("level", False)]:
        assert mm.Dataset.from_table(with_cell(TABLE, name, 6, None), mdp).terminated[2] == ended
    early = {**TABLE, "terminated": [False, True, True, True, False, False]}
    dataset = mm.Dataset.from_table(early, mdp)
    assert dataset.terminated.tolist() == [True, False, False]
    assert "is true before the last row: 2;" in dataset.notes[0]


def test_the_same_episode_in_two_files_is_one_unless_files_number_their_own(mdp, tmp_path):
    one = {"episode": [1], "step": [0], "ward": ["icu"], "level": [1], "on_drip": [1], "action": ["wait"]}
    other = {**one, "step": [1], "level": [3], "action": [None]}
    files = [parquet_file(one, tmp_path / "x"), csv_file(other, tmp_path / "y")]
    joined = mm.Dataset.from_table(files, mdp)
    assert histories(joined) == [[(("icu", 1, True), "wait"), (("icu", 3, True), None)]]
    files = [parquet_file(one, tmp_path / "x"), csv_file({**other, "step": [0]}, tmp_path / "y")]
    apart = mm.Dataset.from_table(files, mdp, per_file=True)
    assert histories(apart) == [[(("icu", 1, True), None)], [(("icu", 3, True), None)]]
    assert apart.episode_ids == (f"{files[0]}:1", f"{files[1]}:1")
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset.from_table(files, mdp)
    for fragment in (f"{files[0]}, row 1 and {files[1]}, row 1", "episode 1", "'step' 0", "per_file=True"):
        assert fragment in str(caught.value)


def test_ids_in_csv_files_are_numbers_only_if_all_are(tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,x\n2,0,1\n01,0,1\n1,0,1\n")
    assert log_from_table(tmp_path / "log.csv").episode_ids == ("2", "01", "1")
    (tmp_path / "log.csv").write_text("episode,step,x\n2,0,1\n-1,0,1\n")
    assert log_from_table(tmp_path / "log.csv").episode_ids == (2, -1)


@settings(max_examples=25)
@given(data=st.data())
def test_csv_files_mean_what_the_standard_library_reads(tmp_path_factory, data):
    """Random words for values, shuffled rows, random delimiters, quotes and line ends, against a plain reader."""
    mdp = oracle.small_mdp(mm)
    rng = random.Random(data.draw(seeds()))
    ways = {
        "ward": ["icu", " icu ", "NA", "south wing", "", "nan", "None", "N/A"],
        "level": ["1", "2", "3", "1.0", " 2", "3.", "+3", "NA", "", "null"],
        "on_drip": ["True", "false", "TRUE", "1", "0", "0.0", "", "<NA>"],
    }
    rows = []
    for episode in range(rng.randint(1, 4)):
        length = rng.randint(1, 5)
        for step in range(length):
            row = {name: rng.choice(words) for name, words in ways.items()}
            action = rng.choice(["wait", " treat"]) if step < length - 1 else rng.choice(["", "NULL"])
            rows.append(
                {
                    "episode": f"e{episode}",
                    "step": str(step),
                    **row,
                    "action": action,
                    "note": rng.choice(["x\ny", 'q"', ""]),
                }
            )
    rng.shuffle(rows)
    delimiter, end = rng.choice(",;\t"), rng.choice(["\n", "\r\n"])
    quote = '"{}"'.format

    def cell(word):
        escaped = word.replace('"', '""')
        return quote(escaped) if "\n" in word or '"' in word or rng.random() < 0.2 else word

    names = list(rows[0])
    text = end.join(
        delimiter.join(cell(word) for word in line)
        for line in [names, *([row[n] for n in names] for row in rows)]
    )
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_bytes((rng.choice(["", "\ufeff"]) + text + rng.choice(["", end])).encode())
    dataset = mm.Dataset.from_table(path, mdp)
    read = oracle.read_words(path, delimiter)
    assert dict(zip(dataset.episode_ids, histories(dataset), strict=True)) == oracle.read_histories(read, mdp)
    counts = mm.ObservationCounts.from_table(path, mdp)
    found = {tuple(z): int(n) for z, n in zip(counts.observations, counts.counts, strict=True)}
    assert found == oracle.counts(read, mdp)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_first_line_may_name_the_delimiter(delimiter, suffix, mdp, tmp_path):
    import gzip

    for first in (f"sep={delimiter}\n", f'"sep={delimiter}"\r\n', f"\ufeffSEP={delimiter}\n\n"):
        content = (first + oracle.words(TABLE, delimiter)).encode()
        path = tmp_path / f"log{suffix}"
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
        assert histories(mm.Dataset.from_table(path, mdp)) == HISTORIES
