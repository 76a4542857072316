"""Sarsop on models whose values are known, and at its doors: limits, Ctrl-C, threads and wrong options."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.plan.sarsop.loop import Loop
from missmdp.plan.sarsop.ready import make_ready
from oracles.pomdp import Tables, optimum
from oracles.pomdp_trees import graph_value, mdp_value
from oracles.solvers import assert_policy_keeps_its_promise, assert_same_result, assert_sound
from random_pomdps import build, pomdps, random_pomdp, tiger
from strategies import missmdps, some_weights

EXAMPLES = mm.list_examples()

SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 20))]


def test_tiger():
    result = mm.Sarsop(precision=1e-3).solve(tiger())
    assert result.status == "precision"
    assert result.relative_gap <= 1e-3
    assert result.lower <= 19.3714 <= result.upper + 1e-4
    assert_sound(result, optimum(tiger()).acting, 2000.0)
    assert result.policy.action([0.5, 0.5]) == "a0"
    assert result.policy.action([0.99, 0.01]) == "a2"
    assert result.policy.action([0.01, 0.99]) == "a1"


def test_tiger_with_a_first_look():
    """The first observation is that of listening: −1 less to pay, and one step earlier."""
    result = mm.Sarsop(precision=1e-3).solve(tiger(observe_initial=True))
    assert_sound(result, ((19.3713 + 1.0) / 0.95 - 1e-3, (19.3714 + 1.0) / 0.95 + 1e-3), 2000.0)
    assert result.status == "precision"


@pytest.mark.parametrize("seed", SEEDS)
def test_seen_states_give_the_value_of_the_mdp(seed):
    rng = np.random.default_rng(seed)
    n, n_actions = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    pomdp = build(
        rng.dirichlet(np.full(n, 0.5), size=(n_actions, n)),
        np.eye(n)[rng.permutation(n)],
        rng.normal(size=(n, n_actions)) + rng.choice([-3.0, 0.0, 3.0]),
        rng.dirichlet(np.ones(n)),
        discount=float(rng.choice([0.5, 0.9, 0.95])),
        observe_initial=bool(seed % 2),
    )
    tables, value = Tables(pomdp), mdp_value(pomdp)
    exact = float(pomdp.initial @ value)
    if not pomdp.observe_initial:
        after = np.einsum("s,ast,t->a", pomdp.initial, tables.transition, value)
        exact = float((pomdp.initial @ pomdp.reward + pomdp.discount * after).max())
    result = mm.Sarsop(precision=1e-6, absolute_precision=1e-6).solve(pomdp)
    assert result.status in ("precision", "converged")
    scale = float(np.abs(pomdp.reward).max()) / (1.0 - pomdp.discount)
    assert_sound(result, (exact, exact), scale)
    for s in range(n):
        best = (tables.reward[s] + pomdp.discount * tables.transition[:, s] @ value).max()
        assert result.policy.value(np.eye(n)[s]) <= best + 1e-9 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_blind_models(seed):
    rng = np.random.default_rng(seed)
    n, n_actions = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    pomdp = build(
        rng.dirichlet(np.full(n, 0.5), size=(n_actions, n)),
        np.tile([0.3, 0.7], (n, 1)),
        rng.normal(size=(n, n_actions)),
        rng.dirichlet(np.ones(n)),
        discount=float(rng.choice([0.5, 0.9])),
        observe_initial=bool(seed % 2),
    )
    exact = optimum(pomdp)
    result = mm.Sarsop(precision=1e-3, absolute_precision=1e-4, timeout=5.0).solve(pomdp)
    assert_sound(result, exact.start, exact.scale)
    assert_policy_keeps_its_promise(result, pomdp, exact)
    assert result.status in ("precision", "converged")


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_states_that_are_sometimes_seen(seed, sign):
    """What may be seen after one state cannot be after another; plans made in the one must hold in the other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 5))
    shown = rng.choice([0.2, 0.5, 0.9], size=n)
    pomdp = build(
        [[some_weights(rng, n, most=2) for _ in range(n)] for _ in range(2)],
        np.column_stack((np.diag(shown), 1.0 - shown)),
        sign * rng.uniform(0.0, 10.0, size=(n, 2)),
        rng.dirichlet(np.ones(n)),
        discount=0.9,
        observe_initial=bool(seed % 2),
    )
    exact = optimum(pomdp)
    result = mm.Sarsop(timeout=5.0).solve(pomdp)
    assert result.status in ("precision", "converged")
    assert_sound(result, exact.start, exact.scale)
    assert_policy_keeps_its_promise(result, pomdp, exact)
    for belief in np.eye(n):
        assert result.policy.value(belief) <= exact.at(belief)[1] + 1e-9 * exact.scale


