"""The policy that made a log, learned from it: P(action | recorded history), by the simplest model that predicts well.

A few models are fitted to some episodes and judged by how likely they make the actions of others. A finer model is
chosen only if it is better by more than the standard error of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer, checked_seed
from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.evaluation.offpolicy.contexts import Layout, contexts_of, layout_of
from missmdp.evaluation.offpolicy.decisions import (
    Decisions,
    actions_of,
    checked_log,
    decisions_of,
    features_of,
)
from missmdp.evaluation.offpolicy.predictors import Logistic, Predictor, Table
from missmdp.evaluation.offpolicy.target import distinct
from missmdp.model.space import FeatureSpace
from missmdp.pages.notebook import notebook_table
from missmdp.words import signed

_BLOCKS = 20
"""Into how many blocks a log of few episodes is cut."""


class _Counts(NamedTuple):
    """How often each action was taken in each context."""

    contexts: NDArray[np.int64]
    label: NDArray[np.int64]
    """The context of each decision, shape (D,)."""
    actions: NDArray[np.int64]
    n_actions: int

    def of(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the counts over some decisions, shape (contexts, A)."""
        cell = self.label[chosen] * self.n_actions + self.actions[chosen]
        size = len(self.contexts) * self.n_actions
        return np.bincount(cell, minlength=size).reshape(-1, self.n_actions).astype(np.float64)


_Fit = Callable[[NDArray[np.int64], NDArray[np.float64], Layout], Predictor]


def _constant(contexts: NDArray[np.int64], counts: NDArray[np.float64], layout: Layout) -> Predictor:
    return Table(contexts, counts, [])


def _by_observation(contexts: NDArray[np.int64], counts: NDArray[np.float64], layout: Layout) -> Predictor:
    return Table(contexts, counts, [range(layout.seen)])


def _by_last_action(contexts: NDArray[np.int64], counts: NDArray[np.float64], layout: Layout) -> Predictor:
    levels = [range(layout.seen), [*range(layout.seen), layout.last_action]]
    return Table(contexts, counts, levels)


_KINDS: dict[str, _Fit] = {
    "constant": _constant,
    "by observation": _by_observation,
    "logistic": Logistic,
    "by observation and last action": _by_last_action,
}
"""From simple to fine."""


@dataclass(frozen=True)
class BehaviourScore:
    """How well a model of the behaviour predicts actions that it was not fitted to, in nats per decision."""

    per_decision: float
    gain: float
    """`per_decision` minus that of the constant model."""
    stderr: float
    """The standard error of `gain`."""


class LearnedBehaviour:
    """What a log says of the policy that made it.

    Attributes
    ----------
    kind : str
        The model that was chosen: "constant", "by observation" (a table, smoothed), "logistic" (in the observation,
        the last action, the last seen value of each feature, and how late it is), or "by observation and last action"
        (a table, smoothed).
    scores : dict
        How well each model predicts held-out actions: kind → `BehaviourScore`.
    """

    def __init__(
        self,
        kind: str,
        scores: dict[str, BehaviourScore],
        predictor: Predictor,
        features: FeatureSpace,
        actions: tuple[object, ...],
    ) -> None:
        self.kind = kind
        self.scores = scores
        self._predictor = predictor
        self._features = features
        self._actions = actions

    def __repr__(self) -> str:
        return f"LearnedBehaviour({self.kind})"

    def _repr_html_(self) -> str:
        """Return how well each model predicts held-out actions as a table, for notebooks."""
        title = f"Behaviour, learned from the log: {self.kind}"
        return notebook_table(title, ["model", "nats per decision", "better than constant by"], self._rows())

    def _rows(self) -> list[list[str]]:
        return [
            [kind, signed(score.per_decision, 4), f"{signed(score.gain, 4)} ± {score.stderr:.4f}"]
            for kind, score in self.scores.items()
        ]

    def describe(self) -> str:
        """Return the models and how well they predict, in a few lines of text."""
        lines = [f"The behaviour is modelled as: {self.kind}. Held-out log-likelihood per decision:"]
        for kind, score, gain in self._rows():
            better = "" if kind == "constant" else f", {gain} better than constant"
            lines.append(f"{'→' if kind == self.kind else ' '} {kind}: {score}{better}")
        return "\n".join(lines)

    def probabilities(self, log: Dataset) -> NDArray[np.float64]:
        """Return P(action | recorded history) for each row of a log, shape (N, A); nan in last rows."""
        log = checked_log(log)
        if features_of(log) != self._features or actions_of(log) != self._actions:
            raise DataError("the behaviour was learned from a log with other features, values or actions")
        decisions = decisions_of(log, None)
        out = np.full((log.n_steps, len(self._actions)), np.nan)
        rows, label = distinct(contexts_of(log, decisions))
        if len(rows):
            out[decisions.rows] = self._predictor.probabilities(rows)[label]
        return out


