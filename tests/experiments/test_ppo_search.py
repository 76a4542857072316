"""The search for PPO's hyperparameters: what is drawn, what is stored, and that it goes on where it was."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from experiments import stand_in
from missmdp.experiments.ppo_search import search_ppo
from missmdp.experiments.ppo_trials import (
    CHOICES,
    INTERVALS,
    fresh_seed,
    sample_settings,
    selection_seed,
    training_seed,
)

PAPER = {
    "layers": {2, 3, 4, 5},
    "units": {32, 64, 128, 256, 512},
    "minibatch": {32, 64, 128, 256},
    "epochs": {5, 10, 20},
}
INTERVALS_OF_THE_PAPER = {
    "clip_range": (0.10, 0.30, False),
    "entropy": (1e-4, 5e-2, True),
    "target_kl": (5e-3, 3e-2, True),
    "actor_learning_rate": (1e-5, 3e-4, True),
    "critic_learning_rate": (1e-4, 3e-3, True),
}


@pytest.fixture(scope="module")
def drawn():
    return [sample_settings(7, trial) for trial in range(4000)]


@pytest.fixture(scope="module")
def model():
    return mm.load_benchmark("example-1")


def search(model, folder, **options):
    options = {"trials": 4, "steps": 100, "episodes": 50, "train": stand_in.train} | options
    return search_ppo(model, folder, progress=False, **options)


def table(found):
    """Return all but the time that it took."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found.rows()]


def file_of(folder, number, ending=".cell"):
    (path,) = folder.glob(f"trial-{number:03d}-*{ending}")
    return path


def numbers(folder):
    return sorted(path.name.split("-")[1] for path in folder.glob("trial-*.cell"))


# What is drawn


def test_the_search_space_is_the_papers():
    assert {name: set(values) for name, values in CHOICES.items()} == PAPER
    assert {name: ends[:2] for name, ends in INTERVALS_OF_THE_PAPER.items()} == INTERVALS


@pytest.mark.parametrize("name", PAPER)
def test_choices_are_drawn_uniformly(drawn, name):
    """Every value, no other, and a χ² test at 10⁻⁶, which is the probability that it fails by chance."""
    values = [getattr(settings, name) for settings in drawn]
    assert set(values) == PAPER[name]
    counts = [values.count(value) for value in sorted(PAPER[name])]
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("name", INTERVALS_OF_THE_PAPER)
def test_intervals_are_drawn_uniformly_or_log_uniformly(drawn, name):
    """Inside, close to both ends, and a Kolmogorov–Smirnov test at 10⁻⁶, the probability of failing by chance."""
    low, high, log = INTERVALS_OF_THE_PAPER[name]
    values = np.array([getattr(settings, name) for settings in drawn])
    assert low <= values.min()
    assert values.max() <= high
    place = np.log(values / low) / math.log(high / low) if log else (values - low) / (high - low)
    assert stats.kstest(place, "uniform").pvalue > 1e-6
    # The largest of 4,000 misses the last 1 % with probability 0.99⁴⁰⁰⁰ < 10⁻¹⁷.
    assert place.min() < 0.01
    assert place.max() > 0.99


def test_draws_are_independent_of_each_other(drawn):
    """Rank correlations of 4,000 trials are normal with deviation 1/√3999: 36 pairs beyond 6 deviations at 10⁻⁷."""
    columns = np.array(
        [[getattr(settings, name) for name in (*PAPER, *INTERVALS_OF_THE_PAPER)] for settings in drawn]
    )
    ranks = stats.spearmanr(columns).statistic
    assert np.abs(ranks[~np.eye(len(ranks), dtype=bool)]).max() < 6 / math.sqrt(3999)


def test_a_trial_depends_on_the_seed_and_its_number_alone():
    assert sample_settings(3, 5) == sample_settings(3, 5)
    assert sample_settings(3, 5) != sample_settings(3, 6)
    assert sample_settings(3, 5) != sample_settings(4, 5)
    assert training_seed(3, 5) == training_seed(3, 5)
    others = {training_seed(3, 5), training_seed(3, 6), training_seed(4, 5), training_seed(5, 3)}
    assert len(others | {selection_seed(3), fresh_seed(3)}) == 6


