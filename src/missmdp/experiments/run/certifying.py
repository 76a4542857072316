"""How far from optimal policies can be in truth, for certain."""

from __future__ import annotations

from collections.abc import Mapping

from missmdp.errors import MissMDPError
from missmdp.evaluation.certificate.certificate import Certificate
from missmdp.evaluation.certificate.certify import certify
from missmdp.evaluation.certificate.value_interval import value_interval
from missmdp.evaluation.compare import Difference, difference
from missmdp.evaluation.value import evaluate
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Certified, Learned, Problem, World
from missmdp.experiments.run.settings import RunSettings
from missmdp.learn.base import CountingEstimator
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.registry import find_learner
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.plan.solving import SolveResult
from missmdp.words import decimals, interval_text, no_more_than

_DRAWS = 25
"""Missingness functions over which the value of a policy without a certificate is told."""
_EPISODES = 200
"""In each of them, where the policy has to be simulated."""


def worth_certifying(
    recommended: str, learned: Mapping[str, Learned], diagnosis: Diagnosis | None
) -> list[str]:
    """Return the learners to certify: the recommended one, and if it has no bounds, all that nothing speaks against.

    `learned` has only those with a policy.
    """
    if learned[recommended].bound.guaranteed:
        return [recommended]
    believed = [label for label, found in learned.items() if not contradiction(found, diagnosis)]
    return [recommended, *(label for label in believed if label != recommended)]


def contradiction(learned: Learned, diagnosis: Diagnosis | None) -> str | None:
    """Return what speaks against the assumption of a learner: its own tests, or the diagnosis; None if nothing does."""
    if learned.learner.warnings_:
        return f"{learned.learner.warnings_[0]}".rstrip(".")
    if diagnosis is None or not diagnosis.blocks:
        return None
    if find_learner(learned.label).suits(diagnosis):
        return None
    itself = f" with {' and '.join(diagnosis.self_censoring)} self-censoring" * bool(diagnosis.self_censoring)
    return f"the diagnosis says {diagnosis.type}{itself}"


def keep_certified(found: Certified, folder: RunFolder, *, recommended: bool) -> None:
    """Save what a certificate is for, where it says something and that is not the learner's own policy."""
    certificate = found.certificate
    if certificate is None or certificate.vacuous or certificate.deploys == "policy":
        return
    certificate.policy.save(folder.learner(found.label, "certified.mmpolicy"))
    if recommended:
        certificate.policy.save(folder.certified)


def certificate_summary(found: Certified) -> str:
    """Return what a certificate says, in a few words."""
    if found.interval is not None:
        places = min(6, decimals(float(found.interval.values.std())))
        between = interval_text(found.interval.interval, places)
        return f"none; by a bootstrap, not a guarantee, worth {between}"
    if found.certificate is None:
        return f"none: {found.why_not}"
    if found.certificate.vacuous:
        return "says nothing yet"
    return f"within {no_more_than(found.certificate.epsilon)} of optimal"


class Certifying:
    """Certifies the policies of a run.

    Parameters
    ----------
    problem
        What is to be decided in.
    settings
        How confident certificates are, and how long solving may take.
    world
        Where policies were evaluated beside the optimal one; None where the truth is not known.
    diagnosis
        Why values are missing, if that is known; it may speak against what a learner assumes.
    """

    def __init__(
        self, problem: Problem, settings: RunSettings, world: World | None, diagnosis: Diagnosis | None
    ) -> None:
        self._problem = problem
        self._settings = settings
        self._world = world
        self._diagnosis = diagnosis

    def certify(self, learned: Learned, solved: SolveResult, *, in_full: bool) -> Certified:
        """Return how far from optimal the policy of a learner can be; what cannot be said is told, and not raised.

        Parameters
        ----------
        learned
            What the learner learned.
        solved
            The policy for it.
        in_full
            Whether to look for the smallest bound, and for how much data would halve it; that takes longer.
        """
        learner, settings = learned.learner, self._settings
        try:
            if not isinstance(learner, CountingEstimator):
                return self._likely(learned, solved)
            found = certify(
                solved,
                learner,
                settings.confidence,
                behaviour=settings.behaviour,
                halve=in_full,
                solver=self._solver(solved) if in_full else None,
                timeout=0.0,
                progress=False,
            )
        except KeyboardInterrupt:
            return Certified(learned.label, why_not="it was interrupted")
        except MemoryError:
            return Certified(learned.label, why_not="there is too little memory for it")
        except MissMDPError as error:
            return Certified(learned.label, why_not=str(error))
        return Certified(
            learned.label,
            found,
            loss=self._loss(learned.label, found),
            contradicted=contradiction(learned, self._diagnosis),
        )

    def _likely(self, learned: Learned, solved: SolveResult) -> Certified:
        """Return what the policy of a learner without bounds may be worth."""
        found = value_interval(
            solved.policy if solved.controller is None else solved.controller,
            learned.learner,
            self._problem.mdp,
            confidence=self._settings.confidence,
            draws=_DRAWS,
            episodes=_EPISODES,
            seed=self._settings.seeds.certify,
            progress=False,
        )
        return Certified(
            learned.label,
            why_not=f"{learned.name} has no bound that holds for a finite number of samples, so nothing is certain",
            interval=found,
        )

    def _solver(self, solved: SolveResult) -> Sarsop:
        settings = self._settings
        return Sarsop(
            precision=settings.precision,
            timeout=settings.timeout,
            max_trials=settings.max_trials,
            seed=settings.seeds.certify,
            warm_start=solved,
            progress=False,
        )

    def _loss(self, label: str, found: Certificate) -> Difference | None:
        """Return how much less than the optimal policy the certified one is worth in the truth, where that is known."""
        truth, world = self._problem.truth, self._world
        if truth is None or world is None or "optimal" not in world.comparison.evaluations:
            return None
        optimal = world.comparison["optimal"]
        if found.deploys == "policy":
            return world.comparison.difference("optimal", label)
        own = evaluate(
            found.policy,
            truth,
            self._settings.episodes,
            self._settings.seeds.evaluate,
            control_variate=optimal.controlled is not None,
            progress=False,
        )
        return difference(optimal, own)
