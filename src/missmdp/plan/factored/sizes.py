"""How many bytes grids and memories take, before they are made."""

from __future__ import annotations

import math
from collections.abc import Sequence

from missmdp.plan.factored.grid import Ties
from missmdp.plan.factored.parts import Parts

_PER_ENTRY = 60.0
"""Bytes per entry: values, and all that is worked out on the way."""
_PER_MOVE = 2000.0
"""Bytes per move of a grid or a memory besides its tables."""
_AT_ONCE = 2.0
"""How many grids, or memories, there are at once: a better one is made from what there is."""
_COPIES = 3.0
"""How often the moves of nodes are there when they become a policy."""
_FLOAT = 8.0


class Sizes:
    """What grids and memories of a model take.

    Parameters
    ----------
    ties
        The model.
    """

    def __init__(self, ties: Ties) -> None:
        parts = ties.parts
        self.n_scenes, self._n_actions = len(parts.scenes), parts.n_actions
        self._n_moves = len(ties.moves)
        self._in_grid = ties.bonds
        self._in_memory = _pair_bonds(ties)
        self.peak = 1.0
        """How many times larger tensors get on the way, because sites are tied together."""

    @property
    def per_entry(self) -> float:
        """Bytes per entry of all tensors, with those of rewards."""
        return _PER_ENTRY * self.peak + _AT_ONCE * _FLOAT * self._n_actions

    def grid(self, shape: Sequence[float]) -> float:
        """Return about how many bytes a grid takes that has so many beliefs per site."""
        return self._tensors(shape) + self._operators(shape, self._in_grid)

    def memory(self, pairs: Sequence[float], nodes: Sequence[float]) -> float:
        """Return about how many bytes a memory takes, and its policy, with so many pairs and nodes per site."""
        moves = self._n_moves + _COPIES * self._n_actions * self.n_scenes**2
        steps = _FLOAT * moves * sum(n**2 for n in nodes)
        return self._tensors(pairs) + self._operators(pairs, self._in_memory) + steps

    def most_entries(self, nbytes: float) -> float:
        """Return how many entries fit into so many bytes, if sites are about as long."""
        by_tensors = nbytes / self.per_entry
        n_sites = len(self._in_grid)
        per_square = _AT_ONCE * _FLOAT * max(sum(self._in_grid), sum(self._in_memory))
        by_operators = self.n_scenes * (nbytes / max(per_square, 1.0)) ** (n_sites / 2.0)
        return min(by_tensors, by_operators)

    def _tensors(self, shape: Sequence[float]) -> float:
        return self.per_entry * self.n_scenes * math.prod(map(float, shape))

    def _operators(self, shape: Sequence[float], bonds: Sequence[float]) -> float:
        numbers = sum(n * float(length) ** 2 for n, length in zip(bonds, shape, strict=True))
        return _AT_ONCE * (_FLOAT * numbers + _PER_MOVE * self._n_moves)


def _pair_bonds(ties: Ties) -> list[float]:
    """Return, for each site, how many matrices over pairs the operators of all moves have; see `Memory.operator`."""
    parts = ties.parts
    nexts = [_bonds_after(parts, scene) for scene in range(len(parts.scenes))]
    total = [0.0] * parts.n_sites
    for move in ties.moves:
        ties.clock.check()
        asked = {k for part in (*move.signs, *move.kernels) for k in part.sites}
        for site, kernel in enumerate(move.kernels):
            others = math.prod(float(parts.sizes[k]) for k in kernel.sites)
            own = float(parts.sizes[site]) if site in asked else 1.0
            total[site] += others * own * nexts[move.after][site]
    return total


def _bonds_after(parts: Parts, scene: int) -> list[float]:
    """Return, for each site, how many of them there are because of the gaps and the ends in a next scene."""
    gaps, goes_on = parts.gaps(scene), parts.goes_on(scene)
    asked = {k for part in goes_on for k in part.sites}
    asked |= {k for one in gaps for k in one.given.sites if one.of != (k,)}
    found = [float(parts.sizes[k]) if k in asked else 1.0 for k in range(parts.n_sites)]
    for one in gaps:
        for site in one.of:
            others = math.prod(float(parts.sizes[k]) for k in one.given.sites if k != site)
            found[site] *= float(len(one.patterns)) if len(one.of) > 1 else others
    return found
