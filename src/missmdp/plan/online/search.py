"""What a search with bounds is given: options, the model with its bounds, and arrays that grow with the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.beliefs import Belief
from missmdp._kernels.online.expanding import (
    EXPANSIONS,
    LENGTH,
    NODES,
    PARTICLES,
    BoundedModel,
    Limits,
    Tree,
    Work,
)
from missmdp.checks import checked_integer, checked_number
from missmdp.data.simulation import interleaved
from missmdp.errors import ModelError
from missmdp.memory import check_fits
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.online.bounds import StateBounds
from missmdp.plan.reactive import seen_from
from missmdp.plan.sarsop.listing import without_lists

_LISTED = 8
"""Successors that are all looked at, per particle that is kept."""
_MOST_BYTES = 2 * 2**30
"""No tree takes more memory than this: a search that has no more room ends."""
_AT_ONCE = 64
"""Expansions in one call of a kernel, at most."""
_PAUSE = 0.05
"""Seconds after which a search listens, roughly."""
_BYTES = 60.0
"""What an entry of T or O takes while it is made ready, with the copies of agents."""


@dataclass(frozen=True)
class OnlineOptions:
    """How to search; see `OnlinePlanner`."""

    expansions: int
    particles: int
    branches: int
    max_depth: int
    timeout: float | None

    def limits(self, n_states: int, n_observations: int) -> Limits:
        """As the kernels see it."""
        listed = _LISTED * max(self.particles, self.branches)
        return Limits(min(self.particles, n_states), min(self.branches, n_observations), listed)

    def __str__(self) -> str:
        text = f"{self.expansions:,} expansions"
        if self.timeout is not None:
            text = f"at most {text} and {self.timeout:g} s"
        kept = f"{self.particles:,} states of a belief and {self.branches:,} observations per action"
        return f"{text} per decision, with {kept}"


def checked_options(
    *, expansions: Any, particles: Any, branches: Any, max_depth: Any, timeout: Any
) -> OnlineOptions:
    """Return options; raise an error that names what cannot be."""
    return OnlineOptions(
        expansions=checked_integer("expansions", expansions, least=1, most=10**9),
        particles=checked_integer("particles", particles, least=1, most=2**20),
        branches=checked_integer("branches", branches, least=1, most=2**20),
        max_depth=checked_integer("max_depth", max_depth, least=1, most=10**9),
        timeout=None if timeout is None else checked_number("timeout", timeout, least=0.0, finite=False),
    )


def check_size(model: MissMDP | POMDP) -> None:
    """Raise if what a search is given would not fit into memory."""
    mdp = model.mdp if isinstance(model, MissMDP) else model
    factors = mdp.factors if isinstance(mdp, FactoredMDP) else None
    moves = sum(matrix.nnz for matrix in mdp.transition) if factors is None else factors.count_entries()
    if isinstance(model, MissMDP):
        sights = float(model.n_states) * model.missingness.n_patterns
    else:
        sights = float(sum(matrix.nnz for matrix in model.observation))
    check_fits(
        f"searching this model, with {moves:.2g} transitions and {sights:.2g} pairs of a state and what is seen of it,",
        _BYTES * (moves + sights) + 24.0 * model.n_states * (2 * model.n_actions + 1),
        without_lists(model),
    )


def observation_rows(model: MissMDP | POMDP) -> sparse.csr_array:
    """Return O(z | s′, a) with row s′ · n_watched + w; observations are numbered as in `compile_simulation`."""
    if not isinstance(model, MissMDP):
        rows = sparse.csr_array(interleaved(model.observation), copy=True)
    else:
        rows = seen_from(model)
    rows.sort_indices()
    return rows


def compile_bounded(
    model: MissMDP | POMDP,
    seen: sparse.csr_array,
    bounds: StateBounds,
    lower: NDArray[np.float64] | None,
) -> BoundedModel:
    """Return the model as the kernels search it; `lower` (n, S) are values of further policies."""
    mdp = model.mdp if isinstance(model, MissMDP) else model
    transition = interleaved(mdp.transition)
    columns = [bounds.upper_actions, bounds.lower_actions, bounds.upper[:, None]]
    if lower is not None:
        columns.append(lower.T)
    # Copies: kernels are compiled again for arrays that cannot be written to.
    return BoundedModel(
        start=np.array(transition.indptr, dtype=np.int64),
        target=np.array(transition.indices, dtype=np.int32),
        probability=np.array(transition.data, dtype=np.float64),
        seen_start=np.array(seen.indptr, dtype=np.int64),
        seen=np.array(seen.indices, dtype=np.int32),
        seen_probability=np.array(seen.data, dtype=np.float64),
        terminal=np.array(mdp.terminal),
        bounds=np.ascontiguousarray(np.concatenate(columns, axis=1), dtype=np.float64),
        simple=np.array(bounds.simple, dtype=np.int32),
        n_actions=mdp.n_actions,
        n_watched=seen.shape[0] // mdp.n_states,
        discount=float(mdp.discount),
    )


class Mind:
    """What a policy keeps in mind from one decision to the next, and room to think, which grows."""

    def __init__(self, model: BoundedModel, n_observations: int, limits: Limits) -> None:
        n_states, width = model.bounds.shape
        self.belief = Belief(
            state=np.empty(n_states, dtype=np.int32),
            weight=np.empty(n_states),
            predicted=np.zeros(n_states),
            touched=np.empty(n_states, dtype=np.int32),
            size=np.zeros(2, dtype=np.int64),
        )
        self.work = Work(
            state=np.empty(n_states, dtype=np.int32),
            weight=np.empty(n_states),
            mass=np.zeros(n_states),
            touched=np.empty(n_states, dtype=np.int32),
            chance=np.zeros(n_observations),
            seen=np.empty(n_observations, dtype=np.int32),
            share=np.empty(n_observations),
            total=np.zeros(width),
        )
        self._one = _Sizes(
            model.n_actions * (limits.branches + 1) + 1,
            1,
            model.n_actions * (limits.particles + 1) + min(limits.listed, n_states),
        )
        self._n_actions = model.n_actions
        if self._one.bytes(model.n_actions) > _MOST_BYTES:
            raise ModelError(
                f"one expansion with {limits.particles:,} particles and {limits.branches:,} branches for "
                f"{model.n_actions} actions would take more than {_MOST_BYTES // 2**30} GB; choose fewer"
            )
        self._sizes = self._one
        self.tree = _empty_tree(self._sizes, model.n_actions)

    def _wanted(self) -> _Sizes:
        """Return the sizes, those doubled that are too small for one more expansion."""
        used, one, sizes = self.tree.counters, self._one, self._sizes
        return _Sizes(
            sizes.nodes << int(used[NODES] + one.nodes > sizes.nodes),
            sizes.expansions << int(used[EXPANSIONS] + one.expansions > sizes.expansions),
            sizes.particles << int(used[PARTICLES] + one.particles > sizes.particles),
        )

    def is_full(self) -> bool:
        """Return whether one more expansion might not fit."""
        return self._wanted() != self._sizes

    def make_room(self) -> bool:
        """Double the room that is short; return False where that would be too much memory."""
        sizes = self._wanted()
        if sizes.bytes(self._n_actions) > _MOST_BYTES:
            return False
        grown = _empty_tree(sizes, self._n_actions)
        for old, new in zip(self.tree, grown, strict=True):
            new[: len(old)] = old
        self._sizes, self.tree = sizes, grown
        return True


@dataclass(frozen=True)
class _Sizes:
    nodes: int
    expansions: int
    particles: int

    def bytes(self, n_actions: int) -> int:
        return 40 * self.nodes + (8 + 40 * n_actions) * self.expansions + 12 * self.particles


def _empty_tree(sizes: _Sizes, n_actions: int) -> Tree:
    nodes, edges = sizes.nodes, sizes.expansions * n_actions
    return Tree(
        upper=np.empty(nodes),
        lower=np.empty(nodes),
        chance=np.empty(nodes),
        edge=np.empty(nodes, dtype=np.int64),
        seen=np.empty(nodes, dtype=np.int32),
        expansion=np.empty(nodes, dtype=np.int32),
        owner=np.empty(sizes.expansions, dtype=np.int64),
        edge_upper=np.empty(edges),
        edge_lower=np.empty(edges),
        edge_first=np.empty(edges, dtype=np.int64),
        edge_children=np.empty(edges, dtype=np.int32),
        part_first=np.empty(edges, dtype=np.int64),
        parts=np.empty(edges, dtype=np.int32),
        part_state=np.empty(sizes.particles, dtype=np.int32),
        part_weight=np.empty(sizes.particles),
        counters=np.zeros(LENGTH, dtype=np.int64),
        known=np.zeros(2),
    )


def calls(done: int, seconds: float, options: OnlineOptions) -> int:
    """Return how many expansions to ask for next, such that limits are kept; what they are does not depend on it."""
    left = options.expansions - done
    if done == 0 or seconds <= 0.0:
        return 1
    pause = _PAUSE if options.timeout is None else min(_PAUSE, 0.02 * options.timeout)
    return max(1, min(left, _AT_ONCE, int(pause * done / seconds)))
