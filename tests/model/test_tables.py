"""MDPs from tables: every kind of source gives the same model, and mistakes are named by table and row."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import missmdp as mm

TRANSITIONS = {
    "ward": ["n", "n", "n", "s", "s", "s", "n", "n", "s"],
    "level": [0, 0, 1, 0, 1, 1, 1, 1, 0],
    "on_drip": [True, True, False, True, False, False, False, False, True],
    "action": ["wait", "treat", "wait", "wait", "wait", "treat", "treat", "treat", "treat"],
    "next_ward": ["n", "s", "n", "s", "n", "s", "n", "s", "n"],
    "next_level": [1, 0, 1, 1, 1, 1, 0, 0, 0],
    "next_on_drip": [False, True, False, False, False, False, True, True, True],
    "probability": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.25, 0.75, 1.0],
}
REWARDS = {
    "level": [1, 0],
    "on_drip": [False, True],
    "ward": ["n", "s"],
    "action": ["wait", "treat"],
    "reward": [-1.5, 2.0],
}
INITIAL = {"ward": ["n", "s"], "level": [0, 0], "on_drip": [True, True], "probability": [0.25, 0.75]}


def with_rows(table, **columns):
    """Return a table with more rows."""
    return {name: [*values, *columns[name]] for name, values in table.items()}


def with_cell(table, name, row, value):
    """Return a table with another value at one place; rows count from 1."""
    values = list(table[name])
    values[row - 1] = value
    return {**table, name: values}


def build(transitions=TRANSITIONS, rewards=REWARDS, initial=INITIAL, **options):
    return mm.FactoredMDP.from_tables(transitions, rewards, initial, **options)


def from_csv(table, path: Path) -> Path:
    path = path.with_suffix(".csv")
    csv.write_csv(pa.table(table), path)
    return path


def from_parquet(table, path: Path) -> Path:
    path = path.with_suffix(".parquet")
    parquet.write_table(pa.table(table), path)
    return path


SOURCES = {
    "csv": from_csv,
    "csv as str": lambda table, path: str(from_csv(table, path)),
    "parquet": from_parquet,
    "pandas": lambda table, path: pd.DataFrame(table),
    "pandas categories": lambda table, path: pd.DataFrame(table).astype({"ward": "category"}),
    "pandas with an index": lambda table, path: pd.DataFrame(table).set_index(
        np.arange(len(table["ward"])) + 7
    ),
    "polars": lambda table, path: pl.DataFrame(table),
    "pyarrow": lambda table, path: pa.table(table),
    "dict": lambda table, path: table,
    "dict of arrays": lambda table, path: {name: np.array(values) for name, values in table.items()},
    "columns the other way round": lambda table, path: dict(reversed(list(table.items()))),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_model(kind, tmp_path):
    source = SOURCES[kind]
    mdp = build(
        source(TRANSITIONS, tmp_path / "transitions"),
        source(REWARDS, tmp_path / "rewards"),
        source(INITIAL, tmp_path / "initial"),
        features={"ward": ["n", "s"], "level": [0, 1], "on_drip": [False, True]},
    )
    assert [tuple(state) for state in mdp.states] == [
        ("n", 0, True),
        ("n", 1, False),
        ("s", 0, True),
        ("s", 1, False),
    ]
    assert [type(value) for value in mdp.states[0]] == [str, int, bool]
    # Actions are in the order in which transitions lists them.
    assert mdp.actions == ("wait", "treat")
    wait, treat = (matrix.toarray().tolist() for matrix in mdp.transition)
    assert wait == [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    assert treat == [[0, 0, 1, 0], [0.25, 0, 0.75, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert mdp.reward.tolist() == [[0, 0], [-1.5, 0], [0, 2], [0, 0]]
    assert mdp.initial.tolist() == [0.25, 0, 0.75, 0]
    assert not mdp.terminal.any()


def test_features_are_the_columns_of_transitions_in_order_with_their_values_sorted():
    mdp = build()
    assert mdp.features == {"ward": ("n", "s"), "level": (0, 1), "on_drip": (False, True)}
    assert list(mdp.features) == ["ward", "level", "on_drip"]
    assert mdp.discount == 0.95
    assert build(discount=0.5).discount == 0.5


def test_features_can_be_given_with_more_values_in_another_order():
    given = {"on_drip": [True, False], "level": [2, 1, 0], "ward": ["s", "n", "w"]}
    mdp = build(features=given)
    assert mdp.features == {name: tuple(values) for name, values in given.items()}
    assert mdp.states[0] == (True, 0, "s")
    assert mdp.n_states == 4
    assert mdp.reward[mdp.space.index((True, 0, "s"))].tolist() == [0, 2]


def test_order_of_rows_does_not_matter_and_probabilities_add_up_over_rows():
    def shuffled(table, order):
        return {name: [values[i] for i in order] for name, values in table.items()}

    first = build()
    second = build(shuffled(TRANSITIONS, [8, 3, 0, 7, 5, 1, 6, 2, 4]), shuffled(REWARDS, [1, 0]))
    assert second.actions == ("treat", "wait")
    for action in first.actions:
        np.testing.assert_array_equal(
            first.transition[first.action_index(action)].toarray(),
            second.transition[second.action_index(action)].toarray(),
        )
        np.testing.assert_array_equal(
            first.reward[:, first.action_index(action)], second.reward[:, second.action_index(action)]
        )


ENDS = {"level": [1], "on_drip": [False], "ward": ["s"]}


@pytest.mark.parametrize(
    "terminal",
    [
        ENDS,
        pd.DataFrame(ENDS),
        lambda state: state.ward == "s" and state.level == 1,
    ],
    ids=["dict", "pandas", "function"],
)
def test_terminal_states_need_no_transitions(terminal):
    rows = [i for i in range(9) if (TRANSITIONS["ward"][i], TRANSITIONS["level"][i]) != ("s", 1)]
    kept = {name: [values[i] for i in rows] for name, values in TRANSITIONS.items()}
    mdp = build(kept, terminal=terminal)
    assert mdp.terminal.tolist() == [False, False, False, True]
    for matrix in mdp.transition:
        assert matrix.toarray()[3].tolist() == [0, 0, 0, 1]
    with pytest.raises(mm.ModelError, match="no row for the state"):
        build(kept)


def test_a_terminal_state_may_occur_in_its_table_only():
    ends = {"ward": ["s"], "level": [0], "on_drip": [False]}
    mdp = build(terminal=ends)
    assert mdp.n_states == 5
    assert mdp.terminal[mdp.space.index(("s", 0, False))]
    assert not mdp.reachable[mdp.space.index(("s", 0, False))]


def test_a_csv_file_as_a_person_types_it(tmp_path):
    """Spaces in names, a byte order mark, quotes, and integers where there could be decimals."""
    (tmp_path / "t.csv").write_text(
        '\ufeffroom no,action,next_room no,probability\n1,go,2,1\n2,go,"1",0.5\n2,go,2,0.5\n',
        encoding="utf-8",
    )
    (tmp_path / "r.csv").write_text("room no,action,reward\n2,go,3\n")
    (tmp_path / "i.csv").write_text("probability,room no\n1,1\n")
    mdp = build(tmp_path / "t.csv", tmp_path / "r.csv", tmp_path / "i.csv")
    assert mdp.features == {"room no": (1, 2)}
    assert mdp.states[1].room_no == 2
    assert mdp.transition[0].toarray().tolist() == [[0, 1], [0.5, 0.5]]
    assert mdp.reward.tolist() == [[0], [3]]


def test_the_same_words_mean_the_same_in_all_csv_files(tmp_path):
    """A column of numbers and words in one file may look like numbers alone in another."""
    (tmp_path / "t.csv").write_text(
        "bed,action,next_bed,probability\n1,1,hall,1\n1,stop,1,1\nhall,1,1,1\nhall,stop,hall,1\n"
    )
    (tmp_path / "r.csv").write_text("bed,action,reward\n1,1,4\n")
    (tmp_path / "i.csv").write_text("bed,probability\n1,1\n")
    mdp = build(tmp_path / "t.csv", tmp_path / "r.csv", tmp_path / "i.csv")
    assert mdp.n_states == 2
    assert mdp.n_actions == 2
    assert mdp.reward.max() == 4
    assert mdp.initial.tolist() == [1, 0]


def loop_csv(words, tmp_path):
    """Return the MDP of CSV files in which each word leads to the next and the last one back to the first."""
    rows = [f"{word},go,{after},1" for word, after in zip(words, [*words[1:], words[0]], strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["code,action,next_code,probability", *rows]))
    (tmp_path / "r.csv").write_text(f"code,action,reward\n{words[1]},go,1\n")
    (tmp_path / "i.csv").write_text(f"code,probability\n{words[0]},1\n")
    return build(tmp_path / "t.csv", tmp_path / "r.csv", tmp_path / "i.csv")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["3", "-1", "20"], (-1, 3, 20)),
        (["0.5", "1", "2e3"], (0.5, 1.0, 2000.0)),
        (["true", "FALSE"], (False, True)),
        (["b", "3"], ("3", "b")),
        (["01", "02", "1"], ("01", "02", "1")),
        (["1_1", "11", "1_2"], ("11", "1_1", "1_2")),
        (["12345678901234567890", "12345678901234567891"], ("12345678901234567890", "12345678901234567891")),
        (["nan", "1"], ("1", "nan")),
        (["inf", "1"], ("1", "inf")),
    ],
    ids=[
        "integers",
        "decimals",
        "truth values",
        "words",
        "leading zeros",
        "underscores",
        "long numbers",
        "nan",
        "inf",
    ],
)
def test_what_words_in_csv_files_mean(words, values, tmp_path):
    """Codes that only look like numbers stay words, so that no two of them become one."""
    mdp = loop_csv(words, tmp_path)
    assert mdp.n_states == len(words)
    found = mdp.features["code"]
    assert [str(value) for value in found] == [str(value) for value in values]
    assert len({type(value) for value in found}) == 1


def test_columns_of_a_dict_can_hold_anything_hashable():
    places = [(0, 1), "hall", 2**70]
    mdp = build(
        {"place": places, "action": [1, 1, 1], "next_place": places[::-1], "probability": [1, 1, 1.0]},
        {"place": places[:1], "action": [1], "reward": [1]},
        {"place": places[1:2], "probability": [1]},
    )
    assert set(mdp.features["place"]) == set(places)
    assert mdp.reward[mdp.space.index(((0, 1),))].tolist() == [1]
    assert mdp.initial[mdp.space.index(("hall",))] == 1


def test_dates_can_be_values():
    days = [datetime.date(2024, 2, 28), datetime.date(2024, 2, 29)]
    mdp = build(
        {"day": days, "action": ["go", "go"], "next_day": days[::-1], "probability": [1.0, 1.0]},
        {"day": days[:1], "action": ["go"], "reward": [1]},
        {"day": days[1:], "probability": [1]},
    )
    assert mdp.states[1] == (days[1],)
    assert mdp.initial.tolist() == [0, 1]


def case(name, arguments, *fragments):
    return pytest.param(arguments, fragments, id=name)


def without(table, name):
    return {column: values for column, values in table.items() if column != name}


BROKEN = [
    case("no action column", [without(TRANSITIONS, "action")], "transitions", "'action'", "ward, level"),
    case("no probability column", [without(TRANSITIONS, "probability")], "transitions", "'probability'"),
    case("no next column", [without(TRANSITIONS, "next_level")], "transitions", "'next_level'"),
    case(
        "no feature columns",
        [{"action": ["go"], "probability": [1.0]}],
        "transitions",
        "no feature columns",
        "action, probability",
    ),
    case("no reward column", [TRANSITIONS, without(REWARDS, "reward")], "rewards", "'reward'"),
    case("no feature column in rewards", [TRANSITIONS, without(REWARDS, "ward")], "rewards", "'ward'"),
    case(
        "no feature column in initial",
        [TRANSITIONS, REWARDS, without(INITIAL, "level")],
        "initial",
        "'level'",
    ),
    case(
        "column twice",
        [pa.table([["n"], ["s"]], names=["ward", "ward"])],
        "transitions",
        "'ward'",
        "twice",
    ),
    case("empty cell", [with_cell(TRANSITIONS, "level", 3, None)], "transitions, row 3", "'level' is empty"),
    case(
        "empty word",
        [with_cell(TRANSITIONS, "next_ward", 6, None)],
        "transitions, row 6",
        "'next_ward' is empty",
    ),
    case(
        "NaN",
        [pd.DataFrame(with_cell(TRANSITIONS, "level", 2, np.nan))],
        "transitions, row 2",
        "'level' is empty",
    ),
    case(
        "empty action", [with_cell(TRANSITIONS, "action", 4, None)], "transitions, row 4", "'action' is empty"
    ),
    case(
        "empty reward",
        [TRANSITIONS, with_cell(REWARDS, "reward", 2, None)],
        "rewards, row 2",
        "'reward' is empty",
    ),
    case(
        "transition twice",
        [with_rows(TRANSITIONS, **{name: [values[1]] for name, values in TRANSITIONS.items()})],
        "transitions, rows 2 and 10",
        "same state, action and next state twice",
    ),
    case(
        "reward twice",
        [TRANSITIONS, with_rows(REWARDS, **{name: [values[0]] for name, values in REWARDS.items()})],
        "rewards, rows 1 and 3",
        "same state and action twice",
    ),
    case(
        "initial twice",
        [
            TRANSITIONS,
            REWARDS,
            {**{name: [v[0], v[0]] for name, v in INITIAL.items()}, "probability": [0.5, 0.5]},
        ],
        "initial, rows 1 and 2",
        "same state twice",
    ),
    case(
        "state without a row for an action",
        [{name: values[:8] for name, values in TRANSITIONS.items()}],
        "transitions",
        "State(ward='s', level=0, on_drip=True)",
        "'treat'",
        "terminal",
    ),
    case(
        "unknown action in rewards",
        [TRANSITIONS, with_cell(REWARDS, "action", 2, "test")],
        "rewards, row 2",
        "action 'test' does not occur in transitions",
    ),
    case(
        "unknown value in rewards",
        [TRANSITIONS, with_cell(REWARDS, "ward", 1, "w")],
        "rewards, row 1",
        "'ward' cannot be 'w'",
    ),
    case(
        "unknown state in rewards",
        [TRANSITIONS, with_cell(REWARDS, "on_drip", 2, False)],
        "rewards, row 2",
        "does not occur in transitions or initial",
    ),
    case(
        "probability as a word",
        [{**TRANSITIONS, "probability": ["1"] * 6 + ["0.25", "0.75", "1"]}],
        "transitions, row 1",
        "'probability' is '1', not a number",
    ),
    case(
        "probability as a truth value",
        [TRANSITIONS, REWARDS, {**INITIAL, "probability": [True, False]}],
        "initial, row 1",
        "'probability' is True, not a number",
    ),
    case("reward as a word", [TRANSITIONS, {**REWARDS, "reward": ["much", "2"]}], "rewards, row 1", "'much'"),
    case(
        "probabilities that do not sum to one",
        [with_cell(TRANSITIONS, "probability", 8, 0.5)],
        "transition(State(ward='n', level=1, on_drip=False), 'treat')",
        "sum to 0.75",
    ),
    case("negative probability", [with_cell(TRANSITIONS, "probability", 1, -1.0)], "'wait'", "negative (-1)"),
    case(
        "infinite reward",
        [TRANSITIONS, with_cell(REWARDS, "reward", 1, float("inf"))],
        "State(ward='n'",
        "inf",
    ),
    case(
        "initial that does not sum to one",
        [TRANSITIONS, REWARDS, {**INITIAL, "probability": [0.25, 0.5]}],
        "0.75",
    ),
    case("no transitions", [{name: [] for name in TRANSITIONS}], "transitions", "no rows"),
    case("no initial", [TRANSITIONS, REWARDS, {name: [] for name in INITIAL}], "initial", "no rows"),
    case(
        "list as a value",
        [{**TRANSITIONS, "ward": [[1]] * 9, "next_ward": [[1]] * 9}, REWARDS, {**INITIAL, "ward": [[1]] * 2}],
        "'ward'",
        "[1]",
    ),
    case("list as an action", [{**TRANSITIONS, "action": [["wait"]] * 9}], "action", "['wait']"),
]


@pytest.mark.parametrize(("arguments", "fragments"), BROKEN)
def test_a_broken_table_is_refused_and_its_row_named(arguments, fragments):
    with pytest.raises(mm.ModelError) as caught:
        build(*arguments)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("terminal", "fragments"),
    [
        (
            {"ward": ["s", "w"], "level": [0, 0], "on_drip": [True, True]},
            ["terminal, row 2", "'ward' cannot be 'w'"],
        ),
        ({"ward": ["s"]}, ["terminal", "'level'"]),
        (lambda state: 1 / 0, ["terminal(State(ward='n', level=0, on_drip=True))", "ZeroDivisionError"]),
        (lambda state: "no", ["terminal(State(ward='n', level=0, on_drip=True))", "'no'"]),
    ],
    ids=["unknown value", "missing column", "raises", "no truth value"],
)
def test_broken_terminal_states_are_named(terminal, fragments):
    with pytest.raises(mm.ModelError) as caught:
        build(terminal=terminal)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("ward,action,next_ward,probability\nn,go,,1\ns,go,n,1\n", ["row 1", "'next_ward' is empty"]),
        ("ward,action,next_ward,probability\nn,go,s,1\ns,,n,1\n", ["row 2", "'action' is empty"]),
        ("level,action,next_level,probability\n1,go,2,1\n2,go,,1\n", ["row 2", "'next_level' is empty"]),
        ("ward,action,next_ward,probability\nn,go,n,likely\n", ["row 1", "'likely', not a number"]),
        ("ward,action,next_ward,probability\n", ["no rows"]),
    ],
    ids=["empty word", "empty action", "empty number", "word for a number", "header only"],
)
def test_a_broken_csv_file_is_refused_and_its_row_named(text, fragments, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    rewards = {"ward": ["n"], "level": [1], "action": ["go"], "reward": [0.0]}
    initial = {"ward": ["n"], "level": [1], "probability": [1.0]}
    with pytest.raises(mm.ModelError) as caught:
        build(tmp_path / "t.csv", rewards, initial)
    for fragment in ["transitions", *fragments]:
        assert fragment in str(caught.value)


FILES = {
    "absent.csv": None,
    "absent.parquet": None,
    "empty.csv": b"",
    "ragged.csv": b"ward,action,next_ward,probability\nn,go\n",
    "latin.csv": "stra\xdfe,action,next_stra\xdfe,probability\nn,go,n,1\n".encode("latin-1"),
    "latin values.csv": "street,action,next_street,probability\nstra\xdfe,go,stra\xdfe,1\n".encode("latin-1"),
    "damaged.parquet": b"PAR1 this is not a parquet file PAR1",
    "text.parquet": b"ward,action\nn,go\n",
    "sheet.xlsx": b"",
    "no ending": b"",
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read_are_named(name, tmp_path):
    path = tmp_path / name
    if FILES[name] is not None:
        path.write_bytes(FILES[name])
    with pytest.raises(mm.FormatError) as caught:
        build(path)
    assert str(path) in str(caught.value)
    assert "transitions" in str(caught.value)


def test_a_folder_and_a_truncated_parquet_file_cannot_be_read(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    whole = from_parquet(INITIAL, tmp_path / "initial")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    for path in (tmp_path / "folder.csv", cut):
        with pytest.raises(mm.FormatError, match=rf"initial: .*{path.name}"):
            build(initial=path)


@pytest.mark.parametrize(
    "source",
    [None, 5, [1, 2], {"ward": 3}, {"ward": ["n"], "action": []}],
    ids=["None", "number", "list", "dict of a number", "unequal columns"],
)
def test_what_is_no_table_is_refused(source):
    with pytest.raises(mm.FormatError, match="rewards"):
        build(rewards=source)


def test_words_written_like_a_given_value_mean_that_value(tmp_path):
    (tmp_path / "t.csv").write_text("room,action,next_room,probability\n1,go,2,1\n2,go,1,1\n")
    (tmp_path / "r.csv").write_text("room,action,reward\n")
    (tmp_path / "i.csv").write_text("room,probability\n1,1\n")
    tables = [tmp_path / name for name in ("t.csv", "r.csv", "i.csv")]
    assert mm.FactoredMDP.from_tables(*tables).states[0] == (1,)
    assert mm.FactoredMDP.from_tables(*tables, features={"room": ["2", "1"]}).states[1] == ("1",)


def test_numbers_and_words_that_look_alike_are_refused():
    transitions = {"room": [0, 1], "action": ["go"] * 2, "next_room": ["1", "0"], "probability": [1.0, 1.0]}
    with pytest.raises(mm.ModelError, match="a number and a word"):
        mm.FactoredMDP.from_tables(
            transitions, {"room": [], "action": [], "reward": []}, {"room": [0], "probability": [1]}
        )


@pytest.mark.parametrize("which", ["transitions", "initial"])
def test_ordered_categories_keep_their_order(which):
    order = pd.CategoricalDtype(["s", "n", "w"], ordered=True)
    tables = {"transitions": TRANSITIONS, "initial": INITIAL}
    tables[which] = pd.DataFrame(tables[which]).astype({"ward": order})
    assert build(**tables).features["ward"] == ("s", "n", "w")
    # Where something else occurs, categories are only some of the values.
    tables[which] = tables[which].astype({"ward": pd.CategoricalDtype(["s", "n"], ordered=False)})
    assert build(**tables).features["ward"] == ("n", "s")


def as_text(table, delimiter, first=""):
    rows = [list(table), *zip(*table.values(), strict=True)]
    return first + "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize("first", ["", "sep={}\n", "\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_files_may_use_other_delimiters(delimiter, first, tmp_path):
    paths = []
    for name, table in {"transitions": TRANSITIONS, "rewards": REWARDS, "initial": INITIAL}.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(as_text(table, delimiter, first.format(delimiter)))
    assert build(*paths) == build()


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("transitions", "probability", "prob", "next_on_drip, prob; did you mean 'prob'?"),
        ("transitions", "probability", "Probability", "did you mean 'Probability'?"),
        ("transitions", "action", "acton", "probability; did you mean 'acton'?"),
        ("rewards", "reward", "rewards", "rewards; did you mean 'rewards'?"),
        ("initial", "probability", "weight", "initial: there is no column 'probability'; the columns are"),
        ("initial", "ward", "wards", "probability; did you mean 'wards'?"),
        (
            "transitions",
            "next_ward",
            "new_ward",
            "no column 'next_ward'; the features are ward, level, on_drip, new_ward,",
        ),
    ],
)
def test_columns_with_wrong_names_are_named(table, old, new, message):
    tables = {"transitions": TRANSITIONS, "rewards": REWARDS, "initial": INITIAL}
    tables[table] = {new if name == old else name: values for name, values in tables[table].items()}
    with pytest.raises(mm.ModelError) as caught:
        build(**tables)
    assert str(caught.value).startswith(f"{table}: there is no column {old!r}; ")
    assert message in str(caught.value)
