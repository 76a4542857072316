"""The command `solve`: policies, bounds, and that nothing is lost."""

import csv
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import missmdp as mm
from command_output import start
from missmdp.cli.printing_results import first_action
from missmdp.interop import read_policyx, write_model
from missmdp.plan.factored import search
from missmdp.plan.sarsop import structured
from tiger import TIGER


def printed(result, *, noted=""):
    """Return what a successful command printed, as words on the left and the rest of the line."""
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(noted) if noted else result.stderr == ""
    return {line[:14].rstrip(): line[14:] for line in result.stdout.splitlines()}


def bounds(lines):
    return tuple(float(lines[f"{which} bound"].split()[0]) for which in ("lower", "upper"))


def test_the_result_is_printed(run):
    lines = printed(run("solve", "example-1"))
    assert lines["model"] == (
        "example-1: 4 states, 2 actions, 6 observations, discount 0.9; observes, then acts"
    )
    low, high = bounds(lines)
    assert low <= 6.0975609757 <= high
    assert high - low <= 1e-3 * low
    assert lines["status"].startswith("precision: ")
    assert "vectors in 2 components" in lines["policy"]
    assert "first action" not in lines, "it depends on what is seen"


def test_a_file_is_solved_and_says_what_to_do_first(run, tiger):
    lines = printed(run("solve", tiger))
    assert (
        lines["model"] == f"{tiger}: 2 states, 3 actions, 2 observations, discount 0.95; acts, then observes"
    )
    low, high = bounds(lines)
    assert low <= 19.3714 <= high
    assert lines["first action"] == "listen"


def test_models_are_what_they_are_elsewhere(run, tmp_path, monkeypatch):
    model = mm.load_benchmark("example-2-smar")
    model.save(tmp_path / "mine.mmdp")
    write_model(model, tmp_path / "mine.pomdpx")
    (tmp_path / "solvable_models.py").write_text(
        "import missmdp as mm\ndef model():\n    return mm.load_benchmark('example-2-smar')\n"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("mine.mmdp", "solvable_models.py:model", "example-2-smar"):
        low, high = bounds(printed(run("solve", name)))
        assert low <= 10.0 + 1e-9
        assert high >= 10.0 - 1e-9
    assert printed(run("solve", "mine.pomdpx"))["model"].endswith("acts, then observes")


def test_large_files_are_solved_by_features_and_say_who_begins(run, tmp_path):
    write_model(mm.load_benchmark("fleet-6"), tmp_path / "fleet.pomdpx")
    noted = "Note: this file acts first."
    lines = printed(run("solve", tmp_path / "fleet.pomdpx", "--timeout", "1"), noted=noted)
    assert lines["model"].endswith("observes, then acts")
    low, high = bounds(lines)
    assert low <= -0.449  # bounds of fleet-6 in docs/solving.md
    assert high >= -2.162
    # Whoever chooses is told nothing.
    printed(run("solve", tmp_path / "fleet.pomdpx", "--timeout", "1", "--observe-initial"))


def test_files_are_written_into_new_folders(run, tmp_path):
    new = tmp_path / "new"
    native, foreign, table, picture = new / "p.mmpolicy", new / "p.policyx", new / "t.CSV", new / "b.svg"
    result = run("solve", "example-1", "-o", native, "-o", foreign, "--trace", table, "--plot", picture)
    lines = printed(result)
    assert [line for line in result.stdout.splitlines() if line.startswith("Written")] == [
        f"Written to {path}" for path in (native, foreign, table, picture)
    ]
    low, high = bounds(lines)
    policy = mm.AlphaVectorPolicy.load(native)
    assert policy.initial_value >= low - 1e-9 * abs(low)
    same = read_policyx(foreign, mm.load_benchmark("example-1"))
    for ours, theirs in zip(policy.components, same.components, strict=True):
        assert np.array_equal(ours.values, theirs.values)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["lower"]) == pytest.approx(low, rel=1e-9)
    assert float(rows[-1]["upper"]) == pytest.approx(high, rel=1e-9)
    assert picture.read_text().startswith("<?xml")
    assert sorted(path.name for path in new.iterdir()) == ["b.svg", "p.mmpolicy", "p.policyx", "t.CSV"]


def test_a_deployed_policy_of_a_file_knows_its_labels(run, tiger, tmp_path):
    assert run("solve", tiger, "-o", tmp_path / "tiger.mmpolicy").exit_code == 0
    agent = mm.AlphaVectorPolicy.load(tmp_path / "tiger.mmpolicy").agent()
    assert agent.reset() == "listen"
    assert agent.step("hear-left") == "listen"
    assert agent.step("hear-left") == "open-right"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--timeout", 0], "timeout"),
        (["--memory", 0], "memory"),
        (["--max-trials", 0], "trials"),
        (["--max-trials", 2, "--precision", 0], "trials"),
        (["--precision", 0.5], "precision"),
        (["--precision", 0, "--absolute-precision", 1], "precision"),
        (["--precision", "inf"], "precision"),
    ],
)
def test_limits_end_the_search_with_a_result(run, options, status):
    lines = printed(run("solve", "example-3", *options))
    assert lines["status"].startswith(f"{status}: ")
    low, high = bounds(lines)
    assert low <= 5.3601
    assert high >= 5.3599


