"""One decision of a policy that searches: take in what was seen, then think."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.pomcp.particles import (
    Particles,
    draw_particles,
    draw_states,
    sift_particles,
    start_particles,
)
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules, grow
from missmdp._kernels.pomcp.tree import Tree
from missmdp._kernels.random import DRAW_SEARCH, bits, mix
from missmdp._kernels.tracking import (
    EXPECTED,
    Belief,
    Tracker,
    accept_predicted,
    condition_belief,
    predict_belief,
    start_belief,
)

__all__ = ["NOT_SEEN", "Mind", "perceive", "think"]

NOT_SEEN = -1
"""Instead of an observation: there was none."""

_START, _SIFT, _REDRAW, _ROOTS, _SIMULATE = 1, 2, 3, 4, 5
"""What a decision draws random numbers for; each has a sequence of its own."""
_LANE = np.uint64(0xD6E8FEB86659FD93)


class Mind(NamedTuple):
    """What a policy that searches keeps in mind from one decision to the next, and room to think."""

    belief: Belief
    """The exact belief."""
    particles: Particles
    """No particles where the exact belief is searched from."""
    cumulative: NDArray[np.float64]
    """Working space, shape (S,)."""
    roots: NDArray[np.int32]
    """The states from which simulations start, shape (queries at once,)."""
    tree: Tree


@inner
def _lane(key: Any, step: int, purpose: int) -> Any:
    """Return the key of a sequence within the decision at a step of an episode."""
    return mix(bits(key, step, DRAW_SEARCH) + np.uint64(purpose) * _LANE)


@kernel
def perceive(
    model: GenerativeModel,
    tracker: Tracker,
    own_number: NDArray[np.int64],
    mind: Mind,
    key: Any,
    step: int,
    action: int,
    seen: int,
) -> tuple[int, bool]:
    """Update the belief by an action and what was seen; return what the tracker did and if the particles collapsed.

    `seen` is an observation as the tracker numbers it, `own_number` what the policy's own model calls it (−1 where
    it has none such). At step 0 there was no action, and there may be nothing seen.
    """
    if step == 0:
        start_belief(tracker, mind.belief)
    else:
        predict_belief(tracker, mind.belief, action)
    done = EXPECTED
    if seen == NOT_SEEN:
        accept_predicted(mind.belief)
    else:
        done = condition_belief(tracker, mind.belief, seen, action)
    particles = mind.particles
    n = len(particles.state)
    if n == 0:
        return done, False
    if step == 0:
        start_particles(model, particles, _lane(key, step, _START))
    if seen == NOT_SEEN or sift_particles(
        model, particles, step > 0, action, own_number[seen], _lane(key, step, _SIFT)
    ):
        return done, False
    draw_states(mind.belief, mind.cumulative, _lane(key, step, _REDRAW), 0, n, particles.state)
    particles.size[0] = n
    return done, True


@kernel
def think(
    model: GenerativeModel, rules: SearchRules, mind: Mind, key: Any, step: int, first: int, count: int
) -> None:
    """Let the tree grow by simulations first .. first + count − 1 of the decision at a step; count ≤ len(roots)."""
    lane = _lane(key, step, _ROOTS)
    if len(mind.particles.state) > 0:
        draw_particles(mind.particles, lane, first, count, mind.roots)
    else:
        draw_states(mind.belief, mind.cumulative, lane, first, count, mind.roots)
    grow(model, rules, mind.tree, mind.roots, _lane(key, step, _SIMULATE), first, count)
