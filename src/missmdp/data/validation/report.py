"""What there is to say about a log and a model: what cannot be, and what is good to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["DataReport", "Example", "Finding", "UnknownValue"]


@dataclass(frozen=True)
class UnknownValue:
    """A value that a column of a table cannot have."""

    column: str
    value: Any
    """None where the cell is empty but must not be."""
    count: int
    """In how many rows it occurs."""
    first: str
    """What is wrong with the first of these rows, and where it is."""


class Example(NamedTuple):
    """A place in a log."""

    episode: Any
    """What the table calls the episode."""
    step: int
    """Counted from 0."""
    observation: Any
    before: Any = None
    """The observation before it, where it matters."""
    action: Any = None
    """The action that led to it, where it matters."""

    def __str__(self) -> str:
        where = f"episode {self.episode!r}, step {self.step}"
        if self.before is None:
            return f"{where}: {_brief(self.observation)}"
        return f"{where}: {_brief(self.before)}, then {self.action!r}, then {_brief(self.observation)}"


@dataclass(frozen=True)
class Finding:
    """Something that occurs in a log."""

    count: int
    """In how many rows (or episodes) it occurs."""
    examples: tuple[Example, ...] = ()
    """The first few that differ."""


@dataclass(frozen=True)
class DataReport:
    """How a log fits a model.

    `ok` says that nothing is unknown or impossible; `problems` are sentences on what is, `notes` on what is good
    to know. Printing the report shows both.
    """

    n_steps: int
    n_episodes: int
    unknown_values: tuple[UnknownValue, ...]
    """Values that columns of the table cannot have; they count as missing in all else."""
    broken: tuple[str, ...]
    """Episodes that are no histories: steps that are absent or occur twice, actions that are missing."""
    impossible_observations: Finding
    """Observations that no state of the model admits."""
    impossible_starts: Finding
    """First observations that no initial state admits."""
    impossible_transitions: Finding
    """(z, a, z′) such that T(s′ | s, a) = 0 for all states s and s′ that admit z and z′."""
    impossible_histories: Finding
    """Observations that could follow the one before, but not the whole history."""
    actions_after_end: Finding
    """Actions taken where only terminal states are possible."""
    ends_without_terminal: Finding
    """Episodes that are said to have terminated where no terminal state is possible."""
    never_visited: tuple[Any, ...]
    """Reachable states that no observation admits."""
    never_seen_in_full: tuple[Any, ...]
    """Reachable states that were never observed without anything missing."""
    never_missing: tuple[str, ...]
    """Features that are in all observations."""
    always_missing: tuple[str, ...]
    """Features that are in none."""
    remarks: tuple[str, ...] = ()
    """What was noted when the table was read."""

    @property
    def ok(self) -> bool:
        """Whether nothing is unknown or impossible."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """What is unknown or impossible, in sentences."""
        lines = [
            f"{unknown.first}" + (f" ({_count(unknown.count, 'row')} like this)" if unknown.count > 1 else "")
            for unknown in self.unknown_values
        ]
        lines += self.broken
        for finding, what, some in [
            (self.impossible_observations, "no state of the model admits", "observation"),
            (self.impossible_starts, "no initial state admits", "first observation"),
            (self.impossible_transitions, "the model has no such transition for", "step"),
            (
                self.impossible_histories,
                "impossible after the whole history, though not after the last step:",
                "step",
            ),
            (self.actions_after_end, "an action after the end (all possible states are terminal):", "row"),
            (
                self.ends_without_terminal,
                "said to have terminated, but no terminal state is possible:",
                "episode",
            ),
        ]:
            if finding.count:
                shown = "; ".join(map(str, finding.examples))
                lines.append(f"{what} {_count(finding.count, some)}, for example {shown}")
        return tuple(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is good to know, in sentences."""
        lines = list(self.remarks)
        for states, what in [
            (self.never_visited, "certainly never visited: no observation admits them"),
            (self.never_seen_in_full, "never seen in full, with nothing missing"),
        ]:
            if states:
                lines.append(
                    f"{_count(len(states), 'reachable state')} {what}, for example {_brief(states[0])}"
                )
        if self.never_missing:
            lines.append(f"never missing: {', '.join(self.never_missing)}")
        if self.always_missing:
            lines.append(f"always missing: {', '.join(self.always_missing)}")
        return tuple(lines)

    def describe(self) -> str:
        """Return the report as text."""
        head = f"{_count(self.n_steps, 'observation')} in {_count(self.n_episodes, 'episode')}: "
        problems = self.problems
        head += f"{_count(len(problems), 'problem')}" if problems else "nothing unknown, nothing impossible"
        return "\n".join([head, *_items("Problems", problems), *_items("Notes", self.notes)])

    def __str__(self) -> str:
        return self.describe()


def _items(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  - {line}" for line in lines)] if lines else []


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _brief(row: Any) -> str:
    """Return a state or an observation without the name of its type."""
    text = repr(row)
    return text[text.index("(") :]
