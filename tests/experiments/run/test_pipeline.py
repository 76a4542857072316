"""A whole run, against the same done by hand, step by step."""

import csv
import itertools
import json
from dataclasses import astuple

import numpy as np
import pyarrow.parquet as parquet
import pytest
from msgspec.structs import replace

import missmdp as mm
from experiments.run.wards import censored_ward, quick, ward, ward_mdp, without_times
from missmdp.cli.printing_run import _troubles
from missmdp.evaluation.heldout import held_out_likelihood
from missmdp.evaluation.sensitivity import sensitivity
from missmdp.experiments.record.coding import read_record
from missmdp.experiments.record.limitations import limitations
from missmdp.experiments.run.folder import TABLE_NAMES
from missmdp.experiments.run.settings import RunSeeds
from missmdp.learn.registry import run_by_default

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

LEARNERS = run_by_default()
BY_HAND = {
    "amcar": mm.AMCAR,
    "asmar": mm.AsMAR,
    "aimi": mm.AIMI,
    "em": lambda: mm.DynamicsEM(ward_mdp(), seed=RunSeeds.of(3).learn, progress=False),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(folder):
    """A run where the truth is known."""
    return mm.run(ward(), folder=folder / "known", settings=quick(seed=3), name="the ward", progress=False)


@pytest.fixture(scope="module")
def contents(result):
    return json.loads((result.folder.path / "run.json").read_bytes())


@pytest.fixture(scope="module")
def censored(folder):
    """What a run finds where no learner is right."""
    mm.run(censored_ward(), folder=folder / "censored", settings=quick(), progress=False)
    return json.loads((folder / "censored" / "run.json").read_bytes())


@pytest.fixture(scope="module")
def table(folder):
    """A log of somebody's own, as CSV."""
    path = folder / "own.csv"
    mm.collect(ward(), 2000, seed=5).to_csv(path)
    return path


@pytest.fixture(scope="module")
def unknown(folder, table):
    """A run where only the MDP is known."""
    return mm.run(ward_mdp(), table, folder / "unknown", quick(), progress=False)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_log_is_the_one_that_collect_gives(result):
    log = mm.Dataset.from_table(result.folder.log, ward_mdp())
    expected = mm.collect(ward(), 3000, seed=3)
    np.testing.assert_array_equal(log.observations, expected.observations)
    np.testing.assert_array_equal(log.actions, expected.actions)
    assert log.behaviour == "blind"


@pytest.mark.parametrize("label", LEARNERS)
def test_what_is_learned_is_what_the_learner_learns(result, contents, label):
    learner = BY_HAND[label]().fit(mm.collect(ward(), 3000, seed=3))
    model = mm.MissMDP.load(result.folder.learner(label, "learned.mmdp"))
    assert model.missingness == learner.missingness_
    bound = learner.bound(0.95, **({"seed": RunSeeds.of(3).learn} if label == "em" else {}))
    (told,) = [one for one in contents["learners"] if one["label"] == label]
    assert (told["bound"]["worst"], told["bound"]["tv"]) == (bound.worst, bound.tv)
    assert told["bound"]["guaranteed"] == (label != "em")
    distance = mm.total_variation(learner.missingness_, ward())
    assert told["distance"] == {
        "average": distance.average,
        "worst": distance.worst,
        "weighted": distance.weighted,
    }
    assert [group["samples"] for group in told["groups"]] == [group.samples for group in bound.per_group]
    assert [[pattern["estimate"] for pattern in group["patterns"]] for group in told["groups"]] == [
        group.estimate.tolist() for group in bound.per_group
    ]


def test_the_truth_stands_beside_what_was_learned(contents):
    (asmar,) = [one for one in contents["learners"] if one["label"] == "asmar"]
    found = {
        (group["given"]["ward"], tuple(pattern["missing"])): pattern["truth"]
        for group in asmar["groups"]
        for pattern in group["patterns"]
    }
    assert found == pytest.approx(
        {("normal", ()): 0.3, ("normal", ("infection",)): 0.7, ("icu", ()): 0.8, ("icu", ("infection",)): 0.2}
    )


def test_policies_are_those_of_the_solver(result, contents):
    for learner in contents["learners"]:
        label = learner["label"]
        model = mm.MissMDP.load(result.folder.learner(label, "learned.mmdp"))
        search = mm.Sarsop(precision=1e-3, seed=RunSeeds.of(3).solve).solve(model)
        assert (learner["search"]["lower"], learner["search"]["upper"]) == (search.lower, search.upper)
        assert learner["search"]["status"] == "precision"
        policy = mm.load_policy(result.folder.learner(label, "policy.mmpolicy"))
        assert policy.n_vectors == search.policy.n_vectors == learner["search"]["vectors"]
        assert len(rows(result.folder.learner(label, "trace.csv"))) == len(search.trace)
    recommended = contents["recommended"]["label"]
    assert result.folder.policy.read_bytes() == (
        result.folder.learner(recommended, "policy.mmpolicy").read_bytes()
    )


def test_values_are_those_of_a_paired_comparison_in_the_truth(result, contents):
    seeds = RunSeeds.of(3)
    policies = {label: mm.load_policy(result.folder.learner(label, "policy.mmpolicy")) for label in LEARNERS}
    solver = mm.Sarsop(precision=1e-3, seed=seeds.solve)
    policies |= {
        "optimal": solver.solve(ward()).policy,
        "prior": solver.solve(mm.prior_model(ward())).policy,
        "random": None,
    }
    comparison = mm.compare(
        policies, ward(), episodes=200, seed=seeds.evaluate, reference="optimal", control_variate=True
    )
    (world,) = contents["values"]
    assert (world["world"], world["reference"], world["episodes"]) == ("truth", "optimal", 200)
    assert world["horizon"] == ward_mdp().horizon() == contents["model"]["horizon"]
    expected = {row["policy"]: row for row in comparison.rows(0.95)}
    assert [row["policy"] for row in world["rows"]] == list(expected)
    for row in world["rows"]:
        for key in ("value", "stderr", "low", "high", "difference", "difference_stderr"):
            assert row[key] == expected[row["policy"]][key], key
        # Under MAR the prior's policy is as good as the optimal one, so that there is no scale.
        assert row["normalised"] is None
    kinds = {row["policy"]: row["kind"] for row in world["rows"]}
    assert kinds == {
        **dict.fromkeys(LEARNERS, "learned"),
        "optimal": "optimal",
        "prior": "prior",
        "random": "random",
    }


def test_values_are_normalised_where_there_is_a_scale(censored):
    (world,) = censored["values"]
    found = {row["policy"]: row for row in world["rows"]}
    policies = {"optimal": mm.Sarsop(precision=1e-3, seed=RunSeeds.of(0).solve).solve(censored_ward()).policy}
    policies["prior"] = (
        mm.Sarsop(precision=1e-3, seed=RunSeeds.of(0).solve).solve(mm.prior_model(ward())).policy
    )
    policies["random"] = None
    comparison = mm.compare(policies, censored_ward(), 200, RunSeeds.of(0).evaluate, control_variate=True)
    for name in policies:
        expected = mm.normalised_value(comparison[name], comparison["optimal"], comparison["prior"])
        assert found[name]["normalised"] == expected.mean
        assert found[name]["normalised_stderr"] == expected.stderr
        assert (found[name]["normalised_low"], found[name]["normalised_high"]) == expected.interval(0.95)
    assert (found["optimal"]["normalised"], found["prior"]["normalised"]) == (1.0, 0.0)
    assert found["random"]["normalised"] < 0.0


def test_held_out_likelihood_and_sensitivity_are_those_of_the_library(result, contents):
    seeds, log = RunSeeds.of(3), mm.collect(ward(), 3000, seed=3)
    scores = held_out_likelihood(BY_HAND, log, ward_mdp(), 3, seeds.heldout)
    for learner in contents["learners"]:
        score = scores[learner["label"]]
        assert learner["heldout"]["per_step"] == score.per_step
        assert learner["heldout"]["difference"] == score.difference
    label = contents["recommended"]["label"]
    assert label == "asmar"
    found = sensitivity(
        mm.load_policy(result.folder.policy),
        mm.MissMDP.load(result.folder.learner(label, "learned.mmdp")),
        mm.AsMAR().fit(log).bound(0.95),
        draws=2,
        episodes=20,
        seed=seeds.sensitivity,
    )
    assert contents["sensitivity"]["label"] == label
    assert [row["value"] for row in contents["sensitivity"]["rows"]] == [row.value for row in found]


def test_the_recommended_policy_is_about_as_good_as_the_optimal_one(result):
    """A sanity check of the whole: fails with probability below 10⁻⁶ if all is right."""
    gap = result.world.comparison.difference("asmar")
    assert abs(gap.mean) < 5 * gap.stderr + 0.1
    assert result.world.comparison.difference("asmar", "random").mean > 1.0


def test_the_file_holds_the_record(result, unknown):
    for found in (result, unknown):
        assert read_record(found.folder.contents) == found.record
    assert (result.record.truth_known, unknown.record.truth_known) == (True, False)


def test_the_recommended_policy_is_compared_with_all(result):
    comparison, (world,) = result.world.comparison, result.record.values
    assert [gap.than for gap in world.recommended] == [
        name for name in comparison.evaluations if name != "asmar"
    ]
    for gap in world.recommended:
        expected = comparison.difference("asmar", gap.than)
        assert (gap.mean, gap.stderr) == (expected.mean, expected.stderr)
        assert (gap.low, gap.high) == expected.interval(0.95)


def test_all_is_in_the_folder(result, contents):
    there = {
        path.relative_to(result.folder.path).as_posix()
        for path in result.folder.path.rglob("*")
        if path.is_file()
    }
    learners = {
        f"learners/{label}/{name}"
        for label in LEARNERS
        for name in ("learned.mmdp", "policy.mmpolicy", "trace.csv")
    }
    tables = {f"tables/{name}.{ending}" for name in TABLE_NAMES for ending in ("csv", "parquet")}
    certified = {"certified.mmpolicy", "learners/asmar/certified.mmpolicy"}
    known = {"run.json", "report.html", "log.parquet", "policy.mmpolicy"}
    assert there == known | learners | tables | certified
    for learner in contents["learners"]:
        assert set(learner["files"].values()) <= there


def test_tables_say_what_run_json_says(result, contents):
    tables = result.folder.path / "tables"
    values = rows(tables / "values.csv")
    assert [float(row["value"]) for row in values] == [row["value"] for row in contents["values"][0]["rows"]]
    assert {row["world"] for row in values} == {"truth"}
    learned = rows(tables / "learned.csv")
    told = [
        (learner["label"], pattern["estimate"], pattern["truth"])
        for learner in contents["learners"]
        for group in learner["groups"]
        for pattern in group["patterns"]
    ]
    assert [(row["learner"], float(row["estimate"]), float(row["truth"])) for row in learned] == told
    rates = {row["feature"]: float(row["rate"]) for row in rows(tables / "data.csv")}
    assert rates == contents["data"]["missing_rates"]
    assert [row["learner"] for row in rows(tables / "heldout.csv") if row["recommended"] == "True"] == [
        "asmar"
    ]
    for name in TABLE_NAMES:
        table = parquet.read_table(tables / f"{name}.parquet")
        assert table.num_rows == len(rows(tables / f"{name}.csv"))
        assert table.column_names == list(rows(tables / f"{name}.csv")[0])


def test_the_model_is_described(contents):
    model = contents["model"]
    assert (model["name"], model["source"], model["states"], model["reachable"]) == (
        "the ward",
        "the ward",
        6,
        6,
    )
    truth = model["truth"]
    assert truth["observations"] == len(ward().occurring_observations)
    assert (truth["name"], truth["simple_mar"], truth["mcar"]) == ("simple MAR", True, False)
    assert truth["graph"]["edges"] == [["ward", "infection"]]
    assert model["features"][0] == {"name": "infection", "values": ["0", "1", "2"]}


def test_the_data_are_described(contents):
    data, log = contents["data"], mm.collect(ward(), 3000, seed=3)
    assert (data["source"], data["files"], data["steps"]) == ("simulated", [], 3000)
    assert data["behaviour"] == "blind"
    assert data["fits"]
    assert data["missing_rates"] == log.missing_rates()
    missing = int((log.observations[:, 0] == mm.MISSING).sum())
    assert sorted((pattern["missing"], pattern["count"]) for pattern in data["patterns"]) == [
        ([], 3000 - missing),
        (["infection"], missing),
    ]
    assert [pattern["count"] for pattern in data["patterns"]] == sorted(
        (missing, 3000 - missing), reverse=True
    )
    strongest = data["associations"][0]
    assert (strongest["feature"], strongest["given"]) == ("infection", "ward")
    assert 0.4 < strongest["highest"]["rate"] - strongest["lowest"]["rate"] < 0.6


def test_the_same_run_again_finds_the_same(result, contents, folder):
    again = mm.run(ward(), folder=folder / "again", settings=quick(seed=3), name="the ward", progress=False)
    other = json.loads((again.folder.path / "run.json").read_bytes())
    assert without_times(other) == without_times(json.loads(json.dumps(contents)))
    for name in ("log.parquet", "policy.mmpolicy", "tables/values.csv", "tables/sensitivity.csv"):
        assert (folder / "again" / name).read_bytes() == (result.folder.path / name).read_bytes()


def test_nothing_shares_its_luck():
    for seed in range(200):
        seeds = RunSeeds.of(seed)
        assert seeds.data == seed
        assert len(set(astuple(seeds))) == 8


def test_where_the_truth_is_unknown_there_is_a_world_for_each_learner(unknown, table):
    contents = json.loads((unknown.folder.path / "run.json").read_bytes())
    assert [world["world"] for world in contents["values"]] == list(LEARNERS)
    assert contents["data"]["files"] == [str(table)]
    assert (contents["data"]["source"], contents["data"]["behaviour"]) == ("table", "adaptive")
    assert contents["model"]["truth"] is None
    assert all(learner["distance"] is None for learner in contents["learners"])
    assert [one["name"] for one in contents["baselines"]] == ["prior", "random"]
    assert not unknown.folder.log.exists()
    policies = {label: search.policy for label, search in unknown.solved.items()}
    policies |= {"prior": unknown.baselines["prior"].policy, "random": None}
    for world in contents["values"]:
        label = world["world"]
        model = mm.MissMDP.load(unknown.folder.learner(label, "learned.mmdp"))
        seed = RunSeeds.of(0).evaluate
        comparison = mm.compare(
            policies, model, episodes=200, seed=seed, reference=label, control_variate=True
        )
        assert world["reference"] == label
        assert [row["value"] for row in world["rows"]] == [row["value"] for row in comparison.rows()]
        own = comparison[label]
        bounds = unknown.solved[label]
        assert bounds.lower - 5 * own.stderr < own.mean < bounds.upper + 5 * own.stderr


def test_a_model_whose_missingness_is_not_to_be_looked_at_is_an_mdp(unknown, folder, table):
    settings = quick(unknown_truth=True)
    hidden = mm.run(ward(), table, folder / "hidden", settings, progress=False)
    mine, other = (
        without_times(json.loads((one.folder.path / "run.json").read_bytes())) for one in (hidden, unknown)
    )
    assert mine["settings"].pop("unknown_truth") != other["settings"].pop("unknown_truth")
    assert mine == other


def test_with_data_and_a_miss_mdp_its_missingness_counts_as_the_truth(folder, table):
    result = mm.run(ward(), table, folder / "claimed", quick(learners=("asmar",)), progress=False)
    assert list(result.worlds) == ["truth"]
    assert any(
        "as the model says, which was not tested" in sentence for sentence in limitations(result.record)
    )


def test_what_more_time_would_not_solve_is_said(result):
    def stuck(found, names):
        return tuple(
            replace(one, search=replace(one.search, status="exhausted", relative_gap=1.5))
            if one.search is not None and one.name in names
            else one
            for one in found
        )

    learners = {one.name for one in result.record.learners}
    record = replace(result.record, baselines=stuck(result.record.baselines, {"prior"}))
    sentences = list(limitations(record))
    assert any("the solver has nothing more to try there." in sentence for sentence in sentences)
    assert any(
        sentence.endswith("prior; the solver has nothing more to try there.")
        for sentence in _troubles(record)
    )
    both = replace(record, learners=stuck(record.learners, learners))
    assert any("the solver has nothing more to try there." in sentence for sentence in limitations(both))


def test_what_cannot_be_known_is_said(result, unknown):
    known, open_ = limitations(result.record), limitations(unknown.record)
    assert any("because the data were simulated" in sentence for sentence in known)
    assert any("is not known" in sentence for sentence in open_)
    assert any("whether whoever acted reacted" in sentence for sentence in open_)
    for sentences in (known, open_):
        assert any(sentence.startswith("Whether infection goes missing because") for sentence in sentences)
        assert any(sentence.startswith("ward was never missing in") for sentence in sentences)


def test_data_in_memory_are_taken_as_they_are(folder, unknown, table):
    frame = mm.Dataset.from_table(table, ward_mdp()).to_pandas()
    result = mm.run(ward_mdp(), frame, folder / "frame", quick(), progress=False)
    assert result.log.files == ()
    assert result.world.comparison["asmar"].mean == unknown.world.comparison["asmar"].mean
    log = mm.Dataset.from_table(table, ward_mdp())
    again = mm.run(ward_mdp(), log, folder / "dataset", quick(), progress=False)
    assert again.world.comparison["asmar"].mean == unknown.world.comparison["asmar"].mean


def test_a_benchmark_is_known_by_its_name(folder):
    result = mm.run(
        "example-2-smar",
        folder=folder / "named",
        settings=quick(steps=500, learners=("amcar",), sensitivity_episodes=0),
        progress=False,
    )
    assert result.problem.name == "example-2-smar"
    assert result.sensitivity is None
    assert json.loads(result.folder.contents.read_bytes())["sensitivity"] is None
    assert "only learner" in result.recommendation.why


def test_a_log_that_does_not_fit_is_told_and_used(folder):
    table = {
        "episode": [0, 0, 0, 1, 1],
        "step": [0, 1, 2, 0, 1],
        "infection": [0, None, 2, 1, None],
        "ward": ["icu", "icu", "icu", "normal", "normal"],
        "action": ["wait", "treat", None, "treat", None],
    }
    result = mm.run(ward_mdp(), table, folder / "misfit", quick(folds=2), progress=False)
    contents = json.loads(result.folder.contents.read_bytes())
    assert not contents["data"]["fits"]
    assert any("no initial state admits" in problem for problem in contents["data"]["problems"])
    assert read_record(result.folder.contents) == result.record


@pytest.mark.parametrize(
    ("infection", "ward_seen"),
    [([0], ["normal"]), ([None], ["normal"]), ([None, None], [None, None]), ([0, 1], ["normal", "normal"])],
    ids=["one row", "one gap", "nothing seen", "nothing missing"],
)
def test_logs_that_say_next_to_nothing(tmp_path, infection, ward_seen):
    count = len(infection)
    table = {
        "episode": [0] * count,
        "step": list(range(count)),
        "infection": infection,
        "ward": ward_seen,
        "action": ["wait"] * (count - 1) + [None],
    }
    settings = quick(episodes=10, sensitivity_episodes=2)
    result = mm.run(ward_mdp(), table, tmp_path / "out", settings, progress=False)
    contents = json.loads(result.folder.contents.read_bytes())
    assert read_record(result.folder.contents) == result.record
    assert result.report.exists()
    if count == 1:
        assert result.heldout is None
        assert "Nothing could be held out" in contents["recommended"]["why"]
    if all(value is not None for value in infection):
        assert any(sentence.startswith("Nothing is missing") for sentence in limitations(result.record))


def test_data_that_the_truth_rules_out_are_told(tmp_path):
    """The MDP allows them, but not M: nothing goes missing in what is said to be the truth."""
    mdp = ward_mdp()
    seen = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
    log = mm.collect(ward(), 300, seed=1)
    settings = quick(episodes=20, sensitivity_episodes=0)
    result = mm.run(seen, log, tmp_path / "out", settings, progress=False)
    contents = json.loads(result.folder.contents.read_bytes())
    by_hand = sum(
        (log.observations[start:end] < 0).any() for start, end in itertools.pairwise(log.offsets.tolist())
    )
    assert result.log.ruled_out == by_hand > 0
    assert contents["data"]["problems"][-1].startswith(
        f"{by_hand} of {log.n_episodes} episodes cannot happen"
    )
    assert limitations(result.record)[0].startswith(
        "Values did not go missing in these data as the model says"
    )
    assert not any("other transitions" in sentence for sentence in limitations(result.record)), (
        "none were tried"
    )
    fitting = mm.run(ward(), log, tmp_path / "fits", settings, progress=False)
    assert (fitting.log.ruled_out, fitting.log.problems) == (0, ())


def test_models_too_large_for_likelihoods_are_run_without_them(tmp_path, monkeypatch):
    def refused(*arguments, **named):
        raise mm.ModelError("the transition matrices would take about 1.0 TB of memory")

    monkeypatch.setattr("missmdp.experiments.run.work.held_out_likelihood", refused)
    result = mm.run(ward(), folder=tmp_path / "large", settings=quick(seed=3), progress=False)
    assert result.heldout is None
