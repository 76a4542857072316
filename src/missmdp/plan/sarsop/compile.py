"""From a POMDP to what the kernels see: components, classes, nodes.

- *Components*: sets of states that some observation can leave undecided (`missmdp.plan.value_function`).
- *Classes*: states of one component with equal rewards and equal transition rows have the same future. After the
  observation they are one; before it they are not, since they may be seen differently.
- *Nodes*: an observation (with its action, where O depends on it). All observations that leave one class possible are
  one node.

Terminal states have value 0 and drop out. The discount is part of the joint probabilities P(node, class′ | class,
action). The start is the initial belief where that is inside one component and the first thing to do is to act.
Otherwise it is one more class: what follows it is the first observation, or the first action and what it brings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.sarsop.arrays import Compiled
from missmdp.model.equal_rows import canonical, equal_rows
from missmdp.model.pomdp import POMDP
from missmdp.plan.value_function import state_components

SWEEPS, WORK_FOR_LEAST = 200, 50_000_000
"""Sweeps for the least values, and multiplications that they may take."""
WIDE = 128
"""A component with more classes is wide: mixtures there have few points besides corners."""
MANY = 3000
"""A search makes fewer passes over everything if it has wide components and more classes than this altogether."""


def what_can_be_seen(pomdp: POMDP, live: NDArray[np.int64], observe_initial: bool) -> list[sparse.csr_array]:
    """Return O with the rows of states that are terminal, or never entered by the action, left empty."""
    n_matrices = len(pomdp.observation)
    found: list[sparse.csr_array] = []
    for m in range(n_matrices):
        entered = np.zeros(pomdp.n_states, dtype=bool)
        for a in range(pomdp.n_actions) if n_matrices == 1 else (m,):
            entered[pomdp.transition[a].indices[pomdp.transition[a].data > 0.0]] = True
        if observe_initial and m == 0:
            entered |= pomdp.initial > 0.0
        keep = np.zeros(pomdp.n_states)
        keep[live] = entered[live]
        kept = sparse.csr_array(sparse.diags_array(keep) @ pomdp.observation[m])
        kept.eliminate_zeros()
        found.append(kept)
    return found


class Likelihoods(NamedTuple):
    """O(z | s′) by pairs of a node and a class: only those that it can lead to have a column."""

    matrix: sparse.csr_array
    """Shape (S, C + n): a column for each of C corners, then for each of n other pairs."""
    n_corners: int
    shift: int
    """What the numbers of the other pairs are above their columns."""

    def joint(self, before: sparse.csr_array, n_pairs: int) -> sparse.csr_array:
        """Return P(pair | row) for distributions over states, one per row of `before`."""
        product = sparse.csr_array(before @ self.matrix)
        pair = product.indices + np.where(product.indices < self.n_corners, 0, self.shift)
        return sparse.csr_array((product.data, pair, product.indptr), shape=(before.shape[0], n_pairs))


class Nodes:
    """Nodes as they are found: corners first, one per class, then observations that leave several classes possible.

    Pairs of a node and a class are numbered in that order: by node, and by class within a node.

    Attributes
    ----------
    of_observation : list of numpy.ndarray
        The node of each observation, −1 for those that no state in question gives, shape (Z,) for each matrix added.
    """

    def __init__(self, n_classes: int, class_of: NDArray[np.int64]) -> None:
        self._class_of = class_of
        self._n_classes = n_classes
        self._node: list[NDArray[np.int64]] = [np.arange(n_classes)]
        self._class: list[NDArray[np.int64]] = [np.arange(n_classes)]
        self._n_nodes = n_classes
        self._n_pairs = n_classes
        self.of_observation: list[NDArray[np.int64]] = []

    def add(self, seen: sparse.csr_array) -> Likelihoods:
        """Return O(z | s′) by pairs."""
        entries = seen.tocoo()
        classes = self._class_of[entries.row]
        size = max(self._n_classes, 1)
        keys, pair = np.unique(entries.col * size + classes, return_inverse=True)
        column, pair_class = keys // size, keys % size
        n_columns = seen.shape[1]
        per_column = np.bincount(column, minlength=n_columns)
        node = np.full(n_columns, -1, dtype=np.int64)
        node_of_column = self._distinct(entries, per_column)
        several = np.flatnonzero((per_column > 1) & (node_of_column == np.arange(n_columns)))
        node[several] = self._n_nodes + np.arange(len(several))
        node = np.where(per_column > 1, node[node_of_column], node)
        target = np.full(len(keys), -1, dtype=np.int64)
        corner = per_column[column] == 1
        target[corner] = pair_class[corner]
        seen_as = node.copy()
        seen_as[column[corner]] = pair_class[corner]
        self.of_observation.append(seen_as)
        new = ~corner & (node_of_column[column] == column)
        target[new] = self._n_classes + np.arange(int(new.sum()))
        # Columns that are multiples of an earlier one share its pairs, class by class and in the same order.
        shared = ~corner & ~new
        ours = node[column] * size + pair_class
        target[shared] = target[new][np.searchsorted(ours[new], ours[shared])]
        self._node.append(node[column[new]])
        self._class.append(pair_class[new])
        shape = seen.shape[0], self._n_classes + int(new.sum())
        matrix = sparse.csr_array(sparse.coo_array((entries.data, (entries.row, target[pair])), shape=shape))
        found = Likelihoods(matrix, self._n_classes, self._n_pairs - self._n_classes)
        self._n_nodes += len(several)
        self._n_pairs += int(new.sum())
        return found

    def _distinct(self, entries: Any, per_column: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each column the first one with the same likelihoods up to a factor (itself, mostly)."""
        columns = sparse.csc_array(entries)
        columns.sort_indices()
        first: dict[bytes, int] = {}
        same = np.arange(columns.shape[1])
        for z in np.flatnonzero(per_column > 1).tolist():
            part = slice(columns.indptr[z], columns.indptr[z + 1])
            shape = columns.data[part] / columns.data[part].max()
            same[z] = first.setdefault(columns.indices[part].tobytes() + shape.tobytes(), z)
        return same

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the class of each pair, and where the pairs of each node begin."""
        node = np.concatenate(self._node)
        return np.concatenate(self._class), np.searchsorted(node, np.arange(self._n_nodes + 1))


@dataclass(frozen=True, eq=False)
class Compilation:
    """A compiled POMDP, and how its classes and components relate to states."""

    arrays: Compiled
    class_of: NDArray[np.int64]
    """(S,): the class of each state, −1 for terminal ones."""
    component_states: list[NDArray[np.int64]]
    """The states of each component, but for that of the start if it has one."""
    start: NDArray[np.float64]
    """(C,): the belief at the start, over classes."""
    start_mass: float
    """Its probability; the rest is on terminal states."""
    discount: float
    lowest: float
    """A lower bound on the value of every belief."""
    highest: float
    """An upper bound on the value of every belief."""
    node_of: NDArray[np.int64]
    """(matrices, Z): the node of each observation, −1 where it cannot be made."""

    @property
    def scale(self) -> float:
        """The largest value that is possible, in either direction."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def slowness(self) -> float:
        """How many times more sweeps values need to settle than with a discount of 0.95, and 1 below."""
        return max(1.0, 0.05 / (1.0 - self.discount))

    @cached_property
    def has_wide_component(self) -> bool:
        """Whether some component is so large that a backup takes long."""
        return int(np.diff(self.arrays.component_start).max(initial=0)) > self.narrow

    @property
    def is_wide(self) -> bool:
        """Whether work for every class, over and over, takes too long."""
        return self.has_wide_component and self.n_classes > MANY

    @property
    def backups_are_slow(self) -> bool:
        """Whether backups take most of the time: there are large components, and trials visit all points in them."""
        return self.has_wide_component and not self.is_wide

    @property
    def narrow(self) -> int:
        """Classes that a component may have without being wide."""
        return WIDE

    @property
    def n_classes(self) -> int:
        """Classes, that of the start included if there is one."""
        return len(self.arrays.component_of)


