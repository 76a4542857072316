"""The rows of a table as numbers, batch by batch; cells that make no sense are named by file, row and episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.cells import Cells, cell, factorise, in_order, take
from missmdp.data.tables.encoding import ColumnEncoder, RewardColumn, StepColumn
from missmdp.data.tables.matching import UNKNOWN, USUAL, same_word
from missmdp.data.tables.parts import Part, reading
from missmdp.data.tables.structure import Names, how_to_number
from missmdp.errors import DataError, Message
from missmdp.model.space import MISSING, is_missing, plain

FAULTY = -1
"""The episode of a row that has none, where that is not an error at once."""


class Encoders(NamedTuple):
    """What to make of the columns of a table."""

    names: Names
    features: Mapping[str, ColumnEncoder]
    action: ColumnEncoder | None
    terminated: ColumnEncoder | None
    reward: RewardColumn | None = None

    def needed(self, part: Part) -> list[str]:
        """Return the columns of a part that are read."""
        columns = [self.names.episode, self.names.step, *self.features]
        if self.action is not None:
            columns.append(self.names.action)
        if self.reward is not None:
            columns.append(self.names.reward)
        if self.terminated is not None and self.names.terminated in part.columns:
            columns.append(self.names.terminated)
        return columns


class Batch(NamedTuple):
    """Some consecutive rows of a part."""

    part: int
    """The number of the part."""
    row: int
    """The part's row (from 0) that is first here."""
    episode: NDArray[np.int64]
    """The number of each row's episode, in order of first appearance, shape (B,)."""
    step: NDArray[np.int64]
    """The step of each row as the table has it, shape (B,)."""
    observations: NDArray[np.signedinteger[Any]]
    """Codes with `MISSING`, shape (B, n)."""
    actions: NDArray[np.signedinteger[Any]]
    """Codes, `MISSING` where there is no action, shape (B,); empty where actions are not read."""
    terminated: NDArray[np.int8]
    """1, 0 or `MISSING`, shape (B,)."""
    rewards: NDArray[np.float64]
    """Rewards, NaN where there is none, shape (B,); empty where they are not read."""


