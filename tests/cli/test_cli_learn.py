"""The commands `learn` and `validate`."""

import csv
import warnings

import numpy as np
import pytest

import missmdp as mm
from missmdp.experiments.studies.check_dynamics import changed_pumps, pumps


@pytest.fixture(scope="module")
def data():
    return mm.collect(mm.load_benchmark("icu-smar"), 5_000, seed=3)


@pytest.fixture
def log(data, tmp_path):
    path = tmp_path / "log.parquet"
    data.to_parquet(path)
    return path


def test_learn_prints_probabilities_with_intervals(run, data, log):
    result = run("learn", "icu-smar", log, "--confidence", 0.9)
    assert result.exit_code == 0, result.output
    learner = mm.AsMAR().fit(data)
    bound = learner.bound(0.9)
    assert bound.behaviour == "blind", "the file says so of itself"
    assert bound.describe() in result.output
    group = max(bound.per_group, key=lambda group: group.samples)
    assert f"{group.samples:,}" in result.output
    for value in group.estimate:
        assert f"{value:.3f}" in result.output
    assert f"({group.lower[0]:.3f}–{group.upper[0]:.3f})" in result.output
    tv = mm.total_variation(learner.missingness_, mm.load_benchmark("icu-smar"))
    assert f"{tv.average:.4f} on average, {tv.worst:.4f} at worst" in result.output


def test_learn_is_the_same_with_and_without_loading_the_rows(run, log):
    loaded = run("learn", "icu-smar", log, "--validate")
    counted = run("learn", "icu-smar", log, "--no-validate")
    assert loaded.exit_code == counted.exit_code == 0
    assert loaded.output == counted.output


def test_learn_saves_the_model_and_the_table(run, data, log, tmp_path):
    model, table = tmp_path / "learned.mmdp", tmp_path / "learned.csv"
    assert run("learn", "icu-smar", log, "-o", model, "-o", table).exit_code == 0
    learner = mm.AsMAR().fit(data)
    saved = mm.MissMDP.load(model)
    assert np.array_equal(saved.missingness.probabilities, learner.missingness_.probabilities)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    bound = learner.bound(0.95)
    assert len(rows) == sum(len(group.patterns) for group in bound.per_group)
    for row in rows:
        assert row["indicators"] == "infection + heart_rate"
        assert row["given_infection"] == ""
        given = {"test": int(row["given_test"]), "temperature": int(row["given_temperature"])}
        group = next(g for g in bound.per_group if g.given == given)
        lacking = [] if row["missing"] == "nothing" else row["missing"].split(" + ")
        k = next(
            k
            for k, p in enumerate(group.patterns)
            if [f for f, s in zip(group.features, p, strict=True) if not s] == lacking
        )
        assert float(row["estimate"]) == group.estimate[k]
        assert (float(row["lower"]), float(row["upper"])) == (group.lower[k], group.upper[k])
        assert int(row["samples"]) == group.samples


@pytest.mark.parametrize(
    ("options", "learner"),
    [
        (["--learner", "amcar", "--patterns", "seen"], mm.AMCAR(patterns="seen")),
        (["--ignore", "test", "--unseen", "pooled"], mm.AsMAR(ignore=["test"], unseen="pooled")),
        (["--learner", "aimi", "--always", "test"], mm.AIMI(always_observed=["test"])),
        (
            ["--learner", "aimi", "--assume", "smar", "--smoothing", 0.5],
            mm.AIMI(assume="simple MAR", smoothing=0.5),
        ),
        (["--learner", "aimi", "--graph", "model"], mm.AIMI(graph=mm.load_benchmark("icu-smar").mgraph())),
        (
            ["--learner", "aimi", "--block", "infection, heart_rate"],
            mm.AIMI(blocks=[("infection", "heart_rate")]),
        ),
    ],
)
def test_options_reach_the_learner(run, data, log, tmp_path, options, learner):
    result = run("learn", "icu-smar", log, *options, "-o", tmp_path / "learned.mmdp")
    assert result.exit_code == 0, result.output
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        learner.fit(data)
    saved = mm.MissMDP.load(tmp_path / "learned.mmdp").missingness
    assert np.array_equal(saved.probabilities, learner.missingness_.probabilities)
    for finding in learner.warnings_:
        assert str(finding) in result.output


