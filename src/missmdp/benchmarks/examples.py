"""The paper's Examples 1, 2 (both) and 3: two features with values x and y.

The paper gives their missingness functions; so that there is something to decide, both features move at
random here, and one of two actions pays.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

BOTH, FIRST, SECOND, NEITHER = (1, 1), (1, 0), (0, 1), (0, 0)
"""Patterns: which of the two features are observed."""

EXAMPLES: dict[str, Callable[[Any], dict[Any, float]]] = {
    "example-1": lambda state: {BOTH: 0.5, FIRST: 0.5},
    "example-2-smar": lambda state: {BOTH: 1.0} if state.second == "x" else {BOTH: 0.5, SECOND: 0.5},
    "example-2-mar": lambda state: (
        {BOTH: 0.5, NEITHER: 0.5} if state.second == "x" else {BOTH: 0.25, SECOND: 0.25, NEITHER: 0.5}
    ),
    "example-3": lambda state: {BOTH: 0.5, FIRST: 0.5} if state.second == "x" else {BOTH: 0.1, FIRST: 0.9},
}
"""P(pattern | state) of each example."""

STAYS = 0.7
"""P(a feature keeps its value)."""


def _transition(state: Any, action: str) -> dict[Any, float]:
    return {
        (first, second): (STAYS if first == state.first else 1.0 - STAYS)
        * (STAYS if second == state.second else 1.0 - STAYS)
        for first, second in product("xy", repeat=2)
    }


def example(name: str) -> MissMDP:
    """Return one of the paper's examples."""
    mdp = FactoredMDP(
        features={"first": ["x", "y"], "second": ["x", "y"]},
        actions=["guess x", "guess y"],
        transition=_transition,
        reward=lambda state, action: 1.0 if action == f"guess {state.second}" else -1.0,
        initial=dict.fromkeys(product("xy", repeat=2), 0.25),
        discount=0.9,
        progress=False,
    )
    return MissMDP(mdp, MissingnessFunction.from_patterns(mdp, EXAMPLES[name]), name=name)
