"""Finite controllers: what can be deployed, and evaluated exactly, where beliefs cannot."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.simulator import Simulation
from missmdp._kernels.table_episodes import Nodes, run_controller_episodes
from missmdp.checks import checked_instance
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, seen_codes
from missmdp.errors import ModelError
from missmdp.model.archive import INTEGERS, Array, Schema, named_damage, read_archive, write_archive
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP, Labels
from missmdp.plan.acting import check_acts_in, check_interface
from missmdp.plan.agent import NOTHING, check_first
from missmdp.plan.alpha import AlphaVectorPolicy, PolicyMeta, policy_arrays, policy_from_parts, policy_parts
from missmdp.plan.finite.plan import NO_ACTION, NO_SIGHT, ControllerPlan, followed_plan

_ARRAYS = ("action", "start", "sight", "successor", "sight_of")
_NODE = "node_"
"""Prefix of the plan's arrays in a file."""
_EVENTS = ("admitted",)
"""What is counted: observations that the plan holds impossible, of which only the values are believed."""


class FiniteController:
    """A policy that remembers a node: each has an action and, for every observation, a node to go on with.

    A solver's α-vectors come with plans, and these make a controller: node k is vector k. It is worth at least what
    the solver promises, like the policy that tracks the belief, and in a model that differs a little it can be
    evaluated exactly, which is what the sharpest certificates are made of. Mostly it is a little worse than the
    policy of the same vectors, which looks for the best one after every observation.

    Parameters
    ----------
    policy
        The α-vectors, with the model that they were made for.
    plan
        What is done at each node and what follows; nodes are the vectors in order, and possibly a root.

    Attributes
    ----------
    policy : AlphaVectorPolicy
        The α-vectors.
    plan : ControllerPlan
        The nodes.

    Notes
    -----
    An observation can be one that the plan holds impossible: after that node, or at all. Then the controller goes on
    as if nothing else were known: of the components with states that admit the observation it takes the one with most,
    and of its vectors the one that is best if all these states are equally likely. For a POMDP, states that can give
    the label stand for those that admit it. Where there is no such state, it goes on with the first node.
    """

    def __init__(self, policy: AlphaVectorPolicy, plan: ControllerPlan) -> None:
        checked_instance("policy", policy, AlphaVectorPolicy, "an AlphaVectorPolicy")
        checked_instance("plan", plan, ControllerPlan, "a ControllerPlan")
        plan.check(policy.n_vectors, policy.pomdp)
        self.policy = policy
        self.plan = plan

    @classmethod
    def from_policy(cls, policy: AlphaVectorPolicy) -> FiniteController:
        """Return a controller for α-vectors that come without plans, such as those of a file.

        Each vector goes on as the policy would from the first belief that it decides, so that the controller can be
        worth less than the policy; `SolveResult.controller` has a solver's own plans.
        """
        expected = "a policy of α-vectors"
        return cls(policy, followed_plan(checked_instance("policy", policy, AlphaVectorPolicy, expected)))

    def __repr__(self) -> str:
        return f"FiniteController({self.n_nodes} nodes, for {self.model!r})"

    @property
    def model(self) -> MissMDP | POMDP:
        """The model that the controller was made for."""
        return self.policy.model

    @property
    def observe_initial(self) -> bool:
        """Whether an observation comes before the first action."""
        return self.policy.observe_initial

    @property
    def n_nodes(self) -> int:
        """The number of nodes, the root included."""
        return self.plan.n_nodes

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return self.policy.actions

    def agent(
        self, model: MissMDP | POMDP | None = None, *, seed: int | None = None
    ) -> FiniteControllerAgent:
        """Return a new agent; `model` is only checked to be observed and acted in alike, and `seed` does nothing."""
        if model is not None:
            check_interface(self.model, model)
        return FiniteControllerAgent(self)

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the controller in a model, for `evaluate`; see `BulkPolicy`."""
        check_acts_in(self.model, self.observe_initial, model)
        return _runner(self, model, simulation, words, horizon)

    def save(self, path: str | Path) -> None:
        """Save the controller with its model, such as `ward.mmpolicy`: arrays and JSON, no pickle."""
        meta, arrays = policy_parts(self.policy)
        plan = {_NODE + name: getattr(self.plan, name) for name in _ARRAYS}
        own = ControllerMeta(**msgspec.structs.asdict(meta), root=self.plan.root)
        write_archive(path, CONTROLLER_FILE.kind, own, {**arrays, **plan})

    @classmethod
    def load(cls, path: str | Path) -> FiniteController:
        """Return the controller in a file that `save` wrote, with its model.

        Raises
        ------
        FormatError
            If the file is no such file, damaged, or from a newer version.
        """
        meta, arrays = read_archive(path, CONTROLLER_FILE)
        with named_damage(path):
            plan = ControllerPlan(root=meta.root, **{name: arrays[_NODE + name] for name in _ARRAYS})
            return cls(policy_from_parts(meta, arrays), plan)

    def places_of_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the numbers of observations given as codes, −1 for those that its own model never makes."""
        assert isinstance(self.model, MissMDP)
        features = self.model.space.features
        wanted = features.rank(codes)
        place = np.minimum(np.searchsorted(self._ranks, wanted), len(self._ranks) - 1)
        return np.where(self._ranks[place] == wanted, place, NO_SIGHT)

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        assert isinstance(self.model, MissMDP)
        return self.model.space.features.rank(self.model.missingness.occurring().observations.codes)

    def defaults_of_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the nodes after observations, given as codes, that a plan holds impossible, shape (rows,)."""
        assert isinstance(self.model, MissMDP)
        space = self.model.space
        return np.array([self.default(space.admit(row)) for row in codes], dtype=np.int64)

    @cached_property
    def defaults(self) -> NDArray[np.int64]:
        """The nodes after observations of its own model that a plan holds impossible, shape (Z,)."""
        if isinstance(self.model, MissMDP):
            return self.defaults_of_codes(self.model.missingness.occurring().observations.codes)
        n_states = self.model.n_states
        gives = sparse.csc_array(
            sum(self.model.observation, sparse.csr_array((n_states, self.model.n_observations)))
        )
        some = np.split(gives.indices, gives.indptr[1:-1])
        return np.array(
            [self.default(np.isin(np.arange(n_states), states)) for states in some], dtype=np.int64
        )

    def default(self, states: NDArray[np.bool_]) -> int:
        """Return the node to go on with where nothing is known but that the state is one of some, shape (S,)."""
        table, components = self.policy.value_function.table, self.policy.components
        label = np.where(states & ~self.policy.pomdp.terminal, table.label, -1)
        going_on = label[label >= 0]
        if not len(going_on):
            return 0
        b = int(np.argmax(np.bincount(going_on)))
        component = components[b]
        scores = component.values[:, label[component.states] == b].sum(axis=1)
        return int(table.first[b]) + int(np.argmax(scores))


class ControllerMeta(PolicyMeta):
    """What a file says of a controller besides its arrays."""

    root: int


def _controller_arrays(meta: ControllerMeta) -> dict[str, Array]:
    """Return what the arrays of a controller, its policy and its model must be, by name."""
    arrays = policy_arrays(meta)
    n_actions = arrays["vector_actions"].below
    return arrays | {
        "node_action": Array(INTEGERS, ("nodes",), NO_ACTION, n_actions),
        "node_start": Array(INTEGERS, ("nodes+1",), 0, "entries of nodes+1"),
        "node_sight": Array(INTEGERS, ("entries of nodes",), 0),
        "node_successor": Array(INTEGERS, ("entries of nodes",), 0, "nodes"),
        "node_sight_of": Array(INTEGERS, ("rows of sights", "observations"), NO_SIGHT),
    }


CONTROLLER_FILE = Schema("finite controller", ControllerMeta, _controller_arrays)


class FiniteControllerAgent:
    """An agent that goes from node to node.

    For a miss-MDP, observations are tuples or mappings of feature values with None or NaN for missing; a
    feature that a mapping leaves out is missing. For a POMDP they are its labels.

    Attributes
    ----------
    node : int or None
        The current node, None before the first action.
    impossible : int
        How many observations the plan had no node for; see `FiniteController`.
    """

    def __init__(self, controller: FiniteController) -> None:
        self.controller = controller
        self.node: int | None = None
        self.impossible = 0
        model = controller.model
        self._labels = None if isinstance(model, MissMDP) else Labels(model.observations, "observation")

    def __repr__(self) -> str:
        return f"FiniteControllerAgent(at node {self.node}, {self.impossible} impossible observations)"

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self.node is None else self._action(self.node)

    def reset(self, observation: Any = NOTHING) -> Any:
        """Start an episode and return the first action.

        Parameters
        ----------
        observation
            The first observation; to be left out for controllers that act first (`observe_initial` is False).
        """
        check_first(observation, observe_initial=self.controller.observe_initial)
        root = self.controller.plan.root
        self.node = self._after(root, observation) if self.controller.observe_initial else root
        return self._action(self.node)

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        if self.node is None:
            raise ModelError("the episode has not started: call reset first")
        self.node = self._after(self.node, observation)
        return self._action(self.node)

    def _action(self, node: int) -> Any:
        # Only where everything has ended there is no node to go to but the root; then any action will do.
        return self.controller.actions[max(int(self.controller.plan.action[node]), 0)]

    def _after(self, node: int, observation: Any) -> int:
        controller, plan, model = self.controller, self.controller.plan, self.controller.model
        if isinstance(model, MissMDP):
            codes = np.array([model.space.features.encode_observation(observation)])
            place = int(controller.places_of_codes(codes)[0])
        else:
            assert self._labels is not None
            codes, place = None, self._labels.index(observation)
        if place != NO_SIGHT:
            action = max(int(plan.action[node]), 0) if plan.action[node] != NO_ACTION else 0
            sight = int(plan.sight_of[action if len(plan.sight_of) > 1 else 0, place])
            found = plan.after(node, sight) if sight != NO_SIGHT else None
            if found is not None:
                return found
        self.impossible += 1
        if codes is None:
            return int(controller.defaults[place])
        return int(controller.defaults_of_codes(codes)[0])


def _runner(
    controller: FiniteController,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    """Return what simulates a controller in a model; see `BulkPolicy`."""
    nodes = _nodes(controller, model)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(_EVENTS))
        count = run_controller_episodes(
            simulation,
            nodes,
            words,
            first,
            horizon,
            model.discount,
            controller.observe_initial,
            episodes.outcomes,
            episodes.events,
        )
        return episodes.first(count)

    return EpisodeRunner(run, _EVENTS)


def _nodes(controller: FiniteController, model: MissMDP | POMDP) -> Nodes:
    """Return the nodes, with the sights and defaults of the observations of the model that is acted in."""
    plan = controller.plan
    if isinstance(controller.model, MissMDP):
        codes = seen_codes(cast("MissMDP", model))
        place = controller.places_of_codes(codes)
        sight_of = np.where(place == NO_SIGHT, NO_SIGHT, plan.sight_of[:, place])
        default = controller.defaults_of_codes(codes)
    else:
        sight_of, default = plan.sight_of, controller.defaults
    # Copies: kernels are compiled anew for arrays that cannot be written to.
    return Nodes(
        action=np.array(plan.action),
        start=np.array(plan.start),
        sight=np.array(plan.sight),
        successor=np.array(plan.successor),
        root=plan.root,
        sight_of=np.array(sight_of),
        default=np.array(default),
    )
