"""What run.json says about the model and the data."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from missmdp.data.dataset import Dataset
from missmdp.data.description.description import Association, Description
from missmdp.experiments.run.result import Problem, RunResult
from missmdp.model.missmdp import MissMDP
from missmdp.model.types import MissingnessTypes
from missmdp.words import rate_text

__all__ = ["data_contents", "data_hash", "feature_rows", "model_contents"]

_MOST_PATTERNS = 12
_MOST_ASSOCIATIONS = 12

_MEANS = {
    "MCAR": "what goes missing does not depend on the state",
    "simple MAR": "what goes missing depends on always-observed features only",
    "MAR": "how likely it is that just these features are seen depends only on what they show",
    "MNAR": "what goes missing depends on values that are themselves not seen",
}


def model_contents(problem: Problem) -> dict[str, Any]:
    """Return what the model is, and how values go missing in it where that is known."""
    mdp, truth = problem.mdp, problem.truth
    return {
        "name": problem.name,
        "source": problem.source,
        "states": mdp.n_states,
        "reachable": int(mdp.reachable.sum()),
        "terminal": int(mdp.terminal.sum()),
        "actions": [str(action) for action in mdp.actions],
        "observations": None if truth is None else len(truth.occurring_observations),
        "discount": mdp.discount,
        "horizon": mdp.horizon(),
        "features": [
            {"name": name, "values": [str(value) for value in values]}
            for name, values in mdp.features.items()
        ],
        "sha256": problem.sha256,
        "truth_known": truth is not None,
        "types": None if truth is None else _types(truth.types()),
        "graph": None if truth is None else _graph(truth),
    }


def _types(types: MissingnessTypes) -> dict[str, Any]:
    return {
        "summary": f"{types.name}: {_MEANS[types.name]}",
        "name": types.name,
        "mcar": types.mcar,
        "simple_mar": types.simple_mar,
        "mar": types.mar,
        "self_censoring": types.self_censoring,
        "independent": types.independent,
        "positive": types.positive,
        "always_observed": types.always_observed,
        "can_go_missing": types.can_go_missing,
        "fitting_learners": types.learners,
    }


def _graph(truth: MissMDP) -> dict[str, Any]:
    graph = truth.mgraph()
    return {
        "nodes": graph.features,
        "can_go_missing": graph.can_go_missing,
        "edges": graph.edges,
        "between": graph.dependent,
        "notes": graph.notes,
    }


def data_contents(result: RunResult) -> dict[str, Any]:
    """Return what the data look like."""
    log = result.log
    dataset, described = log.dataset, log.description
    return {
        "source": "simulated" if log.simulated else "table",
        "files": log.files,
        "sha256": data_hash(dataset),
        "steps": dataset.n_steps,
        "episodes": dataset.n_episodes,
        "mean_length": dataset.n_steps / dataset.n_episodes,
        "terminated": int(dataset.terminated.sum()),
        "behaviour": result.recommended.bound.behaviour,
        "missing_rates": dataset.missing_rates(),
        "always_observed": dataset.always_observed(),
        "patterns": _patterns(described),
        "associations": [_association(found) for found in described.strongest(_MOST_ASSOCIATIONS)],
        "notes": log.report.notes,
        "fits": log.report.ok,
        "problems": log.problems,
    }


def data_hash(dataset: Dataset) -> str:
    """Return the SHA-256 of what was seen and done in a log."""
    digest = hashlib.sha256()
    for array in (dataset.observations, dataset.actions, dataset.offsets):
        # Whatever the width of integers.
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _patterns(described: Description) -> list[dict[str, Any]]:
    rows = described.pattern_rows.tolist()
    listed = [
        {
            "missing": [name for name, gap in zip(described.features, pattern, strict=True) if gap],
            "count": count,
            "share": count / described.n_rows,
        }
        for pattern, count in zip(described.patterns[:_MOST_PATTERNS], rows[:_MOST_PATTERNS], strict=True)
    ]
    rest = described.n_rows - sum(rows[:_MOST_PATTERNS])
    if rest:
        others = described.n_patterns - len(listed)
        listed.append(
            {"missing": "other", "patterns": others, "count": rest, "share": rest / described.n_rows}
        )
    return listed


def _association(found: Association) -> dict[str, Any]:
    sentence = (
        f"{found.feature} is missing in {rate_text(found.highest_rate)} of the rows where {found.given} is "
        f"{found.highest}, and in {rate_text(found.lowest_rate)} where it is {found.lowest}."
    )
    return {
        "feature": found.feature,
        "by": found.given,
        "sentence": sentence,
        "effect": found.spread,
        "highest": {"value": found.highest, "rate": found.highest_rate},
        "lowest": {"value": found.lowest, "rate": found.lowest_rate},
    }


def feature_rows(described: Description) -> list[dict[str, Any]]:
    """Return one row per feature: how often it is missing, with a 95 % interval as if rows were independent."""
    low, high = described.intervals
    return [
        {
            "feature": name,
            "rows": described.n_rows,
            "missing": int(described.missing[i]),
            "rate": float(described.rates[i]),
            "low": float(low[i]),
            "high": float(high[i]),
        }
        for i, name in enumerate(described.features)
    ]
