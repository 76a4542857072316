"""From what a file says to a POMDP: what both formats leave to the reader.

A file does not mark terminal states: those that every action leaves where they are, with reward 0, are taken as
such. Files act first, so `observe_initial` is False. O is kept once where it is the same for all actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, ModelError
from missmdp.model.pomdp import POMDP

__all__ = ["absorbing", "pomdp_from_file", "same_matrix"]


def pomdp_from_file(
    path: str | Path,
    *,
    states: Sequence[Any],
    actions: Sequence[Any],
    observations: Sequence[Any],
    transition: Sequence[sparse.csr_array],
    reward: NDArray[np.float64],
    observation: Sequence[sparse.csr_array],
    initial: NDArray[np.float64],
    discount: float,
) -> POMDP:
    """Return the POMDP of a file, from matrices whose rows have been checked."""
    first = observation[0]
    shared = all(same_matrix(first, other) for other in observation[1:])
    try:
        return POMDP(
            states=states,
            actions=actions,
            observations=observations,
            transition=tuple(transition),
            reward=reward,
            observation=(first,) if shared else tuple(observation),
            initial=initial,
            terminal=absorbing(transition) & (reward == 0.0).all(axis=1),
            discount=discount,
            observe_initial=False,
        )
    except ModelError as error:
        raise FormatError(f"{path}: {error}") from error


def absorbing(transition: Sequence[sparse.csr_array]) -> NDArray[np.bool_]:
    """Return which states no action leaves, shape (S,)."""
    return np.all([matrix.diagonal() == 1.0 for matrix in transition], axis=0)


def same_matrix(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    """Return whether two matrices in canonical form are equal bit for bit."""
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )
