"""What a comparison found, as rows: the values and all that it takes to find them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._version import __version__
from missmdp.errors import DataError
from missmdp.evaluation.compare import Comparison, NormalisedValue, normalised_value
from missmdp.experiments.baselines import MadePolicy

_BOUNDS = ("lower", "upper", "status")


def normalised_values(
    comparison: Comparison, made: Mapping[str, MadePolicy]
) -> tuple[dict[str, NormalisedValue], str | None]:
    """Return the policies' values on the scale from the prior's to the optimal one, and why there are none.

    There is a scale where one policy is the prior's, by its name or as a baseline, another is optimal, and that is
    worth more.
    """
    prior, optimal = named_end("prior", made), named_end("optimal", made)
    if prior is None or optimal is None:
        return {}, None
    ends = comparison[optimal], comparison[prior]
    try:
        return {name: normalised_value(comparison[name], *ends) for name in made}, None
    except DataError as error:
        return {}, str(error)


def named_end(which: str, made: Mapping[str, MadePolicy]) -> str | None:
    """Return the policy that has this name, or else the first that is this baseline, or None."""
    if which in made:
        return which
    return next((name for name, policy in made.items() if policy.kind == which), None)


def value_rows(
    comparison: Comparison,
    made: Mapping[str, MadePolicy],
    about: Mapping[str, Any],
    *,
    confidence: float = 0.95,
) -> list[dict[str, Any]]:
    """Return one row per policy: `Comparison.rows`, the normalised value, how it was made, and how it was evaluated.

    Parameters
    ----------
    comparison
        The policies' evaluations.
    made
        Name → where the policy comes from.
    about
        What all rows have in common, such as the name of the model.
    confidence
        Of the intervals.
    """
    scale, _ = normalised_values(comparison, made)
    rows: list[dict[str, Any]] = []
    for row in comparison.rows(confidence):
        policy, evaluation = made[row["policy"]], comparison[row["policy"]]
        if scale:
            value = scale[row["policy"]]
            low, high = value.interval(confidence)
            row |= {"normalised": value.mean, "normalised_stderr": value.stderr}
            row |= {"normalised_low": low, "normalised_high": high}
        row |= {
            "reference": comparison.reference,
            "confidence": confidence,
            "std": evaluation.std,
            "horizon": evaluation.horizon,
            "truncation": evaluation.truncation,
            "terminated": float(evaluation.terminated.mean()),
            "decisions": float(evaluation.decisions.mean()),
            "impossible": evaluation.impossible,
            "events": dict(evaluation.events),
            "ended": evaluation.status,
            "evaluation_seconds": evaluation.seconds,
            "kind": policy.kind,
            "how": policy.how,
            "settings": policy.settings,
            "seconds": policy.seconds,
            **{name: getattr(policy, name) for name in _BOUNDS},
            **about,
            "seed": evaluation.seed,
            "control_variate": evaluation.controlled is not None,
            "version": __version__,
        }
        rows.append(row)
    return rows


def return_columns(comparison: Comparison) -> dict[str, NDArray[Any]]:
    """Return columns with a row per policy and episode: its return, the estimate that is averaged, how it went."""
    evaluations = comparison.evaluations.values()
    counts = [evaluation.episodes for evaluation in evaluations]
    return {
        "policy": np.repeat(np.array(list(comparison.evaluations), dtype=np.str_), counts),
        "episode": np.concatenate([np.arange(count) for count in counts]),
        "return": np.concatenate([evaluation.returns for evaluation in evaluations]),
        "estimate": np.concatenate([evaluation.estimates for evaluation in evaluations]),
        "decisions": np.concatenate([evaluation.decisions for evaluation in evaluations]),
        "terminated": np.concatenate([evaluation.terminated for evaluation in evaluations]),
    }
