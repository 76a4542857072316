"""Wrong arguments: every check returns the value in its proper type, or names the argument and what it must be."""

import math
import pickle

import numpy as np
import pytest

from missmdp.checks import (
    checked_choice,
    checked_confidence,
    checked_flag,
    checked_instance,
    checked_integer,
    checked_names,
    checked_number,
    checked_seed,
    checked_shape,
)
from missmdp.errors import (
    Argument,
    AssumptionWarning,
    DataError,
    Message,
    MissMDPError,
    ModelError,
    ParameterError,
)


def message(check, *args, **limits):
    with pytest.raises(ParameterError) as caught:
        check(*args, **limits)
    assert caught.value.name == args[0]
    return str(caught.value)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_of_any_kind(value):
    found = checked_integer("draws", value, least=3, most=3)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("value", [0, 2.0, "3", None, True, math.nan])
def test_what_is_no_integer_in_range(value):
    assert message(checked_integer, "draws", value, least=1) == (
        f"draws must be an integer of at least 1, got {value!r}"
    )


def test_ranges_in_words():
    assert message(checked_integer, "n", 9, most=8) == "n must be an integer of at most 8, got 9"
    assert message(checked_integer, "n", 9, least=2, most=8) == "n must be an integer from 2 to 8, got 9"
    assert message(checked_number, "x", 0.0, above=0.0) == "x must be a positive number, got 0.0"
    assert message(checked_number, "x", 2, least=0, most=1) == "x must be a number from 0 to 1, got 2"
    assert message(checked_number, "x", 1, above=0, below=1) == "x must be a number between 0 and 1, got 1"
    assert message(checked_number, "x", math.inf) == "x must be a finite number, got inf"


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1.0), np.int8(1)])
def test_numbers_of_any_kind(value):
    found = checked_number("x", value, least=1, most=1)
    assert (found, type(found)) == (1.0, float)


@pytest.mark.parametrize("value", ["1", b"1", None, True, math.nan, [1.0, 2.0]])
def test_what_is_no_number(value):
    assert message(checked_number, "x", value, least=0).startswith("x must be a number of at least 0, got ")


def test_infinity_where_it_is_allowed():
    assert checked_number("timeout", math.inf, least=0.0, finite=False) == math.inf


@pytest.mark.parametrize("value", [0.0, 1.0, 1, 95, "0.95", None])
def test_confidences(value):
    assert checked_confidence(0.95) == 0.95
    with pytest.raises(
        ParameterError, match="confidence must be a number between 0 and 1, such as 0.95, got"
    ):
        checked_confidence(value)


def test_seeds():
    assert checked_seed(np.int64(7)) == 7
    with pytest.raises(ParameterError, match="seed must be an integer of at least 0, got -1"):
        checked_seed(-1)


def test_choices_and_flags():
    assert checked_choice("unseen", "pooled", ["uniform", "pooled"]) == "pooled"
    assert (
        message(checked_choice, "unseen", 1, ["uniform", "pooled"])
        == "unseen must be 'uniform' or 'pooled', got 1"
    )
    assert checked_flag("memory", False) is False
    assert message(checked_flag, "memory", 1) == "memory must be True or False, got 1"


def test_names_and_what_may_have_been_meant():
    known = ["infection", "heart_rate"]
    assert checked_names("ignore", iter(known), known) == ("infection", "heart_rate")
    assert message(checked_names, "ignore", "infection", known) == (
        "ignore must be a list of features, got 'infection'"
    )
    assert message(checked_names, "ignore", ["Infektion"], known) == (
        "ignore: there is no feature 'Infektion'; the features are infection, heart_rate; did you mean 'infection'?"
    )


def test_a_wrong_argument_is_caught_as_before_and_survives_a_process():
    error = ParameterError("draws", 0, "an integer of at least 1")
    assert isinstance(error, ModelError)
    assert isinstance(error, DataError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.name, again.value, again.expected, str(again)) == ("draws", 0, error.expected, str(error))


def test_arguments_in_messages_are_written_as_the_caller_wants():
    error = MissMDPError("there is no column 'step'; pass ", Argument("step", "day"))
    assert str(error) == "there is no column 'step'; pass step='day'"
    assert error.text(lambda one: f"--{one.name} {one.value}").endswith("pass --step day")


def test_types_and_shapes():
    assert checked_instance("values", [1], list, "a list") == [1]
    said = message(checked_instance, "values", (1,), list, "a list", "list(values) makes one")
    assert said == "values: expected a list, got tuple (list(values) makes one)"
    array = np.zeros((2, 3))
    assert checked_shape("reward", array, (2, 3)) is array
    assert message(checked_shape, "reward", array, (3, 2)) == "reward must be of shape (3, 2), got (2, 3)"
    said = message(checked_shape, "reward", array, (3, 2), "(states, actions)")
    assert said == "reward must be of shape (states, actions) = (3, 2), got (2, 3)"


def test_a_problem_may_speak_of_other_arguments():
    bins = Argument("bins", {"x": ...}, python="{'x': Binning.from_edges([…])}")
    error = ParameterError("step", "t", "a number", Message("it is no number; use ", bins))
    assert str(error) == "step: it is no number; use bins={'x': Binning.from_edges([…])}"
    assert error.text(lambda argument: f"--{argument.name}") == "--step: it is no number; use --bins"
    again = pickle.loads(pickle.dumps(error))
    assert again.text(lambda argument: f"--{argument.name}") == "--step: it is no number; use --bins"


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, list(range(10**5)), np.arange(10**6), {"k" * 10**6: 1}],
    ids=["word", "list", "array", "dict"],
)
def test_errors_show_the_ends_of_long_values(value):
    assert len(message(checked_number, "discount", value)) < 300
    assert len(message(checked_names, "always", ["y" * 10**6], ["a"])) < 1000
    assert len(str(DataError(f"the columns are {value}"))) <= 4000


def test_errors_hold_text_and_nothing_else():
    error = DataError(
        "log\x1b]52;c;eA==\x07.csv: ", Message("there is no ", Argument("step", "\x9b2J")), "\u202e\nend"
    )
    assert str(error) == "log\\x1b]52;c;eA==\\x07.csv: there is no step='\\x9b2J'\\u202e\nend"
    assert str(AssumptionWarning("x\x1b[2J")) == r"x\x1b[2J"
