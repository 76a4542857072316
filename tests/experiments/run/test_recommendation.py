"""Which learner is recommended: the best on held-out data, unless a simpler one does as well."""

import math
from dataclasses import replace

import pytest

import missmdp as mm
from experiments.run.wards import three_dice, ward
from missmdp.evaluation.heldout import HeldOutScore
from missmdp.experiments.run.recommendation import recommend
from missmdp.words import at_most, with_error

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")


@pytest.fixture(scope="module")
def learners():
    """Fitted on data in which the infection goes missing: 1, 2 and 2 free parameters."""
    log = mm.collect(ward(), 500, seed=0)
    return {"amcar": mm.AMCAR().fit(log), "asmar": mm.AsMAR().fit(log), "aimi": mm.AIMI().fit(log)}


def score(difference, stderr, per_step=-1.5):
    return HeldOutScore(per_step + difference, 0.01, 500, 5, difference, stderr, 0, "episodes", 0, 40)


def test_free_parameters_are_counted():
    """By hand: two features that go missing over 2 × 3 values, and one that does not, with 2."""
    mdp = three_dice()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"a": 0.5, "b": 0.4}))
    log = mm.collect(model, 300, seed=0)
    assert mm.AMCAR().fit(log).n_parameters_ == 3  # 2² patterns
    assert mm.AsMAR().fit(log).n_parameters_ == 2 * 3  # by c
    assert mm.AIMI().fit(log).n_parameters_ == 3 * 2 + 2 * 2  # a by b and c, b by a and c


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        # (difference, its standard error) of amcar, asmar, aimi
        ([(-0.5, 0.01), (0.0, 0.0), (-0.3, 0.01)], "asmar"),  # clearly the best
        (
            [(-0.5, 0.01), (-0.01, 0.02), (0.0, 0.0)],
            "asmar",
        ),  # as good as the best; aimi has no fewer parameters
        # Student's quantile with 40 episodes: 2.023.
        ([(-0.0404, 0.02), (-0.01, 0.02), (0.0, 0.0)], "amcar"),  # both as good: the simplest
        ([(-0.0405, 0.02), (-0.05, 0.02), (0.0, 0.0)], "aimi"),  # both just outside
        ([(-0.5, math.nan), (-math.inf, math.nan), (0.0, 0.0)], "amcar"),  # no error: anything may be chance
        ([(-math.inf, math.nan), (-math.inf, math.nan), (0.0, 0.0)], "aimi"),
        ([(0.0, 0.0), (-0.5, 0.6), (-0.5, 0.6)], "amcar"),
    ],
)
def test_the_best_is_taken_or_a_simpler_one_that_is_as_good(learners, scores, chosen):
    heldout = {label: score(*one) for label, one in zip(learners, scores, strict=True)}
    found = recommend(learners, heldout)
    assert found.label == chosen
    best = next(label for label, one in heldout.items() if one.difference == 0.0)
    name, best_name = type(learners[chosen]).__name__, type(learners[best]).__name__
    assert found.why.startswith((f"{best_name} predicts", f"{best_name} is ahead"))
    assert (f"but {name} is not clearly worse" in found.why) == (chosen != best)


@pytest.mark.parametrize(
    ("scores", "units", "words"),
    [
        ([(-0.5, 0.01), (0.0, 0.0), (-0.3, 0.01)], 40, "AsMAR predicts unseen observations best"),
        ([(-0.05, 0.02), (-0.05, 0.02), (0.0, 0.0)], 40, "AIMI predicts unseen observations best"),
        # Student's quantile with three episodes: 4.30.
        (
            [(-0.05, 0.02), (-0.05, 0.02), (0.0, 0.0)],
            3,
            "is preferred because it is simpler: 1 free parameter rather than 2",
        ),
        (
            [(-0.5, 0.01), (-0.01, 0.02), (0.0, 0.0)],
            40,
            "is preferred because it comes first: both have 2 free parameters",
        ),
        ([(0.0, 0.0), (-0.01, 0.02), (-0.02, 0.02)], 40, "but not clearly better than AsMAR and AIMI"),
    ],
)
def test_words_say_whether_learners_are_told_apart(learners, scores, units, words):
    heldout = {label: replace(score(*one), units=units) for label, one in zip(learners, scores, strict=True)}
    why = recommend(learners, heldout).why
    assert words in why
    assert ("predicts unseen observations best" in why) == ("clearly" not in why)


