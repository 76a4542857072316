"""Where a grid should be finer: beliefs that its greedy policy meets, and that its values are far from.

Candidates are the beliefs that follow when a value is missing, weighed by how often that happens under its policy
in the world of the bound. What one is worth: the mixed value minus the value after one more step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.grid import Grid
from missmdp.plan.factored.mixtures import Mixer, pieces
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]

_APART = 0.01
"""Candidates are this far from beliefs of the grid, at least (sum of differences)."""
_MOST = 16
"""Candidates per site that are looked at."""


_OLDEST = 12
"""Steps without a value that first beliefs are made for."""


class Candidate(NamedTuple):
    """A belief that could join the grid."""

    gain: float
    site: int
    belief: Tensor
    price: float


def site_weights(occupancy: list[Tensor], site: int) -> list[Tensor]:
    """Return weights over the other sites, by scenes, that sum to 1; the site's axis has length 1."""
    other = [whole.sum(axis=site, keepdims=True) for whole in occupancy]
    total = sum(float(part.sum()) for part in other) or 1.0
    return [part / total for part in other]


def prices_of(values: list[Tensor], weights: list[Tensor], site: int) -> Tensor:
    """Return values by beliefs of one site, the other sites weighed."""
    axes = tuple(k for k in range(values[0].ndim) if k != site)
    return sum(
        ((value * weight).sum(axis=axes) for value, weight in zip(values, weights, strict=True)),
        start=np.zeros(values[0].shape[site]),
    )


def candidates(grid: Grid, occupancy: list[Tensor], site: int, clock: Stopwatch) -> list[Candidate]:
    """Return beliefs about one site that would make the grid finer where it matters."""
    wanted, often = _missing_beliefs(grid, occupancy, site)
    if not len(wanted):
        return []
    mixed, stepped = grid.backed_up(site, wanted, clock)
    weights = site_weights(occupancy, site)
    prices = prices_of(stepped, weights, site)
    gains = prices_of(mixed, weights, site) - prices
    return [
        Candidate(float(often[k] * gains[k]), site, wanted[k], float(prices[k])) for k in range(len(wanted))
    ]


def _missing_beliefs(grid: Grid, occupancy: list[Tensor], site: int) -> tuple[Tensor, Tensor]:
    """Return beliefs that follow when the site is missing, lumped where they are close, with their weights."""
    axes = tuple(k for k in range(len(grid.shape)) if k != site)
    sums: dict[tuple[float, ...], Tensor] = {}
    met: dict[tuple[int, int], Tensor] = {}
    for move, _ in grid.moves:
        key = (move.action, move.scene)
        if key not in met:
            there = np.where(grid.chosen[move.scene] == move.action, occupancy[move.scene], 0.0)
            met[key] = there.sum(axis=axes)
        often = met[key] * move.weight
        if often.max() <= 1e-3 * (often.sum() + 1e-300):
            continue
        for mass in grid.missing(move, site):
            joint = often[:, None] * mass
            total = joint.sum(axis=1)
            for g in np.flatnonzero(total > 1e-4 * often.sum()):
                close = _close(joint[g], 2)
                sums[close] = sums.get(close, 0.0) + joint[g]
    if not sums:
        return np.zeros((0, grid.parts.sizes[site])), np.zeros(0)
    joint = np.array(list(sums.values()))
    often = joint.sum(axis=1)
    wanted = joint / often[:, None]
    beliefs = grid.beliefs[site]
    far = np.concatenate(
        [
            np.abs(wanted[some, None] - beliefs[None]).sum(axis=2).min(axis=1) > _APART
            for some in pieces(len(wanted), beliefs.size)
        ]
    )
    wanted, often = wanted[far], often[far]
    top = np.argsort(-often, kind="stable")[:_MOST]
    return wanted[top], often[top]


def first_beliefs(grid: Grid, occupancy: list[Tensor], most: float, clock: Stopwatch) -> list[Tensor]:
    """Return a first grid: beliefs after a value was seen and then missing for some steps, always the same action."""
    share = (most / len(grid.values)) ** (1.0 / max(len(grid.shape), 1))
    return [_spread_out(*_chains(grid, occupancy, site), share, clock) for site in range(len(grid.shape))]


def _spread_out(chains: Tensor, often: Tensor, share: float, clock: Stopwatch) -> Tensor:
    """Return corners and some beliefs, such that mixtures of them are not far from any of many.

    Parameters
    ----------
    chains, often
        The many, with their weights.
    share
        How many to return.
    clock
        When to stop.
    """
    size = chains.shape[1]
    beliefs = np.eye(size)
    square = (chains**2).sum(axis=1)
    while True:
        prices = (beliefs**2).sum(axis=1)
        mixer, mixed = Mixer(beliefs, prices), np.empty(len(chains))
        for some in pieces(len(chains), beliefs.size):
            clock.check()
            mixed[some] = mixer.weights(chains[some]) @ prices
        spread = often * (mixed - square)
        k = int(np.argmax(spread))
        if len(beliefs) + 1 > share or spread[k] <= 1e-3 * _APART**2 * often.max():
            return beliefs
        beliefs = np.vstack([beliefs, chains[k]])