@pytest.mark.parametrize("observe_initial", [None, True, False])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_paper(name, observe_initial):
    model = mm.load_benchmark(name)
    exact = optimum(model.to_pomdp())
    result = mm.Sarsop(observe_initial=observe_initial).solve(model)
    assert result.status == "precision"
    assert result.relative_gap <= 1e-3
    assert result.policy.model is model
    assert_sound(result, exact.acting if observe_initial is False else exact.observing, exact.scale)
    assert_policy_keeps_its_promise(result, model.to_pomdp(), exact)


@given(missmdps(max_features=2), st.booleans())
@settings(max_examples=25)
def test_miss_mdps(model, observe_initial):
    """Up to five states against exact values, more against the bounds of a belief graph."""
    pomdp = model.to_pomdp()
    tables = Tables(pomdp)
    tables.observe_initial = observe_initial
    scale = max(abs(tables.least), abs(tables.most))
    options = {"absolute_precision": 1e-6, "timeout": 2.0, "observe_initial": observe_initial}
    result = mm.Sarsop(**options).solve(model)
    assert result.policy.observe_initial == observe_initial
    if model.n_states <= 5:
        exact = optimum(pomdp)
        assert_sound(result, exact.observing if observe_initial else exact.acting, scale)
        assert_policy_keeps_its_promise(result, pomdp, exact, nodes=30)
    else:
        assert_sound(result, graph_value(pomdp, nodes=200, observe_initial=observe_initial), scale)


@given(pomdps())
@settings(max_examples=25)
def test_random_pomdps(pomdp):
    exact = optimum(pomdp, most=30)
    result = mm.Sarsop(absolute_precision=1e-6 * exact.scale or None, timeout=1.0).solve(pomdp)
    assert_sound(result, exact.start, exact.scale)
    assert_policy_keeps_its_promise(result, pomdp, exact, nodes=30)


def test_a_miss_mdp_and_its_pomdp_are_the_same():
    model = mm.load_benchmark("example-3")
    one, other = (mm.Sarsop(max_trials=20).solve(same) for same in (model, model.to_pomdp()))
    assert_same_result(one, other)


def test_what_has_ended_is_worth_nothing():
    """All states terminal, or only the one at the start, whatever is paid elsewhere."""
    over = build(np.eye(2)[None], np.ones((2, 1)), np.zeros((2, 1)), [0.5, 0.5], terminal=[True, True])
    rows = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    ended = build(rows, np.ones((2, 1)), [[0.0], [5.0]], [1.0, 0.0], terminal=[True, False])
    for pomdp in (over, ended):
        for observe_initial in (True, False):
            result = mm.Sarsop(observe_initial=observe_initial).solve(pomdp)
            assert (result.lower, result.upper) == (0.0, 0.0)
            assert result.status in ("precision", "converged")
            assert result.policy.initial_value == 0.0
            assert result.policy.action(pomdp.initial) == "a0"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_terminal_states_that_look_like_others(sign):
    """A machine breaks with 0.1 per step, unseen, and pays ±1 while it runs: ±1/(1 − 0.9 γ)."""
    rows = np.array([[[0.9, 0.1], [0.0, 1.0]]])
    pomdp = build(rows, np.ones((2, 1)), [[sign], [0.0]], [1.0, 0.0], terminal=[False, True], discount=0.95)
    exact = sign / (1.0 - 0.9 * 0.95)
    result = mm.Sarsop(precision=1e-6).solve(pomdp)
    assert result.status in ("precision", "converged")
    assert_sound(result, (exact, exact), 20.0)
    assert result.policy.initial_value == pytest.approx(exact, rel=1e-5)


def test_the_first_observation_is_that_of_the_first_matrix():
    """Only one action's matrix shows the state: with it first, the guess that follows is right."""
    show, hide = np.eye(2), [[1.0, 0.0], [1.0, 0.0]]
    for matrices, exact in (([show, hide], 1.0), ([hide, show], 0.5)):
        pomdp = build(np.stack([np.eye(2)] * 2), np.stack(matrices), np.eye(2), [0.5, 0.5], discount=0.0)
        result = mm.Sarsop(observe_initial=True).solve(pomdp)
        assert (result.lower, result.upper) == pytest.approx((exact, exact))


