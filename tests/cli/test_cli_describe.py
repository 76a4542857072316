"""What `missmdp describe` leaves out and says."""

import pytest

import missmdp as mm


@pytest.fixture(scope="module")
def data():
    return mm.collect(mm.load_benchmark("icu-mnar-unid"), 2000, seed=3)


def test_describe_leaves_columns_out(run, tmp_path, data):
    data.to_csv(tmp_path / "log.csv")
    result = run("describe", tmp_path / "log.csv", "--ignore", "test", "--ignore", "heart_rate")
    names = [line.split()[0] for line in result.output.splitlines() if "% to " in line]
    assert names == ["infection", "temperature"]
    assert "did you mean 'test'" in str(run("describe", tmp_path / "log.csv", "--ignore", "tests").exception)


def test_describe_says_what_is_listed(run, tmp_path, data):
    data.to_csv(tmp_path / "log.csv")
    words = " ".join(run("describe", tmp_path / "log.csv").output.split())
    assert "If rows were independent, chance alone would list something in fewer than 1% of logs" in words
    assert "as indications" in words


def test_one_is_singular(run, tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,action,x\n1,0,a,5\n")
    assert run("describe", tmp_path / "log.csv").output.startswith("1 row in 1 episode of 1 step")
    simulated = run("collect", "example-1", "--steps", 1, "-o", "-").stderr
    assert simulated.startswith("1 simulated observation in 1 episode ")


def test_describe_takes_words_for_missing_values(run, tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,action,x\n1,0,a,5\n1,1,a,?\n")
    assert ["x", "50.0%"] in [
        line.split()[:2]
        for line in run("describe", tmp_path / "log.csv", "--missing", "?").output.splitlines()
    ]
