"""Logs without a model: features, values and actions are found, and what cannot be one is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.errors import ParameterError

LOG = {
    "episode": ["b", "b", "b", "a", "a"],
    "step": [0, 1, 2, 0, 1],
    "ward": ["s", None, "n", "s", "s"],
    "level": [10, 9, None, 9, 10],
    "action": ["treat", "wait", None, "wait", None],
    "reward": [-1.5, 2, None, 0, None],
    "terminated": [None, None, True, None, False],
}


def changed(**columns):
    return {name: cells for name, cells in {**LOG, **columns}.items() if cells is not None}


def without_model(table, **options):
    log = mm.Dataset.from_table(table, **options)
    assert log.mdp is None
    return log


@pytest.mark.parametrize("kind", ["dict", "csv", "parquet"])
def test_features_values_and_actions_are_those_that_occur_in_order(kind, tmp_path):
    source = LOG
    if kind != "dict":
        source = tmp_path / f"log.{kind}"
        frame = pd.DataFrame(LOG).astype({"level": "Int64", "terminated": "boolean"})
        frame.to_csv(source, index=False) if kind == "csv" else frame.to_parquet(source)
    log = without_model(source, reward="reward")
    assert log.features == {"ward": ("n", "s"), "level": (9, 10)}
    assert log.feature_space.as_dict() == log.features
    assert log.action_names == ("treat", "wait")
    assert log.observations.tolist() == [[1, 1], [-1, 0], [0, -1], [1, 0], [1, 1]]
    assert log.actions.tolist() == [0, 1, -1, 1, -1]
    assert log.actions.dtype == np.int8
    assert log.observations.dtype == np.int8
    assert log.terminated.tolist() == [True, False]
    assert log.episode_ids == ("b", "a")
    assert np.array_equal(log.logged_rewards, [-1.5, 2, np.nan, 0, np.nan], equal_nan=True)
    assert log.rewards.tolist() == [-1.5, 2, 0, 0, 0]
    assert log.notes == ()
    assert log.episode(1)[0] == (("s", 9), "wait")
    assert repr(log) == "Dataset(5 observations in 2 episodes of ward, level)"


def test_the_order_of_rows_changes_nothing():
    frame = pd.DataFrame(LOG)
    shuffled = frame.sample(frac=1, random_state=3)
    one, other = without_model(frame), without_model(shuffled)
    assert one.features == other.features
    assert one.action_names == other.action_names


def test_rewards_are_read_only_where_asked_for_and_never_become_a_feature():
    assert without_model(LOG).logged_rewards is None
    renamed = changed(cost=LOG["reward"])
    assert "reward" not in without_model(renamed, reward="cost").features
    assert without_model(renamed, reward="cost").notes == ("1 column is ignored: 'reward'",)
    assert list(without_model(renamed).features) == ["ward", "level", "cost"]
    with pytest.raises(mm.DataError, match=r"needs an MDP|this log has no model"):
        _ = without_model(LOG).rewards


def test_features_can_be_chosen_and_their_values_given():
    log = without_model(LOG, features=["ward"])
    assert log.features == {"ward": ("n", "s")}
    assert "1 column is ignored: 'level'" in log.notes
    log = without_model(LOG, features={"level": None, "ward": ["s", "n", "icu"]})
    assert log.features == {"level": (9, 10), "ward": ("s", "n", "icu")}
    assert log.observations[:, 1].tolist() == [0, -1, 1, 0, 0]
    with pytest.raises(mm.DataError, match="row 3, episode 'b': 'ward' cannot be 'n'; its values are 's'"):
        without_model(LOG, features={"ward": ["s"]})
    # Features of another log, which may have seen more.
    assert without_model(LOG, features=log.features).features == log.features


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (["wrad"], r"no column 'wrad'.*did you mean 'ward'"),
        ("ward", "a list of columns, or a mapping"),
        ([], "at least one feature"),
        (["ward", "ward"], "'ward' is listed twice"),
        (["ward", 3], "a list of columns"),
        (["episode"], "'episode' is called like the column of episodes"),
        (["reward"], "'reward' is called like the column of rewards"),
        ({"ward": []}, "'ward' has no values"),
        ({"ward": "s"}, "expected a list of values"),
    ],
)
def test_wrong_features_are_named(features, problem):
    with pytest.raises(mm.MissMDPError, match=problem):
        without_model(LOG, features=features, reward="reward")


def test_a_model_has_its_own_features():
    with pytest.raises(ParameterError, match="features"):
        mm.Dataset.from_table(LOG, mm.load_benchmark("example-1").mdp, features=["ward"])


def test_bins_are_values_and_may_be_named():
    edges = {"level": mm.Binning.from_edges([9.5])}
    log = without_model(LOG, bins=edges)
    assert log.features["level"] == ("below 9.5", "9.5 and above")
    assert log.observations[:, 1].tolist() == [1, 0, -1, 0, 1]
    assert log.bins == edges
    log = without_model(LOG, bins=edges, features={"level": ["low", "high"]})
    assert log.features == {"level": ("low", "high")}
    assert "level: below 9.5 → low, from 9.5 → high" in log.notes
    with pytest.raises(ParameterError, match="3 values but 2 bins"):
        without_model(LOG, bins=edges, features={"level": [1, 2, 3]})


def test_without_marks_no_episode_is_terminated_and_a_note_says_so():
    for table in (changed(terminated=None), changed(terminated=[None] * 5)):
        log = without_model(table)
        assert not log.terminated.any()
        assert len(log.notes) == 1
        assert "no episode counts as ended in a terminal state" in log.notes[0]


def test_a_mark_before_the_last_row_is_an_error():
    with pytest.raises(
        mm.DataError, match=r"row 2, episode 'b', step 1: 'terminated' is true, but step 2 follows"
    ):
        without_model(changed(terminated=[None, True, True, None, None]))


def test_last_actions_and_their_rewards_are_dropped_with_a_note():
    table = changed(action=["treat", "wait", "cut", "wait", None], reward=[1, 2, 3, 4, 5])
    log = without_model(table, reward="reward")
    assert log.action_names == ("treat", "wait")
    assert log.actions.tolist() == [0, 1, -1, 1, -1]
    assert np.array_equal(log.logged_rewards, [1, 2, np.nan, 4, np.nan], equal_nan=True)
    assert log.notes == (
        "episodes that end with an action whose result was not logged: 1 of 2; these last actions are left out",
        "actions that occur only in last rows, and are left out: 'cut'",
        "episodes with a reward in their last row, which has no action: 2 of 2; these rewards are left out",
    )


def test_missing_rewards_are_counted():
    log = without_model(changed(reward=[1, None, None, 0, None]), reward="reward")
    assert log.notes == ("'reward' is missing for 1 of 3 actions",)
    assert np.array_equal(log.rewards, [1, np.nan, 0, 0, 0], equal_nan=True)


N = 12_000
LONG = {
    "episode": np.repeat(np.arange(N // 4), 4),
    "step": np.tile(np.arange(4), N // 4),
    "x": np.tile([0, 1, 1, 0], N // 4),
    "action": np.tile(["a", "b", "a", None], N // 4),
    "terminated": np.zeros(N, dtype=bool),
}


def test_measurements_without_bins_are_an_error_that_asks_for_bins():
    table = {**LONG, "bp": np.arange(N) % 10_000 / 7}
    with pytest.raises(
        mm.DataError, match=r"'bp' has 10,000 different values.*put measurements into bins: bins=\{'bp'"
    ):
        without_model(table)
    assert len(without_model(table, bins={"bp": mm.Binning.from_edges([500])}).features["bp"]) == 2
    assert list(without_model(table, features=["x"]).features) == ["x"]
    few = without_model({**LONG, "bp": np.arange(N) % 40 / 7})
    assert len(few.features["bp"]) == 40
    assert few.notes[0].startswith(
        "'bp' has 40 different numbers; if these are measurements, put them into bins"
    )


def test_ids_are_left_out_unless_they_are_asked_for():
    table = {**LONG, "note": [f"note {i}" for i in range(N)]}
    log = without_model(table)
    assert list(log.features) == ["x"]
    assert log.notes == ("'note' is left out, since it has 12,000 different words in 12,000 rows",)
    with pytest.raises(
        mm.DataError, match="'note' has 12,000 different values.*name the columns that are features"
    ):
        without_model(table, features=["x", "note"])
    few = {**LONG, "note": [f"note {i % 100}" for i in range(N)]}
    assert len(without_model(few, features=["note"]).features["note"]) == 100


def test_features_with_one_value_stay_and_empty_ones_go():
    log = without_model(changed(ward=["s", None, "s", "s", "s"], nothing=[None] * 5))
    assert log.features == {"ward": ("s",), "level": (9, 10)}
    assert log.notes == (
        "'ward' has only one value, 's'",
        "'nothing' is left out, since it is always missing",
    )
    declared = without_model(changed(nothing=[None] * 5), features={"nothing": [0, 1]})
    assert declared.features == {"nothing": (0, 1)}
    assert "'nothing' is always missing" in declared.notes
    with pytest.raises(mm.DataError, match="no column can be a feature: 'ward' is left out"):
        without_model(changed(ward=[None] * 5, level=None))


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (changed(action=None), r"no column 'action'.*pass action="),
        (changed(action=[None] * 5), "the column 'action' says of no row what was done"),
        (changed(action=["treat", None, None, "wait", None]), "row 2, episode 'b': 'action' is missing at step 1"),
        (changed(episode=list("abcde"), step=[0] * 5), "no episode has two rows"),
        (changed(ward=None, level=None), "there are no feature columns"),
        (changed(reward=[1, "much", None, 0, None]), "row 2, episode 'b': 'reward' cannot be 'much'; rewards are"),
        (changed(reward=[1, 2, None, float("inf"), None]), "row 4, episode 'a': 'reward' cannot be inf"),
        (changed(reward=[1, -float("inf"), None, 0, None]), "row 2, episode 'b': 'reward' cannot be -inf"),
        (changed(reward=[1, True, "a", 0, None]), "row 2, episode 'b': 'reward' cannot be True"),
        (changed(reward=[None] * 5), "the column 'reward' has no reward for any action"),
        (changed(reward=None), "no column 'reward'; .* pass reward="),
        ({name: [] for name in LOG}, "the table has no rows"),
    ],
)  # fmt: skip
def test_mistakes_are_named(table, problem):
    with pytest.raises(mm.DataError, match=problem):
        without_model(table, reward="reward")


def test_only_in_csv_files_does_none_mean_missing():
    assert without_model(changed(action=["none"] * 5)).action_names == ("none",)


def test_an_action_called_none_in_a_csv_file_is_told_to_need_another_name(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,x,action\n1,0,1,none\n1,1,2,treat\n1,2,1,\n")
    with pytest.raises(mm.DataError, match="row 1, .*'none' counts as missing; an action needs another name"):
        without_model(path)
    path.write_text("episode,step,x,action\n1,0,1,none\n1,1,2,none\n")
    with pytest.raises(mm.DataError, match="says of no row what was done .'none' counts as missing"):
        without_model(path)


def test_rewards_in_csv_files_are_numbers_in_words(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "episode,step,x,action,reward,terminated\n1,0,1,a, -1.5e1,\n1,1,2,a,NA,\n1,2,1,a,-,\n1,3,2,,,1\n"
    )
    log = without_model(path, reward="reward", missing=["-"])
    assert np.array_equal(log.logged_rewards, [-15, np.nan, np.nan, np.nan], equal_nan=True)
    path.write_text('episode,step,x,action,reward\n1,0,1,a,"1,5"\n1,1,2,,\n')
    with pytest.raises(mm.DataError, match=r"row 1, episode '1': 'reward' cannot be '1,5'.*decimal"):
        without_model(path, reward="reward")


def test_the_column_of_rewards_must_be_one_of_its_own():
    with pytest.raises(mm.DataError, match="'action'"):
        without_model(LOG, reward="action")
    with pytest.raises(ParameterError, match="the name of a column"):
        without_model(LOG, reward="")


def test_one_episode_gets_a_note():
    log = without_model({name: cells[:3] for name, cells in LOG.items()})
    assert log.n_episodes == 1
    assert log.notes == ("the log has one episode, so it shows only once how episodes start",)


def test_too_many_actions_are_refused():
    doses = np.where(np.arange(N) % 4 == 3, None, np.arange(N) % 5000 / 3)
    with pytest.raises(mm.DataError, match=r"'action' has .* different values"):
        without_model({**LONG, "action": doses})


def test_other_readers_take_the_option_too():
    model = mm.load_benchmark("icu-smar")
    table = mm.collect(model, 300, seed=1, keep_states=True).to_pandas()
    counts = mm.ObservationCounts.from_table(table, model.mdp, reward="reward")
    assert counts == mm.ObservationCounts.from_table(table, model.mdp)
    cost = table.rename(columns={"reward": "cost"})
    assert mm.describe(cost, reward="cost").features == mm.describe(table).features
    assert "cost" in mm.describe(cost).features
    table["reward"] = table["reward"].astype(object)
    table.loc[4, "reward"] = "high"
    with pytest.raises(mm.DataError, match="row 5.*'reward' cannot be 'high'"):
        mm.ObservationCounts.from_table(table, model.mdp, reward="reward")
    report = mm.validate(table, model.mdp, reward="reward")
    assert [unknown.value for unknown in report.unknown_values] == ["high"]


def test_counting_files_checks_rewards_as_reading_does(tmp_path):
    model = mm.load_benchmark("icu-smar")
    table = mm.collect(model, 300, seed=1, keep_states=True).to_pandas()
    table.to_parquet(tmp_path / "log.parquet")
    counts = mm.ObservationCounts.from_table(tmp_path / "log.parquet", model.mdp, reward="reward")
    assert counts == mm.ObservationCounts.from_table(table, model.mdp)
    with pytest.raises(mm.DataError, match="no column 'cost'"):
        mm.ObservationCounts.from_table(tmp_path / "log.parquet", model.mdp, reward="cost")


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.text("1.-eE+infa x", max_size=5),
)


@settings(max_examples=40)
@given(rewards=st.lists(CELLS, min_size=3, max_size=3))
@pytest.mark.parametrize("kind", ["list", "csv"])
def test_rewards_are_the_same_taken_together_or_one_by_one(kind, rewards, tmp_path_factory):
    """With further words for missing, cells are looked at one by one."""
    source = {
        "episode": [1] * 4,
        "step": [*range(4)],
        "x": [0, 1, 0, 1],
        "action": ["a", "a", "b", None],
        "reward": [*rewards, None],
    }
    if kind == "csv":
        path = tmp_path_factory.mktemp("log") / "log.csv"
        pd.DataFrame(source, dtype=object).to_csv(path, index=False)
        source = path
    found = []
    for missing in ([], ["zzz"]):
        try:
            found.append(str(without_model(source, reward="reward", missing=missing).rewards))
        except mm.DataError as error:
            found.append(str(error))
    assert found[0] == found[1]
