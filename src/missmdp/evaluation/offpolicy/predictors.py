"""Simple models of P(action | context): what is learned of the policy that made a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import threadpoolctl  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.special import log_softmax

from missmdp.evaluation.offpolicy.contexts import Layout
from missmdp.evaluation.offpolicy.target import distinct

_PRIOR = 1.0
"""Decisions that all actions together are taken to have had before the log began, each equally many."""
_BACKOFF = 5.0
"""Decisions that a coarser table counts for in a finer one."""
_PENALTY = 0.5
"""Of squared coefficients: a normal prior with variance 1."""
_ITERATIONS = 200


class Predictor(ABC):
    """A model of P(action | context)."""

    @abstractmethod
    def probabilities(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return P(action | context) for some contexts, shape (rows, A); all are positive."""


class Table(Predictor):
    """Frequencies in cells; a cell leans on the cells of the columns before its own.

    Parameters
    ----------
    contexts, counts
        How often each action was taken in each context, shapes (rows, columns) and (rows, A).
    levels
        Columns that make cells, from few to many; the first level is one cell.
    """

    def __init__(
        self, contexts: NDArray[np.int64], counts: NDArray[np.float64], levels: Sequence[Sequence[int]]
    ) -> None:
        self._levels = [list(level) for level in levels]
        self._cells: list[dict[bytes, NDArray[np.float64]]] = []
        overall = counts.sum(axis=0) + _PRIOR / counts.shape[1]
        self._overall: NDArray[np.float64] = overall / overall.sum()
        for level in self._levels:
            keys, label = distinct(contexts[:, level])
            sums = np.zeros((len(keys), counts.shape[1]))
            np.add.at(sums, label, counts)
            first = np.zeros(len(keys), dtype=np.int64)
            first[label] = np.arange(len(label))
            sums += _BACKOFF * self.probabilities(contexts[first])
            sums /= sums.sum(axis=1, keepdims=True)
            self._cells.append({key.tobytes(): row for key, row in zip(keys, sums, strict=True)})

    def probabilities(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the frequencies in the finest cell that is known, smoothed."""
        out = np.tile(self._overall, (len(contexts), 1))
        # Cells of later levels contain those of earlier ones, so the last that is known is the finest.
        for level, cells in zip(self._levels, self._cells, strict=False):
            keys, label = distinct(np.ascontiguousarray(contexts[:, level]))
            rows = [cells.get(key.tobytes()) for key in keys]
            there = np.array([row is not None for row in rows], dtype=np.bool_)
            if there.any():
                table = np.array([row if row is not None else self._overall for row in rows])
                chosen = there[label]
                out[chosen] = table[label][chosen]
        return out


class Logistic(Predictor):
    """Multinomial logistic regression on all columns, each value having a coefficient per action.

    Parameters
    ----------
    contexts, counts
        As for `Table`.
    layout
        How many values each column has.
    """

    def __init__(self, contexts: NDArray[np.int64], counts: NDArray[np.float64], layout: Layout) -> None:
        self._layout = layout
        design = self._design(contexts)
        shape = (design.shape[1], counts.shape[1])
        totals = counts.sum(axis=1, keepdims=True)

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            coefficients = flat.reshape(shape)
            logs = log_softmax(design @ coefficients, axis=1)
            slope = design.T @ (totals * np.exp(logs) - counts) + 2.0 * _PENALTY * coefficients
            penalty = _PENALTY * float((coefficients**2).sum())
            return penalty - float((counts * logs).sum()), np.asarray(slope).reshape(-1)

        # Threads cost more than they gain on vectors of this size.
        with cast("Any", threadpoolctl).threadpool_limits(1, user_api="blas"):
            found = optimize.minimize(
                loss,
                np.zeros(shape).reshape(-1),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": _ITERATIONS},
            )
        self._coefficients = np.asarray(found.x, dtype=np.float64).reshape(shape)

    def probabilities(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the softmax of sums of coefficients."""
        return np.exp(log_softmax(self._design(contexts) @ self._coefficients, axis=1))

    def _design(self, contexts: NDArray[np.int64]) -> sparse.csr_array:
        """Return one column of zeros and ones per value, and one of ones."""
        starts: NDArray[np.int64] = np.cumsum([0, *self._layout.sizes], dtype=np.int64)
        rows, columns = contexts.shape
        places = np.column_stack([contexts + starts[:-1], np.full(rows, starts[-1])])
        return sparse.csr_array(
            (np.ones(places.size), places.reshape(-1), (columns + 1) * np.arange(rows + 1, dtype=np.int64)),
            shape=(rows, int(starts[-1]) + 1),
        )
