"""The behaviour that is learned is the one that made the log.

Seeds are fixed. Held-out likelihood decides between models, and a finer one is chosen by chance only if it gains more
than the error of the difference, which needs a useful pattern in noise: one log in ten or less.
"""

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.offpolicy.contexts import contexts_of, layout_of
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.predictors import Logistic, Table

ICU = mm.load_benchmark("icu-smar")


def by_heart_rate(seen):
    share = 0.1 if seen.heart_rate is None else 0.8
    return {"test": share, "wait": 1.0 - share}


class Alternating:
    """Rarely does the same twice in a row."""

    def agent(self, model=None, *, seed=None):
        return AlternatingAgent(np.random.default_rng(seed))


class AlternatingAgent:
    def __init__(self, random):
        self.random, self.last = random, None

    def step(self, observation):
        weights = np.array([0.05 if a == self.last else 1.0 for a in ICU.actions])
        self.last = ICU.actions[int(self.random.choice(3, p=weights / weights.sum()))]
        return self.last

    reset = step


class Remembering:
    """Tests as long as the last heart rate that it saw was high."""

    def agent(self, model=None, *, seed=None):
        return RememberingAgent(np.random.default_rng(seed))


class RememberingAgent:
    def __init__(self, random):
        self.random, self.rate = random, 0

    def step(self, observation):
        self.rate = self.rate if observation.heart_rate is None else observation.heart_rate
        return "test" if self.random.random() < (0.85 if self.rate > 4 else 0.15) else "wait"

    reset = step


@pytest.mark.parametrize("seed", range(5))
def test_uniform_behaviour_is_constant(seed):
    log = mm.collect(ICU, 6000, seed=seed, horizon=30)
    found = mm.learn_behaviour(log)
    assert found.kind == "constant"
    likely = found.probabilities(log)
    last = log.offsets[1:] - 1
    assert np.isnan(likely[last]).all()
    assert np.nanmax(np.abs(likely - 1 / 3)) < 0.03


def test_behaviour_that_depends_on_what_is_seen():
    log = mm.collect(ICU, 20_000, by_heart_rate, seed=0, horizon=30)
    found = mm.learn_behaviour(log)
    assert found.kind != "constant"
    assert found.scores[found.kind].gain > 10 * found.scores[found.kind].stderr
    rows = decisions_of(log, None).rows
    likely = found.probabilities(log)[rows]
    missing = log.observations[rows, ICU.space.features.position("heart_rate")] < 0
    test = ICU.actions.index("test")
    assert likely[missing, test].mean() == pytest.approx(0.1, abs=0.02)
    assert likely[~missing, test].mean() == pytest.approx(0.8, abs=0.02)
    assert np.abs(likely[:, test] - np.where(missing, 0.1, 0.8)).mean() < 0.05


def test_behaviour_that_depends_on_the_last_action():
    log = mm.collect(ICU, 8000, Alternating(), seed=0, horizon=30)
    found = mm.learn_behaviour(log)
    assert found.kind in ("logistic", "by observation and last action")
    rows = decisions_of(log, None).rows
    later = rows[log.actions[np.maximum(rows - 1, 0)] == log.actions[rows]]
    own = found.probabilities(log)[later, log.actions[later]]
    assert np.median(own) == pytest.approx(0.05 / 2.05, abs=0.02)


def test_behaviour_that_depends_on_what_was_seen_before():
    log = mm.collect(ICU, 8000, Remembering(), seed=0, horizon=30)
    found = mm.learn_behaviour(log)
    assert found.kind == "logistic"
    assert "→ logistic" in found.describe()
    assert "logistic" in found._repr_html_()
    assert found.scores["logistic"].per_decision > found.scores["by observation"].per_decision


def test_other_logs_get_probabilities_too_and_foreign_ones_do_not():
    found = mm.learn_behaviour(mm.collect(ICU, 3000, by_heart_rate, seed=0, horizon=30))
    other = found.probabilities(mm.collect(ICU, 500, seed=5))
    rows = ~np.isnan(other[:, 0])
    assert (other[rows] > 0.0).all()
    assert other[rows].sum(axis=1) == pytest.approx(np.ones(rows.sum()))
    with pytest.raises(mm.DataError, match="other features"):
        found.probabilities(mm.collect(mm.load_benchmark("example-3"), 50, seed=0))
    with pytest.raises(mm.DataError, match="two decisions"):
        mm.learn_behaviour(mm.collect(ICU, 2, seed=0))


def test_one_long_episode_is_cut_into_blocks():
    log = mm.collect(ICU, 3000, by_heart_rate, seed=0, horizon=3000)
    assert log.n_episodes == 1
    assert mm.learn_behaviour(log).kind != "constant"


def test_contexts_by_hand():
    """Observation with missing as 0, last action, last seen values, and the order of magnitude of the step."""
    log = mm.collect(ICU, 400, seed=1, horizon=12)
    decisions = decisions_of(log, None)
    found, layout = contexts_of(log, decisions), layout_of(log)
    assert found.shape[1] == len(layout.sizes)
    assert (found >= 0).all()
    assert (found < np.array(layout.sizes)).all()
    i = 0
    for episode in log.episodes():
        last = [0] * 4
        for t, (seen, _) in enumerate(episode[:-1]):
            codes = [c + 1 for c in ICU.space.features.encode_observation(seen)]
            last = [now or before for now, before in zip(codes, last, strict=True)]
            before = 0 if t == 0 else ICU.actions.index(episode[t - 1][1]) + 1
            assert found[i].tolist() == [*codes, before, *last, t.bit_length()]
            i += 1
    assert i == len(found)


def test_tables_lean_on_coarser_ones():
    contexts = np.array([[0, 0], [0, 1], [1, 0]])
    counts = np.array([[6.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    table = Table(contexts, counts, [[0], [0, 1]])
    overall = np.array([6.5, 2.5]) / 9
    first = (np.array([6.0, 2.0]) + 5 * overall) / 13
    assert table.probabilities(np.array([[0, 1], [0, 9], [1, 0], [9, 9]])) == pytest.approx(
        np.array([(np.array([0.0, 2.0]) + 5 * first) / 7, first, overall, overall])
    )


def test_logistic_regression_has_the_gradient_of_its_optimum():
    """At the optimum, predicted counts differ from counts by the penalty's slope: small against many counts."""
    rng = np.random.default_rng(0)
    log = mm.collect(ICU, 4000, by_heart_rate, seed=0, horizon=30)
    contexts, layout = contexts_of(log, decisions_of(log, None)), layout_of(log)
    counts = rng.multinomial(20, [0.2, 0.5, 0.3], size=len(contexts)).astype(float)
    fitted = Logistic(contexts, counts, layout).probabilities(contexts)
    assert fitted.sum(axis=1) == pytest.approx(np.ones(len(fitted)))
    predicted = (counts.sum(axis=1, keepdims=True) * fitted).sum(axis=0)
    assert predicted == pytest.approx(counts.sum(axis=0), rel=1e-3)
