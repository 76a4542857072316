"""The records of a run. Everything in run.json has a place here; where nothing is known, a record says None.

Numbers that JSON does not have (infinite, not a number) are None too. Records hold values; sentences about these are
made in `summary_text`, `limitations` and the report. What is text here is shown as it is; no value is read out of it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal

import msgspec

KIND = "missmdp run"
FORMAT = 2
"""Of run.json; files of version 0.1 before this one had none."""

Names = tuple[str, ...]
Edge = tuple[str, str]
Deployed = Literal["policy", "controller"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all records: they cannot be changed, and every field must be given."""


class SettingsRecord(Record, frozen=True):
    """How the run was done; see `RunSettings`."""

    learners: Names
    steps: int | None
    """None where data were read."""
    unknown_truth: bool
    confidence: float
    behaviour: str | None
    smoothing: float | None
    unseen: str
    patterns: str
    always_observed: Names
    blocks: tuple[Names, ...]
    diagnosis: bool
    folds: int
    precision: float | None
    timeout: float | None
    max_trials: int | None
    episodes: int
    sensitivity_episodes: int
    sensitivity_draws: int
    certificate: bool
    seed: int
    table: dict[str, Any]
    """How the table was read: arguments of `Dataset.from_table`."""
    data: str | None
    """The SHA-256 of data that were given in memory."""


class FeatureRecord(Record, frozen=True):
    """A feature and its values, in words."""

    name: str
    values: Names


class GraphRecord(Record, frozen=True):
    """An m-graph: edges lead from a feature's value to whether another one is missing."""

    features: Names
    can_go_missing: Names
    edges: tuple[Edge, ...]
    dependent: tuple[Edge, ...]
    """Pairs of features whose indicators depend on each other."""

    def __post_init__(self) -> None:
        for name in chain(self.can_go_missing, *self.edges, *self.dependent):
            if name not in self.features:
                raise ValueError(f"{name!r} is not among the features")


class TruthRecord(Record, frozen=True):
    """How values go missing in the true model."""

    name: str
    """The narrowest type: MCAR, simple MAR, MAR or MNAR."""
    mcar: bool
    simple_mar: bool
    mar: bool
    self_censoring: Names
    independent: bool
    positive: bool
    always_observed: Names
    can_go_missing: Names
    fitting_learners: Names
    """The learners whose assumption holds, by name."""
    observations: int
    """How many different observations can occur."""
    graph: GraphRecord


class ModelRecord(Record, frozen=True):
    """What is decided in."""

    name: str
    source: str
    """What the model was called by whoever asked."""
    states: int
    reachable: int
    terminal: int
    actions: Names
    discount: float
    horizon: int
    features: tuple[FeatureRecord, ...]
    sha256: str
    truth: TruthRecord | None
    """None where it is not known how values go missing, or where that is not to be looked at."""


class GapsRecord(Record, frozen=True):
    """How often exactly these features are missing together."""

    missing: Names
    count: int
    share: float


class RareGapsRecord(Record, frozen=True):
    """All other combinations of missing features, taken together."""

    patterns: int
    count: int
    share: float


class RateRecord(Record, frozen=True):
    """How often something is missing at one value of another feature."""

    value: str
    rate: float


class AssociationRecord(Record, frozen=True):
    """A feature that is missing more often at one value of another feature than at a second one."""

    feature: str
    given: str
    highest: RateRecord
    lowest: RateRecord


class DataRecord(Record, frozen=True):
    """What the data look like."""

    source: Literal["simulated", "table"]
    files: Names
    sha256: str
    steps: int
    episodes: int
    terminated: int
    """Episodes that came to an end of their own."""
    behaviour: Literal["blind", "adaptive"]
    """What bounds take for granted of whoever acted."""
    behaviour_known: bool
    """Whether the settings or the data say so; else it is the cautious choice."""
    missing_rates: dict[str, float]
    always_observed: Names
    patterns: tuple[GapsRecord, ...]
    """The most frequent ones."""
    rarer: RareGapsRecord | None
    associations: tuple[AssociationRecord, ...]
    """The strongest first."""
    notes: Names
    fits: bool
    """Whether the data can come from the MDP."""
    problems: Names
    ruled_out: int
    """Episodes that can happen in the MDP, but not as values go missing in the true model."""
    never_visited: int
    """Reachable states that were certainly never visited."""

    @property
    def gaps(self) -> dict[str, float]:
        """The features with missing values, and how often each is missing."""
        return {feature: rate for feature, rate in self.missing_rates.items() if rate}


