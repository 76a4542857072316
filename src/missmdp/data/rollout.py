"""The one simulator: a model and a policy as arrays that the kernels run.

Collection, evaluation and tree search all draw states and patterns from here, with random numbers that
are addressed by (seed, episode, step, purpose).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.random import RowSampler, fill_cdf, fill_guide
from missmdp._kernels.simulator import Simulation
from missmdp.checks import checked_seed
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy
from missmdp.model.pomdp import POMDP
from missmdp.model.value_iteration import advantages

__all__ = [
    "PolicySampler",
    "compile_policy",
    "compile_simulation",
    "interleaved",
    "row_sampler",
    "seed_words",
    "seen_codes",
]


_TRAINING = 1
"""The stream of draws that is set aside for training."""


class PolicySampler(NamedTuple):
    """A memoryless policy: on the observation z it draws from row action_row[z] of `actions`."""

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
    # A copy: kernels are compiled anew for arrays that cannot be written to.
    return RowSampler(start, np.array(matrix.indices, dtype=np.int32), cdf, guide)


def compile_simulation(model: MissMDP | POMDP, potential: NDArray[np.float64] | None = None) -> Simulation:
    """Return a model as the simulator sees it; `potential` is 0 unless given, and advantages are rewards then.

    Observations of a miss-MDP are numbered as in `MissingnessFunction.occurring`, and drawn in the order of their
    patterns, so that a draw means the same pattern in every state.
    """
    mdp = model.mdp if isinstance(model, MissMDP) else model
    values = np.zeros(mdp.n_states) if potential is None else potential
    if isinstance(model, MissMDP):
        observation, n_watched = _drawn_by_pattern(model), 1
    else:
        observation, n_watched = row_sampler(interleaved(model.observation)), len(model.observation)
    return Simulation(
        initial=row_sampler(mdp.initial[None, :]),
        transition=row_sampler(interleaved(mdp.transition)),
        observation=observation,
        reward=np.array(mdp.reward, order="C"),
        potential=np.array(values),
        advantage=np.array(advantages(mdp, values), order="C"),
        terminal=np.array(mdp.terminal),
        n_actions=mdp.n_actions,
        n_watched=n_watched,
    )


def interleaved(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Return matrices as one, with row i of matrix k in row i · len(matrices) + k."""
    if len(matrices) == 1:
        return matrices[0]
    stacked = sparse.csr_array(sparse.vstack(matrices, format="csr"))
    height = matrices[0].shape[0]
    order = np.arange(len(matrices))[None, :] * height + np.arange(height)[:, None]
    return sparse.csr_array(stacked[order.reshape(-1)])


def _drawn_by_pattern(model: MissMDP) -> RowSampler:
    seen = model.missingness.occurring()
    by_pattern = row_sampler(model.missingness.probabilities)
    # `occurring` lists states, and the patterns of each, in the order of the sampler.
    return by_pattern._replace(target=np.ascontiguousarray(seen.place, dtype=np.int32))


def compile_policy(policy: MemorylessPolicy, model: MissMDP) -> PolicySampler:
    """Return a memoryless policy as the simulator sees it."""
    table = policy.table(model)
    seen = model.missingness.occurring()
    action_row = np.zeros(len(seen.observations), dtype=np.int32)
    action_row[seen.place] = table.row[seen.state, seen.pattern]
    return PolicySampler(action_row, row_sampler(table.probabilities))


def seen_codes(model: MissMDP) -> NDArray[np.integer[Any]]:
    """Return the observations of the simulator as codes, shape (Z, n)."""
    codes = model.missingness.occurring().observations.codes
    return np.ascontiguousarray(codes, dtype=model.space.features.code_dtype)


def seed_words(seed: int | None, *, training: bool = False) -> tuple[int, NDArray[np.uint64]]:
    """Return the seed (a fresh one for None) and the words from which the kernels draw.

    Training has words of its own: what was trained with a seed must not be evaluated on the episodes that it was
    trained on, because somebody chose the same seed for both.
    """
    entropy = np.random.SeedSequence(None if seed is None else checked_seed(seed)).entropy
    assert isinstance(entropy, int)
    sequence = np.random.SeedSequence(entropy, spawn_key=(_TRAINING,) if training else ())
    return entropy, sequence.generate_state(2, np.uint64).astype(np.uint64)
