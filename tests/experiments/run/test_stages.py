"""Stages are timed and told: plain lines where there is no terminal, nothing where nobody asked."""

import pytest

from missmdp.experiments.run.stages import Stages


def work(stages):
    with stages.stage("read", "Data") as stage:
        stage.result = "10 rows"
    with stages.stage("solve", "Solving", "one") as stage:
        stage.result = "one"
    with stages.stage("solve", "Solving", "two") as stage:
        stage.result = "two"
    with stages.stage("ready", "Solver") as stage:
        stage.quiet_below = 1000.0


def test_lines(capsys):
    stages = Stages(shown=True)
    work(stages)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["✓", "Data", "10"],
        ["✓", "Solving", "one"],
        ["✓", "Solving", "two"],
    ]
    assert all(line.endswith(" s") for line in lines)
    assert list(stages.seconds) == ["read", "solve", "ready"]
    assert all(seconds >= 0.0 for seconds in stages.seconds.values())


@pytest.mark.parametrize("shown", [False, None])
def test_silence(capsys, shown):
    work(Stages(shown))
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_what_fails_has_no_line_and_no_time(capsys):
    stages = Stages(shown=True)
    with pytest.raises(ValueError, match="no"), stages.stage("read", "Data"):
        raise ValueError("no")
    assert capsys.readouterr().err == ""
    assert stages.seconds == {}
    assert stages.current == "Data"