def missing_kernels(grid: Grid, occupancy: list[Tensor], site: int) -> list[tuple[Tensor, Tensor]]:
    """Return what actions do to a site while it is missing, and how often they begin at each of its values.

    That is P(next value, missing | value), other sites as usual. Actions that do the same count as one.
    """
    size = grid.parts.sizes[site]
    axes = tuple(k for k in range(len(grid.shape)) if k != site)
    found: dict[bytes, tuple[Tensor, Tensor]] = {}
    for action in range(grid.parts.n_actions):
        often = np.zeros(size)
        for whole, chosen in zip(occupancy, grid.chosen, strict=True):
            often += np.where(chosen == action, whole, 0.0).sum(axis=axes)[:size]
        moves = [move for move, _ in grid.moves if move.action == action]
        kernel = np.zeros((size, size))
        for move in moves:
            for mass in grid.missing(move, site):
                kernel += move.weight * mass[:size]
        kernel /= max(sum(move.weight for move in moves), 1e-300)
        key = (np.round(kernel, 9) + 0.0).tobytes()
        found[key] = kernel, often + (found[key][1] if key in found else 0.0)
    return list(found.values())


def _chains(grid: Grid, occupancy: list[Tensor], site: int) -> tuple[Tensor, Tensor]:
    """Return beliefs after a value was seen and then missing for some steps, with how likely that is."""
    chains: dict[tuple[float, ...], Tensor] = {}
    kernels = missing_kernels(grid, occupancy, site)
    least = 1e-4 * sum(float(often.sum()) for _, often in kernels)
    for kernel, often in kernels:
        now = np.diag(np.maximum(often, least))
        for _ in range(_OLDEST):
            now = grid.parts.discount * now @ kernel
            for row in now:
                if row.sum() > 1e-9 * least:
                    key = _close(row, 3)
                    chains[key] = chains.get(key, 0.0) + row
    if not chains:
        return np.eye(grid.parts.sizes[site]), np.ones(grid.parts.sizes[site])
    joint = np.array(list(chains.values()))
    often = joint.sum(axis=1)
    return joint / often[:, None], often


def _close(mass: Tensor, digits: int) -> tuple[float, ...]:
    """Return a belief, rounded, as a key."""
    return tuple((mass / mass.sum()).round(digits).tolist())


def _losses(beliefs: Tensor, prices: Tensor, usage: Tensor) -> Tensor:
    """Return what would be lost without each belief; corners stay."""
    n_values = beliefs.shape[1]
    losses = np.full(len(beliefs), np.inf)
    for g in range(n_values, len(beliefs)):
        rest = np.arange(len(beliefs)) != g
        weights = Mixer(beliefs[rest], prices[rest]).weights(beliefs[[g]])
        losses[g] = usage[g] * max(float(weights[0] @ prices[rest]) - prices[g], 0.0)
    return losses


def refined(grid: Grid, clock: Stopwatch, most: float) -> tuple[list[Tensor], list[Tensor]]:
    """Return beliefs and prices of a better grid whose tensors have at most so many entries."""
    occupancy = grid.occupancy(clock)
    n_sites = len(grid.shape)
    beliefs: list[Tensor] = []
    prices: list[Tensor] = []
    losses: list[Tensor] = []
    found: list[Candidate] = []
    for site in range(n_sites):
        usage = _usage(grid, occupancy, site)
        beliefs.append(grid.beliefs[site])
        prices.append(prices_of(grid.values, site_weights(occupancy, site), site))
        losses.append(_losses(beliefs[site], prices[site], usage))
        found += candidates(grid, occupancy, site, clock)
    sizes = [float(n) for n in grid.shape]
    best = sorted((one for one in found if one.gain > 0.0), key=lambda one: -one.gain * sizes[one.site])
    room = max((most / (math.prod(sizes) * len(grid.values))) ** (1.0 / n_sites), 1.0)
    for one in best:
        site = one.site
        if np.abs(beliefs[site] - one.belief).sum(axis=1).min() <= 2.0 * _APART:
            continue
        size = math.prod(float(len(b)) for b in beliefs) * len(grid.values)
        full = len(beliefs[site]) >= math.ceil(room * sizes[site])
        if full or size * (1.0 + 1.0 / len(beliefs[site])) > most:
            # Something that matters less makes room, if there is such a thing.
            weakest = int(np.argmin(losses[site]))
            if losses[site][weakest] > 0.5 * one.gain:
                continue
            keep = np.arange(len(beliefs[site])) != weakest
            near = np.abs(beliefs[site] - beliefs[site][weakest]).sum(axis=1) < 0.2
            losses[site] = np.where(near, np.inf, losses[site])[keep]
            beliefs[site], prices[site] = beliefs[site][keep], prices[site][keep]
        beliefs[site] = np.vstack([beliefs[site], one.belief])
        prices[site] = np.append(prices[site], one.price)
        losses[site] = np.append(losses[site], np.inf)
    return beliefs, prices


def _usage(grid: Grid, occupancy: list[Tensor], site: int) -> Tensor:
    """Return how often each belief of a site is met."""
    axes = tuple(k for k in range(len(grid.shape)) if k != site)
    return np.array([whole.sum(axis=axes) for whole in occupancy]).sum(axis=0)


def marginals_of(grid: Grid, occupancy: list[Tensor]) -> list[Tensor]:
    """Return about how often each value of each site occurs."""
    found: list[Tensor] = []
    for site, rows in enumerate(grid.beliefs):
        mass = _usage(grid, occupancy, site) @ rows
        total = float(mass.sum())
        found.append(mass / total if total > 0.0 else np.full(len(mass), 1.0 / len(mass)))
    return found
