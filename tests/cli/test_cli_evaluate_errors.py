"""The command `evaluate`: what is said when something is wrong."""

from pathlib import Path

import numpy as np
import pytest

import missmdp as mm
from command_output import solved
from missmdp.experiments.baselines import (
    BASELINES,
    PAPER_BASELINES,
    BaselineSettings,
    check_baseline,
    make_baseline,
)
from missmdp.interop import write_model, write_policyx

WRONG = [
    (
        ["--policy", "optiml"],
        "there is no policy 'optiml'; there are random, prior, optimal, pomcp, ppo, ppo-memory, online",
    ),
    (["--policy", "mine=optiml"], "there is no policy 'optiml'"),
    (["--policy", "policy.txt"], "files that end in .mmpolicy or .policyx"),
    (["--policy", "absent.mmpolicy"], "absent.mmpolicy: there is no such file"),
    (["--policy", "mine=absent.policyx"], "absent.policyx: there is no such file"),
    (["--policy", "=p.mmpolicy"], "expected NAME=FILE"),
    (["--policy", "mine="], "expected NAME=FILE"),
    (["--policy", ""], "there is no policy ''"),
    (
        ["--policy", "random", "--policy", "random"],
        "two policies are called 'random'; name one of them, as in --policy other=random",
    ),
    (["--policy", "p.mmpolicy", "--policy", "sub/p.mmpolicy"], "as in --policy other=sub/p.mmpolicy"),
    (["--policy", "a=random", "--policy", "a=p.mmpolicy"], "as in --policy other=p.mmpolicy"),
    (["--reference", "pomcp"], "--reference pomcp: the policies are random, prior, optimal"),
    (["--episodes", "0"], "--episodes"),
    (["--episodes", "many"], "--episodes"),
    (["--seed", "-1"], "--seed"),
    (["--until-stderr", "0"], "--until-stderr"),
    (["--until-stderr", "nan"], "'--until-stderr': 'nan' is not a number"),
    (["--until-stderr", "inf"], "--until-stderr must be a positive number, got inf"),
    (["--max-episodes", "10"], "--max-episodes goes with --until-stderr"),
    (["--horizon", "0"], "--horizon"),
    (["--timeout", "0"], "--timeout"),
    (["--timeout", "inf"], "timeout must be a positive number, got inf"),
    (["--threads", "0"], "--threads"),
    (["--confidence", "1"], "--confidence"),
    (["--confidence", "nan"], "'--confidence': 'nan' is not a number"),
    (["--solve-timeout", "-1"], "--solve-timeout"),
    (["--solve-timeout", "nan"], "'--solve-timeout': 'nan' is not a number"),
    (["--precision", "fine"], "--precision"),
    (["--precision", "nan"], "'--precision': 'nan' is not a number"),
    (["--tree-queries", "0"], "--tree-queries"),
    (["--max-depth", "0"], "--max-depth"),
    (["--exploration", "-1"], "--exploration"),
    (["--belief", "guess"], "--belief"),
    (["--ppo-steps", "0"], "--ppo-steps"),
    (["--ppo-settings", "absent.json"], "absent.json"),
    (["--ppo-settings", "best.json"], "best.json has settings for ppo: also give --policy ppo"),
    (["--policy", "ppo-memory", "--ppo-settings", "best.json"], "also give --policy ppo"),
    (
        ["--policy", "ppo", "--ppo-settings", "best.json", "--ppo-settings", "other.json"],
        "best.json and other.json both have settings for PPO without memory",
    ),
    (["--save-policies", "p.mmpolicy"], "p.mmpolicy"),
    (["--save-policies", "p.mmpolicy/made"], "cannot be written (Not a directory)"),
    (["-o", "values.txt"], "values.txt: the file of results must end in .csv, .json or .parquet"),
    (["-o", "sub"], "sub: the file of results must end in"),
    (["-o", "p.mmpolicy/v.csv"], "p.mmpolicy/v.csv: cannot be written (Not a directory)"),
    (["--returns", "r.json"], "r.json: the file of returns must end in .csv or .parquet"),
    (["-o", "v.csv", "--returns", "v.csv"], "v.csv: results and returns cannot go to the same file"),
    (["another-model"], "another-model"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_usage_is_said_before_anything_is_read(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Path("p.mmpolicy").write_text("")
    Path("sub").mkdir()
    Path("sub/p.mmpolicy").write_text("")
    for name in ("best.json", "other.json"):
        Path(name).write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    result = run("evaluate", "no-such-model", *words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "prior"], "prior is for miss-MDPs: no features go missing in absent.pomdp"),
        (["--policy", "ppo"], "ppo is for miss-MDPs"),
        (["--policy", "mine=ppo-memory"], "use random, optimal, pomcp, online or a policy's file"),
        (["--fully-observed"], "--fully-observed is for miss-MDPs"),
    ],
)
def test_what_makes_no_sense_for_a_file_of_other_tools_is_said(run, words, message):
    result = run("evaluate", "absent.pomdp", *words)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.mmdp", None, "absent.mmdp"),
        ("absent.pomdp", None, "absent.pomdp: cannot be read"),
        ("exampel-1", None, "did you mean 'example-1'"),
        ("broken.pomdp", "states: 2 2", "broken.pomdp"),
        (
            "without_m.py:mdp",
            "import missmdp\nmdp = missmdp.load_benchmark('example-1').mdp\n",
            "missmdp learn",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_said(run, tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name.partition(":")[0]).write_text(content)
    result = run("evaluate", name, "-o", "v.csv")
    assert isinstance(result.exception, mm.MissMDPError)
    assert message in str(result.exception)
    assert not Path("v.csv").exists()


def test_what_is_wrong_with_a_policy_is_said_before_anything_is_solved(
    run, tmp_path, monkeypatch, tiger, ward
):
    def fail(*arguments, **options):
        raise AssertionError("this is to be said first")

    monkeypatch.chdir(tmp_path)
    other = mm.MissMDP.load(ward)
    solved(other, "other.mmpolicy")
    Path("damaged.mmpolicy").write_bytes(Path("other.mmpolicy").read_bytes()[:-40])
    Path("empty.mmpolicy").write_bytes(b"")
    Path("words.policyx").write_text("not xml")
    other.save("model.mmpolicy")
    write_policyx(mm.AlphaVectorPolicy.load("other.mmpolicy"), "other.policyx")
    write_model(mm.load_benchmark("example-1"), "one.pomdpx")
    monkeypatch.setattr(mm.Sarsop, "solve", fail)
    for model, name in [
        ("example-1", "other.mmpolicy"),
        ("example-1", "damaged.mmpolicy"),
        ("example-1", "empty.mmpolicy"),
        ("example-1", "words.policyx"),
        ("example-1", "other.policyx"),
        ("example-1", "model.mmpolicy"),
        ("one.pomdpx", "other.mmpolicy"),
        (tiger, "other.mmpolicy"),
        (tiger, "other.policyx"),
    ]:
        result = run("evaluate", model, "--policy", "optimal", "--policy", name)
        assert isinstance(result.exception, mm.MissMDPError), (model, name, result.output)
        assert name in str(result.exception)
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"layer": 2}', "no setting 'layer'"),
        ('{"layers": 0}', "layers"),
    ],
)
def test_what_is_wrong_with_settings_is_said(run, tmp_path, content, message):
    (tmp_path / "s.json").write_text(content)
    result = run("evaluate", "example-1", "--policy", "ppo", "--ppo-settings", tmp_path / "s.json")
    assert isinstance(result.exception, mm.ModelError)
    assert "s.json: " in str(result.exception)
    assert message in str(result.exception)


