"""Perturbed transition and missingness probabilities, entry by entry."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import missmdp as mm
from large_models import pair, random_model, treat_all_as_large
from missmdp.evaluation.perturbed import (
    Intervals,
    anywhere,
    distance,
    furthest,
    intervals_of,
    mixed,
    random_rows,
    random_within,
    with_probabilities,
    worst_successors,
)
from oracles.policy_values import World, optimal_values_by_policy_iteration
from strategies import mdps, missmdps, seeds

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")


def dense(mdp):
    return np.stack([matrix.toarray() for matrix in mdp.transition])


def same_but_for_transitions(one, other):
    return (
        (one.actions, one.discount, one.space) == (other.actions, other.discount, other.space)
        and np.array_equal(one.reward, other.reward)
        and np.array_equal(one.initial, other.initial)
        and np.array_equal(one.terminal, other.terminal)
    )


@given(mdps(), seeds(), st.sampled_from([0.0, 0.01, 0.3, 1.0]))
def test_random_rows_stay_on_the_support(mdp, seed, share):
    rows = random_rows(mdp, np.random.default_rng(seed))
    T, D = dense(mdp), dense(mixed(mdp, rows, 1.0))
    found = mixed(mdp, rows, share)
    np.testing.assert_allclose(dense(found), (1 - share) * T + share * D, rtol=0, atol=1e-15)
    np.testing.assert_allclose(dense(found).sum(axis=2), 1.0, rtol=1e-12)
    assert ((dense(found) > 0) == (T > 0)).all()
    assert same_but_for_transitions(found, mdp)
    assert (found == mdp) == (share == 0.0 or (T.max(axis=2) == 1.0).all())


def test_random_rows_are_uniform_on_the_simplex():
    """Three next states: of Dirichlet(1, 1, 1) the mean is 1/3, the variance 1/18 and P(one > 1/2) = 1/4."""
    n = 4000
    T = sparse.csr_array(
        (np.tile([0.2, 0.3, 0.5], n), np.tile([0, 1, 2], n), 3 * np.arange(n + 1)), shape=(n, n)
    )
    mdp = mm.FactoredMDP({"x": range(n)}, ["go"], [T], 0.0, np.eye(n)[0])
    drawn = random_rows(mdp, np.random.default_rng(0))[0].reshape(n, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / 3, atol=5 * np.sqrt(1 / 18 / n))
    np.testing.assert_allclose(drawn.var(axis=0), 1 / 18, rtol=0.08)
    np.testing.assert_allclose((drawn > 0.5).mean(axis=0), 0.25, atol=5 * np.sqrt(0.25 * 0.75 / n))


@given(missmdps())
def test_the_worst_next_state_is_the_one_with_the_lowest_optimal_value(model):
    world = World(model)
    values = optimal_values_by_policy_iteration(world)
    found = dense(mixed(model.mdp, worst_successors(model.mdp, values), 0.25))
    for a, s in product(range(model.n_actions), range(model.n_states)):
        row = world.transition[a, s]
        lowest = min(values[t] for t in np.flatnonzero(row))
        gained = found[a, s] - 0.75 * row
        place = int(gained.argmax())
        assert gained[place] == pytest.approx(0.25)
        assert np.delete(gained, place) == pytest.approx(0.0, abs=1e-12)
        assert values[place] == lowest
        assert row[place] > 0.0


@given(mdps(), seeds(), st.sampled_from([0.0, 0.1, 1.0]))
def test_anything_may_happen_in_reachable_states_that_are_not_terminal(mdp, seed, share):
    found = anywhere(mdp, share, np.random.default_rng(seed))
    T, moved = dense(mdp), dense(found)
    assert same_but_for_transitions(found, mdp)
    np.testing.assert_allclose(moved.sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(moved[:, mdp.terminal], T[:, mdp.terminal])
    jumps = (moved - (1 - share) * T)[:, ~mdp.terminal]
    assert jumps.min(initial=0.0) >= -1e-15
    np.testing.assert_allclose(jumps[:, :, mdp.reachable].sum(axis=2), share, atol=1e-12)
    assert share == 1.0 or found.reachable[mdp.reachable].all()
    assert not found.reachable[~mdp.reachable].any()
    if share == 0.0:
        assert found == mdp


def test_anything_is_every_reachable_state_alike():
    truth = mm.load_benchmark("predator-smar").mdp
    moved = sum(anywhere(truth, 1.0, np.random.default_rng(0)).transition)
    there = np.asarray(moved.sum(axis=0)).reshape(-1)[~truth.terminal & truth.reachable]
    # Ten balls from every row that goes on, four actions each, into as many urns as there are reachable states.
    each = 10 * 4 * (~truth.terminal).sum() / truth.reachable.sum()
    times = 10 * there
    assert abs(times.mean() - each) < 1.0
    assert times.std() == pytest.approx(np.sqrt(each), rel=0.15)


@st.composite
def boxes(draw):
    """Draw intervals of a few groups that hold a distribution each."""
    rng = np.random.default_rng(draw(seeds()))
    n_features = draw(st.integers(1, 3))
    patterns = np.array(list(product([True, False], repeat=n_features)))
    centre = rng.dirichlet(np.full(len(patterns), 0.5), size=draw(st.integers(1, 3)))
    width = draw(st.sampled_from([0.0, 0.05, 0.5, 2.0]))
    lower = np.maximum(centre - width * rng.random(centre.shape), 0.0)
    upper = np.minimum(centre + width * rng.random(centre.shape), 1.0)
    return Intervals(patterns, np.zeros(1, dtype=np.int64), centre, lower, upper)


def check_inside(factor, found):
    assert (found >= factor.lower - 1e-12).all()
    assert (found <= factor.upper + 1e-12).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


@given(boxes(), st.booleans())
def test_the_ends_are_what_a_linear_programme_finds(factor, observed):
    found = furthest(factor, observed=observed)
    check_inside(factor, found)
    shown = factor.patterns.sum(axis=1).astype(float)
    sign = -1.0 if observed else 1.0
    for row, lower, upper in zip(found, factor.lower, factor.upper, strict=True):
        ones = np.ones((1, len(shown)))
        best = linprog(sign * shown, A_eq=ones, b_eq=[1.0], bounds=list(zip(lower, upper, strict=True)))
        assert sign * row @ shown == pytest.approx(best.fun, abs=1e-7)


@given(boxes(), seeds())
def test_random_ones_are_inside(factor, seed):
    rng = np.random.default_rng(seed)
    one, other = random_within(factor, rng), random_within(factor, rng)
    check_inside(factor, one)
    check_inside(factor, other)
    free = (factor.upper > factor.lower).all(axis=1)
    assert not np.isclose(one[free], other[free]).all() or not free.any()


LEARNERS = {
    "AMCAR": mm.AMCAR,
    "AsMAR": mm.AsMAR,
    "AsMAR, seen": lambda: mm.AsMAR(patterns="seen", smoothing=0.0),
    "AsMAR, stiff": lambda: mm.AsMAR(smoothing=100.0),
    "AIMI": mm.AIMI,
}


def by_hand(model, bound, chosen):
    """Return P(pattern | state) as dicts: the product over what `chosen` says of each of the state's groups.

    None for states that lack a group for one of the factors.
    """
    names = list(model.features)
    factors = {g.features for g in bound.per_group if not g.never_missing}
    found = []
    for state in model.states:
        met = 0
        table = {(True,) * len(names): 1.0}
        for group, row in zip([g for g in bound.per_group if not g.never_missing], chosen, strict=True):
            if any(getattr(state, name) != value for name, value in group.given.items()):
                continue
            met += 1
            longer = {}
            for (pattern, p), (own, q) in product(table.items(), zip(group.patterns, row, strict=True)):
                seen = list(pattern)
                for name, shown in zip(group.features, own, strict=True):
                    seen[names.index(name)] = bool(shown)
                longer[tuple(seen)] = longer.get(tuple(seen), 0.0) + p * q
            table = longer
        found.append(table if met == len(factors) else None)
    return found


@pytest.mark.parametrize("learner", LEARNERS)
@given(missmdps(max_features=2), seeds())
@settings(max_examples=25)
def test_the_factors_of_what_was_learned(learner, model, seed):
    fitted = LEARNERS[learner]().fit(mm.collect(model, 60, seed=seed % 1000))
    learned, bound = model.with_missingness(fitted.missingness_), fitted.bound(0.9)
    factors = intervals_of(bound, learned)
    again = with_probabilities(learned, factors, [factor.estimate for factor in factors])
    assert distance(again, learned) < 1e-9

    rng = np.random.default_rng(seed)
    chosen = [random_within(factor, rng) for factor in factors]
    moved = with_probabilities(learned, factors, chosen)
    tables = by_hand(model, bound, [row for rows in chosen for row in rows])
    far = 0.0
    for s, state in enumerate(model.states):
        own, nominal = (table_of(M, s) for M in (moved.missingness, learned.missingness))
        expected = nominal if tables[s] is None else tables[s]
        assert tables[s] is not None or not model.mdp.reachable[s]
        for pattern in {*own, *expected}:
            assert own.get(pattern, 0.0) == pytest.approx(expected.get(pattern, 0.0), abs=1e-12), state
        if model.mdp.reachable[s]:
            far = max(far, sum(abs(own.get(p, 0.0) - nominal.get(p, 0.0)) for p in {*own, *nominal}) / 2)
    assert distance(moved, learned) == pytest.approx(far, abs=1e-12)


def table_of(M, s):
    return dict(zip(map(tuple, M.patterns.tolist()), M.probabilities[s].tolist(), strict=True))


def test_a_bound_on_something_else_is_refused():
    truth = mm.load_benchmark("icu-smar")
    one, other = (mm.AsMAR().fit(mm.collect(truth, 2000, seed=s)) for s in (0, 1))
    with pytest.raises(mm.DataError, match="of another missingness function"):
        intervals_of(one.bound(), truth.with_missingness(other.missingness_))
    with pytest.raises(mm.DataError, match="other features or values"):
        intervals_of(one.bound(), mm.load_benchmark("predator-smar"))


@pytest.mark.parametrize("seed", range(4))
def test_large_models_are_moved_part_by_part(seed, monkeypatch):
    def moved(model):
        fitted = mm.AIMI(assume="simple MAR").fit(log)
        learned = model.with_missingness(fitted.missingness_)
        factors = intervals_of(fitted.bound(0.9), learned)
        rng = np.random.default_rng(seed)
        return learned, with_probabilities(
            learned, factors, [random_within(factor, rng) for factor in factors]
        )

    made = random_model(seed)
    log = mm.collect(made(), 200, seed=0)
    learned, expected = moved(made())
    treat_all_as_large(monkeypatch)
    large_learned, found = moved(made())
    assert expected.missingness.is_small
    assert not found.missingness.is_small
    np.testing.assert_array_equal(found.missingness.patterns, expected.missingness.patterns)
    np.testing.assert_allclose(
        found.missingness.probabilities, expected.missingness.probabilities, atol=1e-12
    )
    assert distance(found, large_learned) == pytest.approx(distance(expected, learned), abs=1e-12)


def test_too_little_memory_is_not_taken_for_a_wrong_bound(monkeypatch):
    truth = mm.load_benchmark("icu-smar")
    learner = mm.AsMAR().fit(mm.collect(truth, 500, seed=0))
    bound, learned = learner.bound(), truth.with_missingness(learner.missingness_)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 8.0)
    with pytest.raises(mm.ModelError, match=r"^moving M within its bound"):
        intervals_of(bound, learned)


def test_states_of_which_the_bound_says_nothing_keep_their_part(monkeypatch):
    small, large = pair(0, monkeypatch)
    fitted = mm.AIMI(assume="simple MAR").fit(mm.collect(large, 200, seed=0))
    learned = large.with_missingness(fitted.missingness_)
    factors = intervals_of(fitted.bound(0.9), learned)
    hidden = np.arange(large.n_states) % 3 == 0
    factors = [factor._replace(label=np.where(hidden, -1, factor.label)) for factor in factors]
    ends = [furthest(factor, observed=False) for factor in factors]
    moved = with_probabilities(learned, factors, ends).missingness
    small_learned = small.with_missingness(
        mm.MissingnessFunction(small.space, fitted.missingness_.patterns, fitted.missingness_.probabilities)
    )
    expected = with_probabilities(small_learned, factors, ends).missingness
    assert not moved.is_small
    assert expected.is_small
    for k, pattern in enumerate(expected.patterns):
        own = np.flatnonzero((moved.patterns == pattern).all(axis=1))
        np.testing.assert_allclose(moved.probabilities[:, own[0]], expected.probabilities[:, k], atol=1e-12)
