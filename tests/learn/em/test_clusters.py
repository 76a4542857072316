"""DynamicsEM in clusters against DynamicsEM on the whole model, and what ties features together."""

from __future__ import annotations

import math

import numpy as np
import pytest

import missmdp as mm
from large_models import MISSING, log_of, two_machines
from missmdp.learn.em import clusters as module
from missmdp.learn.em.clusters import find_clusters
from missmdp.model.missing_factors import marginal

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")


def both(mdp, log, structure, monkeypatch, **options) -> tuple[mm.DynamicsEM, mm.DynamicsEM]:
    """The learner as it is, and the one that learns in clusters."""
    whole = mm.DynamicsEM(mdp, structure, starts=1, **options).fit(log)
    assert whole.apart_ is None
    monkeypatch.setattr(module, "_MOST_WAYS", 0)
    apart = mm.DynamicsEM(mdp, structure, starts=1, **options).fit(log)
    assert apart.apart_ is not None
    return whole, apart


def seen_log_likelihood(mdp: mm.FactoredMDP, log: mm.Dataset, names: list[str]) -> float:
    """How likely the first values and moves are of features that depend on none that is hidden."""
    total = 0.0
    features = mdp.space.features
    codes = mdp.space.codes
    for name in names:
        i = features.position(name)
        column = log.observations[:, i]
        start = np.bincount(codes[:, i], mdp.initial)
        total += np.log(start[column[log.offsets[:-1]]]).sum()
        scope = mdp.factors.scopes[i]
        for row in np.flatnonzero(log.actions >= 0):
            given = tuple(log.observations[row, p] for p in scope.parents)
            total += math.log(scope.table[(*given, log.actions[row], column[row + 1])])
    return total


@pytest.mark.parametrize("watched", [False, True])
def test_clusters_find_what_the_whole_finds(watched, monkeypatch):
    mdp = two_machines(watched=watched)
    log = log_of(mdp, MISSING)
    graph = mm.MissingnessGraph([("a", "a"), ("load", "b")], features=mdp.features)
    whole, apart = both(mdp, log, graph, monkeypatch, lump=False, tolerance=1e-10, max_iterations=5000)
    assert [cluster.hidden for cluster in apart.apart_.clusters] == [(1,), (3,)]
    for name in ("a", "b"):
        np.testing.assert_allclose(
            apart.missingness_.missing_rate(name), whole.missingness_.missing_rate(name), atol=2e-4
        )
    np.testing.assert_allclose(apart.missingness_.probabilities, whole.missingness_.probabilities, atol=3e-4)
    alone = seen_log_likelihood(mdp, log, ["load"] if watched else ["load", "lamp"])
    assert apart.log_likelihood_ + alone == pytest.approx(whole.log_likelihood_, abs=1e-3)
    assert apart.bic_ + alone == pytest.approx(whole.bic_, abs=1e-3)
    assert apart.n_parameters_ == whole.n_parameters_
    assert apart.graph_ == whole.graph_
    assert apart.blocks_ == whole.blocks_
    assert apart.always_observed_ == whole.always_observed_
    assert (np.diff(apart.trace_) >= -1e-9).all()
    assert apart.trace_[-1] <= apart.log_likelihood_ + 1e-6


def test_the_structure_is_found_in_each_cluster(monkeypatch):
    mdp = two_machines()
    log = log_of(mdp, {"a": ("a", [0.05, 0.05, 0.9]), "b": ("load", [0.1, 0.7])}, 6000)
    monkeypatch.setattr(module, "_MOST_WAYS", 0)
    learner = mm.DynamicsEM(mdp, starts=1).fit(log)
    assert learner.graph_.edges == (("a", "a"), ("load", "b"))
    assert "clusters" in "\n".join(learner.details())
    assert "always seen" in learner.assumed_


@pytest.mark.parametrize("structure", ["mcar", "smar"])
def test_named_structures(structure, monkeypatch):
    """Jointly or apart: the rates of each feature are the same, as far as EM went."""
    mdp = two_machines()
    whole, apart = both(mdp, log_of(mdp, MISSING), structure, monkeypatch)
    for name in ("a", "b"):
        np.testing.assert_allclose(
            apart.missingness_.missing_rate(name), whole.missingness_.missing_rate(name), atol=2e-3
        )


