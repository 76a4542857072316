"""Hypothesis strategies for α-vector policies of tiny random models; the vectors are random too."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from missmdp.plan.value_function import ComponentVectors, state_components
from strategies import missmdps, seeds, some_weights

__all__ = ["beliefs", "policies", "random_policy", "tiny_pomdps"]


@st.composite
def tiny_pomdps(draw: st.DrawFn) -> mm.POMDP:
    """Draw POMDPs that are no miss-MDPs: labels are words, and observations may depend on the action."""
    rng = np.random.default_rng(draw(seeds()))
    n, n_actions, n_seen = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    terminal = rng.random(n) < draw(st.sampled_from([0.0, 0.4]))
    transition = [np.stack([some_weights(rng, n, most=3) for _ in range(n)]) for _ in range(n_actions)]
    for matrix in transition:
        matrix[terminal] = np.eye(n)[terminal]
    kinds = n_actions if draw(st.booleans()) else 1
    seen = [np.stack([some_weights(rng, n_seen, most=2) for _ in range(n)]) for _ in range(kinds)]
    reward = rng.integers(-4, 5, size=(n, n_actions)) / 2.0
    reward[terminal] = 0.0
    return mm.POMDP(
        states=[f"state {s}" for s in range(n)],
        actions=["left", 7, ("up", True)][:n_actions],
        observations=["dark", 0.5, ("a", 1), False][:n_seen],
        transition=tuple(map(sparse.csr_array, transition)),
        reward=reward,
        observation=tuple(map(sparse.csr_array, seen)),
        initial=some_weights(rng, n),
        terminal=terminal,
        discount=draw(st.sampled_from([0.0, 0.5, 0.9])),
        observe_initial=draw(st.booleans()),
    )


@st.composite
def policies(draw: st.DrawFn, *, plain: bool | None = None) -> mm.AlphaVectorPolicy:
    """Draw policies for miss-MDPs and POMDPs (`plain`), mostly over the finest components, else over one."""
    if plain is None:
        plain = draw(st.booleans())
    model = draw(tiny_pomdps() if plain else missmdps())
    return random_policy(model, draw(seeds()), coarse=draw(st.integers(0, 3)) == 0)


def random_policy(model: mm.MissMDP | mm.POMDP, seed: int, *, coarse: bool = False) -> mm.AlphaVectorPolicy:
    """Return a policy with random vectors, one to four per component."""
    rng = np.random.default_rng(seed)
    pomdp = model.to_pomdp() if isinstance(model, mm.MissMDP) else model
    components = state_components(pomdp)
    if coarse and components:
        components = [np.sort(np.concatenate(components))]
    return mm.AlphaVectorPolicy(
        model,
        [
            ComponentVectors(
                states, rng.normal(size=(count, len(states))), rng.integers(0, pomdp.n_actions, count)
            )
            for states in components
            for count in [int(rng.integers(1, 5))]
        ],
    )


def beliefs(policy: mm.AlphaVectorPolicy, seed: int, count: int = 4) -> list[np.ndarray]:
    """Return random beliefs, most over a few states."""
    rng = np.random.default_rng(seed)
    return [some_weights(rng, policy.pomdp.n_states, most=[None, 1, 2, 3][i % 4]) for i in range(count)]
