"""The diagnosis of a large model from those of its clusters, whose likelihoods multiply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from scipy import special

from missmdp.data.dataset import Dataset
from missmdp.learn.diagnosis.classes import ALL, MAR, MCAR, NO_SELF, SIMPLE
from missmdp.learn.diagnosis.result import ClassScore, Diagnosis, NestedTest
from missmdp.learn.em.clusters import Cluster
from missmdp.model.mgraph import MissingnessGraph
from missmdp.sums import one_by_one

_CLASSES = (MCAR, SIMPLE, MAR, NO_SELF, ALL)

_TYPES = ("MCAR", "simple MAR", "MAR", "MNAR")


def widest_type(found: Sequence[Diagnosis]) -> str:
    """Return the type of indicators whose clusters are independent given the state."""
    return max((one.type for one in found), key=_TYPES.index)


def joined_graph(names: Sequence[str], graphs: Iterable[MissingnessGraph]) -> MissingnessGraph:
    """Return one m-graph over all features."""
    listed = list(graphs)
    return MissingnessGraph(
        [edge for graph in listed for edge in graph.edges],
        features=names,
        can_go_missing=[name for graph in listed for name in graph.can_go_missing],
        dependent=[pair for graph in listed for pair in graph.dependent],
    )


def joined_classes(
    log: Dataset, clusters: Sequence[Cluster], found: Sequence[Diagnosis]
) -> tuple[ClassScore, ...]:
    """Return the classes of all features: log-likelihoods and scores add up.

    A class that a cluster does not have coincides there with the next narrower one.
    """
    chance = one_by_one(cluster.log_of_chance(log) for cluster in clusters)
    rows: list[ClassScore] = []
    for name in _present(found):
        own = [_narrower(one.classes, name) for one in found]
        rows.append(
            ClassScore(
                name,
                one_by_one(row.log_likelihood for row in own) + chance,
                sum(row.n_parameters for row in own),
                one_by_one(row.score for row in own) + chance,
                0.0,
                joined_graph(log.feature_space.names, (row.graph for row in own)),
            )
        )
    best = max(row.score for row in rows)
    return tuple(
        ClassScore(row.name, row.log_likelihood, row.n_parameters, row.score, best - row.score, row.graph)
        for row in rows
    )


def joined_tests(
    found: Sequence[Diagnosis], features: tuple[str, ...], level: float
) -> tuple[NestedTest, ...]:
    """Return the tests of each class within the next: statistics add up, and so do degrees of freedom."""
    tests: list[NestedTest] = []
    chain = [name for name in _present(found) if name != MAR]
    for narrow, wide in pairwise(chain):
        own = [test for one in found for test in one.tests if test.alternative == wide]
        if own:
            statistic, freedom = one_by_one(test.statistic for test in own), sum(test.freedom for test in own)
            p_value = float(special.chdtrc(float(freedom), statistic))
            tests.append(NestedTest(narrow, wide, features, statistic, freedom, p_value, level))
    return tuple(tests)


def _present(found: Sequence[Diagnosis]) -> list[str]:
    return [name for name in _CLASSES if any(row.name == name for one in found for row in one.classes)]


def _narrower(classes: Sequence[ClassScore], name: str) -> ClassScore:
    """Return a class, or the next narrower one that there is; MAR is not within any other but those before it."""
    before = _CLASSES[: _CLASSES.index(name) + 1]
    usable = [row for row in classes if row.name in before and (row.name != MAR or name == MAR)]
    return usable[-1]
