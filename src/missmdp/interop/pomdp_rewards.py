"""Rewards R(a, s, s′, z) of a `.pomdp` file, folded into ρ(s, a) = Σ T(s′ | s, a) O(z | s′, a) R(a, s, s′, z).

Rules are kept as they are written, with their wildcards. A rule for all s′ and z makes everything before it
void. Most states have no rules of their own, so that the expectation over z, and then the one over s′, is
computed once for all of them; the others are done one by one over their own successors. An expectation of equal
values is that value, with no rounding, so that rewards written as ρ(s, a) come back bit for bit.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.interop.expectation import row_means

__all__ = ["ALL", "RewardRule", "RewardRules"]

ALL = -1
"""In the place of an index: all of them."""
_FIRST = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RewardRule:
    """A reward for one next state or all of them (−1), and one observation or all."""

    stamp: int
    next_state: int
    observation: int
    values: NDArray[np.float64]
    """One number, shape (), numbers by observation, shape (Z,), or by next state and observation, shape (S, Z)."""

    @property
    def covers_all(self) -> bool:
        """Whether nothing written before can matter for the same state and action."""
        return self.next_state == ALL and self.observation == ALL

    @property
    def by_observation(self) -> bool:
        """Whether the reward depends on the observation."""
        return self.observation != ALL or self.values.ndim > 0


class RewardRules:
    """The rules in the order of the file, by action and state.

    Parameters
    ----------
    n_actions
        How many actions there are.
    """

    def __init__(self, n_actions: int) -> None:
        self._n_actions = n_actions
        self._for_all: list[list[RewardRule]] = [[] for _ in range(n_actions)]
        self._for_one: list[dict[int, list[RewardRule]]] = [{} for _ in range(n_actions)]

    def add(self, action: int, state: int, rule: RewardRule) -> None:
        """Add a rule for one action or all (−1), and one state or all."""
        for a in range(self._n_actions) if action == ALL else (action,):
            if state == ALL:
                if rule.covers_all:
                    self._for_all[a].clear()
                    self._for_one[a].clear()
                self._for_all[a].append(rule)
            else:
                rules = self._for_one[a].setdefault(state, [])
                if rule.covers_all:
                    rules.clear()
                rules.append(rule)

    def fold(
        self, action: int, transition: sparse.csr_array, observation: sparse.csr_array
    ) -> NDArray[np.float64]:
        """Return ρ(·, a) for one action, shape (S,), from its T(s′ | s, a) and O(z | s′, a)."""
        everywhere = np.arange(transition.shape[0])
        common = self._for_all[action]
        rewards = _rewards(common, everywhere, observation)
        value = row_means(rewards[transition.indices], transition.data, transition.indptr[:-1])
        for state, own in self._for_one[action].items():
            # A rule for everything makes older rules for all states void too.
            since = own[0].stamp if own[0].covers_all else -1
            later = common[bisect_right(common, since, key=lambda rule: rule.stamp) :]
            if len(own) == 1 and not later and own[0].values.ndim == 0 and own[0].covers_all:
                value[state] = own[0].values
                continue
            rules = sorted([*own, *later], key=lambda rule: rule.stamp)
            start, stop = transition.indptr[state], transition.indptr[state + 1]
            successors = transition.indices[start:stop]
            rewards = _rewards(rules, successors, observation)
            value[state] = row_means(rewards, transition.data[start:stop], _FIRST)[0]
        return value


def _rewards(
    rules: list[RewardRule], next_states: NDArray[np.integer], observation: sparse.csr_array
) -> NDArray[np.float64]:
    """Return Σ_z O(z | s′) R(s′, z) for some next states, by rules of which later ones count."""
    if not any(rule.by_observation for rule in rules):
        rewards = np.zeros(len(next_states))
        for rule in rules:
            rewards[... if rule.next_state == ALL else next_states == rule.next_state] = rule.values
        return rewards
    chosen = observation[next_states]
    seen = chosen.indices
    owner = np.repeat(next_states, np.diff(chosen.indptr))
    rewards = np.zeros(len(seen))
    for rule in rules:
        applies = np.ones(len(seen), dtype=np.bool_)
        if rule.next_state != ALL:
            applies &= owner == rule.next_state
        if rule.observation != ALL:
            applies &= seen == rule.observation
        if rule.values.ndim == 0:
            rewards[applies] = rule.values
        elif rule.values.ndim == 1:
            rewards[applies] = rule.values[seen[applies]]
        else:
            rewards[applies] = rule.values[owner[applies], seen[applies]]
    return row_means(rewards, chosen.data, chosen.indptr[:-1])
