"""Histories made ready for expectation steps: what each says about the hidden states, under any M.

Three things make an expectation step cheap, and none of them is an approximation.

- States with equal transition rows are one *class* once they have been observed: messages run over classes.
- An observation that leaves one class possible cuts a history: what follows depends on that class only. Pieces that
  are equal are counted once, and pieces that begin alike share their beginning: pieces form a tree.
- Given the class before, the action and what was seen, the class after has a weight that is a sum over states,
  Σ T(s′ | class, a) M(r | s′). The weights are made anew for each M; messages know nothing of states.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.histories import TokenWeights, forward_backward, grow_tree, passing
from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.classes import Classes, merged_states
from missmdp.learn.em.sights import Sights, distinct_sights
from missmdp.learn.em.start import pattern_numbers
from missmdp.learn.em.tree_parts import Part, tree_parts
from missmdp.learn.em.weights import Details, transition_weights

__all__ = ["Expected", "Histories", "prepare_histories"]

_WORTH_THREADS = 50_000
"""Nodes from which threads are faster than one."""

_FEWEST = 20
"""Episodes that some of the histories must at least consist of; else they consist of pieces."""


class Expected(NamedTuple):
    """The result of an expectation step."""

    counts: NDArray[np.float64]
    """How often each pattern came with each state, in expectation given all observations, shape (K, S)."""
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Histories:
    """All histories of a log, ready for expectation steps."""

    blocks: Blocks
    n_states: int
    n_steps: int
    n_nodes: int
    parent: NDArray[np.int64]
    """Of each node of the tree, roots first, shape (nodes,)."""
    n_roots: int
    end_node: NDArray[np.int64]
    """The node where each piece of history ends, shape (pieces,)."""
    piece_episode: NDArray[np.int64]
    """The episode that each piece is from, shape (pieces,)."""
    details: Details
    weights: TokenWeights
    parts: tuple[Part, ...]
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
        details, n_entries = self.details, len(self.weights.target)
        detail, weight = self.weighted(table)

        def run(part: Part) -> tuple[NDArray[np.float64], float]:
            used = np.zeros(n_entries)
            scale = np.empty(len(part.nodes))
            return used, forward_backward(part.tree, self.weights, weight, used, scale)

        used, log = np.zeros(n_entries), 0.0
        for own, own_log in self._mapped(run, threads):
            used += own
            log += own_log
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(weight > 0.0, used / weight, 0.0)
        flat = np.bincount(details.place, detail * share[details.entry], minlength=table.size)
        return Expected(flat.astype(np.float64).reshape(table.shape), log)

    def weighted(self, table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return T · M of each detail, and their sums: the weight of each entry."""
        details = self.details
        detail = details.probability * table.reshape(-1)[details.place]
        weight = np.bincount(details.entry, detail, minlength=len(self.weights.target))
        return detail, weight.astype(np.float64)

    def _mapped(
        self, run: Callable[[Part], tuple[NDArray[np.float64], float]], threads: int | None
    ) -> Iterator[tuple[NDArray[np.float64], float]]:
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


