"""Policies in `.policyx` files, the XML of APPL.

A file lists α-vectors. For a flat model, as in a `.pomdp` file, they run over all states and `obsValue` is 0. For a
miss-MDP in a `.pomdpx` file they run over the values of the hidden variable, and `obsValue` is the value of the
fully observed one.

A policy's vectors are over components. Outside its component a vector gets a filler, which is below every value in
the file and not above min ρ/(1 − γ): it is a lower bound, and the vector never wins there. Terminal states get 0. A
comment gives the filler, from which a reader recognises the components again. Files without it, from other tools,
have vectors over everything, and each is cut to every component.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_instance
from missmdp.errors import FormatError, MissMDPError, ModelError
from missmdp.files import read_bytes, write_atomically
from missmdp.interop.outgoing import number_text
from missmdp.interop.pomdpx.factorise import factorise
from missmdp.interop.pomdpx.positioned_xml import Element, read_xml
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.value_function import ComponentVectors, state_components

_COMMENT = "outside its block a vector has the value"
_FILLER = re.compile(rf"<!-- {_COMMENT} (\S+) -->".encode())


def write_policyx(
    policy: AlphaVectorPolicy | MemoryPolicy, path: str | Path, *, factored: bool = False
) -> None:
    """Write a policy as a `.policyx` file.

    Numbers have up to 17 significant digits and read back as the same floats. A file has no names: states and
    actions are numbered as in the model. Nor has it the model; `policy.save` keeps both together.

    Parameters
    ----------
    policy
        The policy.
    path
        Where to write; an existing file is replaced at once, never in part.
    factored
        Whether the file is for the model as `write_pomdpx` writes it; by default for that of `write_pomdp`.
    """
    if isinstance(policy, MemoryPolicy):
        raise ModelError(
            "a .policyx file holds α-vectors, and this policy has a memory of nodes instead: write an .mmpolicy file"
        )
    checked_instance("policy", policy, AlphaVectorPolicy, "an AlphaVectorPolicy")
    layout = _layout(policy.model, factored=factored)
    filler = _filler(policy)
    name = (policy.model.name if isinstance(policy.model, MissMDP) else None) or "model"
    # XML has no way to write control characters.
    name = "".join(letter if letter.isprintable() else " " for letter in name)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<Policy version="0.1" type="value" model={quoteattr(name)}>',
        f"<!-- {_COMMENT} {number_text(filler)} -->",
        f'<AlphaVector vectorLength="{layout.length}" numObsValue="{layout.n_observed}" '
        f'numVectors="{sum(1 for _ in _written(policy, layout, filler))}">',
    ]
    for x, action, values in _written(policy, layout, filler):
        numbers = " ".join(map(number_text, values.tolist()))
        lines.append(f'<Vector action="{action}" obsValue="{x}">{numbers}</Vector>')
    lines += ["</AlphaVector>", "</Policy>", ""]
    write_atomically(path, "\n".join(lines).encode())


def read_policyx(
    path: str | Path, model: MissMDP | POMDP, *, observe_initial: bool | None = None
) -> AlphaVectorPolicy:
    """Return the policy in a `.policyx` file, for the model that it was made for.

    Parameters
    ----------
    path
        The file: from `write_policyx`, or from another solver that was given the model as a `.pomdp` file or,
        for a miss-MDP, as the `.pomdpx` file that `write_pomdpx` writes.
    model
        The model, with states and actions in the order of the file's.
    observe_initial
        Whether an observation comes before the first action; by default as the model says. Solvers that read
        files act first.

    Raises
    ------
    FormatError
        If the file is damaged or does not fit the model; the message has the line and column.
    """
    root = read_xml(path)
    pomdp = model.to_pomdp() if isinstance(model, MissMDP) else model
    if root.tag != "Policy" or root.attributes.get("type", "value") != "value":
        raise root.error('not a policy of vectors: expected <Policy type="value">')
    head = root.one("AlphaVector")
    layout = _layout_of(head, model, pomdp)
    vectors = [_vector(element, layout, pomdp) for element in head.all("Vector", "SparseVector")]
    announced = _integer(head, "numVectors", len(vectors))
    if announced != len(vectors):
        raise head.error(
            f"numVectors is {announced}, but there are {len(vectors)} vectors; is the file cut off?"
        )
    filler = _FILLER.search(read_bytes(path))
    try:
        components = (
            _cut_to_components(vectors, pomdp)
            if filler is None
            else _components_by_filler(vectors, float(filler[1]))
        )
        return AlphaVectorPolicy(model, components, observe_initial=observe_initial)
    except (MissMDPError, ValueError) as error:
        raise head.error(f"the vectors do not fit the model ({error})") from error


class _Layout(NamedTuple):
    """Where a state is in a file: at position hidden[s] of the vectors whose obsValue is observed[s]."""

    observed: NDArray[np.int64]
    hidden: NDArray[np.int64]
    n_observed: int
    length: int


class _Vector(NamedTuple):
    action: int
    states: NDArray[np.int64]
    """The states that it has a value for, terminal ones aside."""
    values: NDArray[np.float64]


def _layout(model: MissMDP | POMDP, *, factored: bool) -> _Layout:
    n = model.n_states
    if not factored:
        return _Layout(np.zeros(n, dtype=np.int64), np.arange(n), 1, n)
    parts = factorise(model)
    x, y = (
        np.zeros(n, dtype=np.int64) if part is None else part.of_state
        for part in (parts.observed, parts.hidden)
    )
    return _Layout(x, y, int(x.max()) + 1, int(y.max()) + 1)


def _layout_of(head: Element, model: MissMDP | POMDP, pomdp: POMDP) -> _Layout:
    """Return the layout that a file has, by what it says of its vectors."""
    layouts = [_layout(model, factored=False), _layout(model, factored=True)]
    said = (_integer(head, "numObsValue", 1), _integer(head, "vectorLength", pomdp.n_states))
    for layout in layouts:
        if said == (layout.n_observed, layout.length):
            return layout
    expected = " or ".join(
        f"{layout.length} and {layout.n_observed}"
        for layout in (layouts if isinstance(model, MissMDP) else layouts[:1])
    )
    raise head.error(
        f"vectorLength and numObsValue are {said[1]} and {said[0]}; for this model they are {expected}"
    )


def _written(
    policy: AlphaVectorPolicy, layout: _Layout, filler: float
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield obsValue, action and numbers of each vector of a file.

    Where a component has states of several observed values, which happens with components coarser than need be, a
    vector is written once for each of them.
    """
    for component in policy.components:
        for x in np.unique(layout.observed[component.states]).tolist():
            own = layout.observed[component.states] == x
            numbers = np.full(layout.length, filler)
            numbers[layout.hidden[policy.pomdp.terminal & (layout.observed == x)]] = 0.0
            for values, action in zip(component.values, component.actions.tolist(), strict=True):
                numbers[layout.hidden[component.states[own]]] = values[own]
                yield x, action, numbers


