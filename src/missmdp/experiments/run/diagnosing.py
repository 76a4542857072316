"""Why values are missing, before anything is learned. A run goes on without knowing."""

from __future__ import annotations

from dataclasses import dataclass

from missmdp.data.dataset import Dataset
from missmdp.errors import MissMDPError
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.diagnosis.diagnose import diagnose
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.registry import learner_name
from missmdp.model.mdp import FactoredMDP

__all__ = ["Reasons", "find_reasons", "suited_learner"]

_DRAWS = 50
"""Logs that the bootstrap draws for intervals of effects."""


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why values are missing, or why that is not known."""

    diagnosis: Diagnosis | None
    why_not: str | None = None

    @property
    def summary(self) -> str:
        """What was found, in a few words."""
        found = self.diagnosis
        if found is None:
            return f"left out: {self.why_not}"
        if not found.blocks:
            return "nothing is missing"
        own = f", {' and '.join(found.self_censoring)} self-censoring" if found.self_censoring else ""
        return f"{found.type}{own}; {learner_name(found.recommended)} suits"


def find_reasons(dataset: Dataset, mdp: FactoredMDP, seed: int) -> Reasons:
    """Return why values are missing; whatever goes wrong with that is told, and not raised."""
    try:
        return Reasons(diagnose(dataset, mdp, draws=_DRAWS, seed=seed, progress=False))
    except KeyboardInterrupt:
        return Reasons(None, "it was interrupted")
    except MissMDPError as error:
        return Reasons(None, str(error))
    except MemoryError:
        return Reasons(None, "there is too little memory for it")
    except (ArithmeticError, ValueError):
        # Odd logs make odd matrices; that is no reason to do without a policy.
        return Reasons(None, "the computation failed on these data")


def suited_learner(diagnosis: Diagnosis, **parameters: object) -> MissingnessEstimator:
    """Return a new learner that the diagnosis recommends, with those of the parameters that it knows."""
    learner = diagnosis.learner()
    known = learner.get_params()
    return learner.set_params(**{name: value for name, value in parameters.items() if name in known})
