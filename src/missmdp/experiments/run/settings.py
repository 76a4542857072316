"""All that decides what a run finds, apart from the model and the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from missmdp.checks import (
    checked_choice,
    checked_confidence,
    checked_flag,
    checked_integer,
    checked_list,
    checked_seed,
)
from missmdp.data.dataset import Behaviour
from missmdp.errors import ParameterError
from missmdp.learn.asmar import PatternChoice
from missmdp.learn.base import MissingnessEstimator, UnseenChoice
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.registry import find_learner, learners, learners_with, run_by_default
from missmdp.model.mdp import FactoredMDP
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.words import listed

Maker = Callable[[], MissingnessEstimator]
"""Returns a new learner."""

AUTO = "auto"
"""Stands for the one learner that the diagnosis recommends."""


@dataclass(frozen=True)
class RunSeeds:
    """A seed for everything random, all different: a log and an evaluation with one seed would share their luck."""

    data: int
    """The seed of the run itself, so `collect` with it gives the same log."""
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

    learners: tuple[str, ...] = field(default_factory=run_by_default)
    """Labels of those to compare; or ("auto",) for the one that the diagnosis recommends."""
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
        self._check_learners()
        checked_integer("steps", self.steps, least=1)
        checked_confidence(self.confidence)
        if self.behaviour is not None:
            checked_choice("behaviour", self.behaviour, ("blind", "adaptive"))
        for name in ("unknown_truth", "diagnosis", "certificate"):
            checked_flag(name, getattr(self, name))
        checked_integer("folds", self.folds, least=2)
        checked_integer("episodes", self.episodes, least=2)
        checked_integer("sensitivity_episodes", self.sensitivity_episodes, least=0)
        checked_integer("sensitivity_draws", self.sensitivity_draws, least=1)
        checked_seed(self.seed)
        self.solver()

    def _check_learners(self) -> None:
        known = (*learners(), AUTO)
        given = checked_list("learners", self.learners, f"one or more of {', '.join(known)}")
        object.__setattr__(self, "learners", tuple(given))
        if not self.learners:
            raise ParameterError("learners", self.learners, f"one or more of {', '.join(known)}")
        for label in self.learners:
            if not isinstance(label, str) or label not in known:  # pyright: ignore[reportUnnecessaryIsInstance]
                problem = f"there is no learner {label!r}; there are {', '.join(known)}"
                raise ParameterError("learners", label, f"one of {', '.join(known)}", problem)
            if self.learners.count(label) > 1:
                raise ParameterError(
                    "learners", self.learners, "different learners", f"{label} is given twice"
                )
        recommends = "auto is the one learner that the diagnosis recommends"
        if AUTO in self.learners and len(self.learners) > 1:
            raise ParameterError(
                "learners", self.learners, "auto alone", f"{recommends}: it goes with no other"
            )
        if AUTO in self.learners and not self.diagnosis:
            raise ParameterError("learners", self.learners, "a learner", f"{recommends}, which is left out")
        able = learners_with("blocks")
        if self.blocks and not {*able, AUTO} & set(self.learners):
            problem = f"only {listed(able)} know blocks, and none of these is among the learners"
            raise ParameterError("blocks", self.blocks, "empty", problem)

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

    @property
    def _options(self) -> dict[str, Any]:
        """What learners are told, those that know of it."""
        return {
            "smoothing": self.smoothing,
            "unseen": self.unseen,
            "patterns": self.patterns,
            "always_observed": self.always_observed,
            "blocks": self.blocks,
            "seed": self.seeds.learn,
            "progress": False,
        }

    def makers(self, mdp: FactoredMDP) -> dict[str, Maker]:
        """Return what makes each learner for an MDP, by label; the usual ones, where the diagnosis is to choose."""
        labels = run_by_default() if AUTO in self.learners else self.learners
        return {label: partial(find_learner(label).make, mdp, **self._options) for label in labels}

    def suited(self, diagnosis: Diagnosis) -> dict[str, Maker]:
        """Return what makes the learner that a diagnosis recommends, under its label."""
        given = {name: value for name, value in self._options.items() if value != ()}
        return {diagnosis.recommended: partial(_suited_learner, diagnosis, given)}

    def as_dict(self, *, simulated: bool) -> dict[str, Any]:
        """Return the settings for a file; what was simulated has a number of steps, and what was not has none."""
        checked_flag("simulated", simulated)
        given = {**asdict(self), "steps": self.steps if simulated else None}
        # No limit is no number that a file could hold.
        return {name: None if value == math.inf else value for name, value in given.items()}


def _suited_learner(diagnosis: Diagnosis, options: dict[str, Any]) -> MissingnessEstimator:
    """Return a new learner that the diagnosis recommends, with those of the options that it knows."""
    learner = diagnosis.learner()
    known = learner.get_params()
    return learner.set_params(**{name: value for name, value in options.items() if name in known})
