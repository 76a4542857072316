"""How far one missingness function is from another (Sec. 5, "Metrics")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.data.coverage import Coverage, behaviour_coverage
from missmdp.errors import Argument, ModelError, ParameterError
from missmdp.model.missingness import MissingnessFunction, missingness_distance
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import StateSpace


@dataclass(frozen=True, eq=False)
class TotalVariation:
    """TV(s) = ½ Σ_z |M̂(z | s) − M(z | s)|, and what it comes to over the reachable states."""

    space: StateSpace
    per_state: NDArray[np.float64]
    """Shape (S,)."""
    reachable: NDArray[np.bool_]
    """The states that count, shape (S,)."""
    weights: NDArray[np.float64] | None
    """The share of observations made in each state, where it is known, shape (S,)."""

    @property
    def average(self) -> float:
        """ATV: the mean over reachable states."""
        return float(self.per_state[self.reachable].mean())

    @property
    def worst(self) -> float:
        """WTV: the largest over reachable states."""
        return float(self.per_state[self.reachable].max())

    @property
    def worst_state(self) -> Any:
        """A reachable state with the largest total variation."""
        return self.space.state(int(np.argmax(np.where(self.reachable, self.per_state, -1.0))))

    @property
    def weighted(self) -> float:
        """The mean over observations: states weigh as much as behaviour visits them."""
        if self.weights is None:
            raise ModelError(
                "visit-weighted total variation needs the shares of visits: give total_variation a MissMDP as ",
                Argument("truth"),
                ", or ",
                Argument("visits"),
            )
        return float(self.weights @ self.per_state)

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else f", weighted={self.weighted:.4g}"
        return f"TotalVariation(average={self.average:.4g}, worst={self.worst:.4g}{weighted})"


def total_variation(
    estimate: MissingnessFunction,
    truth: MissingnessFunction | MissMDP,
    *,
    reachable: ArrayLike | None = None,
    visits: Coverage | ArrayLike | None = None,
) -> TotalVariation:
    """Return the total variation between two missingness functions in every state.

    Parameters
    ----------
    estimate
        M̂.
    truth
        M, or the miss-MDP that it belongs to, which also says what is reachable and (under uniformly random
        behaviour) how often states are visited.
    reachable
        Which states count, shape (S,); by default the reachable ones of the miss-MDP, or all.
    visits
        A `Coverage`, or visits or shares per state, shape (S,), for the visit-weighted mean.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("predator-mcar")
    >>> nothing = mm.MissingnessFunction.fully_observed(truth.mdp)
    >>> round(mm.total_variation(nothing, truth).average, 3)
    0.95
    """
    if not isinstance(estimate, MissingnessFunction):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = " (did you mean its missingness_?)" if hasattr(estimate, "missingness_") else ""
        problem = f"expected a MissingnessFunction, got {type(estimate).__name__}{hint}"
        raise ParameterError("estimate", estimate, "a MissingnessFunction", problem)
    space = estimate.space
    chosen = np.ones(len(space), dtype=np.bool_)
    if isinstance(truth, MissMDP):
        chosen = truth.mdp.reachable
        if visits is None:
            visits = behaviour_coverage(truth)
        truth = truth.missingness
    elif not isinstance(truth, MissingnessFunction):  # pyright: ignore[reportUnnecessaryIsInstance]
        problem = f"expected a MissingnessFunction or a MissMDP, got {type(truth).__name__}"
        raise ParameterError("truth", truth, "a MissingnessFunction or a MissMDP", problem)
    if estimate.space != truth.space:
        raise ModelError("the two missingness functions are over different states")
    if reachable is not None:
        chosen = _checked(reachable, len(space), "reachable").astype(np.bool_)
    if not chosen.any():
        raise ModelError("no state is reachable")
    weights = None
    if visits is not None:
        weights = _checked(visits.share if isinstance(visits, Coverage) else visits, len(space), "visits")
        if (weights < 0.0).any() or not 0.0 < weights.sum() < np.inf:
            problem = "no share may be negative, and some must be positive"
            raise ParameterError("visits", visits, "shares of visits", problem)
        weights = weights / weights.sum()
    return TotalVariation(space, missingness_distance(estimate, truth), chosen, weights)


def _checked(values: ArrayLike, n_states: int, name: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n_states,) or np.isnan(array).any():
        problem = f"expected one number for each of the {n_states} states"
        raise ParameterError(name, values, "one number per state", problem)
    return array
