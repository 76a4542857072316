"""Miss-MDPs as a whole: the POMDP that solvers see, and the number of observations."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

import missmdp as mm
from oracles.definitions import reachable_states
from strategies import missmdps


@settings(max_examples=30)
@given(missmdps())
def test_the_pomdp_has_the_observations_that_can_be_made_in_order(model):
    """O(z | s) = M(z | s) over the z that some state gives, ordered like codes with missing first."""
    pomdp = model.to_pomdp()
    distributions = [model.missingness.distribution(state) for state in model.states]
    assert set(pomdp.observations) == {z for found in distributions for z in found}
    codes = [model.space.features.encode_observation(z) for z in pomdp.observations]
    assert codes == sorted(codes)
    (matrix,) = pomdp.observation
    expected = [[found.get(z, 0.0) for z in pomdp.observations] for found in distributions]
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert pomdp.n_observations == len(codes)
    for action in range(model.n_actions):
        assert pomdp.observation_of(action) is matrix
        np.testing.assert_array_equal(
            pomdp.transition[action].toarray(), model.mdp.transition[action].toarray()
        )
    np.testing.assert_array_equal(pomdp.initial, model.mdp.initial)
    np.testing.assert_array_equal(pomdp.reward, model.mdp.reward)
    np.testing.assert_array_equal(pomdp.terminal, model.mdp.terminal)
    assert list(pomdp.states) == list(model.states)
    assert pomdp.actions == model.actions
    assert pomdp.discount == model.discount
    assert pomdp.observe_initial


@settings(max_examples=30)
@given(missmdps())
def test_observations_are_counted_as_holes_in_reachable_states(model):
    """|Z| of the paper, whether or not M can produce them."""
    everything = {
        tuple(value if seen else None for value, seen in zip(state, pattern, strict=True))
        for state in reachable_states(model.mdp)
        for pattern in product((True, False), repeat=len(model.features))
    }
    assert model.n_observations == len(everything)
    assert {tuple(z) for z in model.observations} == everything
    occurring = {z for state in reachable_states(model.mdp) for z in model.missingness.distribution(state)}
    assert set(model.occurring_observations) == occurring
    assert len(model.occurring_observations) == len(occurring)


def test_another_missingness_function_leaves_the_rest():
    model = mm.load_benchmark("example-3")
    learned = mm.MissingnessFunction.independent(model.mdp, {"second": 0.75})
    changed = model.with_missingness(learned)
    assert changed.missingness is learned
    assert changed.mdp is model.mdp
    assert changed.name == "example-3"
    assert changed.types().name == "MCAR"
    assert changed != model
    assert changed.with_missingness(model.missingness) == model
    assert model.types().name == "MNAR"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": 1.0}, "discount"),
        ({"initial": np.array([0.5, 0.25, 0.0, 0.0])}, "initial.* sum to 0.75"),
        ({"initial": np.array([1.0])}, r"initial.*\(4,\).*\(1,\)"),
        ({"terminal": np.array([False])}, r"terminal.*\(4,\).*\(1,\)"),
        ({"reward": np.full((4, 2), np.nan)}, "reward.*nan"),
        (
            {"transition": (sparse.csr_array(np.eye(4)),)},
            "transition must be 2 matrices, one per action, got 1",
        ),
        ({"transition": (sparse.csr_array(np.eye(3)),) * 2}, r"transition.*\(3, 3\).*\(4, 4\)"),
        ({"transition": (sparse.csr_array(np.eye(4) / 2),) * 2}, "transition .*'x'.*'guess x'.* sum to 0.5"),
        (
            {"observation": (sparse.csr_array(np.ones((4, 6)) / 6),) * 3},
            "observation must be 1 matrix, or 2, one per action, got 3",
        ),
        ({"observation": (sparse.csr_array(np.ones((4, 6))),)}, "observation .* sum to 6"),
        ({"reward": np.zeros((2, 4))}, r"reward.*\(4, 2\).*\(2, 4\)"),
    ],
)
def test_a_pomdp_that_does_not_fit_together_is_refused(changes, message):
    pomdp = mm.load_benchmark("example-3").to_pomdp()
    assert pomdp.n_observations == 6
    with pytest.raises(mm.ModelError, match=message):
        replace(pomdp, **changes)


def test_a_pomdp_may_have_observations_for_each_action():
    pomdp = mm.load_benchmark("example-1").to_pomdp()
    first = pomdp.observation[0]
    second = sparse.csr_array(np.roll(first.toarray(), 1, axis=1))
    both = replace(pomdp, observation=(first, second))
    np.testing.assert_array_equal(both.observation_of(0).toarray(), first.toarray())
    np.testing.assert_array_equal(both.observation_of(1).toarray(), second.toarray())


def test_mdp_and_missingness_in_the_wrong_order_are_refused():
    model = mm.load_benchmark("example-1")
    with pytest.raises(mm.ModelError, match="mdp: expected a FactoredMDP, got MissingnessFunction"):
        mm.MissMDP(model.missingness, model.mdp)


def test_models_compare_by_content(tmp_path):
    model = mm.load_benchmark("icu-smar")
    model.save(tmp_path / "icu.mmdp")
    assert mm.MissMDP.load(tmp_path / "icu.mmdp") == model
    assert model != mm.load_benchmark("icu-mnar-id")
    assert model != model.with_missingness(mm.MissingnessFunction.fully_observed(model.mdp))


def test_a_pomdp_keeps_its_rows_as_they_were_checked():
    pomdp = mm.load_benchmark("example-3").to_pomdp()
    loose = replace(pomdp, transition=tuple(matrix * 1.000002 for matrix in pomdp.transition))
    for matrix in loose.transition:
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-15)
