"""What `missmdp diagnose` prints and writes."""

import json

import pytest

import missmdp as mm
from missmdp.experiments.studies.check_dynamics import changed_pumps, pumps
from missmdp.learn.em.estimator import DynamicsEM


@pytest.fixture
def log(tmp_path, ward):
    path = tmp_path / "log.parquet"
    mm.collect(mm.MissMDP.load(ward), 3000, seed=2, horizon=30).to_parquet(path)
    return path


def test_diagnose_says_what_and_why(run, tmp_path, ward, log):
    written = [tmp_path / f"why.{suffix}" for suffix in ("json", "dot", "svg")]
    result = run("diagnose", ward, log, "--draws", 10, *(word for path in written for word in ("-o", path)))
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert words.startswith(
        "MNAR: what is missing depends on values that are not seen. Self-censoring: infection"
    )
    assert "infection (itself)" in words
    assert "MCAR all parents p <" in words or "MCAR all parents p =" in words
    assert "Learner: DynamicsEM" in words
    assert "come from a bootstrap and are approximate" in words
    found = json.loads(written[0].read_text())
    mdp = mm.MissMDP.load(ward).mdp
    assert found == mm.diagnose(mm.Dataset.from_table(log, mdp), mdp, draws=10).as_dict()
    graph = mm.MissingnessGraph.from_dot(written[1])
    assert graph.self_censoring == ("infection",)
    assert isinstance(DynamicsEM(mdp, graph).fit(mm.Dataset.from_table(log, mdp)), DynamicsEM)
    assert written[2].read_text().startswith("<?xml")


def test_diagnose_without_the_dynamics(run, ward, log):
    words = " ".join(run("diagnose", ward, log, "--snapshots", "--draws", 0).output.split())
    assert words.startswith("MCAR: what is missing depends on nothing.")
    assert "Note: Single observations cannot tell" in words
    assert "guarantee" not in words


def test_diagnose_a_log_without_holes(run, tmp_path):
    full = mm.load_benchmark("example-1")
    mdp = full.mdp
    complete = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {}))
    mm.collect(complete, 50, seed=0).to_csv(tmp_path / "log.csv")
    done = run("diagnose", "example-1", tmp_path / "log.csv", "--no-dynamics")
    assert done.output == "Nothing is missing in 50 observations.\n"
    lines = run("diagnose", "example-1", tmp_path / "log.csv").output.splitlines()
    assert lines[0] == "Nothing is missing in 50 observations."
    assert lines[1].startswith("Dynamics: The log ")


def test_diagnose_says_first_that_t_is_in_doubt(run, tmp_path):
    given, true = pumps(full=0.45), changed_pumps("load")
    mm.MissMDP(given, mm.MissingnessFunction.independent(given, {})).save(tmp_path / "pumps.mmdp")
    gaps = mm.MissingnessFunction.independent(true, {"wear": 0.5})
    mm.collect(mm.MissMDP(true, gaps), 500, seed=0, horizon=20).to_csv(tmp_path / "pumps.csv")
    asked = ("diagnose", tmp_path / "pumps.mmdp", tmp_path / "pumps.csv", "--draws", 0)
    output = run(*asked).output
    assert output.startswith("The MDP is in doubt: the log contradicts it in load")
    assert "What follows takes T as given, so it is in doubt too." in " ".join(output.split())
    assert "in doubt" not in run(*asked, "--no-dynamics").output


@pytest.fixture
def alone(tmp_path):
    path = tmp_path / "alone.csv"
    mm.collect(mm.load_benchmark("icu-mnar-unid"), 2000, seed=2, keep_states=True).to_csv(path)
    return path


def test_diagnose_a_log_without_a_model(run, tmp_path, alone):
    result = run(
        "diagnose", alone, "-o", tmp_path / "why.json", "--features", "infection,test,heart_rate,temperature"
    )
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert "Learner: JointEM" in words
    assert "The dynamics were learned from this log too" in words
    names = ["infection", "test", "heart_rate", "temperature"]
    found = mm.diagnose(mm.Dataset.from_table(alone, features=names))
    assert json.loads((tmp_path / "why.json").read_text()) == found.as_dict()


def test_learn_model_writes_a_model_that_can_be_solved(run, tmp_path, alone):
    outputs = [tmp_path / f"ward.{suffix}" for suffix in ("mmdp", "txt", "svg")]
    asked = ("learn-model", alone, "--reward", "reward", "--discount", 0.9)
    result = run(*asked, *(word for path in outputs for word in ("-o", path)))
    assert result.exit_code == 0
    learner = mm.JointEM(discount=0.9).fit(mm.Dataset.from_table(alone, reward="reward"))
    assert outputs[1].read_text() == learner.describe() + "\n"
    assert learner.describe() in result.output
    assert mm.MissMDP.load(outputs[0]).mdp == learner.mdp_
    assert outputs[2].read_text().startswith("<?xml")
    assert run("solve", outputs[0], "--max-trials", 2, "-o", tmp_path / "p.mmpolicy").exit_code == 0

    careful = tmp_path / "careful.mmdp"
    assert run(*asked, "--caution", 1, "--fewest", 2, "-o", careful).exit_code == 0
    assert mm.MissMDP.load(careful).mdp == learner.pessimistic_model(1.0, fewest=2.0).mdp
    before = alone.read_bytes()
    assert run(*asked, "-o", alone).exit_code == 2
    assert alone.read_bytes() == before
