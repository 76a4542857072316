"""Episodes of agents, step by step in Python: for policies that cannot simulate themselves in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from missmdp._kernels.random import episode_key
from missmdp._kernels.simulator import Simulation, first_state, next_state, seen_as
from missmdp.data.rollout import seed_words
from missmdp.model.labels import Labels
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.model.pomdp import POMDP

__all__ = ["AgentEpisode", "AgentSimulator"]


class AgentEpisode(NamedTuple):
    """What happened, as indices. There is one action fewer than there are states and observations."""

    observations: list[int]
    states: list[int]
    actions: list[int]


class AgentSimulator:
    """Runs one new agent of a policy per episode.

    An agent's own seed follows from the seed and the number of the episode. In a POMDP that acts first, agents are
    reset without an observation.
    """

    def __init__(self, policy: Policy, model: MissMDP | POMDP, simulation: Simulation, seed: int) -> None:
        self._policy = policy
        self._model: Any = model
        self._simulation = simulation
        self._seed, self._words = seed_words(seed)
        if isinstance(model, MissMDP):
            self._shown: Sequence[Any] = model.missingness.occurring().observations
            self._action_index = model.mdp.action_index
        else:
            self._shown = model.observations
            self._action_index = Labels(model.actions, "action").index
        self._acts_first = isinstance(model, POMDP) and not model.observe_initial

    def episode(self, number: int, decisions: int) -> AgentEpisode:
        """Return an episode with at most that many decisions."""
        simulation, key = self._simulation, np.uint64(episode_key(self._words, number))
        own_seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        agent: Any = self._policy.agent(self._model, seed=own_seed)
        state, action = first_state(simulation, key), 0
        episode = AgentEpisode([], [], [])
        while True:
            step = len(episode.states)
            episode.states.append(state)
            episode.observations.append(seen_as(simulation, key, step, state, action))
            if step == decisions or simulation.terminal[state]:
                return episode
            if step == 0 and self._acts_first:
                chosen = agent.reset()
            else:
                chosen = (agent.step if step else agent.reset)(self._shown[episode.observations[-1]])
            action = self._action_index(chosen)
            episode.actions.append(action)
            state = next_state(simulation, key, step + 1, state, action)
