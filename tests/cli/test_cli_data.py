"""The commands about logs, and models that come as tables or functions."""

import os
import subprocess
import sys

import pytest

import missmdp as mm
from missmdp.cli.files import load_mdp, load_model


@pytest.fixture(scope="module")
def data():
    return mm.collect(mm.load_benchmark("icu-mnar-unid"), 2000, seed=3)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_describe_prints_rates_patterns_and_associations(run, tmp_path, data, suffix):
    path = tmp_path / f"log.{suffix}"
    getattr(data, f"to_{suffix}")(path)
    result = run("describe", path)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    found = mm.describe(data)
    assert " ".join(lines[0]) == found.size
    rate = f"{data.missing_rates()['infection']:.1%}"
    assert ["infection", rate] in [line[:2] for line in lines]
    assert ["temperature", "0.0%", "0.0%", "to", "0.2%"] in lines
    names, rows = found.together(1)[0]
    assert [names, f"{rows:,}"] in [line[:2] for line in lines]
    best = found.strongest(1)[0]
    assert [best.feature, best.given, "is", best.highest] in [line[:4] for line in lines]


def test_describe_lists_no_more_than_asked_for(run, tmp_path, data):
    data.to_csv(tmp_path / "log.csv")
    assert "the 1 clearest of" in run("describe", tmp_path / "log.csv", "--most", 1).output
    assert "missing together" not in run("describe", tmp_path / "log.csv", "--most", 0).output


def test_describe_reads_several_files_folders_and_patterns(run, tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        mm.collect(mm.load_benchmark("example-3"), 40, seed=seed).to_csv(tmp_path / f"{name}.csv")
    for arguments in (
        [tmp_path / "a.csv", tmp_path / "b.csv"],
        [tmp_path],
        [tmp_path / "*.csv"],
    ):
        result = run("describe", *arguments, "--per-file")
        assert result.output.startswith("80 rows in "), result.output


def test_describe_takes_the_names_of_columns(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("visit,hour,drug,[bold]x\n1,0,a,5\n1,1,,\n2,0,a,6\n")
    result = run("describe", path, "--episode", "visit", "--step", "hour", "--action", "drug")
    assert result.output.startswith("3 rows in 2 episodes of 1 to 2 steps (median 1.5)")
    assert "[bold]x" in result.output
    assert isinstance(run("describe", path).exception, mm.DataError)


def test_describe_draws(run, tmp_path, data):
    data.to_csv(tmp_path / "log.csv")
    picture = tmp_path / "new" / "missing.svg"
    result = run("describe", tmp_path / "log.csv", "--picture", picture)
    assert f"Drawn to {picture}" in result.output
    assert picture.read_text().startswith("<?xml")
    result = run("describe", tmp_path / "log.csv", "--picture", tmp_path / "missing.gif")
    assert ".svg" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_collect_writes_what_the_library_would_collect(run, tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    result = run(
        "collect", "icu-smar", "--steps", 300, "--seed", 5, "--horizon", 20, "-o", path, "--threads", 2
    )
    assert result.exit_code == 0, result.output
    model = mm.load_benchmark("icu-smar")
    expected = mm.collect(model, 300, seed=5, horizon=20)
    written = mm.Dataset.from_table(path, model.mdp)
    assert list(written.episodes()) == list(expected.episodes())
    words = " ".join(result.output.split())
    assert f"300 simulated observations in {expected.n_episodes} episodes" in words
    assert "seed 5) written to" in words
    assert f"infection {expected.missing_rates()['infection']:.1%}" in words


def test_collect_prints_csv_and_nothing_else(run):
    result = run("collect", "example-1", "--steps", 3, "-o", "-")
    lines = result.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].replace('"', "").startswith("episode,step,first,second,action")
    assert "3 simulated observations" in result.stderr


@pytest.mark.parametrize(
    ("output", "message"),
    [([], "-o log.parquet"), (["-o", "x.txt"], ".parquet or .csv"), (["-o", "."], "is a folder")],
)
def test_collect_says_where_a_log_can_go(run, output, message):
    result = run("collect", "example-1", "--steps", 3, *output)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe", "absent.csv"], "absent.csv"),
        (["describe", "odd.csv"], "pass --episode 'the episode'"),
        (["collect", "icu-samr", "--steps", "3", "-o", "x.csv"], "did you mean 'icu-smar'"),
        (["collect", "example-1", "--steps", "3", "-o", "odd.csv/x.csv"], "cannot be written"),
    ],
)
def test_errors_are_messages_without_a_traceback(arguments, message, tmp_path):
    (tmp_path / "odd.csv").write_text("the episode,step,action,x\n1,0,a,5\n")
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


