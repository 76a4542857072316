"""The command `evaluate`: values side by side, and policies that are kept."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import missmdp as mm
from command_output import rows_of, solved, succeeded
from missmdp.experiments.baselines import (
    BaselineSettings,
    MadePolicy,
    make_baseline,
)
from missmdp.experiments.policy_store import PolicyStore
from missmdp.interop import write_policyx
from missmdp.plan.ppo.solver import PPO

# What is printed and written


def test_the_default_policies_are_compared_with_the_optimal_one(run, tmp_path, ward):
    out = succeeded(run("evaluate", ward, "--episodes", 300, "-o", tmp_path / "v.csv"))
    lines = out.splitlines()
    assert lines[0].startswith(f"model         {ward}: 3 states, 2 actions, 4 observations")
    assert lines[1].startswith("evaluation    300 episodes, at most ")
    assert lines[1].endswith("decisions each, seed 0")
    assert "random        uniformly random actions" in lines
    assert any(line.startswith("prior         under the prior, value in [") for line in lines)
    assert any(line.startswith("optimal       value in [−") for line in lines)
    title = next(line for line in lines if line.startswith("policy"))
    assert title.endswith("  normalised")
    assert "95 % interval" in title
    assert "− optimal" in title
    assert lines[-1] == f"Written to {tmp_path / 'v.csv'}"
    rows = rows_of(tmp_path / "v.csv")
    assert list(rows) == ["random", "prior", "optimal"]
    assert float(rows["optimal"]["normalised"]) == 1.0
    assert float(rows["prior"]["normalised"]) == 0.0
    assert float(rows["random"]["normalised"]) < 0.0


def test_the_figures_are_those_of_compare(run, tmp_path, model):
    policy = solved(model, tmp_path / "mine.mmpolicy")
    options = {"until_stderr": 0.2, "max_episodes": 4000, "horizon": 25, "control_variate": True}
    words = ["--until-stderr", 0.2, "--max-episodes", 4000, "--horizon", 25, "--control-variate"]
    files = ["-o", tmp_path / "v.json", "--returns", tmp_path / "r.parquet"]
    policies = ["--policy", "random", "--policy", f"mine={tmp_path / 'mine.mmpolicy'}"]
    out = succeeded(
        run(
            "evaluate",
            "example-1",
            *policies,
            "--episodes",
            64,
            "--seed",
            5,
            "--confidence",
            0.9,
            *words,
            *files,
        )
    )
    expected = mm.compare({"random": None, "mine": policy}, model, 64, 5, **options)
    rows = json.loads((tmp_path / "v.json").read_text())
    for row, wanted in zip(rows, expected.rows(0.9), strict=True):
        assert {key: row[key] for key in wanted} == wanted
        assert row["control_variate"]
        assert (row["horizon"], row["seed"], row["confidence"], row["until_stderr"]) == (25, 5, 0.9, 0.2)
        assert row["reference"] == "random"
    assert "90 % interval" in out
    setting = "until a standard error of 0.2, at most 25 decisions each, seed 5, with a control variate"
    assert setting in " ".join(out.split())
    returns = pq.read_table(tmp_path / "r.parquet").to_pandas()
    for name in ("random", "mine"):
        mine = returns[returns["policy"] == name]
        assert np.array_equal(mine["return"], expected[name].returns)
        assert np.array_equal(mine["estimate"], expected[name].controlled)
        assert np.array_equal(mine["episode"], np.arange(expected[name].episodes))


def test_rows_say_how_to_run_it_again(run, tmp_path, model):
    path = tmp_path / "mine.mmpolicy"
    solved(model, path)
    succeeded(
        run(
            *("evaluate", "example-1", "--policy", path, "--policy", "optimal", "--policy", "pomcp"),
            *("--precision", 0.01, "--solve-timeout", 9, "--policy-seed", 4, "--tree-queries", 7),
            *("--max-depth", 3, "--exploration", 2.5, "--belief", "exact", "--episodes", 4),
            *("-o", tmp_path / "v.json", "--returns", tmp_path / "r.csv"),
        )
    )
    by_name = {row["policy"]: row for row in json.loads((tmp_path / "v.json").read_text())}
    assert by_name["optimal"]["settings"] == {"timeout": 9.0, "precision": 0.01, "seed": 4}
    assert by_name["optimal"]["lower"] <= by_name["optimal"]["upper"]
    assert by_name["pomcp"]["settings"] == {
        "tree_queries": 7,
        "max_depth": 3,
        "exploration": 2.5,
        "belief": "exact",
    }, "its search draws from the seed of the episodes"
    assert by_name["mine"]["kind"] == "file"
    assert by_name["mine"]["settings"]["file"] == str(path)
    assert len(by_name["mine"]["settings"]["sha256"]) == 64
    assert {row["model"] for row in by_name.values()} == {"example-1"}
    assert {row["version"] for row in by_name.values()} == {mm.__version__}
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + 3 * 4


def test_parquet_is_written_too(run, tmp_path):
    succeeded(
        run("evaluate", "example-1", "--policy", "random", "--episodes", 5, "-o", tmp_path / "v.parquet")
    )
    table = pq.read_table(tmp_path / "v.parquet").to_pydict()
    assert table["policy"] == ["random"]
    assert json.loads(table["settings"][0]) == {}


def test_one_policy_has_no_difference(run):
    out = succeeded(run("evaluate", "example-1", "--policy", "random", "--episodes", 50))
    assert "−" not in next(line for line in out.splitlines() if line.startswith("policy"))
    assert "normalised" not in out


def test_where_prior_and_optimal_are_worth_the_same_there_is_no_scale(run):
    """Whatever is seen in this model, one action is best, so that all episodes have the same return."""
    out = succeeded(run("evaluate", "example-2-smar", "--episodes", 30))
    assert "No normalised values: the optimal policy is worth 9.99906 and the prior's 9.99906" in " ".join(
        out.split()
    )
    assert "optimal  9.9991  0.0000  [9.9991, 9.9991]" in out


def test_one_episode_has_no_error(run, tmp_path):
    out = succeeded(run("evaluate", "example-1", "--episodes", 1, "-o", tmp_path / "v.json"))
    assert "No normalised values: one episode has no error" in out
    assert json.loads((tmp_path / "v.json").read_text())[0]["stderr"] is None


def test_quiet_prints_values_alone(run):
    out = succeeded(run("evaluate", "example-1", "--policy", "random", "--policy", "optimal", "-q"))
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["random", "optimal", "random − optimal"]


def test_the_reference_can_be_chosen(run):
    out = succeeded(run("evaluate", "example-1", "--reference", "random", "--episodes", 20))
    assert "− random" in out


def test_two_files_can_have_one_stem_if_named(run, tmp_path, model):
    policy = solved(model, tmp_path / "p.mmpolicy")
    write_policyx(policy, tmp_path / "p.policyx")
    out = succeeded(
        run(
            *("evaluate", "example-1", "--policy", tmp_path / "p.mmpolicy", "--episodes", 200),
            *("--policy", f"foreign={tmp_path / 'p.policyx'}"),
        )
    )
    table = out.splitlines()[-2:]
    assert table[0].split()[1:3] == table[1].split()[1:3], "it is the same policy"
    assert table[1].split()[-3:] == ["0", "[0,", "0]"]


def test_a_file_with_an_equals_sign_is_found(run, tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solved(model, "a=b.mmpolicy")
    assert "a=b  " in succeeded(run("evaluate", "example-1", "--policy", "a=b.mmpolicy", "--episodes", 9))


def test_a_baseline_can_have_another_name(run, ward):
    out = succeeded(
        run("evaluate", ward, "--policy", "best=optimal", "--policy", "guess=prior", "--episodes", 99)
    )
    assert "− best" in out
    assert "normalised" in out


# Models


def test_pomcp_plans_in_files_of_other_tools(run, tiger):
    words = ("--policy", "pomcp", "--tree-queries", 20, "--episodes", 5, "--horizon", 20)
    assert "pomcp " in succeeded(run("evaluate", tiger, *words))


def test_the_online_planner_plans_there_too(run, tiger, tmp_path):
    words = (
        "--policy",
        "online",
        "--expansions",
        20,
        "--episodes",
        5,
        "--horizon",
        20,
        "-o",
        tmp_path / "v.json",
    )
    assert "online " in succeeded(run("evaluate", tiger, *words))
    (row,) = json.loads((tmp_path / "v.json").read_text())
    assert (row["kind"], row["settings"]) == ("online", {"expansions": 20})


def test_a_model_that_no_file_can_hold_is_evaluated(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("dated_models.py").write_text(
        "import datetime, missmdp as mm\n"
        "days = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]\n"
        "mdp = mm.FactoredMDP(features={'day': days}, actions=['go'], transition=lambda s, a: {s: 1.0},\n"
        "    reward=lambda s, a: 1.0, initial={(days[0],): 1.0}, discount=0.5, progress=False)\n"
        "model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))\n"
    )
    succeeded(run("evaluate", "dated_models.py:model", "--policy", "random", "--episodes", 3, "-o", "v.json"))
    assert json.loads(Path("v.json").read_text())[0]["model_sha256"] is None
    result = run("evaluate", "dated_models.py:model", "--policy", "optimal", "--save-policies", "kept")
    assert isinstance(result.exception, mm.MissMDPError)
    assert "cannot be saved" in str(result.exception)


def test_a_baseline_under_two_names_is_made_once(run, monkeypatch):
    solve, calls = mm.Sarsop.solve, []
    monkeypatch.setattr(mm.Sarsop, "solve", lambda self, model: calls.append(1) or solve(self, model))
    out = succeeded(
        run("evaluate", "example-1", "--policy", "a=optimal", "--policy", "b=optimal", "--episodes", 9)
    )
    assert "\nb  " in out
    assert len(calls) == 1


def test_files_of_other_tools_are_evaluated(run, tiger, tmp_path):
    out = succeeded(run("evaluate", tiger, "--episodes", 200, "-o", tmp_path / "v.csv"))
    assert "acts, then observes" in out
    rows = rows_of(tmp_path / "v.csv")
    assert list(rows) == ["random", "optimal"]
    value, error = float(rows["optimal"]["value"]), float(rows["optimal"]["stderr"])
    # 19.37 is known; beyond 6 standard errors with probability 2 · 10⁻⁹.
    assert abs(value - 19.37) < 6 * error


def test_nothing_missing_is_worth_more(run, tmp_path):
    for name, words in (("seen", ["--fully-observed"]), ("holes", [])):
        succeeded(
            run("evaluate", "example-1", "--policy", "optimal", *words, "-o", tmp_path / f"{name}.csv", "-q")
        )
    seen, holes = (rows_of(tmp_path / f"{name}.csv")["optimal"] for name in ("seen", "holes"))
    assert float(seen["lower"]) > float(holes["upper"])
    assert float(seen["value"]) > float(holes["value"])
    assert (seen["fully_observed"], holes["fully_observed"]) == ("True", "False")
    assert seen["model_sha256"] != holes["model_sha256"]


def test_a_policy_for_another_missingness_is_told_of_what_it_excludes(run, tmp_path, model):
    solved(mm.fully_observed_model(model), tmp_path / "naive.mmpolicy")
    out = succeeded(run("evaluate", "example-1", "--policy", tmp_path / "naive.mmpolicy", "--episodes", 40))
    assert "naive saw " in out
    assert "something that its own model rules out, and continued (" in " ".join(out.split())


def test_collapses_of_pomcp_are_told(run):
    out = succeeded(
        run(
            "evaluate", "icu-smar", "--policy", "pomcp", "--tree-queries", 3, "--episodes", 2, "--horizon", 30
        )
    )
    assert "pomcp: no particle survived " in out


def test_a_wide_gap_is_told(run):
    out = succeeded(run("evaluate", "example-3", "--solve-timeout", 0, "--episodes", 20))
    assert "optimal was solved only to a wide gap" in out
    assert "--solve-timeout" in out


@pytest.mark.slow
def test_what_more_time_would_not_solve_is_told(run):
    given = (
        "evaluate",
        "plant-8",
        "--policy",
        "prior",
        "--solve-timeout",
        20,
        "--episodes",
        5,
        "--horizon",
        5,
    )
    out = " ".join(succeeded(run(*given)).split())
    assert "prior was solved only to a wide gap" in out
    assert ": the solver has nothing more to try here" in out
    assert "--policy online or pomcp" in out


@pytest.mark.parametrize(
    ("lower", "upper", "gap"), [(-10.0, -9.0, 0.1), (0.0, 0.0, 0.0), (0.0, 1.0, np.inf), (None, None, None)]
)
def test_gaps_are_relative_to_the_lower_bound(lower, upper, gap):
    assert MadePolicy(mm.UniformPolicy(), "optimal", "", lower=lower, upper=upper).relative_gap == gap


def test_an_error_that_is_not_reached_is_told(run):
    out = succeeded(
        run(
            *("evaluate", "example-1", "--policy", "random", "--until-stderr", 1e-3, "--max-episodes", 30),
            *("--episodes", 10),
        )
    )
    assert "After 30 episodes the standard error is still above 0.001." in out


def test_running_out_of_time_is_told(run):
    out = succeeded(
        run("evaluate", "predator-smar", "--policy", "random", "--episodes", 10**8, "--timeout", 0.2)
    )
    assert "The time limit was reached after " in out


# Policies that are kept


def test_policies_are_kept_and_found_again(run, tmp_path, monkeypatch):
    words = ("evaluate", "example-1", "--episodes", 50, "--save-policies", tmp_path / "kept")
    first = succeeded(run(*words))
    assert first.count("kept in ") == 2
    files = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert [name.rpartition("-")[0] for name in files] == ["optimal", "optimal", "prior", "prior"]

    def fail(*arguments, **options):
        raise AssertionError("there is nothing to solve")

    monkeypatch.setattr(mm.Sarsop, "solve", fail)
    again = succeeded(run(*words))
    assert again.count("found in ") == 2
    assert again.replace("found in", "kept in") == first


@pytest.mark.parametrize("changed", [["--precision", 0.5], ["--policy-seed", 1], ["--fully-observed"]])
def test_other_settings_are_other_policies(run, tmp_path, changed):
    words = ("evaluate", "example-1", "--policy", "optimal", "--episodes", 5, "--save-policies", tmp_path)
    succeeded(run(*words))
    assert "kept in" in succeeded(run(*words, *changed))
    assert len(list(tmp_path.glob("*.mmpolicy"))) == 2


@pytest.mark.parametrize("damage", ["policy", "cell", "gone", "swapped"])
def test_what_is_damaged_is_made_again(run, tmp_path, damage):
    words = ("evaluate", "example-1", "--policy", "optimal", "--episodes", 5, "--save-policies", tmp_path)
    succeeded(run(*words))
    (policy,), (told,) = tmp_path.glob("*.mmpolicy"), tmp_path.glob("*.cell")
    match damage:
        case "policy":
            policy.write_bytes(policy.read_bytes()[:-9])
        case "cell":
            told.write_text("{")
        case "gone":
            policy.unlink()
        case _:
            other = (*words[:4], "--policy-seed", 1, *words[4:])
            succeeded(run(*other))
            (another,) = set(tmp_path.glob("*.cell")) - {told}
            told.write_bytes(another.read_bytes())
    result = run(*words)
    assert result.exit_code == 0
    assert "kept in" in result.stdout
    assert "found in" in succeeded(run(*words))


def test_a_policy_that_was_interrupted_is_not_used_again(tmp_path, model):
    folder = PolicyStore(tmp_path, model, BaselineSettings())
    made = make_baseline("optimal", model, progress=False)
    object.__setattr__(made, "status", "interrupted")
    folder.keep("optimal", made)
    assert folder.find("optimal") is None


def test_what_is_ready_is_kept_if_something_later_fails(run, tmp_path, trained_without_torch, monkeypatch):
    def fail(self, model):
        raise mm.MissMDPError("the network did not want to learn")

    monkeypatch.setattr(PPO, "solve", fail)
    words = ("--policy", "optimal", "--policy", "ppo", "--save-policies", tmp_path)
    result = run("evaluate", "example-1", *words)
    assert result.exit_code == 2
    assert isinstance(result.exception, mm.MissMDPError)
    assert len(list(tmp_path.glob("optimal-*.mmpolicy"))) == 1


def test_what_cannot_be_kept_does_not_cost_the_result(run, tmp_path, monkeypatch):
    def fail(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(mm.AlphaVectorPolicy, "save", fail)
    words = (
        "--policy",
        "optimal",
        "--episodes",
        5,
        "--save-policies",
        tmp_path / "f",
        "-o",
        tmp_path / "v.csv",
    )
    result = run("evaluate", "example-1", *words)
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert "policy " in result.stdout
    assert (tmp_path / "v.csv").exists()


def test_results_that_cannot_be_written_are_still_printed(run, tmp_path, monkeypatch):
    from missmdp.experiments import tables

    def fail(path, content):
        raise mm.MissMDPError(f"{path}: cannot be written (No space left on device)")

    monkeypatch.setattr(tables, "write_atomically", fail)
    result = run("evaluate", "example-1", "--policy", "random", "--episodes", 5, "-o", tmp_path / "v.csv")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert "random  " in result.stdout


# PPO


def test_ppo_is_trained_with_the_settings_of_a_search(run, tmp_path, trained_without_torch):
    chosen = mm.PPOSettings(layers=3, units=32, minibatch=64, steps=5000)
    (tmp_path / "best.json").write_text(chosen.to_json())
    settings = ("--ppo-settings", tmp_path / "best.json")
    both = ("--policy", "ppo", "--policy", "ppo-memory")
    out = succeeded(
        run("evaluate", "example-1", *both, *settings, "--policy-seed", 3, "--episodes", 20, "--horizon", 9)
    )
    assert trained_without_torch == [(chosen, 3), (mm.PPOSettings(memory=True), 3)]
    assert "trained for 5,000 steps" in out
    trained_without_torch.clear()
    succeeded(
        run("evaluate", "example-1", "--policy", "ppo", *settings, "--ppo-steps", 70, "--episodes", 5, "-q")
    )
    (used, _), *_ = trained_without_torch
    assert (used.steps, used.layers) == (70, 3)


def test_networks_are_kept_and_found(run, tmp_path, trained_without_torch):
    words = ("evaluate", "example-1", "--policy", "ppo", "--episodes", 9, "--save-policies", tmp_path)
    assert "kept in" in succeeded(run(*words))
    assert "found in" in succeeded(run(*words))
    assert len(trained_without_torch) == 1
    (path,) = tmp_path.glob("ppo-*.mmpolicy")
    out = succeeded(run("evaluate", "example-1", "--policy", path, "--episodes", 9))
    assert "a network, without memory" in " ".join(out.split())


def test_ppo_trains_for_real(run):
    pytest.importorskip("stable_baselines3")
    out = succeeded(run("evaluate", "example-1", "--policy", "ppo", "--ppo-steps", 300, "--episodes", 9))
    assert "trained for " in out


def test_without_the_extra_it_is_said_how_to_get_it(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)

    def fail(*arguments, **options):
        raise AssertionError("this is to be said before anything is solved")

    monkeypatch.setattr(mm.Sarsop, "solve", fail)
    result = run("evaluate", "example-1", "--policy", "optimal", "--policy", "ppo-memory")
    assert result.exit_code == 2
    assert 'pip install "missmdp[ppo]"' in str(result.exception)
