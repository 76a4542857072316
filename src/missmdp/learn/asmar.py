"""AsMAR and AMCAR: frequencies of whole patterns, by the always-observed features or in all (Sec. 4.1)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_choice, checked_names
from missmdp.data.counts import ObservationCounts
from missmdp.learn.assumptions import AssumptionFinding, dependence_on_values, few_samples
from missmdp.learn.base import CountingEstimator, Structure, UnseenChoice
from missmdp.learn.groups import Counter, GroupCounts
from missmdp.model.space import FeatureSpace

PatternChoice = Literal["all", "seen"]


class _JointPatterns(CountingEstimator):
    """Counts whole patterns of the features that go missing."""

    patterns: PatternChoice

    def check_parameters(self, features: FeatureSpace) -> None:
        super().check_parameters(features)
        checked_choice("patterns", self.patterns, ("all", "seen"))

    @property
    def only_seen(self) -> bool:
        return self.patterns == "seen"

    @abstractmethod
    def _given(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the features by whose values patterns are counted, shape (n,)."""

    def structure(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> Structure:
        """Return one counter of joint patterns.

        Unless Î_always is declared, it is the data that decide what goes missing, hence the groups: the
        failure budget is split over all 2ⁿ ways in which they could have decided, and every group has one
        more category, "a feature of Î_always is missing", with count 0.
        """
        declared = features.mask(self.always_observed or ())
        open_ = int((~declared).sum())
        counter = Counter(missing, self._given(features, missing), together=False)
        return Structure((counter,), (), int((~missing & ~declared).any()), 2**open_)

    def _findings(
        self, counts: ObservationCounts, parts: tuple[GroupCounts, ...]
    ) -> Iterable[AssumptionFinding]:
        yield from few_samples(counts, declared=self.always_observed or ())
        yield from dependence_on_values(counts, parts, self.assumes)


class AsMAR(_JointPatterns):
    """Learns M under simple MAR: patterns depend on always-observed features only (Eq. 1, eq:Mhat-AsMAR).

    M̂(r | s) = (#(s, r) + κ) / Σ_r′ (#(s, r′) + κ), where #(s, r) counts the observations that agree with s
    on the always-observed features and show exactly the features of r.

    Parameters
    ----------
    smoothing
        κ, added to the count of every pattern of the features that go missing in the data. Features that
        are never missing stay always observed.
    ignore
        Always-observed features that are known not to matter; states that differ in them only are counted
        together.
    always_observed
        The features that are known to be always observed; by default those that are never missing in the data
        (Î_always). Declaring them makes bounds tighter.
    unseen
        What a group of states without data gets: "uniform" over the patterns, as smoothing alone would give,
        or "pooled", the frequencies over all groups.
    patterns
        "all" combinations of the features that go missing, or only those "seen" in the data.

    Deviation
    ---------
    Z_s^r needs "r_i = 0 ⟺ z_i = ⊥": with "⟹", as printed, observations count for several patterns. κ goes on
    patterns that can occur only, so always-observed features stay always observed.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-smar")
    >>> learner = mm.AsMAR().fit(mm.collect(truth, 100_000, seed=0))
    >>> learner.always_observed_
    ('test', 'temperature')
    >>> mm.total_variation(learner.missingness_, truth.missingness).worst < 0.04
    True
    """

    @property
    def assumes(self) -> str:
        """Simple MAR, and that what is ignored does not matter."""
        return f"simple MAR, whatever {' and '.join(self.ignore)}" if self.ignore else "simple MAR"

    def __init__(
        self,
        *,
        smoothing: float = 1e-3,
        ignore: Sequence[str] = (),
        always_observed: Sequence[str] | None = None,
        unseen: UnseenChoice = "uniform",
        patterns: PatternChoice = "all",
    ) -> None:
        self.smoothing = smoothing
        self.ignore = ignore
        self.always_observed = always_observed
        self.unseen = unseen
        self.patterns = patterns

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter is invalid."""
        super().check_parameters(features)
        checked_names("ignore", self.ignore, features.names)

    def _given(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return ~missing & ~features.mask(self.ignore)

    def _findings(
        self, counts: ObservationCounts, parts: tuple[GroupCounts, ...]
    ) -> Iterable[AssumptionFinding]:
        for name in self.ignore:
            if name not in counts.always_observed():
                yield AssumptionFinding(
                    f"{name}: goes missing, so AsMAR does not count by it anyway", (name,)
                )
        yield from super()._findings(counts, parts)


class AMCAR(_JointPatterns):
    """Learns M under MCAR: patterns depend on nothing, so only they are counted (Sec. 4.1).

    Parameters
    ----------
    smoothing, always_observed, unseen, patterns
        As for `AsMAR`.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("predator-mcar")
    >>> learner = mm.AMCAR().fit(mm.collect(truth, 1000, seed=0))
    >>> round(float(learner.missingness_.missing_rate("x")[0]), 2)
    0.95
    """

    @property
    def assumes(self) -> str:
        """MCAR."""
        return "MCAR"

    def __init__(
        self,
        *,
        smoothing: float = 1e-3,
        always_observed: Sequence[str] | None = None,
        unseen: UnseenChoice = "uniform",
        patterns: PatternChoice = "all",
    ) -> None:
        self.smoothing = smoothing
        self.always_observed = always_observed
        self.unseen = unseen
        self.patterns = patterns

    def _given(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.zeros_like(missing)
