"""Values on a common scale: 1 is what the optimal policy is worth, 0 what the prior's is (Sec. 6, "Metrics")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.data.arguments import checked_confidence
from missmdp.errors import DataError
from missmdp.evaluation.statistics import decimals, interval_text, signed
from missmdp.evaluation.value import Evaluation

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
        z = float(stats.norm.ppf(0.5 + 0.5 * checked_confidence(confidence)))
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
        are compared episode by episode, which makes the error far smaller.

    Raises
    ------
    DataError
        If the optimal policy is worth no more than the prior's: then there is no scale.
    """
    mean, covariance = _estimates([value, optimal, prior])
    differences = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    numerator, denominator = (differences @ mean).tolist()
    if not denominator > 0.0:
        raise DataError(
            f"the optimal policy is worth {mean[1]:.6g} and the prior's {mean[2]:.6g}: no scale from 0 to 1 "
            "(is the problem solved, and are these the right way round?)"
        )
    (vn, cov), (_, vd) = (differences @ covariance @ differences.T).tolist()
    return NormalisedValue(numerator, denominator, ((vn, cov), (cov, vd)))


def _checked_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise DataError(f"a value is an Evaluation or a finite number, got {value!r}")
    return float(value)


def _estimates(values: list[Evaluation | float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means, shape (3,), and their covariances, shape (3, 3)."""
    mean, covariance = np.zeros(3), np.zeros((3, 3))
    # Over the same episodes, so that what is compared met the same luck.
    count = min((value.episodes for value in values if isinstance(value, Evaluation)), default=0)
    if count == 1:
        raise DataError("one episode has no error; evaluate at least two")
    for i, value in enumerate(values):
        if not isinstance(value, Evaluation):
            mean[i] = _checked_number(value)
            continue
        mine = value.estimates[:count]
        mean[i] = mine.mean()
        for j, other in enumerate(values[: i + 1]):
            if isinstance(other, Evaluation) and (i == j or value.shares_luck_with(other)):
                together = np.cov(mine, other.estimates[:count])[0, 1] / count
                covariance[i, j] = covariance[j, i] = together
    return mean, covariance
