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


_MANY_ROWS = 50_000
"""Combinations of parents above which it is worth finding out which of them matter when."""


Entry = tuple[Element, list[int], NDArray[np.float64]]


class Layout:
    """Where the rows of a table are: one block for each value of one parent, over the parents that matter there.

    A sensor that is pointed at one of many things has them all among its parents; given where it is pointed, all but
    one do not matter, and combinations of the others need no rows.

    Parameters
    ----------
    sizes
        How many values each parent has.
    fields
        What the entries say of the parents, shape (entries, parents): values, `ALL` or `EACH`.
    """

    def __init__(self, sizes: Sequence[int], fields: NDArray[np.int64]) -> None:
        self.sizes = list(sizes)
        self.switch = -1
        matters = np.ones((1, len(sizes)), dtype=np.bool_)
        if math.prod(sizes) > _MANY_ROWS:
            for parent in range(len(sizes)):
                found = _what_matters(parent, sizes[parent], fields)
                if _rows_of(found, sizes) < _rows_of(matters, sizes):
                    self.switch, matters = parent, found
        self.matters = matters
        self.stride = np.zeros(matters.shape, dtype=np.int64)
        self.first = np.zeros(len(matters), dtype=np.int64)
        self.count = _rows_of(matters, sizes)
        if self.count >= 2**62:
            return  # refused by whoever makes room for the rows
        begin = 0
        for block, kept in enumerate(matters.tolist()):
            self.first[block], size = begin, 1
            for parent in reversed(range(len(sizes))):
                if kept[parent]:
                    self.stride[block, parent] = size
                    size *= sizes[parent]
            begin += size

    def rows(self, codes: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
        """Return the rows of combinations of values, given as one array per parent."""
        block = codes[self.switch] if self.switch >= 0 else np.zeros(length, dtype=np.int64)
        rows = self.first[block]
        for parent, code in enumerate(codes):
            if self.stride[:, parent].any():
                rows = rows + code * self.stride[block, parent]
        return rows

    def blocks(self, fields: Sequence[int]) -> Iterable[int]:
        """Return the blocks that an entry writes to."""
        if self.switch < 0:
            return (0,)
        value = fields[self.switch]
        return (value,) if value >= 0 else range(len(self.first))


def _what_matters(switch: int, size: int, fields: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which parents some entry tells apart, for each value of one of them."""
    told = fields != ALL
    told[:, switch] = False
    everywhere = fields[:, switch] < 0
    found = np.repeat(told[everywhere].any(axis=0)[None, :], size, axis=0)
    np.logical_or.at(found, fields[~everywhere, switch], told[~everywhere])
    return found


def _rows_of(matters: NDArray[np.bool_], sizes: Sequence[int]) -> int:
    return sum(
        math.prod(n for n, kept in zip(sizes, block, strict=True) if kept) for block in matters.tolist()
    )


class Table:
    """P(child | parents), or a reward as a function of its parents, as sparse rows over combinations of parents.

    Parameters
    ----------
    element
        Where it is in the file.
    child
        The variable that the table is about.
    parents
        What it depends on.
    sizes
        How many values each parent has.
    width
        How many columns the table has.
    entries
        What is written, in order: later entries cover earlier ones.
    """

    def __init__(
        self,
        element: Element,
        child: str,
        parents: Sequence[str],
        sizes: Sequence[int],
        width: int,
        entries: Sequence[Entry],
    ) -> None:
        self.element = element
        self.child = child
        self.parents = tuple(parents)
        fields = np.array([fields[:-1] for _, fields, _ in entries], dtype=np.int64)
        fields = fields.reshape(len(entries), len(sizes))
        # Parents with one value always count as told apart, or a variable with one value could not be shown.
        told = (fields != ALL).any(axis=0) | (np.array(sizes, dtype=np.int64) == 1)
        self.matters = tuple(p for p, is_told in zip(self.parents, told.tolist(), strict=True) if is_told)
        """The parents that entries tell apart; the values of the others make no difference."""
        self._layout = Layout(sizes, fields)
        try:
            self._layers = Layers(self._layout.count, width)
        except ModelError as error:
            raise element.error(str(error)) from None
        self._places = [place for place, _, _ in entries]
        for stamp, (place, given, numbers) in enumerate(entries):
            try:
                self._write(given, numbers, stamp)
            except ModelError as error:
                raise place.error(str(error)) from None
        self._matrix = self._layers.resolve()
        self._totals = np.asarray(self._matrix.sum(axis=1)).reshape(-1)

    def _write(self, fields: Sequence[int], numbers: NDArray[np.float64], stamp: int) -> None:
        """Write numbers for values of the parents and, last, of the child; numbers run over the `-` fields."""
        layout = self._layout
        *given, child = fields
        for block in layout.blocks(given):
            own = numbers
            if layout.switch >= 0 and given[layout.switch] == EACH:
                sizes = [n for field, n in zip(given, layout.sizes, strict=True) if field == EACH]
                axis = sum(field == EACH for field in given[: layout.switch])
                own = np.take(numbers.reshape(*sizes, -1), block, axis=axis).reshape(-1)
            kept = np.flatnonzero(layout.matters[block]).tolist()
            first = int(layout.first[block])
            inside, sizes = [given[p] for p in kept], [layout.sizes[p] for p in kept]
            if min([child, *inside]) >= 0:
                self._layers.write_cell(first + _row(inside, sizes), child, float(own[0]), stamp)
            elif min(inside, default=0) >= 0:
                row = np.broadcast_to(own, self._layers.shape[1])
                self._layers.write_rows(np.array([first + _row(inside, sizes)]), row, stamp)
            else:
                self._write_many(first, inside, sizes, child, own, stamp)

    def _write_many(
        self,
        first: int,
        given: Sequence[int],
        sizes: Sequence[int],
        child: int,
        numbers: NDArray[np.float64],
        stamp: int,
    ) -> None:
        """Write to all rows of a block that fit fields with wildcards."""
        width = self._layers.shape[1]
        values = [np.arange(n) if f < 0 else as_index(f) for f, n in zip(given, sizes, strict=True)]
        rows = as_index(0)
        for own, size in zip(values, sizes, strict=True):
            rows = (rows[:, None] * size + own).reshape(-1)
        rows = first + rows
        if child == EACH and EACH not in given:
            self._layers.write_rows(rows, numbers, stamp)
            return
        shape = [n if field == EACH else 1 for field, n in zip(given, sizes, strict=True)]
        full = (*(len(own) for own in values), 1 if child >= 0 else width)
        self._layers.make_room(math.prod(full))
        table = np.broadcast_to(numbers.reshape(*shape, width if child == EACH else 1), full).reshape(
            -1, full[-1]
        )
        if child >= 0:
            self._layers.write_cells(rows, np.full(len(rows), child), table[:, 0], stamp)
        else:
            self._layers.write_rows(rows, table, stamp)

    def expand(
        self, codes: Codes, weights: NDArray[np.float64], *, checked: bool = True
    ) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.float64]]:
        """Return partial assignments extended by every possible value of the child, and their weights.

        Raises
        ------
        FormatError
            If a row that is needed does not sum to one.
        """
        rows = self._rows(codes, len(weights))
        if checked:
            self._check(rows, codes)
        matrix = self._matrix
        counts = np.diff(matrix.indptr)[rows]
        if (counts == 1).all():
            entries = matrix.indptr[rows]
            return (
                {**codes, self.child: matrix.indices[entries].astype(np.int64)},
                weights * matrix.data[entries],
            )
        owner = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        entries = np.repeat(matrix.indptr[rows] - first, counts) + np.arange(len(owner))
        extended = {name: code[owner] for name, code in codes.items()}
        extended[self.child] = matrix.indices[entries].astype(np.int64)
        return extended, weights[owner] * matrix.data[entries]

    def count(self, codes: Codes, length: int) -> NDArray[np.int64]:
        """Return how many values of the child are possible, at least; parents without codes may be anything."""
        counts = np.diff(self._matrix.indptr).astype(np.int64)
        if all(parent in codes for parent in self.parents):
            return counts[self._rows(codes, length)]
        return np.full(length, counts[counts > 0].min(initial=self._matrix.shape[1]))

    @property
    def mean_support(self) -> float:
        """How many values of the child are possible, on average over the rows that are given."""
        counts = np.diff(self._matrix.indptr)
        return float(counts[counts > 0].mean()) if counts.any() else 1.0

    def dense(self, codes: Codes, length: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the rows of some assignments, shape (length, values), and which of them do not sum to one.

        Parents that do not matter need no codes.
        """
        nothing = np.zeros(length, dtype=np.int64)
        rows = self._layout.rows([codes.get(parent, nothing) for parent in self.parents], length)
        wrong = np.abs(self._totals[rows] - 1.0) > SUM_TOLERANCE
        return self._matrix[rows].toarray(), wrong

    def check(self, codes: Codes, length: int) -> None:
        """Raise `FormatError` if the row of some assignment does not sum to one."""
        nothing = np.zeros(length, dtype=np.int64)
        full = {parent: codes.get(parent, nothing) for parent in self.parents}
        self._check(self._rows(full, length), full)

    def look_up(self, codes: Codes, length: int) -> NDArray[np.float64]:
        """Return the numbers of a table with one column, zero where none is given."""
        dense = self._matrix.toarray()[:, 0]
        return dense[self._rows(codes, length)]

    def _rows(self, codes: Codes, length: int) -> NDArray[np.int64]:
        return self._layout.rows([codes[parent] for parent in self.parents], length)

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
    names = [*parents] if reward else [*parents, child]
    parameter = element.one("Parameter")
    kind = parameter.attributes.get("type", "TBL").strip()
    if kind == "TBL":
        entries = _entries(parameter, names, variables, reward=reward)
    elif kind == "DD":
        entries = diagram_entries(parameter, names, variables, all_values=ALL)
    else:
        raise parameter.error(f'the type of a <Parameter> is "TBL" or "DD", not {kind!r}')
    found: list[Entry] = []
    for place, fields, numbers in entries:
        if not reward and ((numbers < 0.0) | (numbers > 1.0 + SUM_TOLERANCE)).any():
            bad = numbers[(numbers < 0.0) | (numbers > 1.0 + SUM_TOLERANCE)][0]
            raise place.error(f"a probability must be in [0, 1], not {bad:g}")
        found.append((place, [*fields, 0] if reward else fields, numbers))
    sizes = [len(variables.slots[parent]) for parent in parents]
    return Table(element, child, parents, sizes, 1 if reward else len(variables.slots[child]), found)


def expanded(
    tables: Sequence[Table], codes: Codes, weights: NDArray[np.float64]
) -> tuple[Codes, NDArray[np.float64]]:
    """Return partial assignments extended by the children of all tables, and their weights."""
    for table in tables:
        codes, weights = table.expand(codes, weights)
    return codes, weights


def counted(tables: Sequence[Table], codes: Codes) -> NDArray[np.float64]:
    """Return how many extensions each assignment has, at least."""
    length = len(codes["."])
    counts = np.ones(length)
    for table in tables:
        counts *= table.count(codes, length)
    return counts


def _row(codes: Sequence[int], sizes: Sequence[int]) -> int:
    row = 0
    for code, size in zip(codes, sizes, strict=True):
        row = row * size + code
    return row


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
