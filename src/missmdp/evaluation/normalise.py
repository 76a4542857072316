"""Values on a common scale: 1 is what the optimal policy is worth, 0 what the prior's is (Sec. 6, "Metrics")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.checks import checked_confidence
from missmdp.errors import DataError
from missmdp.evaluation.value import Evaluation
from missmdp.words import decimals, interval_text, signed

__all__ = ["NormalisedValue", "normalised_value"]


@dataclass(frozen=True)
class NormalisedValue:
    """(V − V_prior)/(V_optimal − V_prior), with its error."""

    numerator: float
    """V − V_prior."""
    denominator: float
    """V_optimal − V_prior."""
    covariance: tuple[tuple[float, float], tuple[float, float]]
    """Of the two estimates."""
    episodes: float = math.inf
    """The fewest episodes behind any of them; infinite where all are known without error."""

    @property
    def mean(self) -> float:
        """The normalised value."""
        return self.numerator / self.denominator

    def __float__(self) -> float:
        return self.mean

    @property
    def stderr(self) -> float:
        """The standard error, to first order (delta method)."""
        (vn, cov), (_, vd) = self.covariance
        variance = vn - 2.0 * self.mean * cov + self.mean**2 * vd
        return math.sqrt(max(0.0, variance)) / abs(self.denominator)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Fieller's interval, which is right also where the denominator is uncertain.

        It is unbounded where the data do not even tell the optimal policy from the prior's.
        """
        z = float(stats.t.ppf(0.5 + 0.5 * checked_confidence(confidence), self.episodes - 1.0))
        (vn, cov), (_, vd) = self.covariance
        n, d = self.numerator, self.denominator
        # All θ with (n − θd)² ≤ z² Var(n − θd): a θ² − 2 b θ + c ≤ 0.
        a, b, c = d * d - z * z * vd, n * d - z * z * cov, n * n - z * z * vn
        if a <= 0.0:
            return -math.inf, math.inf
        root = math.sqrt(max(0.0, b * b - a * c))
        return (b - root) / a, (b + root) / a

    def __str__(self) -> str:
        places = decimals(self.stderr)
        value = f"{signed(self.mean, places)} ± {self.stderr:.{places}f}"
        return f"{value} (95 % interval {interval_text(self.interval(), places)})"


def normalised_value(
    value: Evaluation | float, optimal: Evaluation | float, prior: Evaluation | float
) -> NormalisedValue:
    """Return a policy's value on the scale on which the optimal policy has 1 and the prior's has 0.

    Parameters
    ----------
    value, optimal, prior
        The three values: evaluations, or numbers that are known without error. Evaluations that met the same draws
        are compared episode by episode, which makes the error far smaller; one may have fewer episodes than the others.

    Raises
    ------
    DataError
        If the optimal policy is worth no more than the prior's: then there is no scale.
    """
    kinds = {given.controlled is None for given in (value, optimal, prior) if isinstance(given, Evaluation)}
    if len(kinds) > 1:
        raise DataError("some of the three were evaluated with control_variate and the others without")
    above, scale = _Gap(value, prior), _Gap(optimal, prior)
    if not scale.mean > 0.0:
        raise DataError(
            f"the optimal policy is worth {scale.one:.6g} and the prior's {scale.other:.6g}: no scale from 0 to 1 "
            "(is the problem solved, and are these the right way round?)"
        )
    covariance = _covariance(above, scale)
    return NormalisedValue(
        above.mean,
        scale.mean,
        ((_covariance(above, above), covariance), (covariance, _covariance(scale, scale))),
        min(above.episodes, scale.episodes),
    )


class _Gap:
    """The mean of one value minus that of another, over the same episodes where both met the same luck."""

    def __init__(self, one: Evaluation | float, other: Evaluation | float) -> None:
        paired = isinstance(one, Evaluation) and isinstance(other, Evaluation) and one.shares_luck_with(other)
        shared = min(_episodes(one), _episodes(other)) if paired else None
        self.terms = ((1.0, _Mean(one, shared)), (-1.0, _Mean(other, shared)))
        (_, first), (_, second) = self.terms
        self.one, self.other = first.value, second.value
        self.mean = self.one - self.other
        self.episodes = min(term.episodes for _, term in self.terms)


class _Mean:
    """A mean over the first episodes of an evaluation, or a number."""

    def __init__(self, given: Evaluation | float, episodes: float | None) -> None:
        self.source = given if isinstance(given, Evaluation) else None
        self.episodes = _episodes(given) if episodes is None else episodes
        if self.episodes == 1:
            raise DataError("one episode has no error; evaluate at least two")
        self.value = (
            _checked_number(given) if self.source is None else float(self.estimates(self.episodes).mean())
        )

    def estimates(self, episodes: float) -> NDArray[np.float64]:
        """Return the first estimates."""
        assert self.source is not None
        return self.source.estimates[: int(episodes)]


def _episodes(given: Evaluation | float) -> float:
    return given.episodes if isinstance(given, Evaluation) else math.inf


def _covariance(one: _Gap, other: _Gap) -> float:
    return sum(
        sign * other_sign * _covariance_of_means(mine, theirs)
        for sign, mine in one.terms
        for other_sign, theirs in other.terms
    )


def _covariance_of_means(one: _Mean, other: _Mean) -> float:
    """Return the covariance of two means: σ_xy over the larger number of episodes, where luck is shared."""
    if one.source is None or other.source is None:
        return 0.0
    if one.source is not other.source and not one.source.shares_luck_with(other.source):
        return 0.0
    both = min(one.episodes, other.episodes)
    together = np.cov(one.estimates(both), other.estimates(both))[0, 1]
    return float(together / max(one.episodes, other.episodes))


def _checked_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise DataError(f"a value is an Evaluation or a finite number, got {value!r}")
    return float(value)
