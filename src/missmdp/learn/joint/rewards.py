"""Rewards: given as a function, or learned from a column of the log.

Rewards hang on steps (s, a, s′) and are added up over T̂, so that R(s, a) says nothing else than T̂ does. A column of
rewards that is learned from is no evidence on the state: states are as likely as the observations make them. A tree
says which steps share a mean reward, and the means are fitted by least squares to how likely each row was a step of
each kind. So that one does not know the state makes the means less certain, but it does not bias them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.joint import PrefixTree, posterior_features
from missmdp.data.dataset import Dataset
from missmdp.errors import ParameterError
from missmdp.learn.joint.dynamics import StepCells, Variables
from missmdp.learn.joint.fit import JointFit
from missmdp.learn.joint.layout import Prepared
from missmdp.learn.joint.trees import Contexts, Outcomes, Tree, grow_tree_of_questions
from missmdp.model.probabilities import call, number
from missmdp.model.space import StateSpace

_CLASSES = 12
"""Kinds of rewards that the tree tells apart: the values, or as many ranges with about equally many rewards."""
_ROWS = 100_000
"""Rows that are looked at together."""
_TRACE = 1e-4
_SHRINK = 1.0
"""Rows of the overall mean that every leaf gets beside its own."""


@dataclass(frozen=True, eq=False)
class LearnedRewards:
    """Mean rewards by kind of step."""

    tree: Tree
    """Sorts steps by features before, action and features after."""
    mean: NDArray[np.float64]
    """The mean reward of each leaf, shape (leaves,)."""
    rows: NDArray[np.float64]
    """How many rows each leaf rests on, in expectation, shape (leaves,)."""
    residual: float
    """The root mean square of what is left over."""


def given_rewards(
    reward: Callable[..., Any] | float,
    space: StateSpace,
    actions: Sequence[Any],
    transition: Sequence[sparse.csr_array],
) -> NDArray[np.float64]:
    """Return R(s, a) from a number or a function of state, action and (if it likes) next state, shape (S, A)."""
    n_states = len(space)
    if not callable(reward):
        return np.full((n_states, len(actions)), number(reward, "reward"))
    states = [space.state(s) for s in range(n_states)]
    array = np.zeros((n_states, len(actions)))
    with_next = n_arguments(reward) == 3
    for a, action in enumerate(actions):
        matrix = transition[a]
        for s, state in enumerate(states):
            if not with_next:
                value = call(reward, "reward", state, action)
                array[s, a] = number(value, "reward({!r}, {!r})", state, action)
                continue
            for place in range(matrix.indptr[s], matrix.indptr[s + 1]):
                after = states[matrix.indices[place]]
                value = call(reward, "reward", state, action, after)
                worth = number(value, "reward({!r}, {!r}, {!r})", state, action, after)
                array[s, a] += matrix.data[place] * worth
    return array


def rewards_before(log: Dataset) -> NDArray[np.float64]:
    """Return the logged reward of the step that leads to each row, NaN for none, shape (N,)."""
    assert log.logged_rewards is not None, "the log has rewards"
    before = np.concatenate([[np.nan], log.logged_rewards[:-1]])
    before[log.offsets[:-1]] = np.nan
    return before


def n_arguments(reward: Callable[..., Any]) -> int:
    """Return whether a reward takes two arguments or three."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = [p for p in inspect.signature(reward).parameters.values() if p.kind in kinds]
    except (TypeError, ValueError):
        return 2
    needed = [p for p in parameters if p.default is inspect.Parameter.empty]
    for count in (len(needed), len(parameters)):
        if count in (2, 3):
            return count
    expected = "a function of (state, action) or of (state, action, next state)"
    problem = f"expected {expected}, got one of {len(needed)} arguments"
    raise ParameterError("reward", reward, expected, problem)


def learn_rewards(prepared: Prepared, fit: JointFit, rewards: NDArray[np.float64]) -> LearnedRewards:
    """Return mean rewards from a column of the log.

    Parameters
    ----------
    prepared, fit
        The log, and what was learned of T and M.
    rewards
        The reward of the step that leads to each row, NaN where there is none, shape (N,).
    """
    layout = prepared.histories.layout
    variables = Variables(layout.features, layout.n_actions)
    known = ~np.isnan(rewards)
    classes, n_classes = _reward_classes(rewards, known)
    live = np.flatnonzero(fit.expected.moved.reshape(-1) > _TRACE)
    cells = StepCells(layout, live)
    n = len(layout.features)
    given = (*range(n), variables.action, *(variables.next(i) for i in range(n)))
    key = np.zeros(cells.count, dtype=np.int64)
    for variable in given:
        key = key * variables.size(variable) + cells.column(variable)
    _, first, context = np.unique(key, return_index=True, return_inverse=True)
    codes = np.stack([cells.column(v)[first] for v in given], axis=1).astype(np.int16)
    label = np.zeros(layout.shape, dtype=np.int32)
    label.reshape(-1)[live] = context.reshape(-1)
    counts = np.zeros((n_classes, len(codes)))
    for rows, add in _posteriors(prepared, fit, label):
        add(np.where(known[rows], classes[rows], -1), counts)
    outcomes = Outcomes.values(n_classes)
    grown = grow_tree_of_questions(
        Contexts(given, codes, np.ascontiguousarray(counts.T)), variables.askable(given), outcomes, 1.0
    )
    leaf = grown.tree.leaf(cells.column, cells.count)
    label.reshape(-1)[live] = leaf
    return _means(prepared, fit, label, grown.tree, rewards, known)


