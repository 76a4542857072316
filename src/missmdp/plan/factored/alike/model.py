"""Whether all sites are alike, and what happens to one of them.

Sites are alike if exchanging any two of them, with the actions on them, changes nothing. They must not be tied to each
other: each changes by itself, given the scene and the action, and so do its gaps. Then it only matters how many sites
are how, not which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.multisets import elements, ranks, sums
from missmdp.plan.factored.parts import Parts

Tensor = NDArray[np.float64]

_EXACT = 1e-12
"""Relative differences of rewards and probabilities up to this are rounding."""


class Kind(NamedTuple):
    """Actions that do the same: one action for all sites, or one for each."""

    actions: tuple[int, ...]
    """The action, or for each site the one on it."""
    kernels: tuple[Tensor, ...]
    """How a site changes: one that nothing is done to in particular, and the one that is acted on; (X, V, V) each."""
    weights: Tensor
    """How likely scenes follow each other, shape (X, X)."""
    rewards: Tensor
    """By multisets of values, shape (X, …); where a site is acted on, by its value and the others, (X, V, …)."""

    @property
    def on_one(self) -> bool:
        """Whether one site is acted on."""
        return len(self.kernels) > 1


@dataclass(frozen=True)
class Alike:
    """A model whose sites are alike."""

    parts: Parts
    kinds: tuple[Kind, ...]
    missing: Tensor
    """P(missing | scene, value), shape (X, V)."""
    initial: Tensor
    """How likely multisets of values are at first, shape (X, multisets)."""

    @property
    def n_sites(self) -> int:
        """How many sites there are."""
        return self.parts.n_sites

    @property
    def n_values(self) -> int:
        """How many values a site has."""
        return self.parts.sizes[0]

    @property
    def n_scenes(self) -> int:
        """How many scenes there are."""
        return len(self.parts.scenes)

    def starts(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield scenes, beliefs about one site there, and how likely multisets of these beliefs are at first."""
        for scene, mass in enumerate(self.initial):
            if not mass.any():
                continue
            whole = self.parts.initial[scene]
            total = float(whole.sum())
            belief: Tensor = whole.sum(axis=tuple(range(1, self.n_sites))) / total
            product = np.ones(())
            for _ in range(self.n_sites):
                product = np.multiply.outer(product, belief)
            if np.abs(total * product - whole).max() <= 1e-14:
                yield scene, belief[None], np.array([total])
            else:  # no product: the state is told
                yield scene, np.eye(self.n_values), mass


def find_alike(parts: Parts) -> Alike | None:
    """Return a model by what happens to one site, if its sites are alike; None if not."""
    if parts.n_sites < 3 or len(set(parts.sizes)) > 1 or parts.ends:
        return None
    kernels, weights = _dynamics(parts), _weights(parts)
    missing = _missing(parts)
    if kernels is None or missing is None:
        return None
    if not all(_symmetric(initial) for initial in parts.initial):
        return None
    kinds: list[Kind] = []
    for actions in _orbits(kernels, weights):
        kind = _kind(parts, actions, kernels, weights)
        if kind is None:
            return None
        kinds.append(kind)
    if sorted(action for kind in kinds for action in kind.actions) != list(range(parts.n_actions)):
        return None
    return Alike(parts, tuple(kinds), missing, _by_multisets(parts.initial, counted=True))


def _dynamics(parts: Parts) -> Tensor | None:
    """Return how each site changes, shape (A, X, sites, V, V); None if sites are tied together."""
    n_values, n_scenes = parts.sizes[0], len(parts.scenes)
    found = np.zeros((parts.n_actions, n_scenes, parts.n_sites, n_values, n_values))
    for move in parts.moves():
        if move.signs or any(kernel.sites for kernel in move.kernels):
            return None
        found[move.action, move.scene] = [kernel.table for kernel in move.kernels]
    return found


def _weights(parts: Parts) -> Tensor:
    """Return how likely scenes follow each other, shape (A, X, X)."""
    weights = np.zeros((parts.n_actions, len(parts.scenes), len(parts.scenes)))
    for move in parts.moves():
        weights[move.action, move.scene, move.after] = move.weight
    return weights


