"""Compare a log with a model: what is unknown, what is impossible, and what was never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.support import FIRST, RESTART
from missmdp.data.dataset import Dataset, check_terms
from missmdp.data.support import Distinct, distinct_observations, follow, possible_transitions, tell_all
from missmdp.data.tables.content import CheckedRows, TableOptions, UnknownValue, known_options
from missmdp.errors import Message
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import MISSING, NO_ACTION, Rows
from missmdp.words import count


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

    `ok` is True if nothing is unknown or impossible. `problems` are sentences about what is, and `notes` about what
    else is worth knowing. Printing the report shows both.
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
    never_visited: Sequence[Any]
    """Reachable states that no observation admits."""
    never_seen_in_full: Sequence[Any]
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
        lines: list[str] = [
            Message(unknown.first, f" ({count(unknown.count, 'row')} like this)" if unknown.count > 1 else "")
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
                lines.append(f"{what} {count(finding.count, some)}, for example {shown}")
        return tuple(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is worth knowing, in sentences."""
        lines = list(self.remarks)
        for states, what in [
            (self.never_visited, "certainly never visited: no observation admits them"),
            (self.never_seen_in_full, "never seen in full, with nothing missing"),
        ]:
            if states:
                lines.append(
                    f"{count(len(states), 'reachable state')} {what}, for example {_brief(states[0])}"
                )
        if self.never_missing:
            lines.append(f"never missing: {', '.join(self.never_missing)}")
        if self.always_missing:
            lines.append(f"always missing: {', '.join(self.always_missing)}")
        return tuple(lines)

    def describe(self) -> str:
        """Return the report as text."""
        head = f"{count(self.n_steps, 'observation')} in {count(self.n_episodes, 'episode')}: "
        problems = self.problems
        head += f"{count(len(problems), 'problem')}" if problems else "nothing unknown, nothing impossible"
        return Message.of_lines([head, *_items("Problems", problems), *_items("Notes", self.notes)])

    def __str__(self) -> str:
        return str(self.describe())


def _items(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(Message("  - ", line) for line in lines)] if lines else []


def _brief(row: Any) -> str:
    """Return a state or an observation without the name of its type."""
    text = repr(row)
    return text[text.index("(") :]


_EXAMPLES = 3
_MANY = 100_000
"""States above which they are not made as named tuples unless somebody looks at them."""

_BY_FEATURE = (
    "the model is large, so histories were followed feature by feature: a step that only several hidden features "
    "together make impossible is not noticed"
)


def validate(
    data: Any,
    mdp: FactoredMDP,
    *,
    progress: bool | None = None,
    **options: Unpack[TableOptions],
) -> DataReport:
    """Return how a log fits a model: unknown values, impossible steps, and what was never seen.

    Every history is followed with the set of states that are still possible. Values that the model does not know
    are collected rather than refused, and count as missing in all other checks.

    Parameters
    ----------
    data
        A dataset, or whatever `Dataset.from_table` reads.
    mdp
        The model.
    progress
        Whether to show progress; by default on a terminal.
    options
        For tables: how to read them, as for `Dataset.from_table`.

    Raises
    ------
    DataError
        If a table cannot be read at all, or lacks columns that it needs.
    """
    mdp, table = checked_mdp(mdp), known_options(options)
    if isinstance(data, Dataset):
        rows = _of_dataset(data, mdp)
    else:
        from missmdp.data.tables.read import checked_rows

        rows = checked_rows(data, mdp, table, progress=progress)
    return _report(rows, mdp, progress=progress)


def _of_dataset(dataset: Dataset, mdp: FactoredMDP) -> CheckedRows:
    check_terms(dataset, mdp)
    step = np.arange(dataset.n_steps) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    ids = range(dataset.n_episodes) if dataset.episode_ids is None else dataset.episode_ids
    return CheckedRows(
        dataset.observations,
        dataset.actions,
        step,
        dataset.offsets,
        dataset.terminated,
        ids,
        remarks=dataset.notes,
    )


