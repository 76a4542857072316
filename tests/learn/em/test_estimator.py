"""DynamicsEM as a user meets it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import missmdp as mm
from missmdp.learn.em.resampling import units_of


@pytest.fixture(scope="module")
def truth() -> mm.MissMDP:
    return mm.load_benchmark("predator-mnar-unid")


@pytest.fixture(scope="module")
def log(truth) -> mm.Dataset:
    return mm.collect(truth, 20_000, seed=0)


@pytest.fixture(scope="module")
def learner(truth, log) -> mm.DynamicsEM:
    return mm.DynamicsEM(truth.mdp).fit(log)


@pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")
def test_what_the_paper_calls_unidentifiable(truth, log, learner):
    """Nothing is given, and M comes out, reasons included."""
    assert mm.total_variation(learner.missingness_, truth).average < 0.02
    others = [make().fit(log).missingness_ for make in (mm.AMCAR, mm.AsMAR, mm.AIMI)]
    assert min(mm.total_variation(other, truth).average for other in others) > 0.3
    assert learner.graph_ == truth.mgraph()
    assert learner.blocks_ == (("x", "y"),)
    assert learner.always_observed_ == ("u", "v")
    assert learner.converged_
    assert learner.unseen_ == ()
    assert learner.bic_ == pytest.approx(
        learner.log_likelihood_ - 0.5 * learner.n_parameters_ * np.log(log.n_steps)
    )
    assert learner.expected_counts_.sum() == pytest.approx(log.n_steps)
    assert list(learner.trace_) == sorted(learner.trace_)


def test_the_true_reasons_of_the_icu():
    truth = mm.load_benchmark("icu-mnar-unid")
    learner = mm.DynamicsEM(truth.mdp).fit(mm.collect(truth, 30_000, seed=1))
    assert learner.graph_ == truth.mgraph()
    assert mm.total_variation(learner.missingness_, truth).average < 0.035


def test_adaptive_behaviour_does_no_harm(truth):
    """Whoever acts may react to what is seen: that cancels."""

    def chase(z):
        if z.x is None or z.x == z.u:
            return {"north": 0.5, "south": 0.5}
        return "east" if z.x > z.u else "west"

    log = mm.collect(truth, 20_000, chase, seed=2)
    assert log.behaviour == "adaptive"
    learner = mm.DynamicsEM(truth.mdp, truth.mgraph()).fit(log)
    assert mm.total_variation(learner.missingness_, truth).weighted < 0.03


def test_complete_cases_are_rare():
    """Two features that are hardly ever seen together: AIMI starves, the dynamics go on telling."""
    mdp = mm.FactoredMDP(
        features={"a": range(3), "b": range(3)},
        actions=["go"],
        transition=lambda s, act: {
            (s.a, s.b): 0.8,
            ((s.a + 1) % 3, s.b): 0.1,
            (s.a, (s.b + 1) % 3): 0.1,
        },
        reward=lambda s, act: 0.0,
        initial={(0, 0): 1.0},
        discount=0.9,
    )
    truth = mm.MissMDP(
        mdp,
        mm.MissingnessFunction.independent(mdp, {"a": lambda s: (0.8, 0.9, 0.98)[s.b], "b": 0.95}),
    )
    log = mm.collect(truth, 20_000, seed=3)
    graph = mm.MissingnessGraph([("b", "a")], can_go_missing=["a", "b"])
    starved = mm.AIMI(graph=graph).fit(log)
    learner = mm.DynamicsEM(mdp, graph).fit(log)
    distance = mm.total_variation(learner.missingness_, truth).average
    assert distance < 0.02
    assert distance < 0.5 * mm.total_variation(starved.missingness_, truth).average


def test_nothing_is_missing(truth):
    full = mm.collect(mm.fully_observed_model(truth), 500, seed=4)
    for structure in ("auto", "mcar", "logistic", "saturated"):
        learner = mm.DynamicsEM(truth.mdp, structure).fit(full)
        assert learner.missingness_.n_patterns == 1
        assert learner.always_observed_ == ("u", "v", "x", "y")
        assert learner.graph_.edges == ()


def test_simple_structures_are_frequencies():
    """Where the reasons are always seen, EM with pseudo-count 0 is AsMAR and AMCAR without smoothing."""
    truth = mm.load_benchmark("icu-smar")
    log = mm.collect(truth, 20_000, seed=5)
    for structure, other in (("smar", mm.AsMAR(smoothing=0.0)), ("mcar", mm.AMCAR(smoothing=0.0))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mm.AssumptionWarning)
            expected = other.fit(log).missingness_
        found = mm.DynamicsEM(truth.mdp, structure, pseudo_count=0.0).fit(log).missingness_
        assert mm.total_variation(found, expected).worst < 1e-6


def test_saturated_on_the_icu_warns():
    """The heart rate has no memory: with a saturated M, different M explain the data equally well."""
    truth = mm.load_benchmark("icu-mnar-unid")
    with pytest.warns(mm.AssumptionWarning, match="not identified"):
        mm.DynamicsEM(truth.mdp, "saturated", pseudo_count=0.0, tolerance=1e-9).fit(
            mm.collect(truth, 20_000, seed=6)
        )


def test_iterations_that_do_not_end(truth, log):
    with pytest.warns(mm.AssumptionWarning, match="still rises after 2 iterations"):
        learner = mm.DynamicsEM(truth.mdp, truth.mgraph(), lump=False, max_iterations=2, starts=1).fit(log)
    assert not learner.converged_


def test_the_bootstrap(truth, learner):
    bound = learner.bound(0.9, draws=30, seed=1)
    assert not bound.guaranteed
    assert "not guaranteed" in str(bound)
    assert bound.method == "bootstrap"
    assert 0.0 < bound.tv < 0.1
    assert np.array_equal(bound.per_state_tv, learner.bound(0.9, draws=30, seed=1).per_state_tv)
    for group in bound.per_group:
        assert (group.lower <= group.estimate).all()
        assert (group.estimate <= group.upper).all()
        assert group.samples > 0
    drawn = learner.bootstrap(5, seed=2)
    assert len(drawn) == 5
    assert max(mm.total_variation(one, learner.missingness_).average for one in drawn) < 0.05
    with pytest.raises(mm.DataError, match="no finite-sample bound"):
        learner.bound(0.9, "weissman")


def test_the_bootstrap_of_one_long_episode():
    truth = mm.load_benchmark("icu-smar")
    learner = mm.DynamicsEM(truth.mdp, "smar").fit(mm.collect(truth, 3000, seed=7, horizon=3000))
    assert units_of(learner.histories_) == "pieces"
    assert 0.0 < learner.bound(draws=10).tv < 1.0


def test_the_same_whatever_the_number_of_threads(truth, log, learner):
    other = mm.DynamicsEM(truth.mdp, threads=1).fit(log)
    assert np.array_equal(other.missingness_.probabilities, learner.missingness_.probabilities)


def test_parameters(truth):
    learner = mm.DynamicsEM(truth.mdp, "smar", pseudo_count=2.0)
    assert learner.get_params()["pseudo_count"] == 2.0
    assert learner.set_params(starts=3).starts == 3
    assert "structure='smar', pseudo_count=2.0, starts=3" in repr(learner)
    with pytest.raises(AttributeError, match="call fit"):
        learner.missingness_  # noqa: B018
    with pytest.raises(mm.DataError, match="learned nothing yet"):
        learner.bound()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structure": "nonsense"}, "structure must be a MissingnessGraph, 'auto', 'mcar'"),
        (
            {"structure": mm.MissingnessGraph([("u", "x")])},
            "'y' goes missing, but the m-graph has no indicator",
        ),
        ({"structure": mm.MissingnessGraph([("w", "x")])}, "no feature 'w'"),
        ({"pseudo_count": -1.0}, "pseudo_count must be"),
        ({"pseudo_count": True}, "pseudo_count must be"),
        ({"starts": 0}, "starts"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"blocks": [("x",), ("x", "y")]}, "'x' is in two blocks"),
        ({"blocks": ["x"]}, "'x' is no list"),
        ({"always_observed": ["x"]}, "'x' is declared always observed, but it goes missing"),
        ({"always_observed": ["q"]}, "no feature 'q'"),
    ],
)
def test_wrong_parameters(truth, log, options, message):
    with pytest.raises(mm.MissMDPError, match=message):
        mm.DynamicsEM(truth.mdp, **options).fit(log)


def test_wrong_data(truth, log):
    with pytest.raises(mm.DataError, match="needs a Dataset; got ObservationCounts"):
        mm.DynamicsEM(truth.mdp).fit(mm.ObservationCounts.from_dataset(log))
    with pytest.raises(mm.DataError, match="other features, values or actions"):
        mm.DynamicsEM(mm.load_benchmark("icu-smar").mdp).fit(log)
    actions = log.actions.copy()
    actions[0] = -1
    broken = mm.Dataset(truth.mdp, log.observations, actions, log.offsets, log.terminated)
    with pytest.raises(mm.DataError, match="without an action"):
        mm.DynamicsEM(truth.mdp).fit(broken)


def test_blocks_that_are_seen_in_part():
    truth = mm.load_benchmark("icu-smar")
    with pytest.raises(mm.DataError, match="given as a block, but some observations show it in part"):
        mm.DynamicsEM(truth.mdp, blocks=[("infection", "heart_rate")]).fit(mm.collect(truth, 500, seed=8))


def test_another_mdp_with_the_same_features(truth, log):
    """The learner's own dynamics count, whatever MDP the log was read with."""
    other = mm.FactoredMDP(
        truth.mdp.space.features.as_dict(),
        truth.actions,
        [matrix.copy() for matrix in truth.mdp.transition],
        truth.mdp.reward,
        truth.mdp.initial,
        truth.mdp.terminal,
        discount=0.5,
        states=list(truth.states),
    )
    one = mm.DynamicsEM(other, "smar").fit(log)
    assert one.missingness_.space == other.space


