"""What a finite controller is worth, by its agent: every node and state, every pattern, one system of equations."""

from __future__ import annotations

import numpy as np

import missmdp as mm
from missmdp.model.space import MISSING
from missmdp.plan.finite.plan import NO_ACTION, stacked_plan
from missmdp.plan.value_function import ComponentVectors, state_components
from strategies import KINDS, random_mdp, random_missingness

__all__ = ["controller_value", "random_controller", "random_model", "within"]


def random_model(seed: int) -> tuple[np.random.Generator, mm.MissMDP]:
    """Return a random miss-MDP of two features, at most six states, and what drew it."""
    rng = np.random.default_rng([seed, 7])
    features = {"ward": ("north", "south"), "level": (0, 1, 2)}
    mdp = random_mdp(rng, features, int(rng.integers(1, 4)))
    return rng, mm.MissMDP(mdp, random_missingness(rng, mdp, str(rng.choice(KINDS))))


def controller_value(controller: mm.FiniteController, missingness: mm.MissingnessFunction) -> float:
    """Return V(controller) in the controller's MDP with another missingness function."""
    model = controller.model.with_missingness(missingness)
    mdp, features = model.mdp, model.space.features
    agent = controller.agent()

    def follows(node, s):
        """Yield (node, probability) after the observation of a state; node −1 is before the first."""
        for pattern, probability in zip(missingness.patterns, missingness.probabilities[s], strict=True):
            if probability > 0.0:
                seen = features.decode_observation(np.where(pattern, model.space.codes[s], MISSING))
                if node == -1:
                    agent.reset(seen)
                else:
                    agent.node = node
                    agent.step(seen)
                yield agent.node, probability

    live = set(np.flatnonzero(~mdp.terminal).tolist())
    start: dict[tuple[int, int], float] = {}
    for s in live:
        for node, probability in follows(-1, s) if mdp.initial[s] > 0.0 else ():
            start[node, s] = start.get((node, s), 0.0) + mdp.initial[s] * probability
    number = {pair: i for i, pair in enumerate(start)}
    entries: list[tuple[int, int, float]] = []
    rewards: list[float] = []
    for (k, s), i in (queue := list(number.items())):
        a = max(int(controller.plan.action[k]), 0)
        rewards.append(float(mdp.reward[s, a]))
        row = mdp.transition[a][[s]].toarray()[0]
        for after in live & set(np.flatnonzero(row).tolist()):
            for node, probability in follows(k, after):
                if (node, after) not in number:
                    number[node, after] = len(number)
                    queue.append(((node, after), number[node, after]))
                entries.append((i, number[node, after], mdp.discount * row[after] * probability))
    matrix = np.eye(len(number))
    for i, j, weight in entries:
        matrix[i, j] -= weight
    values = np.linalg.solve(matrix, np.array(rewards)) if number else np.zeros(0)
    return float(sum(weight * values[number[pair]] for pair, weight in start.items()))


def random_controller(rng: np.random.Generator, model: mm.MissMDP) -> mm.FiniteController:
    """Return a controller with random vectors and plans, which have nothing to say about many observations."""
    pomdp = model.to_pomdp()
    components = []
    for states in state_components(pomdp):
        n = int(rng.integers(1, 4))
        components.append(
            ComponentVectors(states, rng.normal(size=(n, len(states))), rng.integers(0, pomdp.n_actions, n))
        )
    policy = mm.AlphaVectorPolicy(model, components)
    rows = []
    for _ in range(policy.n_vectors + 1):
        planned = np.flatnonzero(rng.random(pomdp.n_observations) < 0.7)
        rows.append((planned, rng.integers(0, max(policy.n_vectors, 1), len(planned))))
    actions = [*np.concatenate([[], *(component.actions for component in components)]).astype(int), NO_ACTION]
    sights = np.arange(pomdp.n_observations)[None, :]
    return mm.FiniteController(policy, stacked_plan(actions, rows, policy.n_vectors, sights))


def within(
    rng: np.random.Generator,
    missingness: mm.MissingnessFunction,
    epsilon: np.ndarray,
    patterns: np.ndarray,
    *,
    extreme: bool = False,
) -> mm.MissingnessFunction:
    """Return an M at total variation of at most ε(s) from another, over the given patterns.

    With `extreme`, at exactly ε(s) where that can be: from one pattern to another.
    """
    listed = {tuple(row): k for k, row in enumerate(missingness.patterns.tolist())}
    table = np.zeros((len(missingness.space), len(patterns)))
    for j, pattern in enumerate(patterns.tolist()):
        if tuple(pattern) in listed:
            table[:, j] = missingness.probabilities[:, listed[tuple(pattern)]]
    for s in range(len(table)):
        if extreme:
            target = np.eye(len(patterns))[rng.integers(len(patterns))]
            budget = epsilon[s]
            for j in rng.permutation(np.flatnonzero(table[s] > 0.0)):
                moved = min(budget, table[s, j])
                table[s, j] -= moved
                table[s] += moved * target
                budget -= moved
        else:
            other = rng.dirichlet(np.full(len(patterns), 0.3))
            distance = 0.5 * np.abs(other - table[s]).sum()
            share = min(1.0, epsilon[s] / distance) if distance > 0.0 else 0.0
            table[s] += share * rng.random() * (other - table[s])
    table = np.maximum(table, 0.0)
    return mm.MissingnessFunction(missingness.space, patterns, table / table.sum(axis=1, keepdims=True))
