"""Large models are learned from in clusters: features that go missing, and that the dynamics tie together.

Where the next values of features depend on a few features each, what is hidden falls into clusters: given what is
always seen, and the actions, one cluster's history says nothing about another's. If whether a feature is missing
depends on features of its own cluster and on those that are always seen, the likelihood is a product over clusters,
and each is learned on a small MDP of its own. In these MDPs features that are always seen move at random unless a
hidden feature of the cluster has a part in where they go: given what is seen, that says the same about what is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.model.factors import Factors, Scope
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missing_factors import ROUNDING
from missmdp.model.space import FeatureSpace, StateSpace
from missmdp.sums import one_by_one

_MOST_WAYS = 100_000
"""Ways to get from a state to another and what is seen there, above which a model is not learned from as a whole."""

_MOST_STATES = 2_000
"""States up to which a cluster gets features that matter for its gaps only, if for anything."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """Features that are learned on their own, with features that are always seen."""

    hidden: tuple[int, ...]
    """Positions of the features that go missing."""
    moved: frozenset[int]
    """Positions of the features whose next value depends on these, themselves included."""
    kept: tuple[int, ...]
    """Positions of all its features, in order."""
    mdp: FactoredMDP
    """The MDP of these features."""
    log_chance: tuple[float, float]
    """By how much features that move at random lower the log-likelihood, at the first step and at each later one."""

    def log(self, whole: Dataset) -> Dataset:
        """Return a log of the whole MDP as one of this cluster."""
        return Dataset(
            self.mdp,
            whole.observations[:, list(self.kept)],
            whole.actions,
            whole.offsets,
            whole.terminated & self.mdp.terminal.any(),
            behaviour=whole.behaviour,
        )

    def log_of_chance(self, whole: Dataset) -> float:
        """Return what a log-likelihood of this cluster lacks: how features move that are always seen."""
        once, each = self.log_chance
        return whole.n_episodes * once + (whole.n_steps - whole.n_episodes) * each

    def states(self, space: StateSpace) -> NDArray[np.int64]:
        """Return the state of this cluster in each state of the whole, shape (S,)."""
        number = np.zeros(len(space), dtype=np.int64)
        for place in self.kept:
            number = number * int(space.features.sizes[place]) + space.codes[:, place]
        return number


def is_large(mdp: FactoredMDP, n_blocks: int) -> bool:
    """Return whether a model has too much in it to learn from its logs as a whole.

    What a log happens to show of the model does not count. Otherwise a short log could be learned from as a whole, in
    more time than a long one takes in clusters.
    """
    patterns = 2.0**n_blocks
    # There are at least as many entries as states, and those of a large model take a while to count.
    return patterns * mdp.n_states > _MOST_WAYS or patterns * mdp.n_entries > _MOST_WAYS


def clusters_of_log(
    log: Dataset, names: Sequence[Sequence[str]], graph: MissingnessGraph | None = None
) -> list[Cluster]:
    """Return the clusters in which a log is learned from; none if it is learned from as a whole.

    Parameters
    ----------
    log
        The log.
    names
        The features that go missing; those that go missing together are one block.
    graph
        What indicators may depend on, where that is known.
    """
    if not is_large(log.known_mdp, len(names)):
        return []
    features = log.feature_space
    missing = [name for block in names for name in block]
    joined = list(names)
    if graph is not None:
        joined += [
            *graph.dependent,
            *((name, *graph.parents(name)) for name in missing if name in graph.features),
        ]
    return find_clusters(
        log.known_mdp, features.mask(missing), [[features.position(name) for name in tie] for tie in joined]
    )


def find_clusters(
    mdp: FactoredMDP, hidden: NDArray[np.bool_], joined: Iterable[Iterable[int]]
) -> list[Cluster]:
    """Return the clusters of an MDP; none if there is one that needs all features.

    Parameters
    ----------
    mdp
        The MDP.
    hidden
        Which features go missing, shape (n,).
    joined
        Positions of features that belong together for other reasons than the dynamics.
    """
    factors, joined = mdp.factors, [tuple(tie) for tie in joined]
    if factors is None:
        return []
    scopes = [_without_idle(scope) for scope in factors.scopes]
    ends = _features_that_end(mdp)
    ties = [*joined, *((i, *scope.parents) for i, scope in enumerate(scopes)), ends]
    groups = _connected([[i for i in tie if hidden[i]] for tie in ties], np.flatnonzero(hidden).tolist())
    outlines = [_outline(mdp, scopes, hidden, group, joined, ends) for group in groups]
    if all(len(outline.kept) == len(hidden) for outline in outlines):
        return []
    clusters = [_cluster(mdp, scopes, outline) for outline in outlines]
    return clusters if _starts_apart(mdp, hidden, clusters) else []


def _without_idle(scope: Scope) -> Scope:
    """Return the table of a feature without parents that do not matter."""
    parents, table = scope.parents, scope.table
    for axis in reversed(range(len(parents))):
        if not np.ptp(table, axis=axis).any():
            parents, table = parents[:axis] + parents[axis + 1 :], np.asarray(table.take(0, axis=axis))
    return Scope(parents, table)


def _features_that_end(mdp: FactoredMDP) -> list[int]:
    """Return the positions of the features that decide whether a state is terminal."""
    flags = mdp.terminal.reshape(tuple(map(int, mdp.space.features.sizes)))
    return [i for i in range(flags.ndim) if (flags != flags.take([0], axis=i)).any()]


def _connected(ties: Sequence[Sequence[int]], members: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the members in groups that ties connect."""
    home = {member: member for member in members}
    for tie in ties:
        for one, other in pairwise(tie):
            old, new = home[other], home[one]
            home = {member: new if group == old else group for member, group in home.items()}
    return [tuple(m for m in members if home[m] == group) for group in dict.fromkeys(home.values())]


