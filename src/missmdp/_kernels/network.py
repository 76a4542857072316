"""Small networks with tanh units: from inputs to a distribution over actions.

Sums are taken in one order for each row, so that an output does not depend on the rows beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["Network", "choose", "infer", "softmax"]


class Network(NamedTuple):
    """Dense layers, tanh between them, nothing after the last."""

    sizes: NDArray[np.int64]
    """Inputs, units of each hidden layer, outputs."""
    weights: NDArray[np.float32]
    """For each layer: its matrix, a row per input, then its bias."""


@kernel
def infer(
    network: Network, inputs: NDArray[np.float32], rows: int, scratch: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the outputs for inputs[:rows], in the first columns of a view of scratch[2, rows, widest layer]."""
    source = inputs
    target = scratch[0]
    offset = 0
    n_layers = len(network.sizes) - 1
    for layer in range(n_layers):
        n_in, n_out = network.sizes[layer], network.sizes[layer + 1]
        target = scratch[layer % 2]
        bias = network.weights[offset + n_in * n_out : offset + n_in * n_out + n_out]
        for i in range(rows):
            for j in range(n_out):
                target[i, j] = bias[j]
        for k in range(n_in):
            row = network.weights[offset + k * n_out : offset + (k + 1) * n_out]
            for i in range(rows):
                x = source[i, k]
                # Most inputs of a one-hot encoding are 0.
                if x != 0.0:
                    for j in range(n_out):
                        target[i, j] += x * row[j]
        if layer < n_layers - 1:
            for i in range(rows):
                for j in range(n_out):
                    target[i, j] = np.tanh(target[i, j])
        offset += (n_in + 1) * n_out
        source = target
    return target


@kernel
def softmax(logits: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    """Fill out[A] with the probabilities of actions."""
    largest = np.float64(logits.max())
    total = 0.0
    for a in range(len(logits)):
        out[a] = math.exp(np.float64(logits[a]) - largest)
        total += out[a]
    for a in range(len(logits)):
        out[a] /= total


@kernel
def choose(logits: NDArray[np.float32], u: float, likeliest: bool) -> int:
    """Return the action for u in [0, 1) by inverting the CDF, or the first of the likeliest ones."""
    if likeliest:
        return int(logits.argmax())
    largest = np.float64(logits.max())
    total = 0.0
    for a in range(len(logits)):
        total += math.exp(np.float64(logits[a]) - largest)
    reached = 0.0
    for a in range(len(logits) - 1):
        reached += math.exp(np.float64(logits[a]) - largest)
        if reached > u * total:
            return a
    return len(logits) - 1
