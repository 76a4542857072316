"""What a run does, one stage after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from missmdp.data.collect import collect
from missmdp.data.dataset import Dataset
from missmdp.data.description.describe import describe
from missmdp.data.validation.validate import validate
from missmdp.errors import DataError, MissMDPError
from missmdp.evaluation.heldout import HeldOut, held_out_likelihood
from missmdp.evaluation.likelihood import log_likelihood
from missmdp.evaluation.sensitivity import SensitivityRow, sensitivity
from missmdp.experiments.run.contents import run_contents
from missmdp.experiments.run.contents_learners import solve_text
from missmdp.experiments.run.folder import RunFolder, RunIdentity
from missmdp.experiments.run.learning import Learning
from missmdp.experiments.run.recommendation import Recommendation, recommend
from missmdp.experiments.run.result import Baseline, Learned, Log, Problem, RunResult, World
from missmdp.experiments.run.result_tables import RunTables
from missmdp.experiments.run.settings import RunSettings
from missmdp.experiments.run.stages import Stages
from missmdp.experiments.run.worlds import compare_all
from missmdp.learn.base import Estimator
from missmdp.learn.bounds import counted
from missmdp.learn.em.estimator import DynamicsEM
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import UniformPolicy
from missmdp.model.variants import PRIOR_RATE, prior_model
from missmdp.plan.base import SolveResult
from missmdp.plan.sarsop.loop import exercise
from missmdp.plan.sarsop.ready import make_ready

__all__ = ["RunWork"]

_QUICK = 2.0
"""Seconds up to which it is not worth saying that the solver had to be made ready."""


class RunWork:
    """One run, from data to report. What is made is written as soon as it is there.

    Parameters
    ----------
    problem
        What is to be decided in.
    settings
        How it is done.
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

    def do(self, data: Any, table: Mapping[str, Any]) -> RunResult:
        """Do it all, and return what was found."""
        log = self.read(data, table)
        learned, skipped = self.learn(log)
        heldout, recommendation = self.hold_out(log, learned)
        solved = self.solve(learned)
        solved[recommendation.label].policy.save(self.folder.policy)
        baselines = self.baselines(learned[recommendation.label].model)
        worlds = self.evaluate(learned, solved, baselines)
        rows = self.sensitivity(learned[recommendation.label], solved[recommendation.label])
        result = RunResult(
            folder=self.folder,
            settings=self.settings,
            problem=self.problem,
            log=log,
            learned=learned,
            skipped=skipped,
            heldout=heldout,
            recommendation=recommendation,
            solved=solved,
            baselines=baselines,
            worlds=worlds,
            sensitivity=rows,
            timings=dict(self.stages.seconds),
        )
        return self.report(result)

    def read(self, data: Any, table: Mapping[str, Any]) -> Log:
        """Return the data, read or simulated, with what can be said of them."""
        doing = f"simulating {self.settings.steps:,} steps" if data is None else "reading"
        with self.stages.stage("data", "Data", doing) as stage:
            dataset = self._dataset(data, table)
            report = validate(dataset, self.problem.mdp, progress=False)
            log = Log(
                dataset,
                data is None,
                tuple(self.identity.files),
                describe(dataset),
                report,
                0 if data is None or not report.ok else self._ruled_out(dataset),
            )
            self.folder.begin(self.identity)
            if log.simulated:
                dataset.to_parquet(self.folder.log)
            self.tables.write_data(log.description)
            stage.result = f"{'simulated, ' if log.simulated else ''}{log.description.size}"
            if log.problems:
                stage.result += f"; {counted(len(log.problems), 'problem')}: see the report"
        return log

    def _ruled_out(self, dataset: Dataset) -> int:
        """Return how many episodes are impossible as values go missing in the truth."""
        truth = self.problem.truth
        return 0 if truth is None else len(log_likelihood(dataset, truth).impossible)

    def _dataset(self, data: Any, table: Mapping[str, Any]) -> Dataset:
        mdp, simulator = self.problem.mdp, self.problem.simulator
        if data is None:
            assert simulator is not None
            return collect(simulator, self.settings.steps, seed=self.seeds.data, progress=False)
        if isinstance(data, Dataset):
            if data.mdp.space.features != mdp.space.features or data.mdp.actions != mdp.actions:
                raise DataError("the dataset has other features, values or actions than the model")
            return data
        return Dataset.from_table(data, mdp, **table, progress=False)

    def learn(self, log: Log) -> tuple[dict[str, Learned], dict[str, str]]:
        """Return what each learner learned, and why some could not."""
        learned: dict[str, Learned] = {}
        skipped: dict[str, str] = {}
        with self.stages.stage("learn", "Learning", ", ".join(self.settings.learners)) as stage:
            learning = Learning(self.problem, self.settings, log)
            for label, make in self.settings.makers(self.problem.mdp).items():
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
        self, log: Log, learned: Mapping[str, Learned]
    ) -> tuple[dict[str, HeldOut] | None, Recommendation]:
        """Return how well learners predict what they have not seen, and which one to trust."""
        with self.stages.stage("heldout", "Holding out", f"{self.settings.folds} folds") as stage:
            makers = self.settings.makers(self.problem.mdp)
            try:
                scores = held_out_likelihood(
                    {label: make for label, make in makers.items() if label in learned},
                    log.dataset,
                    self.problem.mdp,
                    self.settings.folds,
                    self.seeds.heldout,
                    progress=False,
                )
            except DataError:
                # Too short a log, or one in which nothing is possible: then there is no telling.
                scores = None
            recommended = recommend(
                {label: found.learner for label, found in learned.items()}, scores, self.settings.confidence
            )
            self.tables.write_heldout(scores, recommended.label)
            stage.result = f"{learned[recommended.label].name} is recommended"
        return scores, recommended

    def solve(self, learned: Mapping[str, Learned]) -> dict[str, SolveResult]:
        """Return a policy for what each learner learned."""
        with self.stages.stage("ready", "Solver", "compiling: half a minute, once on this machine") as stage:
            make_ready(exercise, progress=False)
            stage.result = "compiled, once on this machine"
            stage.quiet_below = _QUICK
        solved: dict[str, SolveResult] = {}
        for label, found in learned.items():
            solved[label] = self._solve(label, found.model)
            solved[label].policy.save(self.folder.learner(label, "policy.mmpolicy"))
            solved[label].trace.to_csv(self.folder.learner(label, "trace.csv"))
        return solved

    def _solve(self, what: str, model: MissMDP) -> SolveResult:
        limit = "" if self.settings.timeout is None else f", {self.settings.timeout:g} s at most"
        with self.stages.stage(
            "solve", "Solving", f"{what}{limit}; Ctrl-C goes on with the best so far"
        ) as stage:
            found = self.settings.solver().solve(model)
            ended = solve_text(found).partition(": ")[0].removesuffix(", reached its precision")
            stage.result = f"{what}: {ended}"
        return found

    def baselines(self, model: MissMDP) -> dict[str, Baseline]:
        """Return the policies to compare with; `model` is any with the MDP."""
        found: dict[str, Baseline] = {}
        if self.problem.truth is not None:
            result = self._solve("optimal", self.problem.truth)
            how = f"solved for the true missingness function: {solve_text(result)}"
            found["optimal"] = Baseline("optimal", how, result.policy, result)
        result = self._solve("prior", prior_model(model))
        how = f"solved as if every feature went missing with probability {PRIOR_RATE:g}: {solve_text(result)}"
        found["prior"] = Baseline("prior", how, result.policy, result)
        found["random"] = Baseline("random", "uniformly random actions", UniformPolicy(), None)
        return found

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
        count = len(policies) + len(baselines)
        doing = f"{count} policies, {counted(self.settings.episodes, 'episode')} each"
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
            stage.result = doing + ("" if truth is not None else f", in {counted(len(worlds), 'world')}")
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
                stage.result = f"{counted(len(rows), 'change')} of the model"
            except KeyboardInterrupt:
                # All that matters is there: it is not to be lost.
                rows = None
                stage.result = "interrupted, and left out"
            self.tables.write_sensitivity(rows or ())
        return None if rows is None else tuple(rows)

    def _redrawn(self, learner: Estimator) -> list[MissingnessFunction]:
        """Return what a learner without a bound would have learned from other logs."""
        if not isinstance(learner, DynamicsEM):
            return []
        return learner.bootstrap(self.settings.sensitivity_draws, self.seeds.sensitivity)

    def report(self, result: RunResult) -> RunResult:
        """Write all that was found as one file, and as a page for people; return it with what went wrong with that."""
        from missmdp.experiments.report.write import write_report

        with self.stages.stage("report", "Report", "writing") as stage:
            self.folder.finish(run_contents(result, self.identity))
            try:
                write_report(self.folder.path)
            except MissMDPError as error:
                stage.result = "cannot be written"
                return replace(result, report_failed=str(error))
            stage.result = str(self.folder.report)
        return result