def test_baselines_check_themselves(model):
    pomdp = model.to_pomdp()
    assert [name for name in BASELINES if name not in ("ppo", "ppo-memory", "prior")] == [
        "random",
        "optimal",
        "pomcp",
        "online",
    ]
    assert "online" not in PAPER_BASELINES
    with pytest.raises(mm.ModelError, match="there is no policy 'best'; there are random, "):
        check_baseline("best", model)
    with pytest.raises(mm.ModelError, match="prior is for miss-MDPs"):
        make_baseline("prior", pomdp)
    with pytest.raises(mm.ModelError, match="without memory"):
        BaselineSettings(ppo=mm.PPOSettings(memory=True))


@pytest.fixture
def no_prior(monkeypatch):
    """Let the prior's model be too large to be solved."""
    solve = mm.Sarsop.solve

    def refusing(self, model, **options):
        if np.allclose(model.missingness.missing_rate("infection"), 0.5):
            raise mm.ModelError("searching a model would take about 28 TB of memory")
        return solve(self, model, **options)

    monkeypatch.setattr(mm.Sarsop, "solve", refusing)


def test_a_policy_that_cannot_be_made_is_left_out(run, ward, no_prior):
    result = run("evaluate", ward, "--episodes", 20)
    assert result.exit_code == 0, result.output
    assert "prior" in result.stdout
    assert "left out: searching a model would take about 28 TB" in " ".join(result.stdout.split())
    assert "optimal" in result.stdout
    assert "normalised" not in result.stdout
    quiet = run("evaluate", ward, "--episodes", 20, "--quiet")
    assert quiet.exit_code == 0
    assert "prior was left out: searching a model" in quiet.stderr
    assert "prior" not in quiet.stdout


def test_a_policy_that_was_asked_for_and_cannot_be_made_is_a_failure_in_the_end(
    run, ward, no_prior, tmp_path
):
    asked = ["--policy", "prior", "--policy", "random", "--reference", "prior"]
    result = run("evaluate", ward, *asked, "--episodes", 20, "-o", tmp_path / "values.csv")
    assert result.exit_code == 2
    assert "prior was left out: searching a model" in result.stderr
    assert (tmp_path / "values.csv").exists()
    alone = run("evaluate", ward, "--policy", "prior", "--episodes", 20)
    assert alone.exit_code == 2
    assert "28 TB" in alone.stderr
