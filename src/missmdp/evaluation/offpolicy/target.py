"""With which probabilities a policy does what was done, given the histories in a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.errors import DataError, ModelError
from missmdp.evaluation.offpolicy.decisions import Decisions, actions_of, features_of, stand_in
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy, Policy
from missmdp.model.pomdp import Labels
from missmdp.model.probabilities import checked_distribution, number
from missmdp.progress import show_progress

_STREAM = 0x0FF
"""The draws of agents here are none of those that made a log, whatever its seed."""


_LARGEST_RANK = 2**62
"""Of rows that are numbered by a mixed radix."""


class Choices(NamedTuple):
    """What a policy would do at the decisions of a log."""

    probabilities: NDArray[np.float64]
    """P(action | history), shape (D, A); rows that are not `known` are 0."""
    known: NDArray[np.bool_]
    """Whether the policy could be followed so far, shape (D,)."""
    drawn: bool = False
    """Whether some rows are what one agent did, whose policy may draw actions."""
    impossible: int = 0
    """How many observations the policy's own model excludes."""

    def of(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of one action at each decision, shape (D,)."""
        return self.probabilities[np.arange(len(actions)), actions]


def choices(
    policy: Policy,
    log: Dataset,
    decisions: Decisions,
    *,
    model: MissMDP | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Choices:
    """Return what a policy would do at the decisions of a log.

    A memoryless policy is asked for its probabilities. Any other makes an agent for each episode. The agent is told
    what was done if it can be (`took`). Then its `probabilities` count, if it has any, and otherwise the action that it
    returns. An agent that cannot be told is followed up to where it disagrees with the log.
    """
    if isinstance(policy, MemorylessPolicy):
        return _memoryless(policy, log, decisions, model or stand_in(log))
    return _followed(policy, log, decisions, model, seed, progress)


def distinct(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct rows of a table, and which of them each row is."""
    if not len(codes):
        return codes, np.zeros(0, dtype=np.int64)
    low = codes.min(axis=0).astype(np.int64)
    sizes = [int(size) for size in codes.max(axis=0).astype(np.int64) - low + 1]
    if math.prod(sizes) >= _LARGEST_RANK:
        rows, label = np.unique(codes, axis=0, return_inverse=True)
        return rows, label.reshape(-1).astype(np.int64)
    # One number per row is sorted much faster than rows are.
    rank = np.zeros(len(codes), dtype=np.int64)
    for column, first, size in zip(codes.T, low.tolist(), sizes, strict=True):
        rank = rank * size + (column - first)
    _, place, label = np.unique(rank, return_index=True, return_inverse=True)
    return codes[place], label.reshape(-1).astype(np.int64)


def _memoryless(policy: MemorylessPolicy, log: Dataset, decisions: Decisions, model: MissMDP) -> Choices:
    rows, label = distinct(log.observations[decisions.rows])
    n_actions, decode = len(actions_of(log)), features_of(log).decode_observation
    table = np.array([policy.probabilities(decode(row), model) for row in rows]).reshape(-1, n_actions)
    return Choices(table[label], np.ones(len(label), dtype=np.bool_))


class _Asked:
    """One agent, which is shown a recorded episode."""

    def __init__(self, agent: Any, actions: tuple[Any, ...]) -> None:
        self._agent = agent
        self._actions = actions
        self._labels = Labels(actions, "action")
        self._took: Callable[[Any], None] | None = getattr(agent, "took", None)
        self._started = False

    def answer(self, observation: Any) -> tuple[int, NDArray[np.float64] | None]:
        """Return what the agent does next, and the probabilities with which it was drawn, if the agent says so."""
        chosen = (self._agent.step if self._started else self._agent.reset)(observation)
        self._started = True
        # Where the agent cannot be told what was done, what it has drawn decides how long it can be followed.
        given = getattr(self._agent, "probabilities", None) if self._took else None
        if not isinstance(given, Mapping):
            return self._labels.index(chosen), None
        out = np.zeros(len(self._actions))
        for action, weight in cast("Mapping[Any, float]", given).items():
            what = "the agent's probability of {!r}"
            out[self._labels.index(action)] += number(weight, what, action)
        return self._labels.index(chosen), checked_distribution(
            out, "the agent's probabilities", self._actions.__getitem__
        )

    def goes_on(self, chosen: int, done: int) -> bool:
        """Return whether the agent can be followed further, after it was told what was done."""
        if chosen == done:
            return True
        if self._took is None:
            return False
        self._took(self._actions[done])
        return True

    @property
    def impossible(self) -> int:
        return int(getattr(self._agent, "impossible", 0))


def _followed(
    policy: Policy,
    log: Dataset,
    decisions: Decisions,
    model: MissMDP | None,
    seed: int,
    progress: bool | None,
) -> Choices:
    actions, features = actions_of(log), features_of(log)
    rows, label = distinct(log.observations[decisions.rows])
    seen = [features.decode_observation(row) for row in rows]
    done = log.actions[decisions.rows]
    probabilities = np.zeros((len(label), len(actions)))
    known = np.zeros(len(label), dtype=np.bool_)
    drawn, impossible = False, 0
    own: object = getattr(policy, "model", None)
    if isinstance(own, MissMDP) and own.space.features.names != features.names:
        names = list(own.space.features.names)
        raise DataError(f"the policy was made for the features {names}; the log has {list(features.names)}")
    shown = None if own is not None else model or stand_in(log)
    seeds = np.random.SeedSequence([seed, _STREAM]).generate_state(decisions.episodes).tolist()
    with show_progress("Following the log", len(label), enabled=progress) as advance:
        for e in range(decisions.episodes):
            first, end = int(decisions.start[e]), int(decisions.start[e + 1])
            if first == end:
                continue
            asked = _Asked(_agent(policy, shown, seeds[e]), actions)
            for i in range(first, end):
                chosen, drew = asked.answer(seen[label[i]])
                known[i] = True
                drawn |= drew is None
                if drew is None:
                    probabilities[i, chosen] = 1.0
                else:
                    probabilities[i] = drew
                if not asked.goes_on(chosen, int(done[i])):
                    break
            impossible += asked.impossible
            advance(end - first)
    return Choices(probabilities, known, drawn, impossible)


def _agent(policy: Policy, model: MissMDP | None, seed: int) -> Any:
    agent: Any = policy.agent(model, seed=seed)
    if not callable(getattr(agent, "reset", None)) or not callable(getattr(agent, "step", None)):
        raise ModelError(f"the policy's agent() must return an agent with reset and step, got {agent!r}")
    return agent
