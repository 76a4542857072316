"""How often each observation occurs in a log: all that AMCAR, AsMAR and AIMI need to know of it.

The counts #_D(z) of the paper, one per distinct observation. They add up over parts of a log, and they are
small: a log of a billion rows with four features has at most a few thousand distinct observations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.counting import count_ranks
from missmdp.checks import checked_instance, checked_shape
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.data.tables.content import TableOptions, known_options
from missmdp.errors import DataError, ParameterError
from missmdp.model.archive import (
    CODES,
    INTEGERS,
    Array,
    Schema,
    encode_features,
    named_damage,
    read_archive,
    write_archive,
)
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.probabilities import as_integers
from missmdp.model.space import MISSING, FeatureSpace, Rows

_MOST_STEPS = 10**18
"""Observations that can be counted; integers end at ten times as many."""
_MAX_DENSE = 50_000_000
"""Ranks up to which counting uses one counter for each (400 MB at most)."""


@dataclass(frozen=True, eq=False)
class ObservationCounts:
    """The number of occurrences #_D(z) of every observation z in a log.

    Parameters
    ----------
    mdp
        The MDP whose features the codes stand for.
    codes
        The distinct observations in order of rank, with `MISSING`, shape (D, n).
    counts
        How often each occurs, shape (D,).
    behaviour
        Whether the log comes from a policy that does not react to observations ("blind") or may ("adaptive"); None
        if nobody knows.

    Examples
    --------
    >>> import missmdp as mm
    >>> model = mm.load_benchmark("icu-smar")
    >>> one, other = (mm.ObservationCounts.from_dataset(mm.collect(model, 500, seed=s)) for s in (0, 1))
    >>> (one + other).n_steps
    1000
    """

    mdp: FactoredMDP
    codes: NDArray[np.signedinteger[Any]]
    counts: NDArray[np.int64]
    behaviour: Behaviour | None = None

    def __post_init__(self) -> None:
        features = checked_mdp(self.mdp).space.features
        for name in ("codes", "counts"):
            object.__setattr__(self, name, as_integers(getattr(self, name), name))
        checked_shape("counts", self.counts, (self.counts.size,), "(observations,)")
        checked_shape("codes", self.codes, (self.counts.size, len(features)), "(observations, features)")
        if (self.codes < MISSING).any() or (self.codes >= features.sizes).any():
            problem = "they must be codes of the features' values or MISSING"
            raise ParameterError("codes", self.codes, "codes", problem)
        if (self.counts < 1).any():
            raise ParameterError("counts", int(self.counts.min()), "positive")
        if self.counts.sum(dtype=np.float64) >= _MOST_STEPS:
            raise ParameterError("counts", int(self.counts.max()), f"fewer than {_MOST_STEPS:.0e} in all")
        if (np.diff(features.rank(self.codes)) <= 0).any():
            problem = "observations must be distinct and in order of rank"
            raise ParameterError("codes", self.codes, "in order of rank", problem)
        for array in (self.codes, self.counts):
            array.setflags(write=False)

    @classmethod
    def from_ranks(
        cls,
        mdp: FactoredMDP,
        ranks: NDArray[np.int64],
        counts: NDArray[np.int64],
        behaviour: Behaviour | None = None,
    ) -> ObservationCounts:
        """Return the counts of observations given by rank, in any order, adding up where one occurs twice."""
        distinct, place = np.unique(ranks, return_inverse=True)
        summed = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(summed, place.reshape(-1), counts)
        some = summed > 0
        return cls(mdp, mdp.space.features.unrank(distinct[some]), summed[some], behaviour)

    @classmethod
    def from_dataset(cls, dataset: Dataset) -> ObservationCounts:
        """Return the counts of a dataset in memory."""
        advice = "count a table with ObservationCounts.from_table(table, mdp)"
        dataset = checked_instance("dataset", dataset, Dataset, "a Dataset", advice)
        counter = RankCounter(dataset.feature_space)
        counter.add(dataset.observations)
        return cls.from_ranks(dataset.known_mdp, *counter.result(), dataset.behaviour)

    @classmethod
    def from_table(
        cls,
        source: Any,
        mdp: FactoredMDP,
        *,
        progress: bool | None = None,
        **options: Unpack[TableOptions],
    ) -> ObservationCounts:
        """Return the counts of a trajectory table, of any size: rows are counted by the query engine, not loaded.

        The result and the errors are those of counting `Dataset.from_table` with these arguments. An ibis table is
        counted by its own back end. With `missing`, rows are read in batches instead.
        """
        from missmdp.data.tables.count import count_table

        counter = RankCounter(checked_mdp(mdp).space.features)
        behaviour = count_table(source, mdp, known_options(options), counter, progress=progress)
        return cls.from_ranks(mdp, *counter.result(), behaviour)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"ObservationCounts({self.n_steps:,} observations, {len(self):,} distinct)"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObservationCounts)
            and self.mdp.space.features == other.mdp.space.features
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __add__(self, other: ObservationCounts) -> ObservationCounts:
        if not isinstance(other, ObservationCounts):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        if self.mdp.space.features != other.mdp.space.features:
            raise DataError("counts can only be added for the same features with the same values")
        features = self.mdp.space.features
        return ObservationCounts.from_ranks(
            self.mdp,
            np.concatenate([features.rank(self.codes), features.rank(other.codes)]),
            np.concatenate([self.counts, other.counts]),
            self.behaviour if self.behaviour == other.behaviour else None,
        )

    def __radd__(self, other: Literal[0] | ObservationCounts) -> ObservationCounts:
        # So that sum() works, which starts from 0.
        return self if isinstance(other, int) and other == 0 else self.__add__(other)  # type: ignore[arg-type]

    @property
    def n_steps(self) -> int:
        """The number of observations counted."""
        return int(self.counts.sum())

    @property
    def observations(self) -> Rows:
        """The distinct observations as named tuples with None for missing."""
        return Rows(self.codes, self.mdp.space.features.decode_observation)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which features each distinct observation shows, shape (D, n)."""
        return self.codes != MISSING

    def missing_rates(self) -> dict[str, float]:
        """Return feature → share of observations in which it is missing."""
        total = max(self.n_steps, 1)
        return {
            name: float(self.counts[self.codes[:, i] == MISSING].sum()) / total
            for i, name in enumerate(self.mdp.space.features.names)
        }

    def always_observed(self) -> tuple[str, ...]:
        """Return Î_always: the features that are never missing in these data."""
        return tuple(name for name, rate in self.missing_rates().items() if rate == 0.0)

    def save(self, path: str | Path) -> None:
        """Save the counts: arrays and JSON, no pickle."""
        meta = _CountsMeta(
            features=encode_features(self.mdp.features), behaviour=self.behaviour, n_steps=self.n_steps
        )
        write_archive(path, _COUNTS_FILE.kind, meta, {"codes": self.codes, "counts": self.counts})

    @classmethod
    def load(cls, path: str | Path, mdp: FactoredMDP) -> ObservationCounts:
        """Return saved counts for an MDP, which must have the features that were counted.

        Raises
        ------
        FormatError
            If the file holds something else, or is damaged.
        DataError
            If the MDP has other features.
        """
        mdp = checked_mdp(mdp)
        meta, arrays = read_archive(path, _COUNTS_FILE)
        if meta.features != encode_features(mdp.features):
            raise DataError(f"{path}: these counts are of other features or values than the MDP has")
        with named_damage(path):
            return cls(
                mdp, arrays["codes"].astype(mdp.space.features.code_dtype), arrays["counts"], meta.behaviour
            )


