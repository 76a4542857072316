"""What run.json says about what was learned, and about solving."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from missmdp.evaluation.heldout import HeldOutScore
from missmdp.experiments.run.learned_graph import learned_graph
from missmdp.experiments.run.result import Learned, RunResult
from missmdp.learn.bounds import GroupBound
from missmdp.learn.table import GroupTruth
from missmdp.plan.solving import SolveResult
from missmdp.plan.trace import Trace

__all__ = ["heldout_row", "learner_contents", "solve_text", "thinned"]

MOST_GROUPS = 1000
"""Groups of a learner that are listed, those with most samples; the table of what was learned has all."""
MOST_ROWS = 200
"""Rows of a trace."""


def learner_contents(result: RunResult) -> list[dict[str, Any]]:
    """Return what each learner learned, how well it does, and what solving gave."""
    return [_learner(result, learned) for learned in result.learned.values()]


def _learner(result: RunResult, learned: Learned) -> dict[str, Any]:
    truths = learned.group_truths
    learner, bound, label = learned.learner, learned.bound, learned.label
    groups = bound.per_group
    listed = sorted(sorted(range(len(groups)), key=lambda g: -groups[g].samples)[:MOST_GROUPS])
    files = {"model": "learned.mmdp", "policy": "policy.mmpolicy", "trace": "trace.csv"}
    return {
        "label": label,
        "name": learned.name,
        "assumes": learner.assumed_,
        "warnings": [str(finding) for finding in learner.warnings_],
        "always_observed": learner.always_observed_,
        "unseen_groups": len(learner.unseen_),
        "free_parameters": learner.n_parameters_,
        "bound": {
            "worst": bound.worst,
            "tv": bound.tv,
            "method": bound.method,
            "behaviour": bound.behaviour,
            "guaranteed": bound.guaranteed,
            "text": bound.describe(),
        },
        "groups": [_group(groups[g], None if truths is None else truths[g]) for g in listed],
        "groups_left_out": len(groups) - len(listed),
        "distance": _distance(learned),
        "graph": learned_graph(learner),
        "heldout": None if result.heldout is None else heldout_row(result.heldout[label]),
        "solve": _solve(result.solved[label]),
        "files": {
            key: result.folder.relative(result.folder.learner(label, name)) for key, name in files.items()
        },
    }


def _group(group: GroupBound, truth: GroupTruth | None) -> dict[str, Any]:
    return {
        "feature_names": group.features,
        "given": {name: str(value) for name, value in group.given.items()},
        "samples": group.samples,
        "never_missing": group.never_missing,
        "patterns": [
            {
                "missing": [name for name, seen in zip(group.features, pattern, strict=True) if not seen],
                "estimate": group.estimate[k],
                "lower": group.lower[k],
                "upper": group.upper[k],
                "truth": None if truth is None else truth.mean[k],
                "truth_low": None if truth is None else truth.low[k],
                "truth_high": None if truth is None else truth.high[k],
            }
            for k, pattern in enumerate(group.patterns)
        ],
    }


def _distance(learned: Learned) -> dict[str, Any] | None:
    distance = learned.distance
    if distance is None:
        return None
    return {"average": distance.average, "worst": distance.worst, "weighted": distance.weighted}


def heldout_row(score: HeldOutScore) -> dict[str, Any]:
    """Return how well a learner predicts what it has not seen, as one row."""
    names = (
        "per_step",
        "stderr",
        "steps",
        "folds",
        "difference",
        "difference_stderr",
        "impossible",
        "by",
        "outside",
        "units",
    )
    return {name: getattr(score, name) for name in names}


def _solve(search: SolveResult) -> dict[str, Any]:
    return {
        "lower": search.lower,
        "upper": search.upper,
        "relative_gap": search.relative_gap,
        "status": search.status,
        "text": solve_text(search),
        "vectors": search.policy.n_vectors,
        "trace": thinned(search.trace),
    }


def solve_text(search: SolveResult) -> str:
    """Return a search in words, without its time, which is another one when it is done again."""
    return re.sub(r" after [0-9.]+ s\b", "", str(search))


def thinned(trace: Trace, most: int = MOST_ROWS) -> list[dict[str, float]]:
    """Return rows of a trace, evenly spread, the first and the last among them."""
    rows = trace.rows()
    places = np.linspace(0, len(rows) - 1, min(most, len(rows))).round()
    kept = [rows[int(place)] for place in np.unique(places)]
    return [{"seconds": row.seconds, "lower": row.lower, "upper": row.upper} for row in kept]
