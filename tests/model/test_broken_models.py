"""Models that cannot be: each is refused with a `ModelError` that names what is wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from missmdp.model.space import FeatureSpace, StateSpace

HUGE = 10**400
"""An integer that no float holds."""


def step(state, action):
    if action == "treat":
        return {(state.ward, max(state.level - 1, 0)): 1.0}
    if state.level == 2:
        return {state: 1.0}
    return {state: 0.75, (state.ward, state.level + 1): 0.25}


def step_but(wrong):
    """Return `step` with another answer at one place, which is `AT`."""
    return lambda state, action: wrong if (*state, action) == ("south", 1, "wait") else step(state, action)


def from_functions(**changes):
    given = {
        "features": {"ward": ["north", "south"], "level": range(3)},
        "actions": ["wait", "treat"],
        "transition": step,
        "reward": lambda state, action: -1.0 * state.level,
        "initial": {("north", 0): 0.25, ("south", 1): 0.75},
        "discount": 0.9,
    }
    return mm.FactoredMDP(**{**given, **changes})


def from_matrices(**changes):
    """Three levels; `wait` drifts up, `treat` resets."""
    given = {
        "features": {"level": range(3)},
        "actions": ["wait", "treat"],
        "transition": [[[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], [[1, 0, 0]] * 3],
        "reward": [[0.0, -0.5], [-1.0, -0.5], [-2.0, -0.5]],
        "initial": [1.0, 0.0, 0.0],
    }
    return mm.FactoredMDP(**{**given, **changes})


def matrices_but(row):
    """Return matrices whose row of level 1 and `treat` is another."""
    wait, treat = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]), np.array([[1.0, 0, 0]] * 3)
    treat[1] = row
    return [wait, treat]


def raises(error):
    def function(*_):
        raise error

    return function


def case(name, build, *fragments):
    return pytest.param(build, fragments, id=name)


AT = "transition(State(ward='south', level=1), 'wait')"
MATRIX_AT = "transition(State(level=1), 'treat')"

TRANSITIONS = [
    case(
        "sum below one",
        lambda: from_functions(transition=step_but({("south", 1): 0.5})),
        AT,
        "0.5, not 1",
    ),
    case(
        "sum above one",
        lambda: from_matrices(transition=matrices_but([1, 0.25, 0])),
        MATRIX_AT,
        "sum to 1.25",
    ),
    case("empty successors", lambda: from_functions(transition=step_but({})), AT, "sum to 0, not 1"),
    case(
        "NaN from a function",
        lambda: from_functions(transition=step_but({("south", 1): math.nan})),
        AT,
        "NaN",
    ),
    case(
        "NaN in a matrix",
        lambda: from_matrices(transition=matrices_but([math.nan, 0.5, 0.5])),
        MATRIX_AT,
        "NaN",
    ),
    case(
        "negative",
        lambda: from_matrices(transition=matrices_but([1.5, -0.5, 0])),
        MATRIX_AT,
        "negative (-0.5)",
    ),
    case(
        "negative from a function",
        lambda: from_functions(transition=step_but({("south", 1): 1.5, ("south", 0): -0.5})),
        AT,
        "negative (-0.5)",
    ),
    case("infinite", lambda: from_matrices(transition=matrices_but([math.inf, 0, 0])), MATRIX_AT, "infinite"),
    case(
        "probability is a word",
        lambda: from_functions(transition=step_but({("south", 1): "often"})),
        AT,
        "('south', 1)",
        "'often', not a number",
    ),
    case(
        "probability that no float holds",
        lambda: from_functions(transition=step_but({("south", 1): HUGE})),
        "State(ward='south', level=1)",
        "('south', 1)",
    ),
    case(
        "unknown value in a successor",
        lambda: from_functions(transition=step_but({("south", 3): 1.0})),
        AT,
        "'level' cannot be 3",
        "0, 1, 2",
    ),
    case(
        "successor too short",
        lambda: from_functions(transition=step_but({("south",): 1.0})),
        AT,
        "('south',)",
        "expected 2 values (ward, level)",
    ),
    case(
        "successor with a missing value",
        lambda: from_functions(transition=step_but({("south", None): 1.0})),
        AT,
        "'level' has no value",
    ),
    case(
        "successors without probabilities",
        lambda: from_functions(transition=step_but([("south", 1)])),
        AT,
        "'south' does not fit",
    ),
    case(
        "pairs that are no pairs",
        lambda: from_functions(transition=step_but([("south", 1, 1.0)])),
        AT,
        "(state, probability) pairs",
        "('south', 1, 1.0)",
    ),
    case("no successors at all", lambda: from_functions(transition=step_but(None)), AT, "pairs", "NoneType"),
    case(
        "pairs that do not sum to one",
        lambda: from_functions(transition=step_but([(("south", 1), 0.5), (("south", 1), 0.25)])),
        AT,
        "sum to 0.75",
    ),
    case(
        "generator raises",
        lambda: from_functions(transition=lambda s, a: ((s, 1 / s.level) for _ in "x")),
        "transition(State(ward='north', level=0), 'wait')",
        "ZeroDivisionError",
    ),
    case(
        "function raises",
        lambda: from_functions(transition=lambda state, action: {state: 1 / state.level}),
        "transition(State(ward='north', level=0), 'wait')",
        "ZeroDivisionError",
    ),
    case(
        "function of other features",
        lambda: from_functions(transition=lambda state, action: {state: state.height}),
        "AttributeError",
        "height",
    ),
    case(
        "too many states",
        lambda: from_functions(max_states=5),
        "more than 5 states",
        "the features allow 6",
        "max_states",
    ),
    case(
        "too many combinations for matrices",
        lambda: from_matrices(features={"a": range(2000), "b": range(2000)}),
        "4e+06",
        "max_states",
        "states",
    ),
    case("states with functions", lambda: from_functions(states=[("north", 0)]), "states: ", "matrices"),
    case(
        "matrix of a wrong shape",
        lambda: from_matrices(transition=[np.eye(3), np.eye(2)]),
        "'treat'",
        "(2, 2)",
        "(3, 3)",
    ),
    case(
        "sparse matrix of a wrong shape",
        lambda: from_matrices(transition=[sparse.eye_array(4), sparse.eye_array(3)]),
        "'wait'",
        "(4, 4)",
    ),
    case("too few matrices", lambda: from_matrices(transition=[np.eye(3)]), "1 matrices", "2 actions"),
    case(
        "too many matrices",
        lambda: from_matrices(transition=np.stack([np.eye(3)] * 4)),
        "4 matrices",
        "2 actions",
    ),
    case(
        "matrix for an unknown action",
        lambda: from_matrices(transition={"wait": np.eye(3), "treat": np.eye(3), "test": np.eye(3)}),
        "'test'",
        "not an action",
    ),
    case(
        "no matrix for an action",
        lambda: from_matrices(transition={"wait": np.eye(3)}),
        "no matrix",
        "'treat'",
    ),
    case(
        "matrix of words",
        lambda: from_matrices(transition=[np.eye(3), [["a", "b", "c"]] * 3]),
        "'treat'",
        "array of numbers",
    ),
    case(
        "ragged matrix",
        lambda: from_matrices(transition=[[[1], [0, 1], [1]], np.eye(3)]),
        "'wait'",
        "numbers",
    ),
    case(
        "matrix of complex numbers",
        lambda: from_matrices(transition=[np.eye(3) * 1j, np.eye(3)]),
        "'wait'",
        "numbers",
    ),
    case(
        "transition is a word",
        lambda: from_matrices(transition="drift"),
        "transition: expected a function",
        "str",
    ),
    case(
        "transition is a number",
        lambda: from_matrices(transition=3),
        "transition: expected a function",
        "int",
    ),
    case(
        "states listed twice",
        lambda: from_matrices(states=[(0,), (2,), (0,)]),
        "State(level=0)",
        "twice",
    ),
    case("unknown value in states", lambda: from_matrices(states=[(0,), (1,), (7,)]), "'level' cannot be 7"),
    case("no states", lambda: from_matrices(states=[]), "states: ", "at least one state"),
    case(
        "states of other features",
        lambda: from_matrices(
            states=StateSpace(FeatureSpace({"height": [1, 2, 3]}), np.array([[0], [1], [2]]))
        ),
        "states: ",
        "other features",
    ),
]

FEATURES_AND_ACTIONS = [
    case("no features", lambda: from_functions(features={}), "at least one feature"),
    case(
        "features as a list",
        lambda: from_functions(features=["ward", "level"]),
        "features: expected a mapping from names to values",
        "list",
    ),
    case("feature with a blank name", lambda: from_functions(features={" ": [1]}), "name", "' '"),
    case("feature named by a number", lambda: from_functions(features={3: [1]}), "name", "3"),
    case("feature without values", lambda: from_functions(features={"ward": []}), "'ward' has no values"),
    case(
        "values as a string", lambda: from_functions(features={"ward": "north"}), "'ward'", "string 'north'"
    ),
    case(
        "values as a number", lambda: from_functions(features={"level": 3}), "'level'", "list of values", "3"
    ),
    case("value twice", lambda: from_functions(features={"level": [0, 2, 0]}), "'level'", "value 0 twice"),
    case(
        "value twice in disguise",
        lambda: from_functions(features={"level": [0, 1, True]}),
        "'level'",
        "True twice",
        "equals 1",
    ),
    case(
        "None as a value",
        lambda: from_functions(features={"level": [0, None]}),
        "'level'",
        "None means missing",
    ),
    case(
        "NaN as a value",
        lambda: from_functions(features={"level": [0.0, np.nan]}),
        "'level'",
        "nan means missing",
    ),
    case(
        "value that cannot be hashed",
        lambda: from_functions(features={"level": [0, [1]]}),
        "'level'",
        "[1]",
        "hash",
    ),
    case("no actions", lambda: from_functions(actions=[]), "at least one action"),
    case("action twice", lambda: from_functions(actions=["wait", "treat", "wait"]), "action 'wait'", "twice"),
    case("None as an action", lambda: from_functions(actions=["wait", None]), "None cannot be an action"),
    case("NaN as an action", lambda: from_functions(actions=["wait", math.nan]), "nan cannot be an action"),
    case("actions as a string", lambda: from_functions(actions="wait"), "list of names", "string 'wait'"),
    case("actions as a number", lambda: from_functions(actions=2), "list of names", "2"),
    case("action that cannot be hashed", lambda: from_functions(actions=["wait", ["x"]]), "['x']", "hash"),
    case(
        "last action under a taken name",
        lambda: from_functions().with_last_action("level"),
        "feature 'level' already",
    ),
    case(
        "last action with none an action",
        lambda: from_functions().with_last_action(none="wait"),
        "'wait' is an action",
    ),
    case(
        "last action with None for none",
        lambda: from_functions().with_last_action(none=None),
        "None",
        "missing",
    ),
]

NUMBERS = [
    case("discount one", lambda: from_functions(discount=1), "discount", "[0, 1)", "1"),
    case("discount negative", lambda: from_functions(discount=-0.1), "discount", "-0.1"),
    case("discount NaN", lambda: from_functions(discount=math.nan), "discount", "nan"),
    case("discount a word", lambda: from_functions(discount="x"), "discount", "'x'"),
    case("discount None", lambda: from_functions(discount=None), "discount", "None"),
    case("discount that no float holds", lambda: from_functions(discount=HUGE), "discount"),
    case(
        "reward NaN",
        lambda: from_functions(reward=lambda s, a: math.nan if s.level == 2 and a == "treat" else 0.0),
        "reward(State(ward='north', level=2), 'treat')",
        "nan",
    ),
    case(
        "reward infinite",
        lambda: from_matrices(reward=[[0, 0], [0, -math.inf], [0, 0]]),
        "reward(State(level=1), 'treat')",
        "-inf",
    ),
    case(
        "reward whose values no float holds",
        lambda: from_matrices(reward=[[0, 0], [0, -2e307], [0, 0]], discount=0.95),
        "reward(State(level=1), 'treat') is -2e+307",
        "discount 0.95",
    ),
    case(
        "reward a word",
        lambda: from_functions(reward=lambda s, a: "much"),
        "reward(State(ward='north', level=0), 'wait')",
        "'much', not a number",
    ),
    case("reward None", lambda: from_functions(reward=lambda s, a: None), "level=0", "None, not a number"),
    case("reward that no float holds", lambda: from_functions(reward=lambda s, a: HUGE), "level=0", "reward"),
    case(
        "reward raises",
        lambda: from_functions(reward=raises(KeyError("price"))),
        "reward(State(ward='north', level=0), 'wait')",
        "KeyError",
        "price",
    ),
    case("reward of a wrong shape", lambda: from_matrices(reward=[0, 1, 2]), "(3, 2)", "(3,)"),
    case(
        "reward as an array with functions",
        lambda: from_functions(reward=np.zeros((6, 2))),
        "reward",
        "function",
    ),
    case(
        "initial sums to less",
        lambda: from_functions(initial={("north", 0): 0.75}),
        "initial",
        "sum to 0.75, not 1",
    ),
    case("initial empty", lambda: from_functions(initial={}), "initial", "empty"),
    case("initial all zero", lambda: from_functions(initial={("north", 0): 0.0}), "initial", "empty"),
    case("initial empty with matrices", lambda: from_matrices(initial={}), "initial", "sum to 0"),
    case(
        "initial with an unknown value",
        lambda: from_functions(initial={("west", 0): 1.0}),
        "initial",
        "'ward' cannot be 'west'",
    ),
    case(
        "initial with an unknown state",
        lambda: from_matrices(
            states=[(0,), (1,)], transition=[np.eye(2)] * 2, reward=np.zeros((2, 2)), initial={(2,): 1}
        ),
        "(2,)",
        "not one of the 2 states",
    ),
    case(
        "initial negative",
        lambda: from_functions(initial={("north", 0): 1.5, ("south", 2): -0.5}),
        "initial",
        "('south', 2)",
        "negative (-0.5)",
    ),
    case("initial NaN", lambda: from_matrices(initial=[1, math.nan, 0]), "initial", "State(level=1)", "NaN"),
    case("initial of a wrong shape", lambda: from_matrices(initial=[0.5, 0.5]), "initial", "(3,)", "(2,)"),
    case("initial a word", lambda: from_matrices(initial="first"), "initial", "numbers"),
    case("initial as an array with functions", lambda: from_functions(initial=[1.0]), "initial", "pairs"),
    case(
        "terminal neither True nor False",
        lambda: from_functions(terminal=lambda s: s.level),
        "terminal(State(ward='north', level=0))",
        "True or False",
        "0",
    ),
    case(
        "terminal neither True nor False, with matrices",
        lambda: from_matrices(terminal=lambda s: "yes"),
        "terminal(State(level=0))",
        "'yes'",
    ),
    case(
        "terminal raises",
        lambda: from_matrices(terminal=raises(RuntimeError("no idea"))),
        "terminal(State(level=0))",
        "no idea",
    ),
    case(
        "terminal as an array of numbers",
        lambda: from_matrices(terminal=np.array([0, 0, 1])),
        "terminal",
        "boolean",
    ),
    case("terminal as a word", lambda: from_matrices(terminal="last"), "terminal", "'last'"),
    case("terminal as a number", lambda: from_functions(terminal=2), "terminal", "2"),
    case(
        "unknown value in a terminal state",
        lambda: from_functions(terminal=[("south", 2), ("west", 0)]),
        "terminal",
        "'ward' cannot be 'west'",
    ),
    case("terminal of a wrong shape", lambda: from_matrices(terminal=[False]), "terminal", "(3,)", "(1,)"),
    case("terminal as a mask with functions", lambda: from_functions(terminal=[True]), "terminal", "True"),
    case("initial as pairs with a hole", lambda: from_functions(initial=[(("north", 0), 0.5)]), "sum to 0.5"),
    case(
        "initial negative in a sum",
        lambda: from_matrices(initial=[((0,), 1.5), ((0,), -0.5)]),
        "initial",
        "(0,)",
        "negative (-0.5)",
    ),
    case("states as a word", lambda: from_matrices(states="abc"), "states must be a list", "'abc'"),
    case("no MDP in a miss-MDP", lambda: mm.MissMDP("icu-smar", None), "mdp: expected a FactoredMDP", "str"),
    case(
        "no missingness in a miss-MDP",
        lambda: mm.MissMDP(from_functions(), None),
        "missingness: expected a MissingnessFunction",
        "NoneType",
    ),
    case("precision zero", lambda: from_functions().horizon(0), "precision", "0"),
    case("precision NaN", lambda: from_functions().horizon(math.nan), "precision", "nan"),
    case("precision a word", lambda: from_functions().horizon("fine"), "precision", "'fine'"),
    case("unknown action", lambda: from_functions().action_index("test"), "'test'", "'wait', 'treat'"),
]


@pytest.mark.parametrize(("build", "fragments"), TRANSITIONS + FEATURES_AND_ACTIONS + NUMBERS)
def test_a_broken_mdp_is_refused_and_named(build, fragments):
    with pytest.raises(mm.ModelError) as caught:
        build()
    for fragment in fragments:
        assert fragment in str(caught.value)


def independent(missing):
    return mm.MissingnessFunction.independent(from_functions(), missing)


def blocks(missing):
    return mm.MissingnessFunction.blocks(from_functions(), missing)


def from_patterns(function):
    return mm.MissingnessFunction.from_patterns(from_functions(), function)


def patterns_but(wrong):
    """Return a function state → patterns with another answer in one state."""
    return lambda state: wrong if state == ("south", 1) else {(1, 1): 1.0}


def directly(patterns, probabilities):
    return mm.MissingnessFunction(from_matrices().space, patterns, probabilities)


AT_STATE = "State(ward='south', level=1)"

MISSINGNESS = [
    case("rate above one", lambda: independent({"level": 1.5}), "P(level missing)", "1.5", "[0, 1]"),
    case(
        "rate negative somewhere",
        lambda: independent({"level": lambda s: 0.2 - 0.3 * (s.level == 1)}),
        "P(level missing)",
        "-0.1",
        "level=1",
    ),
    case("rate NaN", lambda: independent({"ward": lambda s: math.nan}), "P(ward missing)", "nan"),
    case(
        "rate a word",
        lambda: independent({"ward": lambda s: "seldom"}),
        "P(ward missing)",
        "'seldom'",
        "north",
    ),
    case("rate None", lambda: independent({"ward": None}), "P(ward missing)", "None"),
    case("rate that no float holds", lambda: independent({"ward": HUGE}), "P(ward missing)"),
    case(
        "rate raises",
        lambda: independent({"ward": lambda s: 1 / s.level}),
        "P(ward missing)",
        "State(ward='north', level=0)",
        "ZeroDivisionError",
    ),
    case("unknown feature", lambda: independent({"height": 0.5}), "no feature 'height'", "ward, level"),
    case("rates as a list", lambda: independent([0.5, 0.5]), "mapping", "list"),
    case("blocks as a list", lambda: blocks([("ward", "level")]), "mapping", "list"),
    case("unknown feature in a block", lambda: blocks({("ward", "height"): 0.5}), "no feature 'height'"),
    case(
        "feature in two blocks",
        lambda: blocks({("ward", "level"): 0.5, "level": 0.1}),
        "'level' is in two blocks",
    ),
    case(
        "feature in two blocks of its own",
        lambda: blocks({"level": 0.5, ("level",): 0.1}),
        "'level' is in two blocks",
    ),
    case("empty block", lambda: blocks({(): 0.5, ("ward",): 0.1}), "block", "empty"),
    case("block that is a number", lambda: blocks({5: 0.5}), "5"),
    case(
        "pattern too short",
        lambda: from_patterns(patterns_but({(1,): 1.0})),
        AT_STATE,
        "(1,)",
        "tuple of 2 entries",
    ),
    case("pattern not of 0 and 1", lambda: from_patterns(patterns_but({(1, 2): 1.0})), AT_STATE, "(1, 2)"),
    case("pattern with None", lambda: from_patterns(patterns_but({(1, None): 1.0})), AT_STATE, "(1, None)"),
    case("pattern as a string", lambda: from_patterns(patterns_but({"10": 1.0})), AT_STATE, "'10'"),
    case(
        "patterns that sum to less",
        lambda: from_patterns(patterns_but({(1, 0): 0.5, (0, 0): 0.25})),
        AT_STATE,
        "sum to 0.75, not 1",
    ),
    case("no patterns", lambda: from_patterns(patterns_but({})), AT_STATE, "sum to 0"),
    case("no patterns anywhere", lambda: from_patterns(lambda s: {}), "sum to 0"),
    case(
        "pattern of negative probability",
        lambda: from_patterns(patterns_but({(1, 0): -0.5, (1, 1): 1.5})),
        AT_STATE,
        "negative (-0.5)",
    ),
    case(
        "pattern of probability NaN", lambda: from_patterns(patterns_but({(1, 0): math.nan})), AT_STATE, "NaN"
    ),
    case(
        "pattern whose probability is a word",
        lambda: from_patterns(patterns_but({(1, 0): "rarely"})),
        AT_STATE,
        "(1, 0)",
        "'rarely'",
    ),
    case("patterns as a list", lambda: from_patterns(patterns_but([(1, 0)])), AT_STATE, "list"),
    case("patterns by no function", lambda: from_patterns({(1, 1): 1.0}), "function", "pattern"),
    case(
        "patterns raise",
        lambda: from_patterns(lambda s: {(1, 1): 1.0}[s]),
        "State(ward='north', level=0)",
        "KeyError",
    ),
    case("pattern twice", lambda: directly([[1], [1]], np.full((3, 2), 0.5)), "pattern", "twice"),
    case("patterns of a wrong width", lambda: directly([[1, 0]], np.ones((3, 1))), "(patterns, 1)", "(1, 2)"),
    case("patterns not of 0 and 1", lambda: directly([[2], [0]], np.full((3, 2), 0.5)), "pattern", "2"),
    case("probabilities of a wrong shape", lambda: directly([[1]], np.ones((2, 1))), "(3, 1)", "(2, 1)"),
    case("ragged probabilities", lambda: directly([[1], [0]], [[1, 0], [1], [1, 0]]), "probabilities"),
    case(
        "probabilities that do not sum to one",
        lambda: directly([[1], [0]], [[0.5, 0.5], [1, 0], [0.5, 0.25]]),
        "State(level=2)",
        "0.75",
    ),
    case(
        "missingness over the states of another MDP",
        lambda: mm.MissMDP(from_matrices(), independent({"level": 0.5})),
        "other states",
    ),
    case(
        "missingness over other states of the same features",
        lambda: mm.MissMDP(
            from_functions(),
            mm.MissingnessFunction.fully_observed(from_functions(initial={("north", 0): 1.0})),
        ),
        "other states",
    ),
    case(
        "rate of an unknown feature",
        lambda: independent({"level": 0.5}).missing_rate("height"),
        "no feature 'height'",
    ),
    case(
        "likelihood of an unknown value",
        lambda: independent({"level": 0.5}).likelihood((None, 9)),
        "'level' cannot be 9",
    ),
    case(
        "distribution of an unreachable state",
        lambda: mm.MissingnessFunction.fully_observed(
            from_functions(initial={("north", 0): 1.0})
        ).distribution(("south", 0)),
        "('south', 0)",
        "not one of the 3 states",
    ),
]


@pytest.mark.parametrize(("build", "fragments"), MISSINGNESS)
def test_broken_missingness_is_refused_and_named(build, fragments):
    with pytest.raises(mm.ModelError) as caught:
        build()
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_too_many_patterns_are_refused_before_they_fill_the_memory():
    names = [f"f{i}" for i in range(28)]
    mdp = mm.FactoredMDP(
        {name: [0, 1] for name in names},
        ["stay"],
        lambda s, a: {s: 1.0},
        lambda s, a: 0.0,
        {(0,) * 28: 1.0},
    )
    M = mm.MissingnessFunction.independent(mdp, dict.fromkeys(names, 0.5))
    assert M.can_go_missing == tuple(names)
    for name in ("patterns", "probabilities"):
        with pytest.raises(mm.ModelError, match=r"2.7e\+08 patterns, too many to list"):
            getattr(M, name)
    half = mm.MissingnessFunction.blocks(mdp, {tuple(names[:14]): 0.5, tuple(names[14:]): 0.5})
    assert half.n_patterns == 4


def test_the_same_numbers_without_the_mistakes_make_models():
    """What the cases above start from is sound, so each of them fails for its own reason."""
    assert from_functions().n_states == 6
    assert from_functions(max_states=6).n_states == 6
    assert from_matrices().n_states == 3
    assert from_matrices(transition=matrices_but([0, 1, 0])).transition[1][1, 1] == 1.0
    assert (
        from_functions(transition=step_but({("south", 2): Fraction(1, 4), ("north", 2): 0.75})).n_states == 6
    )
    assert independent({"level": 0.5, "ward": lambda s: s.level / 2}).n_patterns == 4
    assert from_patterns(patterns_but({(1, 0): 0.5, (False, True): 0.5})).n_patterns == 3
    assert directly([[1], [0]], np.full((3, 2), 0.5)).n_patterns == 2


def test_errors_are_also_value_errors():
    """Code that does not know missmdp can catch them."""
    with pytest.raises(ValueError):
        from_functions(discount=2)
