"""RockSample: sizes, a few probabilities by hand, and a small map solved exactly."""

import numpy as np
import pytest

import missmdp as mm
from missmdp.benchmarks.rocksample import ROCKSAMPLE_7_8, ROCKSAMPLE_11_11, Map, rocksample


@pytest.fixture(scope="module", params=[True, False], ids=["position seen", "position known"])
def model(request) -> mm.POMDP:
    return rocksample(ROCKSAMPLE_7_8, position_seen=request.param)


def test_sizes():
    assert rocksample(ROCKSAMPLE_7_8).n_states == 49 * 2**8 + 1 == 12_545
    assert ROCKSAMPLE_11_11.size**2 * 2 ** len(ROCKSAMPLE_11_11.rocks) + 1 == 247_809
    assert len(set(ROCKSAMPLE_11_11.rocks)) == 11


def test_start_is_one_cell_with_every_rock_good_half_the_time(model):
    possible = np.flatnonzero(model.initial)
    assert {model.states[s][:2] for s in possible} == {(0, 3)}
    assert len(possible) == 256
    assert model.initial[possible] == pytest.approx(1 / 256)


def follow(model, state, action):
    row = model.transition[model.actions.index(action)][[model.states.index(state)]]
    assert row.nnz == 1
    return model.states[int(row.indices[0])], float(
        model.reward[model.states.index(state), model.actions.index(action)]
    )


def test_moves_and_rewards(model):
    assert follow(model, (0, 3, 5), "north") == ((0, 2, 5), 0.0)
    assert follow(model, (0, 3, 5), "west") == ((0, 3, 5), 0.0)
    assert follow(model, (6, 3, 5), "east") == ("left", 10.0)
    assert follow(model, (6, 6, 5), "south") == ((6, 6, 5), 0.0)
    # Rock 1 is at (0, 1): good once, bad afterwards.
    assert follow(model, (0, 1, 0b110), "sample") == ((0, 1, 0b100), 10.0)
    assert follow(model, (0, 1, 0b100), "sample") == ((0, 1, 0b100), -10.0)
    assert follow(model, (0, 0, 7), "sample") == ((0, 0, 7), 0.0)
    assert follow(model, (0, 0, 7), "check 3") == ((0, 0, 7), 0.0)
    assert follow(model, "left", "east") == ("left", 0.0)


def test_a_check_is_right_as_often_as_the_distance_says(model):
    readings = model.observation_of(model.actions.index("check 0"))[
        [model.states.index((2, 4, 1))]
    ].toarray()[0]
    by_name = {o[2]: p for o, p in zip(model.observations, readings, strict=True) if p > 0}
    accuracy = 0.5 + 0.5 * 2 ** (-4 / 20)
    assert by_name == pytest.approx({"good": accuracy, "bad": 1 - accuracy})


def test_one_rock_by_hand():
    """Two steps from the exit, on the rock: with a perfect check, look and sample where it pays."""
    g = 0.95
    world = Map(2, (0, 0), ((0, 0),))
    # Checking on the rock itself is always right.
    value = g * (0.5 * (10 + g * g * 10) + 0.5 * g * 10)
    result = mm.Sarsop(precision=1e-6).solve(rocksample(world))
    assert result.lower == pytest.approx(max(value, g * 10), abs=1e-4)
    assert result.upper == pytest.approx(result.lower, abs=1e-4)
