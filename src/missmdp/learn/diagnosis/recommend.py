"""Which learner suits a diagnosis, and why."""

from __future__ import annotations

import warnings

from missmdp.data.counts import ObservationCounts
from missmdp.errors import AssumptionWarning
from missmdp.learn.aimi import AIMI
from missmdp.learn.asmar import AMCAR, AsMAR
from missmdp.learn.assumptions import dependent_indicators
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.blocks import Blocks
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.em.estimator import DynamicsEM
from missmdp.learn.icin import ICIN
from missmdp.model.mgraph import MissingnessGraph

__all__ = ["blocks_depend", "blocks_seem_dependent", "new_learner", "recommended"]


def recommended(kind: str, graph: MissingnessGraph, *, dependent: bool, snapshots: bool) -> tuple[str, str]:
    """Return the label of the learner that suits a type, and the reason in a sentence or two.

    Parameters
    ----------
    kind
        The type.
    graph
        The m-graph of the best structure.
    dependent
        Whether blocks depend on whether others are missing.
    snapshots
        Whether single observations were looked at only.
    """
    match kind:
        case "MCAR":
            return (
                "amcar",
                "What is missing depends on nothing: AMCAR pools all observations, and it has bounds.",
            )
        case "simple MAR":
            return "asmar", (
                "What is missing depends on always-observed features only: AsMAR counts by these, and it has bounds."
            )
        case _ if snapshots:
            if dependent:
                return "icin", (
                    "Missingness depends on values that go missing themselves, and indicators depend on each other: "
                    "ICIN allows both, if no feature drives its own missingness. Single observations cannot tell; "
                    "give the MDP to find out."
                )
            return "aimi", (
                "Missingness depends on values that go missing themselves: AIMI allows that, if indicators are "
                "independent and no feature drives its own missingness. Single observations cannot tell; give the MDP "
                "to find out."
            )
        case "MAR":
            return "em", (
                "Missingness depends on values where these are seen, so that indicators depend on each other: "
                "DynamicsEM learns that. It has intervals from a bootstrap, but no bounds."
            )
        case _ if graph.self_censoring:
            return "em", (
                f"Values of {_listed(graph.self_censoring)} go missing because of what they are: only DynamicsEM "
                "learns that, from the dynamics. It has intervals from a bootstrap, but no bounds."
            )
        case _ if dependent:
            return "em", (
                "Missingness depends on values that go missing themselves, and indicators depend on each other: "
                "DynamicsEM learns that from all observations. It has intervals from a bootstrap, but no bounds."
            )
        case _:
            return "em", (
                "Missingness depends on values that go missing themselves, but no feature drives its own: DynamicsEM "
                "learns from all observations. AIMI is valid too and has bounds, but it uses only observations that "
                "show everything else."
            )


def blocks_depend(graph: MissingnessGraph, blocks: Blocks) -> bool:
    """Return whether an m-graph joins features of different blocks."""
    return any(blocks.home(a) != blocks.home(b) for a, b in graph.dependent)


def blocks_seem_dependent(counts: ObservationCounts, blocks: Blocks) -> bool:
    """Return whether single observations speak against independent blocks, if no feature drives its own missingness."""
    learner = AIMI(blocks=[block for block in blocks.names if len(block) > 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(counts)
    return any(True for _ in dependent_indicators(counts, learner.counts_))


def new_learner(diagnosis: Diagnosis) -> MissingnessEstimator:
    """Return the learner that a diagnosis recommends, set up accordingly."""
    match diagnosis.recommended:
        case "amcar":
            return AMCAR()
        case "asmar":
            return AsMAR()
        case "aimi":
            return AIMI(blocks=[block for block in diagnosis.blocks if len(block) > 1])
        case "icin":
            return ICIN(blocks=diagnosis.blocks)
        case _:
            # An m-graph cannot say that a value matters only where it is seen.
            structure = "auto" if diagnosis.type == "MAR" else diagnosis.graph
            return DynamicsEM(diagnosis.mdp, structure)


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
