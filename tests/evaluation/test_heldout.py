"""Held-out likelihood, against learners fitted and scored by hand, fold by fold."""

from __future__ import annotations

import math
import warnings
from typing import ClassVar

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.heldout import _ratio
from missmdp.evaluation.value import standard_error
from oracles.likelihood import log_probability_by_beliefs
from oracles.logs import episodes_of

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

LEARNERS = {"AMCAR": mm.AMCAR, "AsMAR": mm.AsMAR, "AIMI": mm.AIMI}


class Recording(mm.AsMAR):
    """An AsMAR that keeps what it was fitted on, in `seen`."""

    seen: ClassVar[list[mm.Dataset]] = []

    def fit(self, data):
        self.seen.append(data)
        return super().fit(data)


@pytest.fixture
def recording():
    Recording.seen = []
    return Recording


def ward():
    """Return a model of two features over four states in which `hurt` goes missing, by the ward."""
    mdp = mm.FactoredMDP(
        {"ward": ["a", "b"], "hurt": [0, 1]},
        ["stay", "move"],
        np.array(
            [
                [[0.6, 0.2, 0.2, 0.0], [0.1, 0.7, 0.0, 0.2], [0.3, 0.0, 0.5, 0.2], [0.0, 0.3, 0.2, 0.5]],
                [[0.1, 0.2, 0.7, 0.0], [0.1, 0.2, 0.0, 0.7], [0.6, 0.1, 0.2, 0.1], [0.0, 0.7, 0.2, 0.1]],
            ]
        ),
        0.0,
        [0.5, 0.2, 0.2, 0.1],
    )
    M = mm.MissingnessFunction.independent(mdp, {"hurt": lambda s: 0.2 if s.ward == "a" else 0.7})
    return mm.MissMDP(mdp, M, name="ward")


def several(model, count, seed):
    """Return episodes of `count` different lengths, from 6."""
    return of_lengths(model, range(6, 6 + count), seed)


def of_lengths(model, lengths, seed):
    """Return episodes of given lengths, the beginnings of those of one log."""
    log = mm.collect(model, 64 * len(lengths), seed=seed, horizon=64)
    return [[*e[: n - 1], (e[n - 1][0], None)] for n, e in zip(lengths, log.episodes(), strict=False)]


@pytest.mark.parametrize(("count", "folds"), [(11, 5), (7, 2), (3, 3)])
def test_folds_by_hand(recording, count, folds):
    """Episodes have different lengths, so that those a learner was fitted on can be told from its data."""
    model = ward()
    episodes = several(model, count, seed=1)
    log = episodes_of(model.mdp, episodes)
    found = mm.held_out_likelihood({"one": recording}, log, model.mdp, folds, seed=4)["one"]
    assert (found.folds, found.by, found.steps) == (folds, "episodes", log.n_steps)
    assert (found.impossible, found.outside, found.units) == (0, 0, log.n_episodes)

    totals, held = {}, []
    for train in recording.seen:
        fitted = model.with_missingness(mm.AsMAR().fit(train).missingness_)
        trained = set(train.lengths.tolist())
        for n, episode in enumerate(episodes):
            assert (episode in [*train.episodes()]) == (len(episode) in trained)
            if len(episode) not in trained:
                held.append(n)
                totals[n] = log_probability_by_beliefs(fitted, episode)
    assert sorted(held) == list(range(count)), "every episode is held out once"
    assert len(recording.seen) == folds
    sizes = [count - len(train.lengths) for train in recording.seen]
    assert max(sizes) - min(sizes) <= 1
    assert found.per_step == pytest.approx(sum(totals.values()) / log.n_steps)
    mean = found.per_step
    residuals = [totals[n] - mean * len(episode) for n, episode in enumerate(episodes)]
    spread = math.sqrt(sum(r * r for r in residuals) / (count - 1))
    assert found.stderr == pytest.approx(spread / math.sqrt(count) / (log.n_steps / count))


def test_differences_are_paired_over_episodes():
    model = ward()
    episodes = several(model, 12, seed=2)
    log = episodes_of(model.mdp, episodes)
    learners = {"AMCAR": mm.AMCAR, "AsMAR": mm.AsMAR, "stiff": lambda: mm.AsMAR(smoothing=30.0)}
    found = mm.held_out_likelihood(learners, log, model.mdp, seed=3)
    alone = {
        name: mm.held_out_likelihood({name: make}, log, model.mdp, seed=3)[name]
        for name, make in learners.items()
    }
    best = max(found, key=lambda name: found[name].per_step)
    assert (found[best].difference, found[best].difference_stderr) == (0.0, 0.0)
    for name, result in found.items():
        assert (result.per_step, result.stderr) == (alone[name].per_step, alone[name].stderr)
        assert result.difference == pytest.approx(result.per_step - found[best].per_step)
        if name != best:
            assert (
                result.difference
                < 0.0
                < result.difference_stderr
                < math.hypot(result.stderr, found[best].stderr)
            )
            assert "to the best" in str(result)
        else:
            assert "to the best" not in str(result)


