"""Logs of actions and incomplete observations: flat arrays and the offsets of episodes in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer, checked_shape
from missmdp.data.tables.content import TableOptions, known_options
from missmdp.errors import DataError, ParameterError
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.probabilities import as_flags, as_integers
from missmdp.model.space import MISSING, NO_ACTION
from missmdp.pages.notebook import notebook_table
from missmdp.words import count, percent

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from missmdp.data.binning import Binning

Behaviour = Literal["blind", "adaptive"]
"""Whether the policy that made a log never reacts to observations, or may."""

Step = tuple[Any, Any]
"""An observation and the action that followed it, or None."""


def action_dtype(n_actions: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the smallest signed integer type that holds every action's code and `NO_ACTION`."""
    return np.dtype(np.int8 if n_actions <= 127 else np.int16 if n_actions <= 32767 else np.int32)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Histories z⁽⁰⁾ a⁽⁰⁾ z⁽¹⁾ a⁽¹⁾ …, one after the other.

    Parameters
    ----------
    mdp
        The MDP whose features and actions the codes stand for.
    observations
        Codes with `MISSING`, shape (N, n).
    actions
        Codes, −1 at the last observation of an episode, shape (N,).
    offsets
        Episode e is rows offsets[e] .. offsets[e + 1], shape (E + 1,).
    terminated
        Whether an episode ended in a terminal state (rather than being cut), shape (E,).
    states
        The true states (indices), if a simulation kept them, shape (N,).
    seed
        The seed of the simulation, if there was one.
    behaviour
        Whether the log comes from a policy that does not react to observations ("blind") or may ("adaptive"); None
        if nobody knows. Bounds depend on it.
    episode_ids
        The names of the episodes in the table from which the data came; None for 0, 1, 2, …
    bins
        How measurements were binned, per feature, if they were.
    notes
        Sentences about how a table was read: which value each bin became, and what was left out.
    """

    mdp: FactoredMDP
    observations: NDArray[np.integer[Any]]
    actions: NDArray[np.integer[Any]]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    states: NDArray[np.int32] | None = None
    seed: int | None = None
    behaviour: Behaviour | None = None
    episode_ids: tuple[Any, ...] | None = None
    bins: Mapping[str, Binning] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked_mdp(self.mdp)
        for name in ("observations", "actions", "offsets", "states"):
            if name != "states" or self.states is not None:
                object.__setattr__(self, name, as_integers(getattr(self, name), name))
        object.__setattr__(self, "terminated", as_flags(self.terminated, "terminated"))
        n_steps, n_features = (
            self.observations.shape[0] if self.observations.ndim else 0,
            len(self.mdp.features),
        )
        checked_shape("observations", self.observations, (n_steps, n_features), "(steps, features)")
        checked_shape("actions", self.actions, (n_steps,), "(steps,)")
        if self.states is not None:
            checked_shape("states", self.states, (n_steps,), "(steps,)")
        checked_shape("terminated", self.terminated, (self.terminated.size,), "(episodes,)")
        self._check_offsets(n_steps)
        if self.episode_ids is not None and len(self.episode_ids) != len(self.terminated):
            problem = f"there must be one entry for each of the {len(self.terminated)} episodes"
            raise ParameterError("episode_ids", self.episode_ids, "one per episode", problem)
        self._check_codes()
        for array in (self.observations, self.actions, self.offsets, self.terminated, self.states):
            if array is not None:
                array.setflags(write=False)

    def _check_offsets(self, n_steps: int) -> None:
        offsets = self.offsets
        if (
            offsets.shape != (len(self.terminated) + 1,)
            or offsets[0] != 0
            or offsets[-1] != n_steps
            or (offsets[1:] <= offsets[:-1]).any()
        ):
            problem = "they must rise from 0 to the number of observations, one step per episode at least"
            raise ParameterError("offsets", offsets, "rising", problem)

    def _check_codes(self) -> None:
        features = self.mdp.space.features
        for name, column, size in zip(features.names, self.observations.T, features.sizes, strict=True):
            if column.size and (column.min() < MISSING or column.max() >= size):
                expected = f"codes from 0 to {size - 1}, or {MISSING} for missing"
                problem = f"the codes of feature {name!r} must be 0 to {size - 1}, or {MISSING} for missing"
                raise ParameterError("observations", column, expected, problem)
        if self.actions.size and (self.actions.min() < NO_ACTION or self.actions.max() >= self.mdp.n_actions):
            expected = f"codes from 0 to {self.mdp.n_actions - 1}, or {NO_ACTION} for none"
            wrong = (self.actions < NO_ACTION) | (self.actions >= self.mdp.n_actions)
            raise ParameterError("actions", int(self.actions[wrong][0]), expected)
        if self.states is not None and self.states.size:
            low, high = self.states.min(), self.states.max()
            if low < 0 or high >= self.mdp.n_states:
                wrong = int(low if low < 0 else high)
                raise ParameterError("states", wrong, f"indices from 0 to {self.mdp.n_states - 1}")

    def __len__(self) -> int:
        return self.n_steps

    def __repr__(self) -> str:
        return (
            f"Dataset({self.n_steps:,} observations in {self.n_episodes:,} episodes of "
            f"{', '.join(self.mdp.space.features.names)})"
        )

    def _repr_html_(self) -> str:
        """Return how often features are missing as a table, for notebooks."""
        title = f"Dataset: {count(self.n_steps, 'observation')} in {count(self.n_episodes, 'episode')}"
        rows = [[name, percent(rate, 1)] for name, rate in self.missing_rates().items()]
        return notebook_table(title, ["feature", "missing"], rows)

    @property
    def n_steps(self) -> int:
        """The number of observations."""
        return len(self.observations)

    @property
    def n_episodes(self) -> int:
        """The number of episodes."""
        return len(self.terminated)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Observations per episode, shape (E,)."""
        return np.diff(self.offsets)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """The paper's r: which features each observation shows, shape (N, n)."""
        return self.observations != MISSING

    @property
    def rewards(self) -> NDArray[np.float64]:
        """ρ(s, a) of each step, 0 where no action was taken, shape (N,); needs the true states."""
        if self.states is None:
            raise DataError("rewards depend on the true states, which this dataset has not kept")
        taken = self.actions != NO_ACTION
        return np.where(taken, self.mdp.reward[self.states, np.where(taken, self.actions, 0)], 0.0)

    @classmethod
    def from_table(
        cls,
        source: Any,
        mdp: FactoredMDP,
        *,
        progress: bool | None = None,
        **options: Unpack[TableOptions],
    ) -> Dataset:
        """Return the dataset in a trajectory table: one row per step, one column per feature, null for missing.

        Rows may come in any order. Steps count 0, 1, 2, … in each episode (or 1, 2, 3, … in all of them), and the
        action is null in the last row of an episode; an action there is dropped, since its result is not known. In
        CSV files an empty cell is missing, and so are NA, N/A, #N/A, <NA>, NaN, NaT, null and None (upper or lower
        case), unless they are values.

        Parameters
        ----------
        source
            A CSV or Parquet file, a folder of them, a glob, a list of paths; a pandas, polars or pyarrow frame or
            anything else that supports Arrow; an ibis table; or a mapping from column to list of values.
        mdp
            The MDP whose features and actions the table has.
        episode, step, action, terminated
            The names of these columns. `terminated` may be absent: then an episode counts as ended in a terminal
            state if only terminal states fit its last observation.
        bins
            Feature → `Binning` for columns that hold measurements; the k-th bin is the feature's k-th value, as
            `notes` say in words.
        missing
            Words that mean missing in columns of features and actions, such as ["-", "unknown"], in addition to the
            usual ones; case does not matter.
        per_file
            Whether each file numbers its own episodes; otherwise the same id in two files is one episode.
        progress
            Whether to show progress; by default on a terminal.

        Raises
        ------
        DataError
            If anything is wrong; the message names file, row, episode, column and value.
        """
        from missmdp.data.tables.read import dataset_from_table

        parts = dataset_from_table(source, mdp, known_options(options), progress=progress)
        return cls(mdp, **parts._asdict())

    def to_arrow(self) -> pa.Table:
        """Return a trajectory table: episode, step, the features, action, reward (with true states), terminated."""
        from missmdp.data.tables.write import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas frame with nullable columns, so integers stay integers."""
        from missmdp.data.tables.write import to_pandas

        return to_pandas(self)

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars frame."""
        from missmdp.data.tables.write import to_polars

        return to_polars(self)

    def to_csv(self, path: str | Path) -> None:
        """Write the table as CSV, missing values as empty cells.

        The name ends in .csv, or .tsv for tabs between cells, and in .gz after that to be compressed.
        """
        from missmdp.data.tables.write import to_csv

        to_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet (.parquet or .pq), which also keeps the seed, the behaviour and the bins."""
        from missmdp.data.tables.write import to_parquet

        to_parquet(self, path)

    def missing_rates(self) -> dict[str, float]:
        """Return feature → share of observations in which it is missing."""
        columns = zip(self.mdp.space.features.names, self.observations.T, strict=True)
        return {name: float(np.count_nonzero(column == MISSING)) / self.n_steps for name, column in columns}

    def always_observed(self) -> tuple[str, ...]:
        """Return Î_always: the features that are never missing in these data."""
        return tuple(name for name, rate in self.missing_rates().items() if rate == 0.0)

    def episode(self, index: int) -> list[Step]:
        """Return one episode as (observation, action) pairs; the last action is None."""
        n = self.n_episodes
        index = range(n)[checked_integer("index", index, least=-n, most=n - 1)]
        return list(self._steps(int(self.offsets[index]), int(self.offsets[index + 1])))

    def episodes(self) -> Iterator[list[Step]]:
        """Yield every episode."""
        return (self.episode(index) for index in range(self.n_episodes))

    def _steps(self, start: int, stop: int) -> Iterator[Step]:
        decode = self.mdp.space.features.decode_observation
        for codes, action in zip(self.observations[start:stop], self.actions[start:stop], strict=True):
            yield decode(codes), None if action == NO_ACTION else self.mdp.actions[action]
