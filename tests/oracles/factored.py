"""Structured searches that end after a number of steps, and values of models and controllers with everything listed."""

from __future__ import annotations

from itertools import product

import numpy as np

import missmdp as mm
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.factored.search import StructuredSearch
from missmdp.plan.stopping import Goal, SearchLimits, Status, Stop

Array = np.ndarray


class Ticks(SearchLimits):
    """A time limit that is over when it has been looked at so often: the same on every machine."""

    def __init__(self, ticks: int) -> None:
        super().__init__(None, None)
        self.ticks = ticks

    def check(self) -> None:
        """Raise `Stop` if time is up."""
        self.ticks -= 1
        if self.ticks < 0:
            raise Stop("timeout")


def searched(
    model: mm.MissMDP, limits: SearchLimits, precision: float = 1e-4, max_trials: int | None = None
) -> tuple[StructuredSearch, Status]:
    """Return a structured search that ran, whatever the size of the model."""
    search = StructuredSearch(Parts(model), limits, Goal(precision, None, max_trials), lambda text: None)
    return search, search.run()


def dense(model: mm.MissMDP) -> tuple[Array, Array]:
    """Return T[a, s, s′] and ρ[s, a], with terminal states from which nothing leads on."""
    mdp = model.mdp
    transition = np.stack([matrix.toarray() for matrix in mdp.transition])
    transition[:, mdp.terminal] = 0.0
    return transition, np.where(mdp.terminal[:, None], 0.0, mdp.reward)


def seen_value(model: mm.MissMDP) -> float:
    """Return the value of full observation, by value iteration."""
    transition, reward = dense(model)
    values = np.zeros(model.n_states)
    for _ in range(2000):
        values = (reward + model.discount * (transition @ values).T).max(axis=1)
    return float(model.mdp.initial @ values)


def blind_values(model: mm.MissMDP) -> list[float]:
    """Return the value of each action for ever."""
    transition, reward = dense(model)
    eye = np.eye(model.n_states)
    return [
        float(model.mdp.initial @ np.linalg.solve(eye - model.discount * transition[a], reward[:, a]))
        for a in range(model.n_actions)
    ]


def memory_value(policy: MemoryPolicy) -> float:
    """Return the value of a policy with memory in its model: one equation per state and nodes."""
    model = policy.model
    transition, reward = dense(model)
    features, missingness = model.space.features, model.missingness
    sites = [features.position(name) for name in policy.sites]
    seen = [features.position(name) for name in policy.scene_features]
    codes = model.space.codes
    scene_of = np.zeros(model.n_states, dtype=int)
    for i in seen:
        scene_of = scene_of * int(features.sizes[i]) + codes[:, i]
    nodes = list(product(*map(range, policy.nodes)))
    n_nodes = len(nodes)

    def settled(after: int, rows: list[Array]) -> Array:
        """Return P(nodes | next state), given where each site's node goes while it is missing."""
        total = np.zeros(n_nodes)
        for pattern, chance in zip(missingness.patterns, missingness.probabilities[after], strict=True):
            joint = np.ones(1)
            for k, i in enumerate(sites):
                row = np.eye(policy.nodes[k])[codes[after, i]] if pattern[i] else rows[k]
                joint = np.multiply.outer(joint, row).ravel()
            total += chance * joint
        return total

    matrix = np.eye(model.n_states * n_nodes)
    constant = np.zeros(model.n_states * n_nodes)
    for s, (number, place) in product(range(model.n_states), enumerate(nodes)):
        tied = _tied(policy, int(policy.table[(scene_of[s], *place)]), place)
        for action in tied:
            constant[s * n_nodes + number] += reward[s, action] / len(tied)
            for after in np.flatnonzero(transition[action, s]):
                rows = [
                    steps[action, scene_of[s], scene_of[after], place[k]]
                    for k, steps in enumerate(policy.steps)
                ]
                columns = slice(after * n_nodes, (after + 1) * n_nodes)
                weight = model.discount * transition[action, s, after] / len(tied)
                matrix[s * n_nodes + number, columns] -= weight * settled(int(after), rows)
    values = np.linalg.solve(matrix, constant).reshape(model.n_states, n_nodes)
    return sum(
        float(weight * settled(s, [first[scene_of[s]] for first in policy.first]) @ values[s])
        for s, weight in enumerate(model.mdp.initial)
        if weight > 0.0
    )


def _tied(policy: MemoryPolicy, action: int, nodes: tuple[int, ...]) -> list[int]:
    """Return the actions of which one is drawn: on features that are alike and at the same node."""
    if policy.alike is None or (policy.alike[action] < 0).all():
        return [action]
    own = nodes[policy.alike[action].tolist().index(action)]
    return [other for other, node in zip(policy.alike[action].tolist(), nodes, strict=True) if node == own]
