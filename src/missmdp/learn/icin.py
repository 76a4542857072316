"""ICIN: indicators that depend on each other, without self-censoring, in closed form.

Itemwise conditionally independent nonresponse (Sadinle and Reiter): whether a feature is missing does not depend on
its own value, given all other values and indicators; indicators may depend on each other. Then the log odds of a
missing set m against nothing missing are a sum over its subsets,

    log M(m | s) / M(∅ | s) = Σ_{∅ ≠ m′ ⊆ m} η_m′(s_−m′),

where η_m′ does not depend on the values that m′ lacks. Adding up over those values gives, by increasing size of m,

    η_m(s_−m) = log P(z: m missing, s_−m) − log Σ_{s_m} P(s, nothing missing) · exp Σ_{∅ ≠ m′ ⊊ m} η_m′(s_−m′).

Missing sets are numbered by their bits: set m lacks block i if bit i of m is 1, and set 0 lacks nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.data.dataset import Dataset
from missmdp.errors import AssumptionWarning, DataError
from missmdp.learn.assumptions import AssumptionFinding, never_observed
from missmdp.learn.base import (
    MissingnessEstimator,
    UnseenChoice,
    check_always_observed,
    check_shared_parameters,
)
from missmdp.learn.blocks import Blocks, checked_feature_blocks
from missmdp.learn.groups import Unseen
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import MISSING, FeatureSpace

_CERTAIN = 800.0
"""Log odds that stand for certainty: the other side's probability is 0 in floating point."""

_MOST = 700.0
"""The logarithm of about the largest number there is."""

_CLEARLY = 10.0
"""A pattern that is never seen is reported if it would be expected more often than this."""

_MOST_NAMED = 3
"""Patterns that one warning names."""

_MOST_BLOCKS = 14
"""Blocks up to which M̂ is computed: that takes 3ᵐ steps."""


