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

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.dynamics_result import Evidence, dynamics_answer
from missmdp.learn.identifiability.global_condition import identified_by_odds
from missmdp.learn.identifiability.moving import DynamicsStructure
from missmdp.learn.identifiability.open_directions import CLEARLY_POSITIVE, Local, open_directions
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.result import Identifiability, open_entries, open_states
from missmdp.learn.identifiability.same_law import others_along
from missmdp.learn.identifiability.spans import known_rows, one_step_spans, stacked
from missmdp.learn.identifiability.tangent import random_point, tangent_at, tangent_of
from missmdp.learn.identifiability.theorems import hiding, theorems
from missmdp.model.mdp import FactoredMDP


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
    if margin > CLEARLY_POSITIVE:
        local = Local(np.zeros((count, 0)), 1, complete=True, closed=True, margin=margin, noise=0.0)
        for_good = found = False
    else:
        free = every_row and dynamics.parents is None
        local = open_directions(seen, known, tangent, here, horizon, free=free)
        for_good = _for_good(seen, known, structure, mdp, dynamics, local, horizon, generator, free=free)
        found = (
            not for_good
            and isinstance(structure, Factors)
            and thetas is not None
            and others_along(structure, thetas, mdp.reachable, dynamics, seen, known, local.open) is not None
        )
    left = local.open.shape[1]
    of_m, of_t = local.open[: tangent.n_parameters], local.open[tangent.n_parameters :]
    by_odds = margin > CLEARLY_POSITIVE
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
        hiding=hiding(structure, {name for entry in open_gaps for name in entry.features}),
        theorems=theorems(mdp, structure, dynamics, evidence, whole=not left),
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


def _locally(local: Local, for_good: bool) -> bool | None:
    if local.margin <= CLEARLY_POSITIVE:
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
    other = open_directions(
        seen,
        known,
        tangent_of(structure, mdp.reachable, generator),
        dynamics.elsewhere(generator),
        horizon,
        free=free,
    )
    return other.complete and other.closed and other.clear and other.open.shape[1] == local.open.shape[1]
