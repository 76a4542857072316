"""Policies: what can be deployed, and the simple ones that need no memory.

A policy makes agents. An agent is given the first observation, then one observation per step, and answers
each with an action. Policies that look at the current observation alone also give a table of action
probabilities, which the simulator runs without leaving its kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_callable, checked_generator, checked_mapping
from missmdp.errors import ParameterError
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.probabilities import call, checked_distribution, number


@runtime_checkable
class Agent(Protocol):
    """One deployment of a policy, from the first observation of an episode to its end.

    An agent may also have a method `took(action)`, which says that another action was taken than the one returned
    last, and an attribute `probabilities`, {action: probability} of the draw that gave the action returned last.
    `off_policy_value` uses both.
    """

    def reset(self, observation: Any) -> Any:
        """Start an episode with its first observation and return the first action."""
        ...

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation."""
        ...


@runtime_checkable
class Policy(Protocol):
    """Anything that makes agents."""

    def agent(self, model: MissMDP | None = None, *, seed: int | None = None) -> Agent:
        """Return a new agent; `model` is for policies that do not bring one, `seed` for random ones."""
        ...


class ActionTable(NamedTuple):
    """Action probabilities by what is seen: state s under pattern k uses row[s, k] of `probabilities`."""

    row: NDArray[np.int32]
    """Shape (S, K)."""
    probabilities: NDArray[np.float64]
    """Shape (rows, A)."""


class MemorylessPolicy(ABC):
    """A policy that looks at the current observation only, or not even at that."""

    @abstractmethod
    def probabilities(self, observation: Any, model: MissMDP) -> NDArray[np.float64]:
        """Return P(action | observation), shape (A,)."""

    def table(self, model: MissMDP) -> ActionTable:
        """Return the action probabilities for everything that can be seen in a model."""
        seen = model.missingness.occurring()
        row = np.zeros(model.missingness.probabilities.shape, dtype=np.int32)
        row[seen.state, seen.pattern] = seen.place
        return ActionTable(row, np.array([self.probabilities(z, model) for z in seen.observations]))

    def agent(self, model: MissMDP | None = None, *, seed: int | None = None) -> Agent:
        """Return an agent for a model, which is needed for the names of the actions."""
        if model is None:
            problem = f"{type(self).__name__} does not know the actions: call agent(model)"
            raise ParameterError("model", model, "a MissMDP", problem)
        return _MemorylessAgent(self, checked_model(model), checked_generator(seed))


class _MemorylessAgent:
    def __init__(self, policy: MemorylessPolicy, model: MissMDP, random: np.random.Generator) -> None:
        self._policy = policy
        self._model = model
        self._random = random

    def step(self, observation: Any) -> Any:
        features = self._model.space.features
        seen = features.decode_observation(features.encode_observation(observation))
        cumulative = np.cumsum(self._policy.probabilities(seen, self._model))
        u: float = self._random.random() * cumulative[-1]
        chosen = int(np.searchsorted(cumulative, u, side="right"))
        return self._model.actions[chosen]

    reset = step


class BlindPolicy(MemorylessPolicy):
    """Draws actions with fixed probabilities, whatever it sees.

    Parameters
    ----------
    weights
        Action → probability; actions that are not named are never taken.
    """

    def __init__(self, weights: Mapping[Any, float]) -> None:
        self.weights = checked_mapping("weights", weights, "a mapping from action to probability")

    def __repr__(self) -> str:
        return f"BlindPolicy({self.weights!r})"

    def probabilities(self, observation: Any, model: MissMDP) -> NDArray[np.float64]:
        """Return P(action), shape (A,)."""
        return _action_probabilities(self.weights, model, repr(self))

    def table(self, model: MissMDP) -> ActionTable:
        """Return one row for everything."""
        row = np.zeros((model.n_states, model.missingness.n_patterns), dtype=np.int32)
        return ActionTable(row, self.probabilities(None, model)[None, :])


class UniformPolicy(BlindPolicy):
    """Draws every action with the same probability: the paper's π^rand."""

    def __init__(self) -> None:
        super().__init__({})

    def __repr__(self) -> str:
        return "UniformPolicy()"

    def probabilities(self, observation: Any, model: MissMDP) -> NDArray[np.float64]:
        """Return 1/|A| for every action, shape (A,)."""
        return np.full(model.n_actions, 1.0 / model.n_actions)


class ObservationPolicy(MemorylessPolicy):
    """Acts on the current observation only.

    Parameters
    ----------
    function
        Observation (a named tuple with None for missing) → an action, or {action: probability}.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = checked_callable("function", function, "a function from observation to action")

    def __repr__(self) -> str:
        return f"ObservationPolicy({getattr(self.function, '__name__', self.function)!s})"

    def probabilities(self, observation: Any, model: MissMDP) -> NDArray[np.float64]:
        """Return P(action | observation), shape (A,)."""
        chosen = call(self.function, "the policy", observation)
        if not isinstance(chosen, Mapping):
            chosen = {model.actions[model.mdp.action_index(chosen)]: 1.0}
        return _action_probabilities(
            cast("Mapping[Any, float]", chosen), model, f"the policy at {observation!r}"
        )


def _action_probabilities(weights: Mapping[Any, float], model: MissMDP, what: str) -> NDArray[np.float64]:
    array = np.zeros(model.n_actions)
    for action, weight in weights.items():
        array[model.mdp.action_index(action)] += number(weight, "{}: the probability of {!r}", what, action)
    return checked_distribution(array, what, model.actions.__getitem__)


def as_policy(policy: Policy | Callable[[Any], Any] | None) -> Policy:
    """Return a policy: itself, uniformly random for None, or a function of the observation made into one."""
    if policy is None:
        return UniformPolicy()
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    if callable(policy) and not isinstance(policy, type):
        return ObservationPolicy(policy)
    hint = "; its policy is .policy" if isinstance(getattr(policy, "policy", None), Policy) else ""
    expected = "a policy, which has agent(), or a function from observation to action"
    raise ParameterError("policy", policy, expected, f"expected {expected}; got {policy!r}{hint}")
