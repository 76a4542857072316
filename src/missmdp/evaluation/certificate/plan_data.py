"""How much data a certificate of a given size takes, computed from a model: what M might be."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from missmdp.checks import checked_confidence, checked_flag, checked_instance, checked_number
from missmdp.data.counts import ObservationCounts
from missmdp.data.coverage import Coverage, behaviour_coverage
from missmdp.errors import AssumptionWarning, DataError, ModelError, ParameterError
from missmdp.evaluation.certificate.alternatives import CertificateInputs
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.learned import (
    can_go_missing,
    counted_patterns,
    factor_for,
    revealing_missingness,
    with_a_bound,
)
from missmdp.evaluation.certificate.uniform import ValueSpan, inverse_closed_form, policy_uniform, value_span
from missmdp.learn.asmar import AsMAR
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound
from missmdp.learn.histories_needed import SampleSize, histories_needed
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.plan.solving import Solver, SolveResult
from missmdp.plan.stopping import raise_if_interrupted
from missmdp.progress import show_status

_FEWEST = 100
"""Samples with which searches begin."""
_MOST = 1e12
"""Samples that are not looked beyond."""
_CLOSE = 0.1
"""How close to ε searches end where a model has to be solved for every step."""


@dataclass(frozen=True, eq=False)
class DataPlan:
    """How many samples bring a certificate to ε."""

    model: MissMDP
    epsilon: float
    """What V*_P − V_P(π̂) is to be at most."""
    confidence: float
    learner: str
    assumes: str
    solver_gap: float
    """What is set aside for the solver."""
    trivial: float
    """What is known without data: the value of the best minus that of the worst controller."""
    radius: float
    """The total variation at which the closed form is ε."""
    closed: SampleSize | None
    """Histories after which the closed form is at most ε, with the confidence asked for; None if no number is known."""
    closed_why: str
    uniform: int | None
    """Samples after which the policy-uniform bound is about ε, if states are visited as often as expected."""
    certified: int | None
    """Samples after which `certify` is about at ε, if states are visited as often as expected."""
    certified_why: str
    """Why that is not known."""

    @property
    def samples(self) -> int | None:
        """The smallest number of samples that was found."""
        found = [self.certified, self.uniform, None if self.closed is None else math.ceil(self.closed.steps)]
        return min((n for n in found if n is not None), default=None)

    def __repr__(self) -> str:
        return f"DataPlan(epsilon={self.epsilon:g}, confidence={self.confidence:g}, samples={self.samples})"

    def describe(self) -> str:
        """Return the plan in lines of text."""
        lines = [
            f"To be within {self.epsilon:g} of optimal with probability at least {self.confidence:g}, assuming "
            f"{self.assumes} ({self.learner}, uniformly random behaviour):",
            f"  certify         {self._certified()}",
            f"  policy-uniform  {_about(self.uniform)}",
            f"  closed form     {self._closed()}",
            f"Without data every policy is within {self.trivial:.4g}. The solver's gap is taken to be "
            f"{self.solver_gap:g}. The numbers are for this model's M; the first two take states to be visited as "
            "often as expected.",
        ]
        if self.closed is not None and self.closed.off_by:
            lines.append(
                f"But this model's M violates the assumption: it is {self.closed.off_by:.3g} away in total variation, "
                "which more data will not change."
            )
        return "\n".join(lines)

    __str__ = describe

    def _certified(self) -> str:
        return self.certified_why if self.certified is None else _about(self.certified)

    def _closed(self) -> str:
        if self.closed is None:
            return self.closed_why
        return (
            f"about {self.closed.steps:,.0f} samples in {int(self.closed):,} histories, for a total variation of "
            f"{self.radius:.3g}; the number of visits is bounded too"
        )


def _about(samples: int | None) -> str:
    return f"more than {_MOST:.0e} samples" if samples is None else f"about {samples:,} samples"


def plan_data(
    model: MissMDP,
    epsilon: float,
    confidence: float = 0.95,
    *,
    learner: CountingEstimator | None = None,
    relative: bool = False,
    solver_gap: float = 0.0,
    solver: Solver[SolveResult] | None = None,
    timeout: float = 30.0,
    progress: bool | None = None,
) -> DataPlan:
    """Return how many samples it takes until a policy can be certified to be within ε of optimal.

    Three answers: for the closed form, whose inverse says how close M̂ must be, and `histories_needed` how many
    histories make it so; for the policy-uniform bound, with as many visits as random behaviour is expected to make;
    and for what `certify` says, with a policy for this model's own M.

    Parameters
    ----------
    model
        The miss-MDP, with the M that you expect.
    epsilon
        How far from optimal a policy may be, in units of value.
    confidence
        The probability with which this should hold.
    learner
        The learner with its parameters; `AsMAR()` by default.
    relative
        Whether epsilon is a share of the value of the best minus that of the worst controller instead.
    solver_gap
        How much to set aside for the solver, in units of value.
    solver, timeout
        The solver, and the seconds that it may take for each model, for the third answer; by default `Sarsop`. With
        timeout 0, the third answer is left out.
    progress
        Whether to show progress; by default on a terminal.
    """
    model = checked_model(model)
    learner = AsMAR() if learner is None else learner
    if not isinstance(learner, CountingEstimator):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError(
            "learner", learner, f"a learner with a guaranteed bound, such as {with_a_bound()}"
        )
    confidence = checked_confidence(confidence)
    timeout = checked_number("timeout", timeout, least=0.0)
    span = value_span(model.mdp, timeout or None)
    wanted = _checked_epsilon(epsilon, span, solver_gap, relative=relative)
    radius = inverse_closed_form(span, 0.5 * (wanted - solver_gap))
    with show_status("planning", enabled=progress) as say, warnings.catch_warnings():
        # How far M is from what the learner assumes is part of the answer.
        warnings.simplefilter("ignore", AssumptionWarning)
        say("histories for the closed form")
        closed, why = _histories(model, learner, radius, confidence)
        say("samples for the policy-uniform bound")
        expected = _Expected(model, learner, behaviour_coverage(model), confidence)
        uniform = factor_for(
            wanted,
            solver_gap,
            lambda f: solver_gap + 2.0 * policy_uniform(span, expected.bound(f).per_state_tv),
            most=_MOST / _FEWEST,
        )
        certified, certified_why = None, "left out: no time was given to solve models"
        if timeout > 0.0 or solver is not None:
            try:
                certified = _certified(expected, span, wanted, solver_gap, _solver(solver, timeout), say)
                certified_why = "" if certified is not None else f"more than {_MOST:.0e} samples"
            except ModelError as error:
                certified_why = f"not known: {error}"
    return DataPlan(
        model=model,
        epsilon=wanted,
        confidence=confidence,
        learner=type(learner).__name__,
        assumes=learner.assumes,
        solver_gap=solver_gap,
        trivial=span.trivial,
        radius=radius,
        closed=closed,
        closed_why=why,
        uniform=None if uniform is None else math.ceil(_FEWEST * uniform),
        certified=None if certified is None else math.ceil(_FEWEST * certified),
        certified_why=certified_why,
    )


def _checked_epsilon(epsilon: Any, span: ValueSpan, solver_gap: Any, *, relative: bool) -> float:
    checked_flag("relative", relative)
    gap = checked_number("solver_gap", solver_gap, least=0.0)
    if relative:
        share = checked_number("epsilon", epsilon, above=0.0, below=1.0, expected="a share between 0 and 1")
        wanted = share * span.trivial
    else:
        wanted = checked_number("epsilon", epsilon, above=0.0)
    if not gap < wanted:
        raise ParameterError("epsilon", wanted, f"more than the solver's gap of {gap:g}")
    if wanted >= span.trivial:
        problem = f"without any data every policy is within {span.trivial:.6g} of optimal; give less than {wanted:g}"
        raise ParameterError("epsilon", wanted, f"less than {span.trivial:.6g}", problem)
    return wanted


def _histories(
    model: MissMDP, learner: CountingEstimator, radius: float, confidence: float
) -> tuple[SampleSize | None, str]:
    """Return the histories for the closed form, or why no number is known."""
    try:
        found = histories_needed(
            model,
            min(radius, 1.0 - 1e-9),
            confidence,
            learner=learner,
            total_variation=True,
            progress=False,
        )
    except DataError as error:
        return None, str(error)
    return found, ""


@dataclass(frozen=True, eq=False)
class _Expected:
    """Data as they are expected from random behaviour."""

    model: MissMDP
    learner: CountingEstimator
    coverage: Coverage
    confidence: float

    def learned(self, factor: float) -> CountingEstimator:
        """Return the learner after factor × `_FEWEST` samples."""
        M, space = self.model.missingness, self.model.space
        seen = M.occurring(self.model.mdp.reachable)
        weights = self.coverage.share[seen.state] * M.probabilities[seen.state, seen.pattern]
        expected = np.bincount(seen.place, weights, minlength=len(seen.observations)) * factor * _FEWEST
        counts = ObservationCounts.from_ranks(
            self.model.mdp,
            space.features.rank(seen.observations.codes),
            # Sums are rounded: of observations that are many and rare, each on its own would be rounded to none.
            np.diff(np.rint(np.cumsum(expected)), prepend=0.0).astype(np.int64),
            "blind",
        )
        return type(self.learner)(**self.learner.get_params()).fit(counts)

    def bound(self, factor: float) -> Bound:
        """Return its bound."""
        return self.learned(factor).bound(self.confidence)


def _solver(
    solver: Solver[SolveResult] | None, timeout: float
) -> Callable[[MissMDP, SolveResult | None], SolveResult]:
    from missmdp.plan.sarsop.solver import Sarsop

    if solver is not None:
        checked_instance("solver", solver, Solver, "a solver, which has solve()")

    def solved(model: MissMDP, before: SolveResult | None) -> SolveResult:
        asked = solver or Sarsop(timeout=timeout, warm_start=before, progress=False)
        result = asked.solve(model)
        raise_if_interrupted(result.status)
        return result

    return solved


def _certified(
    expected: _Expected,
    span: ValueSpan,
    wanted: float,
    solver_gap: float,
    solve: Callable[[MissMDP, SolveResult | None], SolveResult],
    say: Callable[[str], None],
) -> float | None:
    """Return how many times `_FEWEST` samples bring the certificate to ε, for a policy for the model's own M."""
    model = expected.model
    say("solving the model")
    result = solve(model, None)
    if result.controller is None:
        raise ModelError("the solver's policy has no policy graph, which is what this certificate is for")

    def epsilon_with(factor: float) -> float:
        say(f"certifying with {factor * _FEWEST:,.0f} samples")
        learner = expected.learned(factor)
        bound = learner.bound(expected.confidence)
        controller = result.controller
        assert controller is not None
        product = controller_product(
            controller, model.missingness, can_go_missing(learner), counted_patterns(learner)
        )
        inputs = CertificateInputs(
            result.lower, result.upper, span, observe_initial=True, values=ControllerValues.of(product, span)
        )
        robust = inputs.robust(bound.per_state_tv, bound.per_state_unlisted)
        assert robust.terms is not None
        if robust.terms.after_planning + solver_gap > wanted:
            return robust.terms.after_planning + solver_gap
        plus = revealing_missingness(bound, model.with_missingness(learner.missingness_))
        best = min(robust.best, solve(model.with_missingness(plus), result).upper)
        return max(best - result.upper, 0.0) + robust.terms.after_planning + solver_gap

    return factor_for(wanted, solver_gap, epsilon_with, most=_MOST / _FEWEST, close=_CLOSE)
