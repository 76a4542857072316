"""Conditional tables of a `.pomdpx` file: `TBL` entries with `*` and `-`, and decision diagrams (`DD`).

A path from the root to a leaf fixes some of the variables; the others have the same number for all their values,
which is what `*` says in a table. What no path covers is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.interop.incoming import Layers, as_index
from missmdp.interop.pomdpx.positioned_xml import Element
from missmdp.interop.pomdpx.variables import Codes, Variables
from missmdp.model.probabilities import SUM_TOLERANCE

ALL, EACH = -1, -2
"""In the place of a value: `*`, the same number for all values, and `-`, one number for each."""


_MAX_DEPTH = 200


_MAX_LEAVES = 2_000_000


_MAX_DEAD_ENDS = 100_000
"""Branches of a diagram that lead to no leaf; templates can make them grow without end."""


_MAX_NUMBERS = 30_000_000


Entry = tuple[Element, list[int], NDArray[np.float64]]


class Table:
    """P(child | parents), or a reward as a function of its parents, as sparse rows over combinations of parents.

    Attributes
    ----------
    child : str
        The variable that the table is about.
    parents : tuple of str
        What it depends on.
    """

    def __init__(self, element: Element, child: str, parents: Sequence[str], layers: Layers) -> None:
        self.element = element
        self.child = child
        self.parents = tuple(parents)
        self._sizes: list[int] = []
        self._layers = layers
        self._places: list[Element] = []

    @classmethod
    def of(
        cls, element: Element, child: str, parents: Sequence[str], variables: Variables, width: int
    ) -> Table:
        """Return an empty table with `width` columns."""
        sizes = [len(variables.slots[parent]) for parent in parents]
        try:
            table = cls(element, child, parents, Layers(math.prod(sizes), width))
        except ModelError as error:
            raise element.error(str(error)) from None
        table._sizes = sizes
        return table

    def write(self, place: Element, fields: Sequence[int], numbers: NDArray[np.float64]) -> None:
        """Write numbers for values of the parents and, last, of the child; numbers run over the `-` fields."""
        stamp = len(self._places)
        self._places.append(place)
        *given, child = fields
        try:
            if min(fields) >= 0:
                self._layers.write_cell(self._row(given), child, float(numbers[0]), stamp)
            elif min(given, default=0) >= 0:
                row = np.broadcast_to(numbers, self._layers.shape[1])
                self._layers.write_rows(np.array([self._row(given)]), row, stamp)
            else:
                self._write_many(given, child, numbers, stamp)
        except ModelError as error:
            raise place.error(str(error)) from None

    def _write_many(self, given: Sequence[int], child: int, numbers: NDArray[np.float64], stamp: int) -> None:
        """Write to all rows that fit fields with wildcards."""
        width = self._layers.shape[1]
        values = [np.arange(n) if f < 0 else as_index(f) for f, n in zip(given, self._sizes, strict=True)]
        rows = as_index(0)
        for own, size in zip(values, self._sizes, strict=True):
            rows = (rows[:, None] * size + own).reshape(-1)
        if child == EACH and EACH not in given:
            self._layers.write_rows(rows, numbers, stamp)
            return
        shape = [n if field == EACH else 1 for field, n in zip(given, self._sizes, strict=True)]
        full = (*(len(own) for own in values), 1 if child >= 0 else width)
        self._layers.make_room(math.prod(full))
        table = np.broadcast_to(numbers.reshape(*shape, width if child == EACH else 1), full).reshape(
            -1, full[-1]
        )
        if child >= 0:
            self._layers.write_cells(rows, np.full(len(rows), child), table[:, 0], stamp)
        else:
            self._layers.write_rows(rows, table, stamp)

    def _row(self, codes: Sequence[int]) -> int:
        row = 0
        for code, size in zip(codes, self._sizes, strict=True):
            row = row * size + code
        return row

    def close(self) -> None:
        """Settle what was written; afterwards the table can be used."""
        self._matrix = self._layers.resolve()
        self._totals = np.asarray(self._matrix.sum(axis=1)).reshape(-1)

    def expand(
        self, codes: Codes, weights: NDArray[np.float64]
    ) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.float64]]:
        """Return partial assignments extended by every possible value of the child, and their weights.

        Raises
        ------
        FormatError
            If a row that is needed does not sum to one.
        """
        rows = self._rows(codes, len(weights))
        self._check(rows, codes)
        matrix = self._matrix
        counts = np.diff(matrix.indptr)[rows]
        owner = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        entries = np.repeat(matrix.indptr[rows] - first, counts) + np.arange(len(owner))
        extended = {name: code[owner] for name, code in codes.items()}
        extended[self.child] = matrix.indices[entries].astype(np.int64)
        return extended, weights[owner] * matrix.data[entries]

    def look_up(self, codes: Codes, length: int) -> NDArray[np.float64]:
        """Return the numbers of a table with one column, zero where none is given."""
        dense = self._matrix.toarray()[:, 0]
        return dense[self._rows(codes, length)]

    def _rows(self, codes: Codes, length: int) -> NDArray[np.int64]:
        rows = np.zeros(length, dtype=np.int64)
        for parent, size in zip(self.parents, self._sizes, strict=True):
            rows = rows * size + codes[parent]
        return rows

    def _check(self, rows: NDArray[np.int64], codes: Codes) -> None:
        off = np.flatnonzero(np.abs(self._totals[rows] - 1.0) > SUM_TOLERANCE)
        if not off.size:
            return
        bad = int(off[0])
        row = int(rows[bad])
        given = ", ".join(f"{parent} = {codes[parent][bad]}" for parent in self.parents)
        stamp = int(self._layers.written[row])
        where = f"P({self.child}" + (f" | {given}, counted from 0)" if given else ")")
        if stamp < 0:
            raise self.element.error(f"{where}: no entry gives this row")
        raise self._places[stamp].error(f"{where}: the probabilities sum to {self._totals[row]:.10g}, not 1")


def read_table(
    element: Element, child: str, parents: Sequence[str], variables: Variables, *, reward: bool
) -> Table:
    """Return the table of a <CondProb> or a <Func>."""
    table = Table.of(element, child, parents, variables, 1 if reward else len(variables.slots[child]))
    names = [*parents] if reward else [*parents, child]
    parameter = element.one("Parameter")
    kind = parameter.attributes.get("type", "TBL").strip()
    if kind == "TBL":
        entries = _entries(parameter, names, variables, reward=reward)
    elif kind == "DD":
        entries = diagram_entries(parameter, names, variables, all_values=ALL)
    else:
        raise parameter.error(f'the type of a <Parameter> is "TBL" or "DD", not {kind!r}')
    for place, fields, numbers in entries:
        if not reward and ((numbers < 0.0) | (numbers > 1.0 + SUM_TOLERANCE)).any():
            bad = numbers[(numbers < 0.0) | (numbers > 1.0 + SUM_TOLERANCE)][0]
            raise place.error(f"a probability must be in [0, 1], not {bad:g}")
        table.write(place, [*fields, 0] if reward else fields, numbers)
    table.close()
    return table


def _entries(
    parameter: Element, names: Sequence[str], variables: Variables, *, reward: bool
) -> Iterator[tuple[Element, list[int], NDArray[np.float64]]]:
    """Yield place, fields and numbers of each <Entry>."""
    tag = "ValueTable" if reward else "ProbTable"
    sizes = [len(variables.slots[name]) for name in names]
    for entry in parameter.all("Entry"):
        instance, numbers = entry.one("Instance"), entry.one(tag)
        words = instance.words
        if len(words) != len(names):
            raise instance.error(f"expected {len(names)} values ({' '.join(names)}), found {len(words)}")
        fields = [_field(instance, word, name, variables) for word, name in zip(words, names, strict=True)]
        shape = [size for field, size in zip(fields, sizes, strict=True) if field == EACH]
        yield numbers, fields, _numbers(numbers, shape, fields, reward=reward)


def _field(instance: Element, word: str, name: str, variables: Variables) -> int:
    if word in ("*", "-"):
        return ALL if word == "*" else EACH
    index = variables.slots[name].find(word)
    if index is None:
        labels = variables.slots[name].labels
        known = ", ".join(str(label) for label in labels[:6]) + (", …" if len(labels) > 6 else "")
        raise instance.error(f"{word!r} is not a value of {name}: {known}")
    return index


def _numbers(element: Element, shape: list[int], fields: list[int], *, reward: bool) -> NDArray[np.float64]:
    words = element.words
    if words and words[0].lower() in ("identity", "uniform") and not reward:
        if len(words) > 1:
            raise element.error(f"{words[0]!r} must stand alone")
        if fields[-1] != EACH:
            raise element.error(f"{words[0]!r} needs `-` as the last word of the <Instance>")
        if math.prod(shape) > _MAX_NUMBERS:
            raise element.error(f"{words[0]!r} stands for {math.prod(shape):,} numbers, too many")
        if words[0].lower() == "uniform":
            return np.full(math.prod(shape), 1.0 / shape[-1])
        if len(shape) != 2 or shape[0] != shape[1]:
            raise element.error("'identity' needs `-` for one parent with as many values as the variable has")
        return np.eye(shape[0]).reshape(-1)
    count = math.prod(shape)
    if len(words) != count:
        raise element.error(f"expected {count:,} numbers, found {len(words):,}")
    return np.array([element.number(word) for word in words])


def diagram_entries(
    parameter: Element, names: Sequence[str], variables: Variables, *, all_values: int
) -> Iterator[Entry]:
    """Yield place, fields and number of every leaf; `names` are the parents and the variable itself."""
    templates: dict[str, Element] = {}
    for child in parameter.all("DAG", "SubDAGTemplate"):
        if child.tag == "SubDAGTemplate":
            templates[child.attribute("id")] = child
    return _Walk(names, variables, templates).leaves(parameter.one("DAG"), [all_values] * len(names))


class _Walk:
    def __init__(self, names: Sequence[str], variables: Variables, templates: dict[str, Element]) -> None:
        self.names = list(names)
        self.variables = variables
        self.templates = templates

    def leaves(self, root: Element, fields: list[int]) -> Iterator[Entry]:
        """Yield the leaves of a diagram, in the order of the file."""
        waiting, steps, found = [(root, fields, 0)], 0, 0
        while waiting:
            leaves, further = self._below(*waiting.pop())
            for leaf in leaves:
                found += 1
                if found > _MAX_LEAVES:
                    raise root.error(f"the diagram has more than {_MAX_LEAVES:,} leaves")
                yield leaf
            steps += 1
            if steps > _MAX_DEAD_ENDS + _MAX_DEPTH * found:
                raise root.error(f"the diagram has more than {_MAX_DEAD_ENDS:,} branches that lead nowhere")
            waiting += reversed(further)

    def _below(
        self, parent: Element, fields: list[int], depth: int
    ) -> tuple[Iterable[Entry], list[tuple[Element, list[int], int]]]:
        """Return the leaves right below a <DAG>, an <Edge> or a <SubDAGTemplate>, and where there are more."""
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
            return [self._leaf(element, fields, element.number(element.word()))], []
        if element.tag == "Node":
            position = self._position(element)
            edges = [(edge, self._value(edge, position)) for edge in element.all("Edge")]
            return [], [
                (edge, _with(fields, position, value), depth + 1)
                for edge, value in edges
                if fields[position] in (value, -1)
            ]
        if element.attribute("type") == "template":
            name = element.attribute("idref")
            if name not in self.templates:
                raise element.error(f"there is no <SubDAGTemplate id={name!r}>")
            return [], [(self.templates[name], fields, depth + 1)]
        return self._sub_diagram(element, fields), []

    def _sub_diagram(self, element: Element, fields: list[int]) -> Iterator[Entry]:
        kind = element.attribute("type")
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