class DriverRecord(Record, frozen=True):
    """What makes features go missing: how much more often at one value of something than at another."""

    features: Names
    driver: str
    indicator: bool
    """Whether it is not the value of `driver` that matters, but whether that is missing."""
    own: bool
    """Whether it is the value that goes missing itself."""
    lowest: str
    highest: str
    lowest_rate: float
    highest_rate: float
    difference: float
    interval: tuple[float, float] | None


class ClassRecord(Record, frozen=True):
    """How well the best structure of a class explains the data."""

    name: str
    log_likelihood: float
    n_parameters: int
    score: float
    behind: float
    """Of the best class; 0 for that one itself."""
    graph: GraphRecord


class TestRecord(Record, frozen=True):
    """A likelihood-ratio test of one class of structures within another."""

    null: str
    alternative: str
    features: Names
    statistic: float
    freedom: int
    p_value: float | None
    level: float
    rejected: bool


class DiagnosisRecord(Record, frozen=True):
    """Why values are missing, as far as the data tell."""

    type: str
    self_censoring: Names
    blocks: tuple[Names, ...]
    """Features that go missing; those that do so together in one block. Empty where nothing is missing."""
    rates: tuple[float, ...]
    graph: GraphRecord
    classes: tuple[ClassRecord, ...]
    tests: tuple[TestRecord, ...]
    own_tests: tuple[TestRecord, ...]
    drivers: tuple[DriverRecord, ...]
    recommended: str
    """The label of the learner that suits."""
    learner: str
    """Its name."""
    reason: str
    snapshots_only: bool
    n_steps: int
    notes: Names
    summary: str
    """The type in a sentence."""


class ReasonsRecord(Record, frozen=True):
    """The diagnosis, or why there is none."""

    found: DiagnosisRecord | None
    why_not: str | None


class PatternRecord(Record, frozen=True):
    """The learned probability that exactly these of a group's features are missing."""

    missing: Names
    estimate: float | None
    lower: float | None
    upper: float | None
    truth: float | None
    """The mean over the states of the group, where the truth is known."""
    truth_low: float | None
    truth_high: float | None


class GroupRecord(Record, frozen=True):
    """Situations that a learner does not tell apart, and what it learned for them."""

    features: Names
    """Those whose gaps it is about."""
    given: dict[str, str]
    samples: int
    never_missing: bool
    patterns: tuple[PatternRecord, ...]


class BoundRecord(Record, frozen=True):
    """How far off a learner may be."""

    worst: float | None
    """Of any probability."""
    tv: float | None
    """Of any state's distribution, in total variation."""
    method: str
    behaviour: str
    confidence: float
    assumes: str
    guaranteed: bool
    """Whether this holds for any number of samples; else it comes from a bootstrap."""
    text: str


class DistanceRecord(Record, frozen=True):
    """Total variation between what was learned and the truth."""

    average: float
    worst: float
    weighted: float


class HeldOutRecord(Record, frozen=True):
    """How well a learner predicts data that it has not seen, in nats."""

    per_step: float | None
    stderr: float | None
    steps: int
    folds: int
    difference: float | None
    """Compared with the best learner; 0 for that one itself."""
    difference_stderr: float | None
    margin: float | None
    """Up to this difference it cannot be told apart from the best; None where any difference may be chance."""
    impossible: int
    """How many of `by` it held for impossible."""
    by: str
    """What counts as one independent observation: episodes or blocks."""
    outside: int
    """Steps that could not be used, since the model rules out the rest of their episodes."""
    settles: bool
    """Whether enough steps could be used to settle anything."""
    units: int


class TraceRecord(Record, frozen=True):
    """The bounds of a search after some seconds."""

    seconds: float
    lower: float | None
    upper: float | None


class SearchRecord(Record, frozen=True):
    """What solving a model gave: no policy is worth more than `upper`, and the one that was found at least `lower`."""

    lower: float | None
    upper: float | None
    relative_gap: float | None
    """(upper − lower)/|lower|; None where lower is 0 and upper is not."""
    status: str
    """Why the search ended: precision, converged, exhausted, timeout, memory, trials or interrupted."""
    trials: int
    backups: int
    vectors: int
    """α-vectors of the policy; 0 if it has a memory of nodes instead."""
    sources: str
    """Which bound came from where, in words; empty where only the search with α-vectors ran."""
    trace: tuple[TraceRecord, ...]
    """Bounds over time, at most 200 rows."""


