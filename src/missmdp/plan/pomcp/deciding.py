"""One decision, in calls of kernels that are short: between them the clock is looked at, and interrupts get through."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import Tracker
from missmdp._kernels.pomcp.deciding import Mind, perceive, think
from missmdp._kernels.pomcp.search import decided, plant

if TYPE_CHECKING:
    from missmdp.plan.pomcp.policy import POMCPPolicy

__all__ = ["Decision", "decide", "warn_of_impossible"]

_log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """What a decision came to."""

    action: int
    done: int
    """What the tracker did with the observation: `EXPECTED`, or the index in `EVENTS` of what it fell back on."""
    collapsed: bool
    """Whether no particle survived."""
    queries: int
    """How many simulations were asked for."""


def decide(
    policy: POMCPPolicy,
    mind: Mind,
    tracker: Tracker,
    own_number: NDArray[np.int64],
    key: np.uint64,
    step: int,
    last: int,
    seen: int,
) -> Decision:
    """Take in what was seen after the last action, and search.

    Parameters
    ----------
    policy, mind
        Who decides, and what it has in mind.
    tracker, own_number, seen
        The observation as the tracker numbers it, and what the policy's own model calls those numbers; see `perceive`.
    key, step, last
        The episode's key, how many decisions there were in it, and the last of their actions.
    """
    done, collapsed = perceive(policy.generative, tracker, own_number, mind, key, step, last, seen)
    queries = _search(policy, mind, key, step)
    return Decision(int(decided(policy.generative, mind.tree)), int(done), bool(collapsed), queries)


def _search(policy: POMCPPolicy, mind: Mind, key: np.uint64, step: int) -> int:
    """Grow a new tree; return how many simulations were asked for. What they do does not depend on the calls."""
    model, rules, chosen = policy.generative, policy.rules, policy.options
    plant(model, mind.tree)
    if chosen.max_time is not None:
        think(model, rules, mind, key, step, 0, 0)  # compiled before the clock starts
    began = time.perf_counter()
    queries = 0
    while queries < chosen.tree_queries:
        count = min(chosen.at_once, chosen.tree_queries - queries)
        think(model, rules, mind, key, step, queries, count)
        queries += count
        if chosen.max_time is not None and time.perf_counter() - began >= chosen.max_time:
            break
    return queries


def warn_of_impossible(observation: Any, when: str, kind: str) -> None:
    """Log that an observation cannot be, and what was done."""
    _log.warning(
        "the observation %r has probability zero %s under the model that the policy was made for (%s); "
        "the agent goes on and counts such observations",
        observation,
        when,
        kind,
    )
