"""Bulk simulation of α-vector policies: the same decisions as their agents', in kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.alpha import ActingVectors, OwnObservations, run_alpha_episodes
from missmdp._kernels.beliefs import FALLBACKS
from missmdp._kernels.simulator import Simulation
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.tracking import EVENTS, compile_tracker
from missmdp.plan.value_function import ValueFunction

__all__ = ["alpha_runner"]


def alpha_runner(
    value_function: ValueFunction,
    own: MissMDP | POMDP,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
    *,
    observe_initial: bool,
) -> EpisodeRunner:
    """Return what simulates an α-vector policy, made for `own`, in a model; see `BulkPolicy`."""
    tracker = compile_tracker(own, model)
    vectors, observations = _acting_vectors(value_function), _own_observations(value_function)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, FALLBACKS)
        run_alpha_episodes(
            simulation,
            tracker,
            vectors,
            observations,
            words,
            first,
            horizon,
            model.discount,
            observe_initial,
            episodes.outcomes,
            episodes.events,
        )
        return episodes

    return EpisodeRunner(run, EVENTS)


def _acting_vectors(value_function: ValueFunction) -> ActingVectors:
    components = value_function.components
    flat = [np.ascontiguousarray(component.values.T).reshape(-1) for component in components]
    return ActingVectors(
        table=value_function.table,
        by_state=np.concatenate(flat) if flat else np.empty(0),
        action=np.concatenate([component.actions for component in components])
        if components
        else np.empty(0, np.int64),
    )


def _own_observations(value_function: ValueFunction) -> OwnObservations:
    pomdp, columns = value_function.pomdp, value_function.columns
    ends = np.cumsum([0, *(len(part.state) for part in columns)])
    return OwnObservations(
        start=np.concatenate([part.start + end for part, end in zip(columns, ends[:-1], strict=True)]),
        state=np.concatenate([part.state for part in columns]),
        probability=np.concatenate([part.probability for part in columns]),
        reward=value_function.reward,
        n_observations=pomdp.n_observations,
        n_watched=len(columns),
        discount=pomdp.discount,
    )
