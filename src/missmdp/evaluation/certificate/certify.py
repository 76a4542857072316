"""Certify a policy: bound how far from optimal it is in the true miss-MDP."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from missmdp.checks import (
    checked_choice,
    checked_confidence,
    checked_instance,
    checked_integer,
    checked_number,
    checked_seed,
)
from missmdp.data.dataset import Behaviour
from missmdp.errors import Argument, DataError, ModelError, ParameterError
from missmdp.evaluation.certificate.alternatives import (
    METHODS,
    SHARE,
    SIMULATED,
    Alternative,
    CertificateInputs,
    CertificateMethod,
    Deployed,
    simulated_charge,
)
from missmdp.evaluation.certificate.certificate import (
    Certificate,
    SupportTest,
    conditions,
    support_test,
)
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.learned import (
    Halving,
    bound_with_more_data,
    can_go_missing,
    checked_learner,
    counted_patterns,
    data_to_halve,
    revealing_missingness,
)
from missmdp.evaluation.certificate.uniform import ValueSpan, value_span
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound
from missmdp.learn.limits import checked_behaviour
from missmdp.model.missingness import missingness_distance
from missmdp.model.missmdp import MissMDP
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.solving import Solver, SolveResult
from missmdp.progress import show_status

REFERENCE = "closed form, Okamoto"
"""The closed form with the paper's radii, for comparison."""

_SAME = 1e-9
"""How far the result's M may be from the learner's, in total variation."""


def certify(
    result: SolveResult,
    learner: CountingEstimator,
    confidence: float = 0.95,
    *,
    behaviour: Behaviour | None = None,
    method: CertificateMethod | Literal["auto"] = "auto",
    deploy: Deployed | Literal["auto"] = "auto",
    minimum_probability: float | None = None,
    halve: bool = True,
    solver: Solver[SolveResult] | None = None,
    timeout: float = 60.0,
    occupancy_episodes: int = 0,
    seed: int = 0,
    progress: bool | None = None,
) -> Certificate:
    """Return a bound on how far from optimal a policy is in the true miss-MDP, with probability ≥ confidence.

    The bound holds if M is of the type that the learner assumes. All certificates hold together, since they rest on
    the same bound of M̂, so the smallest may be picked.

    Parameters
    ----------
    result
        What a solver found for `truth.with_missingness(learner.missingness_)`.
    learner
        The learner that was fitted; it must have a guaranteed bound, as `AMCAR`, `AsMAR` and `AIMI` have.
    confidence
        The probability with which the bound holds, over the data.
    behaviour
        Whether the policy that made the data reacts to observations, as in `learner.bound`.
    method
        "closed form", "policy-uniform", "occupancy", "robust" or "revealing", or "auto" for the smallest of all.
    deploy
        What is to be deployed: "policy", which tracks the belief; "controller", the policy graph; or "auto", whichever
        has the smaller bound. The last three methods certify the controller only.
    minimum_probability
        Theorem 3's p, if it is known: patterns that occur have at least this probability. The support test is reported.
    halve
        Whether to find out how many more samples would halve the bound; that takes as long as a few certificates.
    solver, timeout
        For "revealing", a model has to be solved that shows what the data leave open: by what, and for how many seconds
        at most. By default by `Sarsop`; with timeout 0 it is left out. Values of large models get so many seconds too,
        and bounds are wider where these do not suffice.
    occupancy_episodes, seed
        Simulate so many episodes of the policy that tracks the belief, for a certificate by the states that it visits.
        A tenth of the failure budget is spent on that.
    progress
        Whether to show progress; by default on a terminal.

    Raises
    ------
    DataError
        If the learner has no bound, or the result is for another M̂.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("example-2-smar")
    >>> learner = mm.AsMAR().fit(mm.collect(truth, 10_000, seed=0))
    >>> result = mm.Sarsop().solve(truth.with_missingness(learner.missingness_))
    >>> mm.certify(result, learner, confidence=0.95).vacuous
    False
    """
    request = _checked(result, learner, confidence, behaviour, method, deploy, solver, timeout, progress)
    episodes = _checked_episodes(occupancy_episodes)
    for_data = 1.0 - (1.0 - request.confidence) * (1.0 - SHARE if episodes else 1.0)
    request = replace(request, for_data=for_data)
    with show_status("certifying", enabled=progress) as say:
        bound = request.learner.bound(for_data, behaviour=request.behaviour)
        inputs = _inputs(request)
        found = _alternatives(request, inputs, bound, say)
        if episodes:
            say(f"simulating {episodes:,} episodes")
            found[SIMULATED] = _simulated(request, inputs, bound, episodes, checked_seed(seed))
        chosen = _smallest(request, found)
        # Both bounds may be exact, and rounding may let them cross.
        epsilon = min(max(chosen.epsilon, 0.0), inputs.span.trivial)
        halving = None
        if halve:
            say("how much more data would halve it")
            halving = _halving(request, inputs, chosen, epsilon, bound)
    support = None
    if minimum_probability is not None:
        support = support_test(request.learner, bound, minimum_probability, request.confidence)
    return _certificate(request, inputs.span, bound, found, chosen, epsilon, halving, support)


