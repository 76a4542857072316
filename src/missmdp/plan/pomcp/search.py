"""What a search is given: options, the model as it is drawn from, and arrays to work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.beliefs import Belief
from missmdp._kernels.pomcp.alias import AliasRows, fill_alias
from missmdp._kernels.pomcp.deciding import Mind, Particles
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules, SearchTree
from missmdp.checks import checked_choice, checked_integer, checked_number
from missmdp.data.simulation import interleaved
from missmdp.errors import Argument, Message, ModelError, ParameterError
from missmdp.memory import check_fits
from missmdp.model.missing_factors import count_patterns
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.sarsop.listing import without_lists

BeliefKind = Literal["particles", "exact"]
"""What simulations start from."""

_AT_ONCE = 256
"""Simulations between two looks at the clock."""
_MOST_STEPS = 10**6
"""Simulated steps in one call of a kernel: a tenth of a second, during which nothing can be interrupted."""
_MOST_STEPS_OF_EPISODES = 10**7
"""The same where a whole episode is one call, which can be stopped between decisions."""
_MOST_BYTES = 8 * 2**30
"""No search may take more memory than this."""
_BYTES_PER_MOVE = 24.0
_OUTCOMES, _NARROW = 2**32, 2**16
"""Outcomes are numbered below this; below that the tables take half the memory."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search; see `POMCP`."""

    max_depth: int
    exploration: float
    tree_queries: int
    timeout: float | None
    belief: BeliefKind
    particles: int
    """How many particles there are; 0 where the belief is exact."""

    @property
    def at_once(self) -> int:
        """How many simulations are run in one call."""
        most = max(1, _MOST_STEPS // self.max_depth)
        return min(self.tree_queries, most if self.timeout is None else min(most, _AT_ONCE))

    def is_short(self, horizon: int) -> bool:
        """Return whether a whole episode can be left to one call of a kernel."""
        per_decision = self.tree_queries * self.max_depth + self.particles
        short = per_decision <= _MOST_STEPS and horizon * per_decision <= _MOST_STEPS_OF_EPISODES
        return self.timeout is None and short

    def check_memory(self, n_actions: int) -> None:
        """Raise `ParameterError` if a search would take too much memory."""
        needed = search_bytes(
            n_actions, max_depth=self.max_depth, tree_queries=self.tree_queries, particles=self.particles
        )
        total, largest = sum(needed.values()), max(needed, key=needed.__getitem__)
        if total > _MOST_BYTES:
            raise ParameterError(
                largest,
                getattr(self, largest),
                "smaller",
                Message(
                    f"a search with {self.tree_queries:,} tree queries, {self.particles:,} particles and a depth of "
                    f"{self.max_depth:,} for {n_actions} actions would take {total // 2**30:,} GB; choose a smaller ",
                    Argument(largest),
                ),
            )

    def __str__(self) -> str:
        text = f"{self.tree_queries:,} simulations of depth {self.max_depth}"
        if self.timeout is not None:
            text = f"at most {text} and {self.timeout:g} s"
        start = "the exact belief" if self.belief == "exact" else f"{self.particles:,} particles"
        return f"{text} per decision, from {start}, exploration {self.exploration:g}"


def checked_options(
    *,
    max_depth: Any,
    exploration: Any,
    tree_queries: Any,
    timeout: Any,
    belief: Any,
    particles: Any,
) -> SearchOptions:
    """Return options; raise an error that names what cannot be."""
    belief = checked_choice("belief", belief, get_args(BeliefKind))
    if particles is not None and belief == "exact":
        problem = "with belief='exact' there are no particles: leave particles out"
        raise ParameterError("particles", particles, "left out with belief='exact'", problem)
    queries = checked_integer("tree_queries", tree_queries, least=1)
    if queries >= 2**31:
        raise ParameterError("tree_queries", tree_queries, "below 2³¹")
    count = queries if particles is None else checked_integer("particles", particles, least=1)
    return SearchOptions(
        max_depth=checked_integer("max_depth", max_depth, least=1),
        exploration=checked_number(
            "exploration", exploration, least=0.0, expected="a finite number of at least 0"
        ),
        tree_queries=queries,
        timeout=None if timeout is None else checked_number("timeout", timeout, least=0.0, finite=False),
        belief=belief,
        particles=0 if belief == "exact" else count,
    )


def check_lists(model: MissMDP | POMDP) -> None:
    """Raise `ModelError` if the lists that a search draws from would not fit into memory."""
    if isinstance(model, MissMDP):
        moves = float(model.mdp.n_entries)
        sights = float(model.n_states) * count_patterns(model.missingness.parts)
        check_fits(
            f"POMCP lists {moves:.2g} transitions and {sights:.2g} pairs of a state and what is seen of it, which",
            _BYTES_PER_MOVE * moves + (100.0 + 4.0 * len(model.features)) * sights,
            without_lists(model),
        )


def compile_generative(model: MissMDP | POMDP) -> GenerativeModel:
    """Return what a search draws from; observations are numbered as in `compile_simulation`."""
    mdp = model.mdp if isinstance(model, MissMDP) else model
    action_bits = (mdp.n_actions - 1).bit_length()
    if mdp.n_states << action_bits > _OUTCOMES:
        raise ModelError(f"a search can tell 2³² pairs of state and action apart, fewer than {model!r} has")
    if isinstance(model, MissMDP):
        seen = [_by_observation(model)]
        n_observations = len(model.missingness.occurring().observations)
    else:
        seen, n_observations = list(model.observation), model.n_observations
    # One width for all tables, so that there are no more than two versions of each kernel.
    wide = max(mdp.n_states << action_bits, n_observations) > _NARROW
    return GenerativeModel(
        initial=alias_rows(sparse.csr_array(mdp.initial[None, :]), wide=wide),
        step=alias_rows(interleaved(mdp.transition), wide=wide),
        seen=alias_rows(interleaved(seen), wide=wide),
        wander=alias_rows(_wandering(mdp.transition, mdp.reward, action_bits), wide=wide),
        reward=np.array(mdp.reward, dtype=np.float64),
        terminal=np.array(mdp.terminal),
        n_actions=mdp.n_actions,
        n_watched=len(seen),
        n_observations=n_observations,
        action_bits=action_bits,
        discount=float(mdp.discount),
    )


def search_rules(max_depth: int, exploration: float, tree_queries: int) -> SearchRules:
    """Return how to search, with UCB1's square roots and logarithms in tables."""
    visits = np.arange(1, tree_queries + 1, dtype=np.float64)
    reach, shrink = exploration * np.sqrt(np.log(visits)), 1.0 / np.sqrt(visits)
    return SearchRules(max_depth, np.append(0.0, reach), np.append(0.0, shrink))


def alias_rows(rows: sparse.csr_array, *, wide: bool) -> AliasRows:
    """Return distributions, given as the rows of a matrix, ready to be drawn from; `wide` for outcomes above 2¹⁶."""
    start = np.asarray(rows.indptr, dtype=np.int64)
    bits = np.array([(n - 1).bit_length() for n in np.diff(start).tolist()], dtype=np.int64)
    first = np.cumsum(np.append(0, 1 << bits))
    row = ((first[:-1] << 6) | bits).astype(np.uint64)
    column = np.empty((int(first[-1]), 2), dtype=np.uint64 if wide else np.uint32)
    fill_alias(start, np.asarray(rows.indices, np.int64), np.asarray(rows.data, np.float64), row, column)
    return AliasRows(row, column)


def _by_observation(model: MissMDP) -> sparse.csr_array:
    """Return M(z | s), shape (S, Z), over the observations that occur."""
    seen = model.missingness.occurring()
    return sparse.csr_array(
        (model.missingness.probabilities[seen.state, seen.pattern], (seen.state, seen.place)),
        shape=(model.n_states, len(seen.observations)),
    )


def _wandering(
    transition: tuple[sparse.csr_array, ...], reward: NDArray[np.float64], action_bits: int
) -> sparse.csr_array:
    """Return P(s′, a | s) for a uniformly random a as a matrix with column s′ · 2^action_bits + a.

    Actions that earn the same in s are one: the first of them stands for all, which leaves fewer outcomes.
    """
    n_states, n_actions = reward.shape
    stands_for = _first_with_equal_reward(reward)
    states: NDArray[np.int64] = np.arange(n_states, dtype=np.int64)
    state = [np.repeat(states, np.diff(matrix.indptr)) for matrix in transition]
    code = [
        (np.asarray(matrix.indices, dtype=np.int64) << action_bits) | stands_for[origin, a]
        for a, (matrix, origin) in enumerate(zip(transition, state, strict=True))
    ]
    probability = np.concatenate([np.asarray(matrix.data, dtype=np.float64) for matrix in transition])
    joint = sparse.coo_array(
        (probability / n_actions, (np.concatenate(state), np.concatenate(code))),
        shape=(n_states, n_states << action_bits),
    )
    return sparse.csr_array(joint)


def _first_with_equal_reward(reward: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.argsort(reward, axis=1, kind="stable")
    in_order = np.take_along_axis(reward, order, axis=1)
    # Within a row: where the group of equal rewards begins to which each place belongs.
    group = np.zeros(reward.shape, dtype=np.int64)
    places: NDArray[np.int64] = np.arange(1, reward.shape[1], dtype=np.int64)
    group[:, 1:] = np.where(in_order[:, 1:] != in_order[:, :-1], places, 0)
    begins = np.maximum.accumulate(group, axis=1)
    first = np.empty(reward.shape, dtype=np.int64)
    np.put_along_axis(first, order, np.take_along_axis(order, begins, axis=1), axis=1)
    return first


def new_mind(
    n_states: int, n_actions: int, *, max_depth: int, tree_queries: int, particles: int, at_once: int
) -> Mind:
    """Return working space for decisions.

    Parameters
    ----------
    n_states, n_actions
        The size of the policy's own model.
    max_depth, tree_queries
        The size of a search.
    particles
        How many particles there are; 0 to search from the exact belief.
    at_once
        How many simulations are run in one call of a kernel.
    """
    return Mind(
        belief=Belief(
            state=np.empty(n_states, dtype=np.int32),
            weight=np.empty(n_states),
            predicted=np.zeros(n_states),
            touched=np.empty(n_states, dtype=np.int32),
            size=np.zeros(2, dtype=np.int64),
        ),
        particles=Particles(
            state=np.empty(particles, dtype=np.int32),
            spare=np.empty(particles, dtype=np.int32),
            size=np.zeros(1, dtype=np.int64),
        ),
        cumulative=np.empty(n_states),
        roots=np.empty(at_once, dtype=np.int32),
        tree=new_tree(n_actions, tree_queries, max_depth),
    )


def new_tree(n_actions: int, tree_queries: int, max_depth: int) -> SearchTree:
    """Return a tree with room for one node per query besides the root; nothing is in it, not even a root."""
    nodes = tree_queries + 1
    return SearchTree(
        value=np.empty(nodes * n_actions),
        visits=np.empty(nodes * n_actions, dtype=np.int32),
        total=np.empty(nodes, dtype=np.int32),
        slot_key=np.empty(_slots(nodes), dtype=np.int64),
        slot_node=np.empty(_slots(nodes), dtype=np.int32),
        path=np.empty(max_depth, dtype=np.int64),
        chosen=np.empty(max_depth, dtype=np.int64),
        earned=np.empty(max_depth),
        size=np.zeros(1, dtype=np.int64),
    )


def search_bytes(n_actions: int, *, max_depth: int, tree_queries: int, particles: int) -> dict[str, int]:
    """Return how much memory a search takes for each of these options; models come on top."""
    nodes = tree_queries + 1
    tables = 16 * nodes + 4 * tree_queries  # UCB1's, and where simulations start
    return {
        "tree_queries": nodes * (12 * n_actions + 4) + 12 * _slots(nodes) + tables,
        "particles": 8 * particles,
        "max_depth": 24 * max_depth,
    }


def _slots(nodes: int) -> int:
    """Return a power of two that leaves at least half of the slots free."""
    return 1 << (2 * nodes - 1).bit_length()
