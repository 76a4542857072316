"""What a policy may be worth, given what was learned: an interval without a guarantee."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_confidence, checked_instance, checked_integer, checked_number, checked_seed
from missmdp.errors import AssumptionWarning, DataError
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.uniform import value_span
from missmdp.evaluation.simulation import why_no_control
from missmdp.evaluation.value import evaluate
from missmdp.learn.base import CountingEstimator, MissingnessEstimator
from missmdp.learn.groups import as_missingness
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy, as_policy
from missmdp.plan.finite.controller import FiniteController
from missmdp.progress import show_progress
from missmdp.words import decimals, interval_text, signed

_SOURCES = {
    "posterior": "M is drawn from the posterior of the learner's counts",
    "bootstrap": "M is learned again from resampled episodes",
}


@dataclass(frozen=True, eq=False)
class ValueInterval:
    """Values of a policy over missingness functions that the data make likely; not a guarantee."""

    values: NDArray[np.float64]
    """The value for each draw of M, shape (draws,)."""
    confidence: float
    source: Literal["posterior", "bootstrap"]
    """Where the draws come from."""
    assumes: str
    """The learner's assumption; the draws fulfil it."""
    exact: bool
    """Whether values were computed, or simulated with the same random draws for every M."""

    @property
    def interval(self) -> tuple[float, float]:
        """The middle part of the values that `confidence` says."""
        rest = 0.5 * (1.0 - self.confidence)
        low, high = np.quantile(self.values, [rest, 1.0 - rest])
        return float(low), float(high)

    @property
    def median(self) -> float:
        """The value in the middle."""
        return float(np.median(self.values))

    def __str__(self) -> str:
        places = decimals(float(self.values.std()))
        return (
            f"{signed(self.median, places)}, {100 * self.confidence:g} % of draws in "
            f"{interval_text(self.interval, places)} ({self.source}, {len(self.values):,} draws; not a guarantee)"
        )

    def __repr__(self) -> str:
        return f"ValueInterval({self})"

    def describe(self) -> str:
        """Return it in sentences."""
        return (
            f"The policy's value: {self}.\nAssuming {self.assumes}; {_SOURCES[self.source]}. This is not a guarantee: "
            "certify gives one."
        )


def value_interval(
    policy: Policy,
    learner: MissingnessEstimator,
    mdp: FactoredMDP | None = None,
    *,
    confidence: float = 0.95,
    draws: int = 100,
    prior: float = 0.5,
    episodes: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> ValueInterval:
    """Return what a policy is worth over missingness functions that are likely given the data; not a guarantee.

    For learners that count, the probabilities of each group are drawn from their Dirichlet posterior. Other learners
    are fitted again to resampled logs (`bootstrap`). Neither notices that an assumption is false.

    Parameters
    ----------
    policy
        The policy; a `FiniteController` is evaluated exactly, any other simulated, with the same random draws for
        every M.
    learner
        The fitted learner.
    mdp
        The MDP; by default the one of the learner's data.
    confidence
        The share of the draws inside the interval.
    draws
        How many missingness functions.
    prior
        What is added to every count; ½ is Jeffreys' prior.
    episodes
        Episodes per draw, for policies that are simulated.
    seed
        For the draws and the episodes.
    progress
        Whether to show progress; by default on a terminal.
    """
    policy, confidence, draws = (
        as_policy(policy),
        checked_confidence(confidence),
        checked_integer("draws", draws, least=1),
    )
    checked_instance("learner", learner, MissingnessEstimator, "a learner").check_fitted()
    mdp = checked_mdp(learner.data_.mdp if mdp is None else mdp)
    if mdp.space != learner.missingness_.space:
        raise DataError("what was learned is for another MDP: its states are not the same")
    functions, source = _drawn(learner, mdp, draws, prior, checked_seed(seed))
    values, control = np.empty(draws), why_no_control(mdp) is None
    exact = _Exact(policy, mdp) if isinstance(policy, FiniteController) else None
    with show_progress("Evaluating draws", draws, enabled=progress) as advance:
        for i, M in enumerate(functions):
            if exact is not None:
                values[i] = exact.value(M)
            else:
                found = evaluate(
                    policy, MissMDP(mdp, M), episodes, seed, control_variate=control, progress=False
                )
                values[i] = found.mean
            advance()
    return ValueInterval(values, confidence, source, learner.assumed_, exact is not None)


class _Exact:
    """Evaluates a controller for one M after another, each from where the last one ended."""

    def __init__(self, controller: FiniteController, mdp: FactoredMDP) -> None:
        if not isinstance(controller.model, MissMDP) or controller.model.mdp != mdp:
            raise DataError("the controller is for another MDP")
        self._controller = controller
        self._span = value_span(mdp)
        self._last: ControllerValues | None = None

    def value(self, missingness: MissingnessFunction) -> float:
        product = controller_product(self._controller, missingness)
        if self._last is None:
            self._last = ControllerValues.of(product, self._span)
        else:
            self._last = self._last.with_product(product)
        low, high = self._last.value()
        return 0.5 * (low + high)


def _drawn(
    learner: MissingnessEstimator, mdp: FactoredMDP, draws: int, prior: float, seed: int
) -> tuple[list[MissingnessFunction], Literal["posterior", "bootstrap"]]:
    """Return missingness functions, and where they come from."""
    if isinstance(learner, CountingEstimator):
        prior = checked_number("prior", prior, above=0.0)
        rng = np.random.default_rng(seed)
        return [_posterior_draw(learner, mdp, prior, rng) for _ in range(draws)], "posterior"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        enough = learner.enough_to_resample()
    if not enough:
        raise DataError("there are too few data for an interval of the value")
    return list(learner.bootstrap(draws, seed)), "bootstrap"


def _posterior_draw(
    learner: CountingEstimator, mdp: FactoredMDP, prior: float, rng: np.random.Generator
) -> MissingnessFunction:
    parts = [
        (part, np.stack([rng.dirichlet(row) for row in part.counts + prior])) for part in learner.counts_
    ]
    return as_missingness(mdp, parts)
