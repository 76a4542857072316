"""What `missmdp diagnose` prints and writes."""

import json

import pytest

import missmdp as mm
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
    assert (
        run("diagnose", "example-1", tmp_path / "log.csv").output
        == "Nothing is missing in 50 observations.\n"
    )
