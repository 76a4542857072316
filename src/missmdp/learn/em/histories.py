"""Histories made ready for expectation steps: what each says about the hidden states, under any M.

Three things make an expectation step cheap, and none of them is an approximation.

- States with equal transition rows are one *class* once they have been observed: messages run over classes.
- An observation that leaves one class possible cuts a history: what follows depends on that class only. Pieces that
  are equal are counted once, and pieces that begin alike share their beginning: pieces form a tree.
- Given the class before, the action and what was seen, the class after has a weight that is a sum over states, Σ
  T(s′ | class, a) M(r | s′). The weights are made again for each M; messages know nothing of states.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.histories import (
    HistoryTree,
    TokenWeights,
    first_nodes,
    forward_backward,
    grow_tree,
    passing,
)
from missmdp.data.dataset import Dataset, check_terms
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, pattern_numbers
from missmdp.learn.em.observation_classes import (
    Classes,
    Details,
    ObservationClasses,
    merged_states,
    observation_classes,
    transition_weights,
)
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import NO_ACTION

_PARTS = 16
"""Into how many parts the tree is cut, whatever the number of threads, so sums come out the same."""

_WORTH_THREADS = 50_000
"""Nodes from which threads are faster than one."""

_FEWEST = 20
"""Episodes that some of the histories must at least consist of; else they consist of pieces."""


Result = TypeVar("Result")


class Expected(NamedTuple):
    """The result of an expectation step."""

    counts: NDArray[np.float64]
    """How often each pattern came with each state, in expectation given all observations, shape (K, S)."""
    log_likelihood: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Pieces:
    """Pieces of history as a tree of distinct beginnings, in parts that threads go through."""

    n_steps: int
    n_nodes: int
    parent: NDArray[np.int64]
    """Of each node of the tree, roots first, shape (nodes,)."""
    n_roots: int
    end_node: NDArray[np.int64]
    """The node where each piece of history ends, shape (pieces,)."""
    piece_episode: NDArray[np.int64]
    """The episode that each piece is from, shape (pieces,)."""
    parts: tuple[TreePart, ...]

    def mapped(self, run: Callable[[TreePart], Result], threads: int | None) -> Iterator[Result]:
        """Yield what a function returns for each part, in order, on as many threads as are worth it."""
        workers = min(os.cpu_count() or 1 if threads is None else threads, len(self.parts))
        if workers <= 1 or self.n_nodes < _WORTH_THREADS:
            yield from map(run, self.parts)
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="missmdp-em") as pool:
            yield from pool.map(run, self.parts)

    def thinned(self, most: int) -> Self:
        """Return some of the histories, about `most` observations: episodes by lot, always the same ones.

        Where there are few episodes, pieces of history are drawn instead.
        """
        if self.n_steps <= most:
            return self
        generator = np.random.default_rng(0)
        episodes, owner = np.unique(self.piece_episode, return_inverse=True)
        share = most / self.n_steps
        whole = len(episodes) * share >= _FEWEST
        kept = generator.random(len(episodes) if whole else len(self.end_node)) < share
        thin = self.reweighted((kept[owner.reshape(-1)] if whole else kept).astype(np.float64))
        return replace(thin, n_steps=round(sum(float(part.tree.through.sum()) for part in thin.parts)))

    def reweighted(self, pieces: NDArray[np.float64]) -> Self:
        """Return the same histories with other numbers of each piece, shape (pieces,), as a bootstrap needs it."""
        ends = np.bincount(self.end_node, pieces, minlength=self.n_nodes).astype(np.float64)
        through = passing(self.parent, ends, self.n_roots)
        parts = tuple(
            part._replace(tree=part.tree._replace(ends=ends[part.nodes], through=through[part.nodes]))
            for part in self.parts
        )
        return replace(self, parts=parts)

    def ending_possibly(self, dead: NDArray[np.bool_]) -> tuple[Self, int]:
        """Return the pieces up to before their first dead node, and how many observations that leaves out."""
        end_node, lost = self.end_node.copy(), 0
        while (gone := dead[end_node]).any():
            end_node[gone] = self.parent[end_node[gone]]
            lost += int(gone.sum())
        kept = end_node >= self.n_roots
        shorter = replace(self, end_node=end_node[kept], piece_episode=self.piece_episode[kept])
        return shorter.reweighted(np.ones(int(kept.sum()))), lost


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories(Pieces):
    """All histories of a log, ready for expectation steps."""

    blocks: Blocks
    n_states: int
    details: Details
    origin: NDArray[np.int64]
    """What the entries of each row of weights come from: class · (actions + 1) + action, shape (rows,).

    The last class is that of the start, and the last action is the one that leads to the first state.
    """
    weights: TokenWeights
    impossible: int
    """Observations left out: T rules them out after what came before, whatever M is."""

    def expect(self, table: NDArray[np.float64], threads: int | None = None) -> Expected:
        """Return the expected counts and the log-likelihood under M.

        Parameters
        ----------
        table
            P(pattern | state) for the patterns of the blocks, shape (K, S).
        threads
            How many threads to use; by default one per core. The result does not depend on it.
        """
        uses, log = self.uses(table, threads)
        flat = np.bincount(self.details.place, uses, minlength=table.size)
        return Expected(flat.astype(np.float64).reshape(table.shape), log)

    def uses(
        self, table: NDArray[np.float64], threads: int | None = None
    ) -> tuple[NDArray[np.float64], float]:
        """Return how often each detail is used in expectation, shape (details,), and the log-likelihood.

        Parameters
        ----------
        table
            P(pattern | state) for the patterns of the blocks, shape (K, S).
        threads
            How many threads to use; by default one per core. The result does not depend on it.
        """
        n_entries = len(self.weights.target)
        detail, weight = self.weighted(table)

        def run(part: TreePart) -> tuple[NDArray[np.float64], float]:
            used = np.zeros(n_entries)
            scale = np.empty(len(part.nodes))
            return used, forward_backward(part.tree, self.weights, weight, used, scale)

        used, log = np.zeros(n_entries), 0.0
        for own, own_log in self.mapped(run, threads):
            used += own
            log += own_log
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(weight > 0.0, used / weight, 0.0)
        return detail * share[self.details.entry], log

    def origins(self) -> NDArray[np.int64]:
        """Return from which class and by which action each detail leads to its state, shape (details,)."""
        return np.repeat(self.origin, np.diff(self.weights.start))[self.details.entry]

    def weighted(self, table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return T · M of each detail, and their sums: the weight of each entry."""
        details = self.details
        detail = details.probability * table.reshape(-1)[details.place]
        weight = np.bincount(details.entry, detail, minlength=len(self.weights.target))
        return detail, weight.astype(np.float64)


