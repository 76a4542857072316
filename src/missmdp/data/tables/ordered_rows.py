"""The rows of a trajectory table as numbers, in order of episode and step.

Sources become parts (`sources`), cells become codes (`encoding`, `rows`), rows are sorted and checked
(`structure`). Here this is put together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_flag
from missmdp.data.binning import Binning, bin_notes, checked_bins
from missmdp.data.tables.content import TableOptions
from missmdp.data.tables.encoding import (
    BinnedColumn,
    ColumnEncoder,
    DiscoveredColumn,
    RewardColumn,
    TruthColumn,
    ValueColumn,
)
from missmdp.data.tables.matching import USUAL, MissingWords
from missmdp.data.tables.parts import Part
from missmdp.data.tables.rows import FAULTY, Batch, Encoders, Episodes, Fault, encoded_batches
from missmdp.data.tables.sources import open_source
from missmdp.data.tables.structure import (
    Names,
    Place,
    Sorting,
    broken_episodes,
    check_columns,
    check_named,
    explain_episode,
    extra_columns,
    first_step,
    sort_rows,
)
from missmdp.errors import DataError, Message
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_progress

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenTable:
    """A source with its columns understood, not read yet."""

    parts: list[Part]
    encoders: Encoders
    bins: dict[str, Binning]
    per_file: bool
    notes: tuple[str, ...]
    missing: MissingWords = USUAL


@dataclass(frozen=True)
class TableRows:
    """All rows of a table as numbers, in order of episode and step."""

    table: OpenTable
    episodes: Episodes
    sorting: Sorting
    starts: NDArray[np.int64]
    """Where batches start among the rows as they were read."""
    origins: list[tuple[int, int]]
    """Part and row of the first row of each batch."""
    step: NDArray[np.int64]
    observations: NDArray[np.signedinteger[Any]]
    actions: NDArray[np.signedinteger[Any]]
    terminated: NDArray[np.int8]
    rewards: NDArray[np.float64]
    """Empty where rewards are not read."""
    kept: NDArray[np.int64] | None = None
    """The rows as they were read that are among these, where some were left out."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where episodes start, shape (E + 1,)."""
        return self.sorting.offsets

    def place(self, row: int) -> Place:
        """Return where a row is from."""
        source = self.sorting.source(row)
        if self.kept is not None:
            source = int(self.kept[source])
        batch = int(np.searchsorted(self.starts, source, side="right")) - 1
        part, first = self.origins[batch]
        return Place(self.table.parts[part].name, first + source - int(self.starts[batch]) + 1)

    def where(self, row: int) -> str:
        """Return file, row, episode and step of a row, for sentences."""
        episode = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"{self.place(row)}, episode {self.episodes.ids[episode]!r}, step {self.step[row]}"

    def explain(self, episode: int) -> Message:
        """Return what is wrong with a broken episode."""
        start, stop = int(self.offsets[episode]), int(self.offsets[episode + 1])
        return explain_episode(
            self.step[start:stop],
            self.actions[start:stop],
            self.episodes.ids[episode],
            first_step(self.step, self.offsets),
            lambda row: self.place(start + row),
            self.table.encoders.names,
        )


def column_names(options: TableOptions) -> Names:
    """Return what the columns are called that are not features."""
    return Names(
        options.get("episode", Names.episode),
        options.get("step", Names.step),
        options.get("action", Names.action),
        Names.reward if (reward := options.get("reward")) is None else reward,
        terminated=options.get("terminated", Names.terminated),
    )


def open_table(source: Any, mdp: FactoredMDP, options: TableOptions) -> OpenTable:
    """Return a source whose columns fit an MDP."""
    features = checked_mdp(mdp).space.features
    words = MissingWords(options.get("missing", ()))
    ends = column_names(options).terminated not in features.names
    return open_features(
        source,
        features,
        options,
        ValueColumn(mdp.actions, missing=words),
        TruthColumn(words) if ends else None,
        reward_column(options),
    )


def reward_column(options: TableOptions) -> RewardColumn | None:
    """Return what reads rewards, or None if they are not asked for."""
    asked = options.get("reward") is not None
    return RewardColumn(MissingWords(options.get("missing", ()))) if asked else None


