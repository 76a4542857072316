"""Trajectory tables: every kind of source gives the same data, and mistakes are named by file, row and episode."""

from __future__ import annotations

import gzip
import logging
import random
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

import missmdp as mm
from missmdp.data.tables import read_log
from missmdp.model.space import FeatureSpace
from oracles import trajectory_tables as oracle
from strategies import missmdps, seeds

FEATURES = {"ward": ["icu", "NA", "south wing"], "level": [1, 2, 3], "on_drip": [False, True]}
TABLE = {
    "episode": ["a", "a", "a", "b", "b", "c"],
    "step": [0, 1, 2, 0, 1, 0],
    "ward": ["icu", None, "NA", "south wing", None, "icu"],
    "level": [1, 3, None, 2, None, 1],
    "on_drip": [True, None, False, None, None, False],
    "action": ["wait", "treat", None, "treat", None, None],
}
HISTORIES = [
    [(("icu", 1, True), "wait"), ((None, 3, None), "treat"), (("NA", None, False), None)],
    [(("south wing", 2, None), "treat"), ((None, None, None), None)],
    [(("icu", 1, False), None)],
]


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


def histories(dataset):
    return [
        [(tuple(observation), action) for observation, action in episode] for episode in dataset.episodes()
    ]


def with_cell(table, name, row, value):
    """Return a table with another value at one place; rows count from 1."""
    values = list(table[name])
    values[row - 1] = value
    return {**table, name: values}


def with_row(table, *cells):
    return {name: [*values, cell] for (name, values), cell in zip(table.items(), cells, strict=True)}


def without(table, name):
    return {column: values for column, values in table.items() if column != name}


def words(table, delimiter=","):
    """Return a table as the text of a CSV file."""
    rows = [list(table), *zip(*table.values(), strict=True)]
    return "\n".join(delimiter.join("" if cell is None else str(cell) for cell in row) for row in rows) + "\n"


def csv_file(table, path: Path, suffix=".csv", delimiter=",") -> Path:
    path = path.with_name(path.name + suffix)
    content = words(table, delimiter).encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    return path


def parquet_file(table, path: Path, suffix=".parquet") -> Path:
    path = path.with_name(path.name + suffix)
    parquet.write_table(pa.table(table), path)
    return path


def split(table, rows, write, folder):
    """Write some rows of a table to a first file and the others to a second one."""
    folder.mkdir(exist_ok=True)
    first = {name: [v for i, v in enumerate(values) if i in rows] for name, values in table.items()}
    rest = {name: [v for i, v in enumerate(values) if i not in rows] for name, values in table.items()}
    return [write(first, folder / "1-first"), write(rest, folder / "2-rest")]


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
                read_log(table, features)
        else:
            assert read_log(table, features).observations.tolist() == [[code]], cell


