"""Finite controllers: what can be deployed, and evaluated exactly, where beliefs cannot."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite.plan import NO_SIGHT, ControllerPlan
from missmdp.plan.interface import check_acts_in, check_interface

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.finite.agent import FiniteControllerAgent

__all__ = ["FiniteController"]


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
        if not isinstance(policy, AlphaVectorPolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"expected an AlphaVectorPolicy, got {type(policy).__name__}")
        plan.check(policy.n_vectors, policy.pomdp.n_actions, policy.pomdp.n_observations)
        self.policy = policy
        self.plan = plan

    @classmethod
    def from_policy(cls, policy: AlphaVectorPolicy) -> FiniteController:
        """Return a controller for α-vectors that come without plans, such as those of a file.

        Each vector goes on as the policy would from the first belief that it decides, so that the controller can be
        worth less than the policy; `SolveResult.controller` has a solver's own plans.
        """
        from missmdp.plan.finite.follow import followed_plan

        return cls(policy, followed_plan(policy))

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
        from missmdp.plan.finite.agent import FiniteControllerAgent

        if model is not None:
            check_interface(self.model, model)
        return FiniteControllerAgent(self)

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the controller in a model, for `evaluate`; see `BulkPolicy`."""
        from missmdp.plan.finite.episodes import controller_runner

        check_acts_in(self.model, self.observe_initial, model)
        return controller_runner(self, model, simulation, words, horizon)

    def save(self, path: str | Path) -> None:
        """Save the controller with its model, such as `ward.mmpolicy`: arrays and JSON, no pickle."""
        from missmdp.plan.finite.files import save_controller

        save_controller(self, path)

    @classmethod
    def load(cls, path: str | Path) -> FiniteController:
        """Return the controller in a file that `save` wrote, with its model.

        Raises
        ------
        FormatError
            If the file is no such file, damaged, or from a newer version.
        """
        from missmdp.plan.finite.files import load_controller

        return load_controller(path)

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