def test_logistic_effects_stay_within_a_cluster(monkeypatch):
    mdp = two_machines()
    truth = mm.MissingnessFunction.independent(mdp, MISSING)
    monkeypatch.setattr(module, "_MOST_WAYS", 0)
    M = mm.DynamicsEM(mdp, "logistic", starts=1).fit(log_of(mdp, MISSING, 4000)).missingness_
    np.testing.assert_allclose(M.missing_rate("a"), truth.missing_rate("a"), atol=0.15)
    assert np.ptp(M.missing_rate("a").reshape(2, 3, 2, 3), axis=3).max() < 1e-12


def test_what_is_saturated_is_not_learned_apart(monkeypatch):
    mdp = two_machines()
    monkeypatch.setattr(module, "_MOST_WAYS", 0)
    assert mm.DynamicsEM(mdp, "saturated", starts=1).fit(log_of(mdp, MISSING, 200)).apart_ is None


def test_bounds_bootstraps_and_truths(monkeypatch):
    mdp = two_machines()
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, MISSING))
    log = mm.collect(truth, 6000, seed=1)
    graph = mm.MissingnessGraph([("a", "a"), ("load", "b")], features=mdp.features)
    whole, apart = both(mdp, log, graph, monkeypatch, lump=False)
    mine, theirs = apart.bound(draws=30), whole.bound(draws=30)
    assert not mine.guaranteed
    assert mine.n_groups == theirs.n_groups
    for one, other in zip(mine.per_group, theirs.per_group, strict=True):
        assert (one.features, one.given) == (other.features, other.given)
        np.testing.assert_allclose(one.estimate, other.estimate, atol=5e-3)
    assert (mine.per_state_tv >= 0.5 * theirs.per_state_tv).all()
    assert mine.tv < 0.5
    weights = np.full(mdp.n_states, 1.0 / mdp.n_states)
    for one, other in zip(
        apart.group_truths(mine, truth, weights), whole.group_truths(theirs, truth, weights), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)
    drawn = apart.bootstrap(draws=2)
    assert len(drawn) == 2
    assert drawn[0] != drawn[1]
    assert drawn[0].can_go_missing == ("a", "b")


def test_groups_without_data_are_states_of_the_whole(monkeypatch):
    mdp = two_machines()
    log = log_of(mdp, {"a": 0.5, "b": 0.5}, 3)
    graph = mm.MissingnessGraph([("a", "a"), ("b", "b")], features=mdp.features)
    whole, apart = both(mdp, log, graph, monkeypatch, lump=False)
    assert len(apart.unseen_) == len(whole.unseen_) > 0
    for one, other in zip(apart.unseen_, whole.unseen_, strict=True):
        assert one.given == other.given
        np.testing.assert_array_equal(one.states, other.states)


def hidden(*places: int) -> np.ndarray:
    return np.isin(np.arange(4), places)


def groups(mdp: mm.FactoredMDP, *places: int, joined=()) -> list[tuple[int, ...]]:
    return [cluster.hidden for cluster in find_clusters(mdp, hidden(*places), joined)]


def test_what_ties_features_together():
    mdp = two_machines()
    assert groups(mdp, 1, 3) == [(1,), (3,)]
    assert groups(mdp, 1, 3, joined=[(1, 3)]) == []
    assert groups(mdp, 1, 2, 3) == [(1,), (2,), (3,)]
    assert groups(mdp, 0, 1, 3) == []  # a hidden load moves both
    assert groups(two_machines(coupled=True), 1, 3) == []
    assert groups(two_machines(watched=True), 1, 2, 3) == [(1, 2), (3,)]
    both_end = two_machines(terminal=(("a", "b"), lambda a, b: a == b == 2))
    assert groups(both_end, 1, 3) == []
    one_ends = two_machines(terminal=("a", lambda a: a == 2))
    assert groups(one_ends, 1, 3) == [(1,), (3,)]
    first, second = find_clusters(one_ends, hidden(1, 3), ())
    assert first.mdp.terminal.any()
    assert not second.mdp.terminal.any()
    dependent = two_machines(initial={(0, 0, 0, 0): 0.5, (0, 1, 0, 1): 0.5})
    assert groups(dependent, 1, 3) == []
    by_load = two_machines(initial={(0, 0, 0, 0): 0.5, (1, 1, 0, 1): 0.5})
    assert groups(by_load, 1, 3) == [(1,), (3,)]


