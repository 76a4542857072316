"""Action values of a policy from a model: values of states, weighted by the belief after each recorded history.

The policy is replaced by one that looks at the state: μ(a | s) is how often it does a in s. For a memoryless policy
that is exact, and so is Q̂(h, a) = Σ_s b(s | h) Q^μ(s, a) then. For others μ comes from simulated episodes, and Q̂ is an
approximation, which the doubly robust estimate allows for. The log decides nothing but the beliefs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.data.collect import collect
from missmdp.data.dataset import Dataset
from missmdp.errors import ModelError
from missmdp.evaluation.offpolicy.decisions import Decisions
from missmdp.evaluation.offpolicy.fitted import ActionValues, looked_ahead
from missmdp.evaluation.offpolicy.target import Choices, distinct
from missmdp.memory import check_fits
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy, Policy
from missmdp.model.space import NO_ACTION

_SIMULATED = 5000
"""Steps in which a policy with memory shows what it does in which state."""
_BACKOFF = 2.0
"""Decisions that its habits in all states count for in one."""
_AT_ONCE = 4_000_000
"""Numbers that beliefs of a batch of episodes take."""


def modelled_values(
    policy: Policy,
    model: MissMDP,
    log: Dataset,
    decisions: Decisions,
    choices: Choices,
    discount: float,
    *,
    seed: int,
) -> ActionValues:
    """Return action values from a model with the log's features and actions."""
    if not (model.mdp.is_small and model.missingness.is_small):
        raise ModelError(
            "this model is too large to follow beliefs over its states; leave the model out, and values are fitted to "
            "the log"
        )
    longest = looked_ahead(decisions.longest, discount)
    entries = float(longest) * model.n_states * model.n_actions
    check_fits(f"the values of {model.n_states:,} states for {longest:,} decisions", 8.0 * entries, "")
    tables = _values_by_decisions_left(model, _habits(policy, model, longest, seed), discount, longest)
    out = ActionValues(np.zeros(len(decisions.rows)), np.zeros(len(decisions.rows)))
    rows, label = distinct(log.observations[decisions.rows])
    likelihood = np.array([model.missingness.likelihood_of_codes(tuple(row.tolist())) for row in rows])
    # Where a decision was made, nothing has ended yet.
    likelihood = likelihood * ~model.mdp.terminal
    admits = np.array([model.space.admit(row) & ~model.mdp.terminal for row in rows], dtype=np.float64)
    actions = log.actions[decisions.rows].astype(np.int64)
    batch = max(1, _AT_ONCE // model.n_states)
    for first in range(0, decisions.episodes, batch):
        episodes = np.arange(first, min(first + batch, decisions.episodes))
        belief = np.tile(np.asarray(model.mdp.initial), (len(episodes), 1))
        for t in range(decisions.longest):
            going_on = decisions.counts[episodes] > t
            episodes, belief = episodes[going_on], belief[going_on]
            if not len(episodes):
                break
            place = decisions.start[episodes] + t
            belief = _conditioned(belief, likelihood[label[place]], admits[label[place]])
            left = min(decisions.longest - t, longest)
            values = belief @ tables[left - 1]
            out.action_values[place] = values[np.arange(len(place)), actions[place]]
            out.values[place] = (values * choices.probabilities[place]).sum(axis=1)
            belief = _predicted(belief, actions[place], model)
    return out


def _habits(policy: Policy, model: MissMDP, decisions: int, seed: int) -> NDArray[np.float64]:
    """Return how often a policy does what in which state, shape (S, A)."""
    if isinstance(policy, MemorylessPolicy):
        table = policy.table(model)
        return np.einsum("sk,ska->sa", model.missingness.probabilities, table.probabilities[table.row])
    log = collect(
        model, _SIMULATED, policy, seed=seed, horizon=decisions + 1, keep_states=True, progress=False
    )
    assert log.states is not None
    taken = log.actions != NO_ACTION
    counts = np.zeros((model.n_states, model.n_actions))
    np.add.at(counts, (log.states[taken], log.actions[taken]), 1.0)
    overall = (counts.sum(axis=0) + 1.0) / (counts.sum() + model.n_actions)
    smoothed = counts + _BACKOFF * overall
    return smoothed / smoothed.sum(axis=1, keepdims=True)


def _values_by_decisions_left(
    model: MissMDP, habits: NDArray[np.float64], discount: float, most: int
) -> NDArray[np.float64]:
    """Return Q^μ(s, a) over 1, 2, … more decisions, shape (most, S, A)."""
    mdp = model.mdp
    out = np.zeros((most, model.n_states, model.n_actions))
    values = np.zeros(model.n_states)
    for k in range(most):
        future = np.stack([mdp.expect(values, a) for a in range(model.n_actions)], axis=1)
        out[k] = np.where(mdp.terminal[:, None], 0.0, mdp.reward + discount * future)
        values = (habits * out[k]).sum(axis=1)
    return out


def _conditioned(
    belief: NDArray[np.float64], likelihood: NDArray[np.float64], admits: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return posteriors, one per row; what is impossible is believed as far as values go, or not at all."""
    out = belief
    for believed in (belief * admits, belief * likelihood):
        total = believed.sum(axis=1, keepdims=True)
        out = np.where(total > 0.0, believed / np.where(total > 0.0, total, 1.0), out)
    return out


def _predicted(
    belief: NDArray[np.float64], actions: NDArray[np.int64], model: MissMDP
) -> NDArray[np.float64]:
    out = np.empty_like(belief)
    for a, matrix in enumerate(model.mdp.transition):
        chosen = actions == a
        if chosen.any():
            out[chosen] = (sparse.csr_array(matrix.T) @ belief[chosen].T).T
    return out