def joint_entries(pomdp: POMDP) -> int:
    """Return how many joint probabilities of next states and observations a POMDP has, at most."""
    total = 0
    for a, matrix in enumerate(pomdp.transition):
        total += int(np.diff(pomdp.observation_of(a).indptr)[matrix.indices].sum())
    return total


def compile_pomdp(
    pomdp: POMDP, *, observe_initial: bool, check: Callable[[], None] = lambda: None
) -> Compilation:
    """Return the components, classes and nodes of a POMDP; `check` is called on the way and may raise `Stop`."""
    component_states = state_components(pomdp)
    live = np.flatnonzero(~pomdp.terminal)
    component_of_state = np.full(pomdp.n_states, -1, dtype=np.int64)
    for b, states in enumerate(component_states):
        component_of_state[states] = b
    check()
    class_of, first_states = _classes(pomdp, live, component_of_state)
    component_of = component_of_state[first_states]

    nodes = Nodes(len(first_states), class_of)
    seen: list[Likelihoods] = []
    for matrix in what_can_be_seen(pomdp, live, observe_initial):
        check()
        seen.append(nodes.add(matrix))
    pair_class, node_start = nodes.pairs()
    rows: list[sparse.csr_array] = []
    for a, matrix in enumerate(pomdp.transition):
        check()
        rows.append(pomdp.discount * seen[a % len(seen)].joint(matrix[first_states], len(pair_class)))
    rewards = pomdp.reward[first_states]
    lowest, highest = extremes(pomdp)

    start = np.bincount(class_of[live], pomdp.initial[live], minlength=len(first_states))
    mass = float(start.sum())
    if observe_initial or len(np.unique(component_of[start > 0.0])) != 1:
        first_rewards = pomdp.initial @ pomdp.reward
        if observe_initial:
            # Before the first observation there is nothing to decide: the other actions are never better.
            first_rewards = np.full(pomdp.n_actions, lowest - abs(lowest) - 1.0)
            first_rewards[0] = 0.0
        first = _first_rows(pomdp, seen, len(pair_class), observe_initial)
        rows = [sparse.csr_array(sparse.vstack(both)) for both in zip(rows, first, strict=True)]
        rewards = np.vstack([rewards, first_rewards])
        component_of = np.append(component_of, len(component_states))
        start, mass = np.append(np.zeros(len(first_states)), 1.0), 1.0
    arrays = _arrays(rewards, rows, component_of, pair_class, node_start, lowest, check)
    node_of = np.stack(nodes.of_observation)
    return Compilation(
        arrays, class_of, component_states, start / mass, mass, pomdp.discount, lowest, highest, node_of
    )


