"""What every learner of missingness must do; `check_learner` can be given any `CountingEstimator`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.counts import ObservationCounts
from missmdp.learn.base import Structure
from missmdp.learn.groups import Counter

Make = Callable[..., mm.CountingEstimator]

LEARNERS: dict[str, tuple[Make, str]] = {
    "AMCAR": (mm.AMCAR, "predator-mcar"),
    "AMCAR of seen patterns": (lambda **k: mm.AMCAR(patterns="seen", **k), "predator-mcar"),
    "AsMAR": (mm.AsMAR, "icu-smar"),
    "AsMAR that ignores": (lambda **k: mm.AsMAR(ignore=["test"], **k), "icu-smar"),
    "AsMAR pooled": (lambda **k: mm.AsMAR(unseen="pooled", **k), "predator-smar"),
    "AIMI": (mm.AIMI, "icu-mnar-id"),
    "AIMI simple MAR": (lambda **k: mm.AIMI(assume="simple MAR", **k), "icu-smar"),
    "AIMI MCAR": (lambda **k: mm.AIMI(assume="MCAR", **k), "icu-smar"),
    "AIMI graph": (lambda **k: mm.AIMI(graph=mm.load_benchmark("icu-mnar-id").mgraph(), **k), "icu-mnar-id"),
    "AIMI blocks": (lambda **k: mm.AIMI(blocks=[("x", "y")], **k), "predator-smar"),
}
"""How to make each learner, and a benchmark of a type that it is for."""


def check_constructor(make: Make) -> None:
    """Take parameters by name only, store them as they are, and look at nothing before `fit`."""
    learner = make()
    kinds = {p.kind for p in inspect.signature(type(learner)).parameters.values()}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    assert set(vars(learner)) == set(learner.get_params())
    marks = {name: object() for name in learner.get_params()}
    made = type(learner)(**marks)
    assert all(getattr(made, name) is mark for name, mark in marks.items())


def check_parameters_round_trip(make: Make) -> None:
    """`get_params` gives what the constructor and `set_params` take; unknown names are refused."""
    learner = make()
    parameters = learner.get_params()
    assert type(learner)(**parameters).get_params() == parameters
    assert type(learner)().set_params(**parameters) is not learner
    assert repr(type(learner)().set_params(**parameters)) == repr(learner)
    assert repr(learner).startswith(type(learner).__name__ + "(")
    with pytest.raises(mm.DataError, match="has no parameter 'nonsense'"):
        learner.set_params(nonsense=1)


def check_fit(make: Make, data: mm.Dataset) -> None:
    """Return self; what is learned ends in _; parameters and data stay as they were."""
    learner = make()
    before = {name: repr(value) for name, value in learner.get_params().items()}
    rows = data.observations.copy()
    assert learner.fit(data) is learner
    assert {name: repr(value) for name, value in learner.get_params().items()} == before
    assert np.array_equal(data.observations, rows)
    assert all(name.endswith("_") and not name.startswith("_") for name in set(vars(learner)) - set(before))
    for name in ("missingness_", "counts_", "always_observed_", "unseen_", "warnings_"):
        assert name in vars(learner)


def check_what_is_learned(make: Make, data: mm.Dataset) -> None:
    """Give every state a distribution, never NaN; what was never missing in the data stays always observed."""
    for smoothing in (0.0, 1e-3, 10.0):
        learner = make(smoothing=smoothing).fit(data)
        table = learner.missingness_.probabilities
        assert learner.missingness_.space == data.mdp.space
        assert np.isfinite(table).all()
        assert (table >= 0.0).all()
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), abs=1e-12)
        assert set(data.always_observed()) <= set(learner.missingness_.always_observed)
        assert set(learner.always_observed_) <= set(data.always_observed())


def check_determinism(make: Make, data: mm.Dataset) -> None:
    """The same from data, from their counts, again, and after something else was learned."""
    counts = ObservationCounts.from_dataset(data)
    first = make().fit(data)
    once_more = make().fit(mm.collect(_model_of(data), 50, seed=9)).fit(counts)
    for other in (make().fit(counts), make().fit(data), once_more):
        assert other.missingness_ == first.missingness_
        assert other.always_observed_ == first.always_observed_
        assert [str(w) for w in other.warnings_] == [str(w) for w in first.warnings_]
        assert np.array_equal(other.bound().per_state_tv, first.bound().per_state_tv)


def _model_of(data: mm.Dataset) -> mm.MissMDP:
    return mm.MissMDP(data.mdp, mm.MissingnessFunction.fully_observed(data.mdp))


def check_bound(make: Make, data: mm.Dataset) -> None:
    """Bounds are between 0 and 1, say what they assume, and are of the shape of the states."""
    learner = make().fit(data)
    bound = learner.bound(0.9)
    assert bound.per_state.shape == bound.per_state_tv.shape == (data.mdp.n_states,)
    assert ((bound.per_state >= 0.0) & (bound.per_state <= bound.per_state_tv)).all()
    assert 0.0 <= bound.worst <= bound.tv <= 1.0
    assert bound.assumes == learner.assumes
    assert learner.assumes in bound.describe()


def check_refusals(make: Make, data: mm.Dataset) -> None:
    """Nothing to ask before `fit`; nothing to learn from nothing or from something else."""
    with pytest.raises(AttributeError, match="call fit"):
        _ = make().missingness_
    with pytest.raises(mm.DataError, match="call fit"):
        make().bound()
    with pytest.raises(mm.DataError, match="expected a Dataset"):
        make().fit([[1, 2]])
    with pytest.raises(mm.DataError, match="smoothing"):
        make(smoothing=-1.0).fit(data)


def check_learner(make: Make, data: mm.Dataset) -> None:
    """Run all checks on a learner: `make(**parameters)` returns a new one, `data` is what it can learn from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        check_constructor(make)
        check_parameters_round_trip(make)
        check_fit(make, data)
        check_what_is_learned(make, data)
        check_determinism(make, data)
        check_bound(make, data)
        check_refusals(make, data)


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_keep_the_contract(name):
    make, benchmark = LEARNERS[name]
    check_learner(make, mm.collect(mm.load_benchmark(benchmark), 2000, seed=4))


class ByOneFeature(mm.CountingEstimator):
    """A user's own: patterns of everything, by one feature."""

    @property
    def assumes(self):
        return "that one feature decides"

    def __init__(self, *, feature="temperature", smoothing=0.5, unseen="uniform", always_observed=None):
        self.feature = feature
        self.smoothing = smoothing
        self.unseen = unseen
        self.always_observed = always_observed

    def structure(self, features, missing):
        return Structure((Counter(missing, features.mask([self.feature]), together=False),), (), 1, 1)


def test_a_users_own_learner_keeps_the_contract():
    check_learner(ByOneFeature, mm.collect(mm.load_benchmark("icu-smar"), 2000, seed=4))


class Careless(ByOneFeature):
    """Works in its constructor."""

    def __init__(self, *, feature="temperature", smoothing=0.5, unseen="uniform", always_observed=None):
        super().__init__(feature=feature, smoothing=smoothing, unseen=unseen, always_observed=always_observed)
        self.smoothing = smoothing or 1.0
        self.cache = {}


def test_the_contract_finds_a_careless_learner():
    with pytest.raises(AssertionError):
        check_constructor(Careless)