def test_limits_are_met(run):
    low, high = bounds(printed(run("solve", "example-3", "--precision", 0, "--absolute-precision", 0.1)))
    assert high - low <= 0.1
    low, high = bounds(printed(run("solve", "example-3", "--precision", 1e-6)))
    assert high - low <= 1e-6 * low


def test_the_same_seed_prints_the_same(run):
    once, again = (run("solve", "example-3", "--seed", 5, "--max-trials", 4).stdout for _ in range(2))
    assert [line for line in once.splitlines() if not line.startswith("status")] == [
        line for line in again.splitlines() if not line.startswith("status")
    ]


def test_the_first_observation_can_be_had_or_not(run):
    """Acting without the first observation is worth less; a first action is then always said."""
    observing = printed(run("solve", "example-1", "--observe-initial", "--precision", 1e-4))
    acting = printed(run("solve", "example-1", "--act-first", "--precision", 1e-4))
    assert acting["model"].endswith("acts, then observes")
    assert acting["first action"] in ("guess x", "guess y")
    assert bounds(acting)[1] < bounds(observing)[0]


def test_a_saved_policy_remembers_how_it_begins(run, tmp_path):
    path = tmp_path / "p.mmpolicy"
    assert run("solve", "example-1", "--act-first", "-o", path).exit_code == 0
    policy = mm.AlphaVectorPolicy.load(path)
    assert not policy.observe_initial
    assert policy.agent().reset() == first_action(policy)


def test_quiet_prints_one_line(run, tmp_path):
    result = run("solve", "example-1", "--quiet", "-o", tmp_path / "p.mmpolicy")
    assert result.exit_code == 0
    assert result.output.startswith("value in [6.09")
    assert len(result.output.splitlines()) == 1
    assert (tmp_path / "p.mmpolicy").exists()


def one_way(**changes):
    """Return a model in which one moves to the end, or is there already."""
    options = {
        "features": {"place": ["[here]", "there"]},
        "actions": ["[stay]", "go"],
        "transition": lambda state, action: {state if action == "[stay]" else ("there",): 1.0},
        "reward": lambda state, action: 1.0 if action == "go" else 0.0,
        "initial": {("[here]",): 1.0},
        "terminal": lambda state: state.place == "there",
        "discount": 0.9,
    } | changes
    mdp = mm.FactoredMDP(**options)
    return mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))


def test_one_first_action_is_said_whatever_is_seen(run, tmp_path):
    one_way().save(tmp_path / "go.mmdp")
    lines = printed(run("solve", tmp_path / "go.mmdp"))
    assert lines["first action"] == "go, whatever is seen"
    one_way(reward=lambda state, action: float(action != "go")).save(tmp_path / "stay.mmdp")
    lines = printed(run("solve", tmp_path / "stay.mmdp"))
    assert lines["first action"] == "[stay], whatever is seen"
    assert bounds(lines) == pytest.approx((10.0, 10.0), rel=1e-3)


