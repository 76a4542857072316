"""What is deployed of an online policy: it keeps the exact belief, and searches before every action."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import NOT_SEEN, Belief, Tracker, track
from missmdp._kernels.online.expanding import EXPANSIONS, NODES, SAMPLED
from missmdp._kernels.online.search import ROOT, grow
from missmdp._kernels.random import DRAW_SEARCH, bits
from missmdp.plan.online.search import Mind, calls
from missmdp.plan.pomcp.agent import Decision, SearchingAgent

if TYPE_CHECKING:
    from missmdp.plan.online.solver import OnlinePolicy


@dataclass(frozen=True)
class OnlineSearch:
    """What a search before one decision came to.

    `lower` and `upper` are bounds, for the exact belief of the agent and under the policy's model, up to rounding. With
    `exact` they come from the search. Otherwise a few states and observations stood for all in it: what it says of
    actions are estimates then, and the bounds are those that are known of every belief without a search.
    """

    action: Any
    """The action that was taken: the one with the highest `action_lower`, and of several the highest `action_upper`."""
    lower: float
    """The best policy earns at least this from the current belief on."""
    upper: float
    """No policy earns more from the current belief on."""
    exact: bool
    """Whether the search looked at everything that can happen on its way, so it gives bounds and not estimates."""
    action_lower: dict[Any, float]
    """What is earned by each action and the best afterwards, at least; an estimate of such a bound without `exact`."""
    action_upper: dict[Any, float]
    """The same from above."""
    expansions: int
    """How many beliefs were expanded; 0 where the belief holds only terminal states possible."""
    nodes: int
    """How many beliefs the tree held."""


def decide(
    policy: OnlinePolicy,
    mind: Mind,
    tracker: Tracker,
    own_number: NDArray[np.int64],
    key: np.uint64,
    step: int,
    last: int,
    seen: int,
    stop: NDArray[np.uint8] | None = None,
) -> Decision:
    """Take in what was seen after the last action, and search; the parameters are those of `pomcp.agent.decide`."""
    done = int(track(tracker, mind.belief, step, last, seen))
    expansions = _search(policy, mind, key, step, stop)
    return Decision(_decided(policy, mind), done, False, expansions)


def make_ready(policy: OnlinePolicy, mind: Mind, tracker: Tracker) -> None:
    """Compile or load the kernels, before any clock starts."""
    track(tracker, mind.belief, 0, 0, NOT_SEEN)
    _grow(policy, mind, np.uint64(0), 0)


def _grow(policy: OnlinePolicy, mind: Mind, lane: np.uint64, count: int) -> int:
    model, tree, depth = policy.bounded, mind.tree, policy.options.max_depth
    return int(grow(model, tree, mind.work, mind.belief, policy.limits, depth, lane, count))


def _search(
    policy: OnlinePolicy, mind: Mind, key: np.uint64, step: int, stop: NDArray[np.uint8] | None
) -> int:
    """Grow a new tree; return how many beliefs were expanded. What they are does not depend on the calls."""
    began = time.perf_counter()
    chosen, lane = policy.options, np.uint64(bits(key, step, DRAW_SEARCH))
    mind.tree.counters[EXPANSIONS] = 0
    done = 0
    while done < chosen.expansions and not (stop is not None and stop[0]):
        seconds = time.perf_counter() - began
        if chosen.timeout is not None and done > 0 and seconds >= chosen.timeout:
            break
        count = calls(done, seconds, chosen)
        made = _grow(policy, mind, lane, count)
        done += made
        if made < count and not (mind.is_full() and mind.make_room()):
            break
    return done


def _decided(policy: OnlinePolicy, mind: Mind) -> int:
    """Return the action of the highest lower bound, of several the highest upper bound, and else the first."""
    tree, n_actions = mind.tree, policy.bounded.n_actions
    if tree.counters[EXPANSIONS] == 0:
        return 0
    lower, upper = tree.edge_lower[:n_actions], tree.edge_upper[:n_actions]
    return int(np.lexsort((-np.arange(n_actions), upper, lower))[-1])


class OnlineAgent(SearchingAgent):
    """An agent that tracks the belief exactly and takes the action that a search finds best.

    Observations, and what is done on those of probability zero under the policy's model, are those of the agents
    of α-vector policies (`AlphaVectorAgent`); no error is raised. Where the belief holds nothing but terminal states
    possible, the first action is returned.

    Parameters
    ----------
    policy
        The policy.
    words, first_episode
        Where it draws from; see `SearchingAgent`.
    """

    def __init__(self, policy: OnlinePolicy, words: NDArray[np.uint64], *, first_episode: int = 0) -> None:
        super().__init__(policy.model, policy.actions, words, first_episode)
        self.policy = policy
        self._mind = policy.new_mind()
        make_ready(policy, self._mind, self._reader.tracker)

    def __repr__(self) -> str:
        return f"OnlineAgent({self.policy!r}, {self.impossible} impossible observations)"

    @property
    def belief(self) -> NDArray[np.float64]:
        """The belief by Bayes' rule under the policy's model, shape (S,)."""
        return self.exact_belief

    @property
    def search(self) -> OnlineSearch:
        """The search behind the last action."""
        action, actions, tree = self.last_index, self.policy.actions, self._mind.tree
        searched = tree.counters[EXPANSIONS] > 0
        edges = slice(0, len(actions) if searched else 0)
        exact = not tree.counters[SAMPLED]
        lower, upper = (tree.lower[ROOT], tree.upper[ROOT]) if exact else tree.known
        return OnlineSearch(
            action=actions[action],
            lower=float(lower),
            upper=float(upper),
            exact=exact,
            action_lower=dict(zip(actions, tree.edge_lower[edges].tolist(), strict=searched)),
            action_upper=dict(zip(actions, tree.edge_upper[edges].tolist(), strict=searched)),
            expansions=int(tree.counters[EXPANSIONS]),
            nodes=int(tree.counters[NODES]),
        )

    def _belief(self) -> Belief:
        return self._mind.belief

    def _decide(self, key: np.uint64, step: int, last: int, seen: int) -> tuple[int, int]:
        reader = self._reader
        made = decide(self.policy, self._mind, reader.tracker, reader.own_numbers, key, step, last, seen)
        return made.action, made.done
