"""Which learner to trust, and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from missmdp.evaluation.heldout import HeldOutScore
from missmdp.evaluation.value import student_interval
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.words import count, listed, with_error

_UNIT = "nats per observation"
_NO_EVIDENCE = 1.0
"""Nats over the whole log up to which a difference is none: the better one makes the log at most e times as likely."""
_MUCH_OUTSIDE = 0.1
"""The share of steps that could not be used from which on a comparison settles nothing."""


@dataclass(frozen=True)
class Recommendation:
    """A learner, and why this one."""

    label: str
    why: str


def recommend(
    learners: Mapping[str, MissingnessEstimator],
    heldout: Mapping[str, HeldOutScore] | None,
    confidence: float = 0.95,
    diagnosis: Diagnosis | None = None,
) -> Recommendation:
    """Return the learner that predicts best what it has not seen, unless a simpler one cannot be told apart from it.

    Those whose difference to the best one may be chance count as equally good. Of these, learners with bounds that
    hold come before those with intervals only, and then the one with the fewest free parameters is taken, since its
    assumption says most.

    Parameters
    ----------
    learners
        Label → fitted learner, from what assumes most to what assumes least.
    heldout
        How well they predict, those for which it is known, or None where nothing could be held out.
    confidence
        Of the intervals that decide whether a difference may be chance.
    diagnosis
        What chose the only learner there is, if that was so.
    """
    sizes = {label: learner.n_parameters_ for label, learner in learners.items()}
    bounded = {label: learner.has_bound for label, learner in learners.items()}

    def preferred(label: str) -> tuple[bool, int]:
        return not bounded[label], sizes[label]

    simplest = min(sizes, key=preferred)
    names = {label: type(learner).__name__ for label, learner in learners.items()}
    if diagnosis is not None and list(learners) == [diagnosis.recommended]:
        return Recommendation(simplest, f"The diagnosis chose {names[simplest]}. {diagnosis.reason}")
    if len(learners) == 1:
        return Recommendation(simplest, f"{names[simplest]} is the only learner in this run.")
    if heldout is None:
        kind = "simplest" if all(bounded.values()) else "simplest with guaranteed bounds"
        return Recommendation(
            simplest,
            "Nothing could be held out, so the learners cannot be compared. "
            f"{names[simplest]} is the {kind}, with {count(sizes[simplest], 'free parameter')}.",
        )
    best = max(heldout, key=lambda label: (heldout[label].difference == 0.0, bounded[label], -sizes[label]))
    equal = [label for label in heldout if label == best or _may_be_chance(heldout[label], confidence)]
    chosen = min(equal, key=preferred)
    compared = _Compared(names, sizes, bounded, heldout, best, equal)
    why = compared.why_the_best() if chosen == best else compared.why_another(chosen)
    return Recommendation(chosen, f"{why}{_outside(heldout[best])}{_unscored(names, heldout)}")


def _unscored(names: Mapping[str, str], heldout: Mapping[str, HeldOutScore]) -> str:
    """Return a word on learners that were not compared."""
    others = [name for label, name in names.items() if label not in heldout]
    return (
        f" {listed(others)} could not be compared: that would take too long in this model." if others else ""
    )


def among_solved(
    first: Recommendation,
    learners: Mapping[str, MissingnessEstimator],
    heldout: Mapping[str, HeldOutScore] | None,
    solved: Collection[str],
) -> Recommendation:
    """Return the first choice if there is a policy for it, else the best learner for which there is one.

    Parameters
    ----------
    first
        What `recommend` returned.
    learners, heldout
        As in `recommend`.
    solved
        The labels of learners with a policy, at least one.
    """
    if first.label in solved:
        return first

    def rank(label: str) -> tuple[float, bool, int]:
        scored = heldout is not None and label in heldout
        score = heldout[label].difference if heldout is not None and scored else -math.inf
        learner = learners[label]
        return -math.inf if math.isnan(score) else score, learner.has_bound, -learner.n_parameters_

    label = max(solved, key=rank)
    name, other = type(learners[label]).__name__, type(learners[first.label]).__name__
    best = "predicts best" if heldout is not None else "is the simplest"
    taken = f"of the others, {name} {best}" if len(solved) > 1 else f"only {name} has a policy"
    return Recommendation(label, f"{first.why} But the model of {other} could not be solved; {taken}.")


@dataclass(frozen=True)
class _Compared:
    """What is known of all learners, by label, and which of them are as good as the best."""

    names: Mapping[str, str]
    sizes: Mapping[str, int]
    bounded: Mapping[str, bool]
    heldout: Mapping[str, HeldOutScore]
    best: str
    equal: Sequence[str]

    def why_the_best(self) -> str:
        name, score = self.names[self.best], _score(self.heldout[self.best])
        close = [self.names[label] for label in self.equal if label != self.best]
        others = self._others(self.best)
        if not close:
            return f"{name} predicts unseen observations best: {score}{others}."
        if all(self.heldout[label].difference == 0.0 for label in self.equal):
            return f"{name} predicts unseen observations as well as any: {score}{others}."
        rivals = [label for label in self.equal if label != self.best and self.bounded[label]]
        all_bounded = len(rivals) == len(close)
        taken = (
            f"none of {'these' if all_bounded else 'those with guaranteed bounds'} has fewer free parameters "
            f"({self.sizes[self.best]:,})"
            if rivals
            else f"it has guaranteed error bounds, which {listed(close)} lack{'s' * (len(close) == 1)}"
        )
        return (
            f"{name} is ahead in predicting unseen observations, but not clearly better than {listed(close)}: "
            f"{score}{others}. It is preferred because {taken}."
        )

    def why_another(self, chosen: str) -> str:
        best, name = self.names[self.best], self.names[chosen]
        if not self.bounded[self.best]:
            reason = f"it has guaranteed error bounds, which {best} lacks"
        elif self.sizes[chosen] < self.sizes[self.best]:
            own = count(self.sizes[chosen], "free parameter")
            reason = f"it is simpler: {own} rather than {self.sizes[self.best]:,}"
        else:
            reason = f"it comes first: both have {count(self.sizes[chosen], 'free parameter')}"
        others = "".join(f"; {told}" for told in self._told(chosen))
        return (
            f"{best} is ahead in predicting unseen observations, but {name} is not clearly worse "
            f"({_worse(self.heldout[chosen])}, in {_UNIT}{others}). {name} is preferred because {reason}."
        )

    def _others(self, chosen: str) -> str:
        told = self._told(chosen)
        return f" ({'; '.join(told)})" if told else ""

    def _told(self, chosen: str) -> list[str]:
        """Return how much worse than the best the others are."""
        return [
            f"{self.names[label]} is {_worse(score)}"
            for label, score in self.heldout.items()
            if label not in (self.best, chosen)
        ]


def margin(score: HeldOutScore, confidence: float) -> float:
    """Return how much worse a learner may be and still not be told apart from the best: half of Student's interval.

    Learners that learn the same but for how they smooth differ by next to nothing in every episode alike, which has
    no error and no meaning: less than one nat over the whole log never tells learners apart. Without an error,
    anything may be chance.
    """
    if score.difference == 0.0:
        return 0.0
    if math.isnan(score.difference_stderr) or score.units < 2:
        return math.inf
    half = student_interval(0.0, score.difference_stderr, score.units, confidence)[1]
    return max(half, _NO_EVIDENCE / max(score.steps, 1))


def much_is_outside(score: HeldOutScore) -> bool:
    """Return whether so many steps could not be used that the others may say little."""
    return score.outside > _MUCH_OUTSIDE * (score.outside + score.steps)


def _may_be_chance(score: HeldOutScore, confidence: float) -> bool:
    return math.isfinite(score.difference) and -score.difference <= margin(score, confidence)


def _outside(score: HeldOutScore) -> str:
    """Return a word on steps that could not be used, if they are many."""
    if not much_is_outside(score):
        return ""
    return (
        f" But {score.outside:,} of {score.outside + score.steps:,} steps could not be used for this: the model rules "
        "out the rest of their episodes."
    )


def _score(score: HeldOutScore) -> str:
    if score.impossible:
        some = count(score.impossible, score.by[:-1])
        return f"it considers {some} impossible, no learner fewer, and it leads in the rest ({_UNIT})"
    return f"held-out log-likelihood {with_error(score.per_step, score.stderr)} {_UNIT}"


def _worse(score: HeldOutScore) -> str:
    if math.isnan(score.difference):
        return "not to be compared"
    if not math.isfinite(score.difference):
        return "worse: it considers some of them impossible that the best does not"
    if score.difference == 0.0:
        return "no worse"
    return f"{with_error(-score.difference, score.difference_stderr)} worse"
