"""What is deployed of a finite controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import Labels
from missmdp.plan.agent import NOTHING, check_first
from missmdp.plan.finite.plan import NO_ACTION, NO_SIGHT

if TYPE_CHECKING:
    from missmdp.plan.finite.controller import FiniteController

__all__ = ["FiniteControllerAgent"]


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
