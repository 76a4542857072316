"""POMDPs given as arrays: whatever could lead a kernel astray is refused, and odd but clear forms are converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from missmdp.model.given import given_matrix

STAY = np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
SEEN = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])


def parts(**changes: Any) -> dict[str, Any]:
    """Return the arguments of a small POMDP."""
    return {
        "states": ("low", "high", "end"),
        "actions": ("wait", "act"),
        "observations": ("dark", "light"),
        "transition": (sparse.csr_array(STAY), sparse.csr_array(STAY[:, ::-1])),
        "reward": np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]]),
        "observation": (sparse.csr_array(SEEN),),
        "initial": np.array([0.5, 0.5, 0.0]),
        "terminal": np.array([False, False, True]),
        "discount": 0.9,
        "observe_initial": True,
    } | changes


def csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int] = (3, 3), form: str = "csr") -> Any:
    """Return a sparse matrix with these arrays, unchecked, as a program with a fault might make one."""
    matrix = (sparse.csr_array if form == "csr" else sparse.csc_array)(shape)
    matrix.data, matrix.indices, matrix.indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    return matrix


ONES = np.ones(3)
MALFORMED = {
    "index too large": csr(ONES, [0, 1, 100], [0, 1, 2, 3]),
    "index far too large": csr(ONES, [2**40, 1, 2], [0, 1, 2, 3]),
    "index negative": csr(ONES, [0, -1, 2], [0, 1, 2, 3]),
    "pointer beyond the entries": csr(ONES, [0, 1, 2], [0, 2**20, 2**20, 2**20]),
    "pointers that go up and come back": csr(ONES, [0, 1, 2], [0, 2**20, 2, 3]),
    "pointers that come back to nothing": csr([], np.empty(0, dtype=np.int32), [0, 2**20, 5, 0]),
    "pointers that begin late": csr(ONES, [0, 1, 2], [1, 1, 2, 3]),
    "pointers negative": csr(ONES, [0, 1, 2], [0, -5, 2, 3]),
    "pointers too few": csr(ONES, [0, 1, 2], [0, 1, 3]),
    "pointers as fractions": csr(ONES, [0, 1, 2], [0.0, 1.0, 2.0, 3.0]),
    "indices as fractions": csr(ONES, [0.0, 1.0, 2.0], [0, 1, 2, 3]),
    "indices in two rows": csr(ONES, [[0, 1, 2]], [0, 1, 2, 3]),
    "more indices than entries": csr(ONES, [0, 1, 2, 0], [0, 1, 2, 3]),
    "columns with an index too large": csr(ONES, [0, 1, 100], [0, 1, 2, 3], form="csc"),
    "columns with a pointer beyond the entries": csr(ONES, [0, 1, 2], [0, 2**20, 2, 3], form="csc"),
}


@pytest.mark.parametrize("matrix", MALFORMED.values(), ids=MALFORMED)
def test_malformed_matrices_are_refused(matrix):
    with pytest.raises(mm.ModelError, match="the transition matrix of action 'act' is malformed"):
        mm.POMDP(**parts(transition=(sparse.csr_array(STAY), matrix)))
    with pytest.raises(mm.ModelError, match="malformed"):
        mm.FactoredMDP({"level": range(3)}, ["go"], [matrix], 0.0, [1.0, 0.0, 0.0])


def test_a_malformed_observation_matrix_is_refused():
    wrong = csr(ONES, [0, 1, 100], [0, 1, 2, 3], (3, 2))
    with pytest.raises(mm.ModelError, match="the observation matrix of action 'wait' is malformed"):
        mm.POMDP(**parts(observation=(wrong,)))


def test_blocks_and_entries_with_wrong_indices_are_refused():
    blocks = sparse.bsr_array(STAY, blocksize=(1, 1))
    blocks.indptr = np.array([0, 2**40, 2, 3])
    entries = sparse.coo_array(STAY)
    entries.coords = (entries.coords[0], entries.coords[1] + 5)
    for wrong in (blocks, entries):
        with pytest.raises(mm.ModelError, match="malformed"):
            given_matrix("transition", wrong, (3, 3), "the matrix")


FORMS = {
    "dense": np.asarray,
    "lists": np.ndarray.tolist,
    **{
        form: lambda dense, form=form: sparse.csr_array(dense).asformat(form)
        for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    },
    "old matrices": sparse.csc_matrix,
    "float32": lambda dense: sparse.csr_array(dense.astype(np.float32)),
    "float128": lambda dense: dense.astype(np.longdouble),
    "twice": lambda dense: sparse.coo_array(
        (
            np.tile(dense.reshape(-1) / 2, 2),
            [np.tile(part, 2) for part in np.indices(dense.shape).reshape(2, -1)],
        ),
        shape=dense.shape,
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_matrices_of_every_form_make_the_same_model(form):
    plain = mm.POMDP(**parts())
    other = mm.POMDP(**parts(transition=[form(STAY), form(STAY[:, ::-1])], observation=[form(SEEN)]))
    for one, two in zip(
        (*plain.transition, *plain.observation), (*other.transition, *other.observation), strict=True
    ):
        assert two.format == "csr"
        assert two.data.dtype == np.float64
        assert one.indices.tolist() == two.indices.tolist()
        assert one.data.tolist() == two.data.tolist()


def test_one_array_holds_all_matrices():
    assert mm.POMDP(**parts(transition=np.stack([STAY, STAY]))).transition[1].shape == (3, 3)


def test_terminal_states_as_numbers_are_booleans():
    model = mm.POMDP(**parts(terminal=np.array([0, 0, 1])))
    assert model.terminal.dtype == np.bool_
    for one, two in zip(model.transition, mm.POMDP(**parts()).transition, strict=True):
        assert np.array_equal(one.toarray(), two.toarray())
        assert (one.data > 0.0).all()


def test_other_numbers_and_lists_become_arrays_of_floats():
    model = mm.POMDP(
        **parts(reward=[[1, 0], [2, 0], [0, 0]], initial=np.array([0, 1, 0]), terminal=[0, 0, 1])
    )
    assert model.reward.dtype == model.initial.dtype == np.float64
    wide = mm.POMDP(**parts(reward=parts()["reward"].astype(np.longdouble), discount=np.float32(0.5)))
    assert wide.reward.dtype == np.float64
    assert type(wide.discount) is float


WRONG = {
    "no states": {"states": ()},
    "states a number": {"states": 3},
    "states a string": {"states": "abc"},
    "no actions": {"actions": [], "transition": (), "reward": np.zeros((3, 0))},
    "transition one matrix": {"transition": STAY},
    "transition sparse": {"transition": sparse.csr_array(STAY)},
    "transition None": {"transition": None},
    "transition of words": {"transition": ("a", "b")},
    "transition complex": {"transition": (sparse.csr_array(STAY * 1j), sparse.csr_array(STAY))},
    "transition of objects": {"transition": (np.array([[object()] * 3] * 3), STAY)},
    "transition NaN": {"transition": (STAY * np.nan, STAY)},
    "transition negative": {"transition": (np.array([[2.0, -1.0, 0.0]] * 3), STAY)},
    "transition flat": {"transition": (np.ones(3), STAY)},
    "observation too wide": {"observation": (STAY,)},
    "observation too many": {"observation": (SEEN,) * 3},
    "reward infinite": {"reward": np.full((3, 2), np.inf)},
    "reward too large for a float": {"reward": np.full((3, 2), np.finfo(np.longdouble).max)},
    "reward of words": {"reward": np.array([["a", "b"]] * 3)},
    "reward flat": {"reward": np.zeros(3)},
    "initial a word": {"initial": "low"},
    "initial None": {"initial": None},
    "initial negative": {"initial": np.array([2.0, -1.0, 0.0])},
    "terminal a number too large": {"terminal": np.array([0, 1, 2])},
    "terminal NaN": {"terminal": np.array([0.0, np.nan, 1.0])},
    "terminal too short": {"terminal": np.array([True])},
    "discount one": {"discount": 1.0},
    "discount a word": {"discount": "0.9"},
    "observe_initial a number": {"observe_initial": 1},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_makes_no_pomdp_is_refused(change):
    with pytest.raises(mm.ModelError):
        mm.POMDP(**parts(**change))
