"""The policy is worth what the solver says: episodes of its agents, simulated in the true model."""

import numpy as np
import pytest

import missmdp as mm

CASES = {
    "icu-smar": (20, 250),
    "icu-mnar-id": (20, 250),
    "icu-mnar-unid": (20, 250),
    "predator-smar": (25, 3_000),
    "predator-mnar-unid": (30, 3_000),
    "predator-mcar": (15, 2_000),
}
"""Benchmark → trials of the solver (a few seconds; counted, since a time limit gives another policy every time) and
episodes."""
TAIL = 1e-3
"""What the steps after the horizon are worth, at most."""
ERRORS = 4.0
"""Standard errors that a mean may be off; all twelve comparisons fail by chance with about 4e-4. Seeds are fixed."""


def test_all_benchmarks_are_simulated():
    assert set(CASES) == set(mm.list_benchmarks())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_mean_return_is_between_the_bounds(name, caplog):
    trials, episodes = CASES[name]
    model = mm.load_benchmark(name)
    result = mm.Sarsop(max_trials=trials, progress=False).solve(model)
    returns = simulated_returns(model, result.policy, episodes)
    error = ERRORS * returns.std(ddof=1) / np.sqrt(episodes) + TAIL
    assert result.lower <= returns.mean() + error
    assert returns.mean() - error <= result.upper
    assert error < 0.1 * abs(result.lower), "with so few episodes this would say nothing"
    assert "probability zero" not in caplog.text, "in its own model no observation is impossible"


@pytest.mark.slow
def test_the_check_notices_a_policy_that_is_worse():
    """The same comparison rejects bounds that another policy does not keep."""
    model = mm.load_benchmark("predator-smar")
    result = mm.Sarsop(max_trials=10, progress=False).solve(model)
    returns = simulated_returns(model, mm.UniformPolicy(), 2_000)
    assert returns.mean() + ERRORS * returns.std(ddof=1) / np.sqrt(2_000) + TAIL < result.lower


def simulated_returns(model, policy, episodes):
    """Return an unbiased estimate of the value per episode, up to the horizon.

    For any h, the sum of γᵗ(h(sₜ) − E[h(sₜ) | sₜ₋₁, aₜ₋₁]) has mean 0. With h the value of the MDP it holds most of the
    luck in an episode, and without that luck the ICU needs a tenth of the episodes.
    """
    mdp = model.mdp
    data = simulate(model, policy, episodes)
    h = mdp_value(mdp)
    expected = np.stack([T @ h for T in mdp.transition], axis=1)
    returns = np.empty(episodes)
    for i in range(episodes):
        rows = slice(data.offsets[i], data.offsets[i + 1])
        states, actions = data.states[rows], data.actions[rows][:-1]
        discounts = mdp.discount ** np.arange(len(states))
        luck = h[states] - np.concatenate([[mdp.initial @ h], expected[states[:-1], actions]])
        returns[i] = discounts[:-1] @ mdp.reward[states[:-1], actions] - discounts @ luck
    return returns


def simulate(model, policy, episodes):
    """Return a dataset with that many episodes that ended or reached the horizon, and a few more."""
    horizon = model.mdp.horizon(TAIL) + 1
    length = horizon
    if model.mdp.terminal.any():
        pilot = mm.collect(model, 20 * horizon, policy, seed=1, horizon=horizon, progress=False)
        length = 1.2 * np.diff(pilot.offsets).mean()
    steps = int((episodes + 1) * length)
    data = mm.collect(model, steps, policy, seed=0, horizon=horizon, keep_states=True, progress=False)
    assert len(data.offsets) - 2 >= episodes  # the last one may be cut
    return data


def mdp_value(mdp):
    """Return the value of every state for those who see it; near enough, since any h is right."""
    h = np.zeros(mdp.n_states)
    for _ in range(300):
        h = np.max([mdp.reward[:, a] + mdp.discount * (T @ h) for a, T in enumerate(mdp.transition)], axis=0)
    return h
