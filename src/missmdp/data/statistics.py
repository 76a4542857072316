"""Fisher's exact test, one-sided, for counts of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["fisher_log_p"]

_MOST_TERMS = 5_000
"""Terms of a hypergeometric tail, far more than matter."""


def fisher_log_p(k0: int, n0: int, k: int, n: int) -> float:
    """Return ln P(at least k0 of the k0 + k successes fall on the first n0 of n0 + n trials)."""
    if n == 0 or n0 == 0 or k0 * n <= k * n0:
        return 0.0
    # The second sample has at most k successes: terms k, k − 1, … fall off geometrically below the mode.
    least = max(0, k0 + k - n0, k - _MOST_TERMS)
    second = np.arange(least, k + 1, dtype=np.float64)
    first = k0 + k - second
    log_terms = _log_choose(n, second) + _log_choose(n0, first) - _log_choose(n0 + n, float(k0 + k))
    return float(min(special.logsumexp(log_terms), 0.0))


def _log_choose(n: int, k: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return (
        special.gammaln(n + 1.0)
        - special.gammaln(np.asarray(k) + 1.0)
        - special.gammaln(n - np.asarray(k) + 1.0)
    )