def _missing(parts: Parts) -> Tensor | None:
    """Return P(missing | scene, value), shape (X, V), if it is the same for all sites and by their own values."""
    found = np.zeros((len(parts.scenes), parts.sizes[0]))
    for scene in range(len(parts.scenes)):
        rows: list[Tensor] = []
        for gaps in parts.gaps(scene):
            if len(gaps.of) > 1 or gaps.given.sites not in ((), gaps.of):
                return None
            hidden = gaps.given.table[..., ~gaps.patterns[:, 0]].sum(axis=-1)
            rows.append(np.broadcast_to(hidden, (parts.sizes[0],)))
        if len(rows) != parts.n_sites or any((row != rows[0]).any() for row in rows):
            return None
        found[scene] = rows[0]
    return found


def _orbits(kernels: Tensor, weights: Tensor) -> Iterator[tuple[int, ...]]:
    """Yield actions that may be of one kind: one for all sites, or one for each site."""
    n_actions, _, n_sites = kernels.shape[:3]
    by_key: dict[tuple[bytes, ...], list[list[int]]] = {}
    for action in range(n_actions):
        by_site = kernels[action].swapaxes(0, 1)
        if (by_site == by_site[:1]).all():
            yield (action,)
            continue
        # One site differs from the others, which are the same.
        usual = by_site[0] if (by_site[0] == by_site[1]).all() else by_site[2 % n_sites]
        acted = np.flatnonzero([(one != usual).any() for one in by_site])
        if len(acted) != 1:
            return
        key = (by_site[acted[0]].tobytes(), usual.tobytes(), weights[action].tobytes())
        by_key.setdefault(key, [[] for _ in range(n_sites)])[int(acted[0])].append(action)
    for of_sites in by_key.values():
        if len({len(actions) for actions in of_sites}) > 1:
            return
        yield from zip(*of_sites, strict=True)


def _kind(parts: Parts, actions: tuple[int, ...], kernels: Tensor, weights: Tensor) -> Kind | None:
    """Return what actions have in common; None if their rewards differ otherwise than by the site."""
    first, *others = ([reward[..., action] for reward in parts.reward] for action in actions)
    if not others:
        if not all(_symmetric(reward) for reward in first):
            return None
        usual = kernels[actions[0], :, 0]
        return Kind(actions, (usual,), weights[actions[0]], _by_multisets(np.array(first)))
    for reward in first:
        if not all(_symmetric(of_value) for of_value in reward):
            return None
    for site, rewards in enumerate(others, start=1):
        if not all(_same(one.swapaxes(0, site), two) for one, two in zip(first, rewards, strict=True)):
            return None
    usual, acted = kernels[actions[0], :, 1], kernels[actions[0], :, 0]
    by_value = [_by_multisets(np.array([reward[v] for reward in first])) for v in range(parts.sizes[0])]
    return Kind(actions, (usual, acted), weights[actions[0]], np.stack(by_value, axis=1))


def _same(one: Tensor, other: Tensor) -> bool:
    scale = max(float(np.abs(one).max()), float(np.abs(other).max()))
    return float(np.abs(one - other).max()) <= _EXACT * scale


def _symmetric(table: Tensor) -> bool:
    """Return whether the order of the axes does not matter."""
    return all(_same(table, table.swapaxes(0, axis)) for axis in range(1, table.ndim))


def _by_multisets(tables: Tensor, *, counted: bool = False) -> Tensor:
    """Return symmetric tables, the first axis apart, by multisets; or, if counted, sums over all orders."""
    m, n_values = tables.ndim - 1, tables.shape[-1]
    found = elements(n_values, m)
    if not counted:
        return tables[(slice(None), *found.T)]
    place = np.sort(np.indices(tables.shape[1:]).reshape(m, -1), axis=0).T
    where = ranks(place, n_values)
    return np.array([sums(where, table, len(found)) for table in tables])
