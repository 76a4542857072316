"""Features and their values: codes, ranks, names, and what counts as missing."""

from __future__ import annotations

import copy
import keyword
import math
import pickle
import unicodedata
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.model.space import MISSING, FeatureSpace, is_missing
from strategies import rows

SCALARS = (
    st.integers(-3, 3)
    | st.booleans()
    | st.text(max_size=3)
    | st.floats(allow_nan=False, width=16)
    | st.tuples(st.integers(0, 2), st.text(max_size=1))
)
ODD_NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name.strip() != "")


def feature_spaces() -> st.SearchStrategy[FeatureSpace]:
    values = st.lists(SCALARS, min_size=1, max_size=4, unique=True)
    return st.dictionaries(st.sampled_from("abcde"), values, min_size=1, max_size=4).map(FeatureSpace)


@settings(max_examples=40)
@given(st.data())
def test_states_and_observations_survive_encoding(data):
    space = data.draw(feature_spaces())
    state = data.draw(rows(space, missing=False))
    observation = data.draw(rows(space, missing=True))
    assert space.decode(space.encode(state)) == state
    assert space.encode(dict(zip(space.names, state, strict=True))) == space.encode(state)
    codes = space.encode_observation(observation)
    assert space.decode_observation(codes) == observation
    assert [code == MISSING for code in codes] == [value is None for value in observation]
    reversed_mapping = dict(reversed(list(zip(space.names, observation, strict=True))))
    assert space.encode_observation(reversed_mapping) == codes


@settings(max_examples=30)
@given(feature_spaces())
def test_ranks_number_all_rows_in_the_order_of_their_codes_with_missing_first(space):
    everything = np.array(list(product(*(range(-1, size) for size in space.sizes))))
    ranks = space.rank(everything)
    np.testing.assert_array_equal(ranks, np.arange(len(everything)))
    np.testing.assert_array_equal(space.unrank(ranks), everything)
    assert space.unrank(ranks).dtype == space.code_dtype


@pytest.mark.parametrize(
    ("size", "dtype"), [(127, np.int8), (128, np.int16), (32_767, np.int16), (32_768, np.int32)]
)
def test_codes_are_as_small_as_the_longest_feature_allows(size, dtype):
    space = FeatureSpace({"short": [0, 1], "long": range(size)})
    assert space.code_dtype == dtype
    last = np.array([[1, size - 1], [MISSING, size - 1], [0, MISSING]])
    np.testing.assert_array_equal(space.unrank(space.rank(last)), last)


@pytest.mark.parametrize(
    ("names", "attributes"),
    [
        (["heart rate", "temp (°C)"], ["heart_rate", "temp___C_"]),
        (["class", "None", "lambda"], ["class_", "None_", "lambda_"]),
        (["1st", "2"], ["f1st", "f2"]),
        (["a-b", "a.b", "a b"], ["a_b", "a_b_2", "a_b_3"]),
        (["_private", "__x", "___"], ["private", "x", "feature"]),
        (["Größe", "温度"], ["Größe", "温度"]),
        (["a b", "a_b"], ["a_b_2", "a_b"]),
    ],
)
def test_states_have_attributes_close_to_the_features_names(names, attributes):
    space = FeatureSpace({name: [position] for position, name in enumerate(names)})
    state = space.decode([0] * len(names))
    assert [getattr(state, attribute) for attribute in attributes] == list(range(len(names)))


@pytest.mark.parametrize("names", [["area m²"], ["½ dose"], ["ﬁ", "fi"], ["count", "index"], ["a·b", "a‿b"]])
def test_names_that_python_finds_hard_still_make_states(names):
    space = FeatureSpace({name: [position] for position, name in enumerate(names)})
    assert list(space.decode([0] * len(names))) == list(range(len(names)))
    assert list(space.decode_observation([0] * len(names))) == list(range(len(names)))


@settings(max_examples=60)
@given(st.lists(ODD_NAMES, min_size=1, max_size=4, unique=True))
def test_every_name_gets_an_attribute_of_its_own(names):
    space = FeatureSpace({name: [position, "other"] for position, name in enumerate(names)})
    state = space.decode([0] * len(names))
    fields = state._fields
    assert [getattr(state, field) for field in fields] == list(range(len(names)))
    assert len(set(fields)) == len(names)
    assert all(field.isidentifier() and not keyword.iskeyword(field) for field in fields)
    # What Python makes of a name in source code, so that `state.<field>` finds it.
    assert all(unicodedata.normalize("NFKC", field) == field for field in fields)
    assert space.names == tuple(names)
    assert space.encode(dict(zip(names, state, strict=True))) == (0,) * len(names)


@pytest.mark.parametrize(
    "value",
    [
        None,
        float("nan"),
        np.nan,
        np.float32("nan"),
        pd.NA,
        pd.NaT,
        np.datetime64("NaT", "D"),
        np.timedelta64("NaT", "D"),
        np.ma.masked,
    ],
    ids=["None", "nan", "np.nan", "float32", "pd.NA", "pd.NaT", "datetime64", "timedelta64", "masked"],
)
def test_what_means_missing(value):
    assert is_missing(value)
    space = FeatureSpace({"level": [0, 1], "ward": ["north", "south"]})
    assert space.encode_observation((value, "south")) == (MISSING, 1)
    with pytest.raises(mm.ModelError, match="'level' has no value"):
        space.encode((value, "south"))


