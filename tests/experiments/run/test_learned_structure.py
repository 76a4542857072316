"""What is drawn and said of what was learned: edges of the larger effects, and the truth beside the estimates."""

import numpy as np
import pytest

import missmdp as mm
from experiments.run.wards import censored_ward, three_dice, ward
from missmdp.data.coverage import behaviour_coverage
from missmdp.experiments.run.group_truth import group_truths
from missmdp.experiments.run.learned_graph import learned_edges

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
