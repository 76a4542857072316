"""What the writers of both model formats share: which models they take, and names and numbers for other tools.

Formats and their readers are picky: a name starts with a letter and has no spaces, a number has a decimal point
before its exponent. Labels that are no names get one, and the file says in a comment what they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from missmdp.errors import ModelError, ParameterError
from missmdp.interop.incoming import MAX_CELLS
from missmdp.memory import memory_text
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


_LONGEST = 60


_LINES = 10_000
_BYTES_PER_CELL = 70
"""What a probability takes in a file, with the names of the states and the action."""


MISSING_NAME = "missing"


ACTS_FIRST = (
    "The model makes an observation before its first action. This file acts first: it starts from the initial "
    "distribution without that observation, so values are those of acting without it."
)
"""The note in files of models that observe first."""


def outgoing_pomdp(model: POMDP | MissMDP) -> POMDP:
    """Return the POMDP to be written.

    Raises
    ------
    ParameterError
        If it is not a model.
    ModelError
        If the file would be larger than what anybody reads.
    """
    if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = "a MissMDP or a POMDP"
        raise ParameterError("model", model, what, f"expected {what}, got {type(model).__name__}")
    if isinstance(model, MissMDP):
        _check_cells(model.mdp.n_entries)  # before anything is multiplied out
        model = model.to_pomdp()
    _check_cells(sum(matrix.nnz for matrix in (*model.transition, *model.observation)))
    return model


def _check_cells(cells: int) -> None:
    if cells > MAX_CELLS:
        raise ModelError(
            f"the file would hold {cells:,} probabilities (about {memory_text(_BYTES_PER_CELL * cells)}), and what is "
            f"read has at most {MAX_CELLS:,}; save the model as an .mmdp file instead"
        )


def pieces(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, some thousand at a time."""
    rest = iter(lines)
    while some := list(islice(rest, _LINES)):
        yield "".join(f"{line}\n" for line in some).encode()


def is_name(word: object) -> bool:
    """Return whether a label can stand in a file as it is."""
    return type(word) is str and _NAME.fullmatch(word) is not None


def plain_words(label: object) -> str:
    """Return a label as words with underscores: parts of a tuple in order, None as `missing`."""
    if isinstance(label, tuple):
        return "_".join(plain_words(part) for part in cast("tuple[Any, ...]", label))
    return MISSING_NAME if label is None else _OTHER.sub("_", str(label)).strip("_") or "_"


class WrittenNames:
    """One name per label, all different.

    Parameters
    ----------
    labels
        The labels. Where they are 0, 1, 2, … in order, the file only gives their number.
    letter
        What names start with where a label does not start with a letter, and how numbers are referred to.
    reserved
        Words that mean something else in the file.
    numbers_as_words
        Whether the labels 0, 1, … are referred to as s0, s1, … rather than as 0, 1, ….
    """

    def __init__(
        self,
        labels: Sequence[Any],
        letter: str,
        reserved: Collection[str] = (),
        *,
        numbers_as_words: bool = False,
    ) -> None:
        listed = list(labels)
        self.names: list[str] = []
        self.renamed: list[tuple[str, Any]] = []
        self.counted = all(type(label) is int for label in listed) and listed == list(range(len(listed)))
        if self.counted:
            prefix = letter if numbers_as_words else ""
            self.names = [f"{prefix}{i}" for i in range(len(listed))]
            return
        fit = {label for label in listed if is_name(label) and label not in reserved}
        taken = fit | set(reserved)
        for label in listed:
            if is_name(label) and label in fit:
                fit.discard(label)
                self.names.append(label)
                continue
            name = _free_name(label, letter, taken)
            taken.add(name)
            self.names.append(name)
            self.renamed.append((name, label))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> str:
        return self.names[index]

    def comments(self) -> Iterator[str]:
        """Yield what each new name stands for, as text on one line."""
        for name, label in self.renamed:
            yield f"{name} = {label!r}".replace("\n", " ").replace("\r", " ")


def _free_name(label: object, letter: str, taken: Collection[str]) -> str:
    base = plain_words(label)[:_LONGEST]
    if not base[0].isalpha():
        base = letter + base
    name, suffix = base, 2
    while name in taken:
        name, suffix = f"{base}_{suffix}", suffix + 1
    return name


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same float, with a decimal point.

    At most 17 significant digits; no exponent where it can be avoided, since some readers know none.
    """
    text = repr(float(value))
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    if -30 <= int(exponent) < 0:
        sign = "-" if mantissa.startswith("-") else ""
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{sign}0.{'0' * (-int(exponent) - 1)}{digits}"
    return text if "." in mantissa else f"{mantissa}.0e{exponent}"
