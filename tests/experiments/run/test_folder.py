"""Whose folder it is, what is kept when something fails, and that nothing of others is touched."""

import json

import pytest

import missmdp as mm
from experiments.run.wards import quick, ward, ward_mdp
from missmdp.errors import DataError, MissMDPError
from missmdp.experiments.run import reading, solving, work
from missmdp.learn.aimi import AIMI

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

SHORT = {
    "steps": 300,
    "learners": ("amcar", "asmar"),
    "episodes": 20,
    "sensitivity_episodes": 2,
    "diagnosis": False,
    "certificate": False,
}


def run(folder, *, overwrite=False, data=None, model=None, **changes):
    settings = quick(**{**SHORT, **changes})
    model = ward() if model is None else model
    return mm.run(model, data, folder, settings, overwrite=overwrite, progress=False)


def refuse_to(monkeypatch, module, name, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(module, name, fail)


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_same_run_may_be_done_again(tmp_path):
    run(tmp_path / "out", certificate=True)
    before = files(tmp_path / "out")
    assert "certified.mmpolicy" in before
    (tmp_path / "out" / "tables" / "values.csv").write_text("spoilt")
    run(tmp_path / "out", certificate=True)
    assert files(tmp_path / "out") == before
    assert "spoilt" not in (tmp_path / "out" / "tables" / "values.csv").read_text()


def test_a_folder_with_something_else_is_refused_before_any_work(tmp_path, monkeypatch):
    refuse_to(monkeypatch, reading, "collect", AssertionError("no work was to be done"))
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty, and holds no run; give another folder"):
        run(tmp_path)
    with pytest.raises(DataError, match="is not empty"):
        run(tmp_path, overwrite=True)
    with pytest.raises(DataError, match="mine.txt is a file; give a folder"):
        run(tmp_path / "mine.txt")
    with pytest.raises(DataError, match="cannot be written"):
        run(tmp_path / "mine.txt" / "below")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "run.json").write_text(json.dumps({"kind": "something else"}))
    with pytest.raises(DataError, match="holds no run"):
        run(tmp_path / "json")


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"steps": 301}, "with steps = 300, not 301"),
        ({"seed": 1}, "with seed = 0, not 1"),
        ({"learners": ("amcar",)}, r'with learners = \["amcar", "asmar"\], not \["amcar"\]'),
        ({"model": mm.load_benchmark("example-1")}, "of another model"),
    ],
)
def test_another_run_is_written_over_only_if_asked(tmp_path, changes, difference):
    folder = tmp_path / "out"
    first = run(folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "learners" / "notes.txt").write_text("mine")
    kept = first.folder.contents.read_bytes()
    with pytest.raises(DataError, match=difference):
        run(folder, **changes)
    assert first.folder.contents.read_bytes() == kept
    run(folder, overwrite=True, **changes)
    assert first.folder.contents.read_bytes() != kept
    assert (folder / "notes.txt").read_text() == (folder / "learners" / "notes.txt").read_text() == "mine"
    if "learners" in changes:
        assert not (folder / "learners" / "asmar" / "policy.mmpolicy").exists(), "it is of the other run"


def test_other_files_make_another_run(tmp_path):
    for name in ("one.csv", "two.csv"):
        mm.collect(ward(), 200, seed=1).to_csv(tmp_path / name)
    run(tmp_path / "out", data=[tmp_path / "one.csv"])
    with pytest.raises(DataError, match="holds another run, on other data"):
        run(tmp_path / "out", data=tmp_path / "two.csv")


def test_other_data_in_memory_make_another_run(tmp_path):
    one, other = (mm.collect(ward(), 200, seed=seed) for seed in (1, 2))
    run(tmp_path / "out", data=one)
    run(tmp_path / "out", data=one)
    for data in (other, other.to_pandas()):
        with pytest.raises(DataError, match="holds another run, on other data"):
            run(tmp_path / "out", data=data)


def test_data_are_not_read_from_what_is_written_over(tmp_path):
    log = run(tmp_path / "out").folder.log
    before = log.read_bytes()
    with pytest.raises(DataError, match="must not lie in"):
        run(tmp_path / "out", data=log, overwrite=True)
    assert log.read_bytes() == before


def test_settings_that_json_does_not_have(tmp_path):
    found = run(tmp_path / "out", timeout=float("inf"))
    assert json.loads(found.folder.contents.read_bytes())["settings"]["timeout"] is None
    run(tmp_path / "out", timeout=float("inf"))


def test_an_old_run_stays_if_the_new_data_cannot_be_read(tmp_path):
    table = tmp_path / "own.csv"
    mm.collect(ward(), 200, seed=1).to_csv(table)
    run(tmp_path / "out", data=table)
    before = files(tmp_path / "out")
    table.write_text("nothing,of,this\n1,2,3\n")
    with pytest.raises(DataError):
        run(tmp_path / "out", data=table)
    assert files(tmp_path / "out") == before


