"""What is deployed of a POMCP policy: it keeps a belief, and searches before every action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import EXPECTED
from missmdp._kernels.pomcp.deciding import NOT_SEEN
from missmdp._kernels.random import episode_key
from missmdp.errors import ModelError
from missmdp.plan.agent import NOTHING, CountsFallbacks, check_first
from missmdp.plan.pomcp.deciding import decide, warn_of_impossible
from missmdp.plan.pomcp.observations import ObservationReader
from missmdp.plan.tracking import EVENTS

if TYPE_CHECKING:
    from missmdp.plan.pomcp.policy import POMCPPolicy

__all__ = ["POMCPAgent", "Search"]


@dataclass(frozen=True)
class Search:
    """What a search before one decision came to."""

    action: Any
    """The action that was taken: the one of highest mean."""
    action_values: dict[Any, float]
    """The mean return of each action; NaN for those never tried."""
    visits: dict[Any, int]
    """How many simulations began with each action."""
    queries: int
    """How many simulations were asked for, those that began in a terminal state included."""
    nodes: int
    """How many histories the tree held, the current one included."""

    @property
    def simulations(self) -> int:
        """How many simulations there were."""
        return sum(self.visits.values())


class POMCPAgent(CountsFallbacks):
    """An agent that believes by particles, or exactly, and takes the action that a tree search finds best.

    Observations, and what is done on those of probability zero under the policy's model, are those of the agents
    of α-vector policies (`AlphaVectorAgent`); no error is raised. Where all particles are
    in terminal states, the episode is over, and the first action is returned.

    Parameters
    ----------
    policy
        The policy.
    words
        The seed as `seed_words` gives it. The agent's n-th episode draws with `episode_key(words, first_episode + n)`.
    first_episode
        The number of its first episode.
    """

    def __init__(self, policy: POMCPPolicy, words: NDArray[np.uint64], *, first_episode: int = 0) -> None:
        super().__init__()
        self.policy = policy
        self._n_states = len(policy.generative.terminal)
        self._reader = ObservationReader(policy.model)
        self._mind = policy.new_mind()
        self._words = words
        self._episode = first_episode - 1
        self._step = 0
        self._action: int | None = None
        self._queries = 0
        self._collapses = 0

    def __repr__(self) -> str:
        return f"POMCPAgent({self.policy!r}, {self.collapses} collapses, {self.impossible} impossible observations)"

    @property
    def belief(self) -> NDArray[np.float64]:
        """The current distribution over states from which simulations start, shape (S,)."""
        particles = self._mind.particles
        if not len(particles.state):
            return self.exact_belief
        self._decided()
        size = int(particles.size[0])
        return np.bincount(particles.state[:size], minlength=self._n_states) / size

    @property
    def exact_belief(self) -> NDArray[np.float64]:
        """The belief by Bayes' rule under the policy's model, shape (S,)."""
        self._decided()
        belief = self._mind.belief
        size = int(belief.size[0])
        out = np.zeros(self._n_states)
        out[belief.state[:size]] = belief.weight[:size]
        return out

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._action is None else self.policy.actions[self._action]

    @property
    def last_index(self) -> int:
        """The index of the action that was returned last."""
        return self._decided()

    @property
    def search(self) -> Search:
        """The search behind the last action."""
        action = self.last_index
        actions, tree = self.policy.actions, self._mind.tree
        visits = tree.visits[: len(actions)]
        means = np.where(visits > 0, tree.value[: len(actions)], np.nan)
        return Search(
            action=actions[action],
            action_values=dict(zip(actions, means.tolist(), strict=True)),
            visits=dict(zip(actions, visits.tolist(), strict=True)),
            queries=self._queries,
            nodes=int(tree.size[0]),
        )

    @property
    def collapses(self) -> int:
        """How often no particle survived, and all were drawn anew from the exact belief, since the agent was made."""
        return self._collapses

    def reset(self, observation: Any = NOTHING) -> Any:
        """Start an episode and return the first action.

        Parameters
        ----------
        observation
            The first observation; to be left out for models that act first (`observe_initial` is False).
        """
        check_first(observation, observe_initial=self.policy.observe_initial)
        seen = self._reader.number(observation) if self.policy.observe_initial else NOT_SEEN
        self._episode += 1
        self._step = 0
        return self._act(seen, 0, observation, "as the first observation")

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        last = self.last_index
        seen = self._reader.number(observation)
        self._step += 1
        return self._act(seen, last, observation, f"after the action {self.last_action!r}")

    def _decided(self) -> int:
        if self._action is None:
            raise ModelError("the episode has not started: call reset first")
        return self._action

    def _act(self, seen: int, last: int, observation: Any, when: str) -> Any:
        made = decide(
            self.policy,
            self._mind,
            self._reader.tracker,
            self._reader.own_numbers,
            np.uint64(episode_key(self._words, self._episode)),
            self._step,
            last,
            seen,
        )
        self._collapses += made.collapsed
        if made.done != EXPECTED:
            kind = EVENTS[made.done]
            if not self.impossible:
                warn_of_impossible(self._reader.shown(observation), when, kind)
            self._fallbacks[kind] += 1
        self._action, self._queries = made.action, made.queries
        return self.last_action
