"""At which values of other features a feature goes missing more often than chance would have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.description.groups import MissingBy
from missmdp.data.fisher import fisher_log_p

__all__ = ["FAMILY_LEVEL", "FEW_ROWS", "Association", "find_associations"]

FEW_ROWS = 30
"""Groups with fewer rows than this are left out when values are compared."""
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
