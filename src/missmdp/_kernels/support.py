"""Which states are possible along histories, as sets rather than beliefs.

The set of states that are possible after a history depends on the set before it, the action and the next
observation. Logs meet the same sets again and again, so each is kept once and each step is looked up; only
steps that are new are worked out. When what is kept is full, it is thrown away and filled again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel

NO_STATE, NO_START, CONFLICT = 1, 2, 4
"""What is wrong with a row, at most one of them: no state admits the observation; it is the first, and no initial
state admits it; no state that is possible so far can lead to it."""
ENDED, GOING_ON = 8, 16
"""All possible states are terminal; none of them is."""
FIRST, RESTART = 1, 2
"""How a row begins: as the first of an episode, or with nothing known before it; 0 where it goes on."""
_UNKNOWN = 255
_SLOTS_PER_KEY = 2


class PossibleMoves(NamedTuple):
    """What a model allows, without its probabilities."""

    indptr: NDArray[np.int64]
    """Row a · S + s of the matrix (indptr, indices) has the successors of s under a."""
    indices: NDArray[np.int32]
    codes: NDArray[Any]
    """The states' values, shape (S, n)."""
    initial: NDArray[np.bool_]
    """Shape (S,)."""
    terminal: NDArray[np.bool_]
    """Shape (S,)."""


class _Kept(NamedTuple):
    """Sets of states that were met, and the steps between them."""

    pool: NDArray[np.int32]
    """The states of all sets."""
    start: NDArray[np.int64]
    """Where each set begins in `pool`."""
    used: NDArray[np.int64]
    """How many sets there are, shape (1,)."""
    slots: NDArray[np.int64]
    """Hash table of sets."""
    n_keys: NDArray[np.int64]
    """How many steps there are, shape (1,)."""
    key_of: NDArray[np.int64]
    """Hash table of steps: (set, action, observation) in one number."""
    next_of: Any
    """The set after each step, as long as `key_of`."""
    any_set: Any
    """The set of all states that admit each observation, −1 before anybody asked, shape (observations,)."""
    first_set: Any
    """The set of all initial states that admit each observation, likewise."""
    ends: NDArray[np.uint8]
    """`ENDED`, `GOING_ON` or 0 for each set."""


@inner
def _admits(state: NDArray[Any], observation: NDArray[Any]) -> bool:
    admits = True
    for i in range(len(observation)):
        admits &= observation[i] < 0 or observation[i] == state[i]
    return admits


@inner
def _hash_of_set(states: NDArray[np.int32]) -> np.int64:
    mixed = np.uint64(1469598103934665603)
    for i in range(len(states)):
        mixed = (mixed ^ np.uint64(states[i])) * np.uint64(1099511628211)
    return np.int64(mixed >> np.uint64(20))


