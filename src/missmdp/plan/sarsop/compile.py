"""From a POMDP to what the kernels see: components, classes, nodes.

- *Components*: sets of states that some observation can leave undecided (`missmdp.plan.components`).
- *Classes*: states of one component with equal rewards and equal transition rows have the same future. After the
  observation they are one; before it they are not, since they may be seen differently.
- *Nodes*: an observation (with its action, where O depends on it). All observations that leave one class possible are
  one node.

Terminal states have value 0 and drop out. The discount is part of the joint probabilities P(node, class′ | class,
action). The start is the initial belief where that is inside one component and the first thing to do is to act.
Otherwise it is one more class: what follows it is the first observation, or the first action and what it brings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.sarsop.arrays import Compiled
from missmdp.model.equal_rows import canonical, equal_rows
from missmdp.model.pomdp import POMDP
from missmdp.plan.components import state_components
from missmdp.plan.sarsop.nodes import Nodes, what_can_be_seen

__all__ = ["Compilation", "compile_pomdp"]


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

    @property
    def n_classes(self) -> int:
        """Classes, that of the start included if there is one."""
        return len(self.arrays.component_of)


def compile_pomdp(pomdp: POMDP, *, observe_initial: bool) -> Compilation:
    """Return the components, classes and nodes of a POMDP."""
    component_states = state_components(pomdp)
    live = np.flatnonzero(~pomdp.terminal)
    component_of_state = np.full(pomdp.n_states, -1, dtype=np.int64)
    for b, states in enumerate(component_states):
        component_of_state[states] = b
    class_of, first_states = _classes(pomdp, live, component_of_state)
    component_of = component_of_state[first_states]

    nodes = Nodes(len(first_states), class_of)
    to_pairs = [nodes.add(matrix) for matrix in what_can_be_seen(pomdp, live, observe_initial)]
    pair_class, node_start, order = nodes.pairs()
    to_pairs = [_widened(matrix, len(order))[:, order] for matrix in to_pairs]
    rows = [
        pomdp.discount * sparse.csr_array(matrix[first_states] @ to_pairs[a % len(to_pairs)])
        for a, matrix in enumerate(pomdp.transition)
    ]
    rewards = pomdp.reward[first_states]
    lowest, highest = _extremes(pomdp)

    start = np.bincount(class_of[live], pomdp.initial[live], minlength=len(first_states))
    mass = float(start.sum())
    if observe_initial or len(np.unique(component_of[start > 0.0])) != 1:
        first_rewards = pomdp.initial @ pomdp.reward
        if observe_initial:
            # Before the first observation there is nothing to decide: the other actions are never better.
            first_rewards = np.full(pomdp.n_actions, lowest - abs(lowest) - 1.0)
            first_rewards[0] = 0.0
        first = _first_rows(pomdp, to_pairs, observe_initial)
        rows = [sparse.csr_array(sparse.vstack(both)) for both in zip(rows, first, strict=True)]
        rewards = np.vstack([rewards, first_rewards])
        component_of = np.append(component_of, len(component_states))
        start, mass = np.append(np.zeros(len(first_states)), 1.0), 1.0
    arrays = _arrays(rewards, rows, component_of, pair_class, node_start)
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
) -> Compiled:
    """Return everything as the kernels want it."""
    start, pair, prob = _interleaved(rows)
    n_components = int(component_of.max(initial=-1)) + 1
    node_of = np.repeat(np.arange(len(node_start) - 1), np.diff(node_start))
    next_start, next_node = _next_nodes(
        start, node_of[pair], component_of, n_components, rewards.shape[1], len(node_start) - 1
    )
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
    )


def _first_rows(
    pomdp: POMDP, to_pairs: list[sparse.csr_array], observe_initial: bool
) -> list[sparse.csr_array]:
    """Return what follows the start, one row per action: the first observation, or what the first action brings."""
    initial = sparse.csr_array(pomdp.initial[None, :])
    if observe_initial:
        nothing = sparse.csr_array((1, to_pairs[0].shape[1]))
        return [sparse.csr_array(initial @ to_pairs[0])] + [nothing] * (pomdp.n_actions - 1)
    return [
        pomdp.discount * sparse.csr_array(initial @ matrix @ to_pairs[a % len(to_pairs)])
        for a, matrix in enumerate(pomdp.transition)
    ]


def _widened(matrix: sparse.csr_array, width: int) -> sparse.csr_array:
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def _extremes(pomdp: POMDP) -> tuple[float, float]:
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
    equal = equal_rows(matrices, (component, pomdp.reward), live.tolist())
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
