"""What `missmdp solve` prints."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.markup import escape

from missmdp.cli.printing import make_console
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.base import SolveResult
from missmdp.plan.value_function import NO_VECTOR
from missmdp.plan.wording import short_text

__all__ = ["first_action", "print_problem", "print_result"]

_WIDTH = 14
"""Of the words on the left, as in `SolveResult.describe`."""


def print_problem(model: MissMDP | POMDP, name: str, *, observe_initial: bool | None) -> None:
    """Print the size of what is to be solved."""
    if isinstance(model, MissMDP):
        observations = len(model.occurring_observations)
        observes = True if observe_initial is None else observe_initial
    else:
        observations = model.n_observations
        observes = model.observe_initial if observe_initial is None else observe_initial
    begins = "observes, then acts" if observes else "acts, then observes"
    _print_line(
        "model",
        f"{name}: {model.n_states:,} states, {len(model.actions):,} actions, {observations:,} observations, "
        f"discount {model.discount:g}; {begins}",
    )


def print_result(result: SolveResult) -> None:
    """Print the bounds, why the search ended, and what to do first if that is one thing."""
    console = make_console()
    console.print(escape(result.describe()))
    action = first_action(result.policy)
    if action is not None:
        whatever = ", whatever is seen" if result.policy.observe_initial else ""
        _print_line("first action", f"{short_text(action)}{whatever}")


def _print_line(what: str, text: str) -> None:
    make_console().print(escape(f"{what:<{_WIDTH}}{text}"))


def first_action(policy: AlphaVectorPolicy) -> Any:
    """Return the first action, or None if it depends on what is seen or everything has ended before."""
    pomdp = policy.pomdp
    if not (pomdp.initial[~pomdp.terminal] > 0.0).any():
        return None
    if not policy.observe_initial:
        return policy.action(pomdp.initial)
    outcomes = policy.value_function.outcomes(pomdp.initial, 0)
    vectors = np.unique(outcomes.vector[(outcomes.probability > 0.0) & (outcomes.vector != NO_VECTOR)])
    actions = {
        int(policy.components[component].actions[row])
        for component, row in map(policy.value_function.place_of, vectors.tolist())
    }
    return pomdp.actions[actions.pop()] if len(actions) == 1 else None