def test_what_the_table_does_not_name_is_given_or_constant():
    settings = sample_settings(0, 1, steps=500, memory=True, horizon=9)
    assert (settings.steps, settings.memory, settings.horizon) == (500, True, 9)
    assert not settings.anneal
    alone = sample_settings(0, 1)
    assert [getattr(alone, name) for name in PAPER] == [getattr(settings, name) for name in PAPER]


# What comes out


def test_the_best_is_kept_with_its_settings(model, tmp_path):
    found = search(model, tmp_path / "s")
    assert [trial.value for trial in found.trials] == sorted(
        (trial.value for trial in found.trials), reverse=True
    )
    assert sorted(trial.number for trial in found.trials) == [1, 2, 3, 4]
    best = mm.load_policy(tmp_path / "s" / "best.mmpolicy")
    settings = mm.PPOSettings.from_json((tmp_path / "s" / "best.json").read_text())
    assert (
        settings == found.best.settings == best.settings == sample_settings(0, found.best.number, steps=100)
    )
    again = mm.evaluate(best, model, 50, selection_seed(0))
    assert again.mean == found.best.value
    assert again.stderr == found.best.stderr
    assert found.again.seed == fresh_seed(0)
    assert found.again.mean == mm.evaluate(best, model, 50, fresh_seed(0)).mean
    rows = (tmp_path / "s" / "trials.csv").read_text().splitlines()
    assert len(rows) == 5
    assert rows[0].startswith("trial,value,stderr,")
    assert float(rows[1].split(",")[1]) == found.best.value


def test_it_says_that_the_best_is_optimistic(model, tmp_path):
    found = search(model, tmp_path)
    assert f"Trial {found.best.number} is the best of 4" in found.describe()
    assert "In 50 other episodes it is worth" in found.describe()
    assert str(found).endswith(f"with the settings of trial {found.best.number}, the best of 4")
    assert "PPOSearch(" in repr(found)


def test_trials_train_with_their_own_settings_and_seed(model, tmp_path):
    seen = []

    def train(given, settings, seed):
        assert given == model
        seen.append((settings, seed))
        return stand_in.train(given, settings, seed)

    search(model, tmp_path, trials=3, seed=9, memory=True, horizon=12, train=train)
    assert seen == [
        (sample_settings(9, k, steps=100, memory=True, horizon=12), training_seed(9, k)) for k in (1, 2, 3)
    ]


# Stopping and going on


def refuse(model, settings, seed):
    raise AssertionError("there is nothing left to train")


def test_finished_trials_are_not_done_again(model, tmp_path):
    once = search(model, tmp_path)
    reported = []
    again = search(
        model, tmp_path, train=refuse, report=lambda trial, known: reported.append((trial.number, known))
    )
    assert table(once) == table(again)
    assert again.again.mean == once.again.mean
    assert reported == [(number, True) for number in (1, 2, 3, 4)]


def test_more_trials_extend_fewer(model, tmp_path):
    search(model, tmp_path / "grown", trials=2)
    grown = search(model, tmp_path / "grown", trials=4)
    assert table(grown) == table(search(model, tmp_path / "whole", trials=4))


def test_asking_for_fewer_trials_loses_none(model, tmp_path):
    """Also where the winner is not among those that are asked for."""
    whole = search(model, tmp_path, trials=6)
    results = [tmp_path / name for name in ("best.mmpolicy", "best.json", "trials.csv")]
    before = [path.read_bytes() for path in results]
    assert whole.best.number == 5
    for trials in (1, 4, 5):
        reported = []
        fewer = search(
            *(model, tmp_path),
            trials=trials,
            train=refuse,
            report=lambda trial, known, reported=reported: reported.append((trial.number, known)),
        )
        assert table(fewer) == table(whole)
        assert (fewer.best, fewer.wanted, fewer.status) == (whole.best, trials, "finished")
        assert [path.read_bytes() for path in results] == before
        assert reported == [(number, True) for number in range(1, trials + 1)]


