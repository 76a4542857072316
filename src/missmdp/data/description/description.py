"""What is missing in a log, as numbers and in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer, checked_path, checked_title
from missmdp.data.description.groups import FEW_ROWS, MissingBy
from missmdp.data.description.picture import draw_description
from missmdp.data.statistics import fisher_log_p, wilson_interval
from missmdp.words import count, listed, rate_text

FAMILY_LEVEL = 0.01
"""The probability with which anything at all is listed where nothing depends on anything, if rows were independent."""


class Association(NamedTuple):
    """Between which two values of a feature the missing rate of another differs most clearly."""

    feature: str
    """The feature that goes missing."""
    given: str
    """The feature whose values are compared, in rows where it is observed."""
    highest: str
    """The value, or group of values, at which the 95 % interval of the missing rate starts highest."""
    highest_rate: float
    lowest: str
    """The value, or group of values, at which the interval ends lowest."""
    lowest_rate: float
    clear: float
    """The gap between the two intervals: what is left of the spread when chance had a hand in both."""
    p_value: float
    """Fisher's exact test of the two rates, times the number of all comparisons that were made (Bonferroni)."""

    @property
    def spread(self) -> float:
        """The difference of the two rates."""
        return self.highest_rate - self.lowest_rate


def find_associations(
    features: Sequence[str], missing: NDArray[np.int64], by_value: Sequence[MissingBy]
) -> list[Association]:
    """Return the pairs of features where the missing rate of one clearly differs by the value of the other.

    For each pair the two values with the widest gap between their intervals are compared by Fisher's exact test.
    They were picked because they differ, and many pairs are looked at; so the p-value is multiplied by the number
    of all pairs of values that might have been picked, over all pairs of features, and must be below 1 %.

    Parameters
    ----------
    features
        Their names, shape (n,).
    missing
        The rows in which each is missing, shape (n,).
    by_value
        Missing rates by the value of each feature, shape (n,).
    """
    comparisons = 0
    found: list[Association] = []
    for by in by_value:
        enough = np.flatnonzero(by.rows >= FEW_ROWS)
        if len(enough) < 2:
            continue
        lower, upper = (ends[enough] for ends in by.intervals)
        for i, feature in enumerate(features):
            # A feature that is never missing cannot be listed, so it is no comparison either.
            if feature == by.what or not missing[i]:
                continue
            comparisons += len(enough) * (len(enough) - 1) // 2
            high, low = int(np.argmax(lower[:, i])), int(np.argmin(upper[:, i]))
            clear = float(lower[high, i] - upper[low, i])
            if clear > 0.0:
                found.append(_compared(feature, i, by, int(enough[high]), int(enough[low]), clear))
    corrected = (a._replace(p_value=min(1.0, a.p_value * comparisons)) for a in found)
    return sorted((a for a in corrected if a.p_value < FAMILY_LEVEL), key=lambda a: -a.clear)


def _compared(feature: str, i: int, by: MissingBy, high: int, low: int, clear: float) -> Association:
    """Return the association between two groups, with the p-value of this comparison alone."""
    rows, gaps = by.rows[[high, low]], by.missing[[high, low], i]
    # Two-sided by doubling: either of the two might have been the higher one.
    p_value = 2.0 * math.exp(fisher_log_p(int(gaps[0]), int(rows[0]), int(gaps[1]), int(rows[1])))
    rates = gaps / rows
    return Association(
        feature, by.what, by.labels[high], float(rates[0]), by.labels[low], float(rates[1]), clear, p_value
    )


@dataclass(frozen=True, eq=False)
class Description:
    """What is missing in a log.

    Intervals are Wilson's at 95 %. They assume independent rows, which rows of one episode are not: take them as an
    indication, and as too narrow if missing values tend to stay missing.
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
        """The number of rows and episodes, and the lengths of the episodes, in words."""
        shortest, median, longest = self.lengths
        steps = count(longest, "step")
        long = steps if shortest == longest else f"{shortest:,} to {steps} (median {median:,g})"
        return f"{count(self.n_rows, 'row')} in {count(self.n_episodes, 'episode')} of {long}"

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
        return tuple(name for name, rows in zip(self.features, self.missing, strict=True) if rows)

    @property
    def never_missing(self) -> tuple[str, ...]:
        """The features that are missing in no row."""
        return tuple(name for name, rows in zip(self.features, self.missing, strict=True) if not rows)

    def together(self, most: int) -> list[tuple[str, int]]:
        """Return the most frequent patterns in words and the rows that have them; the rest is one entry."""
        checked_integer("most", most, least=0)
        found: list[tuple[str, int]] = []
        for pattern, rows in zip(self.patterns[:most], self.pattern_rows[:most].tolist(), strict=True):
            names = [name for name, gap in zip(self.features, pattern, strict=True) if gap]
            found.append((listed(names), rows))
        rest = self.n_patterns - len(found)
        if rest:
            found.append((count(rest, "rarer pattern"), self.n_rows - sum(rows for _, rows in found)))
        return found

    def strongest(self, most: int | None = None) -> list[Association]:
        """Return which feature's missing rate differs most clearly by the value of which other, at most `most`.

        Ranked by the gap between the 95 % intervals at the two values, among values with at least 30 rows. Only
        differences that would be significant at 1 % for all comparisons together, if rows were independent, are
        listed; see `Association.p_value`.
        """
        if most is not None:
            checked_integer("most", most, least=0)
        return find_associations(self.features, self.missing, self.by_value)[:most]

    def describe(self, most: int = 5) -> str:
        """Return a description in sentences, with at most `most` patterns and associations."""
        lower, upper = self.intervals
        rates = [
            f"{name} {rate_text(rate)} ({rate_text(low)} to {rate_text(high)})"
            for name, rate, low, high in zip(self.features, self.rates, lower, upper, strict=True)
            if rate > 0.0
        ]
        lines = [f"{self.size}."]
        if rates:
            lines.append(f"Missing (95% interval, if rows were independent): {', '.join(rates)}.")
        if self.never_missing:
            lines.append(f"Never missing: {', '.join(self.never_missing)}.")
        if rates:
            together = [f"{names} {rate_text(rows / self.n_rows)}" for names, rows in self.together(most)]
            lines.append(f"Missing together: {'; '.join(together)}.")
        lines += [
            f"{a.feature} is missing in {rate_text(a.highest_rate)} of the rows where {a.given} is {a.highest}, and in "
            f"{rate_text(a.lowest_rate)} where it is {a.lowest}."
            for a in self.strongest(most)
        ]
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        rows, episodes = count(self.n_rows, "row"), count(self.n_episodes, "episode")
        return f"Description({rows} in {episodes} of {', '.join(self.features)})"

    def draw(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw patterns, rates over steps and rates by value into an SVG, PNG or PDF file; return its path."""
        return draw_description(self, checked_path(path), title=checked_title(title))
