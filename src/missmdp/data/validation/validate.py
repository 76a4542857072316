"""Hold a log against a model: what is unknown, what is impossible, and what was never seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.support import FIRST, RESTART
from missmdp.data.binning import Binning
from missmdp.data.dataset import NO_ACTION, Dataset
from missmdp.data.validation.report import DataReport, Example, Finding, UnknownValue
from missmdp.data.validation.support import Distinct, distinct_observations, follow, possible_transitions
from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import MISSING

__all__ = ["validate"]

_EXAMPLES = 3


@dataclass(frozen=True)
class _Checked:
    """Rows of a log in order, as far as they make sense."""

    observations: NDArray[np.integer[Any]]
    actions: NDArray[np.integer[Any]]
    step: NDArray[np.int64]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    ids: tuple[Any, ...] | range
    unknown_values: tuple[UnknownValue, ...] = ()
    broken: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def validate(
    data: Any,
    mdp: FactoredMDP,
    *,
    episode: str = "episode",
    step: str = "step",
    action: str = "action",
    terminated: str = "terminated",
    bins: Mapping[str, Binning] | None = None,
    missing: Iterable[str] = (),
    per_file: bool = False,
    progress: bool | None = None,
) -> DataReport:
    """Return how a log fits a model: unknown values, impossible steps, and what was never seen.

    Every history is followed with the set of states that are still possible. Values that the model does not have
    are collected rather than refused, and count as missing in all other checks.

    Parameters
    ----------
    data
        A dataset, or whatever `Dataset.from_table` reads.
    mdp
        The model.
    episode, step, action, terminated, bins, missing, per_file
        For tables: as for `Dataset.from_table`.
    progress
        Whether to show progress; by default on a terminal.

    Raises
    ------
    DataError
        If a table cannot be read at all, or has not the columns that it needs.
    """
    mdp = checked_mdp(mdp)
    if isinstance(data, Dataset):
        rows = _of_dataset(data, mdp)
    else:
        from missmdp.data.tables.faulty_rows import checked_rows

        rows = _Checked(
            **checked_rows(
                data,
                mdp,
                progress=progress,
                episode=episode,
                step=step,
                action=action,
                terminated=terminated,
                bins=bins,
                missing=missing,
                per_file=per_file,
            )
        )
    return _report(rows, mdp, progress=progress)


def _of_dataset(data: Dataset, mdp: FactoredMDP) -> _Checked:
    if data.mdp.space.features != mdp.space.features or data.mdp.actions != mdp.actions:
        raise DataError("the dataset has other features, values or actions than the model")
    step = np.arange(data.n_steps) - np.repeat(data.offsets[:-1], data.lengths)
    ids = range(data.n_episodes) if data.episode_ids is None else data.episode_ids
    return _Checked(
        data.observations, data.actions, step, data.offsets, data.terminated, ids, remarks=data.notes
    )


def _report(rows: _Checked, mdp: FactoredMDP, *, progress: bool | None) -> DataReport:
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
        never_missing=tuple(n for n, count in zip(features.names, missing, strict=True) if count == 0),
        always_missing=tuple(
            n for n, count in zip(features.names, missing, strict=True) if count == len(rows.step)
        ),
        remarks=rows.remarks,
    )


def _told_apart(
    conflicts: NDArray[np.int64], rows: _Checked, distinct: Distinct, mdp: FactoredMDP
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


def _example(row: int, rows: _Checked, distinct: Distinct, mdp: FactoredMDP, *, with_before: bool) -> Example:
    decode = mdp.space.features.decode_observation
    episode = int(np.searchsorted(rows.offsets, row, side="right")) - 1
    place = (rows.ids[episode], int(rows.step[row]), decode(distinct.codes[distinct.of_row[row]]))
    if not with_before:
        return Example(*place)
    before = decode(distinct.codes[distinct.of_row[row - 1]])
    return Example(*place, before, mdp.actions[rows.actions[row - 1]])


def _unseen(distinct: Distinct, mdp: FactoredMDP) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the reachable states that no observation admits, and those that none shows in full."""
    space = mdp.space
    shown = distinct.codes != MISSING
    ranks = space.features.rank(distinct.codes)
    admitted = np.zeros(len(space), dtype=np.bool_)
    patterns, label = np.unique(shown, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        hidden = space.features.rank(np.where(pattern, space.codes, MISSING))
        admitted |= np.isin(hidden, ranks[label.reshape(-1) == number])
    in_full = np.isin(space.features.rank(space.codes), ranks[shown.all(axis=1)])
    state = space.state
    return (
        tuple(state(int(s)) for s in np.flatnonzero(mdp.reachable & ~admitted)),
        tuple(state(int(s)) for s in np.flatnonzero(mdp.reachable & ~in_full)),
    )
