"""What can be asked of a trajectory table, and what reading it gives, as plain arrays.

Nothing here needs the libraries that read tables, so whoever works with the results need not load them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from missmdp.model.space import FeatureSpace
from missmdp.words import did_you_mean

if TYPE_CHECKING:
    from missmdp.data.binning import Binning
    from missmdp.data.dataset import Behaviour


class TableOptions(TypedDict, total=False):
    """How to read a trajectory table; all are optional, and every function that reads tables takes them."""

    episode: str
    """The name of this column, "episode" by default."""
    step: str
    """The name of this column, "step" by default."""
    action: str
    """The name of this column, "action" by default."""
    terminated: str
    """The name of this column, "terminated" by default. It may be absent."""
    reward: str | None
    """The name of the column of rewards; None, the default, reads none."""
    bins: Mapping[str, Binning] | None
    """Feature → `Binning` for columns that hold measurements; the k-th bin is the feature's k-th value."""
    missing: Iterable[str]
    """Words that mean missing in columns of features and actions, besides the usual ones, in any case."""
    per_file: bool
    """Whether each file numbers its own episodes; otherwise the same id in two files is one episode."""


def known_options(options: Mapping[str, Any]) -> TableOptions:
    """Return options for tables; raise `TypeError` for an unknown one, as Python does for arguments."""
    known = TableOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}{did_you_mean(name, known)}")
    return TableOptions(**options)  # pyright: ignore[reportArgumentType]


class DatasetParts(NamedTuple):
    """What a table says of a `Dataset`, apart from its MDP; the names are those of the dataset."""

    observations: NDArray[np.integer[Any]]
    actions: NDArray[np.integer[Any]]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    seed: int | None
    behaviour: Behaviour | None
    episode_ids: tuple[Any, ...] | None
    bins: Mapping[str, Binning] | None
    notes: tuple[str, ...]
    logged_rewards: NDArray[np.float64] | None = None
    feature_space: FeatureSpace | None = None
    action_names: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class LogRows:
    """Rows of a trajectory table without a model, sorted by episode (in order of first appearance) and step."""

    features: FeatureSpace
    """The features with their values: a model's, or those that occur in the table."""
    observations: NDArray[np.integer[Any]]
    """Codes with `MISSING`, shape (N, n)."""
    episode: NDArray[np.int64]
    """The number of each row's episode, from 0 in order of first appearance, shape (N,)."""
    step: NDArray[np.int64]
    """The step of each row in its episode, from 0, shape (N,)."""
    episode_ids: tuple[Any, ...]
    """What the table calls each episode, shape (E,)."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader should know, such as which columns were left out."""


@dataclass(frozen=True)
class UnknownValue:
    """A value that a column of a table cannot have."""

    column: str
    value: Any
    """None where the cell is empty but must not be."""
    count: int
    """In how many rows it occurs."""
    first: str
    """What is wrong with the first of these rows, and where it is; a `Message`, since it may name an argument."""


@dataclass(frozen=True)
class CheckedRows:
    """Rows of a log in order, as far as they make sense, and what does not."""

    observations: NDArray[np.integer[Any]]
    actions: NDArray[np.integer[Any]]
    step: NDArray[np.int64]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    ids: tuple[Any, ...] | range
    unknown_values: tuple[UnknownValue, ...] = ()
    broken: tuple[str, ...] = ()
    """What is wrong with episodes that are no histories."""
    remarks: tuple[str, ...] = ()