def with_em(learners):
    return {**learners, "em": mm.DynamicsEM(ward().mdp, progress=False).fit(mm.collect(ward(), 500, seed=0))}


@pytest.mark.parametrize(
    ("scores", "chosen", "words"),
    [
        # (difference, its standard error) of amcar, asmar, aimi, em
        (
            [(-0.5, 0.01), (-0.01, 0.02), (-0.02, 0.02), (0.0, 0.0)],
            "asmar",
            "is preferred because it has guaranteed error bounds, which DynamicsEM lacks",
        ),
        ([(-0.5, 0.01)] * 3 + [(0.0, 0.0)], "em", "DynamicsEM predicts unseen observations best"),
        (
            [(-0.5, 0.01), (0.0, 0.0), (-0.5, 0.01), (-0.01, 0.02)],
            "asmar",
            "not clearly better than DynamicsEM: held-out log-likelihood −1.500 ± 0.010 nats per observation",
        ),
        # Less than one nat in 500 steps, in each alike.
        (
            [(-0.0019, 1e-9), (-0.5, 0.01), (-0.5, 0.01), (0.0, 0.0)],
            "amcar",
            "because it has guaranteed error bounds",
        ),
        (
            [(-0.0021, 1e-9), (-0.5, 0.01), (-0.5, 0.01), (0.0, 0.0)],
            "em",
            "predicts unseen observations best",
        ),
    ],
)
def test_of_equally_good_learners_those_with_bounds_come_first(learners, scores, chosen, words):
    everyone = with_em(learners)
    heldout = {label: score(*one) for label, one in zip(everyone, scores, strict=True)}
    found = recommend(everyone, heldout)
    assert found.label == chosen
    assert words in found.why
    assert recommend(everyone, None).label == "amcar"


def test_the_confidence_decides_what_may_be_chance(learners):
    heldout = {label: score(gap, 0.02) for label, gap in zip(learners, (-0.05, -0.05, 0.0), strict=True)}
    assert recommend(learners, heldout, 0.95).label == "aimi"
    assert recommend(learners, heldout, 0.99).label == "amcar"


@pytest.mark.parametrize(("outside", "told"), [(0, False), (55, False), (56, True), (2500, True)])
def test_steps_that_could_not_be_used_are_told_where_they_are_many(learners, outside, told):
    """Of 500 + 55 steps, 55 are just less than a tenth."""
    heldout = {
        label: replace(score(gap, 0.01), outside=outside)
        for label, gap in zip(learners, (-0.5, 0.0, -0.5), strict=True)
    }
    why = recommend(learners, heldout).why
    assert (f"{outside:,} of {outside + 500:,} steps could not be used" in why) == told


def test_without_held_out_data_the_simplest_is_taken(learners):
    found = recommend(learners, None)
    assert found.label == "amcar"
    assert "Nothing could be held out" in found.why


def test_one_learner_is_no_choice(learners):
    found = recommend({"aimi": learners["aimi"]}, {"aimi": score(0.0, 0.0)})
    assert (found.label, found.why) == ("aimi", "AIMI is the only learner in this run.")


def test_where_something_is_impossible_for_all_no_score_is_told(learners):
    """A gap that occurs in one fold only is impossible after the others."""
    scores = {
        label: score(gap, 0.01, -math.inf) for label, gap in zip(learners, (-0.5, 0.0, -0.5), strict=True)
    }
    why = recommend(learners, {label: replace(one, impossible=1) for label, one in scores.items()}).why
    assert "AsMAR predicts unseen observations best: it considers 1 episode impossible" in why
    assert "∞" not in why


def test_equally_good_learners_have_no_winner(learners):
    why = recommend(learners, {label: score(0.0, 0.0) for label in learners}).why
    assert why.startswith("AMCAR predicts unseen observations as well as any")


@pytest.mark.parametrize(
    ("bound", "text"), [(0.0184, "0.019"), (0.25, "0.25"), (0.3, "0.3"), (0.1201, "0.13"), (0.0, "0")]
)
def test_bounds_are_not_rounded_down(bound, text):
    assert at_most(bound) == text


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (141.61968734, 4e-7, "141.6197"),
        (-3.6176, 0.0612, "−3.618 ± 0.061"),
        (0.001, 1.5e-5, "0.001000 ± 0.000015"),
        (2.0, math.nan, "2.0000"),
    ],
)
def test_an_error_of_the_size_of_rounding_is_none(value, stderr, text):
    assert with_error(value, stderr) == text
