"""The table of learners says what is true of them, and users can add their own."""

import functools
import inspect
import subprocess
import sys

import pytest

import missmdp as mm
from missmdp.learn.registry import OPTIONS, find_learner, learners, learners_with, run_by_default


@pytest.mark.parametrize("label", ["amcar", "asmar", "aimi", "icin", "em"])
def test_the_table_says_what_is_true(label):
    entry = find_learner(label)
    learner = entry.make(mm.load_benchmark("icu-smar").mdp)
    assert type(learner).__name__ == entry.name
    assert learner.has_bound == entry.has_bound
    assert learner.needs_histories == entry.needs_histories
    known = set(inspect.signature(type(learner)).parameters)
    assert {entry.stands_for.get(option, option) for option in entry.options} <= known
    assert [option for option in OPTIONS if option in known and option not in entry.options] == []


def test_the_learners_of_a_run():
    assert run_by_default() == ("amcar", "asmar", "aimi", "em")
    assert learners_with("blocks") == ("aimi", "icin", "em")


def test_learners_are_found_by_label_or_name():
    assert find_learner("EM") is find_learner("DynamicsEM") is learners()["em"]
    with pytest.raises(mm.DataError, match=r"there is no learner 'asmra'; there are .*did you mean 'asmar'"):
        find_learner("asmra")


def test_options_that_a_learner_does_not_know_do_not_reach_it():
    mdp = mm.load_benchmark("icu-smar").mdp
    given = {"smoothing": 0.5, "blocks": (), "always_observed": None, "seed": 3, "pseudo_count": 2.0}
    assert find_learner("amcar").make(mdp, **given).get_params()["smoothing"] == 0.5
    made = find_learner("em").make(mdp, **given)
    assert (made.seed, made.pseudo_count, made.mdp) == (3, 2.0, mdp)
    graph = mm.load_benchmark("icu-smar").mgraph()
    assert find_learner("em").make(mdp, graph=graph).structure is graph
    assert find_learner("aimi").make(mdp, graph=graph).graph is graph


class Ours(mm.AsMAR):
    """A user's own."""


def test_a_sixth_learner():
    try:
        entry = mm.register_learner(functools.partial(Ours, smoothing=0.5), "ours", assumes="what we know")
        assert (entry.name, entry.has_bound) == ("Ours", True)
        assert "smoothing" in entry.options
        assert find_learner("ours").make(mm.load_benchmark("icu-smar").mdp).smoothing == 0.5
    finally:
        mm.forget_learner("ours")
    assert "ours" not in learners()


@pytest.mark.parametrize("label", ["asmar", "auto", "Two Words", 3])
def test_labels_that_cannot_be(label):
    with pytest.raises(mm.DataError, match="label"):
        mm.register_learner(Ours, label, assumes="nothing")


def test_only_learners_are_registered():
    with pytest.raises(mm.DataError, match="expected a MissingnessEstimator, got dict"):
        mm.register_learner(dict, "dict", assumes="nothing")
    with pytest.raises(mm.DataError, match="make must be a class"):
        mm.register_learner(3, "three", assumes="nothing")
    with pytest.raises(mm.DataError, match="label must be the label of a registered learner"):
        mm.forget_learner("asmar")


def test_the_table_is_light():
    """Commands read it before anything else."""
    code = "import missmdp.learn.registry, sys; print('numpy' in sys.modules or 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