def _certificate(
    request: _Request,
    span: ValueSpan,
    bound: Bound,
    found: dict[str, Alternative],
    chosen: Alternative,
    epsilon: float,
    halving: Halving | None,
    support: SupportTest | None,
) -> Certificate:
    """Return what was found; no controller is worth less than the worst or more than the best that sees everything."""
    assert chosen.terms is not None
    low, high = (float(span.mdp.initial @ end) for end in (span.low, span.high))
    return Certificate(
        epsilon=epsilon,
        confidence=request.confidence,
        method=chosen.method if epsilon < span.trivial or span.trivial == 0.0 else "trivial",
        assumes=bound.assumes,
        deploys=chosen.deploys,
        policy=request.result.policy if chosen.deploys == "policy" else request.controller,
        terms=chosen.terms,
        value_lower=max(chosen.value_lower, low),
        value_upper=min(chosen.value_upper, high),
        best_upper=min(chosen.best, high),
        trivial=span.trivial,
        alternatives=found,
        conditions=conditions(
            request.result, request.learner, bound, chosen, support, 1.0 - request.confidence
        ),
        bound=bound,
        samples=request.learner.observation_counts_.n_steps,
        samples_to_halve=halving,
        support=support,
    )


@dataclass(frozen=True, eq=False)
class _Request:
    """What was asked for, checked."""

    result: SolveResult
    model: MissMDP
    learner: CountingEstimator
    confidence: float
    behaviour: Behaviour
    methods: tuple[CertificateMethod, ...]
    deploy: Deployed | Literal["auto"]
    solver: Solver[SolveResult] | None
    timeout: float
    progress: bool | None
    for_data: float = 0.0
    """The confidence with which the bound on M̂ has to hold."""

    @cached_property
    def controller(self) -> FiniteController:
        """The policy graph: the solver's own, or the one of the policy's vectors where it has none."""
        policy = self.result.policy
        if isinstance(policy, MemoryPolicy):
            raise ModelError("there is no policy graph: the solver's policy remembers a node per feature")
        return self.result.controller or FiniteController.from_policy(policy)


def _checked(
    result: Any,
    learner: Any,
    confidence: Any,
    behaviour: Any,
    method: Any,
    deploy: Any,
    solver: Any,
    timeout: Any,
    progress: bool | None,
) -> _Request:
    learner = checked_learner(learner)
    result = checked_instance("result", result, SolveResult, "what a solver found")
    model = result.policy.model
    if not isinstance(model, MissMDP):
        raise ModelError("certificates are for miss-MDPs; this result is for a POMDP without features")
    learned = learner.missingness_
    if model.space != learned.space or missingness_distance(model.missingness, learned).max() > _SAME:
        raise DataError(
            "the result is for another missingness function than the learner's; solve "
            "model.with_missingness(learner.missingness_)"
        )
    method = checked_choice("method", method, ("auto", *METHODS))
    if solver is not None:
        checked_instance("solver", solver, Solver, "a solver, which has solve()")
    return _Request(
        result,
        model,
        learner,
        checked_confidence(confidence),
        (learner.observation_counts_.behaviour or "adaptive")
        if behaviour is None
        else checked_behaviour(behaviour),
        METHODS if method == "auto" else (method,),
        checked_choice("deploy", deploy, ("auto", "policy", "controller")),
        solver,
        checked_number("timeout", timeout, least=0.0, finite=False),
        progress,
    )


def _inputs(request: _Request) -> CertificateInputs:
    result, span = request.result, value_span(request.model.mdp, request.timeout or None)
    values, why = None, ""
    if not set(request.methods) & {"occupancy", "robust", "revealing"} or request.deploy == "policy":
        why = "not asked for"
    else:
        try:
            product = controller_product(
                request.controller,
                request.model.missingness,
                can_go_missing(request.learner),
                counted_patterns(request.learner),
            )
            values = ControllerValues.of(product, span)
        except ModelError as error:
            why = str(error)
    return CertificateInputs(result.lower, result.upper, span, result.policy.observe_initial, values, why)


def _alternatives(
    request: _Request, inputs: CertificateInputs, bound: Bound, say: Any
) -> dict[str, Alternative]:
    """Return all certificates that were asked for, by name."""
    epsilon = bound.per_state_tv
    found: dict[str, Alternative] = {}
    okamoto = request.learner.bound(request.for_data, "okamoto", behaviour=request.behaviour)
    found[REFERENCE] = inputs.closed(okamoto.per_state_tv, REFERENCE, reference=True)
    if "closed form" in request.methods:
        found["closed form"] = inputs.closed(epsilon)
    if "policy-uniform" in request.methods:
        found["policy-uniform"] = inputs.uniform(epsilon)
    if "occupancy" in request.methods:
        say("the states that the policy graph visits")
        found["occupancy"] = inputs.occupancy(epsilon)
    if set(request.methods) & {"robust", "revealing"}:
        say("the policy graph at worst")
        robust = inputs.robust(epsilon, bound.per_state_unlisted)
        if "robust" in request.methods:
            found["robust"] = robust
        if "revealing" in request.methods:
            say("solving the model that reveals what is open")
            found["revealing"] = _revealing(request, inputs, bound, robust)
    return found


