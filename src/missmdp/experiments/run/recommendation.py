"""Which learner to trust, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from missmdp.evaluation.heldout import HeldOut
from missmdp.experiments.run.figures import with_error
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.bounds import counted

__all__ = ["Recommendation", "free_parameters", "recommend"]


@dataclass(frozen=True)
class Recommendation:
    """A learner, and why this one."""

    label: str
    why: str


def free_parameters(learner: MissingnessEstimator) -> int:
    """Return how many probabilities a fitted learner chose freely: all but one per group with reachable states."""
    return sum(int(part.reachable.sum()) * (len(part.patterns) - 1) for part in learner.counts_)


def recommend(
    learners: Mapping[str, MissingnessEstimator], heldout: Mapping[str, HeldOut] | None
) -> Recommendation:
    """Return the learner that foretells best what it has not seen, unless a simpler one does as well.

    Those whose log-likelihood is within one standard error of the best one's count as equally good; of these the one
    with the fewest free parameters is taken, since its assumption says most.

    Parameters
    ----------
    learners
        Label → fitted learner, from what assumes most to what assumes least.
    heldout
        How well they foretell, or None where nothing could be held out.
    """
    sizes = {label: free_parameters(learner) for label, learner in learners.items()}
    simplest = min(sizes, key=sizes.__getitem__)
    names = {label: type(learner).__name__ for label, learner in learners.items()}
    if len(learners) == 1:
        return Recommendation(simplest, f"{names[simplest]} is the only learner in this run.")
    if heldout is None:
        return Recommendation(
            simplest,
            f"Nothing could be held out, so the learners cannot be compared; no other has fewer free parameters than "
            f"{names[simplest]} ({sizes[simplest]:,}).",
        )
    best = max(heldout, key=lambda label: (heldout[label].difference == 0.0, -sizes[label]))
    equal = [label for label in heldout if label == best or _within_error(heldout[label])]
    chosen = min(equal, key=sizes.__getitem__)
    others = "; ".join(
        f"{names[label]} is {_worse(heldout[label])}" for label in heldout if label not in (best, chosen)
    )
    others = f" ({others})" if others else ""
    unit = "nats per observation"
    if chosen == best:
        return Recommendation(
            best,
            f"{names[best]} foretells observations that it has not seen {_how_well(heldout, best)}: "
            f"{_score(heldout[best], unit)}{others}.",
        )
    return Recommendation(
        chosen,
        f"{names[best]} foretells observations that it has not seen best, but {names[chosen]} does as well within one "
        f"standard error ({_worse(heldout[chosen])}, in {unit}) and has fewer free parameters: {sizes[chosen]:,} "
        f"rather than {sizes[best]:,}{others}.",
    )


def _how_well(heldout: Mapping[str, HeldOut], best: str) -> str:
    return "as well as any" if any(heldout[o].difference == 0.0 for o in heldout if o != best) else "best"


def _score(score: HeldOut, unit: str) -> str:
    if score.impossible:
        some = counted(score.impossible, score.by[:-1])
        return f"it takes {some} for impossible, no learner takes fewer, and it leads in the rest ({unit})"
    return f"held-out log-likelihood {with_error(score.per_step, score.stderr)} {unit}"


def _within_error(score: HeldOut) -> bool:
    return math.isfinite(score.difference) and -score.difference <= score.difference_stderr


def _worse(score: HeldOut) -> str:
    if math.isnan(score.difference):
        return "not to be compared"
    if not math.isfinite(score.difference):
        return "worse: it takes some of them for impossible that the best does not"
    if score.difference == 0.0:
        return "no worse"
    return f"{with_error(-score.difference, score.difference_stderr)} worse"
