"""What is deployed of a POMCP policy: it keeps a belief, and searches before every action."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import EXPECTED, NOT_SEEN, Belief, Tracker
from missmdp._kernels.pomcp.deciding import Mind, perceive, think
from missmdp._kernels.pomcp.search import decided, plant
from missmdp._kernels.random import episode_key
from missmdp.data.simulation import seen_codes
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP, Labels
from missmdp.plan.acting import EVENTS, compile_tracker
from missmdp.plan.agent import NOTHING, CountsFallbacks, check_first

if TYPE_CHECKING:
    from missmdp.plan.pomcp.solver import POMCPPolicy

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
    stop: NDArray[np.uint8] | None = None,
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
    stop
        One number; where another thread sets it to 1, the search ends, and the decision is good for nothing.
    """
    done, collapsed = perceive(policy.generative, tracker, own_number, mind, key, step, last, seen)
    queries = _search(policy, mind, key, step, stop)
    return Decision(int(decided(policy.generative, mind.tree)), int(done), bool(collapsed), queries)


def make_ready(policy: POMCPPolicy, mind: Mind, tracker: Tracker, own_number: NDArray[np.int64]) -> None:
    """Compile or load the kernels, before any clock starts."""
    model, key = policy.generative, np.uint64(0)
    perceive(model, tracker, own_number, mind, key, 0, 0, NOT_SEEN)
    plant(model, mind.tree)
    think(model, policy.rules, mind, key, 0, 0, 0)
    decided(model, mind.tree)


def _search(
    policy: POMCPPolicy, mind: Mind, key: np.uint64, step: int, stop: NDArray[np.uint8] | None
) -> int:
    """Grow a new tree; return how many simulations were asked for. What they do does not depend on the calls."""
    model, rules, chosen = policy.generative, policy.rules, policy.options
    plant(model, mind.tree)
    if chosen.timeout is not None:
        think(model, rules, mind, key, step, 0, 0)  # compiled before the clock starts
    began = time.perf_counter()
    queries = 0
    while queries < chosen.tree_queries and not (stop is not None and stop[0]):
        count = min(chosen.at_once, chosen.tree_queries - queries)
        think(model, rules, mind, key, step, queries, count)
        queries += count
        if chosen.timeout is not None and time.perf_counter() - began >= chosen.timeout:
            break
    return queries


def warn_of_impossible(observation: Any, when: str, kind: str) -> None:
    """Log that an observation cannot be, and what was done."""
    _log.warning(
        "the observation %r has probability zero %s under the model that the policy was made for (%s); "
        "the agent continues and counts such observations",
        observation,
        when,
        kind,
    )


def own_numbers(own: MissMDP | POMDP, model: MissMDP | POMDP) -> NDArray[np.int64]:
    """Return the number in a policy's own model of each observation of a model, −1 where it has none; shape (Z,)."""
    if isinstance(own, MissMDP):
        assert isinstance(model, MissMDP)
        return _numbers(own, seen_codes(model))
    return np.arange(own.n_observations, dtype=np.int64)


