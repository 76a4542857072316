"""A log without gaps and our off-policy estimates from it, for `benchmarks/scope_rl_compare.py`.

`python -m benchmarks.scope_rl_export FILE.npz` writes them. SCOPE-RL needs other versions of our dependencies, so the
comparison runs in an environment of its own: `pip install scope-rl` there, then
`python benchmarks/scope_rl_compare.py FILE.npz`.
"""

from __future__ import annotations

import sys

import numpy as np

import missmdp as mm
from benchmarks.off_policy import nurse, soft
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.estimators import doubly_robust_terms
from missmdp.evaluation.offpolicy.target import choices
from missmdp.evaluation.offpolicy.weights import Weights

EPISODES, DECISIONS, DISCOUNT = 500, 6, 0.95
METHODS = ("is", "pdis", "wis", "wpdis")


def run(path: str) -> None:
    """Write the log, its probabilities and our estimates."""
    model = mm.fully_observed_model(mm.load_benchmark("icu-smar"))
    actions = tuple(model.actions)
    behaviour, target = soft(nurse, 0.5, actions), soft(nurse, 0.7, actions)
    rows = EPISODES * (DECISIONS + 1)
    log = mm.collect(model, rows, behaviour, seed=0, horizon=DECISIONS + 1, keep_states=True)
    decisions = decisions_of(log, None)
    done = log.actions[decisions.rows].astype(np.int64)
    wanted, likely = (choices(policy, log, decisions).probabilities for policy in (target, behaviour))
    rewards = log.rewards[decisions.rows]
    # Any action values will do: what is compared is what is made of them.
    values = np.random.default_rng(1).normal(-30.0, 10.0, size=wanted.shape)
    ours = {
        method: mm.off_policy_value(
            target, log, discount=DISCOUNT, method=method, behaviour=behaviour, progress=False
        ).mean
        for method in METHODS
    }
    pick = np.arange(len(done)), done
    weights = Weights(decisions, wanted[pick] / likely[pick])
    expected = (wanted * values).sum(axis=1)
    ours["dr"] = float(doubly_robust_terms(weights, rewards, DISCOUNT, values[pick], expected).mean())
    np.savez(
        path, action=done, reward=rewards, wanted=wanted, pscore=likely[pick], values=values,
        steps=DECISIONS, discount=DISCOUNT, names=list(ours), ours=list(ours.values()),
    )  # fmt: skip
    print(f"{EPISODES} episodes of {DECISIONS} decisions, and {len(ours)} estimates: {path}")


if __name__ == "__main__":
    run(sys.argv[1])
