"""What the theory says of each benchmark: how values go missing there, and whose assumptions hold."""

from __future__ import annotations

from functools import lru_cache

from missmdp.experiments.reproduce.cells import benchmark_model
from missmdp.model.types import MissingnessTypes

__all__ = ["kind_of", "learnable_by", "mdp_of", "right_learner"]

_MDPS = {"icu": "ICU", "predator": "Predator, small map", "predator-mcar": "Predator, large map"}


@lru_cache
def _types(benchmark: str) -> MissingnessTypes:
    return benchmark_model(benchmark).types()


def kind_of(benchmark: str) -> str:
    """Return the type of missingness, in words."""
    types = _types(benchmark)
    if not types.mnar:
        return types.name
    if types.self_censoring:
        return "MNAR, self-censoring"
    return "MNAR, identifiable" if types.learners else "MNAR"


def learnable_by(benchmark: str) -> tuple[str, ...]:
    """Return the learners whose assumptions hold."""
    return _types(benchmark).learners


def right_learner(benchmark: str) -> str | None:
    """Return the learner that assumes no less than holds; where values censor themselves there is none."""
    return next(iter(learnable_by(benchmark)), None)


def mdp_of(benchmark: str) -> str:
    """Return what is left of a benchmark where nothing goes missing."""
    return _MDPS.get(benchmark) or _MDPS.get(benchmark.partition("-")[0], benchmark)
