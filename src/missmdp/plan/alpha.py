"""Policies as α-vectors: what exact and point-based solvers return, and how they are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.checks import checked_flag
from missmdp.errors import FormatError, ModelError
from missmdp.model.archive import (
    FLOATS,
    INTEGERS,
    Array,
    Schema,
    checked_fields,
    named_damage,
    read_archive,
    write_archive,
)
from missmdp.model.given import probability_pairs
from missmdp.model.missmdp import MissMDP, ModelMeta, model_arrays, model_from_parts, model_parts
from missmdp.model.pomdp import POMDP, Labels, PomdpMeta, pomdp_arrays, pomdp_from_parts, pomdp_parts
from missmdp.model.probabilities import as_floats, checked_distribution
from missmdp.plan.acting import check_acts_in, check_interface, checked_planning_model
from missmdp.plan.value_function import ComponentVectors, ValueFunction

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.agent import AlphaVectorAgent
    from missmdp.plan.explain import Explanation
    from missmdp.plan.graph import PolicyGraph

_MODEL = "model_"
"""Prefix of the model's arrays in a file, to keep them apart from the policy's."""

Belief = ArrayLike | Mapping[Any, float]
"""A distribution over states: an array of shape (S,), or {state: probability}."""


class AlphaVectorPolicy:
    """A policy that acts on the belief, by α-vectors.

    An α-vector is the value of a plan, state by state, with the plan's first action. At a belief, the policy takes
    the action of the vector with the highest expected value. Vectors belong to *components*: sets of states that
    some observation can leave undecided. After any observation the belief is inside one component, terminal states
    aside, and the best of that component's vectors decides. A belief that spans components (before the first
    observation, or made up by hand) is decided by a one-step lookahead.

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
        self.model = checked_planning_model(model)
        self.pomdp: POMDP = model.to_pomdp() if isinstance(model, MissMDP) else model
        self.observe_initial: bool = (
            self.pomdp.observe_initial
            if observe_initial is None
            else checked_flag("observe_initial", observe_initial)
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
        """Return the action at a belief; if the episode is over, the first action."""
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
            What the agent will act in, optional. It may differ from the policy's model in its probabilities, as the
            true model differs from a learned one, but not in its features and actions.
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
        from missmdp.plan.agent import alpha_runner

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
            The maximum number of states and next observations to list.
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
            Follow the policy for this many steps; by default until there is nothing new.
        min_probability
            Leave out observations that are less likely than this.
        """
        from missmdp.plan.graph import policy_graph

        return policy_graph(self, max_nodes=max_nodes, depth=depth, min_probability=min_probability)

    def save(self, path: str | Path) -> None:
        """Save the policy with its model, such as `ward.mmpolicy`: arrays and JSON, no pickle.

        An agent can be deployed from the file alone. Labels of a POMDP must be strings, numbers, booleans or
        tuples of these.
        """
        write_archive(path, POLICY_FILE.kind, *policy_parts(self))

    @classmethod
    def load(cls, path: str | Path) -> AlphaVectorPolicy:
        """Return the policy in a file that `save` wrote, with its model.

        Raises
        ------
        FormatError
            If the file is of another kind, damaged, or from a newer version.
        """
        meta, arrays = read_archive(path, POLICY_FILE)
        with named_damage(path):
            return policy_from_parts(meta, arrays)

    def checked_belief(self, belief: Belief) -> NDArray[np.float64]:
        """Return a belief as an array, shape (S,); raise `ModelError` if it is not a distribution over states."""
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


class PolicyMeta(msgspec.Struct):
    """What a file says of a policy besides its arrays."""

    model: dict[str, Any]
    model_kind: str
    observe_initial: bool


def policy_arrays(meta: PolicyMeta) -> dict[str, Array]:
    """Return what the arrays of a policy and its model must be, by name."""
    own = _checked_model_meta(meta)
    if isinstance(own, ModelMeta):
        arrays, n_states, most_states = model_arrays(own), "states", "states+1"
    else:
        arrays, n_states, most_states = pomdp_arrays(own), len(own.states), len(own.states) + 1
    return {_MODEL + name: array for name, array in arrays.items()} | {
        "block_states": Array(INTEGERS, ("entries of components",), 0, n_states),
        "block_sizes": Array(INTEGERS, ("components",), 1, most_states),
        "block_vectors": Array(INTEGERS, ("components",), 1, "vectors+1"),
        "vector_actions": Array(INTEGERS, ("vectors",), 0, len(own.actions)),
        "vector_values": Array(FLOATS, ("values",)),
    }


POLICY_FILE = Schema("policy", PolicyMeta, policy_arrays)


def policy_parts(policy: AlphaVectorPolicy) -> tuple[PolicyMeta, dict[str, NDArray[Any]]]:
    """Return a policy and its model as metadata and arrays, for an archive."""
    if isinstance(policy.model, MissMDP):
        kind, (meta, arrays) = "miss-MDP", model_parts(policy.model)
    else:
        kind, (meta, arrays) = "POMDP", pomdp_parts(policy.pomdp)
    components = policy.components
    empty = np.empty(0, dtype=np.int64)
    return PolicyMeta(cast("dict[str, Any]", msgspec.to_builtins(meta)), kind, policy.observe_initial), {
        **{_MODEL + name: array for name, array in arrays.items()},
        "block_states": np.concatenate([empty, *(component.states for component in components)]),
        "block_sizes": np.array([len(component.states) for component in components], dtype=np.int64),
        "block_vectors": np.array([len(component) for component in components], dtype=np.int64),
        "vector_actions": np.concatenate([empty, *(component.actions for component in components)]),
        "vector_values": np.concatenate(
            [np.empty(0), *(component.values.reshape(-1) for component in components)]
        ),
    }


def policy_from_parts(meta: PolicyMeta, arrays: Mapping[str, NDArray[Any]]) -> AlphaVectorPolicy:
    """Return the policy that `policy_parts` was given; call it inside `named_damage`."""
    parts = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
    own = _checked_model_meta(meta)
    model = model_from_parts(own, parts) if isinstance(own, ModelMeta) else pomdp_from_parts(own, parts)
    return AlphaVectorPolicy(model, _components(arrays), observe_initial=meta.observe_initial)


def _checked_model_meta(meta: PolicyMeta) -> ModelMeta | PomdpMeta:
    """Return what a file says of the policy's model."""
    match meta.model_kind:
        case "miss-MDP":
            return checked_fields(meta.model, ModelMeta)
        case "POMDP":
            return checked_fields(meta.model, PomdpMeta)
        case kind:
            raise FormatError(f"the policy is for {kind!r}, which this missmdp does not know")


def _components(arrays: Mapping[str, NDArray[Any]]) -> list[ComponentVectors]:
    sizes, counts = arrays["block_sizes"], arrays["block_vectors"]
    states, actions, values = arrays["block_states"], arrays["vector_actions"], arrays["vector_values"]
    expected = (sizes.sum(), counts.sum(), (sizes * counts).sum())
    if (len(states), len(actions), len(values)) != expected:
        raise FormatError("the sizes of its components do not match their content")
    return (
        [
            ComponentVectors(own_states, own_values.reshape(count, size), own_actions)
            for own_states, own_values, own_actions, count, size in zip(
                np.split(states, np.cumsum(sizes)[:-1]),
                np.split(values, np.cumsum(sizes * counts)[:-1]),
                np.split(actions, np.cumsum(counts)[:-1]),
                counts,
                sizes,
                strict=True,
            )
        ]
        if len(sizes)
        else []
    )
