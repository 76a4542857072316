"""Bulk simulation of finite controllers: the same decisions as their agents', in kernels."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.simulator import Simulation
from missmdp._kernels.table_episodes import Nodes, run_controller_episodes
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, seen_codes
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.finite.plan import NO_SIGHT

__all__ = ["controller_runner"]

EVENTS = ("admitted",)
"""What is counted: observations that the plan holds impossible, of which only the values are believed."""


def controller_runner(
    controller: FiniteController,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    """Return what simulates a controller in a model; see `BulkPolicy`."""
    nodes = _nodes(controller, model)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(EVENTS))
        run_controller_episodes(
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
        return episodes

    return EpisodeRunner(run, EVENTS)


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
