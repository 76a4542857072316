"""Policies for what was learned and those to compare with, and what all of them are worth in one model."""

from __future__ import annotations

from collections.abc import Mapping

from missmdp.errors import DataError
from missmdp.evaluation.compare import Comparison, NormalisedValue, compare, normalised_value
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Baseline, Kind, Learned, World
from missmdp.experiments.run.settings import RunSettings
from missmdp.experiments.run.stages import Stages
from missmdp.model.missmdp import MissMDP, prior_model
from missmdp.model.policy import Policy, UniformPolicy
from missmdp.plan.sarsop.ready import make_ready
from missmdp.plan.solving import SolveResult

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
            "solve", "Solving", f"{what}{limit}; Ctrl-C continues with the best so far"
        ) as stage:
            found = self._settings.solver().solve(model)
            ended = "" if found.status == "precision" else f", {found.ended}"
            stage.result = f"{what}: {found.bounds_text}{ended}"
        return found

    def baselines(self, truth: MissMDP | None, model: MissMDP) -> dict[str, Baseline]:
        """Return the policies to compare with; `truth` is None where it is not known, and `model` any with the MDP."""
        found: dict[str, Baseline] = {}
        if truth is not None:
            result = self._solve("optimal", truth)
            found["optimal"] = Baseline("optimal", result.policy, result)
        result = self._solve("prior", prior_model(model))
        found["prior"] = Baseline("prior", result.policy, result)
        found["random"] = Baseline("random", UniformPolicy(), None)
        return found


def compare_all(
    name: str,
    model: MissMDP,
    learned: Mapping[str, Policy],
    baselines: Mapping[str, Baseline],
    *,
    episodes: int,
    seed: int,
) -> World:
    """Return what all policies are worth in a model.

    Parameters
    ----------
    name
        "truth", or the label of the learner that is right in this world: then that one's policy is the best there
        is, and the others are compared with it.
    model
        The model to act in.
    learned
        Label → policy for what the learner learned.
    baselines
        The policies to compare with; "prior" is among them.
    episodes, seed
        As in `compare`.
    """
    reference = name if name in learned else "optimal"
    policies = {**learned, **{other: baseline.policy for other, baseline in baselines.items()}}
    kinds: dict[str, Kind] = {
        **dict.fromkeys(learned, "learned"),
        **{other: baseline.name for other, baseline in baselines.items()},
    }
    comparison = compare(
        policies, model, episodes, seed, reference=reference, control_variate=True, progress=False
    )
    return World(name, comparison, kinds, _normalised(comparison))


def _normalised(comparison: Comparison) -> dict[str, NormalisedValue]:
    """Return values on the scale from the prior's to the reference's; none where the reference is worth no more."""
    best, prior = comparison[comparison.reference], comparison["prior"]
    try:
        return {name: normalised_value(own, best, prior) for name, own in comparison.evaluations.items()}
    except DataError:
        return {}