def test_letters_that_cannot_be_printed_are_replaced(tmp_path, data):
    data.to_csv(tmp_path / "log.csv")
    done = subprocess.run(
        [sys.executable, "-m", "missmdp", "describe", "log.csv"],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"infection" in done.stdout
    assert b"???" in done.stdout


def write_tables(folder, **more):
    tables = {
        "transitions.csv": "level,action,next_level,probability\n0,go,1,1\n",
        "rewards.csv": "level,action,reward\n0,go,5\n",
        "initial.csv": "level,probability\n0,1\n",
        "terminal.csv": "level\n1\n",
        **more,
    }
    folder.mkdir(exist_ok=True)
    for name, text in tables.items():
        if text is not None:
            (folder / name).write_text(text)
    return str(folder)


def test_a_folder_of_tables_is_an_mdp_without_missingness(run, tmp_path):
    folder = write_tables(tmp_path / "ward", **{"discount.txt": "0.5\n"})
    mdp, model = load_mdp(folder)
    assert model is None
    assert mdp == mm.FactoredMDP(
        {"level": [0, 1]}, ["go"], lambda s, a: {(1,): 1.0}, 5.0, {(0,): 1.0}, [(1,)], 0.5
    )
    assert load_mdp(write_tables(tmp_path / "other"))[0].discount == 0.95
    with pytest.raises(mm.ModelError, match="missmdp learn"):
        load_model(folder)
    assert "missmdp learn" in str(run("collect", folder, "--steps", 3, "-o", "-").exception)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"rewards.csv": None}, "no rewards.csv or rewards.parquet"),
        ({"initial.pq": "x"}, "both initial.csv and initial.pq"),
        ({"discount.txt": "often"}, "discount.txt: expected one number"),
        ({"initial.csv": "level,probability\n0,0.5\n"}, "ward: the initial distribution"),
        ({"rewards.csv": "level,action,reward\n0,go\n"}, "ward: rewards"),
    ],
)
def test_folders_that_are_no_models_are_explained(tmp_path, tables, message):
    with pytest.raises(mm.MissMDPError, match=message):
        load_mdp(write_tables(tmp_path / "ward", **tables))


def test_parquet_tables_work_as_well(tmp_path):
    import pandas as pd

    folder = write_tables(tmp_path / "ward")
    expected, _ = load_mdp(folder)
    for path in list((tmp_path / "ward").iterdir()):
        pd.read_csv(path).to_parquet(path.with_suffix(".parquet"))
        path.unlink()
    assert load_mdp(folder)[0] == expected


def test_functions_may_return_an_mdp(tmp_path):
    (tmp_path / "my_mdps.py").write_text(
        "import missmdp as mm\n"
        "def whole():\n    return mm.load_benchmark('example-1')\n"
        "def bare():\n    return whole().mdp\n"
        "def other():\n    return 3\n"
    )
    name = f"{tmp_path / 'my_mdps.py'}:"
    example = mm.load_benchmark("example-1")
    mdp, model = load_mdp(f"{name}bare")
    assert mdp == example.mdp
    assert model is None
    mdp, model = load_mdp(f"{name}whole")
    assert mdp is model.mdp
    with pytest.raises(mm.ModelError, match="missmdp learn"):
        load_model(f"{name}bare")
    with pytest.raises(mm.ModelError, match="expected a MissMDP, a FactoredMDP"):
        load_mdp(f"{name}other")


