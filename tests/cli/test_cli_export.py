"""The command `export`: models for other tools."""

import pytest

import missmdp as mm
from missmdp.interop import read_miss_mdp, read_model, write_pomdpx


@pytest.mark.parametrize("suffix", [".pomdp", ".pomdpx", ".POMDP"])
def test_a_benchmark_is_written(run, tmp_path, suffix):
    out = tmp_path / "new" / f"model{suffix}"
    result = run("export", "example-1", out)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"4 states, 2 actions and 6 observations written to {out}")
    assert "the first action comes before the first observation" in result.output
    assert len(result.output.splitlines()) == 1
    assert read_model(out).n_observations == 6


def test_a_large_file_is_told_of_its_smaller_form(run, tmp_path, monkeypatch):
    monkeypatch.setattr("missmdp.cli.model_commands._LARGE_FILE", 1000)
    monkeypatch.setattr("missmdp.interop.pomdpx.writer._LARGE", 0)
    large = run("export", "fleet-2", tmp_path / "fleet.pomdp").output.splitlines()
    assert len(large) == 2
    assert large[1].endswith(" MB; as .pomdpx, written feature by feature, it would be small.")
    assert len(run("export", "fleet-2", tmp_path / "fleet.pomdpx").output.splitlines()) == 1


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


def test_large_models_are_written_feature_by_feature(run, tmp_path):
    out = tmp_path / "fleet.pomdpx"
    result = run("export", "fleet-6", out)
    assert result.output == (
        f"1,458 states and 7 actions written to {out}, feature by feature; in the file, the first action comes before "
        "the first observation\n"
    )
    assert read_miss_mdp(out).missingness == mm.load_benchmark("fleet-6").missingness


def test_how_files_are_written_can_be_chosen(run, tmp_path):
    whole, apart = tmp_path / "whole.pomdpx", tmp_path / "apart.pomdpx"
    assert "27 states" not in run("export", "fleet-3", whole, "--as-a-whole").output
    assert "feature by feature" in run("export", "fleet-3", apart, "--by-features").output
    assert whole.read_text().count("<StateVar") == 2
    assert apart.read_text().count("<StateVar") == 4
    result = run("export", "fleet-3", tmp_path / "x.pomdp", "--by-features")
    assert result.exit_code == 2
    assert "with --by-features, OUT must end in .pomdpx" in result.output
    assert "states are not all combinations" in str(
        run("export", "predator-smar", tmp_path / "x.pomdpx", "--by-features").exception
    )


def test_files_by_features_are_models_with_features(run, tmp_path):
    write_pomdpx(mm.load_benchmark("fleet-3"), tmp_path / "fleet.pomdpx", by_features=True)
    shown = run("show", tmp_path / "fleet.pomdpx")
    assert "wear_1, wear_2, wear_3" in shown.output
    write_pomdpx(mm.load_benchmark("fleet-3"), tmp_path / "whole.pomdpx")
    error = run("show", tmp_path / "whole.pomdpx").exception
    assert isinstance(error, mm.ModelError)
    assert "its states have no features, which this command needs" in str(error)
    assert "depends on the next value" in str(error)
    (tmp_path / "cut.pomdpx").write_text("<pomdpx>")
    assert isinstance(run("show", tmp_path / "cut.pomdpx").exception, mm.FormatError)
