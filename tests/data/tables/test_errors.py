"""Mistakes in trajectory tables are named by file, row, episode, column and value."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table
from missmdp.words import printable
from oracles import trajectory_tables as oracle
from oracles.trajectory_tables import (
    TABLE,
    csv_file,
    parquet_file,
    split,
    with_cell,
    without,
)


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


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
        assert printable(str(path)) in str(caught.value)


def test_a_truncated_parquet_file_and_folders_without_tables_are_refused(mdp, tmp_path):
    whole = parquet_file(TABLE, tmp_path / "whole")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(mm.DataError, match=r"cut\.parquet cannot be read"):
        mm.Dataset.from_table(cut, mdp)
    (tmp_path / "folder").mkdir()
    csv_file(TABLE, tmp_path / "folder" / ".hidden")
    with pytest.raises(mm.DataError, match="folder contains no tables"):
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
        log_from_table(source)


def test_names_of_columns_must_differ_and_differ_from_features(mdp):
    with pytest.raises(mm.DataError, match="step and episode are both 'x'"):
        mm.Dataset.from_table(TABLE, mdp, episode="x", step="x")
    with pytest.raises(mm.DataError, match="the feature 'level' is called like the column of steps"):
        mm.Dataset.from_table(TABLE, mdp, step="level")
    with pytest.raises(mm.DataError, match="action must be the name of a column"):
        mm.Dataset.from_table(TABLE, mdp, action=None)
    with pytest.raises(mm.ModelError, match="expected a FactoredMDP"):
        mm.Dataset.from_table(TABLE, mm.load_benchmark("icu-smar"))


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"observations": np.array([[0, 5], [0, 0]])}, "codes of feature 'b' must be 0 to 2"),
        ({"observations": np.array([[-2, 0], [0, 0]])}, "codes of feature 'a'"),
        ({"actions": np.array([3, -1])}, "actions must be codes from 0 to 0"),
        ({"actions": np.array([-2, -1])}, "actions must be codes from 0 to 0, or -1 for none, got -2"),
        ({"states": np.array([0, 6], dtype=np.int32)}, "states must be indices from 0 to 5"),
        ({"episode_ids": ("x", "y")}, "one entry for each of the 1 episodes"),
    ],
)
def test_codes_outside_the_model_are_refused(changes, fragment):
    mdp = oracle.chain_mdp(mm, {"a": [0, 1], "b": ["x", "y", "z"]})
    arrays = {
        "observations": np.array([[0, 2], [1, -1]]),
        "actions": np.array([0, -1]),
        "offsets": np.array([0, 2]),
    }
    mm.Dataset(mdp, **arrays, terminated=np.array([False]))
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset(mdp, **{**arrays, **changes}, terminated=np.array([False]))
    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("rename", "options", "fragment"),
    [
        ({"episode": "Epsiode"}, {}, "pass episode='Epsiode'"),
        ({"episode": "level_1"}, {}, "pass episode='…'"),
        ({}, {"episode": "patient"}, "it seems to be 'episode', so leave out episode='patient'"),
        ({}, {"step": "steps"}, "it seems to be 'step', so leave out step='steps'"),
        ({"level": "levl"}, {}, "did you mean 'levl'?"),
        ({"action": "reaction"}, {}, "pass action='reaction'"),
    ],
)
def test_only_free_columns_are_suggested(rename, options, fragment, mdp):
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset.from_table({rename.get(n, n): v for n, v in TABLE.items()}, mdp, **options)
    assert str(caught.value).endswith(fragment)


@pytest.mark.parametrize(
    ("rename", "options", "fragment"),
    [
        ({}, {"terminated": "done"}, "no column 'done'; .*; if it has another name, pass terminated='…'"),
        (
            {"ward": "terminated"},
            {"terminated": "done"},
            "seems to be 'terminated', so leave out terminated='done'",
        ),
        ({}, {"action": "deed"}, "no column 'deed'; .*; it seems to be 'action', so leave out action='deed'"),
        (
            {"action": "dead"},
            {"action": "deed"},
            "no column 'deed'; .*; if it has another name, pass action='dead'",
        ),
    ],
)
def test_columns_that_are_named_must_be_there_also_without_a_model(rename, options, fragment):
    table = {rename.get(n, n): v for n, v in TABLE.items()}
    with pytest.raises(mm.DataError, match=fragment):
        log_from_table(table, **options)


def test_a_column_of_ends_that_is_named_must_be_in_one_of_the_files(mdp, tmp_path):
    split(TABLE, range(3), csv_file, tmp_path)
    with pytest.raises(mm.DataError, match="there is no column 'done'"):
        mm.Dataset.from_table(tmp_path, mdp, terminated="done")
    rest = tmp_path / "2-rest.csv"
    header, *rows = rest.read_text().splitlines()
    rest.write_text("\n".join([f"{header},done", *(f"{row},no" for row in rows)]))
    assert mm.Dataset.from_table(tmp_path, mdp, terminated="done").n_episodes == 3


def test_features_are_never_suggested_as_episodes():
    mdp = oracle.chain_mdp(mm, {"episodes": [0, 1], "steps": [0, 1]})
    table = {"e": [1], "episodes": [0], "s": [0], "steps": [1], "action": [None]}
    with pytest.raises(mm.DataError, match="no column 'episode'.*pass episode='…'"):
        mm.Dataset.from_table(table, mdp)
    # Without a model, no column is known to be a feature.
    with pytest.raises(mm.DataError, match="no column 'episode'.*pass episode='episodes'"):
        log_from_table(table)