def test_idle_parents_tie_nothing():
    mdp = mm.FactoredMDP.from_factors(
        {"a": (0, 1), "b": (0, 1)},
        ["x"],
        {"a": (["a", "b"], lambda a, b, action: {a: 0.5, 1 - a: 0.5}), "b": ([], [[0.5, 0.5]])},
        0.0,
        {"a": 0, "b": 0},
    )
    found = find_clusters(mdp, np.array([True, True]), ())
    assert [cluster.hidden for cluster in found] == [(0,), (1,)]


def test_matrices_fall_apart_too():
    given = two_machines()
    mdp = mm.FactoredMDP(
        given.features, given.actions, given.transition, given.reward, given.initial, None, given.discount
    )
    assert groups(mdp, 1, 3) == [(1,), (3,)]


def test_features_that_matter_for_nothing_are_left_out_where_there_are_many(monkeypatch):
    mdp = two_machines()
    monkeypatch.setattr(module, "_MOST_STATES", 1)
    first, second = find_clusters(mdp, hidden(1, 3), [(3, 2)])
    assert first.kept == (0, 1)
    assert second.kept == (0, 2, 3)


def test_one_cluster_is_worth_it_if_it_leaves_out_features(monkeypatch):
    mdp = two_machines()
    assert find_clusters(mdp, hidden(1), ()) == []
    monkeypatch.setattr(module, "_MOST_STATES", 1)
    assert [cluster.kept for cluster in find_clusters(mdp, hidden(1), ())] == [(0, 1)]
    assert find_clusters(mdp, hidden(), ()) == []


def test_logs_that_end_in_terminal_states(monkeypatch):
    mdp = two_machines(terminal=("a", lambda a: a == 2))
    log = log_of(mdp, MISSING, 1500)
    assert log.terminated.any()
    graph = mm.MissingnessGraph([("a", "a"), ("load", "b")], features=mdp.features)
    whole, apart = both(mdp, log, graph, monkeypatch, lump=False, tolerance=1e-10, max_iterations=5000)
    for name in ("a", "b"):
        np.testing.assert_allclose(
            apart.missingness_.missing_rate(name), whole.missingness_.missing_rate(name), atol=1e-3
        )


def test_marginals_of_parts():
    mdp = two_machines()
    M = mm.MissingnessFunction.blocks(
        mdp, {("a", "lamp"): ("load", [0.25, 0.5]), "b": ("b", [0.0, 0.5, 1.0])}
    )
    patterns = np.array([[True, True], [True, False], [False, True], [False, False]])
    for features in ((1, 3), (1, 2), (0, 3)):
        expected = [
            M.probabilities[:, (M.patterns[:, features] == pattern).all(axis=1)].sum(axis=1)
            for pattern in patterns
        ]
        np.testing.assert_allclose(marginal(mdp.space, M.parts, features, patterns), expected, atol=1e-14)


def test_a_fleet_that_is_too_large_as_a_whole():
    model = mm.load_benchmark("fleet-10")
    learner = mm.DynamicsEM(model.mdp, starts=1).fit(mm.collect(model, 3000, seed=0))
    assert len(learner.apart_.clusters) == 10
    worst = max(
        np.abs(learner.missingness_.missing_rate(name) - model.missingness.missing_rate(name)).max()
        for name in model.missingness.can_go_missing
    )
    assert worst < 0.1


@pytest.mark.parametrize("steps", [40, 400])
def test_short_logs_are_learned_in_clusters_as_long_ones_are(steps):
    """As a whole, 1,000 steps of this model took more than ten times as long as 10,000 in clusters."""
    model = mm.load_benchmark("fleet-6")
    log = mm.collect(model, steps, seed=0)
    assert len(mm.DynamicsEM(model.mdp, "smar", starts=1).fit(log).apart_.clusters) == 6
    names = [[name] for name in model.missingness.can_go_missing]
    assert len(module.clusters_of_log(log, names)) == 6