def _numbers(own: MissMDP, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    features = own.space.features
    ranks, wanted = features.rank(seen_codes(own)), features.rank(codes)
    place = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    return np.where(ranks[place] == wanted, place, -1).astype(np.int64)


class ObservationReader:
    """What users say they saw → numbers, and a tracker that knows them.

    The tracker's observations are those of the policy's own model, and one more, for what that model never shows;
    what that one is, is written into the tracker when it is seen.
    """

    def __init__(self, own: MissMDP | POMDP) -> None:
        self._own = own
        tracker, numbers = compile_tracker(own, own), own_numbers(own, own)
        if isinstance(own, MissMDP):
            unknown = np.zeros((1, tracker.observation_codes.shape[1]), dtype=np.int64)
            tracker = tracker._replace(
                seen_start=np.append(tracker.seen_start, tracker.seen_start[-1]),
                observation_codes=np.concatenate([tracker.observation_codes, unknown]),
            )
            numbers = np.append(numbers, -1)
        self._labels = None if isinstance(own, MissMDP) else Labels(own.observations, "observation")
        self.tracker: Tracker = tracker
        self.own_numbers: NDArray[np.int64] = numbers

    def number(self, observation: Any) -> int:
        """Return the tracker's number of an observation; raise `ModelError` for values that the model lacks."""
        if isinstance(self._own, MissMDP):
            codes = np.array([self._own.space.features.encode_observation(observation)])
            number = int(_numbers(self._own, codes)[0])
            if number < 0:
                number = len(self.own_numbers) - 1
                self.tracker.observation_codes[number] = codes[0]
            return number
        assert self._labels is not None
        return self._labels.index(observation)

    def shown(self, observation: Any) -> Any:
        """Return an observation as messages show it."""
        if isinstance(self._own, MissMDP):
            features = self._own.space.features
            return features.decode_observation(features.encode_observation(observation))
        return observation


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


class SearchingAgent(CountsFallbacks):
    """An agent that tracks a belief and searches before every action; how it searches, its class says.

    Parameters
    ----------
    model
        The model under which the belief is tracked.
    actions
        The names of the actions.
    words
        The seed as `seed_words` gives it. The agent's n-th episode draws with `episode_key(words, first_episode + n)`.
    first_episode
        The number of its first episode.
    """

    def __init__(
        self,
        model: MissMDP | POMDP,
        actions: tuple[Any, ...],
        words: NDArray[np.uint64],
        first_episode: int,
    ) -> None:
        super().__init__()
        self._actions = actions
        self._n_states = model.n_states
        self._observe_initial = isinstance(model, MissMDP) or model.observe_initial
        self._reader = ObservationReader(model)
        self._words = words
        self._episode = first_episode - 1
        self._step = 0
        self._action: int | None = None

    def _decide(self, key: np.uint64, step: int, last: int, seen: int) -> tuple[int, int]:
        """Return the action and what the tracker did with the observation."""
        raise NotImplementedError

    def _belief(self) -> Belief:
        raise NotImplementedError

    @property
    def exact_belief(self) -> NDArray[np.float64]:
        """The belief by Bayes' rule under the policy's model, shape (S,)."""
        self._decided()
        belief = self._belief()
        size = int(belief.size[0])
        out = np.zeros(self._n_states)
        out[belief.state[:size]] = belief.weight[:size]
        return out

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._action is None else self._actions[self._action]

    @property
    def last_index(self) -> int:
        """The index of the action that was returned last."""
        return self._decided()

    def reset(self, observation: Any = NOTHING) -> Any:
        """Start an episode and return the first action.

        Parameters
        ----------
        observation
            The first observation; to be left out for models that act first (`observe_initial` is False).
        """
        check_first(observation, observe_initial=self._observe_initial)
        seen = self._reader.number(observation) if self._observe_initial else NOT_SEEN
        self._episode += 1
        self._step = 0
        return self._act(seen, 0, observation, "as the first observation")

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        last = self.last_index
        seen = self._reader.number(observation)
        self._step += 1
        return self._act(seen, last, observation, f"after the action {self.last_action!r}")

    def took(self, action: Any) -> None:
        """Say that another action was taken than the one returned last; the belief goes on from there."""
        self._decided()
        self._action = Labels(self._actions, "action").index(action)

    def _decided(self) -> int:
        if self._action is None:
            raise ModelError("the episode has not started: call reset first")
        return self._action

    def _act(self, seen: int, last: int, observation: Any, when: str) -> Any:
        key = np.uint64(episode_key(self._words, self._episode))
        action, done = self._decide(key, self._step, last, seen)
        if done != EXPECTED:
            kind = EVENTS[done]
            if not self.impossible:
                warn_of_impossible(self._reader.shown(observation), when, kind)
            self._fallbacks[kind] += 1
        self._action = action
        return self.last_action


class POMCPAgent(SearchingAgent):
    """An agent that believes by particles, or exactly, and takes the action that a tree search finds best.

    Observations, and what is done on those of probability zero under the policy's model, are those of the agents
    of α-vector policies (`AlphaVectorAgent`); no error is raised. Where all particles are
    in terminal states, the episode is over, and the first action is returned.

    Parameters
    ----------
    policy
        The policy.
    words, first_episode
        Where it draws from; see `SearchingAgent`.
    """

    def __init__(self, policy: POMCPPolicy, words: NDArray[np.uint64], *, first_episode: int = 0) -> None:
        super().__init__(policy.model, policy.actions, words, first_episode)
        self.policy = policy
        self._mind = policy.new_mind()
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
        """How often no particle survived, and all were drawn again from the exact belief, since the agent was made."""
        return self._collapses

    def _belief(self) -> Belief:
        return self._mind.belief

    def _decide(self, key: np.uint64, step: int, last: int, seen: int) -> tuple[int, int]:
        reader = self._reader
        made = decide(self.policy, self._mind, reader.tracker, reader.own_numbers, key, step, last, seen)
        self._collapses += made.collapsed
        self._queries = made.queries
        return made.action, made.done
