"""Policies for what was learned, and those to compare with."""

from __future__ import annotations

from collections.abc import Mapping

from missmdp.experiments.run.contents_learners import solve_text
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Baseline, Learned
from missmdp.experiments.run.settings import RunSettings
from missmdp.experiments.run.stages import Stages
from missmdp.model.missmdp import PRIOR_RATE, MissMDP, prior_model
from missmdp.model.policy import UniformPolicy
from missmdp.plan.sarsop.loop import make_ready
from missmdp.plan.solving import SolveResult

__all__ = ["Solving"]

_QUICK = 2.0
"""Seconds up to which it is not worth saying that the solver had to be made ready."""


class Solving:
    """Solves models, and keeps what was found in the folder of a run.

    Parameters
    ----------
    settings
        How long, and how precisely.
    folder
        Where policies go.
    stages
        Who is told how far it is.
    """

    def __init__(self, settings: RunSettings, folder: RunFolder, stages: Stages) -> None:
        self._settings = settings
        self._folder = folder
        self._stages = stages

    def solve(self, learned: Mapping[str, Learned]) -> dict[str, SolveResult]:
        """Return a policy for what each learner learned."""
        with self._stages.stage("ready", "Solver", "compiling: half a minute, once on this machine") as stage:
            make_ready(progress=False)
            stage.result = "compiled, once on this machine"
            stage.quiet_below = _QUICK
        solved: dict[str, SolveResult] = {}
        for label, found in learned.items():
            solved[label] = self._solve(label, found.model)
            solved[label].policy.save(self._folder.learner(label, "policy.mmpolicy"))
            solved[label].trace.to_csv(self._folder.learner(label, "trace.csv"))
        return solved

    def _solve(self, what: str, model: MissMDP) -> SolveResult:
        limit = "" if self._settings.timeout is None else f", {self._settings.timeout:g} s at most"
        with self._stages.stage(
            "solve", "Solving", f"{what}{limit}; Ctrl-C goes on with the best so far"
        ) as stage:
            found = self._settings.solver().solve(model)
            ended = solve_text(found).partition(": ")[0].removesuffix(", reached its precision")
            stage.result = f"{what}: {ended}"
        return found

    def baselines(self, truth: MissMDP | None, model: MissMDP) -> dict[str, Baseline]:
        """Return the policies to compare with; `truth` is None where it is not known, and `model` any with the MDP."""
        found: dict[str, Baseline] = {}
        if truth is not None:
            result = self._solve("optimal", truth)
            how = f"solved for the true missingness function: {solve_text(result)}"
            found["optimal"] = Baseline("optimal", how, result.policy, result)
        result = self._solve("prior", prior_model(model))
        how = f"solved as if every feature went missing with probability {PRIOR_RATE:g}: {solve_text(result)}"
        found["prior"] = Baseline("prior", how, result.policy, result)
        found["random"] = Baseline("random", "uniformly random actions", UniformPolicy(), None)
        return found
