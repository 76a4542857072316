"""The command `run`: what it prints, what it refuses, and what it leaves when it is stopped."""

import json
import os
import signal
import time

import pytest

import missmdp as mm
from command_output import start
from experiments.run.wards import ward, ward_mdp
from missmdp.cli.run_commands import run as command
from missmdp.cli.run_commands import run_settings
from missmdp.errors import MissMDPError
from missmdp.experiments.record.coding import read_record
from missmdp.experiments.record.summary_text import summary_text
from missmdp.experiments.run import solving

QUICK = ("--precision", "0.001", "--episodes", "50", "--sensitivity-episodes", "2", "--folds", "2")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "ward.mmdp"
    ward().save(path)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "own.csv"
    mm.collect(ward(), 600, seed=1).to_csv(path)
    return path


@pytest.fixture
def tables(tmp_path):
    """An MDP as a folder of tables."""
    folder, mdp = tmp_path / "tables", ward_mdp()
    folder.mkdir()
    states = list(mdp.states)

    def cells(state):
        return f"{state.infection},{state.ward}"

    transitions = ["infection,ward,action,next_infection,next_ward,probability"]
    rewards = ["infection,ward,action,reward"]
    for a, action in enumerate(mdp.actions):
        matrix = mdp.transition[a].toarray()
        for i, state in enumerate(states):
            rewards.append(f"{cells(state)},{action},{float(mdp.reward[i, a])!r}")
            transitions += [
                f"{cells(state)},{action},{cells(other)},{float(matrix[i, j])!r}"
                for j, other in enumerate(states)
                if matrix[i, j] > 0.0
            ]
    initial = ["infection,ward,probability", "0,normal,0.6", "1,normal,0.4"]
    for name, lines in (("transitions", transitions), ("rewards", rewards), ("initial", initial)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "discount.txt").write_text("0.8")
    return folder


def contents_of(folder):
    return json.loads((folder / "run.json").read_bytes())