def test_what_is_made_is_kept_when_a_later_stage_fails(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    run(folder)
    with monkeypatch.context() as patch:
        refuse_to(patch, solving, "compare", MissMDPError("no more room"))
        with pytest.raises(MissMDPError, match="no more room"):
            run(folder)
    kept = files(folder)
    assert {"log.parquet", "policy.mmpolicy", "unfinished.json", "tables/learned.csv"} <= kept
    for label in ("amcar", "asmar"):
        assert f"learners/{label}/learned.mmdp" in kept
        mm.load_policy(folder / "learners" / label / "policy.mmpolicy")
    assert not kept & {"run.json", "report.html", "tables/values.csv"}, "these would be of the run before"
    run(folder)
    assert "unfinished.json" not in files(folder)
    assert {"run.json", "report.html", "tables/values.csv"} <= files(folder)


def test_nothing_is_left_of_a_run_that_had_a_certificate(tmp_path):
    run(tmp_path / "out", certificate=True)
    run(tmp_path / "out", overwrite=True)
    assert not {name for name in files(tmp_path / "out") if "certified" in name}


def test_an_unfinished_run_is_still_a_run(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        refuse_to(patch, solving, "compare", KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            run(folder)
    with pytest.raises(DataError, match="with seed = 0, not 5"):
        run(folder, seed=5)
    run(folder, seed=5, overwrite=True)


def test_values_are_not_lost_to_ctrl_c_at_the_end(tmp_path, monkeypatch):
    refuse_to(monkeypatch, work, "sensitivity", KeyboardInterrupt())
    result = run(tmp_path / "out")
    assert result.sensitivity is None
    assert json.loads(result.folder.contents.read_bytes())["sensitivity"] is None
    assert result.report.exists()


def test_all_but_the_report_is_kept_if_that_fails(tmp_path, monkeypatch):
    refuse_to(monkeypatch, work, "write_report", MissMDPError("no paper"))
    result = run(tmp_path / "out")
    assert result.report_failed == "no paper"
    assert result.folder.contents.exists()


def test_a_learner_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    refuse_to(monkeypatch, AIMI, "fit", DataError("too many patterns"))
    result = run(tmp_path / "out", learners=("amcar", "aimi"))
    contents = json.loads(result.folder.contents.read_bytes())
    assert [learner["label"] for learner in contents["learners"]] == ["amcar"]
    assert contents["skipped"] == [{"label": "aimi", "why": "too many patterns"}]
    with pytest.raises(DataError, match="aimi: too many patterns"):
        run(tmp_path / "other", learners=("aimi",))


def test_what_cannot_go_well_is_told_before_any_work(tmp_path, monkeypatch):
    refuse_to(monkeypatch, reading, "collect", AssertionError("no work was to be done"))
    with pytest.raises(DataError, match="so no data can be simulated; pass data"):
        run(tmp_path / "out", model=ward_mdp())
    with pytest.raises(DataError, match="no feature 'fever'"):
        run(tmp_path / "out", always_observed=("fever",))
    with pytest.raises(DataError, match="smoothing must be"):
        run(tmp_path / "out", smoothing=-1.0)
    with pytest.raises(MissMDPError, match="model must be a MissMDP"):
        run(tmp_path / "out", model=3)
    odd = mm.FactoredMDP(
        features={"x": [frozenset({1}), frozenset({2})]},
        actions=["stay"],
        transition=lambda state, action: {state: 1.0},
        reward=lambda state, action: 0.0,
        initial={(frozenset({1}),): 1.0},
    )
    with pytest.raises(MissMDPError, match="cannot be saved"):
        run(tmp_path / "out", model=odd, data={"episode": [0], "step": [0], "x": [None], "action": [None]})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ()}, "learners must be one or more of amcar"),
        ({"learners": ("amcar", "ppo")}, "no learner 'ppo'; there are amcar, asmar, aimi, icin, em, auto"),
        (
            {"learners": ("auto", "em")},
            "auto is the one learner that the diagnosis recommends: it goes with no other",
        ),
        ({"learners": ("auto",), "diagnosis": False}, "the diagnosis recommends, which is left out"),
        ({"learners": ("amcar", "amcar")}, "given twice"),
        ({"steps": 0}, "steps must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"behaviour": "wild"}, "behaviour must be"),
        ({"folds": 1}, "folds must be"),
        ({"episodes": 1}, "episodes must be an integer of at least 2"),
        ({"sensitivity_episodes": -1}, "episodes must be"),
        ({"sensitivity_draws": 0}, "sensitivity_draws must be"),
        ({"seed": -1}, "seed must be"),
        ({"precision": -0.1}, "precision must be"),
        ({"timeout": -1.0}, "timeout must be"),
        ({"learners": ("amcar",), "blocks": (("x", "y"),)}, "only aimi, icin and em know blocks"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(MissMDPError, match=message):
        mm.RunSettings(**changes)