def prepare_histories(dataset: Dataset, blocks: Blocks) -> Histories:
    """Return the histories of a log, given which features go missing together.

    Raises
    ------
    DataError
        If observations have values that no state has, or if there is too much to prepare.
    """
    mdp = dataset.known_mdp
    seen = observation_classes(dataset)
    _check_possible(dataset, seen)
    classes = merged_states(mdp)
    pattern = _pattern_of(blocks, seen)
    # The class of the start, which only b₀ leaves, and one action more, which nobody takes but the start.
    start_class = classes.count
    begins = np.zeros(dataset.n_steps, dtype=np.bool_)
    begins[dataset.offsets[:-1]] = True
    actions = np.empty(dataset.n_steps, dtype=np.int64)
    actions[1:] = dataset.actions[:-1]
    actions[begins] = mdp.n_actions
    keys, tokens = np.unique(actions * len(seen.codes) + seen.of_row, return_inverse=True)
    token_action, token_seen = keys // len(seen.codes), keys % len(seen.codes)
    tokens = tokens.reshape(-1).astype(np.int64)

    class_start, class_of, place_of_state = _state_classes(seen, classes)
    width = np.diff(class_start)
    cut_to = np.where(width == 1, class_of[class_start[:-1]], -1)[token_seen].astype(np.int64)
    n_roots = classes.count + 1
    parent = np.full(n_roots + dataset.n_steps, -1, dtype=np.int64)
    token = np.full(n_roots + dataset.n_steps, -1, dtype=np.int64)
    end_of = np.empty(dataset.n_steps, dtype=np.int64)
    slots = 1 << (2 * (dataset.n_steps + 16)).bit_length()
    n_nodes = grow_tree(tokens, begins, cut_to, n_roots, len(keys), slots, parent, token, end_of)
    parent, token = parent[:n_nodes].copy(), token[:n_nodes].copy()

    rows, entry_start, entry_target, details = transition_weights(
        classes, seen, token_action, token_seen, place_of_state, pattern, mdp.initial
    )
    # Which rows of weights belong to the classes of a node's parent: alike for all with the same observation and token.
    n_seen = len(seen.codes)
    above = parent[n_roots:]
    seen_above = np.where(above < n_roots, n_seen + above, token_seen[np.maximum(token[above], 0)])
    pairs, pair_of = np.unique(seen_above * len(keys) + token[n_roots:], return_inverse=True)
    pair_seen, pair_token = pairs // len(keys), pairs % len(keys)
    lists_start = np.concatenate([class_start, class_start[-1] + 1 + np.arange(n_roots)])
    lists = np.concatenate([class_of, np.arange(classes.count), [start_class]])
    sizes = np.diff(lists_start)[pair_seen]
    pair_start = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(pairs)), sizes)
    within = np.arange(int(sizes.sum())) - pair_start[owner]
    wanted = pair_token[owner] * n_roots + lists[lists_start[pair_seen][owner] + within]
    found = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    weights = TokenWeights(
        np.where(rows[found] == wanted, found, -1).astype(np.int64), entry_start, entry_target
    )
    pair_of = pair_of.reshape(-1)
    pieces = np.flatnonzero(end_of >= 0)
    episode = np.repeat(np.arange(dataset.n_episodes), dataset.lengths)
    node_width = np.concatenate([np.ones(n_roots, dtype=np.int64), width[token_seen[token[n_roots:]]]])
    histories = Histories(
        blocks=blocks,
        n_states=mdp.n_states,
        n_steps=dataset.n_steps,
        n_nodes=n_nodes,
        parent=parent,
        n_roots=n_roots,
        end_node=end_of[pieces],
        piece_episode=episode[pieces],
        details=details,
        origin=rows % n_roots * (mdp.n_actions + 1) + token_action[rows // n_roots],
        weights=weights,
        parts=tree_parts(parent, n_roots, node_width, pair_start[pair_of], sizes[pair_of]),
        impossible=0,
    ).reweighted(np.ones(len(pieces)))
    return _without_impossible(histories)


def _without_impossible(histories: Histories) -> Histories:
    """Return the histories without what T rules out: pieces end before their first impossible observation."""
    table = np.full((len(histories.blocks.missing), histories.n_states), 1.0 / len(histories.blocks.missing))
    _, weight = histories.weighted(table)
    dead = np.zeros(histories.n_nodes, dtype=np.bool_)
    for part in histories.parts:
        scale = np.empty(len(part.nodes))
        forward_backward(part.tree, histories.weights, weight, np.zeros(len(weight)), scale)
        dead[part.nodes] = scale == 0.0
    if not dead.any():
        return histories
    shorter, lost = histories.ending_possibly(dead)
    return replace(shorter, impossible=lost)


def _check_possible(dataset: Dataset, seen: ObservationClasses) -> None:
    nowhere = np.flatnonzero(np.diff(seen.start) == 0)
    if nowhere.size:
        row = int(np.flatnonzero(np.isin(seen.of_row, nowhere))[0])
        episode = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
        shown = dataset.feature_space.decode_observation(dataset.observations[row])
        raise DataError(
            f"episode {episode}, step {row - int(dataset.offsets[episode])}: no state of the model can show "
            f"{tuple(shown)!r}; missmdp.validate lists all such observations"
        )


def _pattern_of(blocks: Blocks, seen: ObservationClasses) -> NDArray[np.int64]:
    """Return the pattern of each observation, shape (D,)."""
    found = pattern_numbers(blocks, seen.observed)
    if (found < 0).any():
        raise DataError("some observations show a block of features in part")
    return found


def _state_classes(
    seen: ObservationClasses, classes: Classes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of each observation (where they begin, and which), and the place of each entry's class."""
    key = seen.owner * classes.count + classes.of_state[seen.state]
    distinct, place = np.unique(key, return_inverse=True)
    counts = np.bincount(distinct // classes.count, minlength=len(seen.codes))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return start, distinct % classes.count, place.reshape(-1) - start[seen.owner]


class TreePart(NamedTuple):
    nodes: NDArray[np.int64]
    """Which nodes of the whole tree these are."""
    tree: Any
    """The part, as kernels get it: a named tuple with `ends` and `through` among its fields."""


class Cut(NamedTuple):
    """Some nodes of a tree that a thread goes through on its own."""

    nodes: NDArray[np.int64]
    """Which nodes of the whole tree these are."""
    parent: NDArray[np.int64]
    """Place among these nodes, −1 after a root."""
    first: NDArray[np.int64]
    """Where the values of each node begin, shape (nodes + 1,)."""


def cut_tree(parent: NDArray[np.int64], n_roots: int, width: NDArray[np.int64]) -> Iterator[Cut]:
    """Yield a tree in parts of about the same size: everything below a first token is in one part.

    Parameters
    ----------
    width
        How many values each node has, shape (nodes,).
    """
    n_nodes = len(parent)
    top = first_nodes(parent, n_roots)
    load = np.bincount(top[n_roots:], width[n_roots:], minlength=n_nodes)
    home = np.zeros(n_nodes, dtype=np.int64)
    loads = np.zeros(_PARTS)
    for node in np.argsort(-load, kind="stable")[: int((load > 0).sum())]:
        home[node] = lightest = int(np.argmin(loads))
        loads[lightest] += load[node]
    local = np.full(n_nodes, -1, dtype=np.int64)
    for part in range(_PARTS):
        nodes = n_roots + np.flatnonzero(home[top[n_roots:]] == part)
        if len(nodes) == 0:
            continue
        local[nodes] = np.arange(len(nodes))
        above = parent[nodes]
        yield Cut(
            nodes,
            np.where(above < n_roots, -1, local[above]),
            np.concatenate([[0], np.cumsum(width[nodes])]).astype(np.int64),
        )


def tree_parts(
    parent: NDArray[np.int64],
    n_roots: int,
    width: NDArray[np.int64],
    rows: NDArray[np.int64],
    n_rows: NDArray[np.int64],
) -> tuple[TreePart, ...]:
    """Return the tree in parts, with the rows of weights that belong to each node."""
    return tuple(
        TreePart(
            cut.nodes,
            HistoryTree(
                cut.parent,
                cut.first,
                rows[cut.nodes - n_roots].astype(np.int64),
                n_rows[cut.nodes - n_roots].astype(np.int64),
                np.zeros(len(cut.nodes)),
                np.zeros(len(cut.nodes)),
            ),
        )
        for cut in cut_tree(parent, n_roots, width)
    )


def checked_log(mdp: FactoredMDP, data: Any, who: str) -> Dataset:
    """Return a log in terms of an MDP of one's own; raise `DataError` if it is none or does not fit."""
    if not isinstance(data, Dataset):
        raise DataError(
            f"{who} learns from whole histories, so it needs a Dataset; got {type(data).__name__}"
        )
    checked_mdp(mdp)
    check_terms(data, mdp, "MDP")
    goes_on = np.ones(data.n_steps, dtype=np.bool_)
    goes_on[data.offsets[1:] - 1] = False
    if (goes_on & (data.actions == NO_ACTION)).any():
        raise DataError("an episode goes on after a step without an action; see missmdp.validate")
    if data.mdp is mdp:
        return data
    return Dataset(
        mdp,
        data.observations,
        data.actions,
        data.offsets,
        data.terminated,
        behaviour=data.behaviour,
    )
