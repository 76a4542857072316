"""Logs without a model: the values that occur are the values there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import missmdp as mm
from missmdp.data.tables.discovery import log_from_table


def test_a_log_has_the_values_that_occur(tmp_path):
    (tmp_path / "log.csv").write_text(
        "step,episode,ward,level,bp,drip,empty,action,reward,terminated\n"
        "1,b,n,10,1.5,true,,x,1,\n0,b,s,9,,False,NA,x,1,\n0,a,,10,2,,,,,\n"
    )
    log = log_from_table(tmp_path / "log.csv")
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
    log = log_from_table(tmp_path)
    assert log.features.as_dict() == {"x": ("1", "hall"), "y": (1, 2)}
    assert log.observations.tolist() == [[0, 0], [1, 1], [0, 1]]
    assert log.episode_ids == ("1", "2", 3)


def test_words_beside_text_are_text(tmp_path):
    (tmp_path / "1.csv").write_text("episode,step,x\n1,0,1\n")
    parquet.write_table(pa.table({"episode": [2], "step": [0], "x": ["1"]}), tmp_path / "2.parquet")
    log = log_from_table(tmp_path)
    assert log.features.as_dict() == {"x": ("1",)}
    assert log.observations.tolist() == [[0], [0]]


def test_a_log_may_mix_types_and_hold_lists():
    table = {
        "episode": [1, 2, 3, 4],
        "step": [0] * 4,
        "x": [1, "a", (1, 2), None],
        "y": [[1], [1, 2], [1], None],
    }
    log = log_from_table(table)
    assert set(log.features.as_dict()["x"]) == {1, "a", (1, 2)}
    assert log.features.as_dict()["y"] == ("[1, 2]", "[1]")
    assert log.observations[:, 1].tolist() == [1, 0, 1, -1]


def test_a_log_with_bins_has_the_bins_as_values():
    table = {"episode": [1, 1, 1], "step": [0, 1, 2], "temperature": [36.0, None, 39.5]}
    log = log_from_table(table, bins={"temperature": mm.Binning.from_edges([37, 38])})
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
        log_from_table(table)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_column_that_cannot_be_a_feature_is_found_with_its_file(tmp_path):
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"episode": [1], "step": [0], " ": [1]}), path)
    with pytest.raises(mm.DataError, match=r"log\.parquet: the columns cannot be features .* not blank"):
        log_from_table(path)


def test_a_log_may_have_more_values_than_a_model_could():
    numbers = np.random.default_rng(0).random((5, 40_000))
    table = {"episode": np.arange(40_000), "step": np.zeros(40_000, dtype=int)}
    log = log_from_table(table | {f"x{i}": row for i, row in enumerate(numbers)})
    assert np.array_equal(log.features.values[3], np.sort(numbers[3]))
    assert np.array_equal(log.observations[:, 3], np.argsort(np.argsort(numbers[3])))