@pytest.mark.parametrize("steps", [1, 3])
def test_few_rows_are_never_certain(truth, steps):
    """One row shows one pattern, and so does every log drawn from it: there are no intervals then."""
    learner = mm.DynamicsEM(truth.mdp).fit(mm.collect(truth, steps, seed=0))
    with pytest.warns(mm.AssumptionWarning, match="too few for a bootstrap"):
        bound = learner.bound(draws=5)
    assert bound.worst == bound.tv == 1.0
    assert (bound.per_state_tv == 1.0).all()
    for group in bound.per_group:
        assert (group.lower == 0.0).all()
        assert (group.upper == 1.0).all()
    assert "too few to say" in bound.describe()
    with pytest.raises(mm.DataError, match="too few data for an interval of the value"):
        mm.value_interval(mm.UniformPolicy(), learner, draws=2, episodes=5)


@pytest.mark.parametrize("structure", ["smar", "auto", "logistic"])
def test_intervals_are_never_narrower_than_with_known_states(truth, structure):
    """Where an outcome was seen in none or in all of n rows, the exact binomial interval still has a width."""
    log = mm.collect(truth, 120, seed=3, horizon=4)
    learner = mm.DynamicsEM(truth.mdp, structure).fit(log)
    bound = learner.bound(draws=5)
    for group in bound.per_group:
        # The rule of three, for as many rows as the whole log has.
        assert (group.upper - group.lower).max() > 1.0 - 0.025 ** (1.0 / log.n_steps) - 1e-9
        if group.samples == 0:
            assert group.upper.max() > 0.9
    assert bound.tv >= bound.worst > 0.025


def test_features_that_were_never_missing_may_still_go_missing():
    truth = mm.load_benchmark("predator-mcar")
    nothing = mm.MissMDP(truth.mdp, mm.MissingnessFunction.fully_observed(truth.mdp))
    log = mm.collect(nothing, 200, seed=0, horizon=5)
    assert mm.DynamicsEM(truth.mdp).fit(log).bound(draws=5).tv == pytest.approx(1.0 - 0.05 ** (1 / 200))
    declared = mm.DynamicsEM(truth.mdp, always_observed=truth.mdp.space.features.names).fit(log)
    assert declared.bound(draws=5).tv == 0.0
