"""Policies as α-vectors: what exact and point-based solvers return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.errors import ModelError
from missmdp.model.given import probability_pairs
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP, Labels
from missmdp.model.probabilities import as_floats, checked_distribution
from missmdp.plan.components import ComponentVectors
from missmdp.plan.interface import check_acts_in, check_interface
from missmdp.plan.value_function import ValueFunction

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.agent import AlphaVectorAgent
    from missmdp.plan.explain import Explanation
    from missmdp.plan.graph import PolicyGraph

__all__ = ["AlphaVectorPolicy"]

Belief = ArrayLike | Mapping[Any, float]
"""A distribution over states: an array of shape (S,), or {state: probability}."""


class AlphaVectorPolicy:
    """A policy that acts on the belief, by α-vectors.

    An α-vector is the value of a plan, state by state, with the plan's first action. At a belief the policy
    takes the action of the vector of highest expected value. Vectors belong to *components*: sets of
    states that some observation can leave undecided. After any observation the belief is inside one
    component, terminal states aside, and the best of that component's vectors decides. A belief that spans components
    (before the first observation, or one that somebody made up) is decided by a one-step lookahead.

    Parameters
    ----------
    model
        The model that the policy was made for; agents track the belief under it.
    components
        The vectors of each component. Components are disjoint and together hold all states that are not terminal;
        terminal states are in none and have value 0.
    observe_initial
        Whether an observation comes before the first action; by default as the model's POMDP says, which is
        True for miss-MDPs.

    Attributes
    ----------
    model : MissMDP or POMDP
        The model.
    pomdp : POMDP
        The model as solvers see it.
    components : tuple of ComponentVectors
        The vectors.
    observe_initial : bool
        Whether an observation comes before the first action.
    """

    def __init__(
        self,
        model: MissMDP | POMDP,
        components: Sequence[ComponentVectors],
        *,
        observe_initial: bool | None = None,
    ) -> None:
        if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"expected a MissMDP or a POMDP, got {type(model).__name__}")
        self.model = model
        self.pomdp: POMDP = model.to_pomdp() if isinstance(model, MissMDP) else model
        self.observe_initial: bool = (
            self.pomdp.observe_initial if observe_initial is None else observe_initial
        )
        self.value_function = ValueFunction(self.pomdp, components)

    def __repr__(self) -> str:
        return f"AlphaVectorPolicy({self.n_vectors} vectors, {len(self.components)} components, for {self.model!r})"

    @property
    def components(self) -> tuple[ComponentVectors, ...]:
        """The vectors of each component."""
        return self.value_function.components

    @property
    def n_vectors(self) -> int:
        """The number of vectors in all components."""
        return self.value_function.n_vectors

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return tuple(self.pomdp.actions)

    def action(self, belief: Belief) -> Any:
        """Return the action at a belief; where everything has ended, the first of all actions."""
        return self.pomdp.actions[self.value_function.decide(self.checked_belief(belief)).action]

    def value(self, belief: Belief) -> float:
        """Return V(b): the best vector's value, or the lookahead's where the belief spans components."""
        return self.value_function.decide(self.checked_belief(belief)).value

    def action_values(self, belief: Belief) -> dict[Any, float]:
        """Return every action's one-step lookahead, ρ(b, a) + γ Σ_z P(z | b, a) V(τ(b, a, z)).

        The lookahead may be better than the vectors: its best action can differ from `action`, and its best
        value is then the higher one.
        """
        values = self.value_function.action_values(self.checked_belief(belief))
        return dict(zip(self.pomdp.actions, values.tolist(), strict=True))

    @cached_property
    def initial_value(self) -> float:
        """The value at the start: expected over the first observation, or V(b₀) where the policy acts first."""
        if self.observe_initial:
            return self.value_function.outcomes(self.pomdp.initial, 0).total
        return self.value_function.decide(self.pomdp.initial).value

    def agent(self, model: MissMDP | POMDP | None = None, *, seed: int | None = None) -> AlphaVectorAgent:
        """Return a new agent, which tracks the belief under the policy's own model.

        Parameters
        ----------
        model
            What the agent will act in, if somebody wants to say. It may differ from the policy's model in its
            probabilities, as the true model differs from a learned one, but not in its features and actions.
        seed
            Not needed: the agent does nothing at random.
        """
        from missmdp.plan.agent import AlphaVectorAgent

        if model is not None:
            check_interface(self.model, model)
        return AlphaVectorAgent(self)

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model, for `evaluate`; see `BulkPolicy`."""
        from missmdp.plan.alpha_episodes import alpha_runner

        check_acts_in(self.model, self.observe_initial, model)
        return alpha_runner(
            self.value_function,
            self.model,
            model,
            simulation,
            words,
            horizon,
            observe_initial=self.observe_initial,
        )

    def explain(self, belief: Belief, *, most: int = 5) -> Explanation:
        """Return what the policy does at a belief and why, to be printed.

        Parameters
        ----------
        belief
            A distribution over states, such as an agent's `belief`.
        most
            How many states and next observations to list at most.
        """
        from missmdp.plan.explain import explain

        return explain(self, self.checked_belief(belief), most=most)

    def graph(
        self, *, max_nodes: int = 50, depth: int | None = None, min_probability: float = 1e-3
    ) -> PolicyGraph:
        """Return the policy as a graph of decisions, for policies small enough to look at; see `PolicyGraph`.

        Parameters
        ----------
        max_nodes
            Stop adding nodes after this many.
        depth
            Follow the policy for this many steps; by default until nothing new comes.
        min_probability
            Leave out observations that are less likely than this where they are made.
        """
        from missmdp.plan.graph import policy_graph

        return policy_graph(self, max_nodes=max_nodes, depth=depth, min_probability=min_probability)

    def save(self, path: str | Path) -> None:
        """Save the policy with its model, such as `ward.mmpolicy`: arrays and JSON, no pickle.

        An agent can be deployed from the file alone. Labels of a POMDP must be strings, numbers, booleans or
        tuples of these.
        """
        from missmdp.plan.files import save_policy

        save_policy(self, path)

    @classmethod
    def load(cls, path: str | Path) -> AlphaVectorPolicy:
        """Return the policy in a file that `save` wrote, with its model.

        Raises
        ------
        FormatError
            If the file is no such file, damaged, or from a newer version.
        """
        from missmdp.plan.files import load_policy

        return load_policy(path)

    def checked_belief(self, belief: Belief) -> NDArray[np.float64]:
        """Return a belief as an array, shape (S,); raise `ModelError` if it is no distribution over states."""
        if isinstance(belief, Mapping):
            array = np.zeros(self.pomdp.n_states)
            for state, probability in probability_pairs(belief, "the belief"):
                array[self._state_index(state)] += probability
        else:
            array = as_floats(belief, "a belief")
        if array.shape != (self.pomdp.n_states,):
            raise ModelError(f"a belief must have shape ({self.pomdp.n_states},), got {array.shape}")
        return checked_distribution(array, "the belief", self.pomdp.states.__getitem__)

    def _state_index(self, state: Any) -> int:
        if isinstance(self.model, MissMDP):
            return self.model.space.index(state)
        return self._state_labels.index(state)

    @cached_property
    def _state_labels(self) -> Labels:
        return Labels(self.pomdp.states, "state")