def test_words_that_several_values_are_written_like_are_refused_in_csv(tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,x\n1,0,1\n")
    with pytest.raises(mm.DataError, match="row 1, episode '1': 'x' cannot be '1'; it could mean several"):
        read_log(tmp_path / "log.csv", FeatureSpace({"x": ["1", 1]}))


def test_order_of_rows_does_not_matter(mdp):
    order = [4, 2, 5, 0, 3, 1]
    table = {name: [values[i] for i in order] for name, values in TABLE.items()}
    dataset = mm.Dataset.from_table(table, mdp)
    assert dataset.episode_ids == ("b", "a", "c")
    assert histories(dataset) == [HISTORIES[1], HISTORIES[0], HISTORIES[2]]


def test_steps_may_count_from_one_if_all_do(mdp):
    from_one = {**TABLE, "step": [step + 1 for step in TABLE["step"]]}
    assert histories(mm.Dataset.from_table(from_one, mdp)) == HISTORIES
    assert read_log(from_one, FeatureSpace(FEATURES)).step.tolist() == TABLE["step"]
    with pytest.raises(mm.DataError, match="row 1, episode 'a': 'step' starts at 1; steps count from 0"):
        mm.Dataset.from_table(with_cell(from_one, "step", 6, 0), mdp)


def test_an_action_in_the_last_row_is_left_out_with_a_note(mdp, caplog):
    table = with_cell(with_cell(TABLE, "action", 3, "wait"), "action", 6, "treat")
    with caplog.at_level(logging.INFO):
        dataset = mm.Dataset.from_table(table, mdp)
    assert histories(dataset) == HISTORIES
    assert dataset.notes[0].startswith("2 of 3 episodes end with an action whose result was not logged")
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
    with pytest.raises(
        mm.DataError, match="no column 'step'.*the columns are patient, hour, ward.*step='name'"
    ):
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
    assert "true before the last row in 2 episodes" in dataset.notes[0]


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
    assert read_log(tmp_path / "log.csv").episode_ids == ("2", "01", "1")
    (tmp_path / "log.csv").write_text("episode,step,x\n2,0,1\n-1,0,1\n")
    assert read_log(tmp_path / "log.csv").episode_ids == (2, -1)


def case(name, table, *fragments):
    return pytest.param(table, fragments, id=name)


HEADER = b"episode,step,ward,level,on_drip,action\n"
NOISE = np.random.default_rng(0).bytes(9000).hex().encode()

BROKEN = [
    case(
        "unknown word",
        with_cell(TABLE, "ward", 4, "north"),
        "row 4",
        "episode 'b'",
        "'ward'",
        "'north'",
        "'icu'",
    ),
    case("close word", with_cell(TABLE, "ward", 2, "ICu"), "row 2", "episode 'a'", "'ward' cannot be 'ICu'"),
    case("typo", with_cell(TABLE, "ward", 2, "south-wing"), "did you mean 'south wing'?"),
    case("unknown number", with_cell(TABLE, "level", 5, 4), "row 5", "'b'", "'level' cannot be 4", "1, 2, 3"),
    case(
        "measurement",
        with_cell(TABLE, "level", 5, 2.5),
        "'level' cannot be 2.5",
        "bins={'level': Binning.from_edges([…])} with 2 edges",
    ),
    case("unknown truth", with_cell(TABLE, "on_drip", 1, "yes"), "row 1", "'on_drip' cannot be 'yes'"),
    case(
        "unknown action",
        with_cell(TABLE, "action", 2, "cure"),
        "row 2",
        "'a'",
        "'action' cannot be 'cure'",
        "'treat'",
    ),
    case(
        "action missing",
        with_cell(TABLE, "action", 2, None),
        "row 2",
        "'a'",
        "'action' is missing at step 1",
        "last row",
    ),
    case(
        "unknown end",
        {**TABLE, "terminated": [0, 0, 0, "maybe", 0, 0]},
        "row 4",
        "'terminated' cannot be 'maybe'",
    ),
    case("no episode", with_cell(TABLE, "episode", 4, None), "row 4: 'episode' is missing"),
    case("no step", with_cell(TABLE, "step", 2, None), "row 2, episode 'a': 'step' is missing", "0, 1, 2"),
    case("negative step", with_cell(TABLE, "step", 2, -1), "row 2, episode 'a': 'step' cannot be -1"),
    case("half a step", with_cell(TABLE, "step", 2, 0.5), "row 2, episode 'a': 'step' cannot be 0.5"),
    case("step in words", with_cell(TABLE, "step", 2, "one"), "row 2, episode 'a': 'step' cannot be 'one'"),
    case(
        "infinite step", with_cell(TABLE, "step", 6, float("inf")), "row 6, episode 'c': 'step' cannot be inf"
    ),
    case(
        "truth as step",
        {**TABLE, "step": [False, True, False, False, True, False]},
        "row 1",
        "'step' cannot be False",
    ),
    case("step twice", with_cell(TABLE, "step", 3, 1), "rows 2 and 3, episode 'a': two rows for 'step' 1"),
    case(
        "gap",
        with_cell(TABLE, "step", 3, 4),
        "row 3, episode 'a': 'step' is 4, but 1 comes before it (",
    ),
    case("late start", with_cell(TABLE, "step", 6, 2), "row 6, episode 'c': 'step' starts at 2"),
    case("no ward", without(TABLE, "ward"), "no column 'ward'", "episode, step, level, on_drip, action"),
    case(
        "almost ward",
        {n.replace("w", "W"): v for n, v in TABLE.items()},
        "no column 'ward'",
        "did you mean 'Ward'?",
    ),
    case("no steps", without(TABLE, "step"), "no column 'step'", "pass step="),
    case(
        "no actions",
        {"Actions" if n == "action" else n: v for n, v in TABLE.items()},
        "pass action='Actions'",
    ),
    case("no rows", {name: [] for name in TABLE}, "the table has no rows"),
    case("nothing", {}, "no column 'episode'; the columns are none"),
    case("unequal", with_cell(TABLE, "step", 1, 0) | {"ward": ["icu"]}, "different lengths", "'ward' has 1"),
    case("no list", {**TABLE, "ward": "icu"}, "column 'ward'", "list of values"),
]


@pytest.mark.parametrize(("table", "fragments"), BROKEN)
def test_mistakes_are_named(table, fragments, mdp):
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError) as caught:
            read(table, mdp)
        for fragment in fragments:
            assert fragment in str(caught.value)


