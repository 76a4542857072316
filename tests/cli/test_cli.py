"""The command line: what it prints, and that errors are messages."""

import subprocess
import sys

import pytest

import missmdp as mm
from missmdp.cli.main import cli


def test_help_names_every_command(run):
    result = run("--help")
    assert result.exit_code == 0
    for command in cli.commands:
        assert command in result.output
        assert run(command, "--help").exit_code == 0
    assert mm.__version__ in run("--version").output


def test_benchmarks_lists_sizes_and_types(run):
    lines = run("benchmarks").output.splitlines()
    line = next(line for line in lines if line.startswith("predator-mcar"))
    assert line.split()[:4] == ["predator-mcar", "1,765", "3,379", "MCAR"]


def test_show_simulates_and_draws(run, tmp_path):
    picture = tmp_path / "new" / "graph.svg"
    result = run("show", "icu-mnar-unid", "--steps", "2000", "--seed", "4", "--graph", str(picture))
    assert result.exit_code == 0, result.output
    assert "self-censoring     infection" in result.output
    assert "2,000 simulated observations" in result.output
    assert "seed 4" in result.output
    assert picture.read_text().startswith("<?xml")


def test_show_reads_files_and_functions(run, tmp_path, monkeypatch):
    mm.load_benchmark("example-3").save(tmp_path / "mine.mmdp")
    (tmp_path / "my_models.py").write_text(
        "import missmdp as mm\n"
        "def good():\n    return mm.load_benchmark('example-1')\n"
        "def broken():\n    raise KeyError('oops')\n"
        "def other():\n    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "MNAR" in run("show", "mine.mmdp").output
    assert "MCAR" in run("show", "my_models:good").output
    for name, message in {"broken": "oops", "other": "MissMDP", "absent": "no function"}.items():
        result = run("show", f"my_models:{name}")
        assert isinstance(result.exception, mm.ModelError)
        assert message in str(result.exception)
    result = run("show", "no_such_module_anywhere:f")
    assert "no module" in str(result.exception)


def test_graph_prints_dot_or_draws(run, tmp_path):
    text = run("graph", "predator-smar").output
    assert mm.MissingnessGraph.from_dot(text) == mm.load_benchmark("predator-smar").mgraph()
    for suffix in ("svg", "png", "dot"):
        assert run("graph", "example-1", "-o", str(tmp_path / f"g.{suffix}")).exit_code == 0
        assert (tmp_path / f"g.{suffix}").stat().st_size > 100


def test_coverage_lists_the_rarest(run):
    output = run("coverage", "predator-smar", "--most", "3").output
    assert "The policy is fair" in output
    assert "The rarest of 281 states" in output


def test_names_with_brackets_are_printed_as_they_are(run, tmp_path):
    mdp = mm.FactoredMDP(
        {"[bold]x": ["[red]", "b"]}, ["[a]"], lambda s, a: {s: 1.0}, lambda s, a: 0, {("b",): 1.0}
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"[bold]x": 0.5}))
    model.save(tmp_path / "odd.mmdp")
    output = run("show", str(tmp_path / "odd.mmdp"), "--steps", "5").output
    assert "[bold]x (2)" in output
    assert "[a]" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "icu-samr"], "did you mean 'icu-smar'"),
        (["show", "absent.mmdp"], "absent.mmdp"),
        (["graph", "icu-smar", "-o", "x.gif"], ".svg"),
    ],
)
def test_errors_are_messages_without_a_traceback(arguments, message, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "missmdp", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
