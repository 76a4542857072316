"""Words that mean missing: the usual ones in CSV files, and those that the user names everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table
from oracles import trajectory_tables as oracle
from oracles.trajectory_tables import TABLE, csv_file, parquet_file, with_cell


@pytest.fixture(scope="module")
def mdp():
    return oracle.small_mdp(mm)


USUAL = [
    "",
    "na",
    "NA",
    "Na",
    "n/a",
    "N/A",
    "NaN",
    "nan",
    "NULL",
    "Null",
    "None",
    "none",
    "NaT",
    "<NA>",
    "#N/A",
    "#NA",
]


@pytest.mark.parametrize("word", USUAL)
def test_the_usual_words_are_missing_in_csv(word, mdp, tmp_path):
    path = csv_file(with_cell(TABLE, "level", 2, word), tmp_path / "log")
    assert mm.Dataset.from_table(path, mdp).observations[1, 1] == -1
    # "NA" is a ward.
    ward = mm.Dataset.from_table(
        csv_file(with_cell(TABLE, "ward", 1, word), tmp_path / "log"), mdp
    ).observations[0, 0]
    assert ward == (1 if word == "NA" else -1)


@pytest.mark.parametrize("word", ["-", "?", "Unknown", "k.A.", "999"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "dict"])
def test_further_words_are_missing_in_all_tables(word, kind, mdp, tmp_path):
    table = {**TABLE, "ward": [word, *TABLE["ward"][1:]], "action": [*TABLE["action"][:-1], word]}
    source = {
        "csv": lambda: csv_file(table, tmp_path / "log"),
        "parquet": lambda: parquet_file(table, tmp_path / "log"),
        "pandas": lambda: pd.DataFrame(table),
        "dict": lambda: table,
    }[kind]()
    data = mm.Dataset.from_table(source, mdp, missing=[word.lower()])
    assert data.observations[0, 0] == -1
    assert data.actions[-1] == -1
    assert not data.notes
    counts = mm.ObservationCounts.from_table(source, mdp, missing=(word,))
    assert counts == mm.ObservationCounts.from_dataset(data)
    assert not mm.validate(source, mdp, missing=word).unknown_values
    assert log_from_table(source, missing=[word]).observations[0, 0] == -1
    for read in (mm.Dataset.from_table, mm.ObservationCounts.from_table):
        with pytest.raises(mm.DataError, match="row 1.*'ward'"):
            read(source, mdp)


def test_a_word_that_is_a_value_is_a_value(mdp):
    data = mm.Dataset.from_table(TABLE, mdp, missing=["icu"])
    assert np.array_equal(data.observations, mm.Dataset.from_table(TABLE, mdp).observations)


@pytest.mark.parametrize("typed", [int, float, str])
def test_numbers_may_mean_missing_in_binned_columns(typed, mdp):
    table = {**TABLE, "level": [typed(value) for value in (1, 999, 20, 20, 5, 999)]}
    bins = {"level": mm.Binning.from_edges([10, 15])}
    data = mm.Dataset.from_table(table, mdp, bins=bins, missing=["999"])
    assert data.observations[:, 1].tolist() == [0, -1, 2, 2, 0, -1]


@pytest.mark.parametrize("word", ["-", ".", "?", "unknown", "k.A.", "n.a."])
def test_words_that_look_missing_lead_to_the_option(word, mdp, tmp_path):
    for column, options in [("ward", {}), ("level", {"bins": {"level": mm.Binning.from_edges([1, 2])}})]:
        path = csv_file(with_cell(TABLE, column, 1, word), tmp_path / "log")
        with pytest.raises(mm.DataError) as caught:
            mm.Dataset.from_table(path, mdp, **options)
        assert f"pass missing=[{word!r}]" in str(caught.value)
    with pytest.raises(mm.DataError) as caught:
        mm.Dataset.from_table(with_cell(TABLE, "ward", 1, "north"), mdp)
    assert "missing=" not in str(caught.value)


def test_without_a_model_words_that_count_as_missing_are_noted(tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,drug,action\n1,0,none,a\n1,1,,a\n1,2,much,\n")
    log = log_from_table(tmp_path / "log.csv")
    assert log.observations.tolist() == [[-1], [-1], [0]]
    assert "'drug': 'none' counts as missing" in log.notes


@pytest.mark.parametrize("missing", [5, None, b"x"])
def test_what_are_no_words_is_refused(missing, mdp):
    with pytest.raises(mm.DataError, match="must be a list of words"):
        mm.Dataset.from_table(TABLE, mdp, missing=missing)
