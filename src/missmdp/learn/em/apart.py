"""What was learned cluster by cluster, put together: M, its bootstrap, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.learn.assumptions import AssumptionFinding
from missmdp.learn.bootstrap import never_missing
from missmdp.learn.bounds import Bound
from missmdp.learn.em.clusters import Cluster
from missmdp.learn.em.iterate import PenalisedFactors
from missmdp.learn.em.learned_structure import truths_of_part
from missmdp.learn.groups import Unseen
from missmdp.learn.table import GroupTruth
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missing_factors import Part, marginal
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.sums import one_by_one

if TYPE_CHECKING:
    from missmdp.learn.em.estimator import DynamicsEM


@dataclass(frozen=True, eq=False)
class Apart:
    """Clusters with a fitted learner for each."""

    log: Dataset
    """The log of all features."""
    clusters: tuple[Cluster, ...]
    learners: tuple[DynamicsEM, ...]

    def function(self, functions: Sequence[MissingnessFunction]) -> MissingnessFunction:
        """Return M over all features from that of each cluster."""
        parts: list[Part] = []
        for cluster, one in zip(self.clusters, functions, strict=True):
            # By as few features as possible: what is made of M takes less then.
            for factor in one.factors or ():
                features, parents = (
                    tuple(cluster.kept[i] for i in places) for places in (factor.features, factor.parents)
                )
                parts.append(factor._replace(features=features, parents=parents).as_part())
        return MissingnessFunction.from_parts(self.log.known_mdp.space, parts)

    @property
    def log_chance(self) -> float:
        """What the log-likelihoods of the clusters lack: how features move that are always seen."""
        return one_by_one(cluster.log_of_chance(self.log) for cluster in self.clusters)

    def added(self, value: Callable[[DynamicsEM], float]) -> float:
        """Return the sum of what a function says of each learner."""
        return one_by_one(value(learner) for learner in self.learners)

    def traces(self, which: Callable[[DynamicsEM], Sequence[float]]) -> tuple[float, ...]:
        """Return sequences of log-likelihoods added up; those that are over stay as they ended."""
        rows = [which(learner) for learner in self.learners]
        longest = max(map(len, rows))
        padded = [[*row, *[row[-1]] * (longest - len(row))] for row in rows]
        return tuple(one_by_one(column) + self.log_chance for column in zip_longest(*padded))

    def graph(self) -> MissingnessGraph:
        """Return what M depends on."""
        graphs = [learner.graph_ for learner in self.learners]
        return MissingnessGraph(
            [edge for graph in graphs for edge in graph.edges],
            features=self.log.feature_space.names,
            can_go_missing=[name for graph in graphs for name in graph.can_go_missing],
            dependent=[pair for graph in graphs for pair in graph.dependent],
        )

    def unseen(self) -> tuple[Unseen, ...]:
        """Return the groups of reachable states that were hardly ever visited."""
        reachable = self.log.known_mdp.reachable
        found: list[Unseen] = []
        for cluster, learner in zip(self.clusters, self.learners, strict=True):
            of_state = cluster.states(self.log.known_mdp.space)
            for group in learner.unseen_:
                inside = np.zeros(cluster.mdp.n_states, dtype=np.bool_)
                inside[group.states] = True
                found.append(replace(group, states=np.flatnonzero(inside[of_state] & reachable)))
        return tuple(found)

    def findings(self) -> tuple[AssumptionFinding, ...]:
        """Return what a user should know of the fits, each once."""
        return tuple({str(one): one for learner in self.learners for one in learner.warnings_}.values())

    def bound(
        self,
        function: MissingnessFunction,
        confidence: float,
        assumes: str,
        declared: Sequence[str],
        draws: int,
        seed: int,
    ) -> Bound:
        """Return bootstrap intervals; the clusters share what may go wrong, so each is a little wider."""
        mdp, failure = self.log.known_mdp, (1.0 - confidence) / len(self.clusters)
        bounds = [learner.bound(1.0 - failure, draws=draws, seed=seed) for learner in self.learners]
        never = never_missing(function, self.log.n_steps, declared, failure)
        agree, worst = np.full(mdp.n_states, 1.0 - never), 1.0 - never
        for cluster, own in zip(self.clusters, bounds, strict=True):
            agree *= 1.0 - own.per_state_tv[cluster.states(mdp.space)]
            worst *= 1.0 - own.tv
        per_state = np.where(mdp.reachable, 1.0 - agree, 1.0)
        return Bound(
            confidence,
            "bootstrap",
            "adaptive",
            assumes,
            tuple(group for own in bounds for group in own.per_group),
            per_state,
            per_state,
            1.0 - worst,
            1.0 - worst,
            guaranteed=False,
        )

    def group_truths(self, truth: MissMDP, weights: NDArray[np.float64]) -> list[GroupTruth]:
        """Return what is true of each group of a bound, in its order, where the true M is known."""
        found: list[GroupTruth] = []
        for cluster, learner in zip(self.clusters, self.learners, strict=True):
            model = learner.fit_.model
            if not isinstance(model, PenalisedFactors):
                continue
            of_state = cluster.states(truth.space)
            own = [cluster.kept.index(i) for i in cluster.hidden]
            table = marginal(
                truth.space, truth.missingness.parts, cluster.hidden, model.blocks.patterns[:, own]
            )
            for part in model.factors.parts:
                over_states = replace(part, label=part.label[:, of_state])
                found += truths_of_part(over_states, table, weights, truth.mdp.reachable)
        return found


def learn_apart(log: Dataset, clusters: Sequence[Cluster], learners: Sequence[DynamicsEM]) -> Apart:
    """Return what was learned cluster by cluster, each by a learner for its MDP."""
    fitted = [learner.fit(cluster.log(log)) for cluster, learner in zip(clusters, learners, strict=True)]
    return Apart(log, tuple(clusters), tuple(fitted))
