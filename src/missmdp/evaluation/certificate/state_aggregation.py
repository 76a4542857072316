"""States merged that make no difference to a controller: the same future, the same observations with the same
probabilities, the same ε.

In the ICU benchmark heart rates come and go without consequence, so ten states become one group, and evaluating a
controller takes a tenth of the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.product import Against, Product


class Aggregated(NamedTuple):
    """A product and what is played for in it, over groups of states."""

    product: Product
    against: Against
    initial: NDArray[np.float64]


def aggregate_states(product: Product, against: Against, initial: NDArray[np.float64]) -> Aggregated:
    """Return the same, with states merged that make no difference to the controller."""
    group_of, first = _groups(product, against)
    seen, seen_start = _rows(product.seen_start, first)
    other, other_start = _rows(product.other_start, first)
    # A copy: adding up duplicates would change the product itself.
    following = sparse.csr_array(
        (product.prob, group_of[product.state], product.start),
        shape=(len(product.start) - 1, len(first)),
        copy=True,
    )
    following.sum_duplicates()
    return Aggregated(
        product._replace(
            start=np.array(following.indptr, dtype=np.int64),
            state=np.array(following.indices, dtype=np.int32),
            prob=np.array(following.data, dtype=np.float64),
            class_of=product.class_of[first],
            seen_start=seen_start,
            seen_sight=product.seen_sight[seen],
            seen_prob=product.seen_prob[seen],
            seen_listed=product.seen_listed[seen],
            seen_default=product.seen_default[seen],
            other_start=other_start,
            other_node=product.other_node[other],
        ),
        against._replace(
            charge=against.charge[first],
            epsilon=against.epsilon[first],
            unlisted=against.unlisted[first],
            beyond=against.beyond[first],
        ),
        np.bincount(group_of, initial, minlength=len(first)).astype(np.float64),
    )


def _groups(product: Product, against: Against) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the group of each state, and a state of each group."""
    found: dict[bytes, int] = {}
    group_of = np.empty(len(product.class_of), dtype=np.int64)
    first: list[int] = []
    numbers = np.stack([against.charge, against.epsilon, against.unlisted, against.beyond], axis=1)
    for s in range(len(group_of)):
        seen = slice(int(product.seen_start[s]), int(product.seen_start[s + 1]))
        other = slice(int(product.other_start[s]), int(product.other_start[s + 1]))
        looks_like = b"|".join(
            part.tobytes()
            for part in (
                product.class_of[s : s + 1],
                numbers[s],
                product.seen_sight[seen],
                product.seen_prob[seen],
                product.seen_listed[seen],
                product.seen_default[seen],
                product.other_node[other],
            )
        )
        group_of[s] = found.setdefault(looks_like, len(first))
        if group_of[s] == len(first):
            first.append(s)
    return group_of, np.array(first, dtype=np.int64)


def _rows(start: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries of some rows of a ragged array, and where each row begins then."""
    sizes = np.diff(start)[rows]
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shift: NDArray[np.int64] = np.repeat(start[rows] - begins[:-1], sizes)
    return shift + np.arange(len(shift)), begins