IN_FILES = [case for case in BROKEN if case.id not in ("no rows", "nothing", "unequal", "no list")]


@pytest.mark.parametrize(("table", "fragments"), IN_FILES)
def test_mistakes_in_files_are_named_with_the_file_and_alike_by_all_readers(table, fragments, mdp, tmp_path):
    table = {name: [None if v is None else str(v) for v in values] for name, values in table.items()}
    for path in (csv_file(table, tmp_path / "log"), parquet_file(table, tmp_path / "log")):
        messages = set()
        for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
            with pytest.raises(mm.DataError) as caught:
                read(path, mdp)
            messages.add(str(caught.value))
        assert len(messages) == 1
        message = messages.pop()
        assert str(path) in message
        for fragment in fragments:
            # In files of words, all values are quoted.
            assert fragment in message or fragment.split(" cannot be ")[0] in message


def test_of_several_mistakes_the_first_row_is_named(mdp, tmp_path):
    table = with_cell(with_cell(TABLE, "ward", 5, "x"), "action", 2, "y")
    with pytest.raises(mm.DataError, match="row 2"):
        mm.Dataset.from_table(table, mdp)
    files = split(table, [0, 2, 5], csv_file, tmp_path / "log")
    with pytest.raises(mm.DataError, match=rf"{files[1]}, row 1, episode 'a': 'action' cannot be 'y'"):
        mm.Dataset.from_table(files, mdp)


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("absent.csv", None, "no such file"),
        ("absent-*.csv", None, "no file matches"),
        ("empty.csv", b"", "empty"),
        ("blank.csv", b"\n\n", "empty"),
        ("header.csv", HEADER, "no rows"),
        (
            "ragged.csv",
            HEADER + b"1,0,icu,1,0,wait\n1,1,icu\n",
            "row 2: 3 cells",
        ),
        ("long.csv", HEADER + b"1,0,icu,1,0,,9\n", "row 1: 7 cells"),
        (
            "latin.csv",
            "episode,step,ward,level,on_drip,action\n1,0,stra\xdfe,1,0,\n".encode("latin-1"),
            "cannot be read",
        ),
        ("wide.csv", "episode,step\n".encode("utf-16"), "cannot be read"),
        (
            "twice.csv",
            b"episode,step,ward,level,on_drip,action,ward\n1,0,icu,1,0,,icu\n",
            "'ward' occurs twice",
        ),
        (
            "cut.csv.gz",
            gzip.compress(HEADER + np.random.default_rng(0).bytes(9000).hex().encode())[:-200],
            "cannot be read",
        ),
        ("text.csv.gz", b"episode,step\n", "cannot be read"),
        ("damaged.parquet", b"PAR1 this is not a parquet file PAR1", "cannot be read"),
        ("empty.parquet", b"", "cannot be read"),
        ("sheet.xlsx", b"", "expected a .csv"),
        ("\0.csv", None, "no such file"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_files_that_cannot_be_used_are_named(name, content, fragment, mdp, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError) as caught:
            read(str(path), mdp)
        assert fragment in str(caught.value)
        assert str(path) in str(caught.value) or repr(str(path)) in str(caught.value)


def test_a_truncated_parquet_file_and_folders_without_tables_are_refused(mdp, tmp_path):
    whole = parquet_file(TABLE, tmp_path / "whole")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(mm.DataError, match=r"cut\.parquet cannot be read"):
        mm.Dataset.from_table(cut, mdp)
    (tmp_path / "folder").mkdir()
    csv_file(TABLE, tmp_path / "folder" / ".hidden")
    with pytest.raises(mm.DataError, match="folder holds no tables"):
        mm.Dataset.from_table(tmp_path / "folder", mdp)


def test_damage_within_a_parquet_file_that_we_wrote_is_noticed(tmp_path):
    """Pages carry checksums."""
    model = mm.load_benchmark("icu-smar")
    path = tmp_path / "log.parquet"
    mm.collect(model, 3000, seed=0).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 64
    path.write_bytes(content)
    with pytest.raises(mm.DataError, match="log.parquet"):
        mm.Dataset.from_table(path, model.mdp)


@pytest.mark.parametrize(
    "source",
    [None, 5, 3.5, [], [1, 2], [TABLE], object(), {"ward": 3}],
    ids=lambda source: type(source).__name__,
)
def test_what_is_no_table_is_refused(source, mdp):
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table, mm.validate):
        with pytest.raises(mm.DataError):
            read(source, mdp)
    with pytest.raises(mm.DataError):
        read_log(source)