def _revealing(
    request: _Request, inputs: CertificateInputs, bound: Bound, robust: Alternative
) -> Alternative:
    if robust.why:
        return Alternative.none("revealing", "controller", robust.why)
    if request.timeout == 0.0 and request.solver is None:
        return Alternative.none("revealing", "controller", "no time was given to solve the revealing model")
    model = request.model.with_missingness(revealing_missingness(bound, request.model))
    found = _solver(request).solve(model)
    if found.policy.observe_initial != inputs.observe_initial:
        # Whoever sees nothing before the first action gets less: that would be no bound for those who do.
        first, then = ("observe", "act") if inputs.observe_initial else ("act", "observe")
        raise DataError(
            f"policies of the result {first} first, but the solver's {then} first (",
            Argument("observe_initial"),
            ")",
        )
    return inputs.revealing(robust, found.upper)


def _solver(request: _Request) -> Solver[SolveResult]:
    from missmdp.plan.sarsop.solver import Sarsop

    return request.solver or Sarsop(
        timeout=request.timeout,
        observe_initial=request.result.policy.observe_initial,
        warm_start=request.result,
        progress=False,
    )


def _checked_episodes(episodes: Any) -> int:
    whole = checked_integer("occupancy_episodes", episodes, least=0)
    if whole == 1:
        raise ParameterError("occupancy_episodes", episodes, "0 or at least 2")
    return whole


def _simulated(
    request: _Request, inputs: CertificateInputs, bound: Bound, episodes: int, seed: int
) -> Alternative:
    failure = (1.0 - request.confidence) * SHARE
    charge = bound.per_state_tv * inputs.span.width * inputs.span.matters
    missed = simulated_charge(request.result.policy, request.model, charge, episodes, failure, seed)
    return inputs.simulated(bound.per_state_tv, missed)


def _smallest(request: _Request, found: dict[str, Alternative]) -> Alternative:
    """Return the smallest certificate for what may be deployed."""
    allowed = [
        a for a in found.values() if not a.reference and not a.why and request.deploy in ("auto", a.deploys)
    ]
    if not allowed:
        why = dict.fromkeys(a.why for a in found.values() if a.why)
        reasons = "; ".join(f"{', '.join(n for n, a in found.items() if a.why == one)}: {one}" for one in why)
        raise DataError(
            f"there is no such certificate for the {'policy' if request.deploy == 'auto' else request.deploy}"
            + (f" ({reasons})" if reasons else "")
        )
    return min(allowed, key=lambda a: a.epsilon)


def _halving(
    request: _Request, inputs: CertificateInputs, chosen: Alternative, epsilon: float, bound: Bound
) -> Halving:
    """Return how much more data would halve the certificate, if by the same method."""
    assert chosen.terms is not None
    terms = chosen.terms
    now = inputs.uniform_difference(bound.per_state_tv)

    def with_data(factor: float) -> float:
        more = bound_with_more_data(request.learner, factor, request.for_data, "auto", request.behaviour)
        return _again(inputs, chosen, more, now)

    samples = request.learner.observation_counts_.n_steps
    return data_to_halve(epsilon, terms.solver, samples, with_data)


def _again(inputs: CertificateInputs, chosen: Alternative, bound: Bound, now: float) -> float:
    """Return what the same certificate would be with another bound; M⁺ is not solved again but scaled like b₀ · U."""
    assert chosen.terms is not None
    radii, unlisted = bound.per_state_tv, bound.per_state_unlisted
    match chosen.method:
        case "closed form":
            return inputs.closed(radii).epsilon
        case "policy-uniform":
            return inputs.uniform(radii).epsilon
        case "occupancy":
            return inputs.occupancy(radii).epsilon
        case "robust":
            return inputs.robust(radii, unlisted).epsilon
        case "occupancy, simulated":
            # The visits are not simulated again: what they cost shrinks like b₀ · U.
            share = inputs.uniform_difference(radii) / now if now else 0.0
            return inputs.simulated(radii, chosen.terms.after_planning * share).epsilon
        case _:
            assert inputs.values is not None
            scaled = chosen.terms.before_planning * inputs.uniform_difference(radii) / now if now else 0.0
            nominal = chosen.value_lower + chosen.terms.after_planning
            return chosen.terms.solver + scaled + nominal - inputs.values.at_worst(radii, unlisted)