@pytest.mark.parametrize("lengths", [[60], [23, 40], [5, 1, 30]])
def test_few_episodes_are_cut_and_parts_are_scored_after_what_came_before(recording, lengths):
    """P(part | before) is the probability of both together by that of what came before."""
    model = ward()
    episodes = of_lengths(model, lengths, seed=5)
    log = episodes_of(model.mdp, episodes)
    found = mm.held_out_likelihood({"one": recording}, log, model.mdp, 4)["one"]
    assert (found.by, found.folds, found.steps) == ("blocks", 4, log.n_steps)

    n = log.n_steps
    places = [(e, t) for e, episode in enumerate(episodes) for t in range(len(episode))]
    total = 0.0
    for fold, train in enumerate(recording.seen):
        rows = [row for row in range(n) if row * 4 // n == fold]
        rest = [episodes[e][t][0] for row, (e, t) in enumerate(places) if row not in rows]
        assert [z for episode in train.episodes() for z, _ in episode] == rest
        fitted = model.with_missingness(mm.AsMAR().fit(train).missingness_)
        for e, episode in enumerate(episodes):
            steps = [t for row, (own, t) in enumerate(places) if own == e and row in rows]
            if steps:
                total += log_probability_by_beliefs(fitted, episode[: steps[-1] + 1])
                total -= log_probability_by_beliefs(fitted, episode[: steps[0]]) if steps[0] else 0.0
    assert found.per_step == pytest.approx(total / n)
    assert 0.0 < found.stderr < 1.0


def test_two_observations_are_enough_and_one_is_not():
    model = ward()
    log = episodes_of(model.mdp, several(model, 1, seed=0))
    short = mm.Dataset(
        model.mdp, log.observations[:2], np.array([0, -1], np.int8), np.array([0, 2]), np.array([False])
    )
    assert mm.held_out_likelihood({"one": mm.AMCAR}, short, model.mdp)["one"].folds == 2
    one = mm.Dataset(
        model.mdp, log.observations[:1], np.array([-1], np.int8), np.array([0, 1]), np.array([False])
    )
    with pytest.raises(mm.DataError, match="at least two observations"):
        mm.held_out_likelihood({"one": mm.AMCAR}, one, model.mdp)


def test_what_was_never_seen_has_probability_zero_without_smoothing():
    """Ward a hides `hurt` once, in one episode: without smoothing the rest says that this cannot happen."""
    model = ward()
    shown = [(("a", 0), "stay"), (("a", 1), "stay"), (("b", None), "stay"), (("b", 1), None)]
    hidden = [(("a", 0), "stay"), (("a", None), "stay"), (("b", None), "stay"), (("b", 1), None)]
    log = episodes_of(model.mdp, [shown] * 3 + [hidden] + [shown] * 2)
    learners = {
        "plain": lambda: mm.AsMAR(smoothing=0.0),
        "smoothed": lambda: mm.AsMAR(smoothing=0.5),
        "plain too": lambda: mm.AIMI(assume="simple MAR", smoothing=0.0),
    }
    found = mm.held_out_likelihood(learners, log, model.mdp, 6)
    assert found["smoothed"].impossible == found["smoothed"].difference == 0
    for name in ("plain", "plain too"):
        result = found[name]
        assert (result.impossible, result.per_step, result.difference) == (1, -math.inf, -math.inf)
        assert math.isnan(result.stderr)
        assert math.isnan(result.difference_stderr)
        assert str(result) == "−∞ per step, −∞ to the best; 1 episode of probability 0"

    del learners["smoothed"]
    found = mm.held_out_likelihood(learners, log, model.mdp, 6)
    assert {result.difference for result in found.values()} == {0.0}, "what both rule out is left out"
    assert all(result.per_step == -math.inf for result in found.values())


def test_what_the_dynamics_rule_out_is_scored_up_to_there():
    """From (a, 0) nothing leads to (b, 1), whatever is missing; everything before that counts."""
    model = ward()
    fine = several(model, 5, seed=7)
    wrong = [(("a", 0), "stay"), (("a", 0), "stay"), (("b", 1), "stay"), (("b", None), None)]
    found = mm.held_out_likelihood(LEARNERS, episodes_of(model.mdp, [wrong, *fine]), model.mdp, 6)
    cut = [*wrong[:1], (wrong[1][0], None)]
    steps = sum(map(len, fine)) + 2
    for name, result in found.items():
        assert (result.outside, result.steps, result.impossible) == (2, steps, 0)
        assert math.isfinite(result.per_step), name
    learned = mm.AMCAR().fit(episodes_of(model.mdp, fine)).missingness_
    expected = log_probability_by_beliefs(model.with_missingness(learned), cut)
    for n, episode in enumerate(fine):
        rest = mm.AMCAR().fit(episodes_of(model.mdp, [*(e for i, e in enumerate(fine) if i != n), wrong]))
        expected += log_probability_by_beliefs(model.with_missingness(rest.missingness_), episode)
    assert found["AMCAR"].per_step == pytest.approx(expected / steps)
    nowhere = mm.FactoredMDP(
        model.features, model.actions, model.mdp.transition, 0.0, [0, 0, 1, 0], states=model.space
    )
    with pytest.raises(mm.DataError, match="no observation of the log is possible"):
        mm.held_out_likelihood(LEARNERS, episodes_of(model.mdp, [wrong, wrong]), nowhere)


def test_two_missingness_functions_with_the_same_law_of_observations_cannot_be_told_apart():
    """Nobody ever sees y, which is a fair coin at every step: whether it drives x's missingness does not show."""
    mdp = mm.FactoredMDP({"x": [0, 1], "y": [0, 1]}, ["go"], [np.full((4, 4), 0.25)], 0.0, np.full(4, 0.25))
    hidden = {"y": 1.0}
    one = mm.MissingnessFunction.independent(mdp, {"x": lambda s: 0.2 + 0.4 * s.y, **hidden})
    other = mm.MissingnessFunction.independent(mdp, {"x": 0.4, **hidden})
    assert mm.total_variation(one, other).worst == pytest.approx(0.2)
    log = mm.collect(mm.MissMDP(mdp, one), 2000, seed=0)
    np.testing.assert_allclose(
        mm.log_likelihood(log, mm.MissMDP(mdp, one)).per_episode,
        mm.log_likelihood(log, mm.MissMDP(mdp, other)).per_episode,
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("name", "right"), [("icu-smar", "AsMAR"), ("icu-mnar-id", "AIMI"), ("predator-mcar", "AMCAR")]
)
def test_with_enough_data_the_right_learner_is_best(name, right):
    truth = mm.load_benchmark(name)
    found = mm.held_out_likelihood(LEARNERS, mm.collect(truth, 30_000, seed=0), truth.mdp)
    for other, result in found.items():
        if other == right:
            assert result.difference == 0.0
        else:
            assert result.difference < -2.0 * result.difference_stderr


def test_the_seed_decides_the_folds_and_nothing_is_said_of_assumptions():
    truth = mm.load_benchmark("icu-mnar-unid")
    log = mm.collect(truth, 5000, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, same, other = (mm.held_out_likelihood(LEARNERS, log, truth.mdp, seed=s) for s in (0, 0, 1))
    assert one == same
    assert one != other


def test_the_error_of_a_ratio():
    rng = np.random.default_rng(0)
    totals = rng.normal(size=50)
    assert _ratio(totals, np.full(50, 4.0)) == pytest.approx(
        (totals.mean() / 4.0, standard_error(totals / 4.0))
    )
    sizes = rng.integers(5, 15, size=400).astype(float)
    totals = -1.3 * sizes + rng.normal(size=400) * sizes
    mean, stderr = _ratio(totals, sizes)
    left = [(totals.sum() - x) / (sizes.sum() - n) for x, n in zip(totals, sizes, strict=True)]
    assert stderr == pytest.approx(math.sqrt(399 / 400 * ((left - np.mean(left)) ** 2).sum()), rel=0.02)
    assert abs(mean + 1.3) < 5 * stderr
    assert math.isnan(_ratio(totals[:1], sizes[:1])[1])


def test_what_is_wrong_is_named():
    model = ward()
    log = episodes_of(model.mdp, several(model, 6, seed=0))
    for learners in ({}, [mm.AMCAR], None):
        with pytest.raises(mm.DataError, match="expected {name: a function"):
            mm.held_out_likelihood(learners, log, model.mdp)
    with pytest.raises(
        mm.DataError, match="'one': expected a function that returns a new learner, got AMCAR"
    ):
        mm.held_out_likelihood({"one": mm.AMCAR()}, log, model.mdp)
    for folds in (1, 0, 2.5):
        with pytest.raises(mm.DataError, match="folds must be"):
            mm.held_out_likelihood(LEARNERS, log, model.mdp, folds)
    with pytest.raises(mm.DataError, match="seed must be"):
        mm.held_out_likelihood(LEARNERS, log, model.mdp, seed=-1)
    with pytest.raises(mm.DataError, match="other features"):
        mm.held_out_likelihood(LEARNERS, log, mm.load_benchmark("icu-smar").mdp)
    with pytest.raises(mm.ModelError, match="expected a FactoredMDP"):
        mm.held_out_likelihood(LEARNERS, log, model)
