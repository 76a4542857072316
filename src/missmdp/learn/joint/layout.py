"""A log without a model, made ready for expectation steps in which T and b₀ change too.

Features are of two kinds: some are always seen, others go missing. What is always seen of two neighbouring steps, with
the action between them, decides in which *block* of T a step lies. A block is a small dense table over the hidden
parts before and after. Only blocks that occur in the log are kept, so the work grows with the hidden parts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.histories import grow_tree
from missmdp._kernels.joint import PrefixTree, Shown, joint_forward_backward
from missmdp.data.dataset import Dataset
from missmdp.data.support import distinct_observations
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, block_names, pattern_numbers
from missmdp.learn.em.histories import Pieces, TreePart, cut_tree
from missmdp.memory import check_fits
from missmdp.model.space import FeatureSpace, StateSpace

GOES_ON, ENDED, OPEN = 0, 1, 2
"""Whether an episode ends with a step, as far as the log says."""

_MOST_STATES = 200_000
_MOST_CELLS = 20_000_000

_FEWER = "leave out features, or give them fewer values or bins"


@dataclass(frozen=True, eq=False)
class AllStates:
    """All combinations of values, the last feature changing fastest."""

    space: StateSpace
    reachable: NDArray[np.bool_]
    """Those that agree with something that was seen of the features that are always seen, shape (S,)."""

    @property
    def n_states(self) -> int:
        """How many there are."""
        return len(self.space)


class Steps(NamedTuple):
    """The kinds of steps that occur: what is always seen before, the action, what is always seen after."""

    before: NDArray[np.int64]
    """The always-seen part, shape (B,)."""
    action: NDArray[np.int64]
    after: NDArray[np.int64]
    ending: NDArray[np.int64]
    """`GOES_ON`, `ENDED` or `OPEN`."""
    paid: NDArray[np.int64]
    """The number of the reward that was logged, −1 for none."""


class Starts(NamedTuple):
    """The kinds of first steps that occur."""

    seen: NDArray[np.int64]
    """The always-seen part, shape (R,)."""
    ending: NDArray[np.int64]
    """`GOES_ON`, `ENDED` or `OPEN`."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The parts of states, and the kinds of steps of a log."""

    features: FeatureSpace
    n_actions: int
    states: AllStates
    blocks: Blocks
    """The features that go missing."""
    always: NDArray[np.int64]
    """Positions of the features that are always seen."""
    hidden: NDArray[np.int64]
    """Positions of those that go missing."""
    seen_codes: NDArray[np.int64]
    """Their values in each always-seen part that occurs, shape (O, always)."""
    hidden_codes: NDArray[np.int64]
    """Their values in each hidden part, shape (H, hidden)."""
    state_of: NDArray[np.int64]
    """The state that two parts make, shape (O, H)."""
    steps: Steps
    starts: Starts
    agrees: NDArray[np.bool_] | None = None
    """Which steps pay what was logged, shape (B, H, H), if rewards are evidence."""

    @property
    def n_hidden(self) -> int:
        """How many hidden parts there are."""
        return len(self.hidden_codes)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of T as blocks."""
        return len(self.steps.before), self.n_hidden, self.n_hidden

    @property
    def start_shape(self) -> tuple[int, int]:
        """Of b₀ by kinds of first steps."""
        return len(self.starts.seen), self.n_hidden


class JointExpected(NamedTuple):
    """The result of an expectation step."""

    moved: NDArray[np.float64]
    """How often each step was made, shape (B, H, H)."""
    began: NDArray[np.float64]
    """How often an episode began with each kind of first step and hidden part, shape (R, H)."""
    counts: NDArray[np.float64]
    """How often each pattern came with each state, shape (K, S)."""
    log_likelihood: float
    impossible: int
    """Nodes of the tree of histories that cannot happen; they and what follows are left out."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointHistories(Pieces):
    """All histories of a log, ready for expectation steps."""

    layout: Layout
    shown: Shown
    entry_place: NDArray[np.int64]
    """Pattern · S + state of each entry of `shown`: its place in a table of M."""

    def expect(
        self,
        transition: NDArray[np.float64],
        initial: NDArray[np.float64],
        table: NDArray[np.float64],
        threads: int | None = None,
    ) -> JointExpected:
        """Return the expected counts and the log-likelihood.

        Parameters
        ----------
        transition
            T by blocks, shape (B, H, H).
        initial
            b₀ by kinds of first steps, shape (R, H).
        table
            P(pattern | state), shape (K, S).
        threads
            How many threads to use; by default one per core. The result does not depend on it.
        """
        emission = table.reshape(-1)[self.entry_place]

        def run(part: TreePart) -> tuple[NDArray[np.float64], ...]:
            moved, began, visited = np.zeros_like(transition), np.zeros_like(initial), np.zeros_like(emission)
            scale = np.empty(len(part.nodes))
            log = joint_forward_backward(
                part.tree, self.shown, transition, initial, emission, moved, began, visited, scale
            )
            lost = np.count_nonzero((scale == 0.0) & (part.tree.through > 0.0))
            return moved, began, visited, np.array([log, lost])

        moved, began, visited = np.zeros_like(transition), np.zeros_like(initial), np.zeros_like(emission)
        ends = np.zeros(2)
        for own_moved, own_began, own_visited, own_ends in self.mapped(run, threads):
            moved += own_moved
            began += own_began
            visited += own_visited
            ends += own_ends
        counts = np.bincount(self.entry_place, visited, minlength=table.size).astype(np.float64)
        return JointExpected(moved, began, counts.reshape(table.shape), float(ends[0]), round(float(ends[1])))


