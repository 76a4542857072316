"""The lines of a `.pomdpx` file: values of variables, tables and their entries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.interop.outgoing import WrittenNames, number_text

Row = tuple[tuple[str, ...], NDArray[np.integer], NDArray[np.float64]]
"""The values of the parents, the possible values of the child, and their probabilities."""


def value_lines(names: WrittenNames) -> Iterator[str]:
    """Yield the values of a variable, with what new names stand for."""
    if names.counted:
        yield f"<NumValues>{len(names)}</NumValues>"
        return
    yield f"<ValueEnum>{' '.join(names.names)}</ValueEnum>"
    for comment in names.comments():
        # Two hyphens end a comment, and not every character may be in XML.
        text = "".join(c if c.isprintable() else "?" for c in comment).replace("--", "- -")
        yield f"<!-- {text} -->"


def table_lines(
    child: str, parents: Sequence[str], names: WrittenNames, rows: Iterable[Row], sizes: Sequence[int]
) -> Iterator[str]:
    """Yield a <CondProb>; combinations of parents that have no row get a harmless one."""
    listed = list(rows)
    incomplete = len(listed) < math.prod(sizes)
    yield "<CondProb>"
    yield f"<Var>{child}</Var>"
    yield f"<Parent>{' '.join(parents) or 'null'}</Parent>"
    yield '<Parameter type="TBL">'
    if incomplete:
        yield entry((*("*" for _ in parents), names[0]), "1.0")
    for words, possible, probabilities in listed:
        yield from _row_entries(words, possible.tolist(), probabilities.tolist(), names, covers=incomplete)
    yield "</Parameter>"
    yield "</CondProb>"


def _row_entries(
    words: tuple[str, ...],
    possible: list[int],
    probabilities: list[float],
    names: WrittenNames,
    *,
    covers: bool,
) -> Iterator[str]:
    """Yield a row as one entry with all its numbers, or as one entry per number that is not zero if that is shorter."""
    cells = dict(zip(possible, probabilities, strict=True))
    if covers:
        # The harmless row has a one here, which must be overwritten.
        cells.setdefault(0, 0.0)
    single = [entry((*words, names[c]), number_text(p)) for c, p in cells.items()]
    if 2 * len(names) <= sum(map(len, single)):
        numbers = ["0"] * len(names)
        for column, probability in cells.items():
            numbers[column] = number_text(probability) if probability else "0"
        whole = entry((*words, "-"), " ".join(numbers))
        single = [whole] if len(whole) <= sum(map(len, single)) else single
    yield from single


def entry(words: Sequence[str], numbers: str, tag: str = "ProbTable") -> str:
    """Return one entry of a table."""
    return f"<Entry><Instance>{' '.join(words)}</Instance><{tag}>{numbers}</{tag}></Entry>"
