"""The one simulator: a miss-MDP and a policy as arrays that the kernels run.

Collection, evaluation and tree search all draw states and patterns from here, with random numbers that
are addressed by (seed, episode, step, purpose).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.rollout import Simulation
from missmdp._kernels.sampling import RowSampler, fill_cdf, fill_guide
from missmdp.data.arguments import checked_seed
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy

__all__ = ["PolicySampler", "compile_policy", "compile_simulation", "row_sampler", "seed_words", "seen_codes"]


class PolicySampler(NamedTuple):
    """A memoryless policy: what is seen as row j draws from row action_row[j] of `actions`."""

    action_row: NDArray[np.int32]
    actions: RowSampler


def row_sampler(rows: sparse.csr_array | NDArray[np.float64]) -> RowSampler:
    """Return distributions, given as the rows of a matrix, ready to be drawn from."""
    matrix = sparse.csr_array(rows)
    start = np.asarray(matrix.indptr, dtype=np.int64)
    weights = np.asarray(matrix.data, dtype=np.float64)
    cdf = np.empty_like(weights)
    guide = np.empty(len(cdf), dtype=np.int32)
    fill_cdf(start, weights, cdf)
    fill_guide(start, cdf, guide)
    return RowSampler(start, np.asarray(matrix.indices, dtype=np.int32), cdf, guide)


def compile_simulation(model: MissMDP) -> Simulation:
    """Return a miss-MDP as the simulator sees it."""
    n_states, n_actions = model.n_states, model.n_actions
    stacked = sparse.csr_array(sparse.vstack(model.mdp.transition, format="csr"))
    by_state = (np.arange(n_actions)[None, :] * n_states + np.arange(n_states)[:, None]).reshape(-1)
    return Simulation(
        initial=row_sampler(model.mdp.initial[None, :]),
        transition=row_sampler(sparse.csr_array(stacked[by_state])),
        pattern=row_sampler(model.missingness.probabilities),
        terminal=np.array(model.mdp.terminal),
        n_actions=n_actions,
        n_patterns=model.missingness.n_patterns,
    )


def compile_policy(policy: MemorylessPolicy, model: MissMDP) -> PolicySampler:
    """Return a memoryless policy as the simulator sees it."""
    table = policy.table(model)
    return PolicySampler(np.ascontiguousarray(table.row.reshape(-1)), row_sampler(table.probabilities))


def seen_codes(model: MissMDP) -> NDArray[np.integer[Any]]:
    """Return the observation of state s under pattern k in row s · K + k, shape (S · K, n)."""
    n_patterns = model.missingness.n_patterns
    states, patterns = np.divmod(np.arange(model.n_states * n_patterns), n_patterns)
    return np.ascontiguousarray(model.missingness.observe(states, patterns))


def seed_words(seed: int | None) -> tuple[int, NDArray[np.uint64]]:
    """Return the seed (a fresh one for None) and the words from which the kernels draw."""
    sequence = np.random.SeedSequence(None if seed is None else checked_seed(seed))
    entropy = sequence.entropy
    assert isinstance(entropy, int)
    return entropy, sequence.generate_state(2, np.uint64).astype(np.uint64)
