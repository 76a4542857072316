"""Whether two POMDPs are the same, bit for bit."""

import numpy as np

from missmdp.interop.incoming import same_matrix


def assert_same_numbers(one, other):
    """Fail unless all probabilities, rewards and flags are equal bit for bit; labels may differ."""
    assert (one.n_states, one.n_actions, one.n_observations) == (
        other.n_states,
        other.n_actions,
        other.n_observations,
    )
    assert len(one.observation) == len(other.observation)
    for a, (mine, theirs) in enumerate(zip(one.transition, other.transition, strict=True)):
        assert same_matrix(mine, theirs), f"transition of action {a}"
    for mine, theirs in zip(one.observation, other.observation, strict=True):
        assert same_matrix(mine, theirs)
    for name in ("reward", "initial", "terminal"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.discount == other.discount
