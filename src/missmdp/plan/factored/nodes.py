"""Which beliefs a memory has nodes for.

A site that was seen and then goes missing passes through a chain of beliefs; a memory goes through nodes instead. What
that costs at a step: the best action at the belief minus the action that is best at the node, in values of the grid.
All beliefs of the chains are nodes at first; those are taken out, over all sites, that cost least for what is saved.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.grid import Grid
from missmdp.plan.factored.mixtures import pieces
from missmdp.plan.factored.refine import missing_kernels, site_weights
from missmdp.plan.stopping import SearchLimits, Stopwatch

Tensor = NDArray[np.float64]

_OLDEST = 16
"""Steps without a value that are looked at."""
_MOST_BELIEFS = 96
"""Beliefs per site that are looked at, besides corners."""
_DRIFT = 0.01
"""Of the largest loss: what it costs to be at a node that is 1 away, although the same is done there now."""
_CONTEXTS = 2000
"""Combinations of beliefs about other sites that are looked at, those that are met most."""


_FOR_LOSSES = 0.1
"""Of all memory, what values in these combinations may take."""


def near(nodes: Tensor, wanted: Tensor, clock: Stopwatch | None = None) -> Tensor:
    """Return weights of one or two nodes that together are about like each of some beliefs, shape (wanted, N).

    Nodes that hold impossible what is possible are taken only if there is no other.
    """
    clock = clock or Stopwatch(None)
    some = pieces(len(wanted), len(nodes) ** 2)
    return np.concatenate([_weights(*_between(nodes, wanted[rows], clock)) for rows in some])


def _between(nodes: Tensor, wanted: Tensor, clock: Stopwatch) -> tuple[Tensor, Tensor]:
    """Return how far each two nodes together are from each belief, and the best share of the second.

    Both have the shape (wanted, N, N); what is worked out on the way is larger, so that it is done piece by piece.
    """
    n, size = nodes.shape
    off, share = np.empty((len(wanted), n, n)), np.empty((len(wanted), n, n))
    for ones in pieces(n, n * size):
        for rows in pieces(len(wanted), len(nodes[ones]) * n * size):
            clock.check()
            off[rows, ones], share[rows, ones] = _between_some(nodes[ones], nodes, wanted[rows])
    return off, share


def _between_some(ones: Tensor, twos: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same for some nodes with others, shape (wanted, ones, twos)."""
    apart_one, excluded_one = _apart(ones, wanted)
    apart_two, excluded_two = _apart(twos, wanted)
    along = twos[None] - ones[:, None]  # [one, two]
    length = np.maximum((along**2).sum(axis=2), 1e-300)
    inner = np.einsum("wv,otv->wot", wanted, along) - np.einsum("ov,otv->ot", ones, along)
    share = np.clip(inner / length, 0.0, 1.0)
    between = ones[None, :, None] + share[..., None] * along
    off = np.abs(between - wanted[:, None, None]).sum(axis=3)
    off += 0.2 * ((1.0 - share) * apart_one[:, :, None] + share * apart_two[:, None, :])
    off += 10.0 * np.maximum(excluded_one[:, :, None], excluded_two[:, None, :])
    return off, share


