"""Decision diagrams (`DD`) in `.pomdpx` files, as the entries of a table.

A path from the root to a leaf fixes some of the variables; the others have the same number for all their values,
which is what `*` says in a table. What no path covers is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.interop.pomdpx_variables import Variables
from missmdp.interop.positioned_xml import Element

__all__ = ["diagram_entries"]

_MAX_DEPTH = 200
_MAX_LEAVES = 2_000_000

Entry = tuple[Element, list[int], NDArray[np.float64]]


def diagram_entries(
    parameter: Element, names: Sequence[str], variables: Variables, *, all_values: int
) -> Iterator[Entry]:
    """Yield place, fields and number of every leaf; `names` are the parents and the variable itself."""
    templates: dict[str, Element] = {}
    for child in parameter.all("DAG", "SubDAGTemplate"):
        if child.tag == "SubDAGTemplate":
            templates[child.attribute("id")] = child
    walk = _Walk(names, variables, templates)
    for leaves, entry in enumerate(walk.below(parameter.one("DAG"), [all_values] * len(names), 0)):
        if leaves >= _MAX_LEAVES:
            raise parameter.error(f"the diagram has more than {_MAX_LEAVES:,} leaves")
        yield entry


class _Walk:
    def __init__(self, names: Sequence[str], variables: Variables, templates: dict[str, Element]) -> None:
        self.names = list(names)
        self.variables = variables
        self.templates = templates

    def below(self, parent: Element, fields: list[int], depth: int) -> Iterator[Entry]:
        """Yield the leaves below a <DAG>, an <Edge> or a <SubDAGTemplate>."""
        if depth > _MAX_DEPTH:
            raise parent.error(
                f"the diagram is more than {_MAX_DEPTH} deep; does a template refer to itself?"
            )
        found = list(parent.all("Node", "SubDAG", "Terminal"))
        if len(found) != 1:
            raise parent.error(
                f"<{parent.tag}> must hold one <Node>, <SubDAG> or <Terminal>, not {len(found)}"
            )
        element = found[0]
        if element.tag == "Terminal":
            yield self._leaf(element, fields, _number(element))
        elif element.tag == "Node":
            position = self._position(element)
            for edge in element.all("Edge"):
                value = self._value(edge, position)
                if fields[position] not in (value, -1):
                    continue
                yield from self.below(edge, [*fields[:position], value, *fields[position + 1 :]], depth + 1)
        else:
            yield from self._sub_diagram(element, fields, depth)

    def _sub_diagram(self, element: Element, fields: list[int], depth: int) -> Iterator[Entry]:
        kind = element.attribute("type")
        if kind == "template":
            name = element.attribute("idref")
            if name not in self.templates:
                raise element.error(f"there is no <SubDAGTemplate id={name!r}>")
            yield from self.below(self.templates[name], fields, depth + 1)
            return
        position = self._position(element)
        variable = self.variables.slots[self.names[position]]
        if kind == "deterministic":
            yield self._leaf(element, _with(fields, position, self._value(element, position)), 1.0)
        elif kind == "uniform":
            yield self._leaf(element, fields, 1.0 / len(variable))
        elif kind == "persistent":
            other = variable.previous if self.names[position] == variable.current else variable.current
            if other not in self.names:
                raise element.error(
                    f"{self.names[position]!r} persists, but {other!r} is not among the parents"
                )
            partner = self.names.index(other)
            values = range(len(variable)) if fields[partner] < 0 else (fields[partner],)
            for value in values:
                yield self._leaf(element, _with(_with(fields, position, value), partner, value), 1.0)
        else:
            raise element.error(
                f'a <SubDAG> has the type "deterministic", "persistent", "uniform" or "template", not {kind!r}'
            )

    def _leaf(self, element: Element, fields: list[int], number: float) -> Entry:
        return element, fields, np.array([number])

    def _position(self, element: Element) -> int:
        name = element.attribute("var")
        if name not in self.names:
            raise element.error(
                f"{name!r} is neither the variable nor one of its parents: {', '.join(self.names)}"
            )
        return self.names.index(name)

    def _value(self, element: Element, position: int) -> int:
        word, name = element.attribute("val"), self.names[position]
        index = self.variables.slots[name].find(word)
        if index is None:
            raise element.error(f"{word!r} is not a value of {name}")
        return index


def _with(fields: list[int], position: int, value: int) -> list[int]:
    return [*fields[:position], value, *fields[position + 1 :]]


def _number(element: Element) -> float:
    word = element.word()
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in word:
        raise element.error(f"expected a finite number, found {word!r}")
    return value