def _arrays(
    rewards: NDArray[np.float64],
    rows: list[sparse.csr_array],
    component_of: NDArray[np.int64],
    pair_class: NDArray[np.int64],
    node_start: NDArray[np.int64],
    lowest: float,
    check: Callable[[], None],
) -> Compiled:
    """Return everything as the kernels want it."""
    check()
    start, pair, prob = _interleaved(rows)
    check()
    n_components = int(component_of.max(initial=-1)) + 1
    node_of = np.repeat(np.arange(len(node_start) - 1), np.diff(node_start))
    check()
    next_start, next_node = _next_nodes(
        start, node_of[pair], component_of, n_components, rewards.shape[1], len(node_start) - 1
    )
    check()
    return Compiled(
        reward=np.ascontiguousarray(rewards),
        start=start,
        pair=pair.astype(np.int32),
        node=node_of[pair].astype(np.int32),
        target=pair_class[pair].astype(np.int32),
        prob=prob,
        pair_class=pair_class.astype(np.int32),
        node_start=node_start.astype(np.int64),
        node_component=component_of[pair_class[node_start[:-1]]].astype(np.int32),
        component_start=np.searchsorted(component_of, np.arange(n_components + 1)).astype(np.int64),
        component_of=component_of.astype(np.int32),
        next_start=next_start,
        next_node=next_node.astype(np.int32),
        least=_least(rewards, start, prob, pair_class[pair], lowest),
    )


