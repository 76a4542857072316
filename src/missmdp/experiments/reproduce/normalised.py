"""Normalised values of runs that met the luck of the two ends of the scale, and their mean over runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.compare import NormalisedValue

__all__ = ["Scale", "over_runs", "ratio_of_means"]


@dataclass(frozen=True, eq=False)
class Scale:
    """The values of the optimal policy and of the prior's, in the episodes of every run."""

    optimal: NDArray[np.float64]
    """Shape (runs, episodes)."""
    prior: NDArray[np.float64]

    def gaps(
        self, estimates: NDArray[np.float64], run: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return V − V_prior in a policy's own episodes, and V_optimal − V_prior in all of the run: maybe more."""
        return estimates - self.prior[run, : len(estimates)], self.optimal[run] - self.prior[run]

    def of_run(self, estimates: NDArray[np.float64], run: int) -> NormalisedValue | None:
        """Return the normalised value of one policy; its error is that of the episodes. None without a scale."""
        return ratio_of_means(*self.gaps(estimates, run))


def over_runs(
    runs: Sequence[tuple[int, NDArray[np.float64]]],
    scale: Scale | None,
    confidence: float = 0.95,
    *,
    pooled: bool = False,
) -> dict[str, Any]:
    """Return the normalised value over runs, its standard error, and its interval.

    Runs are independent: each has data, or a seed, and episodes of its own. So the means of a run are one draw, and
    the ratio of their means has an error (delta method) and an interval (Fieller's) that hold for new data too.
    With a single run, or one policy in all of them (`pooled`), the error is that of the episodes. All is None where
    the optimal policy is worth no more than the prior's: such a scale would turn losses into gains.
    """
    names = ("normalised", "normalised_stderr", "normalised_low", "normalised_high")
    if scale is None:
        return dict.fromkeys(names)
    gaps = [scale.gaps(estimates, run) for run, estimates in runs]
    if pooled or len(gaps) == 1:
        value = ratio_of_means(*map(np.concatenate, zip(*gaps, strict=True)))
    else:
        value = ratio_of_means(*(np.array([gap[i].mean() for gap in gaps]) for i in (0, 1)))
    if value is None:
        return dict.fromkeys(names)
    low, high = value.interval(confidence)
    found = (value.mean, value.stderr, low, high)
    return {
        name: float(number) if math.isfinite(number) else None
        for name, number in zip(names, found, strict=True)
    }


def ratio_of_means(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64]
) -> NormalisedValue | None:
    """Return the ratio of two means, of which the first entries are pairs; None without a scale."""
    if not denominator.mean() > 0.0:
        return None
    both, most = sorted((len(numerator), len(denominator)))
    together = float(np.cov(numerator[:both], denominator[:both])[0, 1] / most)
    return NormalisedValue(
        float(numerator.mean()),
        float(denominator.mean()),
        ((_variance_of_mean(numerator), together), (together, _variance_of_mean(denominator))),
        both,
    )


def _variance_of_mean(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1) / len(values))