def test_an_mgraph_from_a_file(run, data, log, tmp_path):
    graph = mm.load_benchmark("icu-smar").mgraph()
    (tmp_path / "graph.dot").write_text(graph.to_dot())
    result = run("learn", "icu-smar", log, "--learner", "aimi", "--graph", tmp_path / "graph.dot")
    assert result.exit_code == 0, result.output
    assert mm.AIMI(graph=graph).fit(data).bound().describe() in result.output


def test_learning_from_the_dynamics(run, data, log, tmp_path):
    model, table = tmp_path / "learned.mmdp", tmp_path / "learned.csv"
    given = ["--learner", "em", "--draws", 5, "--seed", 3, "-o", model, "-o", table]
    result = run("learn", "icu-smar", log, *given)
    assert result.exit_code == 0, result.output
    learner = mm.DynamicsEM(data.mdp, seed=3, progress=False).fit(data)
    bound = learner.bound(0.95, draws=5, seed=3)
    assert bound.describe() in result.output
    assert "They are not guaranteed" in result.output
    for child in learner.graph_.can_go_missing:
        assert f"whether {child} is missing depends on {', '.join(learner.graph_.parents(child))}\n" in (
            result.output
        )
    assert f"{learner.n_parameters_} free parameters" in result.output
    assert f"log-likelihood −{abs(learner.log_likelihood_):,.1f}" in result.output
    for group in bound.per_group:
        assert f"{group.estimate[1]:.3f} ({group.lower[1]:.3f}–{group.upper[1]:.3f})" in result.output
    assert mm.MissMDP.load(model).missingness == learner.missingness_
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["estimate"]) for row in rows] == [
        e for group in bound.per_group for e in group.estimate
    ]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--structure", "smar", "--pseudo-count", 0], {"structure": "smar", "pseudo_count": 0.0}),
        (["--graph", "model"], {"structure": mm.load_benchmark("icu-smar").mgraph()}),
        (
            ["--structure", "MCAR", "--block", "infection,heart_rate", "--always", "test"],
            "some observations show it in part",
        ),
    ],
)
def test_options_reach_dynamics_em(run, data, log, tmp_path, options, changes):
    given = ["--learner", "em", "--draws", 0, *options, "-o", tmp_path / "learned.mmdp"]
    result = run("learn", "icu-smar", log, *given, "--no-validate")
    if isinstance(changes, str):
        assert result.exit_code == 2
        assert changes in result.output
        return
    assert result.exit_code == 0, result.output
    learner = mm.DynamicsEM(data.mdp, **changes, progress=False).fit(data)
    assert mm.MissMDP.load(tmp_path / "learned.mmdp").missingness == learner.missingness_
    assert "interval" not in result.output


def test_icin_learns_too(run, data, log, tmp_path):
    given = [
        "--learner",
        "ICIN",
        "--smoothing",
        0.5,
        "--draws",
        5,
        "--seed",
        2,
        "-o",
        tmp_path / "learned.mmdp",
    ]
    result = run("learn", "icu-smar", log, *given)
    assert result.exit_code == 0, result.output
    learner = mm.ICIN(smoothing=0.5).fit(data)
    assert mm.MissMDP.load(tmp_path / "learned.mmdp").missingness == learner.missingness_
    assert learner.bound(draws=5, seed=2).describe() in result.output


def test_a_learner_of_ones_own_joins_the_command(run, log, tmp_path):
    class Cautious(mm.AsMAR):
        """AsMAR under another name."""

    mm.register_learner(Cautious, "cautious", assumes="gaps depend only on values that are always seen")
    try:
        result = run("learn", "icu-smar", log, "--learner", "cautious", "--smoothing", 0.5)
        assert result.exit_code == 0, result.output
        assert result.output.startswith("Cautious(smoothing=0.5) on 5,000 observations")
    finally:
        mm.forget_learner("cautious")
    assert run("learn", "icu-smar", log, "--learner", "cautious").exit_code == 2


def test_method_and_behaviour_reach_the_bound(run, data, log):
    result = run("learn", "icu-smar", log, "--method", "okamoto", "--behaviour", "adaptive")
    assert mm.AsMAR().fit(data).bound(0.95, "okamoto", behaviour="adaptive").describe() in result.output


