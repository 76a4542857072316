"""Policies for what was learned and those to compare with, and what all of them are worth in one model."""

from __future__ import annotations

from collections.abc import Mapping

from missmdp.errors import DataError, ModelError
from missmdp.evaluation.compare import Comparison, NormalisedValue, compare, normalised_value
from missmdp.evaluation.simulation import why_no_control
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Baseline, Kind, Learned, LeftOut, World
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
    left_out
        Where what cannot be solved is noted.
    """

    def __init__(
        self, settings: RunSettings, folder: RunFolder, stages: Stages, left_out: list[LeftOut]
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stages = stages
        self._left_out = left_out

    def solve(self, learned: Mapping[str, Learned]) -> dict[str, SolveResult]:
        """Return a policy for what each learner learned, for those that can be solved.

        Raises
        ------
        ModelError
            If none can be.
        """
        with self._stages.stage("ready", "Solver", "compiling: half a minute, once on this machine") as stage:
            make_ready(progress=False)
            stage.result = "compiled, once on this machine"
            stage.quiet_below = _QUICK
        solved: dict[str, SolveResult] = {}
        for label, found in learned.items():
            result = self._solve(label, found.model)
            if result is None:
                continue
            solved[label] = result
            result.policy.save(self._folder.learner(label, "policy.mmpolicy"))
            result.trace.to_csv(self._folder.learner(label, "trace.csv"))
        if not solved:
            why = [f"{one.label}: {one.why}" for one in self._left_out if one.part == "policy"]
            raise ModelError("; ".join(why))
        return solved

    def _solve(self, what: str, model: MissMDP) -> SolveResult | None:
        """Return a policy for a model; None, with a note, if it cannot be solved."""
        limit = "" if self._settings.timeout is None else f", {self._settings.timeout:g} s at most"
        with self._stages.stage(
            "solve", "Solving", f"{what}{limit}; Ctrl-C continues with the best so far"
        ) as stage:
            try:
                found = self._settings.solver().solve(model)
            except (ModelError, MemoryError) as error:
                why = str(error) if isinstance(error, ModelError) else "there is too little memory for it"
                self._left_out.append(LeftOut("policy", what, why))
                stage.result = f"{what}: left out: {why}"
                return None
            ended = "" if found.status == "precision" else f", {found.ended}"
            stage.result = f"{what}: {found.bounds_text}{ended}"
        return found

    def baselines(self, truth: MissMDP | None, model: MissMDP) -> dict[str, Baseline]:
        """Return the policies to compare with, those that can be solved.

        `truth` is None where it is not known, and `model` is any with the MDP.
        """
        models: dict[Kind, MissMDP] = {} if truth is None else {"optimal": truth}
        models["prior"] = prior_model(model)
        found: dict[str, Baseline] = {}
        for name, each in models.items():
            result = self._solve(name, each)
            if result is not None:
                found[name] = Baseline(name, result.policy, result)
        found["random"] = Baseline("random", UniformPolicy(), None)
        return found


def compare_all(
    name: str,
    model: MissMDP,
    learned: Mapping[str, Policy],
    baselines: Mapping[str, Baseline],
    recommended: str,
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
        The policies to compare with.
    recommended
        The learner whose policy the others are compared with if there is no better one.
    episodes, seed
        As in `compare`.
    """
    reference = next(best for best in (name, "optimal", recommended) if best in learned or best in baselines)
    policies = {**learned, **{other: baseline.policy for other, baseline in baselines.items()}}
    kinds: dict[str, Kind] = {
        **dict.fromkeys(learned, "learned"),
        **{other: baseline.name for other, baseline in baselines.items()},
    }
    control = why_no_control(model.mdp) is None
    comparison = compare(
        policies, model, episodes, seed, reference=reference, control_variate=control, progress=False
    )
    scaled = "prior" in policies and reference in (name, "optimal")
    return World(name, comparison, kinds, _normalised(comparison) if scaled else {})


def _normalised(comparison: Comparison) -> dict[str, NormalisedValue]:
    """Return values on the scale from the prior's to the reference's; none where the reference is worth no more."""
    best, prior = comparison[comparison.reference], comparison["prior"]
    try:
        return {name: normalised_value(own, best, prior) for name, own in comparison.evaluations.items()}
    except DataError:
        return {}
