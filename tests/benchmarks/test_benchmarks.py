"""The six benchmarks: sizes to the number, and transition and missingness probabilities checked by hand."""

import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.benchmarks.icu import _bell
from missmdp.benchmarks.predator import MAPS, Board

SIZES = {
    "icu-smar": (800, 5 * 6 * 5 * 11, 1100, 269),
    "icu-mnar-id": (800, 1650, 1100, 269),
    "icu-mnar-unid": (800, 1650, 1100, 269),
    "predator-smar": (25**2 + 1, 6**4 + 2**4 - 1, 651, 237),
    "predator-mnar-unid": (626, 1311, 651, 237),
    "predator-mcar": (42**2 + 1, (42 + 10 + 5 + 1) ** 2 + 15, 1808, 237),
}
"""Name → states, observations in Z, observations that occur, horizon."""


def successors(model, state, action):
    row = model.mdp.transition[model.mdp.action_index(action)][[model.space.index(state)]].toarray()[0]
    return {tuple(model.states[int(i)]): float(row[i]) for i in np.flatnonzero(row)}


def test_the_list_is_the_papers_six():
    assert mm.list_benchmarks() == list(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    model = mm.load_benchmark(name)
    states, observations, occurring, horizon = SIZES[name]
    assert model.n_states == len(model.states) == states
    assert model.n_observations == observations
    assert model.to_pomdp().n_observations == occurring
    assert model.mdp.horizon() == horizon
    assert model.discount == 0.95
    assert model.mdp.reachable.all()
    assert model.name == name


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(mm.ModelError, match="did you mean 'icu-smar'"):
        mm.load_benchmark("icu-samr")


def bell(centre, width, size):
    weights = np.exp(-0.5 * ((np.arange(size) - centre) / width) ** 2)
    return weights / weights.sum()


def test_icu_transition_by_hand():
    """Infection 1, waiting: up with .3, down with .05; vitals follow the new infection."""
    model = mm.load_benchmark("icu-smar")
    found = successors(model, (1, 3, 2, 7), "wait")
    assert len(found) == 3 * 4 * 10
    for level, p in {0: 0.05, 1: 0.65, 2: 0.3}.items():
        temperature = 0.4 * (np.arange(4) == 2) + 0.6 * bell(level, 1.6, 4)
        heart = bell(1.5 + 2.2 * level, 3.5, 10)
        for t in range(4):
            for h in range(10):
                assert found[level, 2, t, h] == pytest.approx(p * temperature[t] * heart[h], rel=1e-12)


def test_icu_tests_and_antibiotics():
    model = mm.load_benchmark("icu-smar")
    assert {s[1] for s in successors(model, (2, 1, 0, 0), "test")} == {4}
    assert {s[1] for s in successors(model, (2, 0, 0, 0), "wait")} == {0}
    treated = successors(model, (2, 4, 0, 0), "antibiotics")
    assert sum(p for s, p in treated.items() if s[0] == 1) == pytest.approx(0.95)
    assert {s[1] for s in treated} == {3}
    assert {s[0] for s in successors(model, (0, 0, 0, 0), "antibiotics")} == {0}
    worst = successors(model, (3, 0, 0, 0), "wait")
    assert sum(p for s, p in worst.items() if s[0] == 3) == pytest.approx(0.95)


def test_icu_rewards_and_start():
    mdp = mm.load_benchmark("icu-smar").mdp
    assert mdp.reward[mdp.space.index((3, 0, 0, 0))] == pytest.approx([-40, -48, -40.5])
    assert mdp.reward[mdp.space.index((1, 4, 2, 9))] == pytest.approx([-2, -10, -2.5])
    temperature = 0.4 * (np.arange(4) == 1) + 0.6 * bell(2, 1.6, 4)
    start = mdp.initial[mdp.space.index((2, 0, 3, 5))]
    assert start == pytest.approx(0.2 * temperature[3] * bell(1.5 + 4.4, 3.5, 10)[5], rel=1e-12)
    assert {state.test for state, p in zip(mdp.states, mdp.initial, strict=True) if p > 0} == {0}


@pytest.mark.parametrize(
    ("name", "state", "infection_seen", "heart_missing"),
    [
        ("icu-smar", (1, 4, 2, 0), 0.03 + 0.97 * 0.3, 0.5),
        ("icu-smar", (3, 3, 0, 9), 0.03 + 0.97 * 0.95 * 0.4, 0.2),
        ("icu-smar", (3, 0, 3, 9), 0.03, 0.7),
        ("icu-mnar-id", (2, 2, 1, 4), 0.03 + 0.97 * 0.55 * 0.15, 0.4),
        ("icu-mnar-id", (2, 4, 1, 9), 0.03 + 0.97 * 0.05, 0.4),
        ("icu-mnar-unid", (2, 4, 1, 3), 0.03 + 0.97 * 0.65 * 0.4, 0.4),
        ("icu-mnar-unid", (3, 4, 1, 9), 0.03 + 0.97 * 0.02, 0.4),
    ],
)
def test_icu_missingness_by_hand(name, state, infection_seen, heart_missing):
    model = mm.load_benchmark(name)
    s = model.space.index(state)
    assert model.missingness.missing_rate("infection")[s] == pytest.approx(1 - infection_seen, rel=1e-12)
    assert model.missingness.missing_rate("heart_rate")[s] == pytest.approx(heart_missing, rel=1e-12)
    both = (None, state[1], state[2], None)
    assert model.missingness.probability(both, state) == pytest.approx((1 - infection_seen) * heart_missing)


def test_predator_start_is_uniform_over_distant_pairs():
    model = mm.load_benchmark("predator-mcar")
    off = (10, 5, 10, 5)
    assert model.mdp.initial[model.space.index(off)] == 1.0
    cells = Board(MAPS["mcar"]).cells
    assert len(cells) == 42
    far = {(*a, *b) for a in cells for b in cells if abs(a[0] - b[0]) + abs(a[1] - b[1]) >= 3}
    for action in model.actions:
        found = successors(model, off, action)
        assert set(found) == far
        assert all(p == pytest.approx(1 / len(far)) for p in found.values())


def test_predator_moves_by_hand():
    """Predator on plains at (1, 1) goes east, prey at (3, 1) can flee east, north or south."""
    model = mm.load_benchmark("predator-smar")
    found = successors(model, (1, 1, 3, 1), "east")
    for hunter, p in {(2, 1): 0.95, (1, 1): 0.05}.items():
        assert found[(*hunter, 3, 1)] == pytest.approx(p * 0.2)
        for prey in [(4, 1), (3, 0), (3, 2)]:
            assert found[(*hunter, *prey)] == pytest.approx(p * 0.8 / 3)
    assert len(found) == 8


def test_predator_on_a_mountain_stumbles_and_walls_hold():
    model = mm.load_benchmark("predator-smar")
    found = successors(model, (2, 0, 0, 4), "south")
    assert sum(p for s, p in found.items() if s[:2] == (2, 0)) == pytest.approx(0.25)
    against_the_wall = successors(model, (2, 0, 0, 4), "north")
    assert {s[:2] for s in against_the_wall} == {(2, 0)}
    blocked = successors(mm.load_benchmark("predator-mcar"), (1, 0, 9, 4), "south")
    assert {s[:2] for s in blocked} == {(1, 0)}


def test_predator_catches_before_the_prey_can_flee():
    model = mm.load_benchmark("predator-smar")
    found = successors(model, (1, 1, 2, 1), "east")
    assert found[2, 1, 2, 1] == pytest.approx(0.95)
    s = model.space.index((1, 1, 2, 1))
    assert model.mdp.reward[s] == pytest.approx([0, 0, 0, 9.5])
    caught = model.space.index((2, 1, 2, 1))
    assert model.mdp.terminal[caught]
    assert model.mdp.terminal.sum() == 25
    assert (model.mdp.reward[caught] == 0).all()
    assert successors(model, (2, 1, 2, 1), "west") == {(2, 1, 2, 1): 1.0}


def test_a_cornered_prey_stays():
    found = successors(mm.load_benchmark("predator-smar"), (3, 3, 4, 4), "north")
    assert {s[2:] for s in found} == {(4, 4)}


@pytest.mark.parametrize(
    ("name", "state", "missing"),
    [
        ("predator-mcar", (10, 5, 10, 5), 0.95),
        ("predator-mcar", (0, 0, 9, 4), 0.95),
        ("predator-smar", (5, 5, 5, 5), 0.0),
        ("predator-smar", (2, 0, 4, 4), 0.1),
        ("predator-smar", (2, 1, 4, 4), 0.95),
        ("predator-mnar-unid", (5, 5, 5, 5), 0.0),
        ("predator-mnar-unid", (2, 0, 1, 1), 0.98),
        ("predator-mnar-unid", (2, 0, 1, 2), 0.05),
        ("predator-mnar-unid", (1, 1, 1, 2), 0.2),
        ("predator-mnar-unid", (3, 2, 4, 0), 0.98),
        ("predator-mnar-unid", (3, 2, 2, 1), 0.2),
        ("predator-mnar-unid", (3, 2, 0, 4), 0.2),
    ],
)
def test_predator_missingness_by_hand(name, state, missing):
    model = mm.load_benchmark(name)
    assert model.missingness.probability((*state[:2], None, None), state) == pytest.approx(missing)
    assert model.missingness.probability(state, state) == pytest.approx(1 - missing)
    assert model.missingness.probability((*state[:3], None), state) == 0.0


def test_probabilities_are_exact_to_rounding():
    for name in mm.list_benchmarks():
        model = mm.load_benchmark(name)
        for matrix in model.mdp.transition:
            assert np.abs(np.asarray(matrix.sum(axis=1)) - 1).max() < 1e-14
        assert math.isclose(model.mdp.initial.sum(), 1.0, abs_tol=1e-14)
        assert np.abs(model.missingness.probabilities.sum(axis=1) - 1).max() < 1e-14


def test_probabilities_do_not_depend_on_how_a_version_of_python_adds():
    """Since Python 3.12, `sum` rounds these weights otherwise, and so every result of a run with the ICU did."""
    for centre, width, size in ((1.0, 0.7, 4), (3.2, 1.6, 10), (0.0, 0.9, 5)):
        weights = [math.exp(-0.5 * ((k - centre) / width) ** 2) for k in range(size)]
        total = 0.0
        for weight in weights:
            total += weight
        assert _bell(centre, width, size) == tuple(weight / total for weight in weights)


def by_hand(k, kind):
    """Return the fleet or plant of k machines, from functions of the state and numbers written down once more."""
    fleet = kind == "fleet"
    rates = [0.1] * k if fleet else [0.08, 0.12, 0.16, 0.08][:k]
    penalties = [3.0] * k if fleet else [3.0, 2.0, 4.0, 3.0][:k]
    costs = [4.0] * k if fleet else [4.0, 3.0, 5.0, 4.0][:k]
    income = 2.0 if fleet else k / 2

    def transition(state, action):
        load, *wears = state
        after = {(): 1.0}
        for i, wear in enumerate(wears):
            broken_neighbour = not fleet and i > 0 and wears[i - 1] == 2
            rate = rates[i] + (0.1 if load else 0.0) + (0.2 if broken_neighbour else 0.0)
            if action == f"fix {i + 1}":
                own = {0: 1.0}
            elif wear == 2:
                own = {2: 1.0}
            else:
                own = {wear + 1: rate, wear: 1 - rate}
            after = {(*s, w): p * q for s, p in after.items() for w, q in own.items()}
        return {(new_load, *s): p / 2 for s, p in after.items() for new_load in (0, 1)}

    def reward(state, action):
        fixing = 0.0 if action == "run" else costs[int(action.split()[1]) - 1]
        broken = sum(penalties[i] for i, wear in enumerate(state[1:]) if wear == 2)
        return income * (1 + state[0]) - broken - fixing

    def missing(i):
        if fleet:
            return lambda state: [0.5, 0.8][state.load]
        if i == 1:
            return lambda state: [0.3, 0.5, 0.8][state[1]]
        return lambda state: [0.4, 0.5, 0.7][state[i - 1]]

    mdp = mm.FactoredMDP(
        {"load": range(2), **{f"wear_{i}": range(3) for i in range(1, k + 1)}},
        ["run", *(f"fix {i}" for i in range(1, k + 1))],
        transition,
        reward,
        {(0, *[0] * k): 0.5, (1, *[0] * k): 0.5},
        discount=0.95,
    )
    gaps = {f"wear_{i}": missing(i) for i in range(1, k + 1)}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, gaps))


