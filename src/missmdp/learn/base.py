"""The base of all learners: parameters in the constructor, `fit` returns self, what was learned ends in `_`."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_choice, checked_integer, checked_names, checked_number, checked_seed
from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.errors import AssumptionWarning, DataError, ParameterError
from missmdp.learn.assumptions import AssumptionFinding, outside_the_model
from missmdp.learn.bootstrap import FEWEST_UNITS, bootstrap_bound, drawn_anew, units
from missmdp.learn.bounds import Bound, learned_bound
from missmdp.learn.groups import (
    Counter,
    GroupCounts,
    Unseen,
    as_missingness,
    count_groups,
    unseen_groups,
)
from missmdp.learn.limits import Method
from missmdp.learn.table import GroupTruth, group_truths
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_progress

UnseenChoice = Literal["uniform", "pooled"]

_MOST_SMOOTHING = 1e9


class MissingnessEstimator(ABC):
    """Base of all learners: parameters go into the constructor, and learned attributes end in `_`.

    Your own learner has a constructor that only stores its parameters, `assumes`, `check_parameters` and `fit`,
    which sets the attributes below. Without its own `bound`, it gets bootstrap intervals.

    Attributes
    ----------
    missingness_ : MissingnessFunction
        M̂, over all states of the MDP.
    always_observed_ : tuple of str
        The features taken as always observed: those declared, or those never missing in the data.
    unseen_ : sequence of Unseen
        The groups of reachable states without data, and what they were given.
    warnings_ : tuple of AssumptionFinding
        Where the data contradict what the learner assumes.
    assumed_ : str
        What was assumed.
    n_parameters_ : int
        How many probabilities were free, over reachable states.
    data_ : Dataset or ObservationCounts
        The data it was fitted to.
    graph_ : MissingnessGraph or None
        What M̂ depends on, if the learner's structure says so.
    """

    has_bound: ClassVar[bool] = False
    """Whether `bound` is guaranteed for a finite number of samples; if not, it comes from a bootstrap."""
    needs_histories: ClassVar[bool] = False
    """Whether it learns from whole histories and their actions, so counts of observations are not enough."""

    missingness_: MissingnessFunction
    always_observed_: tuple[str, ...]
    unseen_: Sequence[Unseen]
    warnings_: tuple[AssumptionFinding, ...]
    assumed_: str
    n_parameters_: int
    data_: Dataset | ObservationCounts
    graph_: MissingnessGraph | None = None

    @property
    @abstractmethod
    def assumes(self) -> str:
        """The assumption under which M̂ converges to M."""

    @abstractmethod
    def fit(self, data: Any) -> Self:
        """Learn M̂ and return self."""

    @abstractmethod
    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `ParameterError` if a parameter is invalid."""

    def bound(
        self,
        confidence: float = 0.95,
        method: Method = "auto",
        *,
        behaviour: Behaviour | None = None,
        draws: int = 100,
        seed: int = 0,
    ) -> Bound:
        """Return bootstrap intervals for M. They are not guaranteed: `has_bound` is False.

        Parameters
        ----------
        confidence
            The confidence of each interval separately.
        method
            "bootstrap" is the only method; "auto" means the same.
        behaviour
            Without effect.
        draws
            How many logs to draw.
        seed
            Decides what is drawn.
        """
        self.check_fitted()
        self._check_bootstrap(method)
        checked_integer("draws", draws, least=1)
        drawn = self.bootstrap(draws, checked_seed(seed)) if self.enough_to_resample() else ()
        return bootstrap_bound(
            self.missingness_,
            drawn,
            as_counts(self.data_),
            confidence,
            self.assumed_,
            getattr(self, "always_observed", None) or (),
        )

    def enough_to_resample(self) -> bool:
        """Return whether there are data enough for a bootstrap; without, `bound` claims nothing, with a warning."""
        self.check_fitted()
        found = units(self.data_, histories=self.needs_histories)
        return self._warn_of_few(found, "episodes" if self.needs_histories else "observations")

    def _warn_of_few(self, found: int, what: str) -> bool:
        if found < FEWEST_UNITS:
            problem = f"{found} {what} are too few for a bootstrap: there are no intervals"
            warnings.warn(problem, AssumptionWarning, stacklevel=4)
        return found >= FEWEST_UNITS

    def bootstrap(self, draws: int = 100, seed: int = 0) -> list[MissingnessFunction]:
        """Return what is learned from logs that are drawn from the log with replacement.

        Whole episodes are drawn, or single observations where there are fewer than 20 episodes, or only counts.
        """
        self.check_fitted()
        checked_integer("draws", draws, least=1)
        found: list[MissingnessFunction] = []
        logs = drawn_anew(self.data_, draws, checked_seed(seed), histories=self.needs_histories)
        with show_progress("Resampling the log", draws, enabled=getattr(self, "progress", None)) as advance:
            for log in logs:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", AssumptionWarning)
                    found.append(type(self)(**self.get_params()).fit(log).missingness_)
                advance()
        return found

    def group_truths(self, bound: Bound, truth: MissMDP, weights: NDArray[np.float64]) -> list[GroupTruth]:
        """Return what is true of each group of a bound, in its order, where the true M is known.

        Parameters
        ----------
        bound
            What `bound` returned.
        truth
            The model with the true M.
        weights
            How often each state is visited, shape (S,).
        """
        return group_truths(bound.per_group, truth, weights)

    def title(self) -> str:
        """Return the learner with its parameters, as a heading."""
        return repr(self)

    def details(self) -> list[str]:
        """Return further findings, one sentence each; none if M̂ says it all."""
        return []

    def check_fitted(self) -> None:
        """Raise `DataError` before `fit`."""
        if not hasattr(self, "missingness_"):
            raise DataError(f"{type(self).__name__} has learned nothing yet: call fit(data) first")

    def _check_bootstrap(self, method: str) -> None:
        if not isinstance(method, str) or method not in ("bootstrap", "auto"):  # pyright: ignore[reportUnnecessaryIsInstance]
            name = type(self).__name__
            raise ParameterError(
                "method",
                method,
                "'bootstrap' or 'auto'",
                f"{name} has no finite-sample bound, so there is no method {method!r}; it has 'bootstrap' (AIMI has "
                "bounds if indicators are independent, AsMAR if they depend on always-observed features only)",
            )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor and return self."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise DataError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if repr(v) != repr(defaults[n])]
        return f"{type(self).__name__}({', '.join(given)})"

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name} yet: call fit(data) first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Structure(NamedTuple):
    """What a learner counts, once it is known which features go missing."""

    counters: tuple[Counter, ...]
    """One for each factor of M̂; the factors are independent given the state."""
    sentinels: tuple[Counter, ...]
    """Features that seem always observed, each with a counter of its own for the bounds."""
    hidden: int
    """Categories beyond the patterns: 1 if a feature that seems always observed may turn out missing."""
    candidates: int
    """In how many ways the data could have decided what the groups are; the failure budget is split over them."""