@kernel
def _intern(
    found: NDArray[np.int32],
    pool: NDArray[np.int32],
    start: NDArray[np.int64],
    used: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> int:
    """Return the number of a set of states, a new one if it is new, −1 if there is no room."""
    slot = _hash_of_set(found) % len(slots)
    while slots[slot] >= 0:
        number = slots[slot]
        low, high = start[number], start[number + 1]
        if high - low == len(found):
            same = True
            for i in range(len(found)):
                same &= pool[low + i] == found[i]
            if same:
                return number
        slot = (slot + 1) % len(slots)
    number = used[0]
    if number + 1 >= len(start) or start[number] + len(found) > len(pool):
        return -1
    slots[slot] = number
    for i in range(len(found)):
        pool[start[number] + i] = found[i]
    start[number + 1] = start[number] + len(found)
    used[0] = number + 1
    return number


@inner
def _admitted(
    codes: NDArray[Any],
    observation: NDArray[Any],
    allowed: NDArray[np.bool_],
    out: NDArray[np.int32],
) -> int:
    """Fill out with the allowed states that admit an observation; return how many."""
    count = 0
    for s in range(len(codes)):
        if allowed[s] and _admits(codes[s], observation):
            out[count] = s
            count += 1
    return count


@inner
def _successors(
    now: NDArray[np.int32],
    action: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    codes: NDArray[Any],
    observation: NDArray[Any],
    mark: NDArray[np.bool_],
    out: NDArray[np.int32],
) -> int:
    """Fill out with the states that can follow and admit an observation, in order; return how many."""
    n_states = len(codes)
    count = 0
    for i in range(len(now)):
        row = action * n_states + now[i]
        for k in range(indptr[row], indptr[row + 1]):
            s = indices[k]
            if not mark[s]:
                mark[s] = True
                if _admits(codes[s], observation):
                    out[count] = s
                    count += 1
    for i in range(len(now)):
        row = action * n_states + now[i]
        for k in range(indptr[row], indptr[row + 1]):
            mark[indices[k]] = False
    out[:count].sort()
    return count


@inner
def _ends(states: NDArray[np.int32], terminal: NDArray[np.bool_]) -> int:
    """Return `ENDED` if all states are terminal, `GOING_ON` if none is, 0 if some are or there is no state."""
    count = 0
    for i in range(len(states)):
        count += terminal[states[i]]
    if len(states) == 0:
        return 0
    return ENDED if count == len(states) else GOING_ON if count == 0 else 0


@inner
def _new_kept(n_states: int, n_observations: int, most_sets: int, most_states: int) -> _Kept:
    # At least what one row needs, or it would be tried for ever.
    max_sets, max_keys = max(most_sets, 8), max(4 * most_sets, 8)
    return _Kept(
        np.empty(max(most_states, 4 * n_states), dtype=np.int32),
        np.zeros(max_sets + 2, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full(_SLOTS_PER_KEY * max_sets, -1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full(_SLOTS_PER_KEY * max_keys, -1, dtype=np.int64),
        np.empty(_SLOTS_PER_KEY * max_keys, dtype=np.int64),
        np.full(n_observations, -1, dtype=np.int64),
        np.full(n_observations, -1, dtype=np.int64),
        np.full(max_sets + 1, _UNKNOWN, dtype=np.uint8),
    )


@inner
def _forget_all_but(kept: _Kept, current: int) -> int:
    """Forget everything but one set, and return its new number; −1 stands for no set."""
    now = kept.pool[kept.start[current] : kept.start[current + 1]].copy() if current >= 0 else kept.pool[:0]
    kept.used[0] = 0
    kept.n_keys[0] = 0
    kept.slots[:] = -1
    kept.key_of[:] = -1
    kept.any_set[:] = -1
    kept.first_set[:] = -1
    kept.ends[:] = _UNKNOWN
    return _intern(now, kept.pool, kept.start, kept.used, kept.slots) if current >= 0 else -1


@inner
def _is_empty(kept: _Kept, number: int) -> bool:
    return kept.start[number] == kept.start[number + 1]


@inner
def _set_after(
    moves: PossibleMoves,
    kept: _Kept,
    current: int,
    action: int,
    z: int,
    observation: NDArray[Any],
    mark: NDArray[np.bool_],
    scratch: NDArray[np.int32],
) -> int:
    """Return the set that follows a set, an action and observation z, −1 if there is no room for it."""
    n_actions = (len(moves.indptr) - 1) // len(moves.codes)
    key = (current * n_actions + action) * len(kept.any_set) + z
    slot = (key * 7046029254386353131 & 0x7FFFFFFFFFFFFFFF) % len(kept.key_of)
    while kept.key_of[slot] >= 0 and kept.key_of[slot] != key:
        slot = (slot + 1) % len(kept.key_of)
    if kept.key_of[slot] < 0:
        now = kept.pool[kept.start[current] : kept.start[current + 1]]
        count = _successors(now, action, moves.indptr, moves.indices, moves.codes, observation, mark, scratch)
        after = _intern(scratch[:count], kept.pool, kept.start, kept.used, kept.slots)
        if after < 0 or kept.n_keys[0] >= len(kept.key_of) // _SLOTS_PER_KEY:
            return -1
        kept.key_of[slot] = key
        kept.next_of[slot] = after
        kept.n_keys[0] += 1
    return kept.next_of[slot]


@kernel
def follow_histories(
    seen: NDArray[np.int64],
    actions: NDArray[Any],
    begins: NDArray[np.int8],
    observations: NDArray[Any],
    moves: PossibleMoves,
    sizes: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Fill out with what is wrong with each row (`NO_STATE`, …) and whether the episode must or cannot be over.

    After a row that is impossible, everything that its observation allows counts as possible. Row r shows
    observations[seen[r]] and follows row r − 1 by its action where begins[r] is 0. `sizes` has the most sets to keep
    and the most states in all of them.
    """
    n_states = len(moves.codes)
    kept = _new_kept(n_states, len(observations), sizes[0], sizes[1])
    everything = np.ones(n_states, dtype=np.bool_)
    scratch = np.empty(n_states, dtype=np.int32)
    mark = np.zeros(n_states, dtype=np.bool_)
    current: int = -1
    row = 0
    while row < len(seen):
        z = seen[row]
        flag = 0
        # The set of all states that admit z, which is where to go on after a conflict.
        if kept.any_set[z] < 0:
            count = _admitted(moves.codes, observations[z], everything, scratch)
            kept.any_set[z] = _intern(scratch[:count], kept.pool, kept.start, kept.used, kept.slots)
        found = kept.any_set[z]
        full = found < 0
        if not full and _is_empty(kept, found):
            flag = NO_STATE
        elif not full and begins[row] == FIRST:
            if kept.first_set[z] < 0:
                count = _admitted(moves.codes, observations[z], moves.initial, scratch)
                kept.first_set[z] = _intern(scratch[:count], kept.pool, kept.start, kept.used, kept.slots)
            first = kept.first_set[z]
            full = first < 0
            if not full and _is_empty(kept, first):
                flag = NO_START
            elif not full:
                found = first
        elif not full and begins[row] == 0 and not _is_empty(kept, current):
            after = _set_after(moves, kept, current, actions[row - 1], z, observations[z], mark, scratch)
            full = after < 0
            if not full and _is_empty(kept, after):
                flag = CONFLICT
            elif not full:
                found = after
        if full:
            current = _forget_all_but(kept, current)
            continue
        current = found
        if kept.ends[current] == _UNKNOWN:
            kept.ends[current] = _ends(
                kept.pool[kept.start[current] : kept.start[current + 1]], moves.terminal
            )
        out[row] = flag | kept.ends[current]
        row += 1
