"""Logged rewards as evidence on the state, where the reward is a known function.

A step from s by a to s′ that would pay something else than was logged is ruled out. That takes a reward without luck in
it: a function of s, a and s′.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.learn.joint.layout import Layout, Prepared, prepare
from missmdp.learn.joint.rewards import n_arguments, rewards_before
from missmdp.model.probabilities import call, number
from missmdp.words import count

_CLOSE = 1e-6
"""How far a logged reward may be from the function's, as a share."""


def prepare_with_rewards(
    log: Dataset, blocks: Sequence[Sequence[str]] | None, reward: Callable[..., Any], *, ends: bool
) -> Prepared:
    """Return a log that is ready to be learned from, in which steps pay what was logged.

    Raises
    ------
    DataError
        If no state that fits what was seen would have paid what was logged.
    """
    before = rewards_before(log)
    some = ~np.isnan(before)
    values, number_of = np.unique(before[some], return_inverse=True)
    paid = np.full(log.n_steps, -1)
    paid[some] = number_of
    prepared = prepare(log, blocks, ends=ends, paid=paid)
    layout = prepared.histories.layout
    agrees = _agreement(layout, values, reward, log.action_names)
    _check(prepared, log, agrees, before)
    made = replace(layout, agrees=agrees)
    return replace(prepared, histories=replace(prepared.histories, layout=made))


def _agreement(
    layout: Layout, values: NDArray[np.float64], reward: Callable[..., Any], actions: Sequence[Any]
) -> NDArray[np.bool_]:
    """Return which steps pay what was logged, shape (B, H, H)."""
    space, steps = layout.states.space, layout.steps
    with_next = n_arguments(reward) == 3
    known: dict[tuple[int, ...], float] = {}

    def pays(*step: int) -> float:
        if step not in known:
            given = (space.state(step[0]), actions[step[1]], *(space.state(s) for s in step[2:]))
            shown = "reward({!r}, {!r}, {!r})" if with_next else "reward({!r}, {!r})"
            known[step] = number(call(reward, "reward", *given), shown, *given)
        return known[step]

    agrees = np.ones(layout.shape, dtype=np.bool_)
    for block in np.flatnonzero(steps.paid >= 0):
        logged, action = values[steps.paid[block]], int(steps.action[block])
        states, after = layout.state_of[steps.before[block]], layout.state_of[steps.after[block]]
        if with_next:
            paid = np.array([[pays(int(s), action, int(t)) for t in after] for s in states])
        else:
            paid = np.array([[pays(int(s), action)] for s in states])
        agrees[block] = np.abs(paid - logged) <= _CLOSE * (1.0 + abs(logged))
    return agrees


def _check(prepared: Prepared, log: Dataset, agrees: NDArray[np.bool_], before: NDArray[np.float64]) -> None:
    """Raise `DataError` if a logged reward rules out all that fits what was seen before and after it."""
    seen, block, _ = prepared.rows
    shown = prepared.histories.shown
    rows = np.flatnonzero(~np.isnan(before))
    kinds, kind_of = np.unique(
        np.stack([seen[rows - 1], seen[rows], block[rows]]), axis=1, return_inverse=True
    )
    parts = [shown.hidden[begin:end] for begin, end in pairwise(shown.start.tolist())]
    possible = np.zeros(kinds.shape[1], dtype=np.bool_)
    for i in range(kinds.shape[1]):
        first, then, own = map(int, kinds[:, i])
        possible[i] = agrees[own][parts[first]][:, parts[then]].any()
    wrong: NDArray[np.int64] = rows[~possible[kind_of.reshape(-1)]]
    if len(wrong) == 0:
        return
    episode = int((log.offsets <= wrong[0]).sum()) - 1
    step = int(wrong[0]) - int(log.offsets[episode]) - 1
    raise DataError(
        f"{count(len(wrong), 'logged reward')} cannot be what reward=… pays, whatever the missing values were; the "
        f"first is {before[wrong[0]]:g} in episode {episode}, step {step} (both counted from 0). Rewards with luck in "
        "them are no evidence: leave out reward_evidence"
    )