class FilesRecord(Record, frozen=True):
    """Where a learner's files are in the folder; None where no policy was found."""

    model: str
    policy: str | None
    trace: str | None


class LearnerRecord(Record, frozen=True):
    """What one learner made of the data."""

    label: str
    name: str
    assumes: str
    """In the words of the field."""
    short: str
    """The same for a column of a table."""
    meaning: str
    """The same in plain words."""
    clause: str
    """The same where a sentence goes on after it."""
    warnings: Names
    """What speaks against it."""
    always_observed: Names
    unseen_groups: int
    unseen_get: str | None
    """What situations without data get, if there are any."""
    free_parameters: int
    bound: BoundRecord
    groups: tuple[GroupRecord, ...]
    groups_left_out: int
    """How many more there are in tables/learned.csv."""
    distance: DistanceRecord | None
    graph: GraphRecord
    threshold: float | None
    """The effect from which on the graph has an arrow; None where a structure was found that has them."""
    heldout: HeldOutRecord | None
    search: SearchRecord | None
    """None where no policy was found; `left_out` of the run says why."""
    files: FilesRecord


class SkippedRecord(Record, frozen=True):
    """A learner that could not learn from these data."""

    label: str
    why: str


class LeftOutRecord(Record, frozen=True):
    """A part of the run that was too much for this machine, or for this model."""

    part: Literal["held-out", "policy", "control variate", "sensitivity"]
    label: str
    """Whose: a learner, a baseline, or all policies."""
    why: str


class RecommendedRecord(Record, frozen=True):
    """The learner whose policy is recommended, and why this one."""

    label: str
    why: str


class BaselineRecord(Record, frozen=True):
    """A policy to compare with: optimal, prior or random."""

    name: str
    search: SearchRecord | None
    """None where nothing had to be solved."""


class ValueRecord(Record, frozen=True):
    """What a policy is worth, its difference to the reference, and its place between prior (0) and reference (1)."""

    policy: str
    kind: Literal["learned", "optimal", "prior", "random"]
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    episodes: int
    difference: float | None
    difference_stderr: float | None
    difference_low: float | None
    difference_high: float | None
    normalised: float | None
    normalised_stderr: float | None
    normalised_low: float | None
    normalised_high: float | None
    impossible: int
    """How often it saw what its own model says cannot be."""


class DifferenceRecord(Record, frozen=True):
    """How much more the recommended policy is worth than another one, episode by episode with the same luck."""

    than: str
    mean: float
    stderr: float | None
    low: float | None
    high: float | None


class WorldRecord(Record, frozen=True):
    """What all policies are worth in one model."""

    world: str
    """"truth", or the label of the learner that is right in this world."""
    episodes: int
    seed: int
    reference: str
    horizon: int
    truncation: float | None
    status: str
    """Why simulating ended."""
    control_variate: bool
    rows: tuple[ValueRecord, ...]
    recommended: tuple[DifferenceRecord, ...]
    """The recommended policy against all others."""

    def row(self, policy: str) -> ValueRecord | None:
        """Return what a policy is worth, or None where it was not evaluated."""
        return next((row for row in self.rows if row.policy == policy), None)

    def difference(self, than: str) -> DifferenceRecord | None:
        """Return how much more the recommended policy is worth than another one."""
        return next((gap for gap in self.recommended if gap.than == than), None)


class VariantRecord(Record, frozen=True):
    """What the policy is worth in a model that differs a little from the one it was made for."""

    what: Literal["transition", "missingness"]
    how: str
    size: float
    value: float
    stderr: float | None
    difference: float
    difference_stderr: float | None


class SensitivityRecord(Record, frozen=True):
    """What changes of the model do to the value of a learner's policy."""

    label: str
    rows: tuple[VariantRecord, ...]


class AlternativeRecord(Record, frozen=True):
    """One kind of certificate: what it says, or why there is none."""

    epsilon: float | None
    deploys: Deployed
    why: str
    reference: bool
    """Whether it is there for comparison only."""


class HalvingRecord(Record, frozen=True):
    """How much data would halve a bound; None where no amount would."""

    factor: float | None
    samples: int | None
    more: int | None
    why: str


class CertificateRecord(Record, frozen=True):
    """How far from optimal a policy can be in truth, with a given confidence."""

    epsilon: float
    confidence: float
    method: str
    """The smallest of the alternatives, or "trivial"."""
    assumes: str
    deploys: Deployed
    vacuous: bool
    trivial: float
    """What is known without data."""
    value: tuple[float | None, float | None]
    """Between these the policy's value is."""
    best_upper: float | None
    terms: dict[str, float | None]
    dominating: str
    alternatives: dict[str, AlternativeRecord]
    samples: int
    samples_to_halve: HalvingRecord | None
    support: str | None
    conditions: Names