def test_learning_with_an_mdp_alone(run, log, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import missmdp as mm\ndef mdp():\n    return mm.load_benchmark('icu-smar').mdp\n"
    )
    monkeypatch.chdir(tmp_path)
    result = run("learn", "mine:mdp", log, "-o", tmp_path / "learned.mmdp")
    assert result.exit_code == 0, result.output
    assert "Distance" not in result.output
    assert mm.MissMDP.load(tmp_path / "learned.mmdp").n_states == 800
    assert run("learn", "mine:mdp", log, "--learner", "aimi", "--graph", "model").exit_code == 2


def test_bins_of_measurements(run, tmp_path):
    mdp = mm.FactoredMDP(
        {"fever": ["low", "high"]},
        ["wait"],
        lambda state, action: [(("low",), 0.5), (("high",), 0.5)],
        0.0,
        {("low",): 1.0},
        discount=0.9,
    )
    mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp)).save(tmp_path / "ward.mmdp")
    (tmp_path / "log.csv").write_text(
        "patient,step,fever,action\n" + "".join(f"{i},0,{36 + i % 5},wait\n{i},1,,\n" for i in range(60))
    )
    arguments = [
        "learn",
        tmp_path / "ward.mmdp",
        tmp_path / "log.csv",
        "--episode",
        "patient",
        "--learner",
        "amcar",
    ]
    result = run(*arguments, "--bins", "fever=38")
    assert result.exit_code == 0, result.output
    assert "0.500" in result.output
    wrong = run(*arguments)
    assert isinstance(wrong.exception, mm.DataError)
    assert "fever" in str(wrong.exception)
    assert run(*arguments, "--bins", "fever").exit_code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--block", "x,y"], "--block is for --learner aimi, icin or em"),
        (["--structure", "smar"], "--structure is for --learner em"),
        (["--learner", "em", "--method", "okamoto"], "--method is for --learner amcar, asmar or aimi"),
        (["--learner", "em", "--smoothing", 0], "--smoothing is for --learner amcar, asmar, aimi or icin"),
        (
            ["--learner", "em", "--structure", "smar", "--graph", "model"],
            "give either --structure or --graph",
        ),
        (
            ["--learner", "em", "--draws", 0, "-o", "learned.csv"],
            "without intervals (--draws) there is no table",
        ),
        (["--learner", "aimi", "--ignore", "test"], "--ignore is for --learner asmar"),
        (["-o", "learned.txt"], "learned.txt"),
        (["--learner", "ppo"], "ppo"),
        (["--confidence", 1.5], "'--confidence': 1.5 is not in the range"),
        (["--smoothing", -1], "'--smoothing': -1.0 is not in the range"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_read(run, options, message):
    result = run("learn", "icu-smar", "no-such-file.csv", *options)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--always", "infection"], "'infection' is declared always observed"),
        (["--ignore", "tset"], "there is no feature 'tset'"),
    ],
)
def test_errors_are_messages(run, log, options, message):
    result = run("learn", "icu-smar", log, *options)
    assert isinstance(result.exception, mm.DataError)
    assert message in str(result.exception)


def test_validate_says_what_does_not_fit(run, log, data, tmp_path):
    result = run("validate", "icu-smar", log, "--no-dynamics")
    assert result.exit_code == 0
    assert result.output.strip() == mm.validate(data, data.mdp).describe()
    table = data.to_pandas()
    table.loc[3, "temperature"] = 9
    table.to_csv(tmp_path / "broken.csv", index=False)
    result = run("validate", "icu-smar", tmp_path / "broken.csv")
    assert result.exit_code == 1
    assert "9" in result.output
    assert "temperature" in result.output


def test_validate_tests_the_probabilities(run, log, data, tmp_path):
    """At the level 0.01, an MDP that is right is rejected in one log of a hundred."""
    result = run("validate", "icu-smar", log)
    assert result.exit_code == 0
    check = mm.check_dynamics(data, data.mdp)
    assert result.output.strip() == f"{mm.validate(data, data.mdp).describe()}\n{check.describe()}"
    given, true = pumps(full=0.45), changed_pumps("load")
    mm.MissMDP(given, mm.MissingnessFunction.independent(given, {})).save(tmp_path / "pumps.mmdp")
    gaps = mm.MissingnessFunction.independent(true, {"wear": 0.5})
    mm.collect(mm.MissMDP(true, gaps), 500, seed=0, horizon=20).to_csv(tmp_path / "pumps.csv")
    result = run("validate", tmp_path / "pumps.mmdp", tmp_path / "pumps.csv")
    assert result.exit_code == 1
    assert "nothing unknown, nothing impossible" in result.output
    assert "The MDP is in doubt: the log contradicts it in load" in result.output
    assert run("validate", tmp_path / "pumps.mmdp", tmp_path / "pumps.csv", "--no-dynamics").exit_code == 0


