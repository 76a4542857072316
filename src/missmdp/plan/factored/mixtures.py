"""Beliefs about one site as mixtures of a few others.

The value of a belief is at most the mixed value of beliefs that mix to it: knowing which one it was can only help. Any
mixture will do for a bound; one with the least mixed price is the tightest as far as prices tell values. The least
prices form the lower convex hull of the priced beliefs, so that all mixtures are found from its facets at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError

_MOST_VALUES = 5
"""Values of a site up to which hulls are worked out: they have very many facets where there are more."""
_SAME = 1e-13
"""Beliefs that differ by less are the same."""

_AT_A_TIME = 2_000_000
"""Numbers that are worked out at a time, about."""


def pieces(length: int, each: int) -> list[slice]:
    """Return slices of a length for which, with so many numbers each, not too many are worked out at a time."""
    step = max(_AT_A_TIME // max(each, 1), 1)
    return [slice(begin, begin + step) for begin in range(0, length, step)]


class Mixer:
    """Mixtures of the beliefs of one site.

    Parameters
    ----------
    beliefs
        Shape (G, values); the first ones are the corners, value by value.
    prices
        What each belief is worth, about; shape (G,).
    """

    def __init__(self, beliefs: NDArray[np.float64], prices: NDArray[np.float64]) -> None:
        self.beliefs = beliefs
        self.prices = prices
        self._facets = _lower_facets(beliefs, prices)
        self._known: dict[bytes, NDArray[np.float64]] = {}

    def weights(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights ≥ 0 over the beliefs that mix to each wanted one exactly, shape (rows, G)."""
        found = np.zeros((len(wanted), len(self.beliefs)))
        keys = [row.tobytes() for row in np.round(wanted, 14)]
        new = [r for r, key in enumerate(keys) if key not in self._known]
        if new:
            for r, weights in zip(new, self._mixed(wanted[new]), strict=True):
                self._known[keys[r]] = weights
        for r, key in enumerate(keys):
            found[r] = self._known[key]
        return self._exact(found, wanted)

    def _mixed(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        rows, n_beliefs = len(wanted), len(self.beliefs)
        weights = np.zeros((rows, n_beliefs))
        distance = np.empty((rows, n_beliefs))
        for some in pieces(rows, self.beliefs.size):
            distance[some] = np.abs(wanted[some, None] - self.beliefs[None]).max(axis=2)
        nearest = distance.argmin(axis=1)
        there = distance[np.arange(rows), nearest] < _SAME
        weights[there, nearest[there]] = 1.0
        if wanted.shape[1] > _MOST_VALUES:
            weights[~there] = self._by_one(wanted[~there])
            return weights
        if self._facets is None:
            for r in np.flatnonzero(~there):
                weights[r] = self._by_program(wanted[r])
            return weights
        corners, inverse = self._facets
        open_ = np.flatnonzero(~there)
        for start in range(0, len(open_), 256):
            part = open_[start : start + 256]
            # The facet that a belief lies in is the one where its weights are least negative.
            shares = np.einsum("fgv,rv->rfg", inverse, wanted[part])
            best = shares.min(axis=2).argmax(axis=1)
            chosen = shares[np.arange(len(part)), best]
            for r, facet, share in zip(part, best, chosen, strict=True):
                if share.min() < -1e-9:
                    weights[r] = self._by_program(wanted[r])
                else:
                    np.add.at(weights[r], corners[facet], np.maximum(share, 0.0))
        return weights

    def _by_one(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return mixtures of one belief, as much of it as there can be, and corners: those with the least price."""
        n_values = wanted.shape[1]
        weights = np.zeros((len(wanted), len(self.beliefs)))
        # What a belief costs less than the corners that mix to it.
        saved = self.beliefs @ self.prices[:n_values] - self.prices
        for r, row in enumerate(wanted):
            ratios = np.where(self.beliefs > 0.0, row / np.maximum(self.beliefs, 1e-300), np.inf)
            share = np.minimum(ratios.min(axis=1), 1.0)
            best = int(np.argmax(share * saved))
            weights[r, best] = share[best]
            weights[r, :n_values] += np.maximum(row - share[best] * self.beliefs[best], 0.0)
        return weights

    def _by_program(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        result = linprog(self.prices, A_eq=self.beliefs.T, b_eq=belief, bounds=(0, None), method="highs")
        if result.status == 0 and result.x is not None:
            return np.asarray(result.x).clip(min=0.0)
        return np.append(belief, np.zeros(len(self.beliefs) - len(belief)))

    def _exact(self, weights: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights that mix to the wanted beliefs to the last digit; what is left over goes to the corners."""
        n_values = wanted.shape[1]
        # What holds possible what is not has no part in it, but for rounding.
        weights = np.where((wanted <= 0.0) @ (self.beliefs > 0.0).T, 0.0, weights)
        rest = wanted - weights @ self.beliefs
        over = np.where(wanted > 0.0, -rest / np.maximum(wanted, 1e-300), 0.0).max(axis=1)
        share = np.clip(over * (1.0 + 1e-9), 0.0, 1.0)
        weights = weights * (1.0 - share)[:, None]
        rest = np.maximum(wanted - weights @ self.beliefs, 0.0)
        weights[:, :n_values] += rest
        return weights


def _lower_facets(
    beliefs: NDArray[np.float64], prices: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Return the facets of the lower convex hull, as beliefs (facets, values), and what turns beliefs into weights."""
    n_beliefs, n_values = beliefs.shape
    if n_values > _MOST_VALUES:
        return None
    if n_values < 2 or n_beliefs == n_values:
        if n_beliefs > n_values:
            return None
        return np.arange(n_values, dtype=np.int64).reshape(1, -1), np.eye(n_values)[None]
    span = float(np.ptp(prices)) or 1.0
    points = np.column_stack([beliefs[:, 1:], (prices - prices.min()) / span])
    # A point high above all makes the hull full-dimensional; its facets look upward and are left out.
    points = np.vstack([points, np.append(points[:, :-1].mean(axis=0), 10.0)])
    try:
        hull = ConvexHull(points, qhull_options="Qt" if n_values <= 4 else "Qt Qx")
    except (QhullError, ValueError):
        return None
    lower = (hull.equations[:, -2] < -1e-9) & (hull.simplices < n_beliefs).all(axis=1)
    corners = hull.simplices[lower].astype(np.int64)
    matrices = beliefs[corners].transpose(0, 2, 1)
    well = np.abs(np.linalg.det(matrices)) > 1e-12
    if not well.any():
        return None
    return corners[well], np.linalg.inv(matrices[well]).astype(np.float64)
