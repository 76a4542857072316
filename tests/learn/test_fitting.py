"""Whether a known M is what a learner assumes: the benchmarks, and closed forms."""

import warnings

import numpy as np
import pytest

import missmdp as mm
from missmdp.learn.visits import distance_from_structure

BLOCK = [("x", "y")]
FITS = [
    ("icu-smar", mm.AMCAR(), False),
    ("icu-smar", mm.AsMAR(), True),
    ("icu-smar", mm.AsMAR(ignore=["test"]), False),
    ("icu-smar", mm.AIMI(), True),
    ("icu-smar", mm.AIMI(assume="simple MAR"), True),
    ("icu-smar", mm.AIMI(graph=mm.load_benchmark("icu-smar").mgraph()), True),
    ("icu-smar", mm.AIMI(assume="MCAR"), False),
    ("icu-mnar-id", mm.AsMAR(), False),
    ("icu-mnar-id", mm.AIMI(), True),
    ("icu-mnar-id", mm.AIMI(assume="simple MAR"), False),
    ("icu-mnar-unid", mm.AIMI(), False),
    ("predator-smar", mm.AsMAR(), True),
    ("predator-smar", mm.AIMI(), False),
    ("predator-smar", mm.AIMI(blocks=BLOCK), True),
    ("predator-mnar-unid", mm.AIMI(blocks=BLOCK), False),
    ("predator-mcar", mm.AMCAR(), True),
]


@pytest.mark.parametrize(("name", "learner", "fits"), FITS)
def test_benchmarks_fit_the_learners_that_they_should(name, learner, fits):
    model = mm.load_benchmark(name)
    missing = model.space.features.mask(model.missingness.can_go_missing)
    distance = distance_from_structure(model, learner.structure(model.space.features, missing).counters)
    assert (distance < 1e-9) == fits
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        needed = mm.histories_needed(model, 0.2, 0.9, learner=learner, horizon=8)
    assert (needed.off_by == 0.0) == fits
    assert bool(caught) == (not fits)
    assert ("no amount of data changes that" in needed.describe()) == (not fits)
    assert needed.describe().startswith(f"Assuming {learner.assumes}: {int(needed):,} histories")


def test_the_distance_is_that_of_the_best_constant_for_two_states():
    """P(missing) is 0.2 and 0.6: the mean is 0.2 away from both."""
    mdp = mm.FactoredMDP(
        {"seen": ["a", "b"], "hidden": [0]},
        ["go"],
        lambda state, action: [(("a", 0), 0.5), (("b", 0), 0.5)],
        0.0,
        {("a", 0): 1.0},
        discount=0.9,
    )
    M = mm.MissingnessFunction.independent(mdp, {"hidden": lambda s: 0.2 if s.seen == "a" else 0.6})
    model = mm.MissMDP(mdp, M)
    structure = mm.AMCAR().structure(mdp.space.features, np.array([False, True]))
    assert distance_from_structure(model, structure.counters) == pytest.approx(0.2)
    assert (
        distance_from_structure(
            model, mm.AsMAR().structure(mdp.space.features, np.array([False, True])).counters
        )
        < 1e-12
    )
