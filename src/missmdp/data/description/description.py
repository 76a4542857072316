"""What is missing in a log, as numbers and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from missmdp.data.description.associations import Association, find_associations
from missmdp.data.description.groups import MissingBy, wilson_interval

__all__ = ["Description", "of", "percent"]


@dataclass(frozen=True, eq=False)
class Description:
    """What is missing in a log.

    Intervals are Wilson's at 95 %. They assume independent rows, which rows of one episode are not: take them as an
    indication, and as too narrow where what is missing stays missing.
    """

    features: tuple[str, ...]
    n_rows: int
    n_episodes: int
    lengths: tuple[int, float, int]
    """The shortest, the median and the longest episode."""
    missing: NDArray[np.int64]
    """The rows in which each feature is missing, shape (n,)."""
    patterns: NDArray[np.bool_]
    """What is missing together, the most frequent first; True is missing, shape (P, n)."""
    pattern_rows: NDArray[np.int64]
    """The rows with each pattern, shape (P,)."""
    n_patterns: int
    """How many patterns occur; beyond the 1,000 most frequent they are only counted."""
    often_missing: tuple[int, ...]
    """The positions of the features that a picture has room for, at most 12: those most often missing."""
    often_patterns: NDArray[np.bool_]
    """What of these is missing together, whatever the others are, the most frequent first, shape (Q, 12 or less)."""
    often_pattern_rows: NDArray[np.int64]
    """The rows with each of these patterns, shape (Q,)."""
    over_steps: MissingBy
    """By the step in the episode, from 0."""
    by_value: tuple[MissingBy, ...]
    """By the value of each feature, in rows where it is observed, shape (n,)."""
    notes: tuple[str, ...] = ()
    """What the reader of the table had to say."""

    @property
    def size(self) -> str:
        """Rows, episodes and how long these are, in words."""
        shortest, median, longest = self.lengths
        steps = of(longest, "step")
        long = steps if shortest == longest else f"{shortest:,} to {steps} (median {median:,g})"
        return f"{of(self.n_rows, 'row')} in {of(self.n_episodes, 'episode')} of {long}"

    @property
    def rates(self) -> NDArray[np.float64]:
        """The share of rows in which each feature is missing, shape (n,)."""
        return self.missing / self.n_rows

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and the upper ends of the rates' 95 % intervals, an indication only, each of shape (n,)."""
        return wilson_interval(self.missing, np.array(self.n_rows))

    @property
    def can_go_missing(self) -> tuple[str, ...]:
        """The features that are missing in some row."""
        return tuple(name for name, count in zip(self.features, self.missing, strict=True) if count)

    @property
    def never_missing(self) -> tuple[str, ...]:
        """The features that are missing in no row."""
        return tuple(name for name, count in zip(self.features, self.missing, strict=True) if not count)

    def together(self, most: int) -> list[tuple[str, int]]:
        """Return the most frequent patterns in words and the rows that have them; the rest is one entry."""
        listed: list[tuple[str, int]] = []
        for pattern, rows in zip(self.patterns[:most], self.pattern_rows[:most].tolist(), strict=True):
            names = [name for name, gap in zip(self.features, pattern, strict=True) if gap]
            listed.append((_joined(names) or "nothing", rows))
        rest = self.n_patterns - len(listed)
        if rest:
            listed.append((of(rest, "rarer pattern"), self.n_rows - sum(rows for _, rows in listed)))
        return listed

    def strongest(self, most: int | None = None) -> list[Association]:
        """Return which feature's missing rate differs most clearly by the value of which other, at most `most`.

        Ranked by the gap between the 95 % intervals at the two values, among values with at least 30 rows. Only
        differences are listed that would be clear at a level of 1 % for all comparisons together if rows were
        independent; see `Association.p_value`.
        """
        return find_associations(self.features, self.missing, self.by_value)[:most]

    def describe(self, most: int = 5) -> str:
        """Return what this says in sentences, with at most `most` patterns and associations."""
        lower, upper = self.intervals
        rates = [
            f"{name} {percent(rate)} ({percent(low)} to {percent(high)})"
            for name, rate, low, high in zip(self.features, self.rates, lower, upper, strict=True)
            if rate > 0.0
        ]
        lines = [f"{self.size}."]
        if rates:
            lines.append(f"Missing (95% interval, if rows were independent): {', '.join(rates)}.")
        if self.never_missing:
            lines.append(f"Never missing: {', '.join(self.never_missing)}.")
        if rates:
            together = [f"{names} {percent(rows / self.n_rows)}" for names, rows in self.together(most)]
            lines.append(f"Missing together: {'; '.join(together)}.")
        lines += [
            f"{a.feature} is missing in {percent(a.highest_rate)} of the rows where {a.given} is {a.highest}, and in "
            f"{percent(a.lowest_rate)} where it is {a.lowest}."
            for a in self.strongest(most)
        ]
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        rows, episodes = of(self.n_rows, "row"), of(self.n_episodes, "episode")
        return f"Description({rows} in {episodes} of {', '.join(self.features)})"

    def draw(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw patterns, rates over steps and rates by value into an SVG, PNG or PDF file; return its path."""
        from missmdp.data.description.picture import draw_description

        return draw_description(self, Path(path), title=title)


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal; what is not all or nothing does not read so."""
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1.0:
        return ">99.9%"
    return f"{share:.1%}"


def _joined(names: Sequence[str], most: int = 8) -> str:
    """Return names as a list in words, shortened if it is long."""
    listed = [*names[: most - 1], f"{len(names) - most + 1} more"] if len(names) > most else names
    return " and ".join(part for part in (", ".join(listed[:-1]), *listed[-1:]) if part)


def of(count: int, noun: str) -> str:
    """Return a count with its noun, which is plural unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