def test_learn_reports_problems_of_the_log_but_goes_on(run, tmp_path):
    """Predator's prey cannot jump across the map: the log has such a step, and is learned from nevertheless."""
    model = mm.load_benchmark("predator-smar")
    table = mm.collect(model, 300, seed=0).to_pandas()
    seen = table.index[table["x"].notna() & (table["step"] > 2)][0]
    table.loc[seen, ["u", "v"]] = [4 - table.loc[seen, "u"], 4 - table.loc[seen, "v"]]
    table.to_csv(tmp_path / "log.csv", index=False)
    result = run("learn", "predator-smar", tmp_path / "log.csv")
    assert result.exit_code == 0
    assert "Problem" in result.stderr
    assert "always observed: u, v" in result.stdout


def test_the_log_is_never_written_over(run, log, data, tmp_path):
    before = log.read_bytes()
    folder = tmp_path / "logs"
    folder.mkdir()
    data.to_csv(folder / "log.csv")
    for source, output in ((log, log), (folder, folder / "log.csv"), (tmp_path / "*.parquet", log)):
        result = run("learn", "icu-smar", source, "-o", output)
        assert result.exit_code == 2
        assert "this would overwrite the log" in result.output
    assert log.read_bytes() == before
    assert run("learn", "icu-smar", folder, "-o", folder / "learned.csv").exit_code == 0


def test_strict_stops_at_problems(run, tmp_path):
    table = mm.collect(mm.load_benchmark("predator-smar"), 300, seed=0).to_pandas()
    seen = table.index[table["x"].notna() & (table["step"] > 2)][0]
    table.loc[seen, ["u", "v"]] = [4 - table.loc[seen, "u"], 4 - table.loc[seen, "v"]]
    table.to_csv(tmp_path / "log.csv", index=False)
    result = run("learn", "predator-smar", tmp_path / "log.csv", "--strict", "-o", tmp_path / "learned.mmdp")
    assert result.exit_code == 1
    assert not (tmp_path / "learned.mmdp").exists()


def test_a_block_of_one_is_refused(run, log):
    assert (
        "two features or more" in run("learn", "icu-smar", log, "--learner", "aimi", "--block", "test").output
    )


def test_advice_of_a_bound_and_of_findings_is_what_one_can_type(run, tmp_path):
    """Two features that mostly go missing together, which is against what AIMI assumes; a third never does."""
    mdp = mm.FactoredMDP(
        {"x": range(2), "y": range(2), "z": range(2)},
        ["stay"],
        lambda state, action: {(a, b, c): 0.125 for a in range(2) for b in range(2) for c in range(2)},
        0.0,
        {(0, 0, 0): 1.0},
        discount=0.9,
    )
    patterns = {
        (True, True, True): 0.4,
        (False, False, True): 0.4,
        (True, False, True): 0.1,
        (False, True, True): 0.1,
    }
    model = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, lambda state: patterns))
    model.save(tmp_path / "ward.mmdp")
    for steps, advice in (
        (2_000, "if they go missing together, pass --block x,y"),
        (10, "Pass --always FEATURE if you know that it is."),
    ):
        mm.collect(model, steps, seed=0).to_parquet(tmp_path / "log.parquet")
        said = run("learn", tmp_path / "ward.mmdp", tmp_path / "log.parquet", "--learner", "aimi").output
        assert advice in " ".join(said.split())


def test_the_command_knows_the_methods_that_there_are():
    from typing import get_args

    from missmdp.cli.learn_commands import _METHODS
    from missmdp.learn.limits import Method

    assert get_args(Method) == (*_METHODS, "bootstrap"), "DynamicsEM has no other, and nobody else has that"