def _filler(policy: AlphaVectorPolicy) -> float:
    """Return a lower bound of all values that is no vector's value."""
    # Where an episode can end, no reward at all may be the worst.
    reward = np.where(policy.pomdp.terminal[:, None], 0.0, policy.pomdp.reward)
    worst = float(reward.min()) / (1.0 - policy.pomdp.discount)
    lowest = min((float(component.values.min()) for component in policy.components), default=math.inf)
    return worst if worst < lowest else math.nextafter(lowest, -math.inf)


def _components_by_filler(vectors: list[_Vector], filler: float) -> list[ComponentVectors]:
    """Return the vectors by component, which is where they differ from the filler."""
    return _grouped(
        _Vector(vector.action, vector.states[inside], vector.values[inside])
        for vector in vectors
        for inside in [vector.values != filler]
    )


def _grouped(vectors: Iterable[_Vector]) -> list[ComponentVectors]:
    """Return vectors over the same states together, in the order in which states come."""
    groups: dict[bytes, list[_Vector]] = {}
    for vector in vectors:
        groups.setdefault(vector.states.tobytes(), []).append(vector)
    return [
        ComponentVectors(
            own[0].states,
            np.array([vector.values for vector in own]),
            np.array([vector.action for vector in own], dtype=np.int64),
        )
        for own in groups.values()
    ]


def _cut_to_components(vectors: list[_Vector], pomdp: POMDP) -> list[ComponentVectors]:
    """Return the vectors, each cut to every component that it has values for."""
    group_of = np.full(pomdp.n_states, -1)
    groups = _grouped(vectors)
    for number, group in enumerate(groups):
        group_of[group.states] = number
    components: list[ComponentVectors] = []
    for states in state_components(pomdp):
        if group_of[states[0]] < 0:
            raise FormatError(f"no vector is for the state {pomdp.states[int(states[0])]!r}")
        group = groups[group_of[states[0]]]
        place = np.searchsorted(group.states, states)
        components.append(ComponentVectors(states, group.values[:, place], group.actions))
    return components


def _vector(element: Element, layout: _Layout, pomdp: POMDP) -> _Vector:
    action = _integer(element, "action", None)
    if not 0 <= action < pomdp.n_actions:
        raise element.error(f"action {action}; the model has {pomdp.n_actions} actions, counted from 0")
    x = _integer(element, "obsValue", 0)
    if not 0 <= x < layout.n_observed:
        raise element.error(f"obsValue is {x}; there are {layout.n_observed}, counted from 0")
    numbers = _sparse(element, layout) if element.tag == "SparseVector" else _dense(element, layout)
    states = np.flatnonzero((layout.observed == x) & ~pomdp.terminal)
    return _Vector(action, states, numbers[layout.hidden[states]])


def _dense(element: Element, layout: _Layout) -> NDArray[np.float64]:
    words = element.words
    if len(words) != layout.length:
        raise element.error(f"a vector of {len(words)} numbers; expected {layout.length}")
    return np.array([element.number(word) for word in words])


def _sparse(element: Element, layout: _Layout) -> NDArray[np.float64]:
    numbers = np.zeros(layout.length)
    for entry in element.all("Entry"):
        words = entry.words
        if len(words) != 2 or not words[0].isdecimal():
            raise entry.error(f"an entry is a position and a value, not {' '.join(words)!r}")
        if len(words[0]) > 9 or int(words[0]) >= layout.length:
            raise entry.error(f"position {words[0]}; there are {layout.length}, counted from 0")
        numbers[int(words[0])] = entry.number(words[1])
    return numbers


def _integer(element: Element, name: str, default: int | None) -> int:
    if default is not None and name not in element.attributes:
        return default
    text = element.attribute(name)
    try:
        return int(text)
    except ValueError:
        raise element.error(f"{name} is {text!r}, not an integer") from None
