"""What is too much for a model is left out of a run, with a word in the record, in the report and on the terminal."""

import json

import numpy as np
import pytest

import missmdp as mm
from experiments.run.wards import censored_ward, quick, ward
from missmdp.cli.printing_run import print_run
from missmdp.evaluation import simulation
from missmdp.experiments.run import work
from missmdp.plan.sarsop.solver import Sarsop

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

WHY = "searching a model with 1e+12 joint probabilities would take about 100 TB of memory"
SETTINGS = {"learners": ("amcar", "asmar"), "steps": 1000, "episodes": 20, "diagnosis": False}


@pytest.fixture
def unsolvable(monkeypatch):
    """Return a function that lets the solver refuse models with some missingness functions."""

    def refuse(refused):
        solve = Sarsop.solve

        def refusing(self, model, **options):
            if refused(model.missingness):
                raise mm.ModelError(WHY)
            return solve(self, model, **options)

        monkeypatch.setattr(Sarsop, "solve", refusing)

    return refuse


def contents(result):
    return json.loads((result.folder.path / "run.json").read_bytes())


def report(result):
    return result.report.read_text(encoding="utf-8")


@pytest.mark.parametrize("baseline", ["prior", "optimal"])
def test_a_baseline_that_cannot_be_solved_is_left_out(baseline, unsolvable, tmp_path, capsys):
    truth = censored_ward()
    refused = truth.missingness if baseline == "optimal" else mm.prior_model(truth).missingness
    unsolvable(lambda missingness: missingness == refused)
    result = mm.run(truth, folder=tmp_path / "run", settings=quick(**SETTINGS), progress=True)
    assert f"{baseline}: left out: {WHY}" in capsys.readouterr().err
    found = contents(result)
    assert found["left_out"] == [{"part": "policy", "label": baseline, "why": WHY}]
    others = {"prior", "optimal"} - {baseline}
    assert {one["name"] for one in found["baselines"]} == {"random", *others}
    (world,) = found["values"]
    assert {row["policy"] for row in world["rows"]} == {"amcar", "asmar", "random", *others}
    assert all(row["normalised"] is None for row in world["rows"])
    assert world["reference"] == ("optimal" if baseline == "prior" else result.recommendation.label)
    assert f"({baseline}): {WHY}." in report(result)
    print_run(result)
    assert f"No policy was found for {baseline}: {WHY}." in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("known", [True, False])
def test_another_learner_is_recommended_if_the_first_has_no_policy(known, unsolvable, tmp_path):
    settings = quick(**SETTINGS, unknown_truth=not known)
    first = mm.run(ward(), folder=tmp_path / "first", settings=settings, progress=False)
    assert first.recommendation.label == "asmar"
    refused = first.learned["asmar"].model.missingness
    unsolvable(lambda missingness: missingness == refused)
    result = mm.run(ward(), folder=tmp_path / "run", settings=settings, progress=False)
    assert result.recommendation.label == "amcar"
    assert "the model of AsMAR could not be solved" in result.recommendation.why
    found = contents(result)
    assert found["left_out"] == [{"part": "policy", "label": "asmar", "why": WHY}]
    (asmar,) = [one for one in found["learners"] if one["label"] == "asmar"]
    assert asmar["search"] is None
    assert asmar["files"] == {"model": "learners/asmar/learned.mmdp", "policy": None, "trace": None}
    assert {world["world"] for world in found["values"]} == {"truth" if known else "amcar"}
    assert [one["label"] for one in found["certificates"]] == ["amcar"]
    assert f"There is no policy of AsMAR: {WHY}." in report(result)
    assert mm.load_policy(result.folder.policy).actions == ward().actions


def test_where_no_learner_has_a_policy_the_run_ends(unsolvable, tmp_path):
    unsolvable(lambda missingness: True)
    with pytest.raises(mm.ModelError, match="amcar: searching .* asmar: searching"):
        mm.run(ward(), folder=tmp_path / "run", settings=quick(**SETTINGS), progress=False)


def test_where_a_control_variate_takes_too_long_there_is_none(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(simulation, "optimal_values_seconds", lambda mdp: 1000.0)
    result = mm.run(ward(), folder=tmp_path / "run", settings=quick(**SETTINGS), progress=True)
    assert "without a control variate" in capsys.readouterr().err
    found = contents(result)
    assert [(one["part"], one["label"]) for one in found["left_out"]] == [
        ("control variate", "all"),
        ("sensitivity", result.recommendation.label),
    ]
    assert all("about 1,000 s" in one["why"] for one in found["left_out"])
    assert not found["values"][0]["control_variate"]
    assert found["certificates"][0]["loss"] is not None
    assert "There was no control variate: working out the values of 6 states" in report(result)


def test_a_sensitivity_analysis_that_does_not_fit_is_left_out(monkeypatch, tmp_path):
    def refuse(*arguments, **options):
        raise mm.ModelError("the transition matrices would take 24 GB of memory")

    monkeypatch.setattr(work, "sensitivity", refuse)
    result = mm.run(ward(), folder=tmp_path / "run", settings=quick(**SETTINGS), progress=False)
    assert result.sensitivity is None
    assert [one["part"] for one in contents(result)["left_out"]] == ["sensitivity"]
    assert "too much for this model: the transition matrices would take 24 GB" in report(result)


def test_predictions_that_take_too_long_are_not_compared(monkeypatch, tmp_path):
    """AsMAR would predict best, but that is not known: of those that are compared, AMCAR is the only one."""

    def seconds(model, n_steps):
        assert n_steps == 1000
        return 600.0 * (np.ptp(model.missingness.probabilities, axis=0).max() > 0.1)

    monkeypatch.setattr(work, "filter_seconds", seconds)
    result = mm.run(ward(), folder=tmp_path / "run", settings=quick(**SETTINGS), progress=False)
    assert list(result.heldout) == ["amcar"]
    assert result.recommendation.label == "amcar"
    assert "AsMAR could not be compared" in result.recommendation.why
    (one,) = contents(result)["left_out"]
    assert (one["part"], one["label"]) == ("held-out", "asmar")
    assert f"AsMAR was left out: {one['why']}." in report(result)
