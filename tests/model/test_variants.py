"""The same MDP under other missingness: an uninformed prior, and nothing missing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from strategies import missmdps


@given(missmdps())
def test_under_the_prior_every_pattern_is_as_likely_as_any_other(model):
    prior = mm.prior_model(model)
    n = len(model.features)
    assert prior.mdp is model.mdp
    assert prior.name == model.name
    assert {tuple(map(bool, p)) for p in prior.missingness.patterns} == set(product((True, False), repeat=n))
    assert prior.missingness.n_patterns == 2**n
    np.testing.assert_allclose(prior.missingness.probabilities, 0.5**n, rtol=1e-12)
    for state in model.states:
        shown = prior.missingness.distribution(state)
        expected = {
            tuple(value if seen else None for value, seen in zip(state, pattern, strict=True))
            for pattern in product((True, False), repeat=n)
        }
        assert {tuple(z) for z in shown} == expected
        assert set(shown.values()) == {0.5**n}


def test_features_that_are_always_observed_go_missing_under_the_prior():
    model = mm.load_benchmark("icu-smar")
    always = [name for i, name in enumerate(model.features) if model.missingness.patterns[:, i].all()]
    assert always
    prior = mm.prior_model(model)
    for i in range(len(model.features)):
        hidden = ~prior.missingness.patterns[:, i].astype(bool)
        np.testing.assert_allclose(prior.missingness.probabilities[:, hidden].sum(axis=1), 0.5)
    assert prior.types().mcar


@given(missmdps())
def test_where_nothing_is_missing_states_are_seen(model):
    full = mm.fully_observed_model(model)
    assert full.mdp is model.mdp
    assert full.name == model.name
    for state in model.states:
        assert {tuple(z): p for z, p in full.missingness.distribution(state).items()} == {tuple(state): 1.0}


@pytest.mark.parametrize("variant", [mm.prior_model, mm.fully_observed_model])
def test_only_miss_mdps_have_variants(variant):
    model = mm.load_benchmark("example-1")
    for wrong, name in ((model.mdp, "FactoredMDP"), (model.to_pomdp(), "POMDP"), (None, "NoneType")):
        with pytest.raises(mm.ModelError, match=f"expected a MissMDP, got {name}"):
            variant(wrong)
