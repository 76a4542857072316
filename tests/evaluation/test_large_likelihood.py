"""Likelihoods of large models by clusters, against the filter over all states."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from large_models import MISSING, treat_all_as_large, two_machines
from missmdp.evaluation import likelihood


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("few", [1, 2000])
def test_clusters_multiply(watched, few, monkeypatch):
    mdp = two_machines(watched=watched)
    missing = {**MISSING, "lamp": 0.2} if watched else MISSING

    def made():
        return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, missing))

    log = mm.collect(made(), 600, seed=0, horizon=30)
    expected = likelihood.log_predictions(log, made())
    monkeypatch.setattr("missmdp.learn.em.clusters._MOST_STATES", few)
    treat_all_as_large(monkeypatch)
    large = made()
    assert not large.missingness.is_small
    monkeypatch.setattr(likelihood, "_compiled", _only_small(likelihood._compiled, mdp.n_states))
    np.testing.assert_allclose(likelihood.log_predictions(log, large), expected, atol=1e-9)
    assert mm.log_likelihood(log, large).total == pytest.approx(expected.sum())


def _only_small(compiled, n_states):
    def checked(model):
        assert model.n_states < n_states, "the whole was filtered"
        return compiled(model)

    return checked


def test_what_is_impossible_stays_impossible(monkeypatch):
    mdp = two_machines()
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, MISSING))
    log = mm.collect(truth, 200, seed=1, horizon=20)
    never = {"a": ("a", [0.2, 0.5, 0.8])}  # b is never missing
    expected = likelihood.log_predictions(
        log, truth.with_missingness(mm.MissingnessFunction.independent(mdp, never))
    )
    assert np.isneginf(expected).any()
    treat_all_as_large(monkeypatch)
    large = truth.with_missingness(mm.MissingnessFunction.independent(mdp, never))
    np.testing.assert_allclose(likelihood.log_predictions(log, large), expected, atol=1e-9)


def test_what_cannot_be_filtered_in_parts_says_why(monkeypatch):
    mdp = two_machines(terminal=("lamp", lambda lamp: lamp == 1))
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, MISSING))
    log = mm.collect(truth, 200, seed=1)
    treat_all_as_large(monkeypatch)
    large = truth.with_missingness(mm.MissingnessFunction.independent(mdp, MISSING))
    assert mm.log_likelihood(log, large).total == pytest.approx(mm.log_likelihood(log, truth).total)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 1e3)
    with pytest.raises(mm.ModelError, match="filtering histories .* free; .* where no state is terminal"):
        mm.log_likelihood(log, large)