def _report(rows: CheckedRows, mdp: FactoredMDP, *, progress: bool | None) -> DataReport:
    features = mdp.space.features
    distinct = distinct_observations(features, rows.observations)
    starts, last = rows.offsets[:-1], rows.offsets[1:] - 1
    # A row goes on from the one before if it is the next step and an action was taken.
    begins = np.full(len(rows.step), RESTART, dtype=np.int8)
    begins[1:][(rows.step[1:] == rows.step[:-1] + 1) & (rows.actions[:-1] != NO_ACTION)] = 0
    begins[starts] = np.where(rows.step[starts] == 0, FIRST, RESTART)
    verdicts = follow(mdp, distinct, rows.actions, begins, progress=progress)

    def examples(found: NDArray[np.int64], *, with_before: bool = False) -> tuple[Example, ...]:
        return tuple(_example(int(row), rows, distinct, mdp, with_before=with_before) for row in found)

    def finding(mask: NDArray[np.bool_]) -> Finding:
        found = np.flatnonzero(mask)
        _, first = np.unique(distinct.of_row[found], return_index=True)
        return Finding(len(found), examples(found[np.sort(first)[:_EXAMPLES]]))

    conflicts = np.flatnonzero(verdicts.conflict)
    steps, histories = _told_apart(conflicts, rows, distinct, mdp)
    claims = np.zeros(len(rows.step), dtype=np.bool_)
    claims[last] = rows.terminated
    never, partly = _unseen(distinct, mdp)
    missing = (rows.observations == MISSING).sum(axis=0)
    return DataReport(
        n_steps=len(rows.step),
        n_episodes=len(starts),
        unknown_values=rows.unknown_values,
        broken=rows.broken,
        impossible_observations=finding(verdicts.no_state),
        impossible_starts=finding(verdicts.no_start),
        impossible_transitions=Finding(len(steps[0]), examples(steps[1], with_before=True)),
        impossible_histories=Finding(len(histories[0]), examples(histories[1], with_before=True)),
        actions_after_end=finding(verdicts.ended & (rows.actions != NO_ACTION)),
        ends_without_terminal=finding(verdicts.going_on & claims),
        never_visited=never,
        never_seen_in_full=partly,
        never_missing=tuple(
            n for n, rows_missing in zip(features.names, missing, strict=True) if rows_missing == 0
        ),
        always_missing=tuple(
            n
            for n, rows_missing in zip(features.names, missing, strict=True)
            if rows_missing == len(rows.step)
        ),
        remarks=rows.remarks if tell_all(mdp, missing == 0) else (*rows.remarks, _BY_FEATURE),
    )


def _told_apart(
    conflicts: NDArray[np.int64], rows: CheckedRows, distinct: Distinct, mdp: FactoredMDP
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the conflicts that are in the last step alone and the others, each with the first few that differ."""
    before, action, after = (
        distinct.of_row[conflicts - 1],
        rows.actions[conflicts - 1],
        distinct.of_row[conflicts],
    )
    triples, first, label = np.unique(
        np.stack([before, action.astype(np.int64), after], axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    possible = possible_transitions(
        mdp, distinct.codes[triples[:, 0]], triples[:, 1], distinct.codes[triples[:, 2]]
    )

    def some(kind: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return (
            conflicts[possible[label.reshape(-1)] == kind],
            conflicts[np.sort(first[possible == kind])[:_EXAMPLES]],
        )

    return some(kind=False), some(kind=True)


def _example(
    row: int, rows: CheckedRows, distinct: Distinct, mdp: FactoredMDP, *, with_before: bool
) -> Example:
    decode = mdp.space.features.decode_observation
    episode = int(np.searchsorted(rows.offsets, row, side="right")) - 1
    place = (rows.ids[episode], int(rows.step[row]), decode(distinct.codes[distinct.of_row[row]]))
    if not with_before:
        return Example(*place)
    before = decode(distinct.codes[distinct.of_row[row - 1]])
    return Example(*place, before, mdp.actions[rows.actions[row - 1]])


def _unseen(distinct: Distinct, mdp: FactoredMDP) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the reachable states that no observation admits, and those that none shows in full."""
    space = mdp.space
    shown = distinct.codes != MISSING
    ranks = space.features.rank(distinct.codes)
    left = np.flatnonzero(mdp.reachable)
    patterns, label = np.unique(shown, axis=0, return_inverse=True)
    for number in np.argsort(patterns.sum(axis=1), kind="stable"):
        if not len(left):
            break
        hidden = space.features.rank(np.where(patterns[number], space.codes[left], MISSING))
        left = left[~np.isin(hidden, ranks[label.reshape(-1) == number])]
    in_full = np.isin(space.features.rank(space.codes), ranks[shown.all(axis=1)])
    return _states(mdp, left), _states(mdp, np.flatnonzero(mdp.reachable & ~in_full))


def _states(mdp: FactoredMDP, states: NDArray[np.int64]) -> Sequence[Any]:
    """Return states by their numbers; where they are many, they are made when asked for."""
    rows = Rows(mdp.space.codes[states], mdp.space.features.decode)
    return rows if len(rows) > _MANY else tuple(rows)
