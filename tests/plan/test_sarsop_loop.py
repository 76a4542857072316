"""How a search goes on and ends: pools that grow, values that travel far, limits, and what is left of a cut trial."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm


def chain(n: int, discount: float, *, backwards: bool) -> mm.POMDP:
    """A path that is seen in full: go on, or stay; the last step earns 10. States may be numbered from the end."""
    order = np.arange(n)[::-1] if backwards else np.arange(n)
    go, stay = np.zeros((n, n)), np.eye(n)
    for i in range(n):
        go[order[i], order[min(i + 1, n - 1)]] = 1.0
    reward = np.zeros((n, 2))
    reward[order[-2], 0] = 10.0
    initial = np.zeros(n)
    initial[order[0]] = 1.0
    terminal = np.zeros(n, dtype=bool)
    terminal[order[-1]] = True
    return mm.POMDP(
        states=range(n),
        actions=("go", "stay"),
        observations=range(n),
        transition=(sparse.csr_array(go), sparse.csr_array(stay)),
        reward=reward,
        observation=(sparse.csr_array(np.eye(n)),),
        initial=initial,
        terminal=terminal,
        discount=discount,
        observe_initial=False,
    )


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("n", "discount"), [(10, 0.9), (50, 0.95), (80, 0.99)])
def test_values_travel_along_a_path_in_either_direction(n, discount, backwards):
    result = mm.Sarsop(precision=1e-6, max_trials=200).solve(chain(n, discount, backwards=backwards))
    assert result.status == "precision"
    assert result.lower == pytest.approx(10.0 * discount ** (n - 2), rel=1e-6)


def guess(n_observations: int) -> mm.POMDP:
    """Two states that hardly move, told apart a little by many observations."""
    rng = np.random.default_rng(5)
    seen = rng.dirichlet(np.ones(n_observations), size=2)
    move = sparse.csr_array(np.array([[0.9, 0.1], [0.2, 0.8]]))
    return mm.POMDP(
        states=("left", "right"),
        actions=("say left", "say right"),
        observations=range(n_observations),
        transition=(move, move),
        reward=np.array([[1.0, 0.0], [0.0, 1.5]]),
        observation=(sparse.csr_array(seen),),
        initial=np.array([0.5, 0.5]),
        terminal=np.zeros(2, dtype=bool),
        discount=0.5,
        observe_initial=True,
    )


@pytest.mark.parametrize("n_observations", [1000, 1100, 3000])
def test_pools_grow_for_any_number_of_observations(n_observations):
    result = mm.Sarsop(precision=1e-2, max_trials=3).solve(guess(n_observations))
    assert result.status in {"precision", "trials"}
    assert 0.0 < result.lower <= result.upper


def test_terminal_states_end_everything_whatever_their_rows_say():
    """40 % of the start has ended; rows and rewards given for that state must not count."""
    stay = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    reward = np.array([[2.0], [1.0], [50.0]])
    model = mm.POMDP(
        states=range(3),
        actions=("wait",),
        observations=range(3),
        transition=(sparse.csr_array(stay),),
        reward=reward,
        observation=(sparse.csr_array(np.eye(3)),),
        initial=np.array([0.3, 0.3, 0.4]),
        terminal=np.array([False, False, True]),
        discount=0.5,
        observe_initial=False,
    )
    second = 1.0 / (1.0 - 0.25)
    first = (2.0 + 0.25 * second) / (1.0 - 0.25)
    result = mm.Sarsop(precision=1e-9).solve(model)
    assert result.lower == pytest.approx(0.3 * first + 0.3 * second, rel=1e-8)
    assert result.upper == pytest.approx(0.3 * first + 0.3 * second, rel=1e-8)
    assert result.policy.initial_value == pytest.approx(result.lower, rel=1e-8)


def test_a_search_that_has_converged_has_closed_its_gap():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 6
        move = tuple(sparse.csr_array(rng.dirichlet(np.full(n, 0.3), size=n)) for _ in range(2))
        model = mm.POMDP(
            states=range(n),
            actions=(0, 1),
            observations=range(n),
            transition=move,
            reward=rng.normal(size=(n, 2)),
            observation=(sparse.csr_array(np.eye(n)),),
            initial=rng.dirichlet(np.ones(n)),
            terminal=np.zeros(n, dtype=bool),
            discount=0.9,
            observe_initial=True,
        )
        result = mm.Sarsop(precision=0.0, max_trials=500).solve(model)
        assert result.status in {"precision", "converged"}
        assert result.gap <= 1e-10 * np.abs(model.reward).max() * 10.0


def test_what_a_trial_that_was_cut_short_found_is_kept():
    """Backups that were made before time ran out are part of the policy."""
    model = mm.load_benchmark("predator-mcar")
    short = mm.Sarsop(timeout=0.0).solve(model)
    longer = mm.Sarsop(max_trials=2).solve(model)
    assert short.status == "timeout"
    assert longer.lower > short.lower
    assert longer.policy.initial_value >= longer.lower - 1e-9


def test_very_large_values_can_be_printed():
    model = chain(4, 0.9, backwards=False)
    huge = mm.POMDP(
        states=model.states,
        actions=model.actions,
        observations=model.observations,
        transition=model.transition,
        reward=model.reward * 1e40,
        observation=model.observation,
        initial=model.initial,
        terminal=model.terminal,
        discount=model.discount,
        observe_initial=False,
    )
    result = mm.Sarsop().solve(huge)
    assert "e+40" in str(result)


def test_threads_can_solve_at_the_same_time():
    """Signals reach the main thread only; results are those of one thread."""
    model = guess(5)
    alone = mm.Sarsop(precision=1e-4, max_trials=20).solve(model)
    found: list[mm.SolveResult] = []

    def work() -> None:
        found.append(mm.Sarsop(precision=1e-4, max_trials=20).solve(model))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(result.lower, result.upper) for result in found] == [(alone.lower, alone.upper)] * 3


def test_a_warm_start_can_be_given_to_the_solver_or_to_one_call():
    model = guess(5)
    first = mm.Sarsop(precision=1e-4, max_trials=20).solve(model)
    by_call = mm.Sarsop(precision=1e-4, max_trials=3).solve(model, warm_start=first)
    by_solver = mm.Sarsop(precision=1e-4, max_trials=3, warm_start=first).solve(model)
    assert (by_call.lower, by_call.upper) == (by_solver.lower, by_solver.upper)
    with pytest.raises(mm.ModelError, match="warm_start: it is for a model with 2 states, this one has 4"):
        mm.Sarsop(warm_start=first).solve(chain(4, 0.9, backwards=False))
    with pytest.raises(mm.ModelError, match="warm_start: expected the result of Sarsop, got str"):
        mm.Sarsop(warm_start="yesterday")
