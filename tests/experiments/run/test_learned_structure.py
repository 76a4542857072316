"""What is drawn and said of what was learned: edges of the larger effects, and the truth beside the estimates."""

import numpy as np
import pytest

import missmdp as mm
from experiments.run.wards import censored_ward, three_dice, ward
from missmdp.data.coverage import behaviour_coverage
from missmdp.experiments.run.learning import THRESHOLD, learned_edges, learned_graph
from missmdp.learn.em.learned_structure import factor_truths
from missmdp.learn.table import group_truths, learned_rows

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")


def two_causes():
    """Return a model in which c goes missing by a (a lot) and by b (a little), and b by nothing."""
    mdp = three_dice()
    rates = {"c": lambda state: 0.2 + 0.4 * state.a + 0.02 * state.b, "b": 0.3}
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates))


def test_edges_are_the_effects_above_the_threshold():
    """At 40,000 steps an effect of 0.4 is many standard errors, and one of 0.04 is seen but below the threshold."""
    log = mm.collect(two_causes(), 40_000, seed=0)
    assert learned_edges(mm.AMCAR().fit(log)) == []
    assert learned_edges(mm.AsMAR().fit(log)) == [("a", "c")]
    aimi = mm.AIMI().fit(log)
    assert learned_edges(aimi) == [("a", "c")]
    assert learned_edges(aimi, threshold=0.01) == [("a", "c"), ("b", "c")]


def test_chance_draws_no_edges():
    """Nothing depends on anything: over 20 logs an edge appears with probability 0.2 at most; these seeds have none."""
    model = two_causes().with_missingness(
        mm.MissingnessFunction.independent(two_causes().mdp, {"c": 0.5, "b": 0.5})
    )
    for seed in range(20):
        log = mm.collect(model, 300, seed=seed)
        assert learned_edges(mm.AIMI().fit(log), threshold=0.0) == []


def test_self_censoring_cannot_be_drawn():
    log = mm.collect(censored_ward(), 20_000, seed=0)
    assert ("infection", "infection") not in learned_edges(mm.AIMI().fit(log))


def test_the_arrows_of_a_structure_are_its_own():
    log = mm.collect(censored_ward(), 5_000, seed=0)
    learner = mm.DynamicsEM(log.mdp, progress=False).fit(log)
    graph, threshold = learned_graph(learner, ["infection"])
    assert ("infection", "infection") in graph.edges
    assert threshold is None
    graph, threshold = learned_graph(mm.AIMI().fit(log), ["infection"])
    assert threshold == THRESHOLD
    assert graph.can_go_missing == ("infection",)


def joined():
    """Return a model in which b goes missing by its own value, and c nearly always with it, otherwise by a."""
    mdp = three_dice()

    def patterns(state):
        hidden = 0.2 + 0.2 * state.b
        c_alone = 0.1 + 0.5 * state.a
        return {
            (True, True, True): (1 - hidden) * (1 - c_alone),
            (True, True, False): (1 - hidden) * c_alone,
            (True, False, True): hidden * 0.1,
            (True, False, False): hidden * 0.9,
        }

    return mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, patterns))


def test_other_indicators_have_columns_in_the_table():
    log = mm.collect(joined(), 4000, seed=1)
    learner = mm.DynamicsEM(log.mdp, progress=False).fit(log)
    rows = learned_rows(learner.bound(0.9, draws=2), log.mdp.space.features.names)
    assert {row["given_R_b"] for row in rows if row["indicators"] == "c"} >= {"seen", "missing"}
    assert {row["given_R_b"] for row in rows if row["indicators"] == "b"} == {None}
    asmar = mm.AsMAR().fit(log)
    assert not any("given_R_b" in row for row in learned_rows(asmar.bound(0.9), log.mdp.space.features.names))


@pytest.mark.parametrize("truth", [censored_ward(), joined()], ids=["censored", "joined"])
@pytest.mark.parametrize("structure", ["auto", "smar"])
def test_the_truth_of_a_structure_is_the_average_given_earlier_indicators(truth, structure):
    """Against sums over all states and patterns, written out; where the structure is right, groups have one truth."""
    log = mm.collect(truth, 4000, seed=1)
    learner = mm.DynamicsEM(log.mdp, structure, progress=False).fit(log)
    bound = learner.bound(0.9, draws=2)
    weights = behaviour_coverage(truth).share
    found = factor_truths(learner.fit_.model, truth, weights)
    assert len(found) == len(bound.per_group)
    parts = learner.fit_.model.factors.parts
    places = [(part, g) for part in parts for g in np.unique(part.label[:, truth.mdp.reachable])]
    own, patterns = truth.missingness, [tuple(row) for row in learner.patterns_]
    for (part, g), known in zip(places, found, strict=True):
        sums, low, high = np.zeros(part.n_outcomes), np.ones(part.n_outcomes), np.zeros(part.n_outcomes)
        for s in range(truth.mdp.n_states):
            here = np.zeros(part.n_outcomes)
            for pattern, probability in zip(own.patterns, own.probabilities[s], strict=True):
                k = patterns.index(tuple(pattern))
                if part.label[k, s] == g:
                    here[part.outcome[k]] += probability
            if here.sum() > 0.0:
                sums += weights[s] * here
                low = np.minimum(low, here / here.sum())
                high = np.maximum(high, here / here.sum())
        assert known.mean == pytest.approx(sums / sums.sum())
        assert (known.low, known.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("learner", [mm.AMCAR, mm.AsMAR, mm.AIMI])
@pytest.mark.parametrize("truth", [ward(), censored_ward(), two_causes()], ids=["ward", "censored", "causes"])
def test_the_truth_of_groups_is_the_average_over_their_states(learner, truth):
    """Against sums over all states, written out."""
    bound = learner().fit(mm.collect(truth, 400, seed=1)).bound(0.9)
    weights = behaviour_coverage(truth).share
    found = group_truths(bound.per_group, truth, weights)
    assert len(found) == len(bound.per_group)
    for group, known in zip(bound.per_group, found, strict=True):
        for k, pattern in enumerate(group.patterns):
            shown = dict(zip(group.features, pattern, strict=True))
            probabilities, weight = [], []
            for s, state in enumerate(truth.states):
                if any(getattr(state, name) != value for name, value in group.given.items()):
                    continue
                if not truth.mdp.reachable[s]:
                    continue
                observations = truth.missingness.distribution(state)
                probabilities.append(
                    sum(
                        probability
                        for observation, probability in observations.items()
                        if all(
                            (getattr(observation, name) is not None) == seen for name, seen in shown.items()
                        )
                    )
                )
                weight.append(weights[s])
            assert known.mean[k] == pytest.approx(np.average(probabilities, weights=weight))
            assert (known.low[k], known.high[k]) == pytest.approx((min(probabilities), max(probabilities)))