def _means(
    prepared: Prepared,
    fit: JointFit,
    label: NDArray[np.int32],
    tree: Tree,
    rewards: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> LearnedRewards:
    """Return the means by least squares: a row's reward is expected to be the mean over its likely kinds of step."""
    mean = float(rewards[known].mean())
    gram, moment, squares = np.zeros((tree.count, tree.count)), np.zeros(tree.count), 0.0
    rows_of = np.zeros(tree.count)
    for rows, add in _posteriors(prepared, fit, label):
        some = known[rows]
        likely = np.zeros((int(some.sum()), tree.count))
        add(np.where(some, np.cumsum(some) - 1, -1), likely)
        value = rewards[rows][some] - mean
        gram += likely.T @ likely
        moment += likely.T @ value
        squares += float(value @ value)
        rows_of += likely.sum(axis=0)
    excess = np.linalg.solve(gram + _SHRINK * np.eye(tree.count), moment)
    left = max(squares - 2.0 * float(excess @ moment) + float(excess @ gram @ excess), 0.0)
    return LearnedRewards(
        tree,
        np.asarray(mean + excess, dtype=np.float64),
        rows_of,
        float(np.sqrt(left / max(int(known.sum()), 1))),
    )


def _reward_classes(rewards: NDArray[np.float64], known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    values = np.unique(rewards[known])
    if len(values) > _CLASSES:
        values = np.unique(np.quantile(rewards[known], np.arange(_CLASSES) / _CLASSES, method="lower"))
    found = np.searchsorted(values, np.where(known, rewards, values[0]), side="right") - 1
    return np.maximum(found, 0), len(values)


def _posteriors(
    prepared: Prepared, fit: JointFit, label: NDArray[np.int32]
) -> Iterator[tuple[slice, Callable[[NDArray[np.int64], NDArray[np.float64]], None]]]:
    """Yield some rows after the other, with what adds up how likely the step to each has each label.

    It takes the place of each row in a table, −1 for none, and the table, shape (places, labels).
    """
    histories, log = prepared.histories, prepared.rows
    dynamics, point = fit.dynamics, fit.parameters.dynamics
    transition, initial = dynamics.transition(point), dynamics.initial(point)
    emission = fit.table.reshape(-1)[histories.entry_place]
    width = np.diff(histories.shown.start)[log.seen]
    cut = log.begins | np.append(True, width[:-1] == 1)
    starts = np.flatnonzero(cut)
    begin = 0
    while begin < len(cut):
        after = starts[starts >= begin + _ROWS]
        end = int(after[0]) if len(after) else len(cut)
        rows = slice(begin, end)
        tree = PrefixTree(
            np.where(cut[rows], -1, np.arange(end - begin) - 1),
            np.where(log.begins[rows], -1, np.append(-1, log.seen[:-1])[rows]),
            log.seen[rows].copy(),
            log.block[rows].copy(),
            np.concatenate([[0], np.cumsum(width[rows])]).astype(np.int64),
            np.append(cut[begin + 1 : end], True).astype(np.float64),
            np.ones(end - begin),
        )

        def add(place: NDArray[np.int64], out: NDArray[np.float64], tree: PrefixTree = tree) -> None:
            posterior_features(tree, histories.shown, transition, initial, emission, label, place, out)

        yield rows, add
        begin = end


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of one action between numbered states."""

    space: StateSpace
    action: int
    before: NDArray[np.integer[Any]]
    after: NDArray[np.integer[Any]]

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (steps,)."""
        codes, n = self.space.codes, len(self.space.features)
        if variable == n:
            return np.full(len(self.before), self.action, dtype=np.int64)
        found = codes[self.before, variable] if variable < n else codes[self.after, variable - n - 1]
        return found.astype(np.int64)


def over_transitions(
    rewards: LearnedRewards, space: StateSpace, transition: Sequence[sparse.csr_array]
) -> NDArray[np.float64]:
    """Return R(s, a): mean rewards of steps, added up over T̂, shape (S, A)."""
    found = np.zeros((len(space), len(transition)))
    for action, matrix in enumerate(transition):
        before = np.repeat(np.arange(len(space)), np.diff(matrix.indptr))
        steps = _Steps(space, action, before, matrix.indices)
        worth = matrix.data * rewards.mean[rewards.tree.leaf(steps.column, len(before))]
        found[:, action] = np.bincount(before, worth, minlength=len(space))
    return found
