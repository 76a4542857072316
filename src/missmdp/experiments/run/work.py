"""What a run does, one stage after another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from missmdp.errors import AssumptionWarning, DataError, MissMDPError, ModelError
from missmdp.evaluation.heldout import HeldOutScore, held_out_likelihood
from missmdp.evaluation.sensitivity import SensitivityRow, sensitivity
from missmdp.experiments.record.coding import RunIdentity
from missmdp.experiments.report.write import write_report
from missmdp.experiments.run.certifying import (
    Certifying,
    certificate_summary,
    keep_certified,
    worth_certifying,
)
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.learning import Learning
from missmdp.experiments.run.reading import find_reasons, read_log
from missmdp.experiments.run.recommendation import Recommendation, recommend
from missmdp.experiments.run.recording import run_record
from missmdp.experiments.run.result import (
    Baseline,
    Certified,
    Learned,
    Log,
    Problem,
    Reasons,
    RunFindings,
    RunResult,
    World,
)
from missmdp.experiments.run.settings import AUTO, RunSettings
from missmdp.experiments.run.solving import Solving, compare_all
from missmdp.experiments.run.stages import Stages
from missmdp.experiments.run.tables import RunTables
from missmdp.learn.base import MissingnessEstimator
from missmdp.model.missingness import MissingnessFunction
from missmdp.plan.solving import SolveResult
from missmdp.words import count


class RunWork:
    """One run, from data to report. What is made is written as soon as it is there.

    Parameters
    ----------
    problem
        What is to be decided in.
    settings
        How to do it.
    folder
        Where everything goes; checked before.
    identity
        What the run is, for the folder.
    stages
        Who is told how far it is.
    """

    def __init__(
        self,
        problem: Problem,
        settings: RunSettings,
        folder: RunFolder,
        identity: RunIdentity,
        stages: Stages,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.seeds = settings.seeds
        self.folder = folder
        self.identity = identity
        self.stages = stages
        self.tables = RunTables(folder)
        self.makers = settings.makers(problem.mdp)

    def do(self, data: Any, table: Mapping[str, Any]) -> RunResult:
        """Do it all, and return what was found."""
        log = self.read(data, table)
        reasons = self.diagnose(log)
        learned, skipped = self.learn(log)
        heldout, recommendation = self.hold_out(log, reasons, learned)
        solving = Solving(self.settings, self.folder, self.stages)
        solved = solving.solve(learned)
        solved[recommendation.label].policy.save(self.folder.policy)
        baselines = solving.baselines(self.problem.truth, learned[recommendation.label].model)
        worlds = self.evaluate(learned, solved, baselines)
        rows = self.sensitivity(learned[recommendation.label], solved[recommendation.label])
        certified = self.certify(recommendation.label, reasons, learned, solved, worlds)
        found = RunFindings(
            folder=self.folder,
            settings=self.settings,
            problem=self.problem,
            log=log,
            reasons=reasons,
            learned=learned,
            skipped=skipped,
            heldout=heldout,
            recommendation=recommendation,
            solved=solved,
            baselines=baselines,
            worlds=worlds,
            sensitivity=rows,
            certified=certified,
            timings=dict(self.stages.seconds),
        )
        return self.report(found)

    def read(self, data: Any, table: Mapping[str, Any]) -> Log:
        """Return the data, read or simulated, with what can be said of them."""
        doing = f"simulating {self.settings.steps:,} steps" if data is None else "reading"
        with self.stages.stage("data", "Data", doing) as stage:
            log = read_log(data, table, tuple(self.identity.files), self.problem, self.settings)
            self.folder.begin(self.identity)
            if log.simulated:
                log.dataset.to_parquet(self.folder.log)
            self.tables.write_data(log.description)
            stage.result = f"{'simulated, ' if log.simulated else ''}{log.description.size}"
            if log.problems:
                stage.result += f"; {count(len(log.problems), 'problem')}: see the report"
        return log

    def diagnose(self, log: Log) -> Reasons:
        """Return why values are missing, and let the diagnosis choose the learner where it is to."""
        if not self.settings.diagnosis:
            self.tables.write_diagnosis(None)
            return Reasons(None, "it was not asked for")
        with self.stages.stage(
            "diagnose", "Diagnosis", "why values are missing; Ctrl-C leaves it out"
        ) as stage:
            reasons = find_reasons(log.dataset, self.problem.mdp, self.seeds.diagnose)
            self.tables.write_diagnosis(reasons.diagnosis)
            stage.result = reasons.summary
        if AUTO in self.settings.learners and reasons.diagnosis is not None:
            self.makers = self.settings.suited(reasons.diagnosis)
        return reasons

    def learn(self, log: Log) -> tuple[dict[str, Learned], dict[str, str]]:
        """Return what each learner learned, and why some could not."""
        learned: dict[str, Learned] = {}
        skipped: dict[str, str] = {}
        with self.stages.stage("learn", "Learning", ", ".join(self.makers)) as stage:
            learning = Learning(self.problem, self.settings, log)
            for label, make in self.makers.items():
                try:
                    learned[label] = learning.learn(label, make)
                except DataError as error:
                    skipped[label] = str(error)
                    continue
                learned[label].model.save(self.folder.learner(label, "learned.mmdp"))
            if not learned:
                raise DataError("; ".join(f"{label}: {why}" for label, why in skipped.items()))
            self.tables.write_learned(learned.values())
            stage.result = ", ".join(found.name for found in learned.values())
            if skipped:
                stage.result += f"; not {', '.join(skipped)}: {next(iter(skipped.values()))}"
        return learned, skipped

    def hold_out(
        self, log: Log, reasons: Reasons, learned: Mapping[str, Learned]
    ) -> tuple[dict[str, HeldOutScore] | None, Recommendation]:
        """Return how well learners predict what they have not seen, and which one to trust."""
        unscored = ""
        with self.stages.stage("heldout", "Holding out", f"{self.settings.folds} folds") as stage:
            try:
                scores = held_out_likelihood(
                    {label: make for label, make in self.makers.items() if label in learned},
                    log.dataset,
                    self.problem.mdp,
                    self.settings.folds,
                    self.seeds.heldout,
                    progress=False,
                )
            except (DataError, ModelError) as error:
                # Too short a log, or one in which nothing is possible, or too large a model: then there is no telling.
                scores, unscored = None, f" without: {error}" if isinstance(error, ModelError) else ""
            fitted = {label: found.learner for label, found in learned.items()}
            diagnosis = reasons.diagnosis if AUTO in self.settings.learners else None
            recommended = recommend(fitted, scores, self.settings.confidence, diagnosis)
            self.tables.write_heldout(scores, recommended.label)
            stage.result = f"{learned[recommended.label].name} is recommended{unscored}"
        return scores, recommended

    def evaluate(
        self,
        learned: Mapping[str, Learned],
        solved: Mapping[str, SolveResult],
        baselines: Mapping[str, Baseline],
    ) -> dict[str, World]:
        """Return what all policies are worth: in the truth, or in a world for each learner."""
        truth = self.problem.truth
        models = (
            {"truth": truth}
            if truth is not None
            else {label: found.model for label, found in learned.items()}
        )
        policies = {label: found.policy for label, found in solved.items()}
        doing = f"{len(policies) + len(baselines)} policies, {count(self.settings.episodes, 'episode')} each"
        worlds: dict[str, World] = {}
        with self.stages.stage("evaluate", "Evaluating", doing) as stage:
            for name, model in models.items():
                worlds[name] = compare_all(
                    name,
                    model,
                    policies,
                    baselines,
                    episodes=self.settings.episodes,
                    seed=self.seeds.evaluate,
                )
            self.tables.write_values(worlds.values(), self.settings.confidence)
            stage.result = doing + ("" if truth is not None else f", in {count(len(worlds), 'world')}")
        return worlds

    def sensitivity(self, learned: Learned, solved: SolveResult) -> tuple[SensitivityRow, ...] | None:
        """Return what the policy is worth where the model is a little different; None if that is not asked for."""
        settings = self.settings
        if not settings.sensitivity_episodes:
            self.tables.write_sensitivity(())
            return None
        with self.stages.stage("sensitivity", "Sensitivity", f"{learned.label} in changed models") as stage:
            try:
                rows = sensitivity(
                    solved.policy,
                    learned.model,
                    learned.bound if learned.bound.guaranteed else None,
                    missingness=self._redrawn(learned.learner),
                    draws=settings.sensitivity_draws,
                    episodes=settings.sensitivity_episodes,
                    seed=self.seeds.sensitivity,
                    progress=False,
                )
                stage.result = f"{count(len(rows), 'change')} of the model"
            except KeyboardInterrupt:
                # All that matters is there: it is not to be lost.
                rows = None
                stage.result = "interrupted, and left out"
            self.tables.write_sensitivity(rows or ())
        return None if rows is None else tuple(rows)

    def _redrawn(self, learner: MissingnessEstimator) -> list[MissingnessFunction]:
        """Return what a learner without a bound would have learned from other logs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            if learner.has_bound or not learner.enough_to_resample():
                return []
        return learner.bootstrap(self.settings.sensitivity_draws, self.seeds.sensitivity)

    def certify(
        self,
        recommended: str,
        reasons: Reasons,
        learned: Mapping[str, Learned],
        solved: Mapping[str, SolveResult],
        worlds: Mapping[str, World],
    ) -> dict[str, Certified]:
        """Return how far from optimal policies can be in truth, the recommended one first."""
        diagnosis, certified = reasons.diagnosis, dict[str, Certified]()
        certifying = Certifying(self.problem, self.settings, worlds.get("truth"), diagnosis)
        for label in worth_certifying(recommended, learned, diagnosis) if self.settings.certificate else ():
            own = label == recommended
            with self.stages.stage("certify", "Certificate", f"{label}; Ctrl-C cuts it short") as stage:
                certified[label] = certifying.certify(learned[label], solved[label], in_full=own)
                keep_certified(certified[label], self.folder, recommended=own)
                stage.result = f"{label}: {certificate_summary(certified[label])}"
        self.tables.write_certificates(certified)
        return certified

    def report(self, found: RunFindings) -> RunResult:
        """Write all that was found as one file, and as a page for people; return it with what went wrong with that."""
        record = run_record(found, self.identity)
        result = RunResult(**vars(found), record=record)
        with self.stages.stage("report", "Report", "writing") as stage:
            self.folder.finish(record)
            try:
                write_report(self.folder.path)
            except MissMDPError as error:
                stage.result = "cannot be written"
                return replace(result, report_failed=str(error))
            stage.result = str(self.folder.report)
        return result
