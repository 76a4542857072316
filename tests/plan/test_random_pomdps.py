"""The random models on which solvers are tested: what is special about them, counted."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from oracles.pomdp import Tables, improved, optimum
from random_pomdps import random_pomdp


def traits(pomdp) -> set[str]:
    """Return what is special about a POMDP, from its matrices."""
    tables, optimal = Tables(pomdp), optimum(pomdp, width=1e-2, most=5)
    n = pomdp.n_states
    rewards, alive = pomdp.reward, ~pomdp.terminal
    links = (tables.transition.sum(axis=0) > 0.0).astype(float)
    reached = set()
    for s in np.flatnonzero(pomdp.initial):
        reached |= set(breadth_first_order(links, s, return_predecessors=False).tolist())
    seen = tables.observation.sum(axis=0) > 0.0
    n_components, component = connected_components((seen @ seen.T).astype(float), directed=False)
    blind = all((matrix == matrix[0]).all() for matrix in tables.observation)
    rows = tables.transition.reshape(-1, n)
    spread = rows.max(axis=1) - rows.min(axis=1)
    scale = np.abs(rewards).max()
    found = {
        "positive rewards": (rewards[alive] > 0.0).all() and alive.any(),
        "negative rewards": (rewards[alive] < 0.0).all() and alive.any(),
        "mixed rewards": (rewards > 0.0).any() and (rewards < 0.0).any(),
        "no rewards": scale == 0.0,
        "large rewards": scale >= 1e4,
        "tiny rewards": 0.0 < scale <= 1e-2,
        "terminal states": pomdp.terminal.any(),
        "only terminal states": pomdp.terminal.all(),
        "terminal states that look like others": any(
            ((matrix[pomdp.terminal].sum(axis=0) > 0.0) & (matrix[alive].sum(axis=0) > 0.0)).any()
            for matrix in tables.observation
        ),
        "terminal states at the start": (pomdp.initial[pomdp.terminal] > 0.0).any(),
        "observations that never occur": (tables.observation.sum(axis=(0, 1)) == 0.0).any(),
        "observations that some states never give": ((tables.observation == 0.0).any(axis=1)).any()
        and not blind,
        "observations that depend on the action": len(pomdp.observation) > 1
        and (tables.observation != tables.observation[0]).any(),
        "first observations of another matrix": len(pomdp.observation) > 1 and pomdp.observe_initial,
        "deterministic transitions": ((rows == 0.0) | (rows == 1.0)).all() and n > 1,
        "sparse transitions": (tables.transition == 0.0).any(),
        "dense transitions": (tables.transition > 0.0).all() and n > 1,
        "components": 1 < n_components < n,
        "fully observable": n_components == n and n > 1,
        "unobservable": blind and n > 1,
        "initial beliefs over several components": len(set(component[pomdp.initial > 0.0])) > 1,
        "copies of states": any(
            (tables.transition[:, s] == tables.transition[:, t]).all() and (rewards[s] == rewards[t]).all()
            for s in np.flatnonzero(alive)
            for t in range(s)
            if alive[t]
        ),
        "unreachable states": len(reached) < n,
        "observe first": pomdp.observe_initial,
        "act first": not pomdp.observe_initial,
        "a single state": n == 1,
        "a single action": pomdp.n_actions == 1,
        "a single observation": pomdp.n_observations == 1,
        "no future": pomdp.discount == 0.0,
        "long future": pomdp.discount >= 0.95,
        "nearly equal probabilities": ((spread > 0.0) & (spread < 1e-3)).any(),
        "known start": (pomdp.initial == 1.0).any(),
        "a value function of several pieces": len(improved(optimal.unit, optimal.value, 1e-3)[0].vectors) > 1,
    }
    return {name for name, holds in found.items() if holds}


def test_the_mix_of_random_models():
    """Every trait is in 3 of the first 120 models, most in far more."""
    found = [traits(random_pomdp(seed)) for seed in range(120)]
    names = set.union(*found)
    assert len(names) == 33
    for name in names:
        assert sum(name in one for one in found) >= 3, name
    assert sum("a value function of several pieces" in one for one in found) >= 60


def test_a_seed_gives_one_model():
    one, again, other = random_pomdp(5), random_pomdp(5), random_pomdp(6)
    assert repr(one) == repr(again)
    np.testing.assert_array_equal(one.reward, again.reward)
    assert (one.reward.shape, one.discount) != (other.reward.shape, other.discount)
