"""A model as the variables of a factored file: what is always seen, what is hidden, and what is seen of it.

APPL allows a fully observed variable no parents in its own time slice, and a hidden one only fully observed ones there.
So an exact factorisation of any model has one of each: P(x′ | x, y, a) and P(y′ | x, y, a, x′). x combines the features
of a miss-MDP that are always observed, y combines the others, and one observation variable combines what is seen of
those, since values may go missing together. Of each only the combinations that occur are values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.space import MISSING, FeatureSpace

__all__ = ["Factored", "Part", "factorise"]


@dataclass(frozen=True, eq=False)
class Part:
    """One state variable: its name, its values, and which of them each state has."""

    name: str
    labels: Sequence[Any]
    of_state: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Factored:
    """A model's states as an observed and a hidden part, one of which may be absent."""

    observed: Part | None
    hidden: Part | None
    signals: Sequence[Any]
    """What is seen of the hidden part; empty where there is none."""
    observation: tuple[sparse.csr_array, ...]
    """P(signal | state), one matrix, or one per action."""


def factorise(model: POMDP | MissMDP) -> Factored:
    """Return the parts of a model; a plain POMDP is one hidden variable."""
    if isinstance(model, POMDP):
        hidden = Part("state", model.states, np.arange(model.n_states))
        return Factored(None, hidden, model.observations, model.observation)
    features, codes = model.space.features, model.space.codes
    always = features.mask(model.missingness.always_observed)
    if always.all():
        return Factored(Part("state", model.states, np.arange(model.n_states)), None, (), ())
    pomdp = model.to_pomdp()
    if not always.any():
        hidden = Part("state", model.states, np.arange(model.n_states))
        return Factored(None, hidden, pomdp.observations, pomdp.observation)
    seen = model.missingness.occurring()
    rows, signal = np.unique(seen.observations.codes[:, ~always], axis=0, return_inverse=True)
    matrix = sparse.csr_array(
        (
            model.missingness.probabilities[seen.state, seen.pattern],
            (seen.state, signal.reshape(-1)[seen.place]),
        ),
        shape=(model.n_states, len(rows)),
    )
    matrix.sort_indices()
    return Factored(
        _part(features, codes, always),
        _part(features, codes, ~always),
        _labels(features, rows, ~always),
        (matrix,),
    )


def _part(features: FeatureSpace, codes: NDArray[np.integer[Any]], mask: NDArray[np.bool_]) -> Part:
    rows, of_state = np.unique(codes[:, mask], axis=0, return_inverse=True)
    return Part("_".join(features.chosen(mask)), _labels(features, rows, mask), of_state.reshape(-1))


def _labels(features: FeatureSpace, rows: NDArray[np.integer[Any]], mask: NDArray[np.bool_]) -> list[Any]:
    """Return combinations of values as tuples, of one feature as the values themselves; None for missing."""
    values = [features.values[i] for i in np.flatnonzero(mask)]
    labels = [tuple(None if c == MISSING else v[c] for v, c in zip(values, row, strict=True)) for row in rows]
    return [label[0] for label in labels] if len(values) == 1 else labels