def test_ctrl_c_in_a_trial_that_is_done_again_loses_none(model, tmp_path):
    whole = search(model, tmp_path, trials=4)
    file_of(tmp_path, 1).unlink()
    (tmp_path / "trial-9-0a1b.cell").write_text("{}")

    def train(given, settings, seed):
        raise KeyboardInterrupt

    found = search(model, tmp_path, trials=2, train=train)
    assert table(found) == [row for row in table(whole) if row["trial"] != 1]
    assert "Interrupted: 1 of 2 trials are finished" in found.describe()


def test_an_interrupted_trial_is_not_kept(model, tmp_path):
    def train(given, settings, seed):
        status = "interrupted" if seed == training_seed(0, 3) else "trained"
        return stand_in.result_of(stand_in.drawn_network(given, settings, seed), settings, seed, status)

    found = search(model, tmp_path / "s", train=train)
    assert found.status == "interrupted"
    assert sorted(trial.number for trial in found.trials) == [1, 2]
    assert "2 of 4 trials are finished; run it again to resume" in found.describe()
    assert not list((tmp_path / "s").glob("trial-003-*.cell"))
    assert table(search(model, tmp_path / "s")) == table(search(model, tmp_path / "whole"))


def test_ctrl_c_while_training_keeps_what_is_finished(model, tmp_path):
    def train(given, settings, seed):
        if seed == training_seed(0, 2):
            raise KeyboardInterrupt
        return stand_in.train(given, settings, seed)

    assert search(model, tmp_path, train=train).status == "interrupted"
    assert file_of(tmp_path, 1).exists()