def test_names_of_benchmarks_go_before_folders(tmp_path, monkeypatch):
    write_tables(tmp_path / "example-1")
    monkeypatch.chdir(tmp_path)
    assert load_mdp("example-1")[1] is not None
    assert load_mdp("./example-1")[1] is None
    with pytest.raises(mm.ModelError, match="a folder of tables"):
        load_mdp("no-such-thing")


LACTATE = {
    "transitions.csv": "lactate,day,action,next_lactate,next_day,probability\n"
    "low,1,go,high,2,1\nhigh,2,go,low,1,1\n",
    "rewards.csv": "lactate,day,action,reward\n",
    "initial.csv": "lactate,day,probability\nlow,1,1\n",
    "terminal.csv": None,
}


def test_a_table_of_features_gives_the_order_of_values(run, tmp_path):
    import pandas as pd

    listed = "feature,value\nday,2\nlactate,low\nlactate,high\nday,1\n"
    (tmp_path / "log.csv").write_text("episode,step,lactate,day,action\n1,0,1.5,1,go\n1,1,2.5,2,\n")
    folder = write_tables(tmp_path / "ward", **LACTATE)
    assert load_mdp(folder)[0].features == {"lactate": ("high", "low"), "day": (1, 2)}
    done = run("validate", folder, tmp_path / "log.csv", "--bins", "lactate=2")
    assert "lactate: below 2 → high, from 2 → low" in done.output
    assert done.exit_code == 1

    write_tables(tmp_path / "ward", **LACTATE, **{"features.csv": listed})
    expected = {"day": (2, 1), "lactate": ("low", "high")}
    assert load_mdp(folder)[0].features == expected
    done = run("validate", folder, tmp_path / "log.csv", "--bins", "lactate=2")
    assert "lactate: below 2 → low, from 2 → high" in done.output
    assert done.exit_code == 0

    pd.read_csv(tmp_path / "ward" / "features.csv").to_parquet(tmp_path / "ward" / "features.parquet")
    with pytest.raises(mm.ModelError, match=r"both features\.csv and features\.parquet"):
        load_mdp(folder)
    (tmp_path / "ward" / "features.csv").unlink()
    assert load_mdp(folder)[0].features == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,value\nday,1\n", "ward: features: there is no column 'feature'"),
        ("feature,value\nday,1\nday,2\nlactate,low\n", "ward: transitions, row 2: .*'high'"),
        ("feature,value\nday,1\nday,\n", "ward: features, row 2: 'value' is empty"),
    ],
)
def test_tables_of_features_that_do_not_fit_are_explained(tmp_path, text, message):
    with pytest.raises(mm.ModelError, match=message):
        load_mdp(write_tables(tmp_path / "ward", **LACTATE, **{"features.csv": text}))


def test_words_for_missing_values_can_be_given(run, tmp_path):
    folder = write_tables(tmp_path / "ward")
    (tmp_path / "log.csv").write_text("episode,step,level,action\n1,0,?,go\n1,1,-,\n")
    assert run("validate", folder, tmp_path / "log.csv").exit_code == 1
    done = run("validate", folder, tmp_path / "log.csv", "--missing", "?", "--missing", "-")
    assert done.exit_code == 0, done.output


def test_describe_takes_words_for_missing_values(run, tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,level,action\n1,0,?,go\n1,1,-,\n")
    assert "always missing" not in run("describe", tmp_path / "log.csv").output
    done = run("describe", tmp_path / "log.csv", "--missing", "?", "--missing", "-")
    assert done.exit_code == 0
    assert "always missing" in done.output
