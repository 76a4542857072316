"""How much more data would halve a certificate, or bring it to any other number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Halving", "data_to_halve", "factor_for"]

_MOST = 1e6
"""Times as much data that are not looked beyond."""
_CLOSE = 0.02
"""Of what is wanted: how close a search ends."""
_TRIES = 8


@dataclass(frozen=True)
class Halving:
    """How many samples it would take to halve ε, if everything is as frequent in them."""

    factor: float | None
    """Times as much data, about; None where no amount would do."""
    samples: int | None
    """Samples in all, about."""
    more: int | None
    """Samples besides those that there are, about."""
    why: str = ""
    """Why no amount would do."""

    def describe(self) -> str:
        """Return it in a sentence."""
        if self.factor is None or self.samples is None or self.more is None:
            return f"More data alone would not halve it: {self.why}."
        return (
            f"About {self.more:,} more samples would halve it ({self.samples:,} in all, {self.factor:.3g} times as "
            "many)."
        )


def data_to_halve(
    epsilon: float, solver: float, samples: int, epsilon_with: Callable[[float], float]
) -> Halving:
    """Return how many samples would halve ε.

    Parameters
    ----------
    epsilon
        What there is now.
    solver
        The part of it that data do not change.
    samples
        How many there are.
    epsilon_with
        Times as much data → ε.
    """
    if solver >= 0.5 * epsilon:
        return Halving(
            None, None, None, "the solver's gap is more than half of it; let the solver run longer"
        )
    factor = factor_for(0.5 * epsilon, solver, epsilon_with)
    if factor is None:
        why = f"even {_MOST:,.0f} times as many samples of the same states would not do"
        return Halving(None, None, None, why)
    total = math.ceil(samples * factor)
    return Halving(factor, total, total - samples)


def factor_for(
    target: float,
    solver: float,
    epsilon_with: Callable[[float], float],
    *,
    most: float = _MOST,
    close: float = _CLOSE,
) -> float | None:
    """Return how many times as much data bring ε to a target, three digits of it, or None if that is too many.

    Parameters
    ----------
    target
        What ε is to be.
    solver
        The part of it that data do not change.
    epsilon_with
        Times as much data → ε, which does not rise.
    most
        Times as much data that are not looked beyond.
    close
        How close to the target is close enough, as a share of it.
    """
    low, high = 1.0, 4.0
    while (there := epsilon_with(high)) > target:
        if high >= most:
            return None
        low, high = high, min(16.0 * high, most)
    for _ in range(_TRIES):
        if there >= (1.0 - close) * target:
            break
        # Radii shrink with the square root of the data, and so do errors more or less.
        guess = high * ((there - solver) / (target - solver)) ** 2
        middle = min(max(guess, low * (high / low) ** 0.1), low * (high / low) ** 0.9)
        found = epsilon_with(middle)
        if found <= target:
            high, there = middle, found
        else:
            low = middle
    unit = 10.0 ** (math.floor(math.log10(high)) - 2)
    return round(math.ceil(high / unit - 1e-9) * unit, 12)