def prepare_histories(dataset: Dataset, blocks: Blocks) -> Histories:
    """Return the histories of a log, given which features go missing together.

    Raises
    ------
    DataError
        If observations have values that no state has, or if there is too much to prepare.
    """
    mdp = dataset.mdp
    sights = distinct_sights(dataset)
    _check_possible(dataset, sights)
    classes = merged_states(mdp)
    pattern = _pattern_of(blocks, sights)
    # The class of the start, which only b₀ leaves, and one action more, which nobody takes but the start.
    start_class = classes.count
    begins = np.zeros(dataset.n_steps, dtype=np.bool_)
    begins[dataset.offsets[:-1]] = True
    actions = np.empty(dataset.n_steps, dtype=np.int64)
    actions[1:] = dataset.actions[:-1]
    actions[begins] = mdp.n_actions
    keys, tokens = np.unique(actions * len(sights.codes) + sights.of_row, return_inverse=True)
    token_action, token_sight = keys // len(sights.codes), keys % len(sights.codes)
    tokens = tokens.reshape(-1).astype(np.int64)

    class_start, class_of, place_of_state = _classes_of_sights(sights, classes)
    width = np.diff(class_start)
    cut_to = np.where(width == 1, class_of[class_start[:-1]], -1)[token_sight].astype(np.int64)
    n_roots = classes.count + 1
    parent = np.full(n_roots + dataset.n_steps, -1, dtype=np.int64)
    token = np.full(n_roots + dataset.n_steps, -1, dtype=np.int64)
    end_of = np.empty(dataset.n_steps, dtype=np.int64)
    slots = 1 << (2 * (dataset.n_steps + 16)).bit_length()
    n_nodes = grow_tree(tokens, begins, cut_to, n_roots, len(keys), slots, parent, token, end_of)
    parent, token = parent[:n_nodes].copy(), token[:n_nodes].copy()

    rows, entry_start, entry_target, details = transition_weights(
        classes, sights, token_action, token_sight, place_of_state, pattern, mdp.initial
    )
    # Which rows of weights belong to the classes of a node's parent: alike for all with the same sight and token.
    n_sights = len(sights.codes)
    above = parent[n_roots:]
    sight_above = np.where(above < n_roots, n_sights + above, token_sight[np.maximum(token[above], 0)])
    pairs, pair_of = np.unique(sight_above * len(keys) + token[n_roots:], return_inverse=True)
    pair_sight, pair_token = pairs // len(keys), pairs % len(keys)
    lists_start = np.concatenate([class_start, class_start[-1] + 1 + np.arange(n_roots)])
    lists = np.concatenate([class_of, np.arange(classes.count), [start_class]])
    sizes = np.diff(lists_start)[pair_sight]
    pair_start = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(pairs)), sizes)
    within = np.arange(int(sizes.sum())) - pair_start[owner]
    wanted = pair_token[owner] * n_roots + lists[lists_start[pair_sight][owner] + within]
    found = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    weights = TokenWeights(
        np.where(rows[found] == wanted, found, -1).astype(np.int64), entry_start, entry_target
    )
    pair_of = pair_of.reshape(-1)
    pieces = np.flatnonzero(end_of >= 0)
    episode = np.repeat(np.arange(dataset.n_episodes), dataset.lengths)
    node_width = np.concatenate([np.ones(n_roots, dtype=np.int64), width[token_sight[token[n_roots:]]]])
    histories = Histories(
        blocks,
        mdp.n_states,
        dataset.n_steps,
        n_nodes,
        parent,
        n_roots,
        end_of[pieces],
        episode[pieces],
        details,
        weights,
        tree_parts(parent, n_roots, node_width, pair_start[pair_of], sizes[pair_of]),
        0,
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
    end_node, lost = histories.end_node.copy(), 0
    while (gone := dead[end_node]).any():
        end_node[gone] = histories.parent[end_node[gone]]
        lost += int(gone.sum())
    kept = end_node >= histories.n_roots
    kept_only = replace(
        histories,
        end_node=end_node[kept],
        piece_episode=histories.piece_episode[kept],
        impossible=lost,
    )
    return kept_only.reweighted(np.ones(int(kept.sum())))


def _check_possible(dataset: Dataset, sights: Sights) -> None:
    nowhere = np.flatnonzero(np.diff(sights.start) == 0)
    if nowhere.size:
        row = int(np.flatnonzero(np.isin(sights.of_row, nowhere))[0])
        episode = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
        seen = dataset.mdp.space.features.decode_observation(dataset.observations[row])
        raise DataError(
            f"episode {episode}, step {row - int(dataset.offsets[episode])}: no state of the model can show "
            f"{tuple(seen)!r}; missmdp.validate lists all such observations"
        )


def _pattern_of(blocks: Blocks, sights: Sights) -> NDArray[np.int64]:
    """Return the pattern of each sight, shape (D,)."""
    found = pattern_numbers(blocks, sights.observed)
    if (found < 0).any():
        raise DataError("some observations show a block of features in part")
    return found


def _classes_of_sights(
    sights: Sights, classes: Classes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of each sight (where they begin, and which), and the place of each entry's class there."""
    key = sights.owner * classes.count + classes.of_state[sights.state]
    distinct, place = np.unique(key, return_inverse=True)
    counts = np.bincount(distinct // classes.count, minlength=len(sights.codes))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return start, distinct % classes.count, place.reshape(-1) - start[sights.owner]