class Complete(NamedTuple):
    """What is counted where everything is seen."""

    moved: NDArray[np.float64]
    """Steps from one full observation to another, shape (B, H, H)."""
    began: NDArray[np.float64]
    """Episodes that begin with one, shape (R, H)."""


class LogRows(NamedTuple):
    """The rows of a log."""

    seen: NDArray[np.int64]
    """The observation of each row, shape (N,)."""
    block: NDArray[np.int64]
    """The block of the step that leads to each row; at the start of an episode the kind of first step, shape (N,)."""
    begins: NDArray[np.bool_]
    """Whether an episode begins, shape (N,)."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A log that is ready to be learned from."""

    histories: JointHistories
    complete: Complete
    rows: LogRows
    codes: NDArray[np.integer[Any]]
    """The distinct observations, shape (D, n)."""
    counts: NDArray[np.int64]
    """How often each occurs, shape (D,)."""


def prepare(
    log: Dataset,
    blocks: Sequence[Sequence[str]] | None,
    *,
    ends: bool,
    paid: NDArray[np.int64] | None = None,
) -> Prepared:
    """Return a log that is ready to be learned from.

    Parameters
    ----------
    log
        The log.
    blocks
        Features that go missing together; by default those that do so in the data.
    ends
        Whether the marks at the ends of episodes say where an episode ended rather than being cut.
    paid
        The number of the reward of the step that leads to each row, −1 for none, shape (N,), if rewards are evidence.
    """
    features = log.feature_space
    distinct = distinct_observations(features, log.observations)
    missing = (distinct.codes < 0).any(axis=0)
    always, hidden = np.flatnonzero(~missing), np.flatnonzero(missing)
    check_size(features, hidden, len(np.unique(features.rank(_kept(distinct.codes, always)))))
    seen_codes, seen_of = np.unique(distinct.codes[:, always].astype(np.int64), axis=0, return_inverse=True)
    seen_of = seen_of.reshape(-1)
    sizes = features.sizes.astype(np.int64)
    hidden_codes = _combinations(sizes[hidden])
    states, state_of = _states(features, always, hidden, seen_codes, hidden_codes)
    made = Blocks.of(features, block_names(features, distinct.codes >= 0, blocks), states.n_states, _FEWER)

    begins = np.zeros(log.n_steps, dtype=np.bool_)
    begins[log.offsets[:-1]] = True
    ending = np.full(log.n_steps, GOES_ON if ends else OPEN)
    last = log.offsets[1:] - 1
    ending[last] = np.where(log.terminated & ends, ENDED, OPEN)
    # A block for each kind of step; the first observations of episodes have none.
    later = np.flatnonzero(~begins)
    seen_row = seen_of[distinct.of_row]
    n_seen, n_actions = len(seen_codes), len(log.action_names)
    key = (seen_row[later - 1] * n_actions + log.actions[later - 1].astype(np.int64)) * n_seen + seen_row[
        later
    ]
    pay = np.full(log.n_steps, -1) if paid is None else paid
    n_paid = int(pay.max(initial=-1)) + 2
    kinds, kind_of = np.unique((key * 3 + ending[later]) * n_paid + pay[later] + 1, return_inverse=True)
    block_of_row = np.empty(log.n_steps, dtype=np.int64)
    block_of_row[later] = kind_of.reshape(-1)
    first_kinds, first_kind = np.unique(seen_row[begins] * 3 + ending[begins], return_inverse=True)
    block_of_row[begins] = first_kind.reshape(-1)
    starts = Starts(first_kinds // 3, first_kinds % 3)
    with_ending = kinds // n_paid
    from_to = with_ending // 3
    steps = Steps(
        from_to // n_seen // n_actions,
        from_to // n_seen % n_actions,
        from_to % n_seen,
        with_ending % 3,
        kinds % n_paid - 1,
    )
    check_fits(
        f"learning from {len(kinds):,} kinds of steps with {len(hidden_codes):,} hidden parts each",
        8.0 * 25.0 * len(kinds) * len(hidden_codes) ** 2,
        _FEWER,
    )
    layout = Layout(
        features, n_actions, states, made, always, hidden, seen_codes, hidden_codes, state_of, steps, starts
    )
    shown = _shown(distinct.codes[:, hidden].astype(np.int64), hidden_codes)
    entry_owner = np.repeat(np.arange(len(distinct.codes)), np.diff(shown.start))
    pattern = pattern_numbers(made, distinct.codes >= 0)
    entry_place = pattern[entry_owner] * states.n_states + state_of[seen_of[entry_owner], shown.hidden]
    rows = LogRows(distinct.of_row, block_of_row, begins)
    return Prepared(
        _tree(log, layout, shown, entry_place, rows),
        _complete(layout, shown, rows),
        rows,
        distinct.codes,
        np.bincount(distinct.of_row, minlength=len(distinct.codes)).astype(np.int64),
    )


def check_size(features: FeatureSpace, hidden: NDArray[np.int64], n_seen: int) -> None:
    """Raise `DataError` if there are too many states to learn about."""
    n_states = math.prod(map(int, features.sizes))
    if n_states > _MOST_STATES:
        widest = max(zip(features.sizes.tolist(), features.names, strict=True))
        raise DataError(
            f"the features have {n_states:.3g} combinations of values, and dynamics are learned for at most "
            f"{_MOST_STATES:,}; {_FEWER} ({widest[1]!r} has {widest[0]:,} values)"
        )
    n_hidden = math.prod(int(features.sizes[i]) for i in hidden)
    if n_seen * n_hidden**2 > _MOST_CELLS:
        names = ", ".join(features.chosen(np.isin(np.arange(len(features)), hidden)))
        raise DataError(
            f"the features that go missing ({names}) have {n_hidden:,} combinations of values, too many to "
            f"follow from step to step; {_FEWER}"
        )


def _kept(codes: NDArray[np.integer[Any]], places: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
    """Return rows of codes of which only some features are left."""
    kept = np.full_like(codes, -1)
    kept[:, places] = codes[:, places]
    return kept


def _combinations(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all combinations of codes, the last changing fastest, shape (combinations, len(sizes))."""
    grid = np.indices(tuple(map(int, sizes)), dtype=np.int64)
    return grid.reshape(len(sizes), -1).T.copy() if len(sizes) else np.zeros((1, 0), dtype=np.int64)


def _states(
    features: FeatureSpace,
    always: NDArray[np.int64],
    hidden: NDArray[np.int64],
    seen_codes: NDArray[np.int64],
    hidden_codes: NDArray[np.int64],
) -> tuple[AllStates, NDArray[np.int64]]:
    sizes = features.sizes.astype(np.int64)
    codes = _combinations(sizes)
    weight = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)
    state_of = (seen_codes @ weight[always])[:, None] + (hidden_codes @ weight[hidden])[None, :]
    reachable = np.zeros(len(codes), dtype=np.bool_)
    reachable[state_of] = True
    return AllStates(StateSpace(features, codes), reachable), state_of


def _shown(codes: NDArray[np.int64], hidden_codes: NDArray[np.int64]) -> Shown:
    """Return the hidden parts that each observation leaves possible."""
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    lists = [np.flatnonzero(((hidden_codes == row) | (row < 0)).all(axis=1)) for row in distinct]
    chosen = [lists[i] for i in which.reshape(-1)]
    sizes = [len(one) for one in chosen]
    return Shown(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(chosen))


def _tree(
    log: Dataset,
    layout: Layout,
    shown: Shown,
    entry_place: NDArray[np.int64],
    rows: LogRows,
) -> JointHistories:
    """Return the histories as a tree; a token is an observation and the kind of the step that leads to it."""
    of_row, block_of_row, begins = rows
    width = np.diff(shown.start)
    n_seen, n_blocks = len(width), len(layout.steps.before) + len(layout.starts.seen)
    block = np.where(begins, block_of_row + len(layout.steps.before), block_of_row)
    keys, tokens = np.unique(of_row * n_blocks + block, return_inverse=True)
    seen, token_block = keys // n_blocks, keys % n_blocks
    # What follows a full observation depends on it alone: it is the root of a tree of its own.
    full = np.flatnonzero(width == 1)
    root_of = np.full(n_seen, -1, dtype=np.int64)
    root_of[full] = np.arange(len(full))
    n_roots = len(full) + 1
    parent = np.full(n_roots + log.n_steps, -1, dtype=np.int64)
    token = np.full(n_roots + log.n_steps, -1, dtype=np.int64)
    end_of = np.empty(log.n_steps, dtype=np.int64)
    slots = 1 << (2 * (log.n_steps + 16)).bit_length()
    n_nodes = grow_tree(
        tokens.reshape(-1).astype(np.int64),
        begins,
        root_of[seen],
        n_roots,
        len(keys),
        slots,
        parent,
        token,
        end_of,
    )
    parent, token = parent[:n_nodes].copy(), token[n_roots:n_nodes].copy()
    node_seen, node_block = seen[token], token_block[token]
    above = parent[n_roots:]
    before = np.where(
        above >= n_roots,
        node_seen[np.maximum(above - n_roots, 0)],
        np.append(full, -1)[np.minimum(above, len(full))],
    )
    node_block = np.where(before < 0, node_block - len(layout.steps.before), node_block)
    node_width = np.concatenate([np.ones(n_roots, dtype=np.int64), width[node_seen]])
    pieces = np.flatnonzero(end_of >= 0)
    episode = np.repeat(np.arange(log.n_episodes), log.lengths)
    parts = [
        TreePart(
            cut.nodes,
            PrefixTree(
                cut.parent,
                before[cut.nodes - n_roots],
                node_seen[cut.nodes - n_roots],
                node_block[cut.nodes - n_roots],
                cut.first,
                np.zeros(len(cut.nodes)),
                np.zeros(len(cut.nodes)),
            ),
        )
        for cut in cut_tree(parent, n_roots, node_width)
    ]
    return JointHistories(
        n_steps=log.n_steps,
        n_nodes=n_nodes,
        parent=parent,
        n_roots=n_roots,
        end_node=end_of[pieces],
        piece_episode=episode[pieces],
        parts=tuple(parts),
        layout=layout,
        shown=shown,
        entry_place=entry_place,
    ).reweighted(np.ones(len(pieces)))


def _complete(layout: Layout, shown: Shown, log_rows: LogRows) -> Complete:
    """Return what is counted where everything is seen."""
    of_row, block_of_row, begins = log_rows
    width, n_hidden = np.diff(shown.start), layout.n_hidden
    full = (width == 1)[of_row]
    part = shown.hidden[shown.start[:-1]][of_row]
    rows = np.flatnonzero(~begins & full & np.append(False, full[:-1]))
    cell = (block_of_row[rows] * n_hidden + part[rows - 1]) * n_hidden + part[rows]
    moved = np.bincount(cell, minlength=math.prod(layout.shape)).astype(np.float64)
    first = np.flatnonzero(begins & full)
    start = np.bincount(block_of_row[first] * n_hidden + part[first], minlength=math.prod(layout.start_shape))
    return Complete(moved.reshape(layout.shape), start.astype(np.float64).reshape(layout.start_shape))
