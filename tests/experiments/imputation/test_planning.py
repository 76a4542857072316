"""Values of actions by counting and by fitted Q-iteration, against all policies of a small MDP."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from missmdp.experiments.imputation.planning import PLANNERS, counted_values
from missmdp.experiments.imputation.steps import Steps
from missmdp.model.space import FeatureSpace

FEATURES = FeatureSpace({"x": range(2), "y": range(2)})
DISCOUNT = 0.8


def random_steps(seed, visits):
    """Return frequencies of a random MDP of four states and two actions; of each step, a tenth ends."""
    random = np.random.default_rng(seed)
    after = 0.9 * random.dirichlet(np.ones(4), size=8)
    return Steps(visits, sparse.csr_array(after), random.normal(size=(4, 2)))


def best_values(steps):
    """Return Q*, from the values of all 16 policies."""
    after = steps.after.toarray().reshape(4, 2, 4)
    rows = np.arange(4)
    values = [
        np.linalg.solve(np.eye(4) - DISCOUNT * after[rows, list(policy)], steps.reward[rows, list(policy)])
        for policy in product(range(2), repeat=4)
    ]
    return steps.reward + DISCOUNT * after @ np.max(values, axis=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("planner", PLANNERS)
def test_values_are_those_of_the_best_policy(planner, seed):
    """Trees can tell all states and actions apart here, since each has enough steps for a leaf of its own."""
    if planner == "fitted":
        pytest.importorskip("sklearn")
    steps = random_steps(seed, np.random.default_rng(seed).integers(5, 50, size=(4, 2)).astype(float))
    found = PLANNERS[planner](steps, FEATURES, DISCOUNT, seed)
    assert np.allclose(found, best_values(steps), atol=1e-6)


def test_actions_that_were_never_tried_are_never_best():
    visits = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0], [4.0, 1.0]])
    steps = random_steps(1, visits)
    steps.reward[visits == 0.0] = 1e6
    found = counted_values(steps, FEATURES, DISCOUNT)
    assert found[0].argmax() == 0
    assert found[1].argmax() == 1
    assert (found < 1e3).all()


def test_a_state_that_nothing_is_known_of_is_worth_the_average():
    visits = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    steps = random_steps(2, visits)
    found = counted_values(steps, FEATURES, DISCOUNT)
    weights = visits.sum(axis=1) / visits.sum()
    worth = found.max(axis=1)
    worth[3] = weights[:3] @ worth[:3]
    future = (steps.after @ worth).reshape(4, 2)
    assert np.allclose(found[:3], (steps.reward + DISCOUNT * future)[:3], atol=1e-7)
    assert np.allclose(found[3], weights[:3] @ found[:3])