def test_observations_of_tiny_probability_count():
    """One step in 10⁹ ends in a state that pays 10⁹ for ever: γ · 2 / (1 − γ) with γ = 0.5."""
    rare = 1e-9
    pomdp = build(
        [[[1.0 - rare, rare], [0.0, 1.0]]] * 2,
        np.eye(2),
        [[0.0, 0.0], [0.0, 1.0 / rare]],
        [1.0, 0.0],
        discount=0.5,
    )
    result = mm.Sarsop(precision=1e-4).solve(pomdp)
    assert (result.lower, result.upper) == pytest.approx((2.0, 2.0), rel=1e-3)


def test_it_is_silent_and_says_what_it_found(capfd):
    result = mm.Sarsop(progress=False).solve(tiger())
    assert capfd.readouterr() == ("", "")
    assert isinstance(result, mm.SolveResult)
    assert isinstance(result.policy, mm.AlphaVectorPolicy)
    assert "reached its precision" in str(result)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": -1e-3},
        {"precision": float("nan")},
        {"precision": "fine"},
        {"precision": None},
        {"absolute_precision": -1.0},
        {"absolute_precision": float("nan")},
        {"absolute_precision": "fine"},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "1 min"},
        {"memory": -1},
        {"memory": "all"},
        {"max_trials": -1},
        {"max_trials": 1.5},
        {"max_trials": "many"},
        {"observe_initial": "yes"},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    (name,) = options
    with pytest.raises((mm.MissMDPError, ValueError, TypeError), match=name):
        mm.Sarsop(**options).solve(tiger())


def test_options_are_by_name_only():
    with pytest.raises(TypeError):
        mm.Sarsop(1e-3)


@pytest.mark.parametrize(
    "model", [None, "icu-smar", mm.load_benchmark("example-1").mdp], ids=["None", "str", "mdp"]
)
def test_what_is_no_model_is_refused(model):
    with pytest.raises(mm.ModelError, match="POMDP"):
        mm.Sarsop().solve(model)


@pytest.mark.parametrize("warm_start", ["policy.mmpolicy", 1, [[0.5, 0.5]]], ids=str)
def test_a_warm_start_must_be_a_result(warm_start):
    with pytest.raises((mm.MissMDPError, TypeError), match="warm"):
        mm.Sarsop().solve(tiger(), warm_start=warm_start)


def test_a_warm_start_over_other_states_is_refused():
    with pytest.raises((mm.MissMDPError, ValueError), match="states"):
        mm.Sarsop().solve(tiger(), warm_start=mm.Sarsop(max_trials=1).solve(random_pomdp(0)))


def test_it_can_be_used_in_a_thread():
    """Only the main thread may ask for signals."""
    found: list[mm.SolveResult] = []
    thread = threading.Thread(target=lambda: found.append(mm.Sarsop().solve(tiger())))
    thread.start()
    thread.join()
    assert found[0].status == "precision"


def test_what_ctrl_c_does_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    mm.Sarsop().solve(tiger())
    assert signal.getsignal(signal.SIGINT) is before


