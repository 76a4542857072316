"""The forward pass and the draw of an action."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from missmdp._kernels.network import Network, choose, infer, softmax
from strategies import seeds


def random_network(rng, sizes):
    layers = [
        (rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32))
        for a, b in pairwise(sizes)
    ]
    flat = np.concatenate([part.reshape(-1) for layer in layers for part in layer])
    return layers, Network(np.array(sizes, dtype=np.int64), flat)


def outputs(network, inputs):
    scratch = np.full((2, len(inputs), network.sizes[1:].max()), np.nan, dtype=np.float32)
    return infer(network, inputs, len(inputs), scratch)[:, : network.sizes[-1]].copy()


@given(seeds(), st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(1, 5))
def test_the_forward_pass_is_that_of_numpy(seed, sizes, rows):
    rng = np.random.default_rng(seed)
    layers, network = random_network(rng, sizes)
    inputs = rng.integers(-1, 2, size=(rows, sizes[0])).astype(np.float32)
    expected = inputs.astype(np.float64)
    for i, (weight, bias) in enumerate(layers):
        expected = expected @ weight + bias
        if i < len(layers) - 1:
            expected = np.tanh(expected)
    assert outputs(network, inputs) == pytest.approx(expected, abs=1e-4)


def test_an_output_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(0)
    _, network = random_network(rng, [740, 64, 64, 3])
    inputs = rng.uniform(-1, 1, size=(16, 740)).astype(np.float32)
    together = outputs(network, inputs)
    for i in range(16):
        assert (outputs(network, inputs[i : i + 1])[0] == together[i]).all()


@given(seeds(), st.integers(1, 5))
def test_actions_are_drawn_by_inverting_the_cdf(seed, n_actions):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=rng.choice([1.0, 30.0, 300.0]), size=n_actions).astype(np.float32)
    probabilities = np.empty(n_actions)
    softmax(logits, probabilities)
    assert probabilities.sum() == pytest.approx(1.0)
    cdf = np.cumsum(probabilities)
    for u in [0.0, *rng.random(20), 1.0 - 2.0**-53]:
        chosen = choose(logits, u, False)
        assert cdf[chosen] >= u - 1e-12
        assert chosen == 0 or cdf[chosen - 1] <= u + 1e-12
        assert probabilities[chosen] > 0.0
    assert choose(logits, 0.5, True) == logits.argmax()
