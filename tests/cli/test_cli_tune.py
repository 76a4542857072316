"""The command `tune-ppo`: trials that are kept, the best of them, and what is said when something is wrong."""

import json
import sys
from pathlib import Path

import pytest

import missmdp as mm
from command_output import succeeded
from experiments import stand_in
from missmdp.experiments.ppo_trials import training_seed
from missmdp.plan.ppo.solver import PPO

SHORT = ("--trials", 3, "--steps", 100, "--episodes", 40)


def test_trials_are_printed_and_the_best_is_written(run, tmp_path, trained_without_torch):
    folder = tmp_path / "tuned"
    lines = succeeded(run("tune-ppo", "example-1", "-o", folder, *SHORT)).splitlines()
    assert lines[0].startswith("model         example-1: 4 states")
    for number in (1, 2, 3):
        assert lines[number].startswith(f"trial {number} of 3: ")
        assert lines[number].endswith(", 100 steps in 0.2 s")
    assert " ".join(lines[5].split()) == ("trial value s.e. layers clip entropy KL actor critic batch epochs")
    values = [float(line.split()[1].replace("−", "-")) for line in lines[6:9]]
    assert values == sorted(values, reverse=True)
    best = int(lines[6].split()[0])
    assert lines[10].startswith(f"Trial {best} is the best of 3: ")
    assert "In 40 other episodes it is worth" in lines[11]
    assert lines[-3:] == [
        f"Written to {folder / name}" for name in ("best.json", "best.mmpolicy", "trials.csv")
    ]
    assert max(map(len, lines[5:-3])) <= 100
    assert len(list(folder.glob(f"trial-00{best}-*.cell"))) == 1


def test_the_best_settings_go_into_evaluate(run, tmp_path, trained_without_torch):
    folder = tmp_path / "tuned"
    succeeded(run("tune-ppo", "example-1", "-o", folder, *SHORT))
    out = succeeded(
        run(
            *("evaluate", "example-1", "--policy", f"tuned={folder / 'best.mmpolicy'}", "--policy", "ppo"),
            *("--ppo-settings", folder / "best.json", "--episodes", 20),
        )
    )
    assert "trained for 100 steps" in out
    assert "a network, without memory" in " ".join(out.split())


def test_it_goes_on_where_it_was(run, tmp_path, trained_without_torch):
    first = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT))
    again = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT))
    assert again.count("finished earlier") == 3
    assert again.splitlines()[5:] == first.splitlines()[5:]
    more = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT, "--trials", 4))
    assert more.count("finished earlier") == 3
    assert [seed for _, seed in trained_without_torch] == [training_seed(0, k) for k in (1, 2, 3, 4)]


def test_options_reach_the_search(run, tmp_path, trained_without_torch):
    out = succeeded(
        run(
            *(
                "tune-ppo",
                "example-1",
                "-o",
                tmp_path,
                "--trials",
                1,
                "--steps",
                200,
                "--memory",
                "--seed",
                6,
            ),
            *("--episodes", 30, "--horizon", 7, "--fully-observed"),
        )
    )
    assert "example-1, fully observed: " in out
    told = json.loads((tmp_path / "search.json").read_text())
    assert {key: told[key] for key in ("steps", "memory", "seed", "episodes", "horizon")} == {
        "steps": 200,
        "memory": True,
        "seed": 6,
        "episodes": 30,
        "horizon": 7,
    }
    assert mm.load_policy(tmp_path / "best.mmpolicy").memory


def test_quiet_prints_one_line(run, tmp_path, trained_without_torch):
    out = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT, "--quiet"))
    assert len(out.splitlines()) == 1
    assert "the best of 3" in out


def test_ctrl_c_keeps_what_is_finished(run, tmp_path, monkeypatch):
    def train(self, model):
        status = "interrupted" if self.seed == training_seed(0, 2) else "trained"
        policy = stand_in.drawn_network(model, self.settings, self.seed)
        return stand_in.result_of(policy, self.settings, self.seed, status)

    monkeypatch.setattr(PPO, "solve", train)
    monkeypatch.setattr("missmdp.experiments.baselines.require", lambda module: None)
    out = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT))
    assert "Interrupted: 1 of 3 trials are finished; run it again to resume." in out


def test_it_trains_for_real(run, tmp_path):
    pytest.importorskip("stable_baselines3")
    short = ("--trials", 1, "--steps", 300, "--episodes", 20)
    out = succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *short))
    assert "trial 1 of 1: " in out


# What is wrong


def test_without_the_extra_it_is_said_how_to_get_it(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    result = run("tune-ppo", "example-1", "-o", tmp_path / "tuned")
    assert isinstance(result.exception, mm.MissMDPError)
    assert 'pip install "missmdp[ppo]"' in str(result.exception)
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Missing option '-o'"),
        (["-o", "file"], "file is a file; give a folder"),
        (["-o", "file/tuned"], "cannot be written (Not a directory)"),
        (["-o", "tuned", "--trials", "0"], "--trials"),
        (["-o", "tuned", "--trials", "all"], "--trials"),
        (["-o", "tuned", "--steps", "0"], "--steps"),
        (["-o", "tuned", "--steps", "1e6"], "--steps"),
        (["-o", "tuned", "--seed", "-1"], "--seed"),
        (["-o", "tuned", "--episodes", "1"], "--episodes"),
        (["-o", "tuned", "--horizon", "0"], "--horizon"),
        (["-o", "tuned", "--memory", "yes"], "yes"),
        (["-o", "tuned", "--policy", "ppo"], "--policy"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_read(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    result = run("tune-ppo", "no-such-model", *words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_model_is_needed(run, tmp_path):
    assert run("tune-ppo", "-o", tmp_path).exit_code == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exampel-1", "did you mean 'example-1'"),
        ("absent.mmdp", "absent.mmdp"),
        ("tiger.pomdp", "tiger.pomdp"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(run, tmp_path, name, message):
    result = run("tune-ppo", name, "-o", tmp_path / "tuned")
    assert isinstance(result.exception, mm.MissMDPError)
    assert message in str(result.exception)
    assert not (tmp_path / "tuned").exists()


def test_a_folder_of_another_search_is_refused(run, tmp_path, trained_without_torch):
    succeeded(run("tune-ppo", "example-1", "-o", tmp_path, *SHORT))
    for words, message in [
        (["example-1", *SHORT, "--steps", 200], "with steps = 100, not 200"),
        (["example-1", *SHORT, "--memory"], "with memory = False, not True"),
        (["example-1", *SHORT, "--fully-observed"], "for another model"),
        (["example-3", *SHORT], "for another model"),
    ]:
        result = run("tune-ppo", *words, "-o", tmp_path)
        assert isinstance(result.exception, mm.DataError)
        assert message in str(result.exception)


def test_help_has_examples(run):
    out = succeeded(run("tune-ppo", "--help"))
    assert "missmdp tune-ppo icu-smar -o tuned" in out
    assert "--ppo-settings tuned/best.json" in out
