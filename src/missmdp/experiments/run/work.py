"""What a run does, one stage after another."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from missmdp.errors import AssumptionWarning, DataError, MissMDPError, ModelError
from missmdp.evaluation.heldout import HeldOutScore, held_out_likelihood
from missmdp.evaluation.likelihood import filter_seconds
from missmdp.evaluation.sensitivity import SensitivityRow, sensitivity
from missmdp.evaluation.simulation import why_no_control
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
from missmdp.experiments.run.recommendation import Recommendation, among_solved, recommend
from missmdp.experiments.run.recording import run_record
from missmdp.experiments.run.result import (
    Baseline,
    Certified,
    Learned,
    LeftOut,
    Log,
    Problem,
    Reasons,
    RunFindings,
    RunResult,
    World,
)
from missmdp.experiments.run.settings import AUTO, Maker, RunSettings
from missmdp.experiments.run.solving import Solving, compare_all
from missmdp.experiments.run.stages import Stages
from missmdp.experiments.run.tables import RunTables
from missmdp.learn.base import MissingnessEstimator
from missmdp.model.missingness import MissingnessFunction
from missmdp.plan.solving import SolveResult
from missmdp.words import count, rough_duration

_HELDOUT_SECONDS = 60.0
"""What it may take to work out how well a learner predicts; above that it is not compared."""


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
        self.left_out: list[LeftOut] = []

    def do(self, data: Any, table: Mapping[str, Any]) -> RunResult:
        """Do it all, and return what was found."""
        log = self.read(data, table)
        reasons = self.diagnose(log)
        learned, skipped = self.learn(log)
        heldout, recommendation = self.hold_out(log, reasons, learned)
        solving = Solving(self.settings, self.folder, self.stages, self.left_out)
        solved = solving.solve(learned)
        recommendation = self.settle(recommendation, heldout, learned, solved)
        chosen = recommendation.label
        solved[chosen].policy.save(self.folder.policy)
        baselines = solving.baselines(self.problem.truth, learned[chosen].model)
        worlds = self.evaluate(chosen, learned, solved, baselines)
        rows = self.sensitivity(learned[chosen], solved[chosen])
        certified = self.certify(chosen, reasons, learned, solved, worlds)
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
            left_out=tuple(self.left_out),
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
                except (DataError, ModelError) as error:
                    skipped[label] = str(error)
                    continue
                except MemoryError:
                    skipped[label] = "there is too little memory for it"
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
            slow = self._slow_to_hold_out(log, learned)
            compared = {
                label: make for label, make in self.makers.items() if label in learned and label not in slow
            }
            try:
                scores = self._scores(log, compared) if compared else None
            except (DataError, ModelError) as error:
                # Too short a log, or one in which nothing is possible, or too large a model: then there is no telling.
                scores, unscored = None, f" without: {error}" if isinstance(error, ModelError) else ""
            fitted = {label: found.learner for label, found in learned.items()}
            diagnosis = reasons.diagnosis if AUTO in self.settings.learners else None
            recommended = recommend(fitted, scores, self.settings.confidence, diagnosis)
            self.tables.write_heldout(scores, recommended.label)
            stage.result = f"{learned[recommended.label].name} is recommended{unscored}"
        return scores, recommended

    def _scores(self, log: Log, makers: Mapping[str, Maker]) -> dict[str, HeldOutScore]:
        return held_out_likelihood(
            makers, log.dataset, self.problem.mdp, self.settings.folds, self.seeds.heldout, progress=False
        )

    def _slow_to_hold_out(self, log: Log, learned: Mapping[str, Learned]) -> set[str]:
        """Return the learners whose predictions would take too long to work out."""
        seconds = {
            label: filter_seconds(found.model, log.dataset.n_steps) for label, found in learned.items()
        }
        slow = {label for label, long in seconds.items() if long > _HELDOUT_SECONDS}
        self.left_out += [
            LeftOut("held-out", label, f"its predictions would take about {rough_duration(seconds[label])}")
            for label in learned
            if label in slow
        ]
        return slow

    def settle(
        self,
        first: Recommendation,
        heldout: Mapping[str, HeldOutScore] | None,
        learned: Mapping[str, Learned],
        solved: Mapping[str, SolveResult],
    ) -> Recommendation:
        """Return the recommendation, which needs a policy: another learner's if the first choice has none."""
        fitted = {label: found.learner for label, found in learned.items()}
        settled = among_solved(first, fitted, heldout, solved)
        if settled is not first:
            self.tables.write_heldout(heldout, settled.label)
            with self.stages.stage("solve", "Recommending") as stage:
                stage.result = (
                    f"{learned[settled.label].name}, since {learned[first.label].name} has no policy"
                )
        return settled

    def evaluate(
        self,
        recommended: str,
        learned: Mapping[str, Learned],
        solved: Mapping[str, SolveResult],
        baselines: Mapping[str, Baseline],
    ) -> dict[str, World]:
        """Return what all policies are worth: in the truth, or in a world for each learner with a policy."""
        truth = self.problem.truth
        models = {"truth": truth} if truth is not None else {label: learned[label].model for label in solved}
        policies = {label: found.policy for label, found in solved.items()}
        doing = f"{len(policies) + len(baselines)} policies, {count(self.settings.episodes, 'episode')} each"
        worlds: dict[str, World] = {}
        with self.stages.stage("evaluate", "Evaluating", doing) as stage:
            without = why_no_control(self.problem.mdp)
            if without is not None:
                self.left_out.append(LeftOut("control variate", "all", without))
            for name, model in models.items():
                worlds[name] = compare_all(
                    name,
                    model,
                    policies,
                    baselines,
                    recommended,
                    episodes=self.settings.episodes,
                    seed=self.seeds.evaluate,
                )
            self.tables.write_values(worlds.values(), self.settings.confidence)
            stage.result = doing + ("" if truth is not None else f", in {count(len(worlds), 'world')}")
            if without is not None:
                stage.result += ", without a control variate"
        return worlds

    def sensitivity(self, learned: Learned, solved: SolveResult) -> tuple[SensitivityRow, ...] | None:
        """Return what the policy is worth where the model is a little different; None if that is not asked for."""
        if not self.settings.sensitivity_episodes:
            self.tables.write_sensitivity(())
            return None
        with self.stages.stage("sensitivity", "Sensitivity", f"{learned.label} in changed models") as stage:
            try:
                rows = self._in_changed_models(learned, solved)
                stage.result = f"{count(len(rows), 'change')} of the model"
            except KeyboardInterrupt:
                # All that matters is there: it is not to be lost.
                rows = None
                stage.result = "interrupted, and left out"
            except (ModelError, MemoryError) as error:
                why = str(error) if isinstance(error, ModelError) else "there is too little memory for it"
                rows = None
                self.left_out.append(LeftOut("sensitivity", learned.label, why))
                stage.result = f"left out: {why}"
            self.tables.write_sensitivity(rows or ())
        return None if rows is None else tuple(rows)

    def _in_changed_models(self, learned: Learned, solved: SolveResult) -> list[SensitivityRow]:
        too_long = why_no_control(self.problem.mdp)
        if too_long is not None:
            raise ModelError(f"{too_long}, in each changed model")
        return sensitivity(
            solved.policy,
            learned.model,
            learned.bound if learned.bound.guaranteed else None,
            missingness=self._redrawn(learned.learner),
            draws=self.settings.sensitivity_draws,
            episodes=self.settings.sensitivity_episodes,
            seed=self.seeds.sensitivity,
            progress=False,
        )

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
        known = {label: found for label, found in learned.items() if label in solved}
        for label in worth_certifying(recommended, known, diagnosis) if self.settings.certificate else ():
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
