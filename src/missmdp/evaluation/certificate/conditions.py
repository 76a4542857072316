"""What a certificate rests on, in sentences."""

from __future__ import annotations

from missmdp.evaluation.certificate.alternatives import Alternative
from missmdp.evaluation.certificate.support import SupportTest
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound, counted
from missmdp.plan.base import SolveResult

__all__ = ["conditions"]


def conditions(
    result: SolveResult,
    learner: CountingEstimator,
    bound: Bound,
    chosen: Alternative,
    support: SupportTest | None,
    failure: float,
) -> tuple[str, ...]:
    """Return what a certificate rests on."""
    said = [
        f"How values go missing is assumed to be {bound.assumes}, which data cannot prove; T, ρ and b₀ are taken as "
        "known.",
        _behaviour(bound),
        _budget(learner, bound, failure),
        _deployed(chosen),
        _solver(result, chosen),
    ]
    unseen = sum(group.samples == 0 for group in bound.per_group)
    if unseen:
        said.append(
            f"Of {counted(unseen, 'group')} of states there are no data at all: there everything is possible."
        )
    if support is not None:
        said.append(support.describe())
    return tuple(said)


def _behaviour(bound: Bound) -> str:
    if bound.behaviour == "blind":
        return "The data come from a policy that does not react to observations (blind)."
    return "The data may come from a policy that reacts to observations (adaptive): the bounds hold for any."


def _budget(learner: CountingEstimator, bound: Bound, failure: float) -> str:
    ways = learner.structure_.candidates
    split = f"The failure budget of {failure:.3g} is split over {counted(bound.n_groups, 'group')}"
    if ways > 1:
        split += f", times {ways:,} ways in which the data could have decided what the groups are"
    simulated = failure - (1.0 - bound.confidence)
    if simulated > 1e-9:
        split += f"; {simulated:.3g} of it is set aside for simulated visits"
    return f"{split}. All certificates rest on the same event, so that choosing the smallest costs nothing."


def _deployed(chosen: Alternative) -> str:
    if chosen.deploys == "policy":
        return (
            "Deployed is the policy that tracks the belief under M̂; the bound holds for every policy that decides by "
            "what it has seen."
        )
    return (
        "Deployed is the policy graph, which remembers a node and no belief (certificate.policy): for the policy that "
        'tracks the belief, ask with deploy="policy".'
    )


def _solver(result: SolveResult, chosen: Alternative) -> str:
    bounds = f"The solver's bounds for M̂ hold however it ended ({result.status})"
    if chosen.deploys == "policy":
        return f"{bounds}; `lower` was evaluated for the vectors that are left after pruning."
    again = " So do those for the model that reveals what is open." if chosen.method == "revealing" else ""
    return f"{bounds}; the graph was evaluated in M̂ anew, so that pruning does not matter.{again}"
