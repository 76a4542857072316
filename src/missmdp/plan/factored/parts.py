"""A miss-MDP in parts: what happens to the features that can go missing, step by step, as small tables.

Features that are always seen make the *scene*; their values are known, so everything is listed scene by scene.
Each feature that can go missing is a *site*. A move (an action, a scene, the next scene) says how the sites change: one
kernel per site, tables for what the next scene tells about the sites as they were, and tables for what the gaps (and
that the episode goes on) tell about the sites as they are then. Nothing is multiplied out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.model.factors import Scope
from missmdp.model.missmdp import MissMDP


class Part(NamedTuple):
    """Something that depends on some sites."""

    sites: tuple[int, ...]
    """The sites, in the order of the axes."""
    table: NDArray[np.float64]
    """One axis per site, then those of what depends on them."""


class Gaps(NamedTuple):
    """Which of some sites are seen."""

    of: tuple[int, ...]
    """The sites whose gaps these are."""
    patterns: NDArray[np.bool_]
    """True = observed, shape (patterns, sites)."""
    given: Part
    """P(pattern | values of some sites); its last axis is the pattern."""


class Move(NamedTuple):
    """An action from one scene to the next."""

    action: int
    scene: int
    after: int
    weight: float
    """The part of the probability of the next scene that does not depend on sites."""
    signs: tuple[Part, ...]
    """The rest of it, by the sites as they were."""
    kernels: tuple[Part, ...]
    """For each site, other sites first, then its own value and the next one."""


class Parts:
    """A factored miss-MDP in parts.

    Parameters
    ----------
    model
        Its dynamics and its missingness must have factors.

    Attributes
    ----------
    sites, seen : tuple of int
        The features that can go missing, and the others.
    sizes : tuple of int
        The number of values of each site.
    scenes : list of tuple of int
        The values of the features that are always seen.
    initial, beginning : ndarray
        How likely states are at first, by scenes; and without those in which an episode is over at once.
    """

    def __init__(self, model: MissMDP) -> None:
        mdp, features = model.mdp, model.space.features
        assert mdp.factors is not None
        assert model.missingness.factors is not None
        self.model = model
        self.discount = mdp.discount
        self.n_actions = mdp.n_actions
        self.sites = tuple(features.position(name) for name in model.missingness.can_go_missing)
        self.seen = tuple(i for i in range(len(features.names)) if i not in self.sites)
        self._sizes = tuple(map(int, features.sizes))
        self.sizes = tuple(self._sizes[i] for i in self.sites)
        self.scenes = list(product(*(range(self._sizes[i]) for i in self.seen)))
        self._scopes = mdp.factors.scopes
        self._gaps = model.missingness.factors
        shape = tuple(self._sizes)
        order = [*self.seen, *self.sites]
        scene_major = (len(self.scenes), *self.sizes)
        self.initial = mdp.initial.reshape(shape).transpose(order).reshape(scene_major)
        self.reward = mdp.reward.reshape(*shape, -1).transpose([*order, len(order)]).reshape(*scene_major, -1)
        self._terminal = mdp.terminal.reshape(shape).transpose(order).reshape(scene_major)
        self.ends = bool(mdp.terminal.any())
        self.beginning = np.where(self._terminal, 0.0, self.initial)

    @property
    def n_sites(self) -> int:
        """The number of sites."""
        return len(self.sites)

    @property
    def starts(self) -> list[tuple[int, int]]:
        """All pairs (action, scene), in order."""
        return list(product(range(self.n_actions), range(len(self.scenes))))

    def _in_scene(self, scope: Scope, scene: int) -> Part:
        """Return what depends on some features in a scene, by sites."""
        where = dict(zip(self.seen, self.scenes[scene], strict=True))
        table = scope.table[tuple(where.get(p, slice(None)) for p in scope.parents)]
        return Part(tuple(self.sites.index(p) for p in scope.parents if p not in where), table)

    def moves(self) -> Iterator[Move]:
        """Yield all moves after which something can go on, action by action and scene by scene."""
        over = self._terminal.all(axis=tuple(range(1, self.n_sites + 1)))
        for action, scene in self.starts:
            kernels = tuple(self._kernel(k, action, scene) for k in range(self.n_sites))
            nexts = [
                self._in_scene(Scope(self._scopes[i].parents, self._scopes[i].table[..., action, :]), scene)
                for i in self.seen
            ]
            for after, values in enumerate(self.scenes):
                shares = [
                    Part(part.sites, part.table[..., value])
                    for part, value in zip(nexts, values, strict=True)
                ]
                weight = math.prod(float(share.table) for share in shares if not share.sites)
                signs = tuple(share for share in shares if share.sites)
                if weight > 0.0 and not over[after] and all(sign.table.any() for sign in signs):
                    yield Move(action, scene, after, weight, signs, kernels)

    def _kernel(self, site: int, action: int, scene: int) -> Part:
        scope = self._scopes[self.sites[site]]
        part = self._in_scene(Scope(scope.parents, scope.table[..., action, :]), scene)
        others = tuple(k for k in part.sites if k != site)
        if site in part.sites:
            return Part(others, np.moveaxis(part.table, part.sites.index(site), -2))
        size = self.sizes[site]
        shape = (*part.table.shape[:-1], size, size)
        return Part(others, np.broadcast_to(part.table[..., None, :], shape))

    def gaps(self, scene: int) -> list[Gaps]:
        """Return which sites are seen in a scene; each site is in one of them."""
        found: list[Gaps] = []
        for factor in self._gaps:
            of = tuple(self.sites.index(i) for i in factor.features if i in self.sites)
            if of:
                columns = [k for k, i in enumerate(factor.features) if i in self.sites]
                part = self._in_scene(Scope(factor.parents, factor.table), scene)
                found.append(Gaps(of, factor.patterns[:, columns], part))
        return found

    def goes_on(self, scene: int) -> list[Part]:
        """Return where an episode goes on, by sites: nothing to say, or one table of 0 and 1."""
        ended = self._terminal[scene]
        if not ended.any():
            return []
        matters = [k for k in range(self.n_sites) if (ended != ended.take([0], axis=k)).any()]
        table = ended[tuple(slice(None) if k in matters else 0 for k in range(self.n_sites))]
        return [Part(tuple(matters), 1.0 - table)] if matters else []