@dataclass
class Episodes:
    """Numbers for episodes, in order of first appearance.

    Ids are the same if they are written the same, whatever file they are in; unless `per_file`.
    """

    per_file: bool = False
    ids: list[Any] = field(default_factory=list[Any])
    """What the table calls each episode."""
    parts: list[int] = field(default_factory=list[int])
    """The part in which each episode appeared first."""
    _numbers: dict[Any, int] = field(default_factory=dict[Any, int])
    _are_words: bool = True
    _quick: dict[int | str, int] = field(default_factory=dict[int | str, int])
    """Ids of one part as they are, to save a closer look at each."""
    _quick_part: int = -1

    def number(self, value: Any, part: int, *, is_text: bool) -> int:
        """Return the number of an episode, `FAULTY` for a missing id."""
        if part != self._quick_part:
            self._quick, self._quick_part = {}, part
        # Where rows are shuffled, every batch has most of the episodes.
        is_quick = type(value) is int or type(value) is str
        if is_quick and (known := self._quick.get(value)) is not None:
            return known
        found = self._number(plain(value), part, is_text=is_text)
        if is_quick and found != FAULTY:
            self._quick[value] = found
        return found

    def _number(self, value: Any, part: int, *, is_text: bool) -> int:
        if is_missing(value) or USUAL.include(value, is_text=is_text):
            return FAULTY
        word = same_word(value)
        key = (part, word) if self.per_file else word
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.ids)
            self.ids.append(int(word) if isinstance(value, float) and value.is_integer() else value)
            self.parts.append(part)
            self._are_words &= is_text
        return found

    def keep(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget the episodes that are not among these numbers, and return the new numbers of the others."""
        used, renumbered = np.unique(numbers, return_inverse=True)
        self.ids = [self.ids[number] for number in used]
        self.parts = [self.parts[number] for number in used]
        self._numbers = {}
        return renumbered.reshape(-1).astype(np.int64)

    def names(self, parts: Sequence[Part]) -> tuple[Any, ...]:
        """Return the ids; words from CSV files are integers if all of them are written like integers."""
        ids = self.ids
        if self._are_words and all(map(_is_integer, ids)):
            ids = [int(word) for word in ids]
        if self.per_file and len(parts) > 1:
            ids = [f"{parts[part].shown}:{name}" for name, part in zip(ids, self.parts, strict=True)]
        return tuple(ids)


def _is_integer(word: str) -> bool:
    # Written back, it must be the same word: 01 and 1 are two episodes.
    return word.removeprefix("-").isdecimal() and word.isascii() and len(word) < 19 and str(int(word)) == word


class Fault(NamedTuple):
    """Cells of one column in one batch that make no sense."""

    column: str
    rows: NDArray[np.int64]
    """Rows of the batch."""
    cells: Cells
    """All cells of the column in the batch."""
    reason: Callable[[int], Message]
    """What is wrong with the cell in a row, and what would be right."""
    where: Callable[[int], str]
    """File, row and episode of a row."""

    def message(self, row: int) -> Message:
        """Return the sentence for an error."""
        return Message(f"{self.where(row)}: {self.column!r} ", self.reason(row))


def encoded_batches(
    parts: Sequence[Part],
    encoders: Encoders,
    episodes: Episodes,
    on_faults: Callable[[list[Fault]], None] | None = None,
) -> Iterator[Batch]:
    """Yield the rows of a table as numbers.

    Cells that make no sense raise a `DataError` for the first row that has one, or are handed to `on_faults`
    and count as missing, actions aside, which stay `UNKNOWN`; a row without an episode or a step then has the
    episode `FAULTY`.
    """
    for number, part in enumerate(parts):
        row = 0
        for cells in part.read(encoders.needed(part)):
            with reading(part.row(row)):
                batch, faults = _encode(cells, encoders, episodes, part, number, row)
            if faults:
                (on_faults or _raise_first)(faults)
                batch = _without_unknowns(batch)
            row += len(batch.step)
            if len(batch.step):
                yield batch


def _encode(
    cells: Mapping[str, Cells], encoders: Encoders, episodes: Episodes, part: Part, number: int, row: int
) -> tuple[Batch, list[Fault]]:
    names, is_text = encoders.names, part.is_text
    faults: list[Fault] = []

    def where(place: int) -> str:
        value = cell(cells[names.episode], place)
        known = not (is_missing(value) or USUAL.include(value, is_text=is_text))
        return part.row(row + place) + (f", episode {_tidy(value)!r}" if known else "")

    def encode(column: str, encoder: ColumnEncoder) -> NDArray[Any]:
        codes = encoder.encode(cells[column], is_text=is_text)
        if len(codes) and codes.min() == UNKNOWN:
            check(
                column,
                codes == UNKNOWN,
                lambda place: encoder.explain(cell(cells[column], place), cells[column]),
            )
        return codes

    def check(column: str, bad: NDArray[np.bool_], reason: Callable[[int], Message]) -> None:
        rows = np.flatnonzero(bad)
        if rows.size:
            faults.append(Fault(column, rows, cells[column], reason, where))

    episode = take(
        in_order(factorise(cells[names.episode])),
        lambda value: episodes.number(value, number, is_text=is_text),
        np.dtype(np.int64),
        FAULTY,
    )
    nameless = Message("is missing; every row must say which episode it is of")
    check(names.episode, episode == FAULTY, lambda _: nameless)
    step = encode(names.step, StepColumn(how_to_number(names.step, names.episode)))
    codes = [encode(name, encoder) for name, encoder in encoders.features.items()]
    actions = np.empty(0, np.int8) if encoders.action is None else encode(names.action, encoders.action)
    if encoders.terminated is not None and names.terminated in cells:
        terminated = encode(names.terminated, encoders.terminated)
    else:
        terminated = np.full(len(step), MISSING, dtype=np.int8)
    rewards = np.empty(0)
    if encoders.reward is not None:
        numbers, reward = cells[names.reward], encoders.reward
        rewards = reward.numbers(numbers, is_text=is_text)
        check(names.reward, np.isinf(rewards), lambda place: reward.explain(cell(numbers, place)))
    observations = np.empty((len(step), len(codes)), dtype=np.result_type(np.int8, *codes))
    for position, column in enumerate(codes):
        observations[:, position] = column
    return Batch(number, row, episode, step, observations, actions, terminated, rewards), faults


def _tidy(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _raise_first(faults: list[Fault]) -> None:
    first = min(faults, key=lambda fault: fault.rows[0])
    raise DataError(first.message(int(first.rows[0])))


def _without_unknowns(batch: Batch) -> Batch:
    def known(codes: NDArray[Any]) -> NDArray[Any]:
        return np.where(codes == UNKNOWN, MISSING, codes).astype(codes.dtype)

    return batch._replace(
        episode=np.where(batch.step == UNKNOWN, FAULTY, batch.episode),
        observations=known(batch.observations),
        terminated=known(batch.terminated),
        rewards=np.where(np.isinf(batch.rewards), np.nan, batch.rewards),
    )
