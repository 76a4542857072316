"""From what was given to what is to be decided in."""

from __future__ import annotations

from typing import Any

from missmdp.benchmarks.registry import load_benchmark
from missmdp.errors import ModelError
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.run.result import Problem
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

__all__ = ["as_problem"]


def as_problem(model: Any, name: str | None, *, unknown_truth: bool) -> Problem:
    """Return the problem that a miss-MDP, an MDP or a benchmark's name poses.

    Raises
    ------
    ModelError
        If it is none of these.
    MissMDPError
        If it cannot be saved, which what is learned will have to be.
    """
    source = name if name is not None else model if isinstance(model, str) else None
    if isinstance(model, str):
        model = load_benchmark(model)
    if isinstance(model, MissMDP):
        mdp, known = model.mdp, model
    elif isinstance(model, FactoredMDP):
        mdp, known = model, None
    else:
        raise ModelError(
            f"expected a MissMDP, a FactoredMDP or a benchmark's name, got {type(model).__name__}"
        )
    truth = None if unknown_truth else known
    own = known.name if known is not None else None
    # What is known of M is part of the problem only where it is to be looked at.
    hashed = truth or MissMDP(mdp, MissingnessFunction.fully_observed(mdp))
    return Problem(
        name=own or source or "model",
        source=source or own or "model",
        mdp=mdp,
        truth=truth,
        simulator=known,
        sha256=model_hash(hashed),
    )
