"""Random POMDPs of the kind that files can hold: they act first, and terminal is what is absorbing with reward 0."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from strategies import seeds, some_weights

LABELS = ("plain", "numbers", "words", "tuples", "odd")


def every_day_or_slow(names, every_day):
    """Return names for parametrize, of which only some are tested every day."""
    assert set(every_day) <= set(names)
    return [name if name in every_day else pytest.param(name, marks=pytest.mark.slow) for name in names]


@st.composite
def act_first_pomdps(draw):
    """Draw a POMDP with up to five states, with numbers of full length and labels of all kinds."""
    rng = np.random.default_rng(draw(seeds()))
    n, n_actions, n_observations = (draw(st.integers(1, most)) for most in (5, 3, 4))
    transition = np.stack([[_row(rng, n) for _ in range(n)] for _ in range(n_actions)])
    observation = np.stack(
        [[_row(rng, n_observations) for _ in range(n)] for _ in range(draw(st.sampled_from([1, n_actions])))]
    )
    if len(observation) > 1 and (observation == observation[0]).all():
        observation = observation[:1]
    reward = rng.normal(size=(n, n_actions)) * rng.choice([0.0, 1.0, 1e-7, 1e9], size=(n, n_actions))
    still = rng.random(n) < 0.3
    transition[:, still] = np.eye(n)[still]
    reward[still] = 0.0
    absorbing = np.all([np.diag(matrix) == 1.0 for matrix in transition], axis=0)
    return mm.POMDP(
        states=labels(draw(st.sampled_from(LABELS)), n),
        actions=labels(draw(st.sampled_from(LABELS)), n_actions),
        observations=labels(draw(st.sampled_from(LABELS)), n_observations),
        transition=tuple(sparse.csr_array(matrix) for matrix in transition),
        reward=reward,
        observation=tuple(sparse.csr_array(matrix) for matrix in observation),
        initial=_row(rng, n),
        terminal=absorbing & (reward == 0.0).all(axis=1),
        discount=float(rng.choice([0.0, 0.5, 0.95, rng.random()])),
        observe_initial=False,
    )


def _row(rng, size):
    return rng.dirichlet(np.full(size, 0.7)) if rng.random() < 0.6 else some_weights(rng, size)


def labels(kind, n):
    """Return n labels of a kind."""
    match kind:
        case "plain":
            return [f"s{i}" for i in range(n)]
        case "numbers":
            return list(range(n))
        case "words":
            return ["T", "start", "uniform", "R", "reset"][:n]
        case "tuples":
            return [(i, None, "x y") for i in range(n)]
        case _:
            return ["a b", "a_b", "a-b", "é--#:*", 7][:n]