class _Outline(NamedTuple):
    group: tuple[int, ...]
    """The features of a cluster that go missing."""
    moved: frozenset[int]
    """Those whose next value depends on the cluster: its own, and some that are always seen."""
    kept: tuple[int, ...]
    ending: bool
    """Whether the cluster has a part in whether a state is terminal."""


def _outline(
    mdp: FactoredMDP,
    scopes: Sequence[Scope],
    hidden: NDArray[np.bool_],
    group: tuple[int, ...],
    joined: Sequence[Sequence[int]],
    ends: Sequence[int],
) -> _Outline:
    """Return which features a cluster needs, and others that are always seen as long as states stay few."""
    sizes, own = [int(size) for size in mdp.space.features.sizes], {*group}
    moved = own | {i for i, scope in enumerate(scopes) if not hidden[i] and {*scope.parents} & own}
    kept = moved | {p for i in moved for p in scopes[i].parents}
    kept |= {i for tie in joined if {*tie} & own for i in tie}
    ending = bool({*ends} & own)
    if ending:
        kept |= {*ends}
    for i in np.flatnonzero(~hidden).tolist():
        if math.prod(sizes[j] for j in kept | {i}) <= _MOST_STATES:
            kept.add(i)
    return _Outline(group, frozenset(moved), tuple(sorted(kept)), ending)


def _cluster(mdp: FactoredMDP, scopes: Sequence[Scope], outline: _Outline) -> Cluster:
    group, moved, kept, ending = outline
    features = mdp.space.features
    sizes = [int(size) for size in features.sizes]
    own = FeatureSpace({features.names[i]: features.values[i] for i in kept})
    tables: dict[str, Any] = {
        features.names[i]: ([features.names[p] for p in scopes[i].parents], scopes[i].table)
        if i in moved
        else ([], np.full((mdp.n_actions, sizes[i]), 1.0 / sizes[i]))
        for i in kept
    }
    initial, n_first = _initial(mdp, kept, group)
    terminal = _summed(mdp.terminal.astype(np.float64), sizes, kept).reshape(-1) > 0.0
    made = FactoredMDP(
        own,
        mdp.actions,
        Factors(own, mdp.actions, tables),
        0.0,
        initial.reshape(-1),
        terminal if ending else None,
        mdp.discount,
    )
    at_random = one_by_one(math.log(sizes[i]) for i in kept if i not in moved)
    return Cluster(group, moved, kept, made, (math.log(n_first), at_random))


def _summed(values: NDArray[np.float64], sizes: Sequence[int], kept: Sequence[int]) -> NDArray[np.float64]:
    """Return an array over states summed over features that are not kept, with one axis for each that is."""
    return values.reshape(tuple(sizes)).sum(axis=tuple(i for i in range(len(sizes)) if i not in kept))


def _initial(mdp: FactoredMDP, kept: Sequence[int], group: Sequence[int]) -> tuple[NDArray[np.float64], int]:
    """Return b₀ of a cluster given what is always seen, whose values are equally likely, and how many there are."""
    joint = _summed(mdp.initial, [int(size) for size in mdp.space.features.sizes], kept)
    seen = joint.sum(axis=tuple(kept.index(i) for i in group), keepdims=True)
    n_first = int(np.count_nonzero(seen))
    return np.divide(joint, seen * n_first, out=np.zeros_like(joint), where=seen > 0.0), n_first


def _starts_apart(mdp: FactoredMDP, hidden: NDArray[np.bool_], clusters: Sequence[Cluster]) -> bool:
    """Return whether the first values of different clusters are independent given what is always seen."""
    sizes = [int(size) for size in mdp.space.features.sizes]
    seen = np.flatnonzero(~hidden).tolist()
    shape = [size if i in seen else 1 for i, size in enumerate(sizes)]
    product = _summed(mdp.initial, sizes, seen).reshape(shape)
    for cluster in clusters:
        joint, n_first = _initial(mdp, cluster.kept, cluster.hidden)
        own = [size if i in cluster.kept else 1 for i, size in enumerate(sizes)]
        product = product * (joint * n_first).reshape(own)
    return bool(np.abs(product.reshape(-1) - mdp.initial).max() <= ROUNDING)
