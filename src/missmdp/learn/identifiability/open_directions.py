"""Directions in which no law of histories changes, by T, b₀ and M, near a point."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.learn.identifiability.chains import Chains, Flow, Rows
from missmdp.learn.identifiability.moving import Moving
from missmdp.learn.identifiability.one_step import mixed, one_step_law, rows_of
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.spans import NullSpace, null_space, one_step_spans, stacked
from missmdp.learn.identifiability.tangent import Tangent

_INSTEAD = (
    "give T a structure with fewer (transitions={feature: features that its next value depends on}), or M, or ask "
    "about a smaller model"
)

LONGEST = 12
"""Steps after which histories are no longer followed, unless told otherwise."""

_MOST_NUMBERS = 3_000_000
"""Numbers in forward vectors above which random histories stand for all."""
_MOST_SLOPES = 50_000_000
"""Derivatives of T above which only single steps are looked at."""
_MOST_PARAMETERS = 1500
"""Parameters above which ranks are refused, where T has a structure: dense linear algebra takes minutes."""
_MOST_NUMBERS_OPEN = 30_000_000
"""Numbers in the directions that are open, above which an answer is refused."""
CLEARLY_POSITIVE, _CLEARLY_ZERO = 1e-7, 1e-11
"""Singular values between these, as shares of the largest, are not told from zero."""


class Local(NamedTuple):
    """What small changes do."""

    open: NDArray[np.float64]
    """Directions in which the law does not change, those of M first, orthonormal columns, shape (P, left)."""
    steps: int
    """How long histories were."""
    complete: bool
    """Whether all histories of that length were followed."""
    closed: bool
    """Whether longer histories say nothing more."""
    margin: float
    noise: float

    @property
    def clear(self) -> bool:
        """Whether the rank is no matter of rounding."""
        return self.margin > CLEARLY_POSITIVE and self.noise < _CLEARLY_ZERO


def open_directions(
    seen: PossibleObservations,
    known: NDArray[np.bool_],
    tangent: Tangent,
    moving: Moving,
    horizon: int | None,
    *,
    free: bool,
) -> Local:
    """Return the directions in which no law of observations changes, at a point."""
    n_states = tangent.table.shape[1]
    rows, change = rows_of(moving, known)
    if free:
        first, open_ = _of_any(seen, tangent, moving)
    else:
        count = tangent.n_parameters + moving.n_parameters
        if count > _MOST_PARAMETERS:
            raise ModelError(
                f"T, b₀ and M have {count:,} free probabilities, too many to say which are identified (at most "
                f"{_MOST_PARAMETERS:,}); {_INSTEAD}"
            )
        first = null_space(mixed(one_step_law(seen, tangent, rows, change)[1]))
        open_ = first.basis.toarray()
    branches = np.array([len(z) > 1 for z in seen.members]) & ~seen.over
    if not first.dimension or not branches.any():
        return Local(open_, 1, complete=True, closed=True, margin=first.margin, noise=first.noise)
    if moving.change.shape[0] * first.dimension > _MOST_SLOPES:
        return Local(open_, 1, complete=False, closed=False, margin=first.margin, noise=first.noise)
    of_m, of_t = open_[: tangent.n_parameters], open_[tangent.n_parameters :]
    flow = _flow(moving, change, rows, of_t, branches, n_states, known.shape[1])
    chains = Chains(seen, flow, tangent, of_m, most=_MOST_NUMBERS)
    steps = LONGEST if horizon is None else horizon
    left = chains.unseen_directions(steps)
    return Local(
        open_ @ left,
        steps,
        chains.complete,
        chains.closed,
        min(first.margin, chains.margin),
        max(first.noise, chains.noise),
    )


def _of_any(
    seen: PossibleObservations, tangent: Tangent, moving: Moving
) -> tuple[NullSpace, NDArray[np.float64]]:
    """Return the directions that no single step shows if T is free and its rows are known: T follows from M there.

    P(s′ is next, and seen in full | s, a) = T(s′ | s, a) M(∅ | s′) stays as it is, so δT = −T δ log M(∅ | s′), and
    Σ_{s′} T(s′ | s, a) (δM(z | s′) − M(z | s′) δ log M(∅ | s′)) = 0 for all observations z.
    """
    n_patterns, n_states = tangent.table.shape
    spans = one_step_spans(_matrix_of(moving, n_states), seen.members)
    whole = stacked(spans, seen.members, seen.pattern * n_states, tangent.table.size)
    full = sparse.csr_array(tangent.jacobian[:n_states])
    odds = sparse.diags_array((tangent.table / tangent.table[0]).reshape(-1))
    again = sparse.csr_array(sparse.vstack([full] * n_patterns, format="csr"))
    found = null_space(sparse.csr_array(whole @ (tangent.jacobian - odds @ again)))
    if found.dimension * (tangent.n_parameters + moving.n_parameters) > _MOST_NUMBERS_OPEN:
        raise ModelError(
            f"{found.dimension:,} directions in the {tangent.n_parameters + moving.n_parameters:,} free probabilities "
            f"of T, b₀ and M stay open in single steps, too many to follow; {_INSTEAD}"
        )
    of_m = found.basis.toarray()
    share = -np.asarray(full @ of_m) / tangent.table[0][:, None]
    entries = moving.entries
    moved = entries.value[:, None] * share[entries.after]
    first = moving.start_value[:, None] * share[moving.starts]
    # Each parameter is the entry that it raises.
    of_t = np.zeros((moving.n_parameters, of_m.shape[1]))
    for change, own in ((moving.change, moved), (moving.start_change, first)):
        up = sparse.coo_array(change)
        raised = up.data > 0.0
        of_t[up.coords[1][raised]] = own[up.coords[0][raised]]
    basis, _ = np.linalg.qr(np.concatenate([of_m, of_t]))
    margin = min([found.margin, *(span.margin for span in spans)])
    noise = max([found.noise, *(span.noise for span in spans)])
    return replace(found, margin=margin, noise=noise), basis


def _matrix_of(moving: Moving, n_states: int) -> sparse.csc_array:
    """Return b₀ and the rows of T, shape (rows, S)."""
    entries = moving.entries
    _, row = np.unique(entries.action * n_states + entries.before, return_inverse=True)
    row = np.concatenate([np.zeros(len(moving.starts), dtype=np.int64), 1 + row.reshape(-1)])
    column = np.concatenate([moving.starts, entries.after])
    value = np.concatenate([moving.start_value, entries.value])
    shape = (int(row.max()) + 1, n_states)
    return sparse.csc_array(sparse.coo_array((value, (row, column)), shape=shape))


def _flow(
    moving: Moving,
    change: sparse.csr_array,
    rows: Rows,
    directions: NDArray[np.float64],
    branches: NDArray[np.bool_],
    n_states: int,
    n_actions: int,
) -> Flow:
    entries = moving.entries
    slope = np.asarray(moving.change @ directions)
    matrices: list[sparse.csr_array] = []
    slopes: list[NDArray[np.float64]] = []
    for a in range(n_actions):
        mine = np.flatnonzero(entries.action == a)
        # Entries come in the order of sparse rows, so data and derivatives stay in step.
        start = np.searchsorted(entries.before[mine], np.arange(n_states + 1))
        matrices.append(
            sparse.csr_array((entries.value[mine], entries.after[mine], start), shape=(n_states, n_states))
        )
        slopes.append(slope[mine])
    return Flow(
        tuple(matrices), tuple(slopes), rows._replace(slope=np.asarray(change @ directions)), branches
    )
