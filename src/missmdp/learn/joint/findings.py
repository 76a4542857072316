"""What a user should know of a log before and after dynamics are learned from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from missmdp.data.dataset import Dataset
from missmdp.learn.assumptions import AssumptionFinding
from missmdp.learn.joint.search import Found
from missmdp.model.space import MISSING
from missmdp.words import count

if TYPE_CHECKING:
    from missmdp.learn.joint.estimator import JointEM

_FEW_EPISODES = 20
_MANY_VALUES = 50
_UNSURE = (0.02, 0.98)
_CLEAR = 5.0


def log_findings(log: Dataset, declared: Sequence[str]) -> Iterator[AssumptionFinding]:
    """Yield what a log is short of."""
    if log.n_episodes < _FEW_EPISODES:
        yield AssumptionFinding(
            f"{count(log.n_episodes, 'episode')} only: where episodes begin is hardly known (give initial=… if you "
            "know it)",
            (),
        )
    features = log.feature_space
    for name, values in zip(features.names, features.values, strict=True):
        if len(values) == 1 and name not in declared:
            yield AssumptionFinding(f"{name} is always {values[0]!r}: it says nothing", (name,))
        if len(values) > _MANY_VALUES:
            yield AssumptionFinding(
                f"{name} has {len(values):,} values, and each is learned on its own; bins need less data",
                (name,),
            )
    tried = np.bincount(log.actions[log.actions >= 0], minlength=len(log.action_names))
    never = [repr(name) for name, times in zip(log.action_names, tried, strict=True) if times == 0]
    if never:
        yield AssumptionFinding(
            f"never tried in this log: {', '.join(never)}; what follows on it is a guess", ()
        )
    yield from _contradictory_ends(log)


def _contradictory_ends(log: Dataset) -> Iterator[AssumptionFinding]:
    """Yield full observations that end an episode at times, and at times do not."""
    if not log.terminated.any():
        return
    full = (log.observations != MISSING).all(axis=1)
    last = log.offsets[1:] - 1
    ended, on = np.zeros(log.n_steps, dtype=np.bool_), np.ones(log.n_steps, dtype=np.bool_)
    ended[last] = log.terminated
    on[last] = False
    ranks = log.feature_space.rank(log.observations)
    both = np.intersect1d(ranks[full & ended], ranks[full & on])
    if len(both):
        row = int(np.flatnonzero(full & on & (ranks == both[0]))[0])
        shown = tuple(log.feature_space.decode_observation(log.observations[row]))
        yield AssumptionFinding(
            f"the marks of ends contradict each other: {count(len(both), 'state')} such as {shown!r} end episodes at "
            "times and go on at other times, so no feature says where episodes end; such ends are taken for cuts (a "
            "column that says why an episode ended would help)",
            (),
        )


def model_findings(learner: JointEM, log: Dataset, found: Found) -> Iterator[AssumptionFinding]:
    """Yield what a user should know of a fit."""
    fit = found.fit
    if fit.expected.impossible:
        yield AssumptionFinding(
            f"{fit.expected.impossible:,} kinds of histories cannot happen by what is known for certain (known=, "
            "terminal=, initial=), and are left out",
            (),
        )
    if not fit.converged:
        yield AssumptionFinding(
            f"the likelihood still rises after {learner.max_iterations:,} expectation steps (max_iterations)",
            (),
        )
    ending = fit.dynamics.ending
    if ending is not None and learner.terminal is None:
        share = ending.counted(fit.expected.moved, fit.expected.began)
        rate = share[:, 1] / np.maximum(share.sum(axis=1), 1e-300)
        unsure = (rate > _UNSURE[0]) & (rate < _UNSURE[1]) & (share.sum(axis=1) > _CLEAR)
        if unsure.any():
            lost = float(np.where(unsure & (rate <= 0.5), share[:, 1], 0.0).sum())
            yield AssumptionFinding(
                f"about {lost:,.0f} of {int(log.terminated.sum()):,} ends of episodes are not explained by any "
                "feature; they are taken for cuts (a column that says why an episode ended would help)",
                (),
            )
    if learner.transitions == "saturated":
        pairs = learner.visits_.steps[learner.mdp_.reachable & ~learner.mdp_.terminal]
        empty = int((pairs == 0.0).sum())
        if empty:
            yield AssumptionFinding(
                f"{empty:,} of {pairs.size:,} pairs of state and action never occur, and get the overall distribution",
                (),
            )