class _CountsMeta(msgspec.Struct):
    """What a file says of counts besides its arrays."""

    features: list[tuple[str, Any]]
    behaviour: Behaviour | None = None
    n_steps: int | None = None


def _counts_arrays(meta: _CountsMeta) -> dict[str, Array]:
    return {
        "codes": Array(CODES, ("observations", len(meta.features)), MISSING),
        "counts": Array(INTEGERS, ("observations",), 1),
    }


_COUNTS_FILE = Schema("observation counts", _CountsMeta, _counts_arrays)


class RankCounter:
    """Counts rows of codes by their rank, part by part."""

    def __init__(self, features: FeatureSpace) -> None:
        self._features = features
        dense = features.n_ranks <= _MAX_DENSE
        self._table = np.zeros(features.n_ranks, dtype=np.int64) if dense else None
        self._ranks = self._counts = np.empty(0, dtype=np.int64)

    def add(self, observations: NDArray[np.integer[Any]]) -> None:
        """Count some rows."""
        if self._table is not None:
            count_ranks(observations, self._features.weights, self._table)
        else:
            self.add_ranks(*np.unique(self._features.rank(observations), return_counts=True))

    def add_ranks(self, ranks: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Count some observations that are given by rank, each so many times."""
        if self._table is not None:
            np.add.at(self._table, ranks, counts)
            return
        self._ranks, place = np.unique(np.concatenate([self._ranks, ranks]), return_inverse=True)
        summed = np.zeros(len(self._ranks), dtype=np.int64)
        np.add.at(summed, place.reshape(-1), np.concatenate([self._counts, counts]))
        self._counts = summed

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ranks that occur and how often."""
        if self._table is None:
            return self._ranks, self._counts
        ranks = np.flatnonzero(self._table)
        return ranks, self._table[ranks]


def as_counts(dataset: Dataset | ObservationCounts | Iterable[Any]) -> ObservationCounts:
    """Return the counts of a dataset, or the counts that came; say what to give where something else came."""
    if isinstance(dataset, ObservationCounts):
        return dataset
    if isinstance(dataset, Dataset):
        return ObservationCounts.from_dataset(dataset)
    expected = "a Dataset or ObservationCounts"
    problem = f"expected {expected}, got {type(dataset).__name__} (read a table with Dataset.from_table(table, mdp))"
    raise ParameterError("dataset", dataset, expected, problem)
