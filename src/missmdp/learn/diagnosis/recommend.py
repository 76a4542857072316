"""Which learner suits a diagnosis, and why."""

from __future__ import annotations

from missmdp.learn.base import Estimator
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.model.mgraph import MissingnessGraph

__all__ = ["new_learner", "recommended"]


def recommended(
    kind: str, graph: MissingnessGraph, blocks: tuple[tuple[str, ...], ...], *, snapshots: bool
) -> tuple[str, str]:
    """Return the label of the learner that suits a type, and the reason in a sentence or two."""
    together = {frozenset(pair) for pair in graph.dependent} - {
        frozenset((a, b)) for block in blocks for a in block for b in block if a != b
    }
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
            if together:
                return "icin", (
                    "Missingness depends on values that go missing themselves, and indicators depend on each other: "
                    "ICIN allows both, if no feature drives its own missingness. Single observations cannot tell; "
                    "give the MDP to find out."
                )
            return "aimi", (
                "Missingness depends on values that go missing themselves: AIMI allows that, if no feature drives its "
                "own missingness. Single observations cannot tell; give the MDP to find out."
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
        case _ if together:
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


def new_learner(diagnosis: Diagnosis) -> Estimator:
    """Return the learner that a diagnosis recommends, set up accordingly."""
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR
    from missmdp.learn.em.estimator import DynamicsEM
    from missmdp.learn.icin import ICIN

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