def _least(
    rewards: NDArray[np.float64],
    start: NDArray[np.int64],
    prob: NDArray[np.float64],
    target: NDArray[np.int64],
    lowest: float,
) -> NDArray[np.float64]:
    """Return what every plan is worth in each class, at least: the value of the worst one that sees the class."""
    n_classes, n_actions = rewards.shape
    joint = sparse.csr_array((prob, target, start), shape=(n_classes * n_actions, n_classes))
    least = np.full(n_classes, lowest)
    # Any number of sweeps from below will do.
    for _ in range(min(SWEEPS, WORK_FOR_LEAST // max(len(prob), 1))):
        least = np.maximum(least, (rewards + (joint @ least).reshape(rewards.shape)).min(axis=1))
    return least


def _first_rows(
    pomdp: POMDP, seen: list[Likelihoods], n_pairs: int, observe_initial: bool
) -> list[sparse.csr_array]:
    """Return what follows the start, one row per action: the first observation, or what the first action brings."""
    initial = sparse.csr_array(pomdp.initial[None, :])
    if observe_initial:
        nothing = sparse.csr_array((1, n_pairs))
        return [seen[0].joint(initial, n_pairs)] + [nothing] * (pomdp.n_actions - 1)
    return [
        pomdp.discount * seen[a % len(seen)].joint(sparse.csr_array(initial @ matrix), n_pairs)
        for a, matrix in enumerate(pomdp.transition)
    ]


def extremes(pomdp: POMDP) -> tuple[float, float]:
    """Return bounds on every value: the lowest and highest reward for ever, or 0 where episodes may end."""
    live = pomdp.reward[~pomdp.terminal]
    low, high = float(live.min(initial=0.0)), float(live.max(initial=0.0))
    if not pomdp.terminal.any() and live.size:
        low, high = float(live.min()), float(live.max())
    return low / (1.0 - pomdp.discount), high / (1.0 - pomdp.discount)


def _classes(
    pomdp: POMDP, live: NDArray[np.int64], component: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class of each state and the first state of each class; classes of one component are neighbours."""
    alive = np.zeros(pomdp.n_states, dtype=bool)
    alive[live] = True
    going_on = sparse.diags_array(alive.astype(np.float64))
    matrices = [canonical(matrix @ going_on) for matrix in pomdp.transition]
    equal = equal_rows(matrices, (component, pomdp.reward), live)
    order = np.lexsort((equal.first, component[equal.first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    class_of = np.full(pomdp.n_states, -1, dtype=np.int64)
    class_of[live] = rank[equal.number[live]]
    return class_of, equal.first[order]


def _interleaved(
    rows: list[sparse.csr_array],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of one matrix per action as one sparse matrix with row c · A + a."""
    n_classes, n_actions = rows[0].shape[0], len(rows)
    stacked = sparse.csr_array(sparse.vstack(rows))
    order = np.arange(n_classes * n_actions).reshape(n_actions, n_classes).T.ravel()
    joint = sparse.csr_array(stacked[order])
    joint.eliminate_zeros()
    joint.sort_indices()
    return joint.indptr.astype(np.int64), joint.indices.astype(np.int64), joint.data.astype(np.float64)


def _next_nodes(
    start: NDArray[np.int64],
    node: NDArray[np.int64],
    component_of: NDArray[np.int64],
    n_components: int,
    n_actions: int,
    n_nodes: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes that can follow each component and action, row by row."""
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    where = component_of[row // n_actions] * n_actions + row % n_actions
    found = np.unique(where * max(n_nodes, 1) + node)
    starts = np.searchsorted(found // max(n_nodes, 1), np.arange(n_components * n_actions + 1))
    return starts.astype(np.int64), found % max(n_nodes, 1)