@pytest.mark.parametrize("name", ["fleet-1", "fleet-2", "fleet-3", "plant-2", "plant-4"])
def test_families_are_what_is_written_down_by_hand(name):
    kind, k = name.split("-")
    model, expected = mm.load_benchmark(name), by_hand(int(k), kind)
    assert model.name == name
    assert model.actions == expected.actions
    assert model.discount == expected.discount
    assert model.mdp.factors is not None
    assert model.states[:] == expected.states[:]
    assert model.mdp.reachable.all()
    for mine, theirs in zip(model.mdp.transition, expected.mdp.transition, strict=True):
        np.testing.assert_allclose(mine.toarray(), theirs.toarray(), atol=1e-15)
    np.testing.assert_allclose(model.mdp.reward, expected.mdp.reward)
    np.testing.assert_array_equal(model.mdp.initial, expected.mdp.initial)
    for feature in expected.features:
        rates = model.missingness.missing_rate(feature), expected.missingness.missing_rate(feature)
        np.testing.assert_allclose(*rates, atol=1e-15)


def test_types_of_the_families():
    fleet, plant = mm.load_benchmark("fleet-3").types(), mm.load_benchmark("plant-3").types()
    assert fleet.name == "simple MAR"
    assert plant.name == "MNAR"
    assert plant.self_censoring == ("wear_1",)
    assert plant.can_go_missing == ("wear_1", "wear_2", "wear_3")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fleet-0", "k goes from 1 to 13"),
        ("plant-1", "k goes from 2 to 13"),
        ("fleet-14", r"2·3\^k states"),
        (f"fleet-{'9' * 5000}", "k goes from 1 to 13"),
        ("fleet-k", "did you mean 'fleet-4'"),
        ("fleet-04", "did you mean 'fleet-4'"),
        ("flet-7", "did you mean 'fleet-7'"),
        ("fleet--1", "did you mean 'fleet-1'"),
        ("harbour", r"fleet-k, plant-k \(k is a number\)"),
    ],
)
def test_what_is_not_in_a_family_is_refused(name, message):
    with pytest.raises(mm.ModelError, match=message):
        mm.load_benchmark(name)