def learn_behaviour(log: Dataset, *, folds: int = 5, seed: int = 0) -> LearnedBehaviour:
    """Return a model of the policy that made a log: P(action | recorded history).

    It assumes that decisions rested on nothing but the recorded history: whoever decided saw no more than the log
    shows, or did not use it. No test can confirm that.

    Parameters
    ----------
    log
        The log.
    folds
        In how many parts episodes are held out, one after the other, to choose between models. The chosen one is fitted
        to the whole log. A log with fewer than 20 episodes is cut into blocks instead.
    seed
        Decides which episode is in which fold.

    Examples
    --------
    >>> import missmdp as mm
    >>> log = mm.collect(mm.load_benchmark("icu-smar"), 5000, seed=0)  # acts at random
    >>> mm.learn_behaviour(log).kind
    'constant'
    """
    log = checked_log(log)
    folds, seed = checked_integer("folds", folds, least=2), checked_seed(seed)
    decisions = decisions_of(log, None)
    if len(decisions.rows) < 2:
        raise DataError("at least two decisions are needed to learn how they were made")
    contexts, label = distinct(contexts_of(log, decisions))
    actions = log.actions[decisions.rows].astype(np.int64)
    counts, layout = _Counts(contexts, label, actions, len(actions_of(log))), layout_of(log)
    unit, fold = _dealt(decisions, folds, seed)
    sums = {kind: _held_out(fit, counts, layout, unit, fold) for kind, fit in _KINDS.items()}
    kind = _chosen(sums)
    everything = counts.of(np.ones(len(label), dtype=np.bool_))
    predictor = _KINDS[kind](contexts, everything, layout)
    scores = {
        one: BehaviourScore(float(own.sum()) / len(label), *_gain(own, sums["constant"], len(label)))
        for one, own in sums.items()
    }
    return LearnedBehaviour(kind, scores, predictor, features_of(log), actions_of(log))


def _dealt(decisions: Decisions, folds: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the unit and the fold of each decision: episodes, or blocks where these are few."""
    n = len(decisions.rows)
    unit = decisions.episode if decisions.episodes >= _BLOCKS else np.arange(n) * min(_BLOCKS, n) // n
    size = int(unit.max()) + 1
    fold = np.empty(size, dtype=np.int64)
    fold[np.random.default_rng(seed).permutation(size)] = np.arange(size) % min(folds, size)
    return unit.astype(np.int64), fold[unit]


def _held_out(
    fit: _Fit, counts: _Counts, layout: Layout, unit: NDArray[np.int64], fold: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the log-likelihood of each unit under a model fitted to other folds, shape (units,)."""
    logs = np.empty(len(fold))
    for k in range(int(fold.max()) + 1):
        held = fold == k
        rest = counts.of(~held)
        used = rest.sum(axis=1) > 0.0
        predicted = fit(counts.contexts[used], rest[used], layout).probabilities(counts.contexts)
        logs[held] = np.log(predicted[counts.label[held], counts.actions[held]])
    return np.asarray(np.bincount(unit, logs), dtype=np.float64)


def _gain(own: NDArray[np.float64], other: NDArray[np.float64], decisions: int) -> tuple[float, float]:
    """Return the difference of two scores per decision, and its standard error over units."""
    apart = own - other
    error = math.sqrt(len(apart)) * float(apart.std(ddof=1)) if len(apart) > 1 else math.inf
    return float(apart.sum()) / decisions, error / decisions


def _chosen(sums: dict[str, NDArray[np.float64]]) -> str:
    """Return the finest model that beats every simpler one by more than the error of the difference."""
    best = "constant"
    for kind, own in sums.items():
        gain, error = _gain(own, sums[best], 1)
        if gain > error:
            best = kind
    return best


def described(behaviour: LearnedBehaviour) -> str:
    """Return what was learned, in a few words."""
    score = behaviour.scores[behaviour.kind]
    return (
        f"learned from the log ({behaviour.kind}; {signed(score.per_decision, 3)} nats per decision held out)"
    )
