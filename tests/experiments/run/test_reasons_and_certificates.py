"""Why values are missing, and how far from optimal policies can be: in run.json, tables and files, as by hand."""

import csv
import json

import pytest

import missmdp as mm
from experiments.run.wards import censored_ward, quick, ward, ward_mdp
from missmdp.errors import DataError
from missmdp.evaluation.compare import difference
from missmdp.experiments.record.coding import read_record
from missmdp.experiments.record.summary_text import summary_text
from missmdp.experiments.run import reading
from missmdp.experiments.run.certifying import contradiction, worth_certifying
from missmdp.experiments.run.settings import RunSeeds
from missmdp.plan.finite.controller import FiniteController
from missmdp.words import no_more_than

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reasons")


@pytest.fixture(scope="module")
def result(folder):
    """A run where AsMAR is right."""
    return mm.run(ward(), folder=folder / "known", settings=quick(seed=3), progress=False)


@pytest.fixture(scope="module")
def censored(folder):
    """A run where only DynamicsEM is right, chosen by the diagnosis."""
    settings = quick(learners=("auto",), steps=5000)
    return mm.run(censored_ward(), folder=folder / "censored", settings=settings, progress=False)


def contents_of(result):
    return json.loads(result.folder.contents.read_bytes())


def rows(result, name):
    with (result.folder.path / "tables" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_diagnosis_is_that_of_the_library(result):
    log = mm.collect(ward(), 3000, seed=3)
    expected = mm.diagnose(log, log.mdp, draws=50, seed=RunSeeds.of(3).diagnose, dynamics=False)
    found = contents_of(result)["diagnosis"]
    assert found["why_not"] is None
    by_hand = json.loads(json.dumps(expected.as_dict()))
    for driver in by_hand["drivers"]:
        driver |= {"lowest": str(driver["lowest"]), "highest": str(driver["highest"])}
    assert {key: found["found"][key] for key in by_hand} == by_hand
    assert (found["found"]["type"], found["found"]["learner"]) == ("simple MAR", "AsMAR")
    (driver,) = rows(result, "drivers")
    assert (driver["missing"], driver["driver"], driver["kind"]) == ("infection", "ward", "value")
    assert float(driver["difference"]) == expected.drivers[0].difference
    assert [row["name"] for row in rows(result, "classes") if row["best"] == "True"] == ["simple MAR"]
    assert len(rows(result, "tests")) == len(expected.tests) + len(expected.own_tests)


def test_the_certificate_is_that_of_the_library(result):
    seeds = RunSeeds.of(3)
    log = mm.collect(ward(), 3000, seed=3)
    learner = mm.AsMAR().fit(log)
    solved = mm.Sarsop(precision=1e-3, seed=seeds.solve).solve(ward().with_missingness(learner.missingness_))
    again = mm.Sarsop(precision=1e-3, seed=seeds.certify, warm_start=solved)
    expected = mm.certify(solved, learner, 0.95, solver=again)
    (found,) = contents_of(result)["certificates"]
    assert found["label"] == "asmar"
    assert found["found"] == json.loads(json.dumps(expected.to_dict()))
    assert found["contradicted"] is None
    assert not expected.vacuous
    assert expected.deploys == "controller"
    policy = mm.load_policy(result.folder.path / found["file"])
    assert isinstance(policy, FiniteController)
    own, best = (
        mm.evaluate(one, ward(), 200, seeds.evaluate, control_variate=True)
        for one in (policy, result.baselines["optimal"].policy)
    )
    gap = difference(best, own)
    assert (found["loss"]["mean"], found["loss"]["stderr"]) == (gap.mean, gap.stderr)
    assert gap.mean - 5 * gap.stderr < expected.epsilon
    table = rows(result, "certificates")
    assert {row["certificate"]: row["taken"] == "True" for row in table} == {
        name: name == expected.method for name in expected.alternatives
    }


def test_the_diagnosis_chooses_the_learner(censored):
    found = contents_of(censored)
    assert found["settings"]["learners"] == ["auto"]
    assert found["diagnosis"]["found"]["self_censoring"] == ["infection"]
    assert [learner["label"] for learner in found["learners"]] == ["em"]
    assert found["recommended"]["label"] == "em"
    assert found["recommended"]["why"].startswith(
        "The diagnosis chose DynamicsEM. Values of infection go missing"
    )
    assert read_record(censored.folder.contents) == censored.record
    diagnosis = censored.reasons.diagnosis
    by_hand = diagnosis.learner().set_params(seed=RunSeeds.of(0).learn, progress=False)
    by_hand.fit(censored.log.dataset)
    assert censored.learned["em"].model.missingness == by_hand.missingness_


def test_where_nothing_is_certain_there_is_an_interval_that_is_no_guarantee(censored):
    (found,) = contents_of(censored)["certificates"]
    assert found["found"] is found["file"] is None
    assert "no bound that holds for a finite number of samples" in found["why_not"]
    assert found["likely"]["low"] < censored.solved["em"].upper
    assert found["likely"]["source"] == "bootstrap"
    assert not censored.folder.certified.exists()
    (said,) = [sentence for sentence in summary_text(censored.record) if "certificate" in sentence]
    assert "not a guarantee" in said
    page = censored.report.read_text(encoding="utf-8")
    assert "This is not a guarantee:" in page


def test_both_can_be_left_out(folder):
    settings = quick(learners=("amcar",), diagnosis=False, certificate=False, sensitivity_episodes=0)
    result = mm.run(ward(), folder=folder / "less", settings=settings, progress=False)
    found = contents_of(result)
    assert found["diagnosis"] == {"why_not": "it was not asked for", "found": None}
    assert found["certificates"] == []
    assert read_record(result.folder.contents) == result.record
    assert "How good is the policy, for certain?" not in result.report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (DataError("too many states"), "too many states"),
        (KeyboardInterrupt(), "it was interrupted"),
        (FloatingPointError("overflow"), "the computation failed on these data"),
        (MemoryError(), "there is too little memory for it"),
    ],
)
def test_a_diagnosis_that_fails_is_told_and_all_learners_compete(folder, monkeypatch, error, why):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(reading, "diagnose", fail)
    settings = quick(learners=("auto",), steps=300, certificate=False, sensitivity_episodes=0, episodes=10)
    result = mm.run(ward(), folder=folder / why[:8], settings=settings, progress=False)
    found = contents_of(result)
    assert found["diagnosis"] == {"why_not": why, "found": None}
    assert [learner["label"] for learner in found["learners"]] == ["amcar", "asmar", "aimi", "em"]
    assert f"Why values are missing was not found out: {why}." in summary_text(result.record)


