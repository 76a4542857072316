"""Write `.pomdp` files, the format of Cassandra's pomdp-solve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from missmdp._version import __version__
from missmdp.errors import ParameterError
from missmdp.files import write_atomically
from missmdp.interop.outgoing import ACTS_FIRST, WrittenNames, number_text, outgoing_pomdp, pieces
from missmdp.interop.pomdp.header import RESERVED
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.words import label

_WITH_START = (
    "The model makes an observation before its first action. Here the first action does nothing but lead from the "
    "state `{name}` to the initial distribution, with reward 0, so this observation comes after it. "
    "Values at the start of the file are therefore the model's times the discount."
)


def write_pomdp(model: POMDP | MissMDP, path: str | Path, *, observe_initial: bool | None = None) -> None:
    """Write a model as a `.pomdp` file that other solvers read.

    Numbers have up to 17 significant digits, and read back as the same floats; only those that are not
    zero are written. Rewards are written as ρ(s, a). Labels that the grammar does not allow get a name, and a
    comment says what it stands for.

    Parameters
    ----------
    model
        A miss-MDP or a POMDP.
    path
        Where to write; an existing file is replaced at once, never in part.
    observe_initial
        What becomes of an observation before the first action, which the format does not know. By default, and
        with False, the file acts first, from the initial distribution, and says so in its header. With True it
        has one more state, in which every action leads to the initial distribution: the first observation then
        comes in time for the first action that matters, and values are the model's times the discount.
    """
    pomdp = outgoing_pomdp(model)
    if observe_initial:
        if not pomdp.observe_initial:
            problem = "this model makes no observation before the first action"
            raise ParameterError("observe_initial", observe_initial, "False", problem)
        if len(pomdp.observation) > 1:
            problem = "the observations of this model depend on the action"
            raise ParameterError("observe_initial", observe_initial, "False", problem)
    title = (model.name or "") if isinstance(model, MissMDP) else ""
    write_atomically(path, pieces(_lines(pomdp, title, extra_start=bool(observe_initial))))


def _lines(pomdp: POMDP, title: str, *, extra_start: bool) -> Iterator[str]:
    states = WrittenNames(pomdp.states, "s", RESERVED)
    start = ""
    if extra_start:
        # A list of names even where states are numbers, since the new one has no number.
        states = WrittenNames([*(str(name) for name in _worded(states)), "before"], "s", RESERVED)
        start = states[len(states) - 1]
    actions, observations = (
        WrittenNames(pomdp.actions, "a", RESERVED),
        WrittenNames(pomdp.observations, "o", RESERVED),
    )
    yield f"# {label(title.strip()) or 'A POMDP'}, written by missmdp {__version__}"
    if pomdp.observe_initial:
        yield f"# {_WITH_START.format(name=start) if extra_start else ACTS_FIRST}"
    yield f"discount: {number_text(pomdp.discount)}"
    yield "values: reward"
    for kind, names in (("states", states), ("actions", actions), ("observations", observations)):
        yield f"{kind}: {len(names) if names.counted else ' '.join(names.names)}"
    for names in (states, actions, observations):
        yield from (f"# {comment}" for comment in names.comments())
    yield ""
    yield f"start: {start or _start(pomdp, states)}"
    yield ""
    for a, matrix in enumerate(pomdp.transition):
        yield from _entries(f"T: {actions[a]}", matrix, states, states)
    if extra_start:
        for s in np.flatnonzero(pomdp.initial).tolist():
            yield f"T: * : {start} : {states[s]} {number_text(float(pomdp.initial[s]))}"
    yield ""
    for a, matrix in enumerate(pomdp.observation):
        yield from _entries(
            f"O: {actions[a] if len(pomdp.observation) > 1 else '*'}", matrix, states, observations
        )
    if extra_start:
        yield f"O: * : {start} : {observations[0]} 1.0"
    yield ""
    for s, a in np.argwhere(pomdp.reward != 0.0).tolist():
        yield f"R: {actions[a]} : {states[s]} : * : * {number_text(float(pomdp.reward[s, a]))}"


def _worded(names: WrittenNames) -> list[str]:
    return [f"s{name}" for name in names.names] if names.counted else names.names


def _start(pomdp: POMDP, states: WrittenNames) -> str:
    certain = np.flatnonzero(pomdp.initial == 1.0)
    if certain.size == 1 and np.count_nonzero(pomdp.initial) == 1:
        return states[int(certain[0])]
    return " ".join(number_text(probability) for probability in pomdp.initial)


def _entries(head: str, matrix: sparse.csr_array, rows: WrittenNames, columns: WrittenNames) -> Iterator[str]:
    for row in range(matrix.shape[0]):
        start, stop = matrix.indptr[row], matrix.indptr[row + 1]
        before = f"{head} : {rows[row]} : "
        for column, value in zip(
            matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist(), strict=True
        ):
            yield f"{before}{columns[column]} {number_text(value)}"
