"""All policies in one model, on the same luck."""

from __future__ import annotations

from collections.abc import Mapping

from missmdp.errors import DataError
from missmdp.evaluation.compare import Comparison, NormalisedValue, compare, normalised_value
from missmdp.experiments.run.result import Baseline, Kind, World
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy

__all__ = ["compare_all"]


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
