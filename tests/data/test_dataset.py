"""Logs and counts given as arrays: what kernels would follow astray is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import missmdp as mm
from missmdp.errors import ParameterError


@pytest.fixture(scope="module")
def mdp() -> mm.FactoredMDP:
    return mm.load_benchmark("example-1").mdp


def log_parts(mdp: mm.FactoredMDP, **changes: Any) -> dict[str, Any]:
    parts = {
        "observations": np.array([[0, -1], [1, 0], [0, 0]], dtype=np.int8),
        "actions": np.array([0, -1, -1]),
        "offsets": np.array([0, 2, 3]),
        "terminated": np.array([True, False]),
        "states": np.array([0, 1, 0]),
    }
    return {"mdp": mdp} | parts | changes


def test_lists_and_other_integers_will_do(mdp):
    log = mm.Dataset(**log_parts(mdp, observations=[[0, -1], [1, 0], [0, 0]], terminated=[1, 0]))
    assert log.terminated.dtype == np.bool_
    assert log.n_episodes == 2


WRONG_LOGS = {
    "no MDP": {"mdp": None},
    "observations None": {"observations": None},
    "observations a number": {"observations": 3},
    "observations of words": {"observations": [["a", "b"]] * 3},
    "observations uneven": {"observations": [[0], [1, 2], [3]]},
    "observations as floats": {"observations": np.zeros((3, 2))},
    "observations NaN": {"observations": np.full((3, 2), np.nan)},
    "observations flat": {"observations": np.zeros(3, dtype=np.int8)},
    "observations too large": {"observations": np.full((3, 2), 2**40)},
    "actions as floats": {"actions": np.array([0.5, -1.0, -1.0])},
    "actions too many": {"actions": np.zeros(4, dtype=np.int64)},
    "actions too large": {"actions": np.array([2**31, -1, -1])},
    "actions negative": {"actions": np.array([-2, -1, -1])},
    "offsets as floats": {"offsets": np.array([0.0, 2.0, 3.0])},
    "offsets in two rows": {"offsets": np.array([[0, 2, 3]])},
    "offsets beyond": {"offsets": np.array([0, 2**40, 3])},
    "offsets falling": {"offsets": np.array([0, -2, 3])},
    "offsets unsigned and falling": {"offsets": np.array([0, 5, 3], dtype=np.uint64)},
    "terminated a number": {"terminated": 1},
    "terminated of words": {"terminated": ["yes", "no"]},
    "terminated 2": {"terminated": np.array([2, 0])},
    "states as floats": {"states": np.zeros(3)},
    "states too large": {"states": np.array([0, 1, 2**20])},
}


@pytest.mark.parametrize("changes", WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_arrays_that_make_no_log_are_refused(mdp, changes):
    with pytest.raises(ParameterError):
        mm.Dataset(**(log_parts(mdp) | changes))


WRONG_COUNTS = {
    "no MDP": {"mdp": "icu-smar"},
    "codes None": {"codes": None},
    "codes as floats": {"codes": np.zeros((2, 2))},
    "codes flat": {"codes": np.zeros(2, dtype=np.int8)},
    "codes too large": {"codes": np.array([[0, -1], [2**40, 0]])},
    "codes out of order": {"codes": np.array([[1, 0], [0, -1]])},
    "counts a number": {"counts": 3},
    "counts as floats": {"counts": np.array([1.5, 2.0])},
    "counts zero": {"counts": np.array([0, 2])},
    "counts in two rows": {"counts": np.array([[1], [2]])},
    "counts too large together": {"counts": np.array([2**63 - 1, 2**63 - 1])},
}


@pytest.mark.parametrize("changes", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_arrays_that_make_no_counts_are_refused(mdp, changes):
    parts = {"mdp": mdp, "codes": np.array([[0, -1], [1, 0]], dtype=np.int8), "counts": np.array([1, 2])}
    assert mm.ObservationCounts(**parts).n_steps == 3
    with pytest.raises(ParameterError):
        mm.ObservationCounts(**{**parts, **changes})
