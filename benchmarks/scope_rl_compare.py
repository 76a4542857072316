"""SCOPE-RL's estimates beside ours; runs where scope-rl is installed, and missmdp need not be."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def run(path: str) -> None:
    """Print both numbers of each estimator, and how far they are apart."""
    from scope_rl.ope.discrete import (  # type: ignore[import-not-found]
        DoublyRobust,
        PerDecisionImportanceSampling,
        SelfNormalizedPDIS,
        SelfNormalizedTIS,
        TrajectoryWiseImportanceSampling,
    )

    kinds: dict[str, Any] = {
        "is": TrajectoryWiseImportanceSampling(),
        "pdis": PerDecisionImportanceSampling(),
        "wis": SelfNormalizedTIS(),
        "wpdis": SelfNormalizedPDIS(),
        "dr": DoublyRobust(),
    }
    with np.load(path) as file:
        given = {name: file[name] for name in file.files}
    steps = int(given["steps"])
    common = {
        "step_per_trajectory": steps,
        "action": given["action"],
        "reward": given["reward"],
        "pscore": given["pscore"],
        "evaluation_policy_action_dist": given["wanted"],
        "state_action_value_prediction": given["values"],
        "gamma": float(given["discount"]),
    }
    # SCOPE-RL adds 10⁻¹⁰ to the mean weights that it divides by.
    print(f"{'':8}{'SCOPE-RL':>18}{'missmdp':>18}{'apart by':>12}")
    for name, ours in zip(given["names"].tolist(), given["ours"].tolist(), strict=True):
        theirs = float(kinds[name].estimate_policy_value(**common))
        print(f"{name:8}{theirs:18.10f}{ours:18.10f}{abs(theirs - ours):12.1e}")


if __name__ == "__main__":
    run(sys.argv[1])
