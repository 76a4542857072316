"""Logs of actions and incomplete observations: flat arrays and the offsets of episodes in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_instance, checked_integer, checked_shape
from missmdp.data.tables.content import TableOptions, known_options
from missmdp.errors import DataError, ModelError, ParameterError
from missmdp.model.given import checked_actions
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.probabilities import as_flags, as_floats, as_integers
from missmdp.model.space import MISSING, NO_ACTION, FeatureSpace
from missmdp.pages.notebook import notebook_table
from missmdp.words import count, listed, percent

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
        The MDP whose features and actions the codes stand for; None for a log without a model, of which
        `feature_space` and `action_names` say what the codes stand for.
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
    feature_space
        The features and their values; by default those of the MDP.
    action_names
        The actions; by default those of the MDP.
    logged_rewards
        The reward of each step, if the log has rewards; NaN where there is none, as at the last observation of an
        episode, shape (N,).
    """

    mdp: FactoredMDP | None
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
    # None stands for the MDP's; once the log is made, they are always there.
    feature_space: FeatureSpace = None  # pyright: ignore[reportAssignmentType]
    action_names: tuple[Any, ...] = None  # pyright: ignore[reportAssignmentType]
    logged_rewards: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self._settle_names()
        for name in ("observations", "actions", "offsets", "states"):
            if name != "states" or self.states is not None:
                object.__setattr__(self, name, as_integers(getattr(self, name), name))
        object.__setattr__(self, "terminated", as_flags(self.terminated, "terminated"))
        n_steps, n_features = (
            self.observations.shape[0] if self.observations.ndim else 0,
            len(self.feature_space),
        )
        checked_shape("observations", self.observations, (n_steps, n_features), "(steps, features)")
        checked_shape("actions", self.actions, (n_steps,), "(steps,)")
        if self.states is not None:
            checked_shape("states", self.states, (n_steps,), "(steps,)")
        if self.logged_rewards is not None:
            object.__setattr__(self, "logged_rewards", _checked_rewards(self.logged_rewards, n_steps))
        checked_shape("terminated", self.terminated, (self.terminated.size,), "(episodes,)")
        self._check_offsets(n_steps)
        if self.episode_ids is not None and len(self.episode_ids) != len(self.terminated):
            problem = f"there must be one entry for each of the {len(self.terminated)} episodes"
            raise ParameterError("episode_ids", self.episode_ids, "one per episode", problem)
        self._check_codes()
        arrays = (self.observations, self.actions, self.offsets, self.terminated)
        for array in (*arrays, self.states, self.logged_rewards):
            if array is not None:
                array.setflags(write=False)

    def _settle_names(self) -> None:
        """Fill in features and actions from the MDP, or check that they are given where there is none."""
        features = cast("FeatureSpace | None", self.feature_space)
        actions = cast("tuple[Any, ...] | None", self.action_names)
        if features is not None:
            checked_instance("feature_space", features, FeatureSpace, "a FeatureSpace")
        if actions is not None:
            actions = checked_actions(actions)
        if self.mdp is None:
            if features is None or actions is None:
                problem = "a log needs an MDP, or else feature_space and action_names"
                raise ParameterError("mdp", None, "a FactoredMDP", problem)
            if self.states is not None:
                problem = "they are numbers of an MDP's states, so they need an MDP"
                raise ParameterError("states", self.states, "left out", problem)
        else:
            mdp = checked_mdp(self.mdp)
            if features is not None and features != mdp.space.features:
                problem = "they differ from the features and values of the MDP"
                raise ParameterError("feature_space", features, "the MDP's", problem)
            if actions is not None and actions != mdp.actions:
                problem = f"they differ from the actions of the MDP, {listed([*map(repr, mdp.actions)])}"
                raise ParameterError("action_names", actions, "the MDP's", problem)
            features, actions = mdp.space.features, mdp.actions
        object.__setattr__(self, "feature_space", features)
        object.__setattr__(self, "action_names", actions)

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
        features, n_actions = self.feature_space, len(self.action_names)
        for name, column, size in zip(features.names, self.observations.T, features.sizes, strict=True):
            if column.size and (column.min() < MISSING or column.max() >= size):
                expected = f"codes from 0 to {size - 1}, or {MISSING} for missing"
                problem = f"the codes of feature {name!r} must be 0 to {size - 1}, or {MISSING} for missing"
                raise ParameterError("observations", column, expected, problem)
        if self.actions.size and (self.actions.min() < NO_ACTION or self.actions.max() >= n_actions):
            expected = f"codes from 0 to {n_actions - 1}, or {NO_ACTION} for none"
            wrong = (self.actions < NO_ACTION) | (self.actions >= n_actions)
            raise ParameterError("actions", int(self.actions[wrong][0]), expected)
        if self.states is not None and self.states.size:
            n_states = self.known_mdp.n_states
            low, high = self.states.min(), self.states.max()
            if low < 0 or high >= n_states:
                wrong = int(low if low < 0 else high)
                raise ParameterError("states", wrong, f"indices from 0 to {n_states - 1}")

    def __len__(self) -> int:
        return self.n_steps

    def __repr__(self) -> str:
        return (
            f"Dataset({self.n_steps:,} observations in {self.n_episodes:,} episodes of "
            f"{', '.join(self.feature_space.names)})"
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
    def features(self) -> dict[str, tuple[Any, ...]]:
        """Name → values of the features."""
        return self.feature_space.as_dict()

    @property
    def known_mdp(self) -> FactoredMDP:
        """The MDP; raises `DataError` for a log without a model, saying how to get one."""
        if self.mdp is None:
            raise DataError(
                "this log has no model: give Dataset.from_table(…, mdp), log.with_mdp(mdp), or learn one with JointEM"
            )
        return self.mdp

    @property
    def rewards(self) -> NDArray[np.float64]:
        """The reward of each step, 0 where no action was taken, shape (N,).

        These are the logged rewards, if the log has them: NaN where an action has none. Otherwise they are ρ(s, a),
        which needs an MDP and the true states.
        """
        taken = self.actions != NO_ACTION
        if self.logged_rewards is not None:
            return np.where(taken, self.logged_rewards, 0.0)
        reward = self.known_mdp.reward
        if self.states is None:
            raise DataError(
                "rewards depend on the true states, which this dataset has not kept; if the log has a column of "
                "rewards, read it with Dataset.from_table(…, reward=…)"
            )
        return np.where(taken, reward[self.states, np.where(taken, self.actions, 0)], 0.0)

    @classmethod
    def from_table(
        cls,
        source: Any,
        mdp: FactoredMDP | None = None,
        *,
        features: Iterable[str] | Mapping[str, Iterable[Any] | None] | None = None,
        progress: bool | None = None,
        **options: Unpack[TableOptions],
    ) -> Dataset:
        """Return the dataset in a trajectory table: one row per step, one column per feature, null for missing.

        With an MDP, the columns are matched to its features and actions. Without one, features, values and actions
        are found in the table: every column without a role is a feature, and its values are those that occur, in
        order. What cannot be a feature is left out with a note (columns that are always missing, and ids), or is an
        error that says what to do (measurements without bins).

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
            The MDP whose features and actions the table has; None for a log without a model.
        features
            For a log without a model: the columns that are features, or a mapping from these columns to their values
            in order (None for the values that occur). By default all columns without a role.
        episode, step, action, terminated
            The names of these columns. `terminated` may be absent: then an episode counts as ended in a terminal
            state if only terminal states fit its last observation; without a model, no episode does.
        reward
            The name of the column of rewards; by default none is read. A column called "reward" is never taken for a
            feature unless `features` has it. A reward belongs to the action in its row, so one in the last row of an
            episode is dropped, with a note. With an MDP, the rewards of steps whose state was seen completely are
            compared with ρ(s, a).
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
        table = known_options(options)
        if mdp is None:
            from missmdp.data.tables.discovery import dataset_without_model

            return cls(None, **dataset_without_model(source, features, table, progress=progress)._asdict())
        from missmdp.data.tables.read import dataset_from_table

        if features is not None:
            raise ParameterError("features", features, "left out", "an MDP says itself which features it has")
        return cls(mdp, **dataset_from_table(source, mdp, table, progress=progress)._asdict())

    def with_mdp(self, mdp: FactoredMDP) -> Dataset:
        """Return this log in terms of an MDP: features, values and actions are matched by what they are called.

        Values match if they are equal or written alike, as in tables; bins without names match values in order.
        Features that the MDP does not have are left out, with a note. Rewards are kept as they are.

        Raises
        ------
        DataError
            If the log lacks a feature of the MDP, or the MDP a value or an action that occurs in the log.
        """
        from missmdp.data.translation import in_terms_of

        return in_terms_of(self, checked_mdp(mdp))

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
        columns = zip(self.feature_space.names, self.observations.T, strict=True)
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
        decode = self.feature_space.decode_observation
        for codes, action in zip(self.observations[start:stop], self.actions[start:stop], strict=True):
            yield decode(codes), None if action == NO_ACTION else self.action_names[action]


def check_terms(log: Dataset, mdp: FactoredMDP, what: str = "model") -> None:
    """Raise `DataError` unless a log has the features, values and actions of an MDP, all in the same order."""
    if log.feature_space != mdp.space.features or log.action_names != mdp.actions:
        advice = "; log.with_mdp(mdp) puts a log without a model in terms of one" if log.mdp is None else ""
        raise DataError(f"the dataset has other features, values or actions than the {what}{advice}")


def _checked_rewards(rewards: Any, n_steps: int) -> NDArray[np.float64]:
    try:
        given = as_floats(rewards, "logged_rewards")
    except ModelError as error:
        raise ParameterError("logged_rewards", rewards, "an array of numbers") from error
    found = checked_shape("logged_rewards", given, (n_steps,), "(steps,)")
    if np.isinf(found).any():
        raise ParameterError("logged_rewards", found, "finite, or NaN where there is none")
    return found
