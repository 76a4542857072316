"""Errors that say how to mend what spreadsheets and clocks do to a table."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest

import missmdp as mm
from oracles import trajectory_tables as oracle
from oracles.trajectory_tables import TABLE, csv_file, parquet_file, with_cell


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


def error(source, mdp, **options):
    messages = set()
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError) as caught:
            read(source, mdp, **options)
        messages.add(str(caught.value))
    assert len(messages) == 1
    return messages.pop()


@pytest.mark.parametrize(("word", "right"), [("1,0", "1.0"), ("-0,56", "-0.56")])
def test_decimal_commas_are_told(word, right, mdp, tmp_path):
    table = with_cell(TABLE, "level", 4, word)
    path = csv_file(table, tmp_path / "log", delimiter=";")
    assert f"a decimal point is expected, as in '{right}'" in error(path, mdp)
    bins = {"level": mm.Binning.from_edges([1, 2])}
    assert f"a decimal point is expected, as in '{right}'" in error(path, mdp, bins=bins)


@pytest.mark.parametrize("place", ["header", "cell"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("encoding", "name"),
    [("latin-1", "Latin-1"), ("cp1252", "Latin-1"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16")],
)
def test_other_encodings_are_told(encoding, name, suffix, place, mdp, tmp_path):
    table = {**TABLE, "größe": [1] * 6} if place == "header" else with_cell(TABLE, "ward", 4, "süd")
    content = oracle.words(table).encode(encoding)
    path = tmp_path / f"log{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    message = error(path, mdp)
    assert str(path) in message
    assert f"looks like {name}" in message
    assert "save it as UTF-8" in message


def test_other_encodings_are_told_in_model_tables(tmp_path):
    for encoding, name in [("latin-1", "Latin-1"), ("utf-16", "UTF-16")]:
        (tmp_path / "t.csv").write_bytes("größe,action,next_größe,probability\n1,a,1,1\n".encode(encoding))
        with pytest.raises(mm.FormatError, match=f"transitions: .*looks like {name}.*save it as UTF-8"):
            mm.FactoredMDP.from_tables(tmp_path / "t.csv", {}, {})


def test_decimal_commas_are_told_in_model_tables(tmp_path):
    (tmp_path / "t.csv").write_text("x;action;next_x;probability\n1;a;1;0,5\n")
    rewards, initial = {"x": [], "action": [], "reward": []}, {"x": [1], "probability": [1.0]}
    with pytest.raises(mm.ModelError, match=r"'probability' is '0,5', not a number; .*'0\.5'"):
        mm.FactoredMDP.from_tables(tmp_path / "t.csv", rewards, initial)


TIMES = pd.date_range("2024-01-01", periods=6, freq="h")


@pytest.mark.parametrize(
    "steps",
    [list(TIMES), [str(time) for time in TIMES], [0, 60, 120, 0, 60, 0], [1704067200, *range(1, 6)]],
    ids=["times", "words", "minutes", "seconds"],
)
def test_steps_that_do_not_count_lead_to_how_rows_are_numbered(steps, mdp, tmp_path):
    table = {**TABLE, "step": steps}
    for source in (table, csv_file(table, tmp_path / "log"), parquet_file(table, tmp_path / "log")):
        message = error(source, mdp)
        assert "if 'step' holds times" in message
        assert "frame.sort_values('step').groupby('episode').cumcount()" in message


@pytest.mark.parametrize(
    "words", [("yes", "no"), ("Y", "N"), ("1", "0"), ("TRUE", "False"), (True, False), (1, 0), (1.0, 0.0)]
)
def test_ends_can_be_told_in_several_ways(words, mdp, tmp_path):
    yes, no = words
    table = {**TABLE, "terminated": [no, no, yes, no, None, no]}
    for source in (table, csv_file(table, tmp_path / "log"), parquet_file(table, tmp_path / "log")):
        assert mm.Dataset.from_table(source, mdp).terminated.tolist()[::2] == [True, False]
        mm.ObservationCounts.from_table(source, mdp)
    wrong = with_cell(table, "terminated", 2, "perhaps" if isinstance(yes, str) else 7)
    assert "expected true or false, yes or no, y or n, 1 or 0" in error(wrong, mdp)
