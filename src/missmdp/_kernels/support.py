"""Which states are possible along histories, as sets rather than beliefs.

The set of states that are possible after a history depends on the set before it, the action and the next
observation. Logs meet the same sets again and again, so each is kept once and each step is looked up; only
steps that are new are worked out. When what is kept is full, it is thrown away and filled again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["follow_histories"]

_SLOTS_PER_KEY = 2


@kernel
def _admits(state: NDArray[Any], observation: NDArray[Any]) -> bool:
    admits = True
    for i in range(len(observation)):
        admits &= observation[i] < 0 or observation[i] == state[i]
    return admits


@kernel
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
        if high - low == len(found) and (pool[low:high] == found).all():
            return number
        slot = (slot + 1) % len(slots)
    number = used[0]
    if number + 1 >= len(start) or start[number] + len(found) > len(pool):
        return -1
    slots[slot] = number
    pool[start[number] : start[number] + len(found)] = found
    start[number + 1] = start[number] + len(found)
    used[0] = number + 1
    return number


@kernel
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


@kernel
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


@kernel
def _ends(states: NDArray[np.int32], terminal: NDArray[np.bool_]) -> int:
    """Return 8 if all states are terminal, 16 if none is, 0 if some are or there is no state."""
    count = 0
    for i in range(len(states)):
        count += terminal[states[i]]
    if len(states) == 0:
        return 0
    return 8 if count == len(states) else 16 if count == 0 else 0


@kernel
def follow_histories(
    seen: NDArray[np.int64],
    actions: NDArray[Any],
    begins: NDArray[np.int8],
    observations: NDArray[Any],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    codes: NDArray[Any],
    initial: NDArray[np.bool_],
    terminal: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Fill out with what is wrong with each row: flags 1, 2, 4 (at most one of them), and 8, 16.

    1: no state admits the observation. 2: it is the first, and no initial state admits it. 4: no state that is
    possible so far can lead to it. 8: all possible states are terminal. 16: none of them is. After 1, 2 and 4
    everything that the observation allows counts as possible.

    Row r shows observations[seen[r]] and follows row r − 1 by its action where begins[r] is 0; it is the first of
    an episode where that is 1, and has nothing to follow where it is 2. Row a · S + s of the matrix (indptr,
    indices) has the successors of s under a. `sizes` has the most sets to keep and the most states in all of them.
    """
    n_states, n_observations = len(codes), len(observations)
    n_actions = (len(indptr) - 1) // n_states
    # At least what one row needs, or it would be tried for ever.
    max_sets, max_keys = max(sizes[0], 8), max(4 * sizes[0], 8)
    pool = np.empty(max(sizes[1], 4 * n_states), dtype=np.int32)
    start = np.zeros(max_sets + 2, dtype=np.int64)
    used = np.zeros(1, dtype=np.int64)
    slots = np.full(_SLOTS_PER_KEY * max_sets, -1, dtype=np.int64)
    key_of = np.full(_SLOTS_PER_KEY * max_keys, -1, dtype=np.int64)
    next_of = np.empty(_SLOTS_PER_KEY * max_keys, dtype=np.int64)
    n_keys = 0
    ends = np.full(max_sets + 1, 255, dtype=np.uint8)
    everything = np.ones(n_states, dtype=np.bool_)
    any_set = np.full(n_observations, -1, dtype=np.int64)
    first_set = np.full(n_observations, -1, dtype=np.int64)
    scratch = np.empty(n_states, dtype=np.int32)
    now = np.empty(n_states, dtype=np.int32)
    mark = np.zeros(n_states, dtype=np.bool_)
    current = -1
    row = 0
    while row < len(seen):
        z = seen[row]
        full = False
        flag = 0
        # The set of all states that admit z, which is where to go on after a conflict.
        if any_set[z] < 0:
            count = _admitted(codes, observations[z], everything, scratch)
            any_set[z] = _intern(scratch[:count], pool, start, used, slots)
            full = any_set[z] < 0
        found = any_set[z]
        if not full and start[found] == start[found + 1]:
            flag = 1
        elif not full and begins[row] == 1:
            if first_set[z] < 0:
                count = _admitted(codes, observations[z], initial, scratch)
                first_set[z] = _intern(scratch[:count], pool, start, used, slots)
                full = first_set[z] < 0
            if not full and start[first_set[z]] == start[first_set[z] + 1]:
                flag = 2
            elif not full:
                found = first_set[z]
        elif not full and begins[row] == 0 and start[current] < start[current + 1]:
            action = actions[row - 1]
            key = (current * n_actions + action) * n_observations + z
            slot = (key * 7046029254386353131 & 0x7FFFFFFFFFFFFFFF) % len(key_of)
            while key_of[slot] >= 0 and key_of[slot] != key:
                slot = (slot + 1) % len(key_of)
            if key_of[slot] < 0:
                count = _successors(
                    pool[start[current] : start[current + 1]],
                    action,
                    indptr,
                    indices,
                    codes,
                    observations[z],
                    mark,
                    scratch,
                )
                after = _intern(scratch[:count], pool, start, used, slots)
                full = after < 0 or n_keys >= max_keys
                if not full:
                    key_of[slot] = key
                    next_of[slot] = after
                    n_keys += 1
            if not full:
                after = next_of[slot]
                if start[after] == start[after + 1]:
                    flag = 4
                else:
                    found = after
        if full:
            # Forget everything but where we are, and do this row again.
            count = 0
            if current >= 0:
                count = start[current + 1] - start[current]
                now[:count] = pool[start[current] : start[current + 1]]
            used[0] = 0
            n_keys = 0
            slots[:] = -1
            key_of[:] = -1
            any_set[:] = -1
            first_set[:] = -1
            ends[:] = 255
            if current >= 0:
                current = _intern(now[:count], pool, start, used, slots)
            continue
        current = found
        if ends[current] == 255:
            ends[current] = _ends(pool[start[current] : start[current + 1]], terminal)
        out[row] = flag | ends[current]
        row += 1
