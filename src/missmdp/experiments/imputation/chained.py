"""Multiple imputation by chained regressions, each row by itself: scikit-learn's `IterativeImputer` with sampling."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.experiments.imputation.extra import require
from missmdp.model.space import MISSING

_ROUNDS = 10


def chained_draws(
    rows: NDArray[np.integer[Any]],
    sights: NDArray[np.integer[Any]],
    sizes: NDArray[np.integer[Any]],
    draws: int,
    seed: int,
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    """Return the completed rows, `draws` times, and completed sights, shape (Z, draws, n).

    Codes are numbers to the regressions: what they draw is cut to the range of the codes, and rounded.

    Parameters
    ----------
    rows
        What the regressions are fitted to, codes with `MISSING`, shape (N, n).
    sights
        What is completed by the fitted regressions besides, shape (Z, n).
    sizes
        The number of values of each feature, shape (n,).
    draws
        How often; each fit has a seed of its own.
    seed
        Decides the draws.
    """
    copies: list[NDArray[np.int64]] = []
    filled: list[NDArray[np.int64]] = []
    for draw in range(draws):
        imputer = _imputer(sizes, int(np.random.SeedSequence([seed, draw]).generate_state(1)[0]))
        with warnings.catch_warnings():
            # A sampler does not converge, but the class looks out for that.
            warnings.simplefilter("ignore")
            copies.append(_completed(imputer.fit_transform(_with_gaps(rows)), rows, sizes))
            filled.append(_completed(imputer.transform(_with_gaps(sights)), sights, sizes))
    return tuple(copies), np.stack(filled, axis=1)


def _imputer(sizes: NDArray[np.integer[Any]], seed: int) -> Any:
    # The class is hidden behind this import.
    require("sklearn.experimental.enable_iterative_imputer")
    return require("sklearn.impute").IterativeImputer(
        sample_posterior=True,
        max_iter=_ROUNDS,
        initial_strategy="most_frequent",
        min_value=np.zeros(len(sizes)),
        max_value=sizes - 1.0,
        random_state=seed,
    )


def _with_gaps(codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    return np.where(codes == MISSING, np.nan, codes.astype(np.float64))


def _completed(
    drawn: NDArray[np.float64], codes: NDArray[np.integer[Any]], sizes: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    rounded = np.clip(np.rint(drawn), 0, sizes - 1).astype(np.int64)
    return np.where(codes == MISSING, rounded, codes)