def test_ctrl_c_before_anything_is_finished_has_no_result(model, tmp_path):
    def train(given, settings, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(model, tmp_path, train=train)


def test_an_error_in_a_later_trial_keeps_the_earlier_ones(model, tmp_path):
    def train(given, settings, seed):
        if seed == training_seed(0, 3):
            raise MemoryError
        return stand_in.train(given, settings, seed)

    with pytest.raises(MemoryError):
        search(model, tmp_path, train=train)
    assert numbers(tmp_path) == ["001", "002"]


SEARCHING = """
import sys, time
sys.path.insert(0, sys.argv[2])
import missmdp as mm
from experiments import stand_in
from missmdp.experiments.ppo_search import search_ppo

def train(model, settings, seed):
    result = stand_in.train(model, settings, seed)
    print("training", flush=True)
    time.sleep(float(sys.argv[3]))
    return result

search_ppo(mm.load_benchmark("example-1"), sys.argv[1], 4, 100, episodes=50, progress=False, train=train)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_search_that_was_killed_goes_on_as_if_nothing_had_happened(model, tmp_path):
    tests = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SEARCHING, str(tmp_path / "killed"), str(tests), "0.3"], stdout=subprocess.PIPE
    )
    try:
        for _ in range(3):
            assert process.stdout.readline() == b"training\n"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert numbers(tmp_path / "killed") == ["001", "002"]
    undisturbed = search(model, tmp_path / "undisturbed")
    resumed = search(model, tmp_path / "killed")
    assert table(resumed) == table(undisturbed)
    assert resumed.again.mean == undisturbed.again.mean
    for name in ("best.json", "best.mmpolicy", "search.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


@pytest.mark.parametrize("ending", [".mmpolicy", ".cell"])
@pytest.mark.parametrize("damage", ["gone", "cut", "other", "empty", "list"])
def test_a_damaged_trial_is_done_again(model, tmp_path, caplog, ending, damage):
    once = search(model, tmp_path)
    path = file_of(tmp_path, 2, ending)
    content = path.read_bytes()
    match damage:
        case "gone":
            path.unlink()
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "other":
            path.write_bytes(file_of(tmp_path, 1, ending).read_bytes())
        case "empty":
            path.write_bytes(b"")
        case _:
            path.write_bytes(b"[1]")
    seeds = []

    def train(given, settings, seed):
        seeds.append(seed)
        return stand_in.train(given, settings, seed)

    assert table(search(model, tmp_path, train=train)) == table(once)
    assert seeds == [training_seed(0, 2)]
    assert path.read_bytes()
    if not (ending == ".cell" and damage == "gone"):
        assert "the cell counts as not finished" in caplog.text


def test_half_written_files_are_not_trials(model, tmp_path):
    once = search(model, tmp_path, trials=2)
    (tmp_path / ".trial-003-0a1b.cell.0a1b").write_text("{")
    assert table(search(model, tmp_path, trials=2, train=refuse)) == table(once)


# What is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"steps": 101}, "with steps = 100, not 101"),
        ({"memory": True}, "with memory = False, not True"),
        ({"seed": 1}, "with seed = 0, not 1"),
        ({"episodes": 51}, "with episodes = 50, not 51"),
        ({"horizon": 5}, "with horizon = None, not 5"),
    ],
)
def test_a_folder_of_another_search_is_refused(model, tmp_path, changed, message):
    search(model, tmp_path, trials=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(mm.DataError, match="holds a search") as caught:
        search(model, tmp_path, trials=1, train=refuse, **changed)
    assert message in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_of_another_model_is_refused(model, tmp_path):
    search(model, tmp_path, trials=1)
    for other in (
        mm.load_benchmark("example-3"),
        model.with_missingness(mm.MissingnessFunction.fully_observed(model.mdp)),
    ):
        with pytest.raises(mm.DataError, match="holds a search for another model; give another folder"):
            search(other, tmp_path, trials=1)


def test_the_name_of_a_model_does_not_matter(model, tmp_path):
    search(model, tmp_path / "s", trials=1)
    model.save(tmp_path / "m.mmdp")
    renamed = mm.MissMDP(mm.MissMDP.load(tmp_path / "m.mmdp").mdp, model.missingness, name="another")
    assert len(search(renamed, tmp_path / "s", trials=1, train=refuse).trials) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "cannot be read"), ("[]", "not the description"), ('{"kind": "else"}', "not the description")],
)
def test_a_damaged_description_is_refused(model, tmp_path, content, message):
    (tmp_path / "search.json").write_text(content)
    with pytest.raises(mm.FormatError, match=message):
        search(model, tmp_path)


def test_trials_without_a_description_are_refused(model, tmp_path):
    search(model, tmp_path, trials=1)
    (tmp_path / "search.json").unlink()
    with pytest.raises(mm.DataError, match="has trials but no search.json"):
        search(model, tmp_path)


def test_trials_of_an_earlier_version_are_refused(model, tmp_path):
    (tmp_path / "trial-001.json").write_text("{}")
    with pytest.raises(mm.FormatError, match="earlier version"):
        search(model, tmp_path, train=refuse)


def test_a_file_is_no_folder(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(mm.DataError, match="is a file; give a folder"):
        search(model, tmp_path / "file")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trials": 0}, "trials"),
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"episodes": 0}, "episodes"),
        ({"episodes": 1}, "one episode has no error"),
        ({"seed": -1}, "seed"),
        ({"horizon": 0}, "horizon"),
        ({"memory": "yes"}, "memory"),
    ],
)
def test_wrong_arguments_are_said_before_anything_is_written(model, tmp_path, changed, message):
    with pytest.raises(mm.MissMDPError, match=message):
        search(model, tmp_path / "s", train=refuse, **changed)
    assert not (tmp_path / "s").exists()


def test_a_model_is_needed(tmp_path):
    with pytest.raises(mm.ModelError):
        search("icu-smar", tmp_path / "s")


# With stable-baselines3


def test_it_trains_for_real(model, tmp_path):
    pytest.importorskip("stable_baselines3")
    found = search_ppo(model, tmp_path, trials=1, steps=300, episodes=20, progress=False)
    assert found.best.steps >= 300
    assert found.best.training_seed == training_seed(0, 1)
    with_memory = search_ppo(
        model, tmp_path / "memory", trials=1, steps=300, memory=True, horizon=8, episodes=20, progress=False
    )
    assert with_memory.policy.memory
    assert with_memory.again.horizon == 8
