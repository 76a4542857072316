"""The command `export`: models for other tools."""

import pytest

import missmdp as mm
from missmdp.interop import read_model


@pytest.mark.parametrize("suffix", [".pomdp", ".pomdpx", ".POMDP"])
def test_a_benchmark_is_written(run, tmp_path, suffix):
    out = tmp_path / "new" / f"model{suffix}"
    result = run("export", "example-1", out)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"4 states, 2 actions and 6 observations written to {out}")
    assert "the first action comes before the first observation" in result.output
    assert len(result.output.splitlines()) == 1
    assert read_model(out).n_observations == 6


def test_files_are_converted(run, tmp_path):
    mm.load_benchmark("example-3").save(tmp_path / "model.mmdp")
    assert run("export", tmp_path / "model.mmdp", tmp_path / "one.pomdpx").exit_code == 0
    assert run("export", tmp_path / "one.pomdpx", tmp_path / "two.pomdp").exit_code == 0
    result = run("export", tmp_path / "two.pomdp", tmp_path / "three.pomdpx")
    assert result.output == f"4 states, 2 actions and 6 observations written to {tmp_path / 'three.pomdpx'}\n"


@pytest.mark.parametrize("out", ["model.txt", "model", "model.mmdp"])
def test_other_endings_are_a_mistake_of_usage(run, tmp_path, out):
    result = run("export", "example-1", tmp_path / out)
    assert result.exit_code == 2
    assert "OUT must end in .pomdp or .pomdpx" in result.output
    assert not (tmp_path / out).exists()


def test_broken_models_are_an_error(run, tmp_path):
    (tmp_path / "broken.pomdp").write_text("discount: 0.9\nstates: two two\n")
    result = run("export", tmp_path / "broken.pomdp", tmp_path / "out.pomdpx")
    assert isinstance(result.exception, mm.FormatError)
    assert isinstance(run("export", "icu-samr", tmp_path / "out.pomdpx").exception, mm.ModelError)
    assert not (tmp_path / "out.pomdpx").exists()