class ICIN(MissingnessEstimator):
    """Learns M when indicators may depend on each other, but none on its own feature.

    Itemwise conditionally independent nonresponse: given all other values and all other indicators, whether a
    feature is missing does not depend on its value. This is weaker than `AIMI`'s assumption, which also requires
    independent indicators. M̂ comes in closed form from how often each observation occurs, and fits these
    frequencies exactly, so no data can contradict the assumption. It needs complete cases (observations that show
    everything), and every pattern of the features that go missing must be possible.

    Parameters
    ----------
    blocks
        Features that go missing together, such as [("x", "y")]: a block is one indicator. Other features that
        always go missing together in the data become one block automatically; [("x",), ("y",)] keeps x and y apart.
    smoothing
        κ, added to how often a pattern is seen, and to how often it would be expected from smaller ones.
    always_observed
        Features that are known to be always observed: data in which one of them is missing are refused.
    unseen
        What to assume where there are no data: "uniform", which is odds of 1 for one feature or block and no
        dependence between several, or "pooled", what holds for all values taken together.

    Attributes
    ----------
    blocks_ : tuple of tuple of str
        The features that go missing, by block.

    Notes
    -----
    Sadinle and Reiter, Itemwise conditionally independent nonresponse modelling for incomplete multivariate data,
    Biometrika 2017. With one feature or block that goes missing, M̂ is that of `AIMI`.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("predator-smar")
    >>> learner = mm.ICIN().fit(mm.collect(truth, 100_000, seed=0))
    >>> learner.blocks_
    (('x', 'y'),)
    >>> mm.total_variation(learner.missingness_, truth.missingness).worst < 0.05
    True
    """

    blocks_: tuple[tuple[str, ...], ...]

    @property
    def assumes(self) -> str:
        """No self-censoring, given the other indicators."""
        return "no self-censoring, where indicators may depend on each other"

    def __init__(
        self,
        *,
        blocks: Sequence[Sequence[str]] = (),
        smoothing: float = 1e-3,
        always_observed: Sequence[str] | None = None,
        unseen: UnseenChoice = "uniform",
    ) -> None:
        self.blocks = blocks
        self.smoothing = smoothing
        self.always_observed = always_observed
        self.unseen = unseen

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter is invalid."""
        check_shared_parameters(features, self.smoothing, self.unseen, self.always_observed)
        checked_feature_blocks(features, self.blocks)

    def fit(self, data: Dataset | ObservationCounts) -> Self:
        """Learn M̂ from a dataset or from its counts, and return self."""
        counts = as_counts(data)
        mdp, features = counts.mdp, counts.mdp.space.features
        self.check_parameters(features)
        if counts.n_steps == 0:
            raise DataError("there are no observations to learn from")
        check_always_observed(
            self.always_observed or (), features, ~features.mask(counts.always_observed()), counts
        )
        blocks = _blocks(counts, checked_feature_blocks(features, self.blocks))
        sets = [_count(counts, pattern) for pattern in blocks.patterns]
        weights = pattern_weights(
            [one.shown for one in sets], smoothing=float(self.smoothing), pooled=self.unseen == "pooled"
        )
        table = pattern_probabilities(weights)
        self.missingness_ = MissingnessFunction(mdp.space, blocks.patterns, table)
        self.n_parameters_ = sum(len(np.unique(one.shown.label[mdp.reachable])) for one in sets[1:])
        self.data_ = data
        self.blocks_ = blocks.names
        self.always_observed_ = counts.always_observed()
        self.assumed_ = self.assumes
        self.unseen_ = tuple(_unseen(mdp, blocks, weights, sets, self.unseen))
        self.warnings_ = (
            *never_observed(counts),
            *_no_complete_cases(sets[0]),
            *_outside(counts, sets),
            *_impossible_patterns(blocks, weights, sets),
            *_impossible_data(sets, table),
        )
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=2)
        return self


class _Set(NamedTuple):
    """One set of features that are missing together, in the data."""

    shown: Shown
    given: NDArray[np.signedinteger]
    """The values of each observation of `shown`, `MISSING` for those that are missing, shape (G, n)."""
    outside: int
    """How often the set is missing in observations that no state of the model shows."""


def _blocks(counts: ObservationCounts, named: list[tuple[str, ...]]) -> Blocks:
    """Return the named blocks, and the other features in blocks of those that always go missing together."""
    mdp, features = counts.mdp, counts.mdp.space.features
    inside = features.mask(name for block in named for name in block)
    given = Blocks.seen_in(mdp, counts.observed | ~inside, named)
    found = Blocks.seen_in(mdp, counts.observed | inside)
    names = [*given.names, *found.names]
    if len(names) > _MOST_BLOCKS:
        raise DataError(
            f"{len(names)} features or blocks go missing on their own; ICIN compares every set of them with all "
            f"its parts, which takes too long for more than {_MOST_BLOCKS}; AIMI needs no such comparison"
        )
    return Blocks.of(features, names, mdp.n_states)


def _count(counts: ObservationCounts, pattern: NDArray[np.bool_]) -> _Set:
    """Return how often each observation occurs that shows exactly the features of a pattern, shape (n,)."""
    space = counts.mdp.space
    ranks, label = np.unique(
        space.features.rank(np.where(pattern, space.codes, MISSING)), return_inverse=True
    )
    rows = (counts.observed == pattern).all(axis=1)
    wanted, times = space.features.rank(counts.codes[rows]), counts.counts[rows]
    place = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    inside = ranks[place] == wanted
    total = np.bincount(place[inside], times[inside], minlength=len(ranks))
    shown = Shown(label.reshape(-1).astype(np.int64), total.astype(np.float64))
    return _Set(shown, space.features.unrank(ranks), int(times[~inside].sum()))


def _unseen(
    mdp: FactoredMDP, blocks: Blocks, weights: PatternWeights, sets: Sequence[_Set], gets: str
) -> Iterator[Unseen]:
    """Yield the groups of reachable states for which no data say how often a set is missing."""
    features = mdp.space.features
    reachable = np.flatnonzero(mdp.reachable)
    for pattern, one, unseen in zip(blocks.patterns, sets, weights.unseen, strict=True):
        label = one.shown.label[reachable]
        for group in np.unique(label[unseen[label]]):
            codes = one.given[group]
            values = {
                name: values[codes[i]]
                for i, (name, values) in enumerate(features.as_dict().items())
                if pattern[i]
            }
            yield Unseen(features.chosen(~pattern), values, reachable[label == group], gets)


def _no_complete_cases(complete: _Set) -> Iterator[AssumptionFinding]:
    if not complete.shown.times.any():
        yield AssumptionFinding(
            "no observation shows every feature, and ICIN learns how indicators depend on values from those that do",
            (),
        )


def _outside(counts: ObservationCounts, sets: Sequence[_Set]) -> Iterator[AssumptionFinding]:
    outside = sum(one.outside for one in sets)
    if outside:
        yield AssumptionFinding(
            f"{outside:,} of {counts.n_steps:,} observations have values that no state of the model has, and are "
            "left out (missmdp.validate says which)",
            (),
        )


def _impossible_patterns(
    blocks: Blocks, weights: PatternWeights, sets: Sequence[_Set]
) -> Iterator[AssumptionFinding]:
    """Yield the sets that are never missing though the data say that they could be, against positivity."""
    seen = np.array([bool(one.shown.times.any()) for one in sets])
    within = seen.copy()
    for i in range(len(blocks.names)):
        # Set m is within set m + 2ⁱ.
        halves = within.reshape(-1, 2, 2**i)
        halves[:, 0] |= halves[:, 1]
    numbers = range(1, len(sets))
    within_more = [m for m in numbers if within[m] and not seen[m]]
    never = [m for m in numbers if not seen[m] and m not in within_more and weights.expected[m] > _CLEARLY]
    for which, what in ((within_more, "only missing together with more"), (never, "never missing at once")):
        if which:
            more = f" and {len(which) - _MOST_NAMED} other sets" if len(which) > _MOST_NAMED else ""
            listed = "; ".join(" + ".join(_features(blocks, m)) for m in which[:_MOST_NAMED])
            yield AssumptionFinding(
                f"{listed}{more}: {what}; ICIN takes every pattern as possible, so what it says of this rests on "
                "smoothing (if features go missing together, give blocks)",
                tuple(dict.fromkeys(name for m in which for name in _features(blocks, m))),
            )


def _features(blocks: Blocks, m: int) -> tuple[str, ...]:
    """Return the features that a missing set lacks."""
    return tuple(name for i, block in enumerate(blocks.names) if m >> i & 1 for name in block)


def _impossible_data(sets: Sequence[_Set], table: NDArray[np.float64]) -> Iterator[AssumptionFinding]:
    """Yield how many observations M̂ takes for impossible, which happens without smoothing."""
    times = 0
    for m, (shown, _, _) in enumerate(sets):
        possible = np.zeros(len(shown.times), dtype=np.bool_)
        np.logical_or.at(possible, shown.label, table[:, m] > 0.0)
        times += int(shown.times[~possible].sum())
    if times:
        yield AssumptionFinding(
            f"{times:,} observations are impossible under M̂, as smaller patterns were never seen with their values "
            "(smoothing > 0 helps)",
            (),
        )


class Shown(NamedTuple):
    """What states look like where a set of blocks is missing, and how often that is seen."""

    label: NDArray[np.int64]
    """The observation that each state shows, shape (S,)."""
    times: NDArray[np.float64]
    """How often, or with which probability, each observation occurs, shape (G,)."""


@dataclass(frozen=True, eq=False)
class PatternWeights:
    """What the closed form gives: K missing sets, S states."""

    log_odds: NDArray[np.float64]
    """log M(m | s) / M(∅ | s), shape (K, S)."""
    expected: tuple[float, ...]
    """How often each set would be missing if η_m were 0, all values taken together, K entries."""
    unseen: tuple[NDArray[np.bool_], ...]
    """The observations of each set for which no data say what η_m is, shape (G,) each."""


def pattern_weights(
    shown: Sequence[Shown], *, smoothing: float = 0.0, pooled: bool = False
) -> PatternWeights:
    """Return the log odds of every missing set, by the closed form.

    Parameters
    ----------
    shown
        For every missing set in order, what is seen; the first is fully observed.
    smoothing
        κ: exp η_m = (seen + κ) / (expected + κ), so little data mean odds near 1 for a single block, and indicators
        that hardly depend on each other for several.
    pooled
        Whether η_m, where no data say what it is, comes from all values taken together; otherwise it is 0.
    """
    with np.errstate(divide="ignore"):
        log_complete = np.log(shown[0].times[shown[0].label])
        log_smoothing = float(np.log(smoothing))
    eta = np.zeros((len(shown), len(log_complete)))
    log_odds = np.zeros_like(eta)
    expected_of = [float(shown[0].times.sum())]
    unseen_of = [np.zeros(len(shown[0].times), dtype=np.bool_)]
    for m in range(1, len(shown)):
        label, times = shown[m]
        below = np.zeros(len(log_complete))
        for part in _proper_subsets(m):
            below += eta[part]
        expected = _log_sums(log_complete + below, label, len(times))
        complete = _log_sums(log_complete, label, len(times)) > -np.inf
        unseen = ~complete & ((times == 0.0) if m.bit_count() == 1 else True)
        own = _log_ratio(times, expected, smoothing, log_smoothing)
        whole = float(np.logaddexp.reduce(expected))
        own[unseen] = 0.0
        if pooled and whole > -np.inf:
            own[unseen] = _log_ratio(times.sum(keepdims=True), np.array([whole]), smoothing, log_smoothing)
        eta[m] = own[label]
        log_odds[m] = below + eta[m]
        expected_of.append(float(np.exp(min(whole, _MOST))))
        unseen_of.append(unseen)
    return PatternWeights(log_odds, tuple(expected_of), tuple(unseen_of))


def pattern_probabilities(weights: PatternWeights) -> NDArray[np.float64]:
    """Return M(m | s), shape (S, K)."""
    odds = np.exp(weights.log_odds - weights.log_odds.max(axis=0))
    return np.ascontiguousarray((odds / odds.sum(axis=0)).T)


def _proper_subsets(m: int) -> Iterator[int]:
    """Yield the nonempty proper subsets of a set of bits."""
    part = (m - 1) & m
    while part:
        yield part
        part = (part - 1) & m


def _log_sums(log_terms: NDArray[np.float64], label: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return log Σ exp of the terms of each group, −∞ where there are none, shape (n_groups,)."""
    sums = np.full(n_groups, -np.inf)
    np.logaddexp.at(sums, label, log_terms)
    return sums


def _log_ratio(
    times: NDArray[np.float64], log_expected: NDArray[np.float64], smoothing: float, log_smoothing: float
) -> NDArray[np.float64]:
    """Return log (times + κ) / (expected + κ); where it is 0/0, odds of 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(times + smoothing) - np.logaddexp(log_expected, log_smoothing)
    return np.minimum(np.where(np.isnan(ratio), 0.0, ratio), _CERTAIN)