def test_names_of_columns_must_differ_and_differ_from_features(mdp):
    with pytest.raises(mm.DataError, match="step= and episode= are both 'x'"):
        mm.Dataset.from_table(TABLE, mdp, episode="x", step="x")
    with pytest.raises(mm.DataError, match="the feature 'level' is called like the column of steps"):
        mm.Dataset.from_table(TABLE, mdp, step="level")
    with pytest.raises(mm.DataError, match="action= must be the name of a column"):
        mm.Dataset.from_table(TABLE, mdp, action=None)
    with pytest.raises(mm.ModelError, match="expected a FactoredMDP"):
        mm.Dataset.from_table(TABLE, mm.load_benchmark("icu-smar"))


def chain_mdp(features):
    """Return an MDP whose features have these values and whose states all stay as they are."""
    size = int(np.prod([len(v) for v in features.values()]))
    return mm.FactoredMDP(features, ["go"], [np.eye(size)], 0.0, np.full(size, 1 / size))


def test_features_called_reward_and_terminated_are_features():
    mdp = chain_mdp({"reward": [0, 1], "terminated": ["no", "yes"]})
    data = mm.Dataset(
        mdp, np.array([[0, 1], [1, -1]]), np.array([0, -1]), np.array([0, 2]), np.array([False])
    )
    table = data.to_arrow()
    assert table.column_names == ["episode", "step", "reward", "terminated", "action"]
    assert np.array_equal(mm.Dataset.from_table(table, mdp).observations, data.observations)


# Round trips.


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
        dataset = replaced(dataset, episode_ids=tuple(ids))
    again = mm.Dataset.from_table(written(dataset, kind, tmp_path_factory.mktemp("log")), model.mdp)
    assert_same(dataset, again)
    assert again.notes == ()
    if kind in ("arrow", "parquet"):
        assert (again.seed, again.behaviour) == (seed, "blind")


def replaced(dataset, **changes):
    from dataclasses import replace

    return replace(dataset, **changes)


VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.tuples(st.integers(), st.text("ab")),
)


@pytest.mark.parametrize("kind", KINDS)
@given(values=st.lists(VALUES, min_size=1, max_size=6, unique=True), codes=st.data())
def test_values_of_all_kinds_survive(kind, values, codes, tmp_path_factory):
    """Or it is said that a table could not tell them apart."""
    mdp = chain_mdp({"x": values})
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
    assert list(oracle.histories(lines, model.mdp).values()) == histories(data)


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
    replaced(data, bins=bins).to_parquet(path)
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
    mdp = chain_mdp(features)
    data = mm.Dataset(mdp, np.array([[0]]), np.array([-1]), np.array([0, 1]), np.array([False]))
    with pytest.raises(mm.DataError) as caught:
        data.to_arrow()
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_what_csv_cannot_tell_apart_is_refused(tmp_path):
    for values in (["", "a"], ["a", " a"], ["a", " "]):
        mdp = chain_mdp({"x": values})
        data = mm.Dataset(mdp, np.array([[0]]), np.array([-1]), np.array([0, 1]), np.array([False]))
        assert_same(
            mm.Dataset.from_table(data.to_arrow(), mdp),
            replaced(
                data, observations=data.observations.astype(np.int8), actions=data.actions.astype(np.int8)
            ),
        )
        with pytest.raises(mm.DataError, match="write Parquet instead"):
            data.to_csv(tmp_path / "log.csv")


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
    assert dict(zip(dataset.episode_ids, histories(dataset), strict=True)) == oracle.histories(read, mdp)
    counts = mm.ObservationCounts.from_table(path, mdp)
    found = {tuple(z): int(n) for z, n in zip(counts.observations, counts.counts, strict=True)}
    assert found == oracle.counts(read, mdp)


# Logs without a model.


