"""When features are alike, and when they are not."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp.plan.factored.alike.model import find_alike
from missmdp.plan.factored.parts import Parts
from random_alike import random_alike


def machines(*, rates=(0.1, 0.1, 0.1), costs=(4.0, 4.0, 4.0), gaps=(0.5, 0.5, 0.5), start=(0, 0, 0)):
    names = ["a", "b", "c"]
    transitions = {}
    for i, (name, p) in enumerate(zip(names, rates, strict=True)):
        table = np.zeros((2, 4, 2))
        table[0, :] = [1 - p, p]
        table[1, :] = [0, 1]
        table[:, i + 1] = [1, 0]
        transitions[name] = ([name], table)
    reward = [(name, np.array([[0.0] * 4, [-3.0] * 4])) for name in names]
    reward.append(("a", np.tile([0.0, *(-cost for cost in costs)], (2, 1))))
    mdp = mm.FactoredMDP.from_factors(
        {name: [0, 1] for name in names},
        ["run", "fix a", "fix b", "fix c"],
        transitions,
        reward,
        dict(zip(names, start, strict=True)),
        discount=0.9,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, dict(zip(names, gaps, strict=True))))


def test_machines_that_are_alike():
    alike = find_alike(Parts(machines()))
    assert alike is not None
    assert [kind.actions for kind in alike.kinds] == [(0,), (1, 2, 3)]
    assert [kind.on_one for kind in alike.kinds] == [False, True]


@pytest.mark.parametrize(
    "other",
    [
        {"rates": (0.1, 0.1, 0.2)},
        {"costs": (4.0, 4.0, 4.5)},
        {"gaps": (0.5, 0.4, 0.5)},
        {"start": (0, 0, 1)},
    ],
)
def test_machines_that_are_not(other):
    assert find_alike(Parts(machines(**other))) is None


def test_benchmarks():
    assert find_alike(Parts(mm.load_benchmark("fleet-4"))) is not None
    assert find_alike(Parts(mm.load_benchmark("plant-4"))) is None


@pytest.mark.parametrize("seed", range(12))
def test_random_models(seed):
    model = random_alike(seed)
    alike = find_alike(Parts(model))
    assert alike is not None
    assert sorted(a for kind in alike.kinds for a in kind.actions) == list(range(model.n_actions))
    assert alike.initial.sum() == pytest.approx(1.0)
    # The names of actions say what is alike.
    for kind in alike.kinds:
        words = {model.actions[a].split()[0] for a in kind.actions}
        assert words == ({"one"} if kind.on_one else {"all"})
        if kind.on_one:
            names = [model.actions[a].split()[-1] for a in kind.actions]
            assert names == list(model.missingness.can_go_missing)