class LossRecord(Record, frozen=True):
    """How much less than the optimal policy the certified one is worth, by simulation in the true model."""

    mean: float
    stderr: float | None
    episodes: int


class LikelyRecord(Record, frozen=True):
    """What a policy is worth over missingness functions that the data make likely; not a guarantee."""

    low: float
    high: float
    median: float
    spread: float
    draws: int
    confidence: float
    source: str


class CertifiedRecord(Record, frozen=True):
    """What is certain of a learner's policy."""

    label: str
    name: str
    why_not: str | None
    """Why there is no certificate."""
    found: CertificateRecord | None
    loss: LossRecord | None
    contradicted: str | None
    """What speaks against the learner's assumption."""
    likely: LikelyRecord | None
    """What is likely, where nothing is certain."""
    file: str | None
    """The certified policy, where it is another one than the learner's."""


class RunRecord(Record, frozen=True):
    """All that a run found."""

    kind: Literal["missmdp run"]
    format: Literal[2]
    version: str
    """Of missmdp."""
    settings: SettingsRecord
    timings: dict[str, float]
    """Stage → seconds."""
    model: ModelRecord
    data: DataRecord
    diagnosis: ReasonsRecord
    learners: tuple[LearnerRecord, ...]
    skipped: tuple[SkippedRecord, ...]
    left_out: tuple[LeftOutRecord, ...]
    recommended: RecommendedRecord
    baselines: tuple[BaselineRecord, ...]
    values: tuple[WorldRecord, ...]
    """"truth" alone where it is known, and one world for each learner where not."""
    sensitivity: SensitivityRecord | None
    certificates: tuple[CertifiedRecord, ...]
    """The recommended learner's first."""

    def __post_init__(self) -> None:
        label = self.recommended.label
        if label not in {learner.label for learner in self.learners}:
            raise ValueError(f"recommended.label: there is no learner {label!r}")
        if self.learner.search is None:
            raise ValueError(f"recommended.label: {label!r} has no policy")
        if not {"truth", label} & {world.world for world in self.values}:
            raise ValueError(f"values: there is no world 'truth' or {label!r}")
        if self.world.row(label) is None:
            raise ValueError(f"values: there is no row of {label!r} in the world {self.world.world!r}")

    @property
    def truth_known(self) -> bool:
        """Whether it is known how values go missing."""
        return self.model.truth is not None

    @property
    def confidence(self) -> float:
        """Of bounds and intervals."""
        return self.settings.confidence

    @property
    def learner(self) -> LearnerRecord:
        """What the recommended learner learned."""
        return next(one for one in self.learners if one.label == self.recommended.label)

    @property
    def ordered_learners(self) -> list[LearnerRecord]:
        """The recommended learner, and the others in their order."""
        return sorted(self.learners, key=lambda one: one.label != self.recommended.label)

    @property
    def world(self) -> WorldRecord:
        """The truth, or where it is not known the world in which the recommended learner is right."""
        return next(one for one in self.ordered_worlds if one.world in ("truth", self.recommended.label))

    @property
    def ordered_worlds(self) -> list[WorldRecord]:
        """The truth, or the world in which the recommended learner is right, and the others in their order."""
        return sorted(self.values, key=lambda one: one.world not in ("truth", self.recommended.label))

    @property
    def value(self) -> ValueRecord:
        """What the recommended policy is worth."""
        return next(row for row in self.world.rows if row.policy == self.recommended.label)

    @property
    def certified(self) -> CertifiedRecord | None:
        """What is certain of the recommended policy, where that was asked for."""
        return next((one for one in self.certificates if one.label == self.recommended.label), None)

    @property
    def searches(self) -> dict[str, SearchRecord]:
        """Everything that was solved, by policy: the recommended learner first, baselines last."""
        own = [(learner.label, learner.search) for learner in self.ordered_learners]
        others = [(one.name, one.search) for one in self.baselines]
        return {label: search for label, search in (*own, *others) if search is not None}

    def without(self, part: str) -> list[LeftOutRecord]:
        """Return what was left out of one kind."""
        return [one for one in self.left_out if one.part == part]

    def learner_name(self, label: str) -> str:
        """Return the name of a learner by its label."""
        return next((one.name for one in self.learners if one.label == label), label)
