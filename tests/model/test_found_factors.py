"""Factors found in matrices: against all rows, one by one."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import missmdp as mm
from large_models import two_machines
from missmdp.model import found_factors
from missmdp.model.space import StateSpace
from tests.model.test_factors import PUMP, multiplied_out, random_factors


def given_matrices(factors, matrices, terminal=None, states=None):
    """Return an MDP with these matrices."""
    n = factors.n_states if states is None else len(states)
    terminal = np.zeros(n, dtype=bool) if terminal is None else terminal
    return mm.FactoredMDP(factors.features, ("a", "b"), matrices, 0.0, np.eye(n)[0], terminal, states=states)


def marginal(row, feature, sizes):
    return row.reshape(sizes).sum(axis=tuple(i for i in range(len(sizes)) if i != feature))


def agree(rows, feature, sizes, parents):
    """Return whether a feature's next value is the same in rows of equal parents; rows are (codes, action, row)."""
    seen = {}
    for codes, a, row in rows:
        key = (*(codes[p] for p in parents), a)
        if not np.allclose(
            seen.setdefault(key, marginal(row, feature, sizes)), marginal(row, feature, sizes)
        ):
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_factors_are_found_again(seed, monkeypatch):
    monkeypatch.setattr(found_factors, "_CHUNK", 7)
    given, random = random_factors(seed), np.random.default_rng(seed)
    terminal = random.random(given.n_states) < (0.3 if seed % 2 else 0.0)
    whole = [multiplied_out(given, a) for a in range(2)]
    mdp = given_matrices(given, whole, terminal)
    found, sizes = mdp.factors, given.sizes
    assert found is not None
    for a in range(2):
        np.testing.assert_allclose(found.matrix(a).toarray()[~terminal], whole[a][~terminal], rtol=1e-12)
    codes = list(np.ndindex(sizes))
    rows = [(codes[s], a, whole[a][s]) for s in np.flatnonzero(~terminal) for a in range(2)]
    for i, scope in enumerate(found.scopes):
        assert agree(rows, i, sizes, scope.parents)
        for fewer in combinations(scope.parents, max(len(scope.parents) - 1, 0)):
            assert not scope.parents or not agree(rows, i, sizes, fewer)
        if not terminal.any():
            assert set(scope.parents) <= set(given.scopes[i].parents)


@pytest.mark.parametrize("seed", range(40))
def test_next_values_that_depend_on_each_other_are_seen(seed):
    """Rows of random models, some of which are mixtures of two products."""
    random = np.random.default_rng(seed)
    first, second = random_factors(seed), random_factors(seed)
    shares = np.where(random.random(first.n_states) < 0.2, random.choice([0.5, 1e-6]), 0.0)[:, None]
    turned = [scope.table[..., ::-1] for scope in second.scopes]
    second.scopes = tuple(scope._replace(table=t) for scope, t in zip(second.scopes, turned, strict=True))
    whole = [(1 - shares) * multiplied_out(first, a) + shares * multiplied_out(second, a) for a in range(2)]
    independent = True
    for row in np.concatenate(whole):
        parts = [marginal(row, i, first.sizes) for i in range(len(first.sizes))]
        outer = np.array(
            [np.prod([p[c] for p, c in zip(parts, codes, strict=True)]) for codes in np.ndindex(first.sizes)]
        )
        independent &= np.allclose(outer, row, rtol=1e-11, atol=1e-300)
    assert (given_matrices(first, whole).factors is not None) == independent


def test_models_given_by_functions():
    pump = mm.FactoredMDP.from_factors(**PUMP)
    functions = mm.FactoredMDP(
        PUMP["features"],
        PUMP["actions"],
        lambda s, a: {
            (load, w): 0.5 * p
            for load in (0, 1)
            for w, p in PUMP["transitions"]["wear"][1](s.wear, s.load, a).items()
        },
        0.0,
        {(0, 0): 0.5, (1, 0): 0.5},
    )
    assert functions.factors is not None
    assert pump.factors is not None
    assert [scope.parents for scope in functions.factors.scopes] == [(), (0, 1)]
    for found, given in zip(functions.factors.scopes, pump.factors.scopes, strict=True):
        np.testing.assert_allclose(found.over_states((2, 3)), given.over_states((2, 3)))


def test_terminal_rows_do_not_matter():
    """Two features move on their own; only the row of a terminal state would tie them."""
    step = np.array([[0.5, 0.5], [0.2, 0.8]])
    whole = np.kron(step, step)
    whole[3] = [0.5, 0.0, 0.0, 0.5]
    space = {"x": (0, 1), "y": (0, 1)}
    tied = mm.FactoredMDP(space, ("go",), [whole], 0.0, np.eye(4)[0])
    free = mm.FactoredMDP(space, ("go",), [whole], 0.0, np.eye(4)[0], terminal=[(1, 1)])
    assert tied.factors is None
    assert free.factors is not None
    assert [scope.parents for scope in free.factors.scopes] == [(0,), (1,)]
    np.testing.assert_allclose(free.factors.matrix(0).toarray()[:3], np.kron(step, step)[:3])
    assert free.transition[0][3, 3] == 1.0
    over = mm.FactoredMDP(space, ("go",), [whole], 0.0, np.eye(4)[0], terminal=np.ones(4, dtype=bool))
    assert over.factors is not None


def test_a_difference_beyond_rounding_is_no_rounding():
    for shift, parents in ((1e-14, ()), (1e-8, (0,))):
        step = np.array([[0.5, 0.5], [0.5 + shift, 0.5 - shift]])
        found = mm.FactoredMDP({"x": (0, 1)}, ("go",), [step], 0.0, [1.0, 0.0]).factors
        assert found is not None
        assert found.scopes[0].parents == parents


def test_states_that_are_not_all_combinations_in_order():
    states = [(x, y) for x, y in product(range(2), repeat=2)]
    space = {"x": range(2), "y": range(2)}
    for listed in (states[:3], states[::-1]):
        mdp = mm.FactoredMDP(
            space, ("go",), [np.eye(len(listed))], 0.0, np.eye(len(listed))[0], states=listed
        )
        assert isinstance(mdp.space, StateSpace)
        assert mdp.factors is None


def test_it_costs_nothing_where_nobody_asks(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("asked")

    monkeypatch.setattr("missmdp.model.mdp.find_factors", refuse)
    given = random_factors(3)
    mdp = given_matrices(given, [multiplied_out(given, a) for a in range(2)])
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {mdp.space.features.names[0]: 0.5}))
    assert model.to_pomdp().n_states == given.n_states


def test_factors_are_not_looked_for_where_they_would_not_fit(monkeypatch):
    given = two_machines()
    mdp = mm.FactoredMDP(given.features, given.actions, given.transition, 0.0, given.initial)
    monkeypatch.setattr("missmdp.model.found_factors.free_memory", lambda: 1e4)
    assert mdp.factors is None
