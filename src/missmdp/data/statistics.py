"""Statistics of counts: Wilson's interval and Fisher's exact test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

_MOST_TERMS = 5_000
"""Terms of a hypergeometric tail, far more than matter."""
_Z95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def fisher_log_p(k0: int, n0: int, k: int, n: int) -> float:
    """Return the logarithm of Fisher's exact one-sided p-value, for counts of any size.

    That is ln P(at least k0 of the k0 + k successes fall on the first n0 of n0 + n trials).
    """
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


def wilson_interval(
    hits: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper ends of the 95 % Wilson intervals for shares hits / rows.

    They hold for independent rows. Rows of one episode are not independent, so the intervals of a log are an
    indication only, and too narrow where what is missing stays missing.
    """
    share, z2 = hits / rows, _Z95**2 / rows
    middle = (share + z2 / 2) / (1 + z2)
    half = np.sqrt(share * (1 - share) * z2 + z2**2 / 4) / (1 + z2)
    # Rounding must not exclude the shares 0 and 1 themselves.
    return np.where(hits == 0, 0.0, middle - half), np.where(hits == rows, 1.0, middle + half)