INTERRUPTED = """
import signal

import missmdp as mm

signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored, in a background job
mm.Sarsop(max_trials=3).solve(mm.load_benchmark("example-1"))
model = mm.load_benchmark("predator-mcar")
print("ready", flush=True)
result = mm.Sarsop(precision=1e-9, timeout=60, progress=False).solve(model)
print(result.status, result.lower, result.upper, result.policy.initial_value, result.seconds)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a child")
@pytest.mark.parametrize("delay", [0.2, 2.0])
def test_ctrl_c_returns_the_best_so_far(delay):
    """The value of predator-mcar is between 3.23 and 4.09, as other solvers found; see `REFERENCE`."""
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        status, *numbers = child.stdout.read().split()
    assert child.returncode == 0
    lower, upper, promised, seconds = map(float, numbers)
    assert status == "interrupted"
    assert lower <= 4.09
    assert upper >= 3.23
    assert promised >= lower - 1e-9
    assert seconds < 30.0


def test_ctrl_c_after_the_last_look_at_the_limits_is_not_lost(monkeypatch):
    """A caller that solves several models, such as `plan-data`, would go on to the next one."""
    make_ready(progress=False)  # runs the loop too, where nobody would catch the signal
    run = Loop.run

    def then_ctrl_c(self, warm_start):
        status = run(self, warm_start)
        signal.raise_signal(signal.SIGINT)
        return status

    monkeypatch.setattr(Loop, "run", then_ctrl_c)
    assert mm.Sarsop().solve(random_pomdp(0)).status == "interrupted"


def scattered_jungle():
    """Return Predator with jungle in six cells, on which other solvers were run."""
    jungle, mountains = {(0, 0), (4, 0), (1, 1), (3, 3), (0, 4), (4, 4)}, {(2, 0), (0, 2), (4, 2), (2, 4)}

    def hidden(state):
        if state == (5, 5, 5, 5):
            return 0.0
        return 0.98 if state[2:] in jungle else 0.05 if state[:2] in mountains else 0.2

    mdp = mm.load_benchmark("predator-mnar-unid").mdp
    return mm.MissMDP(mdp, mm.MissingnessFunction.blocks(mdp, {("x", "y"): hidden}))


REFERENCE = {
    "predator-smar": (6.568, 6.589),
    "scattered jungle": (6.875, 6.900),
    "predator-mcar": (3.236, 4.083),
}
"""Bounds on the value that other solvers found; it makes no difference there whether to observe first."""


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_benchmarks_agree_with_reference_bounds(name):
    low, high = REFERENCE[name]
    model = scattered_jungle() if name == "scattered jungle" else mm.load_benchmark(name)
    result = mm.Sarsop(timeout=10.0).solve(model)
    assert_sound(result, (low - 1e-3, high + 1e-3), 10.0)
    assert result.policy.initial_value >= result.lower - 1e-9
    assert result.lower >= 0.9 * low - 0.1


def simulated_returns(model: mm.MissMDP, policy, episodes: int, horizon: int, seed: int) -> np.ndarray:
    """Return discounted returns of agents in a model, by draws from its own tables."""
    rng = np.random.default_rng(seed)
    tables, actions = Tables(model.to_pomdp()), list(model.actions)
    seen_in = [list(zip(*model.missingness.distribution(s).items(), strict=True)) for s in model.states]
    totals = np.zeros(episodes)
    for episode in range(episodes):
        agent = policy.agent()
        state = rng.choice(model.n_states, p=tables.initial)
        for t in range(horizon):
            seen, weights = seen_in[state]
            observation = seen[rng.choice(len(seen), p=weights)]
            action = actions.index(agent.reset(observation) if t == 0 else agent.step(observation))
            totals[episode] += model.discount**t * tables.reward[state, action]
            state = rng.choice(model.n_states, p=tables.transition[action, state])
    return totals


@pytest.mark.slow
@pytest.mark.parametrize("name", ["example-2-mar", "example-3"])
def test_agents_earn_what_the_bounds_say(name):
    """The mean of 2,000 episodes is within 4 standard errors: fails by chance once in 15,000."""
    model = mm.load_benchmark(name)
    result = mm.Sarsop(precision=1e-3).solve(model)
    horizon = 60
    returns = simulated_returns(model, result.policy, 2000, horizon, seed=1)
    error = 4.0 * returns.std() / np.sqrt(len(returns)) + model.discount**horizon / (1.0 - model.discount)
    assert result.lower - error <= returns.mean() <= result.upper + error


@pytest.mark.parametrize("scale", [1e147, 1e-300, 1e-320, 5e-324])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95])
def test_rewards_of_any_size_are_solved(scale, discount):
    """Bounds are those of the model with ordinary rewards, times the size; denormal numbers lose digits."""

    def solved(size):
        mdp = mm.FactoredMDP(
            features={"x": range(2)},
            actions=["stay", "move"],
            transition=lambda s, a: {s: 0.9, (1 - s.x,): 0.1} if a == "stay" else {s: 0.2, (1 - s.x,): 0.8},
            reward=lambda s, a: size * (1.0 if s.x else -1.0),
            initial={(0,): 1.0},
            discount=discount,
        )
        model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda s: 0.5}))
        return mm.Sarsop(precision=1e-3, timeout=60, progress=False).solve(model)

    found, expected = solved(scale), solved(1.0)
    assert found.status in ("precision", "converged")
    assert np.isfinite([found.lower, found.upper]).all()
    few_digits = 100 * 5e-324 / scale
    for one, other in ((found.lower, expected.lower), (found.upper, expected.upper)):
        assert one / scale == pytest.approx(other, rel=1e-2 + few_digits, abs=20 * few_digits)