def open_features(
    source: Any,
    features: FeatureSpace,
    options: TableOptions,
    action: ColumnEncoder | None = None,
    terminated: ColumnEncoder | None = None,
    reward: RewardColumn | None = None,
) -> OpenTable:
    """Return a source whose columns fit some features; actions and so on are read if there are encoders for them."""
    names = column_names(options).checked(features.names, reward=reward is not None)
    binned = checked_bins(options.get("bins"), {name: len(v) for name, v in features.as_dict().items()})
    words = MissingWords(options.get("missing", ()))
    columns: dict[str, ColumnEncoder] = {
        name: BinnedColumn(binned[name], words) if name in binned else ValueColumn(values, name, words)
        for name, values in features.as_dict().items()
    }
    roles = [names.episode, names.step, names.action, names.terminated]
    parts = open_source(source, [*roles, *features.names])
    notes = bin_notes(binned, features.as_dict())
    table = understood(
        parts,
        Encoders(names, columns, action, terminated, reward),
        binned,
        per_file=options.get("per_file", False),
        notes=notes,
    )
    return replace(table, missing=words)


def read_rows(
    table: OpenTable,
    *,
    progress: bool | None = None,
    on_faults: Callable[[list[Fault]], None] | None = None,
) -> TableRows:
    """Return all rows of a table as numbers, in order; whether they make histories is not checked yet."""
    episodes = Episodes(table.per_file)
    known = [part.n_rows for part in table.parts]
    total = sum(n for n in known if n is not None) if None not in known else None
    batches: list[Batch] = []
    with show_progress("Reading", total, enabled=progress) as advance:
        for batch in encoded_batches(table.parts, table.encoders, episodes, on_faults):
            batches.append(batch)
            advance(len(batch.step))
    if not batches:
        raise DataError(f"{all_parts(table.parts)}: the table has no rows")
    lengths = [len(batch.step) for batch in batches]
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
    origins = [(batch.part, batch.row) for batch in batches]
    episode, step, observations, actions, terminated, rewards = (
        np.concatenate([batch[column] for batch in batches]) for column in range(2, 8)
    )
    del batches
    kept = None
    if on_faults is not None and (episode == FAULTY).any():
        kept = np.flatnonzero(episode != FAULTY)
        episode, step, observations, terminated = (
            column[kept] for column in (episode, step, observations, terminated)
        )
        actions = actions[kept] if len(actions) else actions
        rewards = rewards[kept] if len(rewards) else rewards
        # Episodes of which no row is left are none.
        episode = episodes.keep(episode)
    sorting = sort_rows(episode, step, len(episodes.ids))
    return TableRows(
        table,
        episodes,
        sorting,
        starts,
        origins,
        sorting.apply(step),
        sorting.apply(observations),
        sorting.apply(actions) if len(actions) else actions,
        sorting.apply(terminated),
        sorting.apply(rewards) if len(rewards) else rewards,
        kept,
    )


def raise_if_broken(rows: TableRows) -> None:
    """Raise `DataError` for the first episode that is no history."""
    broken = broken_episodes(rows.step, rows.actions, rows.offsets)
    if broken.size:
        raise DataError(rows.explain(int(broken[0])))


def understood(
    parts: list[Part],
    encoders: Encoders,
    binned: dict[str, Binning],
    *,
    per_file: bool,
    notes: Iterable[str] = (),
) -> OpenTable:
    """Return parts with all the columns that are needed, and notes, also on those that are not."""
    names = encoders.names
    roles = {names.episode: "episode", names.step: "step", names.action: "action"}
    if encoders.reward is not None:
        roles[names.reward] = "reward"
    # Without a model all other columns are features, even one that is meant to be something else.
    fixed = [name for name, column in encoders.features.items() if not isinstance(column, DiscoveredColumn)]
    for part in parts:
        check_columns(part, encoders.needed(part), roles, [*fixed, names.reward, names.terminated])
    check_named(parts, names, fixed)
    used = [*roles, *encoders.features, names.reward, names.terminated]
    extra = extra_columns(parts, used)
    notes = list(notes)
    if extra:
        some = ", ".join(map(repr, extra[:20])) + (", …" if len(extra) > 20 else "")
        notes.append(f"{len(extra)} {'columns are' if len(extra) > 1 else 'column is'} ignored: {some}")
    for note in notes:
        _log.info(note)
    return OpenTable(parts, encoders, binned, checked_flag("per_file", per_file), tuple(notes))


def all_parts(parts: Iterable[Part]) -> str:
    """Return the names of all parts, for sentences."""
    names = [part.shown for part in parts]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
