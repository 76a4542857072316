"""Decisions of a policy that searches: take in what was seen, then think; one at a time, and in whole episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import (
    EXPECTED,
    FALLBACKS,
    NOT_SEEN,
    Belief,
    Tracker,
    track,
)
from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.pomcp.alias import pick
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules, SearchTree, decided, grow, plant
from missmdp._kernels.random import DRAW_SEARCH, WEYL, bits, episode_key, mix
from missmdp._kernels.simulator import (
    Outcomes,
    Simulation,
    begin_score,
    earn,
    first_state,
    new_score,
    next_state,
    seen_as,
    settle,
)

_S11, _HALF = np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53


class Particles(NamedTuple):
    """States that stand for a belief, each for as much as the others."""

    state: NDArray[np.int32]
    """The first size[0] are the belief, shape (n,); n is 0 where beliefs are exact."""
    spare: NDArray[np.int32]
    """Room for those of the next step, shape (n,)."""
    size: NDArray[np.int64]
    """How many survived the last observation, shape (1,)."""


@inner
def start_particles(model: GenerativeModel, particles: Particles, key: Any) -> None:
    """Draw all particles from b₀."""
    for i in range(len(particles.state)):
        particles.state[i] = pick(model.initial, 0, mix(key + np.uint64(i) * WEYL))
    particles.size[0] = len(particles.state)


@inner
def sift_particles(
    model: GenerativeModel, particles: Particles, moves: bool, action: int, seen: int, key: Any
) -> bool:
    """Keep the states whose simulated observation is the one seen; return False, and all as it was, if there are none.

    There are always n tries: survivors take turns until there were that many. Only if `moves` does the action
    lead to another state first.
    """
    kept = 0
    turn = 0
    x = key
    for _ in range(len(particles.state)):
        state = np.int64(particles.state[turn])
        turn = turn + 1 if turn + 1 < particles.size[0] else 0
        if moves:
            x += WEYL
            state = np.int64(pick(model.step, state * model.n_actions + action, mix(x)))
        x += WEYL
        watched = action if model.n_watched > 1 else 0
        if np.int64(pick(model.seen, state * model.n_watched + watched, mix(x))) == seen:
            particles.spare[kept] = state
            kept += 1
    if kept == 0:
        return False
    for i in range(kept):
        particles.state[i] = particles.spare[i]
    particles.size[0] = kept
    return True


@inner
def draw_particles(particles: Particles, key: Any, first: int, count: int, out: NDArray[np.int32]) -> None:
    """Fill out[count] with particles; draw i of them all is that of mix(key + i WEYL)."""
    size = np.uint64(particles.size[0])
    for i in range(count):
        word = mix(key + np.uint64(first + i) * WEYL)
        out[i] = particles.state[((word >> _HALF) * size) >> _HALF]


@inner
def draw_states(
    belief: Belief,
    cumulative: NDArray[np.float64],
    key: Any,
    first: int,
    count: int,
    out: NDArray[np.int32],
) -> None:
    """Fill out[count] with states from an exact belief, by inverting its CDF; draws as in `draw_particles`."""
    size = int(belief.size[0])
    total = 0.0
    for j in range(size):
        total += belief.weight[j]
        cumulative[j] = total
    for i in range(count):
        u = total * (np.float64(mix(key + np.uint64(first + i) * WEYL) >> _S11) * _UNIT)
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] > u:
                high = middle
            else:
                low = middle + 1
        out[i] = belief.state[low]


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
    tree: SearchTree


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
    done = track(tracker, mind.belief, step, action, seen)
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


@kernel
def run_pomcp_episodes(
    acted_in: Simulation,
    model: GenerativeModel,
    rules: SearchRules,
    tracker: Tracker,
    own_number: NDArray[np.int64],
    mind: Mind,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    observe_initial: bool,
    out: Outcomes,
    out_events: NDArray[np.int64],
) -> int:
    """Run len(out_events) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    `discount` is that of the model acted in. `out_events` (E, FALLBACKS + 1) counts fallbacks by kind, then collapses.
    """
    zero: Any = np.int64(0)  # numba would compile what it calls with a literal 0 once more
    score = new_score()
    for e in range(len(out_events)):
        key = episode_key(seed, first_episode + e)
        state = first_state(acted_in, key)
        action = zero
        step = zero
        begin_score(score)
        for event in range(out_events.shape[1]):
            out_events[e, event] = 0
        while step < horizon and not acted_in.terminal[state]:
            if acted_in.stop[0]:
                return e
            seen = NOT_SEEN
            if step > 0 or observe_initial:
                seen = seen_as(acted_in, key, step, state, action)
            done, collapsed = perceive(model, tracker, own_number, mind, key, step, action, seen)
            if done != EXPECTED:
                out_events[e, done] += 1
            if collapsed:
                out_events[e, FALLBACKS] += 1
            plant(model, mind.tree)
            think(model, rules, mind, key, step, zero, len(mind.roots))
            action = decided(model, mind.tree)
            earn(acted_in, score, state, action, discount)
            step += 1
            state = next_state(acted_in, key, step, state, action)
        settle(acted_in, score, state, step, e, out)
    return len(out_events)