def test_where_everything_has_ended_there_is_nothing_to_do(run, tmp_path):
    one_way(initial={("there",): 1.0}).save(tmp_path / "over.mmdp")
    for options in ((), ("--act-first",)):
        lines = printed(run("solve", tmp_path / "over.mmdp", *options))
        assert bounds(lines) == (0.0, 0.0)
        assert "first action" not in lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "policy.txt"], "policy.txt: a policy's name must end in .mmpolicy or .policyx"),
        (["-o", "policy"], "policy: a policy's name must end in"),
        (["-o", ""], "a policy's name must end in"),
        (["-o", "good.mmpolicy", "-o", "bad.pomdp"], "bad.pomdp: a policy's name"),
        (["-o", "folder.mmpolicy"], "folder.mmpolicy is a folder"),
        (["-o", "file/p.mmpolicy"], "file/p.mmpolicy: cannot be written (Not a directory)"),
        (["-o", f"{'long' * 64}.mmpolicy"], "cannot be written (File name too long)"),
        (["--trace", "trace.txt"], "trace.txt: a trace's name must end in .csv"),
        (["--trace", "file/t.csv"], "file/t.csv: cannot be written"),
        (["--plot", "plot.gif"], "plot.gif: a picture's name must end in .svg"),
        (["--plot", "file/p.svg"], "file/p.svg: cannot be written"),
        (["--precision", "-0.1"], "--precision"),
        (["--precision", "fine"], "--precision"),
        (["--precision", "nan"], "'--precision': 'nan' is not a number"),
        (["--absolute-precision", "-1"], "--absolute-precision"),
        (["--timeout", "-1"], "--timeout"),
        (["--timeout", "1h"], "--timeout"),
        (["--timeout", "nan"], "'--timeout': 'nan' is not a number"),
        (["--memory", "-5"], "--memory"),
        (["--memory", "nan"], "'--memory': 'nan' is not a number"),
        (["--max-trials", "-1"], "--max-trials"),
        (["--max-trials", "1.5"], "--max-trials"),
        (["--seed", "-1"], "--seed"),
        (["--observe-initial", "--warm-start", "x"], "--warm-start"),
        (["another-model"], "another-model"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_read(run, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("folder.mmpolicy").mkdir()
    Path("file").write_text("")
    before = sorted(tmp_path.iterdir())
    result = run("solve", "no-such-model", *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_a_model_is_needed(run):
    assert run("solve").exit_code == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing stops the administrator")
def test_a_folder_without_permission_is_said_first(run, tmp_path):
    tmp_path.chmod(0o500)
    result = run("solve", "no-such-model", "-o", tmp_path / "p.mmpolicy")
    tmp_path.chmod(0o700)
    assert result.exit_code == 2
    assert "Permission denied" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("exampel-1", None, "did you mean 'example-1'"),
        ("absent.pomdp", None, "absent.pomdp: cannot be read"),
        ("absent.pomdpx", None, "absent.pomdpx: cannot be read"),
        ("absent.mmdp", None, "absent.mmdp"),
        ("broken.pomdp", "states: 2 2", "broken.pomdp"),
        ("sum.pomdp", TIGER.replace("0.85 0.15", "0.85 0.25"), "sum.pomdp"),
        ("undiscounted.pomdp", TIGER.replace("0.95", "1.0"), "discount"),
        (
            "mdp_without_missingness.py:mdp",
            "import missmdp\nmdp = missmdp.load_benchmark('example-1').mdp\n",
            "missmdp learn",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_said(tmp_path, monkeypatch, run, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name.partition(":")[0]).write_text(content)
    result = run("solve", name, "-o", "p.mmpolicy")
    assert isinstance(result.exception, mm.MissMDPError)
    assert message in str(result.exception)
    assert not Path("p.mmpolicy").exists()


def test_what_cannot_be_written_in_the_end_does_not_cost_the_result(run, tmp_path, monkeypatch):
    """The disk may fill up while solving: other files are written, and the result is printed."""
    import missmdp.interop.pomdpx.policyx

    def fail(policy, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(missmdp.interop.pomdpx.policyx, "write_policyx", fail)
    foreign, table = tmp_path / "p.policyx", tmp_path / "t.csv"
    result = run("solve", "example-1", "-o", foreign, "--trace", table)
    assert result.exit_code == 2
    assert "lower bound" in result.stdout
    assert f"Written to {table}" in result.stdout
    assert str(foreign) not in result.stdout
    assert "No space left on device" in result.stderr
    assert table.exists()


def test_the_policy_is_written_if_nobody_reads_what_is_printed(tmp_path):
    process = start("solve", "example-1", "-o", "p.mmpolicy", cwd=tmp_path)
    assert process.stdout.readline().startswith("model")
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
    assert mm.AlphaVectorPolicy.load(tmp_path / "p.mmpolicy").n_vectors > 0


SEARCHING = """
import signal, sys, threading, time
import missmdp
from missmdp.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored, in a background job

def tell():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)
    time.sleep(0.3)
    print("searching", file=sys.stderr, flush=True)

missmdp.Sarsop(max_trials=0).solve(missmdp.load_benchmark("example-1"))  # kernels are compiled
threading.Thread(target=tell, daemon=True).start()
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_with_the_best_so_far(tmp_path):
    process = start(
        "solve", "predator-mcar", "--precision", 0, "-o", "p.mmpolicy", program=SEARCHING, cwd=tmp_path
    )
    try:
        assert process.stderr.readline() == "searching\n"
        process.send_signal(signal.SIGINT)
    except BaseException:
        process.kill()
        raise
    finally:
        output, errors = process.communicate()
    assert process.returncode == 0
    assert errors == ""
    assert "status        interrupted: " in output
    assert "Written to p.mmpolicy" in output
    low = next(float(line.split()[2]) for line in output.splitlines() if line.startswith("lower"))
    assert mm.AlphaVectorPolicy.load(tmp_path / "p.mmpolicy").initial_value >= low - 1e-9


def test_threads_change_nothing(run, tmp_path, monkeypatch):
    """A plant is searched by features; small grids and memories are enough to see that."""
    for name, entries in {"_FIRST_ENTRIES": 500.0, "_LARGEST": 6000.0}.items():
        monkeypatch.setattr(search, name, entries)
    monkeypatch.setattr(structured, "_FEW_LISTED", 0.0)
    rows = []
    for threads in (1, 2):
        path = tmp_path / f"{threads}.csv"
        options = ("--threads", threads, "--max-trials", 2, "--precision", 0, "--trace", path)
        lines = printed(run("solve", "plant-3", *options))
        assert "one axis per feature" in lines["bounds"]
        with path.open(newline="") as file:
            rows.append([{**row, "seconds": ""} for row in csv.DictReader(file)])
    assert len(rows[0]) > 3
    assert rows[0] == rows[1]