def failed(result, code=2):
    """Return the one line that a failing command prints."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("✓")]
    return line


def test_one_table_and_what_it_means(run, model, tmp_path):
    result = run("run", model, "--steps", "1000", "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    stages = [line.split()[1] for line in result.stderr.splitlines()]
    assert stages[:3] == ["Data", "Diagnosis", "Learning"]
    assert stages.count("Solving") == 6
    assert stages[-4:] == ["Evaluating", "Sensitivity", "Certificate", "Report"]
    assert all(line.startswith("✓ ") and line.endswith(" s") for line in result.stderr.splitlines())
    lines = result.stdout.splitlines()
    header = lines.index(next(line for line in lines if line.startswith("policy")))
    assert lines[header].split()[:3] == ["policy", "value", "95"]
    names = [line.split()[0] for line in lines[header + 1 : header + 8]]
    assert names == ["amcar", "asmar", "aimi", "em", "optimal", "prior", "random"]
    found = contents_of(tmp_path / "out")
    (chosen,) = [line.split()[0] for line in lines[header + 1 : header + 8] if " * " in line]
    assert chosen == found["recommended"]["label"]
    values = {row["policy"]: row for row in found["values"][0]["rows"]}
    for line in lines[header + 1 : header + 8]:
        row = values[line.split()[0]]
        assert f"{abs(row['value']):.2f}" in line
        assert f"± {row['stderr']:.2f}" in line
    text = " ".join(" ".join(lines[header + 8 :]).split())
    for sentence in summary_text(read_record(tmp_path / "out" / "run.json")):
        assert " ".join(sentence.split()) in text
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in lines
    assert (tmp_path / "out" / "report.html").exists()


def test_the_diagnosis_may_choose(run, model, tmp_path):
    result = run("run", model, "--steps", "2000", "-o", tmp_path / "out", "--learner", "auto", *QUICK)
    assert result.exit_code == 0, result.output
    found = contents_of(tmp_path / "out")
    assert [learner["label"] for learner in found["learners"]] == ["asmar"]
    assert "✓ Diagnosis       simple MAR; AsMAR suits" in result.stderr
    printed = " ".join(result.stdout.split())
    assert "The diagnosis chose AsMAR. What is missing depends on always-observed features only" in printed
    assert f"Certified: {tmp_path / 'out' / 'certified.mmpolicy'}" in result.stdout.splitlines()
    policy = tmp_path / "out" / "certified.mmpolicy"
    worth = run("evaluate", model, "--policy", policy, "--episodes", "50")
    assert worth.exit_code == 0, worth.output
    nodes = mm.load_policy(policy).n_nodes
    assert f"a policy graph of {nodes:,} nodes" in " ".join(worth.output.split())


def test_diagnosis_and_certificate_can_be_left_out(run, model, tmp_path):
    given = ("--steps", "300", "--learner", "amcar", "--no-diagnosis", "--no-certificate")
    result = run("run", model, *given, "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "Diagnosis" not in result.stderr
    assert "Certificate" not in result.stderr
    assert "Certified:" not in result.stdout


def test_quiet_is_one_line(run, model, tmp_path):
    result = run("run", model, "--steps", "300", "-o", tmp_path / "out", "--learner", "amcar", "-q", *QUICK)
    assert result.exit_code == 0
    assert result.stderr == ""
    (line,) = result.stdout.splitlines()
    assert line.startswith("AMCAR is recommended: worth −")
    assert line.endswith(f"see {tmp_path / 'out' / 'report.html'}")


def test_own_tables(run, tables, table, tmp_path):
    result = run("run", tables, table, "-o", tmp_path / "out", "--seed", "4", *QUICK)
    assert result.exit_code == 0, result.output
    found = contents_of(tmp_path / "out")
    assert found["model"]["source"] == str(tables)
    assert found["model"]["truth"] is None
    assert found["settings"]["steps"] is None
    by_hand = mm.AsMAR().fit(mm.Dataset.from_table(table, ward_mdp()))
    learned = mm.MissMDP.load(tmp_path / "out" / "learners" / "asmar" / "learned.mmdp").missingness
    for state in ward_mdp().states:
        assert learned.distribution(state) == pytest.approx(by_hand.missingness_.distribution(state))
    header = next(line for line in result.stdout.splitlines() if line.startswith("policy"))
    assert header.count("is right") == 4
    assert "\noptimal" not in result.stdout


def test_data_without_gaps_are_said_to_have_none(run, tables, tmp_path):
    path = tmp_path / "whole.csv"
    mdp = ward_mdp()
    mm.collect(mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {})), 200, seed=1).to_csv(path)
    printed = run("run", tables, path, "-o", tmp_path / "out", *QUICK).stdout
    assert "Nothing is missing in the data, so there was nothing to learn." in printed


def test_steps_that_the_model_rules_out_are_told(run, tables, tmp_path):
    """Nobody gets from 0 to 2 in one step, so that only the first row of each episode can be judged."""
    path = tmp_path / "odd.csv"
    rows = [
        f"{e},{t},{2 * (t > 0) if t % 3 != 2 else ''},normal,{'wait' if t < 9 else ''}"
        for e in range(20)
        for t in range(10)
    ]
    path.write_text("\n".join(["episode,step,infection,ward,action", *rows]) + "\n")
    printed = " ".join(run("run", tables, path, "-o", tmp_path / "out", *QUICK).stdout.split())
    assert "180 of 200 steps could not be used" in printed
    assert "The log does not fit the model in" in printed
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "180 of 200 steps could not be used" in page
    assert "The data do not fit the model" in page
    assert "clearly best" not in page


def test_defaults_are_those_of_the_library():
    typed = command.make_context("run", ["icu-smar"]).params
    assert run_settings(typed) == mm.RunSettings()


def test_options_reach_the_run(run, model, tmp_path):
    log, table = tmp_path / "log.csv", tmp_path / "renamed.csv"
    mm.collect(ward(), 400, seed=1).to_csv(log)
    head, _, rest = log.read_text().partition("\n")
    table.write_text(head.replace("episode", "patient").replace("step", "hour") + "\n" + rest)
    result = run(
        *("run", model, table, "--unknown-truth", "--episode", "patient", "--step", "hour"),
        *("--learner", "asmar", "--learner", "amcar", "--confidence", "0.9", "--behaviour", "blind"),
        *("--always", "ward", "--smoothing", "0.5", "--max-trials", "3", "-o", tmp_path / "out", *QUICK),
    )
    assert result.exit_code == 0, result.output
    found = contents_of(tmp_path / "out")
    settings = found["settings"]
    assert settings["learners"] == ["asmar", "amcar"]
    assert (settings["confidence"], settings["smoothing"], settings["max_trials"]) == (0.9, 0.5, 3)
    assert settings["always_observed"] == ["ward"]
    assert settings["table"]["episode"] == "patient"
    assert found["data"]["behaviour"] == "blind"
    assert found["model"]["truth"] is None
    log = mm.Dataset.from_table(table, ward_mdp(), episode="patient", step="hour")
    bound = mm.AsMAR(smoothing=0.5, always_observed=["ward"]).fit(log).bound(0.9, behaviour="blind")
    assert found["learners"][0]["bound"]["worst"] == bound.worst


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "there is no benchmark 'nothing'"),
        (("MODEL", "TABLE", "--steps", "10"), "--steps is for simulating"),
        (("TABLES",), "nothing can be simulated; give DATA"),
        (("MODEL", "absent.csv"), "absent.csv"),
        (("MODEL", "OUT/log.parquet"), "DATA must not be inside"),
        (("MODEL", "--learner", "ppo"), "'ppo' is not one of"),
        (("MODEL", "--block", "infection,ward", "--learner", "amcar"), "none of these is among the learners"),
        (("MODEL", "--block", "infection"), "a block is two features or more"),
        (("MODEL", "--block", "infection,fever"), "no feature 'fever'"),
        (("MODEL", "--always", "fever"), "no feature 'fever'"),
        (("MODEL", "--steps", "0"), "--steps"),
        (("MODEL", "--episodes", "1"), "--episodes"),
        (("MODEL", "--folds", "1"), "--folds"),
        (("MODEL", "--confidence", "1"), "--confidence"),
        (("MODEL", "--confidence", "nan"), "--confidence"),
        (("MODEL", "--precision", "-1"), "--precision"),
        (("MODEL", "--timeout", "soon"), "--timeout"),
        (("MODEL", "--seed", "-1"), "--seed"),
        (("MODEL", "-o", "TABLE"), "is a file; give a folder"),
        (("MODEL", "-o", "TABLES"), "is not empty, and holds no run"),
        (("MODEL", "-o", "TABLE/below"), "cannot be written"),
        (("MODEL", "TABLE", "--bins", "infection=high"), "--bins"),
        (("MODEL", "TABLE", "--episode", "patient"), "patient"),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(
    run, model, table, tables, tmp_path, arguments, message
):
    out = tmp_path / "out"
    words = {"MODEL": model, "TABLE": table, "TABLES": tables}
    typed = [
        words.get(word, word)
        if "/" not in word
        else word.replace("TABLE", str(table)).replace("OUT", str(out))
        for word in arguments
    ]
    line = failed(run("run", *(() if "-o" in typed else ("-o", out)), *typed))
    assert message in line
    assert line.startswith("Error: ")
    assert not out.exists()


def test_another_run_is_not_lost(run, model, tmp_path):
    given = ("run", model, "--learner", "amcar", "-o", tmp_path / "out", *QUICK)
    assert run(*given, "--steps", "200").exit_code == 0
    line = failed(run(*given, "--steps", "300"))
    assert "holds another run, with steps = 200, not 300" in line
    assert "pass --overwrite" in line
    assert run(*given, "--steps", "200").exit_code == 0
    assert run(*given, "--steps", "300", "--overwrite").exit_code == 0
    assert contents_of(tmp_path / "out")["data"]["steps"] == 300


def test_a_model_that_would_be_written_over_is_refused(run, model, tmp_path):
    folder = tmp_path / "out"
    arguments = [*QUICK, "--steps", "200", "-o", str(folder), "-q"]
    assert run("run", str(model), *arguments).exit_code == 0
    learned = folder / "learners" / "amcar" / "learned.mmdp"
    before = learned.read_bytes()
    assert "MODEL must not be inside" in failed(run("run", str(learned), *arguments, "--overwrite"))
    assert learned.read_bytes() == before


def test_a_failure_says_what_is_kept(run, model, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise MissMDPError("the disk is full")

    monkeypatch.setattr(solving, "compare", fail)
    line = failed(run("run", model, "--steps", "200", "-o", tmp_path / "out", *QUICK))
    assert line.startswith("Error: the disk is full (finished work is in ")
    assert line.endswith(": log.parquet, policy.mmpolicy, learners/, tables/)")


def test_ctrl_c_says_what_is_kept(run, model, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(solving, "compare", stop)
    result = run("run", model, "--steps", "200", "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 130
    said = [line for line in result.stderr.splitlines() if not line.startswith("✓")]
    assert said[0].startswith("Finished work is in ")
    assert said[-1] == "Interrupted"
    assert (tmp_path / "out" / "policy.mmpolicy").exists()


def test_a_report_that_fails_does_not_hide_the_result(run, model, tmp_path, monkeypatch):
    from missmdp.experiments.run import work

    def fail(folder):
        raise MissMDPError("no paper")

    monkeypatch.setattr(work, "write_report", fail)
    result = run("run", model, "--steps", "200", "-o", tmp_path / "out", *QUICK)
    assert result.exit_code == 2
    assert "optimal" in result.stdout
    assert "Report:" not in result.stdout
    assert result.stderr.splitlines()[-1] == "Error: the report could not be written: no paper"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_while_solving_goes_on_with_the_best_so_far(tmp_path):
    given = (
        *("run", "icu-smar", "--steps", "500", "--precision", "0", "--timeout", "600", "--learner", "amcar"),
        *("--unknown-truth", "--episodes", "10", "--sensitivity-episodes", "0", "-o", tmp_path / "out"),
        *("--no-diagnosis", "--no-certificate"),
    )
    # A job in the background ignores Ctrl-C unless it is told otherwise.
    heeds = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    with start(*given, **heeds) as command:
        for line in command.stderr:
            if "Holding out" in line or "amcar: " in line:
                # Kernels are loaded before the first search begins.
                time.sleep(15.0 if "Holding out" in line else 5.0)
                command.send_signal(signal.SIGINT)
        printed = command.stdout.read()
    assert command.returncode == 0
    found = contents_of(tmp_path / "out")
    assert found["learners"][0]["search"]["status"] == "interrupted"
    assert found["baselines"][0]["search"]["status"] == "interrupted"
    assert "Not solved to the requested precision: amcar, prior" in " ".join(printed.split())