def test_what_the_diagnosis_contradicts_is_not_certified_beside_it(censored, result):
    """AsMAR's own tests look at single rows, and see nothing of self-censoring."""
    log = censored.log.dataset
    settings = quick(steps=5000, sensitivity_episodes=0, episodes=10)
    everyone = mm.run(censored_ward(), log, censored.folder.path.parent / "all", settings, progress=False)
    diagnosis = everyone.reasons.diagnosis
    assert everyone.recommendation.label == "em"
    assert list(everyone.certified) == ["em"]
    asmar = everyone.learned["asmar"]
    assert contradiction(asmar, diagnosis) == "the diagnosis says MNAR with infection self-censoring"
    assert contradiction(asmar, None) is None
    assert worth_certifying("em", everyone.learned, diagnosis) == ["em"]
    assert set(worth_certifying("em", everyone.learned, None)) >= {"em", "asmar"}
    assert worth_certifying("asmar", everyone.learned, diagnosis) == ["asmar"]
    assert contradiction(result.learned["amcar"], result.reasons.diagnosis)


def test_with_an_unknown_truth_nothing_is_held_against_it(folder):
    log = mm.collect(ward(), 1000, seed=1)
    settings = quick(learners=("asmar",), sensitivity_episodes=0)
    result = mm.run(ward_mdp(), log, folder / "unknown", settings, progress=False)
    (found,) = contents_of(result)["certificates"]
    assert found["loss"] is None
    assert "by simulation" not in " ".join(summary_text(result.record))
    assert read_record(result.folder.contents) == result.record


@pytest.mark.parametrize(
    ("bound", "text"),
    [(12.341, "12.4"), (12.3, "12.3"), (478.23, "479"), (1800.7, "1,810"), (0.0, "0"), (0.012301, "0.0124")],
)
def test_bounds_of_any_size_are_not_rounded_down(bound, text):
    assert no_more_than(bound) == text