def test_a_log_has_the_values_that_occur(tmp_path):
    (tmp_path / "log.csv").write_text(
        "step,episode,ward,level,bp,drip,empty,action,reward,terminated\n"
        "1,b,n,10,1.5,true,,x,1,\n0,b,s,9,,False,NA,x,1,\n0,a,,10,2,,,,,\n"
    )
    log = read_log(tmp_path / "log.csv")
    assert log.features.as_dict() == {
        "ward": ("n", "s"),
        "level": (9, 10),
        "bp": (1.5, 2.0),
        "drip": (False, True),
        "empty": ("(never seen)",),
    }
    assert log.episode_ids == ("b", "a")
    assert log.episode.tolist() == [0, 0, 1]
    assert log.step.tolist() == [0, 1, 0]
    assert log.observations.tolist() == [[1, 0, -1, 0, -1], [0, 1, 0, 1, -1], [-1, 1, 1, -1, -1]]
    assert log.notes == ("'empty' is always missing",)


def test_the_words_of_a_log_are_numbers_only_if_all_are_over_all_files(tmp_path):
    (tmp_path / "1.csv").write_text("episode,step,x,y\n1,0,1,1\n")
    (tmp_path / "2.csv").write_text("episode,step,x,y\n2,0,hall,2\n")
    parquet.write_table(pa.table({"episode": [3], "step": [0], "x": ["1"], "y": [2]}), tmp_path / "3.parquet")
    log = read_log(tmp_path)
    assert log.features.as_dict() == {"x": ("1", "hall"), "y": (1, 2)}
    assert log.observations.tolist() == [[0, 0], [1, 1], [0, 1]]
    assert log.episode_ids == ("1", "2", 3)


def test_a_log_may_mix_types_and_hold_lists():
    table = {
        "episode": [1, 2, 3, 4],
        "step": [0] * 4,
        "x": [1, "a", (1, 2), None],
        "y": [[1], [1, 2], [1], None],
    }
    log = read_log(table)
    assert set(log.features.as_dict()["x"]) == {1, "a", (1, 2)}
    assert log.features.as_dict()["y"] == ("[1, 2]", "[1]")
    assert log.observations[:, 1].tolist() == [1, 0, 1, -1]


def test_a_log_with_bins_has_the_bins_as_values():
    table = {"episode": [1, 1, 1], "step": [0, 1, 2], "temperature": [36.0, None, 39.5]}
    log = read_log(table, bins={"temperature": mm.Binning.from_edges([37, 38])})
    assert log.features.as_dict() == {"temperature": ("below 37", "37 to below 38", "38 and above")}
    assert log.observations.tolist() == [[0], [-1], [2]]


@pytest.mark.parametrize(
    ("table", "fragments"),
    [
        ({"episode": [1], "x": [1]}, ["no column 'step'"]),
        ({"episode": [1], "step": [0], "action": ["a"]}, ["no feature columns", "episode, step, action"]),
        ({"episode": [1, 1], "step": [0, 0], "x": [1, 2]}, ["rows 1 and 2", "two rows"]),
        ({"episode": [1, 1], "step": [0, 2], "x": [1, 2]}, ["row 2", "'step' is 2"]),
    ],
)
def test_broken_logs_are_refused(table, fragments):
    with pytest.raises(mm.DataError) as caught:
        read_log(table)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_log_may_have_more_values_than_a_model_could():
    numbers = np.random.default_rng(0).random((5, 40_000))
    table = {"episode": np.arange(40_000), "step": np.zeros(40_000, dtype=int)}
    log = read_log(table | {f"x{i}": row for i, row in enumerate(numbers)})
    assert np.array_equal(log.features.values[3], np.sort(numbers[3]))
    assert np.array_equal(log.observations[:, 3], np.argsort(np.argsort(numbers[3])))


# Data that are no data.


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"observations": np.array([[0, 5], [0, 0]])}, "codes of feature 'b' must be 0 to 2"),
        ({"observations": np.array([[-2, 0], [0, 0]])}, "codes of feature 'a'"),
        ({"actions": np.array([3, -1])}, "codes of actions must be 0 to 0"),
        ({"actions": np.array([-2, -1])}, "codes of actions"),
        ({"states": np.array([0, 6], dtype=np.int32)}, "states must be indices from 0 to 5"),
        ({"episode_ids": ("x", "y")}, "one entry for each of the 1 episodes"),
    ],
)
def test_codes_outside_the_model_are_refused(changes, fragment):
    mdp = chain_mdp({"a": [0, 1], "b": ["x", "y", "z"]})
    arrays = {
        "observations": np.array([[0, 2], [1, -1]]),
        "actions": np.array([0, -1]),
        "offsets": np.array([0, 2]),
    }
    mm.Dataset(mdp, **arrays, terminated=np.array([False]))
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset(mdp, **{**arrays, **changes}, terminated=np.array([False]))
    assert fragment in str(caught.value)
