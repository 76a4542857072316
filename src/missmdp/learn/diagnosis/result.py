"""Why values go missing, as far as a log can tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from missmdp.learn.diagnosis.rows import ClassScore, Driver, NestedTest, graph_as_dict
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph

if TYPE_CHECKING:
    from missmdp.learn.base import MissingnessEstimator

__all__ = ["Diagnosis"]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Why values go missing, as far as a log can tell."""

    type: str
    """"MCAR", "simple MAR", "MAR" or "MNAR"; from single observations also "not simple MAR"."""
    self_censoring: tuple[str, ...]
    """The features whose own value drives whether they are missing, as the best structure has it."""
    blocks: tuple[tuple[str, ...], ...]
    """The features that go missing, those that do so together in one block."""
    graph: MissingnessGraph
    """The m-graph of the best structure."""
    classes: tuple[ClassScore, ...]
    """The classes of reasons, narrowest first."""
    tests: tuple[NestedTest, ...]
    """Likelihood-ratio tests of each class within the next."""
    own_tests: tuple[NestedTest, ...]
    """For each block, the test that its own values play no part, given all other reasons."""
    drivers: tuple[Driver, ...]
    """What makes each block go missing, the strongest first."""
    rates: tuple[float, ...]
    """How often each block is missing."""
    recommended: str
    """The learner that suits: "amcar", "asmar", "aimi", "icin" or "em"."""
    reason: str
    """Why."""
    snapshots_only: bool
    """Whether single observations were looked at only, without the dynamics."""
    n_steps: int
    notes: tuple[str, ...] = ()
    """What a reader should know."""
    mdp: FactoredMDP = field(kw_only=True, repr=False)

    def learner(self) -> MissingnessEstimator:
        """Return the recommended learner, which has learned nothing yet."""
        from missmdp.learn.diagnosis.recommend import new_learner

        return new_learner(self)

    def describe(self) -> str:
        """Return what this says in sentences."""
        from missmdp.learn.diagnosis.words import in_sentences

        return in_sentences(self)

    def __str__(self) -> str:
        return self.describe()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which JSON can hold."""
        return {
            "type": self.type,
            "self_censoring": list(self.self_censoring),
            "blocks": [list(block) for block in self.blocks],
            "rates": list(self.rates),
            "graph": graph_as_dict(self.graph),
            "classes": [row.as_dict() for row in self.classes],
            "tests": [row.as_dict() for row in self.tests],
            "own_tests": [row.as_dict() for row in self.own_tests],
            "drivers": [row.as_dict() for row in self.drivers],
            "recommended": self.recommended,
            "reason": self.reason,
            "snapshots_only": self.snapshots_only,
            "n_steps": self.n_steps,
            "notes": list(self.notes),
        }
