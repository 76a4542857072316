"""Models that are too large to be listed are refused at once, with what would work for them."""

import numpy as np
import pytest

import missmdp as mm
from missmdp import memory
from missmdp.evaluation.likelihood import filter_seconds
from missmdp.model.missing_factors import Part
from missmdp.model.pomdp import optimal_values_seconds
from missmdp.plan.sarsop import listing


@pytest.fixture
def little_memory(monkeypatch):
    """Let 100 MB be free, and nothing be listed."""

    def listed(self):
        raise AssertionError("observations are listed")

    for module in (memory, listing):
        monkeypatch.setattr(module, "free_memory", lambda: 1e8)
    monkeypatch.setattr(mm.MissMDP, "to_pomdp", listed)


def joint_fleet(k):
    """Return a fleet in which gaps come as one block of all patterns, as AMCAR learns them."""
    model = mm.load_benchmark(f"fleet-{k}")
    hidden = [i for i, name in enumerate(model.features) if name.startswith("wear")]
    patterns = np.array(list(np.ndindex(*[2] * len(hidden))), dtype=np.bool_)
    chances = np.arange(1.0, 1.0 + len(patterns))
    part = Part(tuple(hidden), patterns, (chances / chances.sum())[None], ())
    return mm.MissMDP(model.mdp, mm.MissingnessFunction.from_parts(model.space, [part]))


def test_an_m_that_is_no_product_names_learners_whose_m_is(little_memory):
    text = listing.what_works(joint_fleet(8))
    assert "AIMI(assume='simple MAR')" in text
    assert "OnlinePlanner" not in text  # its matrices would not fit either
    assert "POMCP" not in text


def test_acting_before_the_first_observation_names_acting_after_it(little_memory):
    with pytest.raises(mm.ModelError, match="act after the first observation"):
        mm.Sarsop(timeout=1, observe_initial=False, progress=False).solve(mm.load_benchmark("fleet-8"))


def test_a_planner_is_named_where_its_matrices_fit(little_memory):
    model = joint_fleet(6)
    assert listing.what_works(model).endswith("or plan while acting with OnlinePlanner")


def test_what_takes_long_is_foreseen():
    small, large = mm.load_benchmark("fleet-4"), mm.load_benchmark("fleet-12")
    assert optimal_values_seconds(small.mdp) == 0.0
    assert 60.0 < optimal_values_seconds(large.mdp) < 3600.0
    assert filter_seconds(small, 10_000) == 0.0
    assert filter_seconds(large, 10_000) == 0.0  # machine by machine
    assert filter_seconds(joint_fleet(10), 10_000) > 60.0


def test_solvers_that_list_what_can_be_seen_name_the_one_that_does_not(little_memory):
    fleet = mm.load_benchmark("fleet-8")
    for solver in (mm.POMCP(), mm.OnlinePlanner()):
        with pytest.raises(mm.ModelError, match="use Sarsop, which works feature by feature"):
            solver.solve(fleet)
        with pytest.raises(mm.ModelError, match="use a coarser model"):
            solver.solve(unfactored(fleet))


def unfactored(model):
    """Return a model for which there is no structured search: only two of its features go missing."""
    rates = dict.fromkeys(list(model.features)[1:3], 0.5)
    return mm.MissMDP(model.mdp, mm.MissingnessFunction.independent(model.mdp, rates))


def test_lists_that_do_not_fit_name_what_does(little_memory):
    fleet = mm.load_benchmark("fleet-12")
    with pytest.raises(mm.ModelError, match=r"M.missing_rate\(feature\)"):
        fleet.missingness.occurring()
    with pytest.raises(mm.ModelError, match="mdp.factors"):
        _ = fleet.mdp.transition


def test_questions_about_too_many_patterns_do_not_name_learners():
    fleet = mm.load_benchmark("fleet-12")
    with pytest.raises(mm.DataError, match="as one block, or ask about a model with fewer features"):
        mm.identifiability(fleet.mdp, "saturated")
    log = mm.collect(fleet, 200, seed=0)
    with pytest.raises(mm.DataError, match="too (many|long)") as error:
        mm.ICIN().fit(log)
    assert "AIMI" in str(error.value)