@pytest.mark.parametrize(
    "value", [0, 0.0, False, "", "nan", "None", "NA", (), math.inf, np.array([1.0, np.nan])]
)
def test_what_does_not_mean_missing(value):
    assert not is_missing(value)


@pytest.mark.parametrize(
    "state",
    [
        (np.int64(2), np.str_("south"), np.True_),
        [2, "south", True],
        np.array([2, "south", True], dtype=object),
        {"ward": "south", "on drip": True, "level": 2},
        pd.Series({"level": 2, "ward": "south", "on drip": True}),
        (2.0, "south", 1),
    ],
)
def test_states_can_be_written_in_many_ways(state):
    space = FeatureSpace({"level": np.arange(3), "ward": ["north", "south"], "on drip": [False, True]})
    assert space.encode(state) == (2, 1, 1)


def test_numpy_values_come_back_as_python_values():
    space = FeatureSpace({"level": np.arange(3), "dose": np.array([0.5, 1.0]), "ward": np.array(["n", "s"])})
    assert [type(value) for value in space.decode((2, 0, 1))] == [int, float, str]
    assert space == FeatureSpace({"level": [0, 1, 2], "dose": [0.5, 1.0], "ward": ["n", "s"]})


def test_one_feature_needs_no_tuple():
    space = FeatureSpace({"level": ["low", "high"]})
    assert space.encode("high") == space.encode(("high",)) == (1,)
    assert space.encode_observation(None) == (MISSING,)
    assert space.encode(np.array("high")) == (1,)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0,), r"\(0,\) does not fit.*expected 2 values \(level, ward\)"),
        ((0, "north", 1), "expected 2 values"),
        ("north", "'north' does not fit"),
        (7, "7 does not fit"),
        ((3, "north"), "'level' cannot be 3; its values are 0, 1"),
        ((0, "west"), "'ward' cannot be 'west'; its values are 'north', 'south'"),
        (([], "north"), r"'level' cannot be \[\]"),
        ({"level": 0, "ward": "north", "wart": 1}, "no feature 'wart'"),
    ],
)
def test_rows_that_do_not_fit_say_why(row, message):
    space = FeatureSpace({"level": [0, 1], "ward": ["north", "south"]})
    with pytest.raises(mm.ModelError, match=message):
        space.encode(row)
    with pytest.raises(mm.ModelError, match=message):
        space.encode_observation(row)


def test_a_mapping_may_leave_out_what_is_missing():
    space = FeatureSpace({"level": [0, 1], "ward": ["north", "south"]})
    assert space.encode_observation({"ward": "south"}) == (MISSING, 1)
    assert space.encode_observation({}) == (MISSING, MISSING)
    with pytest.raises(mm.ModelError, match="'level' is absent"):
        space.encode({"ward": "south"})


def test_long_lists_of_values_are_cut_short():
    with pytest.raises(mm.ModelError, match=r"its values are 0, 1, 2, 3, 4, 5, 6, 7, … \(100 in all\)"):
        FeatureSpace({"level": range(100)}).encode((100,))


def test_masks_and_positions_follow_the_names():
    space = FeatureSpace({"a": [0], "b": [0], "c": [0]})
    np.testing.assert_array_equal(space.mask(["c", "a"]), [True, False, True])
    np.testing.assert_array_equal(space.mask("b"), [False, True, False])
    assert space.chosen(space.mask(["c", "a"])) == ("a", "c")
    with pytest.raises(mm.ModelError, match="no feature 'd'; the features are a, b, c"):
        space.position("d")


def test_the_order_of_features_and_of_values_matters_for_equality():
    space = FeatureSpace({"a": [0, 1], "b": [0]})
    assert space == FeatureSpace({"a": range(2), "b": [0]})
    assert hash(space) == hash(FeatureSpace({"a": range(2), "b": [0]}))
    assert space != FeatureSpace({"b": [0], "a": [0, 1]})
    assert space != FeatureSpace({"a": [1, 0], "b": [0]})
    assert space != FeatureSpace({"a": [0, 1, 2], "b": [0]})


@pytest.mark.parametrize("count", [70, 700])
def test_too_many_features_to_number_are_refused_in_models(count):
    space = FeatureSpace({f"f{i}": [0, 1] for i in range(count)})
    assert space.encode_observation({"f3": 1})[3] == 1
    with pytest.raises(mm.ModelError, match=f"the {count} features"):
        space.rank(np.zeros((1, count), dtype=np.int8))
    start = {(0,) * count: 1.0}
    with pytest.raises(mm.ModelError, match=f"the {count} features"):
        mm.FactoredMDP(space, ["stay"], lambda state, action: {state: 1.0}, 0.0, start)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_features_states_and_observations_can_be_copied_and_pickled(clone):
    space = FeatureSpace({"level": [0, 1], "ward": ["n", "s"]})
    assert clone(space) == space
    for row in (space.decode((1, 0)), space.decode_observation((MISSING, 1))):
        assert clone(row) == row
        assert clone(row).ward == row.ward


def test_names_of_features_are_text_that_files_can_hold():
    with pytest.raises(mm.ModelError, match=r"text that a file can hold, got 'x\\ud800'"):
        FeatureSpace({"x\ud800": [0, 1]})
