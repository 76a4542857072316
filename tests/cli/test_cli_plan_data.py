"""The command `plan-data`: how much data a certificate takes."""

import pytest

import missmdp as mm


def test_all_three_answers(run):
    result = run("plan-data", "example-2-smar", "--epsilon", 2, "--confidence", 0.9, "--timeout", 5)
    assert result.exit_code == 0, result.output
    found = mm.plan_data(mm.load_benchmark("example-2-smar"), 2.0, 0.9, timeout=5.0, progress=False)
    assert result.output.rstrip() == found.describe()
    for line in ("certify  ", "policy-uniform  ", "closed form  "):
        assert f"  {line}" in result.output


@pytest.mark.parametrize("learner", ["amcar", "AIMI"])
def test_shares_learners_and_no_time(run, learner):
    result = run(
        "plan-data",
        "example-2-smar",
        "--epsilon",
        0.1,
        "--relative",
        "--learner",
        learner,
        "--timeout",
        0,
        "--always",
        "second",
    )
    assert result.exit_code == 0, result.output
    assert "left out: no time was given" in result.output
    assert "To be within 2 of optimal" in result.output


def test_when_no_number_is_enough_the_answer_is_no(run):
    result = run("plan-data", "example-2-smar", "--epsilon", 1e-7, "--timeout", 0)
    assert result.exit_code == 1, result.output
    assert "no known number of samples is enough" in result.stderr
