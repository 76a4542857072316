"""From what a run found to its record, which run.json holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from missmdp._version import __version__
from missmdp.data.description.description import Association, Description
from missmdp.evaluation.certificate.value_interval import ValueInterval
from missmdp.evaluation.heldout import HeldOutScore
from missmdp.experiments.record.coding import RunIdentity, plain
from missmdp.experiments.record.record import (
    FORMAT,
    KIND,
    AssociationRecord,
    BaselineRecord,
    BoundRecord,
    CertificateRecord,
    CertifiedRecord,
    DataRecord,
    DiagnosisRecord,
    DifferenceRecord,
    DistanceRecord,
    FeatureRecord,
    FilesRecord,
    GapsRecord,
    GraphRecord,
    GroupRecord,
    HeldOutRecord,
    LearnerRecord,
    LeftOutRecord,
    LikelyRecord,
    LossRecord,
    ModelRecord,
    PatternRecord,
    RareGapsRecord,
    RateRecord,
    ReasonsRecord,
    RecommendedRecord,
    RunRecord,
    SearchRecord,
    SensitivityRecord,
    SettingsRecord,
    SkippedRecord,
    TraceRecord,
    TruthRecord,
    ValueRecord,
    VariantRecord,
    WorldRecord,
)
from missmdp.experiments.run.learning import learned_graph
from missmdp.experiments.run.reading import data_hash
from missmdp.experiments.run.recommendation import margin, much_is_outside
from missmdp.experiments.run.result import (
    Baseline,
    Certified,
    Learned,
    Problem,
    RunFindings,
    World,
)
from missmdp.experiments.run.tables import sensitivity_rows, value_rows
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.diagnosis.result import Diagnosis, type_words
from missmdp.learn.registry import find_learner
from missmdp.learn.table import GroupTruth
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP
from missmdp.plan.solving import SolveResult
from missmdp.plan.trace import Trace

_MOST_PATTERNS = 12
_MOST_ASSOCIATIONS = 12
_MOST_GROUPS = 1000
"""Groups of a learner that are listed, those with most samples; the table of what was learned has all."""
_MOST_ROWS = 200
"""Rows of a trace."""

Made = TypeVar("Made", bound=msgspec.Struct)


def run_record(found: RunFindings, identity: RunIdentity) -> RunRecord:
    """Return the record; apart from times it is the same for the same run, unless time ran out in it."""
    return RunRecord(
        kind=KIND,
        format=FORMAT,
        version=__version__,
        settings=_as(SettingsRecord, identity.settings),
        timings=found.timings,
        model=_model(found.problem),
        data=_data(found),
        diagnosis=ReasonsRecord(
            found=_diagnosis(found.reasons.diagnosis),
            why_not=None if found.reasons.diagnosis is not None else found.reasons.why_not,
        ),
        learners=tuple(_learner(found, learned) for learned in found.learned.values()),
        skipped=tuple(SkippedRecord(label=label, why=why) for label, why in found.skipped.items()),
        left_out=tuple(LeftOutRecord(part=one.part, label=one.label, why=one.why) for one in found.left_out),
        recommended=RecommendedRecord(label=found.recommendation.label, why=found.recommendation.why),
        baselines=tuple(map(_baseline, found.baselines.values())),
        values=tuple(_world(found, world) for world in found.worlds.values()),
        sensitivity=(
            None
            if found.sensitivity is None
            else SensitivityRecord(
                label=found.recommendation.label,
                rows=tuple(_as(VariantRecord, row) for row in sensitivity_rows(found.sensitivity)),
            )
        ),
        certificates=tuple(_certified(found, one) for one in found.certified.values()),
    )


def _as(kind: type[Made], values: Mapping[str, Any]) -> Made:
    """Return values as a record; what is not finite becomes None."""
    return msgspec.convert(plain(values), kind)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _strings(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _graph(graph: MissingnessGraph) -> GraphRecord:
    return GraphRecord(
        features=tuple(graph.features),
        can_go_missing=tuple(graph.can_go_missing),
        edges=tuple(graph.edges),
        dependent=tuple(graph.dependent),
    )


def _model(problem: Problem) -> ModelRecord:
    mdp = problem.mdp
    return ModelRecord(
        name=problem.name,
        source=problem.source,
        states=mdp.n_states,
        reachable=int(mdp.reachable.sum()),
        terminal=int(mdp.terminal.sum()),
        actions=_strings(mdp.actions),
        discount=mdp.discount,
        horizon=mdp.horizon(),
        features=tuple(
            FeatureRecord(name=name, values=_strings(values)) for name, values in mdp.features.items()
        ),
        sha256=problem.sha256,
        truth=None if problem.truth is None else _truth(problem.truth),
    )


def _truth(truth: MissMDP) -> TruthRecord:
    types = truth.types()
    return TruthRecord(
        name=types.name,
        mcar=types.mcar,
        simple_mar=types.simple_mar,
        mar=types.mar,
        self_censoring=tuple(types.self_censoring),
        independent=types.independent,
        positive=types.positive,
        always_observed=tuple(types.always_observed),
        can_go_missing=tuple(types.can_go_missing),
        fitting_learners=tuple(types.learners),
        observations=truth.missingness.count_occurring(truth.mdp.reachable),
        graph=_graph(truth.mgraph()),
    )


def _data(found: RunFindings) -> DataRecord:
    log = found.log
    dataset, described = log.dataset, log.description
    patterns, rarer = _patterns(described)
    return DataRecord(
        source="simulated" if log.simulated else "table",
        files=log.files,
        sha256=data_hash(dataset),
        steps=dataset.n_steps,
        episodes=dataset.n_episodes,
        terminated=int(dataset.terminated.sum()),
        behaviour=found.recommended.bound.behaviour,
        behaviour_known=found.settings.behaviour is not None or dataset.behaviour is not None,
        missing_rates={name: float(rate) for name, rate in dataset.missing_rates().items()},
        always_observed=tuple(dataset.always_observed()),
        patterns=patterns,
        rarer=rarer,
        associations=tuple(map(_association, described.strongest(_MOST_ASSOCIATIONS))),
        notes=tuple(log.report.notes),
        fits=log.report.ok,
        problems=tuple(log.problems),
        ruled_out=log.ruled_out,
        never_visited=len(log.report.never_visited),
    )


def _patterns(described: Description) -> tuple[tuple[GapsRecord, ...], RareGapsRecord | None]:
    """Return the most frequent patterns, and all others together."""
    rows = described.pattern_rows.tolist()[:_MOST_PATTERNS]
    listed = tuple(
        GapsRecord(
            missing=tuple(name for name, gap in zip(described.features, pattern, strict=True) if gap),
            count=count,
            share=count / described.n_rows,
        )
        for pattern, count in zip(described.patterns[:_MOST_PATTERNS], rows, strict=True)
    )
    rest = described.n_rows - sum(rows)
    others = described.n_patterns - len(listed)
    return listed, RareGapsRecord(
        patterns=others, count=rest, share=rest / described.n_rows
    ) if rest else None


def _association(found: Association) -> AssociationRecord:
    return AssociationRecord(
        feature=found.feature,
        given=found.given,
        highest=RateRecord(value=str(found.highest), rate=float(found.highest_rate)),
        lowest=RateRecord(value=str(found.lowest), rate=float(found.lowest_rate)),
    )


def _diagnosis(found: Diagnosis | None) -> DiagnosisRecord | None:
    if found is None:
        return None
    values = found.as_dict()
    # Values may be of any type; people see them as words.
    values["drivers"] = [
        {**driver, "lowest": str(driver["lowest"]), "highest": str(driver["highest"])}
        for driver in values["drivers"]
    ]
    return _as(
        DiagnosisRecord,
        {**values, "summary": type_words(found), "learner": find_learner(found.recommended).name},
    )


def _learner(found: RunFindings, learned: Learned) -> LearnerRecord:
    learner, label, truths = learned.learner, learned.label, learned.group_truths
    groups = learned.bound.per_group
    listed = sorted(sorted(range(len(groups)), key=lambda g: -groups[g].samples)[:_MOST_GROUPS])
    graph, threshold = learned_graph(learner, found.log.description.can_go_missing)
    score = None if found.heldout is None else found.heldout.get(label)
    unseen, words, search = learner.unseen_, find_learner(label), found.solved.get(label)
    return LearnerRecord(
        label=label,
        name=learned.name,
        assumes=learner.assumed_,
        short=words.short,
        meaning=words.meaning,
        clause=words.clause,
        warnings=_strings(learner.warnings_),
        always_observed=tuple(learner.always_observed_),
        unseen_groups=len(unseen),
        unseen_get=unseen[0].gets if unseen else None,
        free_parameters=learner.n_parameters_,
        bound=_bound(learned.bound),
        groups=tuple(_group(groups[g], None if truths is None else truths[g]) for g in listed),
        groups_left_out=len(groups) - len(listed),
        distance=None
        if learned.distance is None
        else _as(
            DistanceRecord,
            {name: getattr(learned.distance, name) for name in ("average", "worst", "weighted")},
        ),
        graph=_graph(graph),
        threshold=threshold,
        heldout=None if score is None else _heldout(score, found.settings.confidence),
        search=None if search is None else _search(search),
        files=_files(found, label),
    )


def _files(found: RunFindings, label: str) -> FilesRecord:
    def name(file: str) -> str:
        return found.folder.relative(found.folder.learner(label, file))

    solved = label in found.solved
    return FilesRecord(
        model=name("learned.mmdp"),
        policy=name("policy.mmpolicy") if solved else None,
        trace=name("trace.csv") if solved else None,
    )


def _bound(bound: Bound) -> BoundRecord:
    return BoundRecord(
        worst=_finite(bound.worst),
        tv=_finite(bound.tv),
        method=bound.method,
        behaviour=bound.behaviour,
        confidence=bound.confidence,
        assumes=bound.assumes,
        guaranteed=bound.guaranteed,
        text=bound.describe(),
    )


def _group(group: GroupBound, truth: GroupTruth | None) -> GroupRecord:
    return GroupRecord(
        features=tuple(group.features),
        given={name: str(value) for name, value in group.given.items()},
        samples=int(group.samples),
        never_missing=group.never_missing,
        patterns=tuple(
            PatternRecord(
                missing=tuple(name for name, seen in zip(group.features, pattern, strict=True) if not seen),
                estimate=_finite(group.estimate[k]),
                lower=_finite(group.lower[k]),
                upper=_finite(group.upper[k]),
                truth=None if truth is None else _finite(truth.mean[k]),
                truth_low=None if truth is None else _finite(truth.low[k]),
                truth_high=None if truth is None else _finite(truth.high[k]),
            )
            for k, pattern in enumerate(group.patterns)
        ),
    )


def _heldout(score: HeldOutScore, confidence: float) -> HeldOutRecord:
    return HeldOutRecord(
        per_step=_finite(score.per_step),
        stderr=_finite(score.stderr),
        steps=score.steps,
        folds=score.folds,
        difference=_finite(score.difference),
        difference_stderr=_finite(score.difference_stderr),
        margin=_finite(margin(score, confidence)),
        impossible=score.impossible,
        by=score.by,
        outside=score.outside,
        settles=not much_is_outside(score),
        units=score.units,
    )


def _search(search: SolveResult) -> SearchRecord:
    rows = search.trace.rows()
    return SearchRecord(
        lower=_finite(search.lower),
        upper=_finite(search.upper),
        relative_gap=_finite(search.relative_gap),
        status=search.status,
        trials=rows[-1].trials if rows else 0,
        backups=rows[-1].backups if rows else 0,
        vectors=search.n_vectors,
        sources=search.sources,
        trace=_thinned(search.trace),
    )


def _thinned(trace: Trace) -> tuple[TraceRecord, ...]:
    """Return rows of a trace, evenly spread, the first and the last among them."""
    rows = trace.rows()
    places = np.linspace(0, len(rows) - 1, min(_MOST_ROWS, len(rows))).round()
    kept = [rows[int(place)] for place in np.unique(places)]
    return tuple(
        TraceRecord(seconds=row.seconds, lower=_finite(row.lower), upper=_finite(row.upper)) for row in kept
    )


def _baseline(baseline: Baseline) -> BaselineRecord:
    search = baseline.result
    return BaselineRecord(name=baseline.name, search=None if search is None else _search(search))


def _world(found: RunFindings, world: World) -> WorldRecord:
    comparison, label = world.comparison, found.recommendation.label
    evaluation = comparison[comparison.reference]
    confidence = found.settings.confidence
    return WorldRecord(
        world=world.name,
        episodes=min(each.episodes for each in comparison.evaluations.values()),
        seed=evaluation.seed,
        reference=comparison.reference,
        horizon=evaluation.horizon,
        truncation=_finite(evaluation.truncation),
        status=evaluation.status,
        control_variate=evaluation.controlled is not None,
        rows=tuple(_as(ValueRecord, row) for row in value_rows(world, confidence)),
        recommended=tuple(
            _difference(world, label, other, confidence) for other in comparison.evaluations if other != label
        ),
    )


def _difference(world: World, label: str, other: str, confidence: float) -> DifferenceRecord:
    gap = world.comparison.difference(label, other)
    low, high = gap.interval(confidence)
    return DifferenceRecord(
        than=other, mean=gap.mean, stderr=_finite(gap.stderr), low=_finite(low), high=_finite(high)
    )


def _certified(found: RunFindings, one: Certified) -> CertifiedRecord:
    certificate, loss = one.certificate, one.loss
    file = found.folder.learner(one.label, "certified.mmpolicy")
    if found.recommendation.label == one.label:
        file = found.folder.certified
    return CertifiedRecord(
        label=one.label,
        name=found.learned[one.label].name,
        why_not=one.why_not,
        found=None if certificate is None else _as(CertificateRecord, certificate.to_dict()),
        loss=None
        if loss is None
        else LossRecord(mean=loss.mean, stderr=_finite(loss.stderr), episodes=loss.episodes),
        contradicted=one.contradicted,
        likely=None if one.interval is None else _likely(one.interval),
        file=found.folder.relative(file) if file.exists() else None,
    )


def _likely(found: ValueInterval) -> LikelyRecord:
    low, high = found.interval
    return LikelyRecord(
        low=low,
        high=high,
        median=found.median,
        spread=float(found.values.std()),
        draws=len(found.values),
        confidence=found.confidence,
        source=found.source,
    )
