"""What can be seen in a miss-MDP if every pattern is possible, and which actions follow.

An observation here is a pattern, the values that it shows, and whether the episode is over, which a log tells too. Full
observations cut histories: given the state s and the action a, what follows has the law of T(· | s, a). So do
observations whose states all have the same transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.model.equal_rows import canonical, equal_rows
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import BlindPolicy, MemorylessPolicy, Policy, as_policy
from missmdp.model.space import MISSING

_MOST = 400_000
"""Pairs of a pattern and a state above which an answer is refused: a matter of minutes."""


@dataclass(frozen=True, eq=False)
class PossibleObservations:
    """The observations of an MDP under all patterns of some blocks, Z of them, and how a policy acts on them.

    Shapes: K patterns, S states, A actions.
    """

    members: tuple[NDArray[np.int64], ...]
    """The states that show each observation, among those that the policy visits."""
    pattern: NDArray[np.int64]
    """The pattern of each observation, shape (Z,)."""
    codes: NDArray[np.signedinteger[Any]]
    """What each observation shows, with `MISSING`, shape (Z, n)."""
    over: NDArray[np.bool_]
    """Whether the episode is over, shape (Z,)."""
    allowed: NDArray[np.bool_]
    """Which actions the policy may take after each observation, shape (Z, A)."""
    known: tuple[NDArray[np.int64], ...]
    """For each action, states of which it is known now and then that they are left by this action, one of each class
    with the same transitions."""
    left: tuple[NDArray[np.int64], ...]
    """For each action, states that are left by it at all, seen or not, one of each class."""
    row_class: NDArray[np.int64]
    """States with the same class under an action have the same transitions, shape (A, S)."""

    def branches(self, observation: int) -> bool:
        """Return whether an observation leaves open what happens next, beyond chance."""
        if self.over[observation]:
            return False
        classes = self.row_class[:, self.members[observation]][self.allowed[observation]]
        return bool((classes != classes[:, :1]).any())


def possible_observations(
    mdp: FactoredMDP, patterns: NDArray[np.bool_], policy: Policy | Callable[[Any], Any] | None
) -> PossibleObservations:
    """Return all that can be seen under some patterns, shape (K, n), and the policy's actions there."""
    acts = _actions(mdp, as_policy(policy))
    reachable = np.flatnonzero(mdp.reachable)
    if len(patterns) * len(reachable) > _MOST:
        raise ModelError(
            f"{len(patterns):,} patterns of {len(reachable):,} states are too many to say what is identified "
            f"(at most {_MOST:,} in all); ask about a smaller model, with fewer features that go missing. `diagnose` "
            "and `DynamicsEM` work on large models, and their warnings say what a log leaves open"
        )
    row_class = np.stack([equal_rows([canonical(matrix)]).number for matrix in mdp.transition])
    members: list[NDArray[np.int64]] = []
    pattern: list[int] = []
    codes: list[NDArray[np.signedinteger[Any]]] = []
    for k, shown in enumerate(patterns):
        for states in members_of(mdp, shown, reachable):
            members.append(states)
            pattern.append(k)
            codes.append(np.where(shown, mdp.space.codes[states[0]], mdp.space.codes.dtype.type(MISSING)))
    over = np.array([bool(mdp.terminal[states[0]]) for states in members])
    allowed = np.array([acts(row) for row in codes]) & ~over[:, None]
    taken = np.zeros((mdp.n_states, mdp.n_actions), dtype=np.bool_)
    for states, may in zip(members, allowed, strict=True):
        taken[states] |= may
    visited = _visited(mdp, taken)
    members = [states[visited[states]] for states in members]
    some = np.array([len(states) > 0 for states in members])
    members = [states for states in members if len(states)]
    allowed = allowed[some]
    known = np.zeros_like(taken)
    for states, may in zip(members, allowed, strict=True):
        alike = (row_class[:, states] == row_class[:, states[:1]]).all(axis=1)
        known[states] |= may & alike
    return PossibleObservations(
        tuple(members),
        np.array(pattern)[some],
        np.array(codes)[some],
        over[some],
        allowed,
        tuple(_one_of_each(known[:, a], row_class[a]) for a in range(mdp.n_actions)),
        tuple(_one_of_each(taken[:, a] & visited, row_class[a]) for a in range(mdp.n_actions)),
        row_class,
    )


def members_of(
    mdp: FactoredMDP, shown: NDArray[np.bool_], states: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return some states in groups that look the same where these features are shown, shape (n,)."""
    looks = (
        mdp.space.features.rank(np.where(shown, mdp.space.codes[states], MISSING)) * 2 + mdp.terminal[states]
    )
    order = np.argsort(looks, kind="stable")
    cuts = np.flatnonzero(np.diff(looks[order])) + 1
    return [states[part] for part in np.split(order, cuts)]


def _actions(
    mdp: FactoredMDP, policy: Policy
) -> Callable[[NDArray[np.signedinteger[Any]]], NDArray[np.bool_]]:
    """Return the function from the codes of an observation to the actions that may follow, shape (A,)."""
    if not isinstance(policy, MemorylessPolicy):
        raise ModelError(
            f"{type(policy).__name__} has a memory; identifiability takes policies that act on the present "
            "observation: a function from observation to {action: probability}, or a BlindPolicy"
        )
    model = MissMDP(mdp, MissingnessFunction.fully_observed(mdp))
    if isinstance(policy, BlindPolicy):
        always = policy.probabilities(None, model) > 0.0
        return lambda row: always
    decode = mdp.space.features.decode_observation
    return lambda row: policy.probabilities(decode(row), model) > 0.0


def _visited(mdp: FactoredMDP, taken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the states that are reached by the actions that are taken, shape (S,)."""
    visited = mdp.initial > 0.0
    while True:
        more = visited.copy()
        for a, matrix in enumerate(mdp.transition):
            more |= (matrix.T @ (visited & taken[:, a]).astype(np.float64)) > 0.0
        if (more == visited).all():
            return visited
        visited = more


def _one_of_each(chosen: NDArray[np.bool_], row_class: NDArray[np.int64]) -> NDArray[np.int64]:
    states = np.flatnonzero(chosen)
    _, first = np.unique(row_class[states], return_index=True)
    return states[first]
