"""The command `plot`: the figures of a reproduction."""

from dataclasses import replace

import pytest

from experiments.reproduce.fake_run import TINY, fake_run
from missmdp.errors import MissMDPError

ONE = replace(TINY, benchmarks=("icu-smar",), fully_observed=False)


def test_figures_are_drawn_and_listed(run, tmp_path):
    folder = fake_run(tmp_path / "run", ONE)
    result = run("plot", folder)
    assert result.exit_code == 0, result.output
    names = ["learning-curves.svg", "baselines.svg"]
    assert result.output.splitlines() == [str(folder / "figures" / name) for name in names]
    assert all((folder / "figures" / name).read_bytes().startswith(b"<?xml") for name in names)


def test_other_formats_in_another_folder(run, tmp_path):
    folder = fake_run(tmp_path / "run", ONE, lambda cell: cell.kind != "baseline")
    result = run("plot", folder, "--format", "pdf", "--format", "png", "-o", tmp_path / "new" / "pictures")
    assert result.exit_code == 0, result.output
    found = sorted(path.name for path in (tmp_path / "new" / "pictures").iterdir())
    assert found == ["baselines.pdf", "baselines.png"]
    assert not (folder / "figures").exists()


def test_an_unfinished_run_says_so(run, tmp_path):
    folder = fake_run(tmp_path / "run", ONE, lambda cell: cell.kind == "value")
    result = run("plot", folder)
    assert result.exit_code == 0, result.output
    # Three sizes with four runs each; random, prior and optimal once, POMCP and two kinds of PPO with three seeds.
    assert "24 of 42 cells are finished; the figures show these" in result.output


def test_folders_without_a_run(run, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        result = run("plot", folder)
        assert result.exit_code == 2
        assert isinstance(result.exception, MissMDPError)
        assert result.output == f"Error: {folder}: no run of `missmdp reproduce` (there is no config.toml)\n"


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        (lambda cell: True, "nothing to draw, none of 42 cells is finished"),
        (
            lambda cell: getattr(cell, "policy", None) != "random",
            "there is nothing to draw: 1 of 42 cells are finished, none with",
        ),
    ],
)
def test_runs_with_nothing_to_draw(run, tmp_path, left_out, message):
    result = run("plot", fake_run(tmp_path / "run", ONE, left_out))
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert not (tmp_path / "run" / "figures").exists()


def test_wrong_calls(run, tmp_path):
    folder = fake_run(tmp_path / "run", ONE, lambda cell: cell.kind != "learning")
    (tmp_path / "file").write_text("")
    for arguments, message in [
        (("--format", "gif"), "'gif' is not one of 'svg', 'png', 'pdf'"),
        (("-o", tmp_path / "file"), "is a file; figures need a folder"),
        (("-o", tmp_path / "file" / "inside"), "cannot be written"),
    ]:
        result = run("plot", folder, *arguments)
        assert result.exit_code == 2
        assert message in result.output
        assert len(result.output.splitlines()) == 1