def _apart(nodes: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return how far nodes are from beliefs, and where they hold impossible what is possible, shape (wanted, nodes)."""
    excluded: Tensor = ((nodes[None] <= 0.0) & (wanted[:, None] > 0.0)).max(axis=2).astype(np.float64)
    return np.abs(wanted[:, None] - nodes[None]).sum(axis=2), excluded


def _weights(off: Tensor, share: Tensor) -> Tensor:
    n_wanted, n_nodes, _ = off.shape
    rows = list(range(n_wanted))
    one, two = np.divmod(np.argmin(off.reshape(n_wanted, -1), axis=1), n_nodes)
    second = share[rows, one, two]
    weights = np.zeros((n_wanted, n_nodes))
    weights[rows, one] += 1.0 - second
    weights[rows, two] += second
    return weights


class Nodes(NamedTuple):
    """A set of nodes of one site."""

    log_pairs: float
    """The log of the number of pairs of a node and a value."""
    loss: float
    """What it costs to have these nodes only."""
    nodes: list[int]

    @property
    def n_pairs(self) -> int:
        """The number of pairs of a node and a value."""
        return round(math.exp(self.log_pairs))


def _rate(one: Nodes, other: Nodes) -> float:
    """Return what a smaller set costs per log of the pairs that it saves."""
    return (other.loss - one.loss) / (one.log_pairs - other.log_pairs)


class _Chain(NamedTuple):
    """What happens while a site is missing and the same is done all the time."""

    kernel: Tensor
    """P(next value, missing | value)."""
    ages: NDArray[np.int64]
    """Which belief there is after a value and so many steps, shape (values, steps)."""
    often: Tensor
    """How often that is met, shape (values, steps)."""


class Site:
    """The beliefs that one site passes through, and what it costs to take one for another.

    Parameters
    ----------
    size
        How many values the site has.
    kernels
        What happens to it while it is missing, P(next value, missing | value), and how often that begins at each value.
    losses
        What is lost at each of some beliefs by the action that is best at each other one.
    clock
        When to stop, and how much memory there is.
    taken
        How many bytes of it other sites take.
    most
        How many beliefs are looked at.

    Raises
    ------
    Stop
        If there is too little memory.
    """

    def __init__(
        self,
        size: int,
        kernels: Sequence[tuple[Tensor, Tensor]],
        losses: Callable[[Tensor], Tensor],
        clock: SearchLimits,
        taken: float = 0.0,
        most: int = _MOST_BELIEFS,
    ) -> None:
        self.size = size
        self._most = most
        self._beliefs: list[Tensor] = list(np.eye(self.size))
        self._places = {row.tobytes(): k for k, row in enumerate(np.eye(self.size))}
        self._chains = [self._passed(kernel, often) for kernel, often in kernels]
        self.beliefs = np.array(self._beliefs)
        # One for each chain that is kept, and a copy of one that is looked at.
        self.nbytes = 16.0 * (len(self._chains) + 1) * float(len(self.beliefs)) ** 3
        clock.check_memory(int(taken + self.nbytes))
        self.losses = losses(self.beliefs)
        self._near = [
            _between(self.beliefs, one_step_later(self.beliefs, chain.kernel), clock)
            for chain in self._chains
        ]

    def _passed(self, kernel: Tensor, often: Tensor) -> _Chain:
        places = np.zeros((self.size, _OLDEST), dtype=np.int64)
        weights = np.zeros((self.size, _OLDEST))
        for value in range(self.size):
            now = np.eye(self.size)[value] * often[value]
            for step in range(_OLDEST):
                now = now @ kernel
                total = now.sum()
                if total <= 1e-12 * often[value]:
                    break
                weights[value, step] = total
                places[value, step] = self._place(now / total)
        return _Chain(kernel, places, weights)

    def _place(self, belief: Tensor) -> int:
        rounded = np.round(belief, 3)
        key = (rounded + 0.0).tobytes()
        if key not in self._places and len(self._beliefs) >= self._most:
            return int(np.argmin(np.abs(np.array(self._beliefs) - belief).sum(axis=1)))
        if key not in self._places:
            self._places[key] = len(self._beliefs)
            self._beliefs.append(belief)
        return self._places[key]

    def loss(self, nodes: list[int]) -> float:
        """Return what it costs to have these nodes only."""
        losses, total = self.losses[:, nodes], 0.0
        for chain, steps in self._steps(nodes):
            now = np.eye(len(nodes))[: self.size]
            for step in range(_OLDEST):
                now = now @ steps
                total += float(chain.often[:, step] @ (now * losses[chain.ages[:, step]]).sum(axis=1))
        return total

    def path(self, clock: Stopwatch) -> list[Nodes]:
        """Return sets of nodes, from all to few: each time without the one that costs least for what it saves."""
        nodes = list(range(len(self.beliefs)))
        now = Nodes(math.log(self.pairs(nodes)), self.loss(nodes), nodes)
        found = [now]
        # Costs mostly rise as nodes go, so that only the least ones are worked out anew.
        costs = [(0.0, node) for node in nodes[self.size :]]
        while costs:
            clock.check()
            node = heapq.heappop(costs)[1]
            rest = [other for other in now.nodes if other != node]
            step = Nodes(math.log(self.pairs(rest)), self.loss(rest), rest)
            # Without a node, others may stand for more values, so that nothing is saved: such nodes go last.
            saved = now.log_pairs - step.log_pairs
            cost = (step.loss - now.loss) / saved if saved > 0.0 else math.inf
            if costs and cost > costs[0][0]:
                heapq.heappush(costs, (cost, node))
                continue
            now = step
            if now.log_pairs < found[-1].log_pairs:
                found.append(now)
        return found

    def averages(self, nodes: list[int]) -> Tensor:
        """Return what nodes stand for: the average belief while at each of them."""
        sums = 1e-9 * self.beliefs[nodes]
        for chain, steps in self._steps(nodes):
            now = np.eye(len(nodes))[: self.size]
            for step in range(_OLDEST):
                now = now @ steps
                sums += (chain.often[:, step, None] * now).T @ self.beliefs[chain.ages[:, step]]
        sums[: self.size] = np.eye(self.size)
        return sums / sums.sum(axis=1, keepdims=True)

    def _steps(self, nodes: list[int]) -> Iterator[tuple[_Chain, Tensor]]:
        """Yield, for each chain, how nodes move in it."""
        some = np.ix_(nodes, nodes, nodes)
        for chain, (off, share) in zip(self._chains, self._near, strict=True):
            yield chain, _weights(off[some], share[some])

    def pairs(self, nodes: list[int]) -> int:
        """Return how many pairs of a node and a value can be met."""
        met = np.eye(len(nodes), self.size) > 0.0
        # Numbers, for products of truth values are slow.
        ways = [
            ((steps.T > 0.0).astype(np.float64), (chain.kernel > 0.0).astype(np.float64))
            for chain, steps in self._steps(nodes)
        ]
        while True:
            before = int(met.sum())
            for steps, kernel in ways:
                met |= (steps @ met.astype(np.float64) @ kernel) > 0.0
            if int(met.sum()) == before:
                return before


def one_step_later(beliefs: Tensor, kernel: Tensor) -> Tensor:
    """Return beliefs one step later; those that cannot be, as they were."""
    mass = beliefs @ kernel
    sums = mass.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, mass / np.maximum(sums, 1e-300), beliefs)


def _site(grid: Grid, occupancy: list[Tensor], site: int, clock: SearchLimits, taken: float) -> Site:
    """Return the beliefs that a site passes through under the policy of a grid."""
    return Site(
        grid.parts.sizes[site],
        missing_kernels(grid, occupancy, site),
        lambda beliefs: _losses(grid, occupancy, site, beliefs, clock),
        clock,
        taken,
    )


def lost_by_confusion(values: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Return what is lost at each belief by the action that is best at each other one, shape (beliefs, beliefs).

    Parameters
    ----------
    values
        Of actions, by beliefs and contexts, shape (A, beliefs, contexts) each.
    weights
        How likely the contexts are, shape (contexts,) each.
    """
    n = values[0].shape[1]
    lost = np.zeros((n, n))
    for value, weight in zip(values, weights, strict=True):
        best, chosen = value.max(axis=0), value.argmax(axis=0)
        for other in range(n):
            taken = np.take_along_axis(value, chosen[other][None, None], axis=0)[0]
            lost[:, other] += (best - taken) @ weight
    return lost


def with_drift(lost: Tensor, beliefs: Tensor) -> Tensor:
    """Return losses with a little for being at another belief, although the same is done there now."""
    return lost + _DRIFT * lost.max() * np.abs(beliefs[:, None] - beliefs[None]).sum(axis=2)


def _losses(grid: Grid, occupancy: list[Tensor], site: int, beliefs: Tensor, clock: SearchLimits) -> Tensor:
    """Return what is lost at each belief by the action that is best at each other one, shape (beliefs, beliefs)."""
    others = [k for k in range(len(grid.shape)) if k != site]
    each = 16.0 * len(occupancy) * grid.parts.n_actions * len(beliefs)
    contexts = min(_CONTEXTS, _FOR_LOSSES * clock.memory / each)
    most = max(int(contexts ** (1.0 / max(len(others), 1))), 2)
    few = [np.arange(len(grid.beliefs[site]))] * len(grid.shape)
    for k in others:
        axes = tuple(i for i in range(len(grid.shape)) if i != k)
        met = np.array([whole.sum(axis=axes) for whole in occupancy]).sum(axis=0)
        few[k] = np.sort(np.argsort(-met, kind="stable")[:most])
    weights = [weight.ravel() for weight in site_weights([whole[np.ix_(*few)] for whole in occupancy], site)]
    rows = [beliefs if k == site else grid.beliefs[k][few[k]] for k in range(len(grid.shape))]
    n = len(beliefs)
    values = [np.full((grid.parts.n_actions, n, len(weight)), -np.inf) for weight in weights]
    for action, scene, value in grid.action_values(rows, clock):
        values[scene][action] = np.moveaxis(value, site, 0).reshape(n, -1)
    return with_drift(lost_by_confusion(values, weights), beliefs)


def chosen_nodes(
    grid: Grid,
    occupancy: list[Tensor],
    entries: tuple[float, float],
    loss: float,
    clock: SearchLimits,
    fits: Callable[[Sequence[float], Sequence[float]], bool],
) -> list[Tensor]:
    """Return the beliefs that nodes of a memory stand for, by sites, corners first.

    Sites have about as many nodes each, or some have all that they need and others few: whatever costs less.

    Parameters
    ----------
    grid, occupancy
        Values, and how often beliefs of the grid are met.
    entries
        How many entries pairs with values should have, and how many they may have at most.
    loss
        What nodes may cost to have no more entries than they should.
    clock
        When to stop, and how much memory there is.
    fits
        Says of the numbers of pairs and of nodes, by sites, whether there is memory for them.

    Raises
    ------
    Stop
        If there is too little memory to choose.
    """
    sites: list[Site] = []
    for site in range(len(grid.shape)):
        sites.append(_site(grid, occupancy, site, clock, sum(other.nbytes for other in sites)))
    wanted, most = (bound / len(grid.values) for bound in entries)
    paths = [site.path(clock) for site in sites]
    choices = [_allotted(some, wanted, most, loss, fits) for some in (paths, [_hull(path) for path in paths])]
    best = min(choices, key=lambda steps: sum(step.loss for step in steps))
    return [site.beliefs[step.nodes] for site, step in zip(sites, best, strict=True)]


def _hull(path: list[Nodes]) -> list[Nodes]:
    """Return those sets that cost no more than what two others cost on average."""
    hull = path[:1]
    for step in path[1:]:
        while len(hull) > 1 and _rate(hull[-2], hull[-1]) >= _rate(hull[-1], step):
            hull.pop()
        hull.append(step)
    return hull


def _allotted(
    paths: list[list[Nodes]],
    wanted: float,
    most: float,
    loss: float,
    fits: Callable[[Sequence[float], Sequence[float]], bool],
) -> list[Nodes]:
    """Return a set of nodes for each site: smaller ones, where that costs least, until all are small enough."""
    places = [0] * len(paths)
    while True:
        now = [path[place] for path, place in zip(paths, places, strict=True)]
        size = math.exp(sum(step.log_pairs for step in now))
        is_small = size <= wanted or (size <= most and sum(step.loss for step in now) > loss)
        if is_small and fits([math.exp(step.log_pairs) for step in now], [len(step.nodes) for step in now]):
            return now
        smaller = [
            (_rate(path[place], path[place + 1]), k)
            for k, (path, place) in enumerate(zip(paths, places, strict=True))
            if place + 1 < len(path)
        ]
        if not smaller:
            return now
        places[min(smaller)[1]] += 1
