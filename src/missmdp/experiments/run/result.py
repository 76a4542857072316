"""What a run found, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from missmdp.data.dataset import Dataset
from missmdp.data.description.description import Description
from missmdp.data.validation import DataReport
from missmdp.evaluation.certificate.certificate import Certificate
from missmdp.evaluation.certificate.value_interval import ValueInterval
from missmdp.evaluation.compare import Comparison, Difference, NormalisedValue
from missmdp.evaluation.distance import TotalVariation
from missmdp.evaluation.heldout import HeldOutScore
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.record.record import RunRecord
from missmdp.experiments.record.summary_text import summary_text
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.recommendation import Recommendation
from missmdp.experiments.run.settings import RunSettings
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.bounds import Bound
from missmdp.learn.diagnosis.result import Diagnosis, recommended_name
from missmdp.learn.table import GroupTruth
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.solving import SolveResult
from missmdp.words import count

Kind = Literal["learned", "optimal", "prior", "random"]
Part = Literal["held-out", "policy", "control variate", "sensitivity"]


@dataclass(frozen=True)
class LeftOut:
    """A part of a run that was too much for this machine, or for this model."""

    part: Part
    label: str
    """Whose: a learner, a baseline, or all policies."""
    why: str


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be decided in: an MDP, and how values go missing in it where that is known."""

    name: str
    source: str
    """What the model was called by whoever asked."""
    mdp: FactoredMDP
    truth: MissMDP | None
    """None where it is not known how values go missing, or where that is not to be looked at."""
    simulator: MissMDP | None
    """What data can be simulated with."""
    sha256: str


@dataclass(frozen=True, eq=False)
class Log:
    """The data, and what can be said of them before anything is learned."""

    dataset: Dataset
    simulated: bool
    files: tuple[str, ...]
    """Where they came from, as it was given."""
    description: Description
    report: DataReport
    """Whether they fit the MDP."""
    ruled_out: int = 0
    """Episodes that can happen in the MDP, but not as values go missing in the truth, where that is known."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not fit, in sentences."""
        if not self.ruled_out:
            return self.report.problems
        ruled_out = (
            f"{self.ruled_out:,} of {count(self.dataset.n_episodes, 'episode')} cannot happen if values go missing "
            "as the model says: in these data they went missing in another way"
        )
        return (*self.report.problems, ruled_out)


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
        return f"{found.type}{own}; {recommended_name(found)} suits"


@dataclass(frozen=True, eq=False)
class Learned:
    """What one learner made of the data."""

    label: str
    learner: MissingnessEstimator
    bound: Bound
    model: MissMDP
    """The MDP with the learned missingness function."""
    distance: TotalVariation | None
    """From the truth, where that is known."""
    group_truths: list[GroupTruth] | None
    """What is true of each group of the bound, where that is known."""

    @property
    def name(self) -> str:
        """The learner's name."""
        return type(self.learner).__name__


@dataclass(frozen=True, eq=False)
class Baseline:
    """A policy to compare with."""

    name: Kind
    policy: Policy
    result: SolveResult | None
    """Where it was solved for."""


@dataclass(frozen=True, eq=False)
class World:
    """What all policies are worth in one model."""

    name: str
    """"truth", or the label of the learner whose M̂ holds in it."""
    comparison: Comparison
    kinds: dict[str, Kind]
    """Policy → what kind of policy it is."""
    normalised: Mapping[str, NormalisedValue]
    """On the scale from the prior's value to the reference's; empty where there is no scale."""


@dataclass(frozen=True, eq=False)
class Certified:
    """How far from optimal the policy of a learner can be in truth, for certain."""

    label: str
    certificate: Certificate | None = None
    why_not: str | None = None
    """Why there is no certificate, if there is none."""
    loss: Difference | None = None
    """How much less than the optimal policy the certified one is worth, by simulation, where the truth is known."""
    contradicted: str | None = None
    """What speaks against the learner's assumption, and so against the certificate, if anything does."""
    interval: ValueInterval | None = None
    """What the policy may be worth, where there is no certificate; not a guarantee."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RunFindings:
    """All that a run found, in memory."""

    folder: RunFolder
    settings: RunSettings
    problem: Problem
    log: Log
    reasons: Reasons
    """Why values are missing, or why that is not known."""
    learned: dict[str, Learned]
    skipped: dict[str, str]
    """Learners that could not learn from these data, and why."""
    heldout: dict[str, HeldOutScore] | None
    recommendation: Recommendation
    solved: dict[str, SolveResult]
    """By learner; those whose model could not be solved are in `left_out`."""
    left_out: tuple[LeftOut, ...]
    """What was too much, and why."""
    baselines: dict[str, Baseline]
    worlds: dict[str, World]
    """By name: "truth" alone where it is known, and one for every learner with a policy where not."""
    sensitivity: tuple[SensitivityRow, ...] | None
    certified: dict[str, Certified]
    """By learner; those whose assumption the data contradict are left out."""
    timings: dict[str, float]
    """Stage → seconds."""

    @property
    def recommended(self) -> Learned:
        """What the recommended learner learned."""
        return self.learned[self.recommendation.label]

    @property
    def policy(self) -> AlphaVectorPolicy | MemoryPolicy:
        """The policy for what the recommended learner learned."""
        return self.solved[self.recommendation.label].policy

    @property
    def world(self) -> World:
        """The truth, or where it is not known the world in which the recommended learner is right."""
        return self.worlds.get("truth") or self.worlds[self.recommendation.label]


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult(RunFindings):
    """What a run found. All of it is in the folder too."""

    record: RunRecord
    """The same as plain values, as run.json holds it."""
    report_failed: str | None = None
    """Why there is no report, if there is none; all else is written then."""

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.folder.report

    def describe(self) -> str:
        """Return what was found, in a few sentences."""
        return "\n".join([*summary_text(self.record), f"The report is {self.report}."])

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return (
            f"RunResult({self.problem.name}, recommended {self.recommendation.label}, in {self.folder.path})"
        )
