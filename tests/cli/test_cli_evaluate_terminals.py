"""The command `evaluate` in terminals and pipes, its help, and Ctrl-C."""

import os
import sys

import pytest

from command_output import rows_of, solved, start, succeeded


def at_width(monkeypatch, width):
    """Print as on a terminal of that width."""
    from missmdp.cli import evaluation_run, printing
    from missmdp.terminal import Console

    def console(*, stderr=False):
        return Console(
            highlight=False,
            soft_wrap=True,
            width=width,
            force_terminal=True,
            color_system=None,
            stderr=stderr,
        )

    monkeypatch.setattr(evaluation_run, "make_console", console)
    monkeypatch.setattr(printing, "make_console", console)


@pytest.mark.parametrize(("width", "tables"), [(120, 1), (100, 1), (80, 2), (70, 2)])
def test_a_narrow_terminal_gets_two_tables(run, monkeypatch, ward, width, tables):
    at_width(monkeypatch, width)
    out = succeeded(run("evaluate", ward, "--episodes", 200))
    assert sum(line.startswith("policy") for line in out.splitlines()) == tables
    # The first line is that of `solve`.
    assert max(map(len, out.splitlines()[1:])) <= width


def test_names_of_any_width_stay_in_their_column(run, tmp_path, model):
    solved(model, tmp_path / "政策.mmpolicy")
    solved(model, tmp_path / "[bold]x.mmpolicy")
    out = succeeded(
        run(
            *("evaluate", "example-1", "--policy", tmp_path / "政策.mmpolicy", "--episodes", 20),
            *("--policy", tmp_path / "[bold]x.mmpolicy"),
        )
    )
    assert "\n政策      " in out
    assert "\n[bold]x  " in out


def test_in_a_pipe_there_is_text_and_nothing_else(tmp_path, ward):
    environment = os.environ | {"COLUMNS": "40", "PYTHONIOENCODING": "utf-8"}
    process = start("evaluate", ward, "--episodes", 50, cwd=tmp_path, env=environment)
    out, errors = process.communicate()
    assert process.returncode == 0
    assert errors == ""
    assert "\x1b" not in out
    assert "normalised" in next(line for line in out.splitlines() if line.startswith("policy"))


def test_the_results_are_written_if_nobody_reads_what_is_printed(tmp_path):
    process = start("evaluate", "example-1", "--episodes", 50, "-o", "v.csv", cwd=tmp_path)
    assert process.stdout.readline().startswith("model")
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
    assert list(rows_of(tmp_path / "v.csv")) == ["random", "prior", "optimal"]


EVALUATING = """
import sys, threading, time, os, signal
import missmdp
from missmdp.evaluation import simulation
from missmdp.cli.main import main

take = simulation.EpisodeStore._take
def tell(self, *arguments):
    take(self, *arguments)
    if len(self) > 2000:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
simulation.EpisodeStore._take = tell
signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored, in a background job
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_with_the_episodes_so_far(tmp_path):
    words = ("--policy", "random", "--episodes", 10**7, "-o", "v.csv")
    process = start("evaluate", "example-1", *words, program=EVALUATING, cwd=tmp_path)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors == ""
    assert "Interrupted after " in out
    assert rows_of(tmp_path / "v.csv")["random"]["ended"] == "interrupted"


SOLVING = """
import os, signal
from missmdp.cli.main import main
from missmdp.plan.stopping import Stopwatch

check = Stopwatch.check
def pressed(self):
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # not while kernels are compiled
        os.kill(os.getpid(), signal.SIGINT)
    check(self)
Stopwatch.check = pressed
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""

STARTING = """
import os, signal
from missmdp.cli.main import main
from missmdp.evaluation.simulation import EpisodeStore

EpisodeStore.extend_to = lambda *arguments: os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_while_solving_goes_on_with_the_best_so_far(tmp_path):
    words = ("--policy", "optimal", "--precision", 0, "--solve-timeout", 60, "--episodes", 20, "-o", "v.csv")
    process = start("evaluate", "icu-smar", *words, program=SOLVING, cwd=tmp_path)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "optimal was interrupted while it was being made: this is the best so far." in out
    row = rows_of(tmp_path / "v.csv")["optimal"]
    assert (row["episodes"], row["ended"]) == ("20", "episodes"), "simulating was not interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_before_every_policy_has_an_episode_leaves_kept_policies_alone(tmp_path):
    words = ("--episodes", 50, "-o", "v.csv", "--save-policies", "kept")
    process = start("evaluate", "example-1", *words, program=STARTING, cwd=tmp_path)
    out, errors = process.communicate()
    assert process.returncode == 130
    assert errors == "Interrupted\n"
    assert "policy " not in out
    assert not (tmp_path / "v.csv").exists()
    assert len(list((tmp_path / "kept").glob("*.mmpolicy"))) == 2


def test_help_says_what_ctrl_c_does(run):
    out = " ".join(succeeded(run("evaluate", "--help")).split())
    assert "Ctrl-C while a policy is being solved or trained continues with the best policy so far;" in out
    assert "Ctrl-C during simulation ends it with the results of the finished episodes." in out
    assert (
        "There are no results until every policy has finished one episode; policies stored with --save-policies are"
        in out
    )


def test_help_says_which_seed_pomcp_follows(run):
    assert "its search follows --seed" in " ".join(succeeded(run("evaluate", "--help")).split())


def test_the_seed_of_policies_changes_nothing_for_pomcp(run):
    words = ("evaluate", "example-1", "--policy", "pomcp", "--tree-queries", 9, "--episodes", 30, "-q")
    assert succeeded(run(*words, "--policy-seed", 1)) == succeeded(run(*words))
    assert succeeded(run(*words, "--seed", 1)) != succeeded(run(*words))


def test_a_failure_is_one_line(tmp_path):
    process = start("evaluate", "no-such-model", cwd=tmp_path)
    out, errors = process.communicate()
    assert process.returncode == 2
    assert out == ""
    assert errors.startswith("Error: ")
    assert len(errors.splitlines()) == 1


def test_help_has_examples(run):
    out = succeeded(run("evaluate", "--help"))
    assert "missmdp evaluate icu-smar --policy optimal" in out
    assert "ppo-memory" in out
