"""The question whether T, b₀ and M are identified together.

Two things are computed. A condition under which they are, exactly: after a fully observed state s and the action a, the
next state is fully observed with probability G(s′ | s, a) = T(s′ | s, a) M(∅ | s′), which the law shows, and

P(z | s, a) = Σ_{s′ that can show z} G(s′ | s, a) · M(z | s′) / M(∅ | s′)

is linear in the odds of going missing. Where the columns of G that belong to z are independent, odds are determined,
and with them M, T = G / M(∅ | ·) and b₀. (The step before is a shadow variable for what is missing: d'Haultfœuille
2010, Miao and Tchetgen Tchetgen 2016.) Secondly, the rank of the Jacobian of the law by all parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.identifiability.chains import Chains, Flow, Rows
from missmdp.learn.identifiability.dynamics_result import Evidence, always_seen, dynamics_answer
from missmdp.learn.identifiability.global_condition import identified_by_odds
from missmdp.learn.identifiability.moving import DynamicsStructure, Moving
from missmdp.learn.identifiability.one_step import mixed, one_step_law, rows_of
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.result import Identifiability, open_entries, open_states
from missmdp.learn.identifiability.same_law import others_along
from missmdp.learn.identifiability.spans import NullSpace, known_rows, null_space, one_step_spans, stacked
from missmdp.learn.identifiability.tangent import Tangent, random_point, tangent_at, tangent_of
from missmdp.model.mdp import FactoredMDP
from missmdp.words import listed

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
_MOST_PARAMETERS = 2500
"""Parameters above which ranks are refused, where T has a structure: dense linear algebra takes minutes."""
_MOST_NUMBERS_OPEN = 30_000_000
"""Numbers in the directions that are open, above which an answer is refused."""
_CLEARLY_POSITIVE, _CLEARLY_ZERO = 1e-7, 1e-11
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
        return self.margin > _CLEARLY_POSITIVE and self.noise < _CLEARLY_ZERO


def identified_with_dynamics(
    mdp: FactoredMDP,
    structure: Factors | Logistic,
    dynamics: DynamicsStructure,
    seen: PossibleObservations,
    horizon: int | None,
    generator: np.random.Generator,
) -> Identifiability:
    """Return whether the law of observations determines T, b₀ and M together.

    Parameters
    ----------
    mdp
        The MDP: the point at which ranks are computed.
    structure, dynamics
        What is known about M, and about T and b₀.
    seen
        What can be seen.
    horizon
        How many steps histories have; None follows them until longer ones add nothing, within limits.
    generator
        Draws M.
    """
    known = _known_pairs(mdp, seen)
    seen = replace(seen, known=tuple(np.flatnonzero(known[:, a]) for a in range(mdp.n_actions)))
    thetas: list[NDArray[np.float64]] | None = None
    if isinstance(structure, Factors):
        thetas = random_point(structure, generator)
        tangent = tangent_at(structure, mdp.reachable, thetas)
    else:
        tangent = tangent_of(structure, mdp.reachable, generator)
    here = dynamics.here()
    rows = known_rows(mdp, seen)
    spans = one_step_spans(rows, seen.members)
    undetermined = tuple(
        mdp.space.features.decode_observation(codes)
        for span, codes in zip(spans, seen.codes, strict=True)
        if not span.full
    )
    entries = here.entries
    every_row = bool(known[entries.before, entries.action].all())
    margin = 0.0
    if isinstance(structure, Factors) and every_row:
        offsets = seen.pattern * mdp.n_states
        whole = stacked(spans, seen.members, offsets, tangent.table.size)
        margin = identified_by_odds(mdp, structure, whole, tangent)
        margin = min([margin, *(span.margin for span in spans)])
    count = tangent.n_parameters + here.n_parameters
    if margin > _CLEARLY_POSITIVE:
        local = Local(np.zeros((count, 0)), 1, complete=True, closed=True, margin=margin, noise=0.0)
        for_good = found = False
    else:
        free = every_row and dynamics.parents is None
        local = _local(seen, known, tangent, here, horizon, free=free)
        for_good = _for_good(seen, known, structure, mdp, dynamics, local, horizon, generator, free=free)
        found = (
            not for_good
            and isinstance(structure, Factors)
            and thetas is not None
            and others_along(structure, thetas, mdp.reachable, dynamics, seen, known, local.open) is not None
        )
    left = local.open.shape[1]
    of_m, of_t = local.open[: tangent.n_parameters], local.open[tangent.n_parameters :]
    by_odds = margin > _CLEARLY_POSITIVE
    open_gaps = open_entries(mdp, structure, tangent, of_m)
    evidence = Evidence(
        every_row=every_row,
        complete=local.complete,
        closed=local.closed,
        clear=local.clear,
        for_good=for_good,
        moves=found,
        by_odds=by_odds,
    )
    answer = dynamics_answer(
        mdp,
        dynamics,
        here,
        of_t,
        gaps_open=bool(open_gaps),
        hiding=_hiding(structure, {name for entry in open_gaps for name in entry.features}),
        theorems=_theorems(mdp, structure, dynamics, evidence, whole=not left),
        evidence=evidence,
    )
    return Identifiability(
        structure=structure.name,
        identified=True if by_odds else False if for_good or found else None,
        globally=by_odds,
        locally=_locally(local, for_good or found),
        horizon=local.steps,
        n_parameters=count,
        rank=count - left,
        unidentified=open_gaps,
        states=open_states(mdp, tangent, of_m),
        undetermined=undetermined,
        margin=local.margin,
        dynamics=answer,
    )


def _hiding(structure: Factors | Logistic, open_: set[str]) -> list[str]:
    """Return the features that may drive their own gaps, among those whose gaps are open."""
    names = structure.blocks.names
    if isinstance(structure, Logistic):
        pairs = list(zip(names, structure.given, strict=True))
    else:
        pairs = [
            (tuple(name for block in part.blocks for name in names[block]), part.given)
            for part in structure.parts
        ]
    return [name for own, given in pairs for name in own if name in given and name in open_]


def _theorems(
    mdp: FactoredMDP,
    structure: Factors | Logistic,
    dynamics: DynamicsStructure,
    evidence: Evidence,
    *,
    whole: bool,
) -> list[str]:
    """Return what is known in the literature where its conditions hold, in sentences."""
    hidden = structure.blocks.features
    found: list[str] = []
    seen = always_seen(dynamics, mdp.space.features.names, hidden) if evidence.every_row else []
    if seen:
        verb = (
            "is always seen, and so is all that its next value depends"
            if len(seen) == 1
            else ("are always seen, and so is all that their next values depend")
        )
        found.append(f"{listed(seen)} {verb} on: frequencies show that part of T, whatever M is.")
    if not evidence.every_row:
        found.append("Some states are never seen in full before some action: no theorem was applied.")
    elif evidence.by_odds and isinstance(structure, Factors):
        if not any(set(part.given) & set(hidden) or part.after for part in structure.parts):
            found.append(
                "Gaps depend on nothing but what is always seen (simple MAR), so M can be ignored in learning T "
                "(Rubin 1976), and every step between fully seen states has a positive probability."
            )
        elif all(not set(part.given) & _with(structure, part) for part in structure.parts):
            found.append(
                "There is no self-censoring and no colluder, so M is identified from each next state after a fully "
                "seen state and action (Nabi, Bhattacharya and Shpitser 2020), and T with it."
            )
        else:
            found.append(
                "What comes before a gap tells apart the values that it may hide, as far as M's structure needs it "
                "(completeness, with the step before as a shadow variable: d’Haultfœuille 2010, Miao and Tchetgen "
                "Tchetgen 2016)."
            )
    elif whole:
        found.append(
            "Local identifiability at almost every point is what holds of hidden Markov models up to names of states "
            "(Allman, Matias and Rhodes 2009); here values that are seen at times say which state is which."
        )
    return found


def _with(structure: Factors, part: Factor) -> set[str]:
    """Return the features of the indicators that a factor is about or looks at."""
    return {name for block in (*part.blocks, *part.after) for name in structure.blocks.names[block]}


def _locally(local: Local, for_good: bool) -> bool | None:
    if local.margin <= _CLEARLY_POSITIVE:
        return None
    if not local.open.shape[1]:
        return True
    return False if for_good else None


def _known_pairs(mdp: FactoredMDP, seen: PossibleObservations) -> NDArray[np.bool_]:
    """Return which states are seen in full before which actions, shape (S, A)."""
    known = np.zeros((mdp.n_states, mdp.n_actions), dtype=np.bool_)
    for states, may in zip(seen.members, seen.allowed, strict=True):
        if len(states) == 1:
            known[states[0]] |= may
    return known


def _for_good(
    seen: PossibleObservations,
    known: NDArray[np.bool_],
    structure: Factors | Logistic,
    mdp: FactoredMDP,
    dynamics: DynamicsStructure,
    local: Local,
    horizon: int | None,
    generator: np.random.Generator,
    *,
    free: bool,
) -> bool:
    """Return whether what is open is open for histories of any length, and no matter of this very point.

    Where the rank is the same at a random point, it is the largest that there is, and so the same all around: then
    the points with the same law form a curve or more (the theorem of constant rank).
    """
    if not local.open.shape[1] or not (local.complete and local.closed and local.clear):
        return False
    other = _local(
        seen,
        known,
        tangent_of(structure, mdp.reachable, generator),
        dynamics.elsewhere(generator),
        horizon,
        free=free,
    )
    return other.complete and other.closed and other.clear and other.open.shape[1] == local.open.shape[1]


def _local(
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
