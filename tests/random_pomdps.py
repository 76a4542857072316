"""Tiny POMDPs: random ones that cover what a solver can get wrong, one per seed; and Tiger.

Every random model draws, independently of each other:

- 1 to 5 states, 1 to 3 actions, 1 to 7 observations, discount 0 to 0.95, whether an observation comes first;
- transitions (`TRANSITIONS`): dense, sparse, deterministic, mostly staying, the same from every state, nearly even;
- observations (`OBSERVATIONS`): dense, sparse, in blocks that split the states, fully observable, saying nothing,
  sometimes showing the state and else a blank, nearly even, for all actions or for each its own; some never occur;
- rewards (`REWARDS`): positive, negative, mixed, zero, one single reward, constant, mixed on top of a large
  constant, for guessing the state (with one action that only looks, if there are three); in units of 1, 10⁴ or
  10⁻⁴;
- states that are terminal (with observations like other states), that are copies of others, that cannot be
  reached; initial distributions over one, some or all states.

`tests/plan/test_random_pomdps.py` counts how often each of these occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from strategies import seeds, some_weights

__all__ = ["build", "permuted", "pomdps", "random_pomdp", "tiger"]

TRANSITIONS = {
    "dense": 0.2,
    "sparse": 0.2,
    "deterministic": 0.15,
    "staying": 0.25,
    "same": 0.08,
    "nearly even": 0.12,
}
OBSERVATIONS = {
    "dense": 0.25,
    "sparse": 0.15,
    "blocks": 0.15,
    "full": 0.1,
    "blind": 0.1,
    "blank": 0.17,
    "nearly even": 0.08,
}
REWARDS = {
    "positive": 0.1,
    "negative": 0.1,
    "mixed": 0.12,
    "zero": 0.03,
    "single": 0.08,
    "constant": 0.03,
    "offset": 0.08,
    "guess": 0.46,
}
"""Kinds and how often they are drawn; guesses most often, since there it pays to know the state."""

Array = np.ndarray


def pomdps() -> st.SearchStrategy[mm.POMDP]:
    """Draw random POMDPs, as `random_pomdp` makes them."""
    return seeds().map(random_pomdp)


def build(
    transition: Array,
    observation: Array,
    reward: Array,
    initial: Array,
    *,
    terminal: Array | None = None,
    discount: float = 0.9,
    observe_initial: bool = False,
) -> mm.POMDP:
    """Return a POMDP from dense T[a, s, s′], O[s′, z] or O[a, s′, z], ρ[s, a] and b₀[s]; labels are words."""
    transition, observation = np.asarray(transition, dtype=float), np.asarray(observation, dtype=float)
    matrices = observation if observation.ndim == 3 else observation[None]
    n_actions, n_states, _ = transition.shape
    return mm.POMDP(
        states=[f"s{s}" for s in range(n_states)],
        actions=[f"a{a}" for a in range(n_actions)],
        observations=[f"z{z}" for z in range(matrices.shape[2])],
        transition=tuple(sparse.csr_array(matrix) for matrix in transition),
        reward=np.array(reward, dtype=float),
        observation=tuple(sparse.csr_array(matrix) for matrix in matrices),
        initial=np.array(initial, dtype=float),
        terminal=np.zeros(n_states, dtype=bool) if terminal is None else np.array(terminal, dtype=bool),
        discount=discount,
        observe_initial=observe_initial,
    )


def random_pomdp(seed: int) -> mm.POMDP:
    """Return a random POMDP; see the top of this file."""
    rng = np.random.default_rng([seed, 2024])
    n = int(rng.choice([1, 2, 3, 4, 5], p=[0.04, 0.3, 0.36, 0.22, 0.08]))
    n_actions = int(rng.choice([1, 2, 3], p=[0.04, 0.46, 0.5]))
    discount = float(rng.choice([0.0, 0.3, 0.6, 0.8, 0.9, 0.95], p=[0.06, 0.14, 0.2, 0.25, 0.25, 0.1]))

    moves = _drawn(rng, TRANSITIONS)
    transition = np.stack([_transition(rng, moves, n) for _ in range(n_actions)])
    if rng.random() < 0.2:
        transition[1:] = transition[0]
    pays = _drawn(rng, REWARDS)
    scale = float(rng.choice([1.0, 1e4, 1e-4], p=[0.7, 0.15, 0.15]))
    reward = scale * _reward(rng, pays, n, n_actions)
    shows = [_drawn(rng, OBSERVATIONS) for _ in range(n_actions if rng.random() < 0.35 else 1)]
    if pays == "guess" and n_actions == 3 and rng.random() < 0.4:
        shows = ["blind", "blind", "dense"]
    n_observations = int(rng.integers(1, 4))
    observation = _together([_observation(rng, kind, n, n_observations) for kind in shows])
    if rng.random() < 0.2:
        observation = np.insert(observation, int(rng.integers(observation.shape[2] + 1)), 0.0, axis=2)
    if n > 1 and rng.random() < 0.15:
        one, other = rng.choice(n, size=2, replace=False)
        transition[:, other], reward[other] = transition[:, one], reward[one]
    initial = rng.dirichlet(np.ones(n)) if rng.random() < 0.5 else some_weights(rng, n)
    if n > 1 and rng.random() < 0.15:
        _cut_off(transition, initial, int(rng.integers(n)))
    terminal = np.zeros(n, dtype=bool)
    if rng.random() < 0.3:
        terminal = rng.permutation(n) < rng.integers(1, max(n, 2) if rng.random() < 0.9 else n + 1)
        transition[:, terminal] = np.eye(n)[terminal]
        reward[terminal] = 0.0
    return build(
        transition,
        observation,
        reward,
        initial,
        terminal=terminal,
        discount=discount,
        observe_initial=bool(rng.random() < 0.5),
    )


def _drawn(rng: np.random.Generator, kinds: Mapping[str, float]) -> str:
    return str(rng.choice(list(kinds), p=list(kinds.values())))


def _transition(rng: np.random.Generator, kind: str, n: int) -> Array:
    match kind:
        case "dense":
            return rng.dirichlet(np.ones(n), size=n)
        case "sparse":
            return np.stack([some_weights(rng, n, most=2) for _ in range(n)])
        case "deterministic":
            return np.eye(n)[rng.integers(n, size=n)]
        case "staying":
            return 0.9 * np.eye(n) + 0.1 * rng.dirichlet(np.ones(n), size=n)
        case "same":
            return np.tile(rng.dirichlet(np.ones(n)), (n, 1))
        case _:
            return _nearly_even(rng, n, n)


def _observation(rng: np.random.Generator, kind: str, n: int, n_observations: int) -> Array:
    match kind:
        case "dense":
            return rng.dirichlet(np.ones(n_observations), size=n)
        case "sparse":
            return np.stack([some_weights(rng, n_observations, most=2) for _ in range(n)])
        case "blocks":
            first = rng.random(n) < 0.5
            inside = [rng.dirichlet(np.ones(size), size=n) for size in rng.integers(1, 3, size=2)]
            return np.hstack([inside[0] * first[:, None], inside[1] * ~first[:, None]])
        case "full":
            return np.eye(n)[rng.permutation(n)]
        case "blind":
            return np.tile(rng.dirichlet(np.ones(n_observations)), (n, 1))
        case "blank":
            shown = rng.choice([0.0, 0.25, 0.5, 1.0], size=n)
            return np.column_stack((np.diag(shown), 1.0 - shown))
        case _:
            return _nearly_even(rng, n, n_observations)


def _nearly_even(rng: np.random.Generator, n: int, size: int) -> Array:
    weights = 1.0 + float(rng.choice([1e-4, 1e-9])) * rng.random((n, size))
    return weights / weights.sum(axis=1, keepdims=True)


def _together(matrices: Sequence[Array]) -> Array:
    """Return O[a, s′, z] over the observations of all matrices: the z-th of each is the same observation."""
    widest = max(matrix.shape[1] for matrix in matrices)
    return np.stack([np.pad(matrix, ((0, 0), (0, widest - matrix.shape[1]))) for matrix in matrices])


def _reward(rng: np.random.Generator, kind: str, n: int, n_actions: int) -> Array:
    size = (n, n_actions)
    match kind:
        case "positive":
            return rng.integers(1, 10, size=size) + rng.random(size)
        case "negative":
            return -rng.integers(1, 10, size=size) - rng.random(size)
        case "mixed":
            return rng.integers(-5, 6, size=size).astype(float)
        case "zero":
            return np.zeros(size)
        case "single":
            reward = np.zeros(size)
            reward[rng.integers(n), rng.integers(n_actions)] = float(rng.choice([10.0, -10.0]))
            return reward
        case "constant":
            return np.full(size, float(rng.choice([3.0, -3.0])))
        case "offset":
            return float(rng.choice([100.0, -100.0])) + rng.normal(size=size)
        case _:
            right = np.arange(n)[:, None] % min(n_actions, 2) == np.arange(n_actions)
            reward = np.where(right, rng.uniform(1.0, 6.0, size=size), rng.uniform(-8.0, -1.0, size=size))
            reward[:, 2:] = rng.uniform(-1.0, 0.5)
            return reward


def _cut_off(transition: Array, initial: Array, state: int) -> None:
    """Make a state unreachable: what would go there goes to another."""
    fallback = 1 if state == 0 else 0
    into = transition[:, np.arange(len(initial)) != state, state]
    transition[:, np.arange(len(initial)) != state, fallback] += into
    transition[:, np.arange(len(initial)) != state, state] = 0.0
    initial[fallback] += initial[state]
    initial[state] = 0.0


def tiger(*, observe_initial: bool = False) -> mm.POMDP:
    """Return Tiger: listen (−1, right with 0.85) or open a door (10, or −100 to the tiger); opening resets."""
    stay, reset = np.eye(2), np.full((2, 2), 0.5)
    return build(
        np.stack([stay, reset, reset]),
        np.stack([[[0.85, 0.15], [0.15, 0.85]], reset, reset]),
        [[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]],
        [0.5, 0.5],
        discount=0.95,
        observe_initial=observe_initial,
    )


def permuted(pomdp: mm.POMDP, rng: np.random.Generator) -> mm.POMDP:
    """Return the same POMDP with states, actions and observations in another order.

    Where observations depend on the action and one is made first, the first action stays: its matrix is used then.
    """
    states, observations = rng.permutation(pomdp.n_states), rng.permutation(pomdp.n_observations)
    actions = rng.permutation(pomdp.n_actions)
    if pomdp.observe_initial and len(pomdp.observation) > 1:
        actions = np.concatenate(([0], 1 + rng.permutation(pomdp.n_actions - 1)))
    matrices = (
        [pomdp.observation_of(int(a)) for a in actions] if len(pomdp.observation) > 1 else pomdp.observation
    )
    return mm.POMDP(
        states=[pomdp.states[s] for s in states],
        actions=[pomdp.actions[a] for a in actions],
        observations=[pomdp.observations[z] for z in observations],
        transition=tuple(sparse.csr_array(pomdp.transition[a].toarray()[states][:, states]) for a in actions),
        reward=pomdp.reward[states][:, actions],
        observation=tuple(sparse.csr_array(matrix.toarray()[states][:, observations]) for matrix in matrices),
        initial=pomdp.initial[states],
        terminal=pomdp.terminal[states],
        discount=pomdp.discount,
        observe_initial=pomdp.observe_initial,
    )
