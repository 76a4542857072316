"""All that decides what a run finds, apart from the model and the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from missmdp.checks import checked_confidence, checked_integer, checked_seed
from missmdp.data.dataset import Behaviour
from missmdp.errors import DataError
from missmdp.evaluation.rounds import Limits
from missmdp.learn.aimi import AIMI
from missmdp.learn.asmar import AMCAR, AsMAR, PatternChoice
from missmdp.learn.base import Estimator, UnseenChoice
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.em.estimator import DynamicsEM
from missmdp.learn.limits import checked_behaviour
from missmdp.model.mdp import FactoredMDP
from missmdp.plan.sarsop.solver import Sarsop

__all__ = ["AUTO", "LEARNERS", "Maker", "RunSeeds", "RunSettings"]

Label = Literal["amcar", "asmar", "aimi", "em", "auto"]
Maker = Callable[[], Estimator]
"""Returns a new learner."""

LEARNERS: tuple[Label, ...] = ("amcar", "asmar", "aimi", "em")
"""From what assumes most to what assumes least; em is DynamicsEM."""
AUTO: Label = "auto"
"""Stands for the one learner that the diagnosis recommends."""


@dataclass(frozen=True)
class RunSeeds:
    """A seed for everything random, all different: a log and an evaluation with one seed would share their luck."""

    data: int
    """The seed of the run itself, so that `collect` with it gives the same log."""
    heldout: int
    solve: int
    evaluate: int
    sensitivity: int
    learn: int
    """Of random starts and of bootstraps."""
    diagnose: int
    certify: int

    @classmethod
    def of(cls, seed: int) -> RunSeeds:
        """Return the seeds that follow from one."""
        children = np.random.SeedSequence(seed).spawn(7)
        return cls(seed, *(int(child.generate_state(1)[0]) for child in children))


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is done. Checked when made."""

    learners: tuple[Label, ...] = LEARNERS
    """Those to compare; or ("auto",) for the one that the diagnosis recommends."""
    steps: int = 10_000
    """Observations to simulate, where there are no data."""
    unknown_truth: bool = False
    """Whether to take no notice of how values go missing in the model, except for simulating data."""
    confidence: float = 0.95
    """Of bounds and intervals."""
    behaviour: Behaviour | None = None
    """Whether whoever acted never reacted to what was seen; None for what the data say, else "adaptive"."""
    smoothing: float = 1e-3
    unseen: UnseenChoice = "uniform"
    patterns: PatternChoice = "all"
    """For AMCAR and AsMAR: which patterns to learn."""
    always_observed: tuple[str, ...] = ()
    """Features that are known never to go missing."""
    blocks: tuple[tuple[str, ...], ...] = ()
    """For AIMI and DynamicsEM: features that go missing together; DynamicsEM also finds them by itself."""
    diagnosis: bool = True
    """Whether to look for why values are missing before learning."""
    folds: int = 5
    """Parts of the log that are held out in turn."""
    precision: float = 0.01
    """Relative gap between the bounds at which solving stops."""
    timeout: float | None = 30.0
    """Seconds for solving, of each model."""
    max_trials: int | None = None
    """Rounds of solving, of each model."""
    episodes: int = 2000
    """Of every policy, when it is evaluated."""
    sensitivity_episodes: int = 300
    """The same in each of the changed models that say how much the value depends on the model; 0 for none of these."""
    sensitivity_draws: int = 3
    """Random changes of each size."""
    certificate: bool = True
    """Whether to say how far from optimal the policy can be in truth."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.learners:
            raise DataError(f"there is no learner; there are {', '.join(LEARNERS)}")
        for label in self.learners:
            if label not in (*LEARNERS, AUTO):
                raise DataError(f"there is no learner {label!r}; there are {', '.join((*LEARNERS, AUTO))}")
            if self.learners.count(label) > 1:
                raise DataError(f"the learner {label} is given twice")
        if AUTO in self.learners:
            if len(self.learners) > 1:
                raise DataError(
                    "the learner auto is the one that the diagnosis recommends: it goes with no other"
                )
            if not self.diagnosis:
                raise DataError(
                    "the learner auto is the one that the diagnosis recommends, which is left out"
                )
        checked_integer("steps", self.steps, least=1)
        checked_confidence(self.confidence)
        if self.behaviour is not None:
            checked_behaviour(self.behaviour)
        if checked_integer("folds", self.folds, least=1) < 2:
            raise DataError(f"folds must be at least 2, got {self.folds}")
        if checked_integer("episodes", self.episodes, least=1) < 2:
            raise DataError("episodes must be at least 2: one has no error")
        if self.sensitivity_episodes:
            Limits(self.sensitivity_episodes)
            checked_integer("sensitivity_draws", self.sensitivity_draws, least=1)
        checked_seed(self.seed)
        self.solver()
        if self.blocks and not {"aimi", "em", AUTO} & set(self.learners):
            raise DataError("blocks are for the learners aimi and em, which are not among the learners")

    @property
    def seeds(self) -> RunSeeds:
        """A seed for everything random."""
        return RunSeeds.of(self.seed)

    def solver(self) -> Sarsop:
        """Return the solver."""
        return Sarsop(
            precision=self.precision,
            timeout=self.timeout,
            max_trials=self.max_trials,
            seed=self.seeds.solve,
            progress=False,
        )

    def makers(self, mdp: FactoredMDP) -> dict[str, Maker]:
        """Return what makes each learner for an MDP, by label; all there are, where the diagnosis is to choose."""
        always = self.always_observed or None
        common: dict[str, Any] = {
            "smoothing": self.smoothing,
            "unseen": self.unseen,
            "always_observed": always,
        }
        all_: dict[str, Maker] = {
            "amcar": lambda: AMCAR(**common, patterns=self.patterns),
            "asmar": lambda: AsMAR(**common, patterns=self.patterns),
            "aimi": lambda: AIMI(**common, blocks=self.blocks),
            "em": lambda: DynamicsEM(
                mdp,
                blocks=self.blocks or None,
                always_observed=always,
                seed=self.seeds.learn,
                progress=False,
            ),
        }
        return {label: all_[label] for label in (LEARNERS if AUTO in self.learners else self.learners)}

    def suited(self, diagnosis: Diagnosis) -> dict[str, Maker]:
        """Return what makes the learner that a diagnosis recommends, under its label."""
        given: dict[str, Any] = {
            "smoothing": self.smoothing,
            "unseen": self.unseen,
            "patterns": self.patterns,
            "always_observed": self.always_observed or None,
            "seed": self.seeds.learn,
            "progress": False,
            **({"blocks": self.blocks} if self.blocks else {}),
        }
        return {diagnosis.recommended: lambda: _suited_learner(diagnosis, **given)}

    def as_dict(self, *, simulated: bool) -> dict[str, Any]:
        """Return the settings for a file; what was simulated has a number of steps, and what was not has none."""
        given = {**asdict(self), "steps": self.steps if simulated else None}
        # No limit is no number that a file could hold.
        return {name: None if value == math.inf else value for name, value in given.items()}


def _suited_learner(diagnosis: Diagnosis, **parameters: object) -> Estimator:
    """Return a new learner that the diagnosis recommends, with those of the parameters that it knows."""
    learner = diagnosis.learner()
    known = learner.get_params()
    return learner.set_params(**{name: value for name, value in parameters.items() if name in known})
