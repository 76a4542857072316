"""Measurements as bins: a temperature becomes one of the few values that a feature has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer, checked_names
from missmdp.errors import Argument, DataError, ParameterError
from missmdp.model.space import MISSING, is_missing, plain


@dataclass(frozen=True)
class Binning:
    """Intervals that cover all numbers; a number on an edge belongs to the upper one.

    Parameters
    ----------
    edges
        The inner edges, strictly increasing; k edges make k + 1 bins.

    Examples
    --------
    >>> fever = Binning.from_edges([36.5, 38])
    >>> fever([35.9, 38, None, 37.2]).tolist()
    [0, 2, -1, 1]
    >>> print(fever.describe())
    3 bins: below 36.5; 36.5 to below 38; 38 and above
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            if any(map(np.iscomplexobj, self.edges)):
                raise TypeError
            edges = tuple(map(float, self.edges))
        except (TypeError, ValueError, OverflowError):
            raise ParameterError("edges", self.edges, "a list of numbers") from None
        if not edges:
            raise ParameterError(
                "edges", edges, "at least one number", "bins need at least one edge between them"
            )
        if not all(map(math.isfinite, edges)):
            raise ParameterError("edges", list(edges), "finite (the outer bins are open)")
        if any(high <= low for low, high in pairwise(edges)):
            raise ParameterError("edges", list(edges), "strictly increasing")
        object.__setattr__(self, "edges", edges)

    @classmethod
    def from_edges(cls, edges: Iterable[float]) -> Binning:
        """Return bins with these inner edges."""
        if isinstance(edges, str | bytes):
            raise ParameterError("edges", edges, "a list of numbers")
        try:
            return cls(tuple(edges))
        except TypeError:
            raise ParameterError("edges", edges, "a list of numbers") from None

    @classmethod
    def quantiles(cls, values: Iterable[Any], bins: int = 4) -> Binning:
        """Return bins that each hold about the same number of these values; missing ones do not count."""
        bins = checked_integer("bins", bins, least=2)
        numbers = _numbers(values)
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            raise ParameterError(
                "values", values, "numbers", "quantiles need at least one value that is not missing"
            )
        edges = np.quantile(numbers, np.arange(1, bins) / bins)
        # Where values repeat, edges may be equal, and where they are few, there may be none between two edges.
        if (np.diff(edges) <= 0).any() or len(
            np.unique(np.searchsorted(edges, numbers, side="right"))
        ) < bins:
            shown = ", ".join(f"{edge:.6g}" for edge in edges)
            raise ParameterError(
                "bins",
                bins,
                "fewer",
                f"{bins} bins of equal weight would have equal edges or empty bins (edges {shown}), since "
                "values are the same or few; ask for fewer bins or give edges with Binning.from_edges",
            )
        return cls(tuple(edges.tolist()))

    def __len__(self) -> int:
        """Return the number of bins."""
        return len(self.edges) + 1

    def __call__(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """Return the bin of each value, counted from 0, `MISSING` for missing ones."""
        return self.codes(_numbers(values))

    def codes(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bin of each number, `MISSING` for NaN."""
        found = np.searchsorted(np.array(self.edges), numbers, side="right")
        return np.where(np.isnan(numbers), MISSING, found).astype(np.int64)

    def labels(self) -> tuple[str, ...]:
        """Return the labels of the bins."""
        first, last = self.edges[0], self.edges[-1]
        between = [f"{a:.12g} to below {b:.12g}" for a, b in pairwise(self.edges)]
        return (f"below {first:.12g}", *between, f"{last:.12g} and above")

    def describe(self) -> str:
        """Return what the bins are, in one line."""
        return f"{len(self)} bins: {'; '.join(self.labels())}"

    def __str__(self) -> str:
        return self.describe()

    def to_json(self) -> dict[str, Any]:
        """Return the bins as JSON: a dict with the edges."""
        return {"edges": list(self.edges)}

    @classmethod
    def from_json(cls, content: Any) -> Binning:
        """Return what `to_json` was given."""
        edges = cast("dict[Any, Any]", content).get("edges") if isinstance(content, dict) else None
        if not isinstance(edges, list):
            raise DataError(f"expected bins such as {{'edges': [36.5, 38]}}, got {content!r}")
        return cls.from_edges(cast("list[Any]", edges))


def as_number(value: Any) -> float | None:
    """Return a cell as a number, NaN where it is missing, None where it is something else."""
    if is_missing(value):
        return math.nan
    if isinstance(value, bool | np.bool_) or (isinstance(value, str) and "_" in value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def checked_bins(bins: Any, sizes: Mapping[str, int | None]) -> dict[str, Binning]:
    """Return the bins per feature; as many as the feature has values, where that is known."""
    if bins is None:
        return {}
    try:
        given = dict(bins)
    except (TypeError, ValueError):
        raise ParameterError("bins", bins, "a mapping from features to Binning") from None
    checked_names("bins", given, list(sizes))
    for name, binning in given.items():
        expected = f"a Binning for {name!r}"
        if not isinstance(binning, Binning):
            problem = f"expected {expected}, such as Binning.from_edges([36.5, 38]), got {binning!r}"
            raise ParameterError("bins", binning, expected, problem)
        size = sizes[name]
        if size is not None and len(binning) != size:
            problem = (
                f"{name!r} has {size} values but {len(binning)} bins; the k-th bin becomes the k-th value, "
                f"so give {size - 1} edges"
            )
            raise ParameterError("bins", binning, f"{size} bins for {name!r}", problem)
    return given


def bins_argument(feature: str) -> Argument:
    """Return the argument that puts a feature into bins, for messages."""
    return Argument("bins", {feature: ...}, python=f"{{{feature!r}: Binning.from_edges([…])}}")


def bin_notes(bins: Mapping[str, Binning], values: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return which value each bin becomes, a sentence per feature.

    Bins and values are matched by their order alone, so whoever reads this can see whether that was meant.
    """
    return [
        f"{name}: "
        + ", ".join(f"{label} → {value}" for label, value in zip(_ranges(binning), values[name], strict=True))
        for name, binning in bins.items()
    ]


def _ranges(binning: Binning) -> list[str]:
    edges = binning.edges
    between = [f"from {a:.12g} to below {b:.12g}" for a, b in pairwise(edges)]
    return [f"below {edges[0]:.12g}", *between, f"from {edges[-1]:.12g}"]


def _numbers(values: Any) -> NDArray[np.float64]:
    given: Any = values
    if isinstance(values, np.ndarray) and (array := cast("NDArray[Any]", values)).dtype.kind in "iuf":
        return array.astype(np.float64).reshape(-1)
    try:
        # Iterating over Arrow arrays gives Arrow scalars.
        listed = [plain(value) for value in (given.to_pylist() if hasattr(given, "to_pylist") else given)]
    except TypeError:
        raise ParameterError("values", given, "a list of numbers") from None
    numbers = [as_number(value) for value in listed]
    for place, (value, number) in enumerate(zip(listed, numbers, strict=True)):
        if number is None:
            raise ParameterError("values", value, "numbers", f"value {place + 1} is {value!r}, not a number")
    return np.array(numbers, dtype=np.float64)
