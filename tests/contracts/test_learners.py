"""What every learner of missingness must do; `check_learner` can be given any `MissingnessEstimator`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import missmdp as mm
from missmdp.learn.base import Structure
from missmdp.learn.groups import Counter
from missmdp.learn.registry import find_learner, learners

Make = Callable[..., mm.MissingnessEstimator]

SUITED = {
    "amcar": "predator-mcar",
    "asmar": "icu-smar",
    "aimi": "icu-mnar-id",
    "icin": "icu-mnar-id",
    "em": "icu-mnar-unid",
}
"""A benchmark of a type that each registered learner is for."""

SET_UP: dict[str, tuple[Make, str]] = {
    "AMCAR of seen patterns": (lambda **k: mm.AMCAR(patterns="seen", **k), "predator-mcar"),
    "AsMAR that ignores": (lambda **k: mm.AsMAR(ignore=["test"], **k), "icu-smar"),
    "AsMAR pooled": (lambda **k: mm.AsMAR(unseen="pooled", **k), "predator-smar"),
    "AIMI simple MAR": (lambda **k: mm.AIMI(assume="simple MAR", **k), "icu-smar"),
    "AIMI MCAR": (lambda **k: mm.AIMI(assume="MCAR", **k), "icu-smar"),
    "AIMI graph": (lambda **k: mm.AIMI(graph=mm.load_benchmark("icu-mnar-id").mgraph(), **k), "icu-mnar-id"),
    "AIMI blocks": (lambda **k: mm.AIMI(blocks=[("x", "y")], **k), "predator-smar"),
    "ICIN pooled": (lambda **k: mm.ICIN(unseen="pooled", **k), "predator-smar"),
    "ICIN blocks": (lambda **k: mm.ICIN(blocks=[("x", "y")], **k), "predator-smar"),
}
"""Learners with parameters, and a benchmark of a type that each is for."""

_POSITIONAL = ("mdp", "structure")
"""Parameters that may be given without their name."""


def _takes(learner: mm.MissingnessEstimator, parameter: str) -> bool:
    return parameter in learner.get_params()


def check_constructor(make: Make) -> None:
    """Take parameters by name, store them as they are, and look at nothing before `fit`."""
    learner = make()
    parameters = inspect.signature(type(learner)).parameters
    kinds = {p.kind for name, p in parameters.items() if name not in _POSITIONAL}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    assert set(vars(learner)) == set(learner.get_params())
    marks = {name: object() for name in learner.get_params()}
    made = type(learner)(**marks)
    assert all(getattr(made, name) is mark for name, mark in marks.items())


def check_parameters_round_trip(make: Make) -> None:
    """`get_params` gives what the constructor and `set_params` take; unknown names are refused."""
    learner = make()
    parameters = learner.get_params()
    again = type(learner)(**parameters)
    assert again.get_params() == parameters
    assert again.set_params(**parameters) is again
    assert repr(again) == repr(learner)
    assert repr(learner).startswith(type(learner).__name__ + "(")
    assert learner.title().startswith(type(learner).__name__)
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
    for name in (
        "missingness_",
        "always_observed_",
        "unseen_",
        "warnings_",
        "assumed_",
        "n_parameters_",
        "data_",
    ):
        assert name in vars(learner)
    assert learner.assumed_ == learner.assumes
    assert learner.n_parameters_ >= 0
    assert all(isinstance(line, str) for line in learner.details())


def check_what_is_learned(make: Make, data: mm.Dataset) -> None:
    """Give every state a distribution, never NaN; what was never missing in the data stays always observed."""
    given = [{"smoothing": value} for value in (0.0, 1e-3, 10.0)] if _takes(make(), "smoothing") else [{}]
    for parameters in given:
        learner = make(**parameters).fit(data)
        table = learner.missingness_.probabilities
        assert learner.missingness_.space == data.mdp.space
        assert np.isfinite(table).all()
        assert (table >= 0.0).all()
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), abs=1e-12)
        assert set(data.always_observed()) <= set(learner.missingness_.always_observed)
        assert set(learner.always_observed_) <= set(data.always_observed())


def check_determinism(make: Make, data: mm.Dataset) -> None:
    """The same from data, from counts unless histories are needed, again, and after something else was learned."""
    same = data if make().needs_histories else mm.ObservationCounts.from_dataset(data)
    first = make().fit(data)
    once_more = make().fit(mm.collect(_model_of(data), 50, seed=9)).fit(same)
    for other in (make().fit(same), make().fit(data), once_more):
        assert other.missingness_ == first.missingness_
        assert other.always_observed_ == first.always_observed_
        assert [str(w) for w in other.warnings_] == [str(w) for w in first.warnings_]
        if first.has_bound or other.data_ is data:
            spreads = [one.bound(draws=3, seed=1).per_state_tv for one in (first, other)]
            assert np.array_equal(*spreads)


def _model_of(data: mm.Dataset) -> mm.MissMDP:
    return mm.MissMDP(data.mdp, mm.MissingnessFunction.fully_observed(data.mdp))


def check_bound(make: Make, data: mm.Dataset) -> None:
    """Bounds are between 0 and 1, say what they assume and whether they are guaranteed, and have a value per state."""
    learner = make().fit(data)
    bound = learner.bound(0.9, behaviour="adaptive", draws=5, seed=0)
    assert bound.guaranteed == learner.has_bound
    assert bound.per_state.shape == bound.per_state_tv.shape == (data.mdp.n_states,)
    assert ((bound.per_state >= 0.0) & (bound.per_state <= bound.per_state_tv)).all()
    assert 0.0 <= bound.worst <= bound.tv <= 1.0
    assert bound.assumes == learner.assumes
    assert learner.assumes in bound.describe()
    truth = _model_of(data)
    assert len(learner.group_truths(bound, truth, np.ones(data.mdp.n_states))) == len(bound.per_group)
    if not learner.has_bound:
        drawn = learner.bootstrap(2, seed=0)
        assert [one.space == data.mdp.space for one in drawn] == [True, True]
        with pytest.raises(mm.DataError, match="no finite-sample bound"):
            learner.bound(method="okamoto")


def check_refusals(make: Make, data: mm.Dataset) -> None:
    """Nothing to ask before `fit`; nothing to learn from nothing or from something else."""
    with pytest.raises(AttributeError, match="call fit"):
        _ = make().missingness_
    with pytest.raises(mm.DataError, match="call fit"):
        make().bound()
    with pytest.raises(mm.DataError, match="a Dataset"):
        make().fit([[1, 2]])
    if _takes(make(), "smoothing"):
        with pytest.raises(mm.DataError, match="smoothing"):
            make(smoothing=-1.0).fit(data)
    with pytest.raises(mm.DataError, match="always_observed: there is no feature 'nonsense'"):
        make(always_observed=["nonsense"]).fit(data)


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


def test_every_registered_learner_is_checked():
    assert list(learners()) == list(SUITED)


@pytest.mark.parametrize("label", SUITED)
def test_registered_learners_keep_the_contract(label):
    model = mm.load_benchmark(SUITED[label])
    quiet = {"progress": False} if label == "em" else {}
    make = functools.partial(find_learner(label).make, model.mdp, **quiet)
    check_learner(make, mm.collect(model, 500 if label == "em" else 2000, seed=4))


@pytest.mark.parametrize("name", SET_UP)
def test_learners_with_parameters_keep_the_contract(name):
    make, benchmark = SET_UP[name]
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
