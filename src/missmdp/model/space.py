"""Features and states: the user's own values outside, small integer codes inside.

A code is a position in the list of a feature's values; in observations `MISSING` stands for a value that
was not recorded. A row of codes has a *rank*, its mixed-radix number, which makes looking up and grouping
rows a matter of one integer each.
"""

from __future__ import annotations

import keyword
import math
import unicodedata
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_instance, checked_shape
from missmdp.errors import ModelError, ParameterError
from missmdp.model.probabilities import as_integers, call, number
from missmdp.progress import show_progress
from missmdp.words import did_you_mean, is_text, preview, shown

MISSING = -1
"""The code of a value that was not recorded."""
NO_ACTION = -1
"""The code of "no action": the last observation of an episode is not acted on."""

_MAX_RANK = 2**62


def is_missing(value: object) -> bool:
    """Return whether a value at the user's door means *missing*: None, NaN, NaT, NA, or masked."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(cast("float", value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cast("Any", value)))
    return type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")


def plain(value: Any) -> Any:
    """Return numpy scalars as the Python values that they hold."""
    return cast("Any", value.item()) if isinstance(value, np.generic) else value


def _attribute_names(names: Sequence[str]) -> list[str]:
    """Return valid, distinct attribute names, as close to the features' names as they can be.

    Names that are valid as they are keep them, whatever others would like to be called.
    """
    attributes = {name: name for name in names if _is_attribute(name)}
    for name in names:
        if name not in attributes:
            # Python reads identifiers in this normal form, so ﬁ and fi are one.
            normal = unicodedata.normalize("NFKC", name)
            base = "".join(c if f"f{c}".isidentifier() else "_" for c in normal).lstrip("_") or "feature"
            if not base.isidentifier():
                base = "f" + base
            if keyword.iskeyword(base):
                base += "_"
            attribute, suffix = base, 2
            while attribute in attributes.values():
                attribute, suffix = f"{base}_{suffix}", suffix + 1
            attributes[name] = attribute
    return [attributes[name] for name in names]


def _is_attribute(name: str) -> bool:
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("_")
        and unicodedata.normalize("NFKC", name) == name
    )


@cache
def _row_type(kind: str, names: tuple[str, ...]) -> type[Any]:
    """Return the named tuple for states or observations; equal names share one, and rows can be pickled."""
    base: Any = namedtuple(kind, _attribute_names(names))  # pyright: ignore[reportUntypedNamedTuple]

    def reduce(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (_make_row, (kind, names, tuple(row)))

    return type(kind, (base,), {"__slots__": (), "__reduce__": reduce})


def _make_row(kind: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return _row_type(kind, names)(*values)


def _checked_values(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, str | bytes):
        raise ModelError(
            f"feature {name!r}: expected a list of values, got the string {values!r} "
            f"(write [{values!r}] for a feature with this one value)"
        )
    try:
        listed = tuple(plain(value) for value in values)
    except TypeError as error:
        raise ModelError(
            f"feature {name!r}: expected a list of values such as range(4) or ['low', 'high'], got {values!r}"
        ) from error
    if not listed:
        raise ModelError(f"feature {name!r} has no values")
    seen: dict[Any, Any] = {}
    for value in listed:
        if is_missing(value):
            raise ModelError(f"feature {name!r}: {value!r} means missing and cannot be one of its values")
        try:
            if value in seen:
                raise ModelError(
                    f"feature {name!r} has the value {value!r} twice"
                    + ("" if repr(seen[value]) == repr(value) else f" (it equals {seen[value]!r})")
                )
        except TypeError as error:
            raise ModelError(
                f"feature {name!r}: the value {value!r} is not hashable; use numbers, strings or tuples"
            ) from error
        seen[value] = value
    return listed


class FeatureSpace:
    """Named features, each with the values it can take.

    Parameters
    ----------
    features
        Name → values, in the order in which states list them. Values are the user's own: numbers,
        strings, booleans, anything hashable but None and NaN, which mean missing.
    """

    def __init__(self, features: Mapping[str, Iterable[Any]]) -> None:
        if not isinstance(features, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            expected = "a mapping from names to values"
            problem = f"expected {expected}, got {type(features).__name__}"
            raise ParameterError("features", features, expected, problem)
        if not features:
            raise ParameterError("features", features, "features", "a model needs at least one feature")
        for name in features:
            if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ModelError(f"a feature's name must be a string that is not blank, got {shown(name)}")
            if not is_text(name):
                raise ModelError(f"a feature's name must be text that a file can hold, got {shown(name)}")
        self.names: tuple[str, ...] = tuple(features)
        self.values: tuple[tuple[Any, ...], ...] = tuple(
            _checked_values(name, values) for name, values in features.items()
        )
        self.sizes: NDArray[np.int64] = np.array([len(v) for v in self.values], dtype=np.int64)
        self.n_ranks: int = math.prod(len(v) + 1 for v in self.values)
        self._codes: tuple[dict[Any, int], ...] = tuple(
            {value: code for code, value in enumerate(v)} for v in self.values
        )

    def __reduce__(self) -> tuple[type[FeatureSpace], tuple[dict[str, tuple[Any, ...]]]]:
        return (FeatureSpace, (self.as_dict(),))

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureSpace)
            and self.as_dict() == other.as_dict()
            and self.names == other.names
        )

    def __hash__(self) -> int:
        return hash((self.names, self.values))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(v)}" for name, v in zip(self.names, self.values, strict=True))
        return f"FeatureSpace({sizes})"

    def as_dict(self) -> dict[str, tuple[Any, ...]]:
        """Return name → values."""
        return dict(zip(self.names, self.values, strict=True))

    @cached_property
    def State(self) -> type[Any]:  # noqa: N802
        """The named tuple that states are."""
        return _row_type("State", self.names)

    @cached_property
    def Observation(self) -> type[Any]:  # noqa: N802
        """The named tuple that observations are, with None for missing."""
        return _row_type("Observation", self.names)

    @cached_property
    def code_dtype(self) -> np.dtype[np.signedinteger[Any]]:
        """The smallest signed integer type that holds every code and `MISSING`."""
        largest = int(self.sizes.max())
        return np.dtype(np.int8 if largest <= 127 else np.int16 if largest <= 32767 else np.int32)

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """What one step of each feature's code adds to a rank, shape (n,).

        Raises
        ------
        ModelError
            If there are too many combinations to number them; a log may have them, a model cannot.
        """
        if self.n_ranks >= _MAX_RANK:
            raise ModelError(
                f"the {len(self.names)} features have about 10^{math.log10(self.n_ranks):.0f} combinations of values; "
                f"at most {_MAX_RANK:.2g} can be numbered"
            )
        # One slot more than values, so MISSING has a place of its own (slot 0).
        slots = self.sizes + 1
        return np.append(np.cumprod(slots[:0:-1])[::-1], 1).astype(np.int64)

    def position(self, name: str) -> int:
        """Return the position of a feature; raise `ModelError` if there is none of that name."""
        try:
            return self.names.index(name)
        except ValueError:
            meant = did_you_mean(name, self.names)
            raise ModelError(
                f"there is no feature {name!r}; the features are {', '.join(self.names)}{meant}"
            ) from None

    def mask(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which features are among the given names, shape (n,)."""
        chosen = np.zeros(len(self), dtype=np.bool_)
        for name in [names] if isinstance(names, str) else names:
            chosen[self.position(name)] = True
        return chosen

    def chosen(self, mask: NDArray[np.bool_]) -> tuple[str, ...]:
        """Return the names of the features that a mask picks."""
        return tuple(name for name, picked in zip(self.names, mask, strict=True) if picked)

    def encode(self, state: object) -> tuple[int, ...]:
        """Return the codes of a state given as a tuple, a mapping, or (one feature) a bare value."""
        return self._encode(state, "state", allow_missing=False)

    def encode_observation(self, observation: object) -> tuple[int, ...]:
        """Return the codes of an observation, where None, NaN and what a mapping leaves out give `MISSING`."""
        return self._encode(observation, "observation", allow_missing=True)

    def _encode(self, row: object, what: str, *, allow_missing: bool) -> tuple[int, ...]:
        values = self._values_of(row, what, allow_missing=allow_missing)
        codes: list[int] = []
        for name, table, value in zip(self.names, self._codes, values, strict=True):
            if is_missing(value):
                if not allow_missing:
                    raise ModelError(f"{what} {row!r}: feature {name!r} has no value")
                codes.append(MISSING)
                continue
            try:
                codes.append(table[value])
            except (KeyError, TypeError):
                raise ModelError(
                    f"{what} {row!r}: feature {name!r} cannot be {value!r}; its values are {preview(table)}"
                ) from None
        return tuple(codes)

    def _values_of(self, row: object, what: str, *, allow_missing: bool) -> Sequence[Any]:
        if isinstance(row, Mapping) or hasattr(row, "keys"):  # a mapping, or a row of a data frame
            named = dict(cast("Mapping[Any, Any]", row).items())
            unknown = [name for name in named if name not in self.names]
            absent = [] if allow_missing else [name for name in self.names if name not in named]
            if unknown or absent:
                parts = [f"no feature {name!r}" for name in unknown] + [
                    f"{name!r} is absent" for name in absent
                ]
                raise ModelError(f"{what} {row!r}: {'; '.join(parts)} (features: {', '.join(self.names)})")
            return [named.get(name) for name in self.names]
        if isinstance(row, tuple | list) or (isinstance(row, np.ndarray) and row.ndim == 1):
            values = cast("Sequence[Any]", row)
            if len(values) == len(self):
                return values
        elif len(self) == 1:
            return [cast("Any", row).item() if isinstance(row, np.ndarray) and row.ndim == 0 else row]
        raise ModelError(
            f"{what} {row!r} does not fit the features: expected {len(self)} values "
            f"({', '.join(self.names)}) as a tuple or a mapping"
        )

    def decode(self, codes: Sequence[int] | NDArray[np.integer[Any]]) -> Any:
        """Return the state with these codes, a named tuple."""
        return self.State._make([v[code] for v, code in zip(self.values, codes, strict=True)])

    def decode_observation(self, codes: Sequence[int] | NDArray[np.integer[Any]]) -> Any:
        """Return the observation with these codes, a named tuple with None for missing."""
        return self.Observation(
            *(None if code == MISSING else v[code] for v, code in zip(self.values, codes, strict=True))
        )

    def rank(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the mixed-radix number of each row of codes (MISSING allowed), shape (rows,).

        Ranks order rows like the tuples of their codes, missing first.
        """
        ranks = np.zeros(codes.shape[:-1], dtype=np.int64)
        for position, weight in enumerate(self.weights):
            ranks += (codes[..., position].astype(np.int64) + 1) * weight
        return ranks

    def unrank(self, ranks: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
        """Return the rows of codes that have these ranks, shape (rows, n)."""
        codes = np.empty((*ranks.shape, len(self)), dtype=self.code_dtype)
        for position, (weight, size) in enumerate(zip(self.weights, self.sizes, strict=True)):
            codes[..., position] = ranks // weight % (size + 1) - 1
        return codes


class Rows(Sequence[Any]):
    """States or observations in order, as named tuples that are made when asked for."""

    def __init__(
        self, codes: NDArray[np.integer[Any]], decode: Callable[[NDArray[np.integer[Any]]], Any]
    ) -> None:
        self.codes = codes
        self._decode = decode

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._decode(row) for row in self.codes[index]]
        return self._decode(self.codes[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._decode, self.codes)

    def __repr__(self) -> str:
        return f"<{len(self)} rows, {self[0]!r} … {self[-1]!r}>"


_MAX_PATTERN_ROWS = 200_000_000
"""Rows (patterns × states) above which listing all of Z is refused."""


@dataclass(frozen=True, eq=False)
class Groups:
    """States that agree on some features, grouped."""

    label: NDArray[np.int64]
    """Group of each state, shape (S,)."""
    count: int
    """How many groups there are."""

    def among(self, kept: NDArray[np.int64]) -> Groups:
        """Return the same groups for some of the states only."""
        return Groups(self.label[kept], self.count)

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest minus the smallest value in each group, 0 where a group is empty, shape (count,)."""
        low, high = np.full(self.count, np.inf), np.full(self.count, -np.inf)
        np.minimum.at(low, self.label, values)
        np.maximum.at(high, self.label, values)
        return np.where(low <= high, high, 0.0) - np.where(low <= high, low, 0.0)


class StateSpace:
    """A feature space and the states that occur in it.

    Parameters
    ----------
    features
        The feature space.
    codes
        One row per state, shape (S, n); rows must differ.
    """

    def __init__(self, features: FeatureSpace, codes: NDArray[np.integer[Any]]) -> None:
        self.features = checked_instance("features", features, FeatureSpace, "a FeatureSpace")
        codes = as_integers(codes, "codes")
        if codes.size == 0:
            raise ModelError("a model needs at least one state")
        checked_shape("codes", codes, (len(codes), len(features)), "(states, features)")
        if (codes < 0).any() or (codes >= features.sizes).any():
            raise ModelError("state codes are outside the features' values")
        self.codes: NDArray[np.signedinteger[Any]] = np.array(codes, dtype=features.code_dtype, order="C")
        ranks = features.rank(self.codes)
        self._order: NDArray[np.int64] = np.argsort(ranks, kind="stable").astype(np.int64)
        self._sorted: NDArray[np.int64] = ranks[self._order]
        twice = np.flatnonzero(np.diff(self._sorted) == 0)
        if twice.size:
            raise ModelError(f"the state {self.state(int(self._order[twice[0]]))!r} is listed twice")
        self.codes.setflags(write=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateSpace)
            and self.features == other.features
            and np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"StateSpace({len(self)} states of {self.features!r})"

    @property
    def states(self) -> Rows:
        """The states in order, as named tuples."""
        return Rows(self.codes, self.features.decode)

    @property
    def is_product(self) -> bool:
        """Whether the states are all combinations of values, in whatever order."""
        return len(self) == math.prod(map(int, self.features.sizes))

    @property
    def in_order(self) -> NDArray[np.int64]:
        """The states sorted by their values, the last feature changing fastest, as indices, shape (S,)."""
        return self._order

    def state(self, index: int) -> Any:
        """Return the state at an index."""
        return self.features.decode(self.codes[index])

    def find(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the index of each row of codes, or −1 where there is no such state."""
        ranks = self.features.rank(codes)
        place = np.minimum(np.searchsorted(self._sorted, ranks), len(self) - 1)
        return np.where(self._sorted[place] == ranks, self._order[place], -1)

    def index(self, state: object) -> int:
        """Return the index of a state; raise `ModelError` if it is not one of them."""
        found = int(self.find(np.array([self.features.encode(state)]))[0])
        if found < 0:
            raise ModelError(f"{state!r} is not one of the {len(self)} states of this model")
        return found

    def groups(self, mask: NDArray[np.bool_]) -> Groups:
        """Return the states grouped by the values of the features that the mask picks."""
        hidden = np.where(mask, self.codes, MISSING)
        _, label = np.unique(self.features.rank(hidden), return_inverse=True)
        label = label.reshape(-1).astype(np.int64)
        return Groups(label, int(label.max()) + 1)

    def admit(self, codes: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return which states admit an observation, z ⪯ s: equal wherever it is not missing, shape (S,)."""
        observation = np.asarray(codes)
        seen = observation != MISSING
        return (self.codes[:, seen] == observation[seen]).all(axis=1)

    def all_observations(self) -> NDArray[np.signedinteger[Any]]:
        """Return Z: every way to poke holes into a state, as distinct rows of codes in order of rank.

        Raises
        ------
        ModelError
            If the 2ⁿ patterns times the states are too many to go through.
        """
        return self.features.unrank(np.sort(np.concatenate(list(self._observations_by_pattern()))))

    def count_observations(self) -> int:
        """Return |Z| without listing Z."""
        if self.is_product:
            return math.prod(int(size) + 1 for size in self.features.sizes)
        return sum(len(ranks) for ranks in self._observations_by_pattern())

    def _observations_by_pattern(self) -> Iterator[NDArray[np.int64]]:
        """Yield the ranks of the observations under each pattern; no two patterns share one."""
        n_features = len(self.features)
        rows = 2.0**n_features * len(self)
        if rows > _MAX_PATTERN_ROWS:
            raise ModelError(
                f"listing Z means 2^{n_features} patterns × {len(self):,} states = {rows:.2g} rows, "
                f"more than {_MAX_PATTERN_ROWS:.0e}; work with the observations that M produces instead"
            )
        for bits in range(2**n_features):
            mask = (bits >> np.arange(n_features)) & 1 == 1
            yield np.unique(self.features.rank(np.where(mask, self.codes, MISSING)))

    def evaluate(self, function: Callable[[Any], Any] | Any, what: str) -> NDArray[np.float64]:
        """Return a number per state, from a function of the state or one number for all, shape (S,)."""
        if not callable(function):
            return np.full(len(self), number(function, what))
        values = np.empty(len(self))
        with show_progress(f"Evaluating {what}", len(self)) as advance:
            for i, state in enumerate(self.states):
                values[i] = number(call(function, what, state), "{} of {!r}", what, state)
                advance()
        return values

    def distribution(self, pairs: Iterable[tuple[Any, float]]) -> NDArray[np.float64]:
        """Return pairs (state, probability) as an array, adding up where a state recurs, shape (S,)."""
        array = np.zeros(len(self))
        for state, probability in pairs:
            array[self.index(state)] += probability
        return array
