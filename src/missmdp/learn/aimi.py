"""AIMI: one frequency for each indicator, by the values of the other features (Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_names
from missmdp.data.counts import ObservationCounts
from missmdp.errors import Argument, DataError, Message, ParameterError
from missmdp.learn.assumptions import (
    AssumptionFinding,
    broken_blocks,
    dependence_on_values,
    dependent_indicators,
    few_samples,
    never_observed,
)
from missmdp.learn.base import CountingEstimator, Structure, UnseenChoice
from missmdp.learn.blocks import checked_feature_blocks
from missmdp.learn.groups import Counter, GroupCounts
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.space import FeatureSpace

Assumption = Literal["simple MAR", "MCAR"]

_ASSUMPTIONS: dict[str, Assumption] = {"simple mar": "simple MAR", "smar": "simple MAR", "mcar": "MCAR"}


class AIMI(CountingEstimator):
    """Learns M when indicators are independent and no feature drives its own missingness (Eq. 2, eq:Mhat-AIMI).

    M̂(r | s) = Π_i (#(s, i, r_i) + κ) / (#(s, i, 0) + #(s, i, 1) + 2κ), where #(s, i, r_i) counts the observations
    that show every other feature with its value in s, and feature i or not. It also needs every feature to be
    observed sometimes, in every state.

    Parameters
    ----------
    graph
        An m-graph: an indicator then depends on its parents only, and the rows that show those are counted (a).
        Features that it does not mention have no parents.
    assume
        "simple MAR": an indicator depends only on features that are never missing in the data (b).
        "MCAR": on nothing (c).
    blocks
        Features that go missing together, such as [("x", "y")]: a block is one indicator.
    smoothing
        κ, added to both counts of every indicator of a feature that goes missing in the data.
    always_observed
        The features that are known to be always observed; by default those that are never missing in the data, or
        those that the m-graph lists without an indicator. Declaring them makes bounds tighter.
    unseen
        What an indicator gets in a group of states without data: "uniform", which is ½, or "pooled", its
        frequency over all groups.

    Deviation
    ---------
    Independence of indicators is needed under MCAR and simple MAR too (the Predator benchmarks break it), and
    errors of the factors add up: TV ≤ 1 − Π (1 − e_i). Where a feature is known not to matter, rows in which
    it is missing count as well; the paper only merges its values.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("predator-smar")
    >>> learner = mm.AIMI(blocks=[("x", "y")], assume="simple MAR").fit(mm.collect(truth, 100_000, seed=0))
    >>> mm.total_variation(learner.missingness_, truth.missingness).worst < 0.05
    True
    """

    @property
    def assumes(self) -> str:
        """Independent indicators without self-censoring, and what `blocks`, `graph` or `assume` add."""
        blocks = "".join(f", of {' and '.join(block)} together" for block in self.blocks if len(block) > 1)
        basis = f"independent indicators{blocks} without self-censoring"
        if self.graph is not None:
            return f"{basis} that depend on their parents in the m-graph only"
        return basis if self.assume is None else f"{_ASSUMPTIONS[self.assume.lower()]} with {basis}"

    def __init__(
        self,
        *,
        graph: MissingnessGraph | None = None,
        assume: Assumption | None = None,
        blocks: Sequence[Sequence[str]] = (),
        smoothing: float = 1e-3,
        always_observed: Sequence[str] | None = None,
        unseen: UnseenChoice = "uniform",
    ) -> None:
        self.graph = graph
        self.assume = assume
        self.blocks = blocks
        self.smoothing = smoothing
        self.always_observed = always_observed
        self.unseen = unseen

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter is invalid."""
        super().check_parameters(features)
        blocks = self._blocks(features)
        if self.assume is not None and str(self.assume).lower() not in _ASSUMPTIONS:
            raise ParameterError("assume", self.assume, "'simple MAR' or 'MCAR'")
        if self.graph is None:
            return
        if not isinstance(self.graph, MissingnessGraph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError("graph", self.graph, "a MissingnessGraph")
        if self.assume is not None:
            problem = Message(
                *("give either ", Argument("graph"), " or ", Argument("assume")),
                ": an m-graph already says what depends on what",
            )
            raise ParameterError("assume", self.assume, "None with a graph", problem)
        checked_names("graph", self.graph.features, features.names)
        for a, b in self.graph.edges:
            if any(a in block and b in block for block in blocks):
                raise DataError(
                    f"the m-graph has {a!r} drive the missingness of {b!r}"
                    + (", itself" if a == b else ", which goes missing together with it")
                    + ": AIMI cannot learn such self-censoring, since single observations do not show it"
                )
        for a, b in self.graph.dependent:
            if not any(a in block and b in block for block in blocks):
                raise DataError(
                    f"the m-graph says that {a!r} and {b!r} do not go missing independently, which AIMI assumes; "
                    "if they go missing together, give ",
                    Argument("blocks", [(a, b)]),
                )

    def _blocks(self, features: FeatureSpace) -> list[tuple[str, ...]]:
        """Return the blocks that cover all features: the given ones, and one for every other feature."""
        given = checked_feature_blocks(features, self.blocks)
        owned = [name for block in given for name in block]
        first = {block[0]: block for block in given}
        return [first.get(name, (name,)) for name in features.names if name in first or name not in owned]

    def structure(self, features: FeatureSpace, missing: NDArray[np.bool_]) -> Structure:
        """Return a counter for each feature or block that goes missing, and a sentinel for each other one.

        Under simple MAR the data decide, by what goes missing in them, what the groups are; the failure budget
        is then split over all ways in which they could have decided.
        """
        known = self._known_always(features)
        counters: list[Counter] = []
        sentinels: list[Counter] = []
        for block in self._blocks(features):
            mask = features.mask(block)
            counter = Counter(mask, self._given(features, missing, mask), together=True)
            if (missing & mask).any():
                counters.append(counter)
            elif not known[mask].all():
                sentinels.append(counter)
        decided_by_data = self.assume is not None and _ASSUMPTIONS[self.assume.lower()] == "simple MAR"
        open_ = int((~known).sum())
        return Structure(tuple(counters), tuple(sentinels), 0, 2**open_ if decided_by_data else 1)

    def _known_always(self, features: FeatureSpace) -> NDArray[np.bool_]:
        known = features.mask(self.always_observed or ())
        if self.graph is not None:
            known |= features.mask(self.graph.always_observed)
        return known

    def _given(
        self, features: FeatureSpace, missing: NDArray[np.bool_], block: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return the features on which the indicator of a block may depend, shape (n,)."""
        if self.graph is not None:
            names = [name for name in features.chosen(block) if name in self.graph.features]
            return features.mask(parent for name in names for parent in self.graph.parents(name)) & ~block
        if self.assume is None:
            return ~block
        if _ASSUMPTIONS[self.assume.lower()] == "MCAR":
            return np.zeros_like(block)
        return ~missing & ~block

    def check_declared(
        self, features: FeatureSpace, missing: NDArray[np.bool_], counts: ObservationCounts | None = None
    ) -> None:
        """Raise `DataError` if a feature goes missing that is declared, or that the m-graph has, never to."""
        super().check_declared(features, missing, counts)
        if self.graph is None:
            return
        for name in features.chosen(missing):
            if name not in self.graph.can_go_missing:
                raise DataError(
                    f"{name!r} goes missing, but the m-graph has no indicator for it; name it in can_go_missing=[…] of "
                    "the MissingnessGraph if nothing drives its missingness"
                )

    def _findings(
        self, counts: ObservationCounts, parts: tuple[GroupCounts, ...]
    ) -> Iterable[AssumptionFinding]:
        yield from never_observed(counts)
        yield from broken_blocks(counts, parts)
        yield from dependent_indicators(counts, parts)
        if self.assume is not None:
            yield from few_samples(counts, declared=self.always_observed or ())
        yield from dependence_on_values(counts, parts, self._assumption())

    def _assumption(self) -> str:
        if self.graph is not None:
            return "the m-graph"
        return "independence" if self.assume is None else _ASSUMPTIONS[self.assume.lower()]
