"""What every solver must do; `check_solver` can be given any of missmdp's, or your own."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

import missmdp as mm
from missmdp.plan.solving import Solver

needs_extra = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "stable_baselines3")),
    reason="needs the extra ppo",
)
SMALL_PPO = {"steps": 256, "environments": 4, "rollout": 32, "minibatch": 32, "epochs": 1}

SOLVERS: dict[str, Callable[..., Any]] = {
    "Sarsop": lambda **k: mm.Sarsop(**{"precision": 1e-2, **k}),
    "POMCP": lambda **k: mm.POMCP(**{"tree_queries": 20, **k}),
    "POMCP with an exact belief": lambda **k: mm.POMCP(**{"tree_queries": 20, "belief": "exact", **k}),
    "OnlinePlanner": lambda **k: mm.OnlinePlanner(**{"expansions": 5, **k}),
    "PPO": lambda **k: mm.PPO(**{**SMALL_PPO, **k}),
    "PPO with memory": lambda **k: mm.PPO(**{**SMALL_PPO, "memory": True, "frames": 3, **k}),
}
"""How to make each solver, so small that it takes no time."""

WITH_BOUNDS = {"Sarsop"}


def check_constructor(make: Callable[..., Any]) -> None:
    """Take parameters by name only; `seed`, `timeout` and `progress` mean the same to all, and wrong ones are named."""
    solver = make(seed=3, timeout=60.0, progress=False)
    parameters = inspect.signature(type(solver)).parameters
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert {"seed", "timeout", "progress"} <= set(parameters)
    assert "threads" not in parameters or parameters["threads"].default is None
    assert not {"workers", "random_state", "max_time", "time_limit", "verbose"} & set(parameters)
    assert (solver.seed, solver.timeout, solver.progress) == (3, 60.0, False)
    assert make(seed=None).seed is None
    assert repr(solver).startswith(f"{type(solver).__name__}(")
    assert "seed=3" in repr(solver)
    for name, value in (("seed", -1), ("seed", 1.5), ("timeout", -1.0), ("timeout", "long")):
        with pytest.raises(mm.ParameterError, match=f"^{name} must be") as caught:
            make(**{name: value})
        assert (caught.value.name, caught.value.value) == (name, value)


def check_result(result: Any, *, bounds: bool) -> None:
    """Have a policy, a time and a reason to end; bounds that hold, or None for all of them."""
    assert isinstance(result, mm.PlanResult)
    assert isinstance(result.policy, mm.Policy)
    assert isinstance(result.seconds, float)
    assert result.seconds >= 0.0
    assert isinstance(result.status, str)
    assert result.has_bounds is bounds
    if bounds:
        assert -math.inf < result.lower <= result.upper < math.inf
        assert result.gap == result.upper - result.lower
        assert result.relative_gap >= 0.0
        assert len(result.trace) > 0
    else:
        known = (result.lower, result.upper, result.gap, result.relative_gap, result.trace)
        assert known == (None,) * 5
    assert repr(result) == f"{type(result).__name__}({result})"
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.policy = None


def check_policy(policy: Any, model: mm.MissMDP) -> None:
    """Act in the model, one agent at a time and in bulk."""
    seen = [z for z, _ in mm.collect(model, 20, seed=0).episode(0)]
    agent = policy.agent(seed=1)
    assert {agent.reset(seen[0]), *(agent.step(z) for z in seen[1:])} <= set(model.actions)
    value = mm.evaluate(policy, model, episodes=4, seed=1, horizon=5, progress=False)
    assert math.isfinite(value.mean)


def check_seed(make: Callable[..., Any], model: mm.MissMDP) -> None:
    """Do the same again with the same seed, and leave the solver as it was."""
    solver = make(seed=5, progress=False)
    before = repr(solver)
    values = [
        mm.evaluate(solver.solve(model).policy, model, episodes=4, seed=2, horizon=6, progress=False).returns
        for _ in range(2)
    ]
    assert values[0].tobytes() == values[1].tobytes()
    assert repr(solver) == before


def check_wrong_models(make: Callable[..., Any]) -> None:
    """Say what was expected."""
    for wrong in ("icu-smar", None, 3):
        with pytest.raises(mm.ModelError, match="expected a MissMDP"):
            make().solve(wrong)


def check_silence(make: Callable[..., Any], model: mm.MissMDP, capsys: pytest.CaptureFixture[str]) -> None:
    """Print nothing with `progress=False`."""
    capsys.readouterr()
    make(progress=False).solve(model)
    assert capsys.readouterr() == ("", "")


def check_solver(
    make: Callable[..., Any], model: mm.MissMDP, capsys: pytest.CaptureFixture[str], *, bounds: bool = False
) -> None:
    """Check everything that a solver must do; `make` takes `seed`, `timeout` and `progress`."""
    check_constructor(make)
    assert isinstance(make(), Solver)
    result = make(seed=0, progress=False).solve(model)
    check_result(result, bounds=bounds)
    check_policy(result.policy, model)
    check_seed(make, model)
    check_wrong_models(make)
    check_silence(make, model, capsys)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_extra if "PPO" in name else ()) for name in SOLVERS]
)
@pytest.mark.parametrize("benchmark", ["example-1", "icu-smar"])
def test_solvers_keep_the_contract(name, benchmark, capsys):
    check_solver(SOLVERS[name], mm.load_benchmark(benchmark), capsys, bounds=name in WITH_BOUNDS)


@pytest.mark.parametrize("name", ["Sarsop", pytest.param("PPO", marks=needs_extra)])
def test_no_time_at_all_still_gives_a_policy(name):
    """Solvers that plan ahead stop at their time limit, with what they have."""
    model = mm.load_benchmark("icu-smar")
    hard = {"precision": 0.0} if name == "Sarsop" else {"steps": 10**8}
    result = SOLVERS[name](**hard, seed=0, timeout=0.0, progress=False).solve(model)
    assert result.status == "timeout"
    assert result.seconds < 60.0
    check_policy(result.policy, model)


def test_a_search_without_time_still_decides():
    model = mm.load_benchmark("icu-smar")
    policy = mm.POMCP(tree_queries=2**20, timeout=0.0, seed=0).solve(model).policy
    start = time.monotonic()
    check_policy(policy, model)
    assert time.monotonic() - start < 60.0, "2²⁰ simulations per decision would take far longer"


@pytest.mark.parametrize("name", ["Sarsop", "POMCP", "PPO"])
def test_the_constructors_keep_the_contract_without_extras(name):
    check_constructor(SOLVERS[name])
    check_wrong_models(SOLVERS[name])


def test_a_solver_of_your_own():
    """A few lines are enough."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class AlwaysTheFirst:
        """Takes the first action, whatever is seen."""

        seed: int | None = None
        timeout: float | None = None
        progress: bool | None = None

        def solve(self, model: mm.MissMDP) -> mm.PlanResult:
            policy = mm.BlindPolicy({model.actions[0]: 1.0})
            return mm.PlanResult(policy=policy, seconds=0.0, status="converged")

    model = mm.load_benchmark("icu-smar")
    result = AlwaysTheFirst().solve(model)
    assert isinstance(AlwaysTheFirst(), Solver)
    check_result(result, bounds=False)
    assert result.policy.agent(model).reset(model.space.features.names and (None,) * 4) == model.actions[0]
