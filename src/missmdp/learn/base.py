"""The contract of learners: parameters in the constructor, `fit` returns self, what was learned ends in `_`."""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.errors import AssumptionWarning, DataError
from missmdp.learn.assumptions import Finding, outside_the_model
from missmdp.learn.bounds import Bound, learned_bound
from missmdp.learn.groups import Counter, GroupCounts, Unseen, as_missingness, count_groups
from missmdp.learn.limits import Method
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import FeatureSpace

__all__ = ["CountingEstimator", "MissingnessEstimator", "Structure"]

UnseenChoice = Literal["uniform", "pooled"]

_MOST_SMOOTHING = 1e9


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


class MissingnessEstimator(ABC):
    """What learns a missingness function from data: parameters in the constructor, what was learned ends in `_`.

    Attributes
    ----------
    missingness_ : MissingnessFunction
        M̂, over all states of the MDP.
    always_observed_ : tuple of str
        The features taken as always observed: those declared, or those never missing in the data.
    unseen_ : tuple of Unseen
        The groups of reachable states without data, and what they got.
    warnings_ : tuple of Finding
        Where the data speak against what the learner assumes.
    assumed_ : str
        What was assumed.
    """

    missingness_: MissingnessFunction
    always_observed_: tuple[str, ...]
    unseen_: tuple[Unseen, ...]
    warnings_: tuple[Finding, ...]
    assumed_: str

    @property
    @abstractmethod
    def assumes(self) -> str:
        """The assumption under which M̂ converges to M."""

    @abstractmethod
    def fit(self, data: Any) -> Self:
        """Learn M̂ and return self."""

    @abstractmethod
    def bound(self, confidence: float = 0.95) -> Bound:
        """Return how far M̂ can be from M."""

    @abstractmethod
    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter cannot be."""

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
        self.unseen_ = tuple(group for part in parts for group in part.unseen(self.unseen))
        self.observation_counts_ = counts
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
            "blind" if the policy that made the data never reacts to observations, "adaptive" if it may; by
            default what the data say of themselves, and "adaptive" where they say nothing. Under adaptive
            behaviour the number of samples depends on the outcomes, so the bound must hold for every
            number at once: bounds for a fixed number spend α/(n(n + 1)) on n samples.
        """
        if not hasattr(self, "missingness_"):
            raise DataError(f"{type(self).__name__} has learned nothing yet: call fit(data) first")
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

    def _findings(self, counts: ObservationCounts, parts: tuple[GroupCounts, ...]) -> Iterable[Finding]:
        """Yield where the data speak against the assumption."""
        return ()

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter cannot be."""
        check_shared_parameters(features, self.smoothing, self.unseen, self.always_observed)

    def check_declared(
        self, features: FeatureSpace, missing: NDArray[np.bool_], counts: ObservationCounts | None = None
    ) -> None:
        """Raise `DataError` if a feature of the mask `missing`, shape (n,), is declared never to go missing."""
        check_always_observed(self.always_observed or (), features, missing, counts)


def check_shared_parameters(
    features: FeatureSpace, smoothing: Any, unseen: Any, always_observed: Sequence[str] | None
) -> None:
    """Raise `DataError` if a parameter that learners share cannot be."""
    if (
        isinstance(smoothing, bool)
        or not isinstance(smoothing, int | float | np.integer | np.floating)
        or not (0.0 <= smoothing <= _MOST_SMOOTHING)
    ):
        raise DataError(f"smoothing must be a number from 0 to {_MOST_SMOOTHING:g}, got {smoothing!r}")
    if unseen not in ("uniform", "pooled"):
        raise DataError(f"unseen must be 'uniform' or 'pooled', got {unseen!r}")
    if always_observed is not None:
        checked_names(features, always_observed, "always_observed")


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


def checked_names(features: FeatureSpace, names: Any, what: str) -> tuple[str, ...]:
    """Return names of features; raise `DataError` for anything else."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise DataError(f"{what} must be a list of features, got {names!r}")
    listed = tuple(cast("Iterable[Any]", names))
    for name in listed:
        if name not in features.names:
            raise DataError(
                f"{what}: there is no feature {name!r}; the features are {', '.join(features.names)}"
            )
    return listed


def checked_blocks(features: FeatureSpace, blocks: Any) -> list[tuple[str, ...]]:
    """Return blocks of features that do not overlap; raise `DataError` for anything else."""
    if isinstance(blocks, str) or not isinstance(blocks, Iterable):
        raise DataError(f"blocks must be a list of lists of features, got {blocks!r}")
    given: list[tuple[str, ...]] = []
    for block in cast("Iterable[Any]", blocks):
        if isinstance(block, str):
            raise DataError(
                f"blocks must be a list of lists of features, such as [('x', 'y')]; {block!r} is no list"
            )
        names = checked_names(features, block, "blocks")
        if not names:
            raise DataError("a block of features is empty")
        given.append(names)
    owned = [name for block in given for name in block]
    for name in owned:
        if owned.count(name) > 1:
            raise DataError(f"the feature {name!r} is in two blocks, or in one twice")
    return given


def _counted(counters: Sequence[Counter], n_features: int) -> NDArray[np.bool_]:
    counted = np.zeros(n_features, dtype=np.bool_)
    for counter in counters:
        counted |= counter.features
    return counted