class CountingEstimator(MissingnessEstimator):
    """Base of the learners that count.

    Attributes
    ----------
    counts_ : tuple of GroupCounts
        The counters, one for each factor of M̂.
    estimates_ : tuple of numpy.ndarray
        The probabilities of each counter's patterns, shape (groups, patterns) each.
    structure_ : Structure
        What was counted.
    """

    has_bound = True

    smoothing: float
    unseen: UnseenChoice
    always_observed: Sequence[str] | None

    counts_: tuple[GroupCounts, ...]
    estimates_: tuple[NDArray[np.float64], ...]
    structure_: Structure
    observation_counts_: ObservationCounts

    def fit(self, data: Dataset | ObservationCounts) -> Self:
        """Learn M̂ from a dataset or from its counts, and return self."""
        counts = as_counts(data)
        self.check_parameters(counts.mdp.space.features)
        if counts.n_steps == 0:
            raise DataError("there are no observations to learn from")
        features = counts.mdp.space.features
        missing = ~features.mask(counts.always_observed())
        self.check_declared(features, missing, counts)
        structure = self.structure(features, missing)
        parts = [count_groups(counts, c, only_seen=self.only_seen) for c in structure.counters]
        estimates = [part.probabilities(self.smoothing, self.unseen) for part in parts]
        self.missingness_ = as_missingness(counts.mdp, list(zip(parts, estimates, strict=True)))
        self.counts_, self.estimates_, self.structure_ = tuple(parts), tuple(estimates), structure
        self.assumed_ = self.assumes
        self.always_observed_ = features.chosen(~_counted(structure.counters, len(features)))
        self.unseen_ = unseen_groups(parts, self.unseen)
        self.n_parameters_ = sum(int(part.reachable.sum()) * (len(part.patterns) - 1) for part in parts)
        self.data_, self.observation_counts_ = data, counts
        self.warnings_ = (*outside_the_model(counts, parts), *self._findings(counts, self.counts_))
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=2)
        return self

    def bound(
        self,
        confidence: float = 0.95,
        method: Method = "auto",
        *,
        behaviour: Behaviour | None = None,
        draws: int = 100,
        seed: int = 0,
    ) -> Bound:
        """Return how far M̂ can be from M, with probability at least `confidence`, if the assumption holds.

        Parameters
        ----------
        confidence
            The paper's δ: the probability that the bound holds for all reachable states at once.
        method
            "auto" (Clopper–Pearson for one indicator, Weissman or McDiarmid together with Clopper–Pearson per
            pattern for several, the mixture for adaptive behaviour), "okamoto" (the paper's),
            "clopper-pearson", "weissman" (the smaller of Weissman's and McDiarmid's radius) or "anytime"
            (mixture confidence sequences).
        behaviour
            "blind" if the policy that made the data never reacts to observations, "adaptive" if it may; by default
            what the data record, and "adaptive" if they record nothing. Under adaptive behaviour the number of
            samples depends on the outcomes, so the bound must hold for every number at once: bounds for a fixed
            number spend α/(n(n + 1)) on n samples.
        draws, seed
            Without effect: nothing is drawn.
        """
        self.check_fitted()
        counts = self.observation_counts_
        # What was learned, whatever has been set since.
        structure = self.structure_
        return learned_bound(
            parts=list(zip(self.counts_, self.estimates_, strict=True)),
            sentinels=[count_groups(counts, counter) for counter in structure.sentinels],
            hidden=structure.hidden,
            candidates=structure.candidates,
            missingness=self.missingness_,
            reachable=counts.mdp.reachable,
            confidence=confidence,
            method=method,
            behaviour=(counts.behaviour or "adaptive") if behaviour is None else behaviour,
            assumes=self.assumed_,
        )

    @abstractmethod
    def structure(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> Structure:
        """Return what to count if the features of the mask `missing`, shape (n,), go missing."""

    @property
    def only_seen(self) -> bool:
        """Whether M̂ has only the patterns that occur in the data."""
        return False

    def _findings(
        self, counts: ObservationCounts, parts: tuple[GroupCounts, ...]
    ) -> Iterable[AssumptionFinding]:
        """Yield where the data speak against the assumption."""
        return ()

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter is invalid."""
        check_shared_parameters(features, self.smoothing, self.unseen, self.always_observed)

    def check_declared(
        self, features: FeatureSpace, missing: NDArray[np.bool_], counts: ObservationCounts | None = None
    ) -> None:
        """Raise `DataError` if a feature of the mask `missing`, shape (n,), is declared never to go missing."""
        check_always_observed(self.always_observed or (), features, missing, counts)


def check_shared_parameters(
    features: FeatureSpace, smoothing: Any, unseen: Any, always_observed: Sequence[str] | None
) -> None:
    """Raise `ParameterError` if a parameter that learners share cannot be."""
    checked_number("smoothing", smoothing, least=0.0, most=_MOST_SMOOTHING)
    checked_choice("unseen", unseen, ("uniform", "pooled"))
    if always_observed is not None:
        checked_names("always_observed", always_observed, features.names)


def check_always_observed(
    declared: Iterable[str],
    features: FeatureSpace,
    missing: NDArray[np.bool_],
    counts: ObservationCounts | None = None,
) -> None:
    """Raise `DataError` if a declared feature is one of the mask `missing`, shape (n,)."""
    for name in declared:
        place = features.position(name)
        if missing[place]:
            seen = (
                ""
                if counts is None
                else f", in {counts.counts[~counts.observed[:, place]].sum():,} observations"
            )
            raise DataError(f"{name!r} is declared always observed, but it goes missing{seen}")


def _counted(counters: Sequence[Counter], n_features: int) -> NDArray[np.bool_]:
    counted = np.zeros(n_features, dtype=np.bool_)
    for counter in counters:
        counted |= counter.features
    return counted
