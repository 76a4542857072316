"""Theorem 3's support test: whether the data show every pattern that a state can have.

Where it is known that patterns which occur at all have a probability of at least p, one that did not occur in n
samples is impossible but for a chance of (1 − p)ⁿ.

Deviation: the paper's p bounds all M(z | s), and is 0 as soon as something cannot be seen. Meant are the positive ones.
The certificates need neither p nor equal supports: the test is reported besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from missmdp.errors import DataError
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound, GroupBound, counted

__all__ = ["SupportTest", "support_test"]


@dataclass(frozen=True)
class SupportTest:
    """Whether the patterns in the data are all that there are."""

    minimum_probability: float
    """p: patterns that occur at all have at least this probability."""
    confidence: float
    needed: int
    """Samples that every group needs."""
    short: int
    """Groups that have fewer."""
    fewest: int
    """Samples of the group with fewest."""

    @property
    def established(self) -> bool:
        """Whether every group has enough samples."""
        return self.short == 0

    def describe(self) -> str:
        """Return what the test says, in a sentence."""
        known = (
            f"If no pattern that occurs has a probability below {self.minimum_probability:g}, then with probability "
            f"at least {self.confidence:g}"
        )
        if self.established:
            return f"{known} the data show all patterns that occur: unsmoothed, M̂ has the support of M (Theorem 3)."
        return (
            f"{known} {self.needed:,} samples show all patterns of a group; {counted(self.short, 'group')} have fewer "
            f"({self.fewest:,} at least), so that equal supports (Theorem 3) are not established."
        )


def support_test(
    learner: CountingEstimator, bound: Bound, minimum_probability: float, confidence: float
) -> SupportTest:
    """Return whether the supports of M̂, unsmoothed, and M are the same.

    The number of samples that is needed does not depend on what was seen, so that behaviour may be adaptive.
    """
    if not isinstance(minimum_probability, int | float) or not 0.0 < minimum_probability < 1.0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(f"minimum_probability must be between 0 and 1, got {minimum_probability!r}")
    structure = learner.structure_
    cells = structure.candidates * sum(_categories(group, structure.hidden) for group in bound.per_group)
    failure = (1.0 - confidence) / max(cells, 1)
    needed = math.ceil(math.log(failure) / math.log1p(-minimum_probability))
    samples = [group.samples for group in bound.per_group]
    return SupportTest(
        float(minimum_probability),
        confidence,
        needed,
        sum(n < needed for n in samples),
        min(samples, default=0),
    )


def _categories(group: GroupBound, hidden: int) -> int:
    together = len(group.patterns) == 2
    return (2 if together else 2 ** len(group.features)) + hidden
