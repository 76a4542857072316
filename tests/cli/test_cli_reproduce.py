import csv
import signal
import time

import pytest

from command_output import start, succeeded
from missmdp.experiments.reproduce.config import PROFILES, ReproduceConfig

SMALLEST = [
    "--profile",
    "smoke",
    "--benchmarks",
    "predator-smar",
    "--sizes",
    "50,100",
    "--runs",
    "2",
    "--value-sizes",
    "100",
    "--value-runs",
    "2",
    "--episodes",
    "20",
    "--pomcp-episodes",
    "2",
    "--max-trials",
    "1",
    "--optimal-trials",
    "2",
    "--prior-trials",
    "1",
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from missmdp.cli.main import cli

    folder = tmp_path_factory.mktemp("reproduced") / "run"
    with pytest.raises(SystemExit) as ended:
        cli(["reproduce", *SMALLEST, "--workers", "1", "-o", str(folder), "--quiet"])
    assert ended.value.code == 0
    return folder


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_tables_figures_and_a_page(finished):
    assert len(rows(finished / "tables" / "learning.csv")) == 2 * 3
    assert len(rows(finished / "tables" / "value_runs.csv")) == 2 * 3
    assert {row["policy"] for row in rows(finished / "tables" / "baselines.csv")} == {
        "random",
        "prior",
        "optimal",
        "pomcp",
    }
    assert (finished / "report.html").stat().st_size > 10_000
    assert (finished / "figures" / "learning-curves.svg").is_file()
    assert ReproduceConfig.load(finished / "config.toml").episodes == 20


def test_the_folder_alone_says_what_to_go_on_with(run, finished):
    output = succeeded(run("reproduce", "-o", finished, "--workers", "1"))
    assert "14 cells (14 from before)" in output
    assert "predator-smar" in output
    assert "1 is the value of the optimal policy" in output


def test_a_dry_run_runs_nothing(run, tmp_path, finished):
    target = tmp_path / "nothing"
    output = succeeded(run("reproduce", "--profile", "small", "--dry-run", "-o", target, "--workers", "4"))
    assert "1,626 cells, of which 0 are finished" in output
    assert "with 4 processes" in output
    assert not target.exists()
    output = succeeded(run("reproduce", "--dry-run", "-o", finished))
    assert "14 cells, of which 14 are finished" in output
    assert "may take" not in output


def settings(run, tmp_path, *options):
    """Return the configuration that options come to, from a run with nothing to do."""
    target = tmp_path / "asked"
    nothing = (
        "--value-sizes",
        "none",
        "--baselines",
        "none",
        "--sizes",
        "10",
        "--runs",
        "1",
        "--no-fully-observed",
    )
    succeeded(run("reproduce", "--quiet", "--workers", "1", "-o", target, *options, *nothing))
    return ReproduceConfig.load(target / "config.toml")


def test_options_override_the_file_and_the_file_the_profile(run, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('episodes = 300\nprecision = 0.5\nbenchmarks = ["icu-smar"]\n')
    config = settings(run, tmp_path, "--profile", "smoke", "--config", path, "--precision", "0.25")
    assert (config.benchmarks, config.episodes, config.precision) == (("icu-smar",), 300, 0.25)
    assert config.tree_queries == PROFILES["smoke"].tree_queries


def test_settings_of_one_benchmark(run, tmp_path):
    asked = ("--profile", "small", "--benchmarks", "predator-mcar,predator-smar", "--max-trials", "7")
    config = settings(
        run, tmp_path, *asked, "--only", "predator-smar.max-trials=9", "--only", "predator-smar.episodes=1e4"
    )
    assert config.of("predator-mcar").max_trials == 7
    assert config.of("predator-mcar").episodes == PROFILES["small"].of("predator-mcar").episodes
    own = config.of("predator-smar")
    assert (own.max_trials, own.episodes, own.prior_trials) == (9, 10_000, 6)


def test_an_option_for_each_setting(run):
    output = succeeded(run("reproduce", "--help"))
    for name in ("value-sizes", "max-trials", "baseline-timeout", "no-fully-observed", "only"):
        assert f"--{name}" in output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_keeps_what_is_finished(tmp_path, workers):
    folder = tmp_path / "run"
    process = start("reproduce", "--profile", "smoke", "-o", folder, "--workers", workers)
    try:
        deadline = time.monotonic() + 120.0
        while not list(folder.glob("cells/*.cell")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "interrupted: run it again to resume" in output
    assert "Traceback" not in errors
    assert not (folder / "tables").exists()
    assert list(folder.glob("cells/*.cell"))


def test_a_study_can_be_looked_at_before_it_is_run(run, tmp_path):
    out = succeeded(run("reproduce", "--study", "certificates", "-o", tmp_path / "s", "--dry-run"))
    assert "20 cells, of which 0 are finished" in out
    assert not (tmp_path / "s").exists()


def test_a_study_resumes_and_writes_its_tables(run, tmp_path, monkeypatch):
    from missmdp.experiments.grid.cell import CellResult
    from missmdp.experiments.studies.diagnosis import DiagnosisCell

    found = {"type": "MCAR", "self_censoring": [], "same_graph": True, "p_values": {"MCAR": 0.5}}
    done = []

    def work(cell):
        done.append(cell)
        if len(done) == 4:
            raise KeyboardInterrupt
        return CellResult(found)

    monkeypatch.setattr(DiagnosisCell, "work", work)
    words = ("reproduce", "--study", "diagnosis", "-o", tmp_path, "--workers", 1, "-q")
    assert run(*words).exit_code != 0
    assert len(rows(tmp_path / "tables" / "diagnosis.csv")) == 3
    assert "1,200 of 1,200 cells" in succeeded(run(*words))
    assert len(done) == 4 + 1_197
    assert len(rows(tmp_path / "tables" / "diagnosis.csv")) == 1_200


@pytest.mark.parametrize("more", [["--profile", "smoke"], ["--runs", "3"]])
def test_a_study_has_fixed_settings(run, tmp_path, more):
    result = run("reproduce", "--study", "beyond", "-o", tmp_path, *more)
    assert result.exit_code == 2
    assert "--study has fixed settings" in result.stderr
