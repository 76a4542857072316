"""Types and m-graphs of large models from factors, against those from the whole table."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import missmdp as mm
from large_models import pair, treat_all_as_large
from missmdp.model import missingness as missingness_module


def compare(small: mm.MissMDP, large: mm.MissMDP) -> None:
    mine, theirs = large.types(), small.types()
    for name in (
        "mcar", "simple_mar", "mar", "mnar", "self_censoring", "independent", "positive", "always_observed",
        "can_go_missing", "learners", "name",
    ):  # fmt: skip
        assert getattr(mine, name) == getattr(theirs, name), name
    assert mine.reasons.keys() == theirs.reasons.keys()
    assert large.mgraph() == small.mgraph()


@pytest.mark.parametrize("seed", range(60))
def test_random_models(seed, monkeypatch):
    small, large = pair(seed, monkeypatch)
    if not small.mdp.reachable.all():
        pytest.skip("some states cannot be reached")
    compare(small, large)


def as_parts(mdp: mm.FactoredMDP, function, monkeypatch) -> mm.MissMDP:
    """The same M, treated as large."""
    M = mm.MissingnessFunction.from_patterns(mdp, function)
    monkeypatch.setattr(missingness_module, "_SMALL", -1)
    return mm.MissMDP(mdp, mm.MissingnessFunction.from_parts(mdp.space, M.parts))


def product_mdp(n: int = 3, size: int = 2) -> mm.FactoredMDP:
    features = {f"f{i}": range(size) for i in range(n)}
    return mm.FactoredMDP.from_factors(
        features,
        ["x"],
        {name: ([], lambda action: dict.fromkeys(range(size), 1.0 / size)) for name in features},
        0.0,
        {name: dict.fromkeys(range(size), 1.0 / size) for name in features},
    )


CASES = {
    "mar but not simple": lambda s: {(0, 1, 1): 0.2 + 0.3 * s.f1, (1, 1, 1): 0.8 - 0.3 * s.f1},
    "the shown one decides": lambda s: (
        {(1, 0, 1): 0.5, (1, 1, 1): 0.5} if s.f0 else {(1, 1, 0): 0.25, (1, 1, 1): 0.75}
    ),
    "mar by what is shown": lambda s: {
        (0, 1, 1): 0.25 * s.f1,
        (1, 0, 1): 0.5 * s.f0,
        (1, 1, 1): 1.0 - 0.25 * s.f1 - 0.5 * s.f0,
    },
    "never both": lambda s: {(0, 1, 1): 0.3, (1, 0, 1): 0.3, (1, 1, 1): 0.4},
    "self-censoring": lambda s: {(0, 1, 1): 0.1 + 0.5 * s.f0, (1, 1, 1): 0.9 - 0.5 * s.f0},
    "never seen": lambda s: {(0, 1, 1): float(s.f0), (1, 1, 1): 1.0 - s.f0},
    "three together": lambda s: {(a, b, a ^ b): 0.25 for a, b in product((0, 1), repeat=2)},
    "nothing": lambda s: {(1, 1, 1): 1.0},
    "always missing": lambda s: {(0, 1, 1): 1.0},
}


@pytest.mark.parametrize("name", CASES)
def test_known_cases(name, monkeypatch):
    mdp = product_mdp()
    small = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, CASES[name]))
    compare(small, as_parts(mdp, CASES[name], monkeypatch))


@pytest.mark.parametrize("seed", range(40))
def test_random_tables(seed, monkeypatch):
    """Tables over all patterns with many zeros, where types hold by accident now and then."""
    random = np.random.default_rng(seed)
    by = random.integers(0, 3)
    weights = random.integers(0, 2, size=(2, 8)) + (random.random((2, 8)) < 0.2)
    weights[:, 7] += 1

    def function(state):
        row = weights[state[by] if by < 3 else 0]
        return {p: w / row.sum() for p, w in zip(product((0, 1), repeat=3), row, strict=True)}

    mdp = product_mdp()
    small = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, function))
    compare(small, as_parts(mdp, function, monkeypatch))


def test_reasons_name_states(monkeypatch):
    treat_all_as_large(monkeypatch)
    mdp = product_mdp()
    M = mm.MissingnessFunction.independent(mdp, {"f1": ("f0", [0.2, 0.6]), "f2": ("f2", [0.0, 0.5])})
    reasons = mm.MissMDP(mdp, M).types().reasons
    assert (
        reasons["MCAR"]
        == "P(f1 missing) is 0.2 in State(f0=0, f1=0, f2=0) but 0.6 in State(f0=1, f1=0, f2=0)"
    )
    assert "f2=0) but 0.5 in" in reasons["no self-censoring of f2"]


def test_only_values_that_occur_count(monkeypatch):
    """What missingness does where no state can be reached does not matter."""
    mdp = mm.FactoredMDP.from_factors(
        {"a": range(3), "b": range(2)},
        ["x"],
        {"a": ("a", lambda a, action: {0: 0.5, 1: 0.5}), "b": ([], lambda action: {0: 0.5, 1: 0.5})},
        0.0,
        {"a": 0, "b": 0},
    )

    def made():
        return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"b": ("a", [0.5, 0.5, 0.9])}))

    small = made()
    treat_all_as_large(monkeypatch)
    compare(small, made())
    assert made().types().mcar
