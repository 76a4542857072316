"""Whether the rewards of a log fit a model.

A model knows ρ(s, a), which is an expectation: a logged reward may depend on the next state as well, or on luck. What
can be compared are steps whose state was seen completely. Whether it was depends on the state alone, so these steps
are a fair sample of their states and actions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from missmdp.data.tables.ordered_rows import TableRows
from missmdp.errors import AssumptionWarning, DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING

_IMPOSSIBLE = 1e-9
"""A log that is less likely than this under every reward that a model allows does not fit the model."""
_UNLIKELY = 1e-3
"""The chance of a warning about a model that is right, if no kind of reward is missing from the log altogether."""
_MOST_ROWS_OF_T = 50
"""So many rows of T are looked at in models whose matrices are not listed."""


class _Steps(NamedTuple):
    """The steps that can be compared, sorted by state and action, each of shape (K,)."""

    row: NDArray[np.int64]
    pair: NDArray[np.int64]
    """The state's number times the number of actions, plus the action's."""
    reward: NDArray[np.float64]
    expected: NDArray[np.float64]
    """ρ(s, a)."""


class _Groups(NamedTuple):
    """Rewards in groups of steps, each of shape (G,)."""

    name: NDArray[np.int64]
    """What the steps have in common: the number of a pair, of an action, or 0."""
    n: NDArray[np.int64]
    first: NDArray[np.int64]
    """The first row of the group, and where rewards differ from ρ within the group, the first that does."""
    mean: NDArray[np.float64]
    expected: NDArray[np.float64]
    """The mean of ρ(s, a)."""
    spread: NDArray[np.float64]
    """The sum of squares of reward − ρ(s, a) around its mean."""
    constant: NDArray[np.bool_]
    """Whether all rewards are the same."""


def check_rewards(rows: TableRows, mdp: FactoredMDP, rewards: NDArray[np.float64]) -> None:
    """Compare logged rewards with ρ(s, a) wherever the state was seen completely.

    The log is refused if no reward r(s, a, s′) with mean ρ(s, a) could have given it. That is so where a pair (s, a)
    with one successor has the same reward each time, two times or more, and it is not ρ(s, a). Where there are more
    successors, the reward must differ for one of them, which the log never met. The chance of that is at most
    (1 − q)ⁿ in n steps, where q is the smallest probability of a successor. Below 10⁻⁹ it counts as impossible: over
    all pairs together if none of them ever varied, and otherwise for a single pair, corrected for their number. Where
    a pair with one successor varies, rewards contain luck, successors prove nothing, and no log is refused.

    Everything else may be luck, so it is tested and leads to a warning: whether the mean of reward − ρ(s, a) is zero
    for each pair, for each action, and over all steps, by its standard error (Student's t), corrected for
    the number of these tests. One step more than there is enters, with the largest (or smallest) reward that log and
    model know, so that a reward which is rare and has hardly come yet is no alarm. (A rare reward that the whole log
    never shows looks like a wrong model.) Differences that rounding in the
    log explains do not count. A pair with one successor that occurs once and differs leads to a warning, too.

    Raises
    ------
    DataError
        If the rewards cannot be those of the model; the message names file, row, episode and step.
    """
    steps = _comparable(rows, mdp, rewards)
    if not len(steps.row):
        return
    slack = _rounding(rewards)
    pairs = _grouped(steps, steps.pair, slack)
    off = _differs(pairs, slack)
    suspects = np.flatnonzero(off & pairs.constant)
    rarest = _rarest_successors(mdp, pairs, suspects)
    if _has_luck(mdp, pairs):
        rarest[:] = 0.0
    repeated = pairs.n[suspects] > 1
    with np.errstate(divide="ignore"):
        chances = np.where(repeated, pairs.n[suspects] * np.log1p(-rarest), 0.0)
    wrong = suspects[chances + np.log(len(pairs.n)) < np.log(_IMPOSSIBLE)]
    if pairs.constant.all() and chances.sum() < np.log(_IMPOSSIBLE):
        wrong = suspects[repeated & (rarest > 0.0)]
    if wrong.size:
        what = _sentence(rows, mdp, pairs, int(wrong[np.argmin(pairs.first[wrong])]), _pair_words)
        raise DataError(
            f"{what}; no reward with this mean fits, whatever it says about next states{_more(wrong.size)}"
        )
    _warn_if_unlikely(rows, mdp, steps, pairs, suspects[rarest == 1.0], rewards)


def _warn_if_unlikely(
    rows: TableRows,
    mdp: FactoredMDP,
    steps: _Steps,
    pairs: _Groups,
    single: NDArray[np.int64],
    rewards: NDArray[np.float64],
) -> None:
    """Warn of means that differ from the model's by more than chance; `single` pairs differ whatever the chance."""
    slack = _rounding(rewards)
    kinds = (
        (pairs, _pair_words),
        (_grouped(steps, steps.pair % mdp.n_actions, slack), _action_words),
        (_grouped(steps, np.zeros_like(steps.pair), slack), _all_words),
    )
    low = min(float(np.nanmin(rewards)), float(mdp.reward.min()))
    high = max(float(np.nanmax(rewards)), float(mdp.reward.max()))
    tests = sum(len(groups.n) for groups, _ in kinds)
    for groups, words in kinds:
        unlikely = _differs(groups, slack) & (_p_values(groups, low, high) < _UNLIKELY / tests)
        if groups is pairs:
            unlikely[single] = True
        found = np.flatnonzero(unlikely)
        if found.size:
            what = _sentence(rows, mdp, groups, int(found[np.argmin(groups.first[found])]), words)
            warnings.warn(f"{what}{_more(found.size)}", AssumptionWarning, stacklevel=5)
            return


def _comparable(rows: TableRows, mdp: FactoredMDP, rewards: NDArray[np.float64]) -> _Steps:
    """Return the steps with a reward whose state was seen completely, and is not terminal."""
    seen = np.flatnonzero(~np.isnan(rewards) & (rows.observations != MISSING).all(axis=1))
    state = mdp.space.find(rows.observations[seen])
    known = (state >= 0) & ~mdp.terminal[state]
    seen, state = seen[known], state[known]
    pair = state * mdp.n_actions + rows.actions[seen]
    order = np.argsort(pair, kind="stable")
    seen, pair = seen[order], pair[order]
    return _Steps(seen, pair, rewards[seen], mdp.reward[pair // mdp.n_actions, pair % mdp.n_actions])


def _grouped(steps: _Steps, key: NDArray[np.int64], slack: float) -> _Groups:
    order = np.argsort(key, kind="stable")
    name, start, n = np.unique(key[order], return_index=True, return_counts=True)
    reward, expected, row = steps.reward[order], steps.expected[order], steps.row[order]
    gap = reward - expected
    mean_gap = np.add.reduceat(gap, start) / n
    least, most = np.minimum.reduceat(reward, start), np.maximum.reduceat(reward, start)
    odd = np.abs(gap) > slack + 1e-6 * np.maximum(np.abs(reward), np.abs(expected)) + 1e-12
    last = np.iinfo(np.int64).max
    first = np.minimum.reduceat(np.where(odd, row, last), start)
    return _Groups(
        name,
        n.astype(np.int64),
        np.where(first == last, np.minimum.reduceat(row, start), first),
        np.add.reduceat(reward, start) / n,
        np.add.reduceat(expected, start) / n,
        np.add.reduceat((gap - np.repeat(mean_gap, n)) ** 2, start),
        most - least <= 1e-9 * np.maximum(np.abs(least), np.abs(most)),
    )


def _rounding(rewards: NDArray[np.float64]) -> float:
    """Return how far rewards may be off by rounding: half of the last digit, in a log with digits after the point."""
    given = rewards[~np.isnan(rewards)]
    for digits in range(7):
        scaled = given * 10.0**digits
        if (np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all():
            return 0.0 if digits == 0 else 0.5 * 10.0**-digits
    return 0.0


def _differs(groups: _Groups, slack: float) -> NDArray[np.bool_]:
    size = np.maximum(np.abs(groups.mean), np.abs(groups.expected))
    return np.abs(groups.mean - groups.expected) > slack * (1 + 1e-9) + 1e-6 * size + 1e-12


def _rarest_successors(mdp: FactoredMDP, pairs: _Groups, suspects: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the smallest probability of a successor of each suspect, 1 if there is one, 0 where nobody looked."""
    rarest = np.zeros(len(suspects))
    looked_at = range(len(suspects)) if mdp.is_small else np.argsort(-pairs.n[suspects])[:_MOST_ROWS_OF_T]
    for i in looked_at:
        chances = _successors(mdp, int(pairs.name[suspects[i]]))
        rarest[i] = 1.0 if len(chances) == 1 else chances.min(initial=1.0)
    return rarest


def _has_luck(mdp: FactoredMDP, pairs: _Groups) -> bool:
    """Return whether a pair with one successor has different rewards."""
    varied = np.flatnonzero(~pairs.constant)
    if not mdp.is_small:
        varied = varied[np.argsort(-pairs.n[varied])[:_MOST_ROWS_OF_T]]
    return any(len(_successors(mdp, int(name))) == 1 for name in pairs.name[varied])


def _successors(mdp: FactoredMDP, pair: int) -> NDArray[np.float64]:
    """Return the positive probabilities of the next states."""
    state, action = divmod(pair, mdp.n_actions)
    if mdp.is_small:
        matrix = mdp.transition[action]
        found = np.asarray(matrix.data[matrix.indptr[state] : matrix.indptr[state + 1]], dtype=np.float64)
    else:
        here = np.zeros(mdp.n_states)
        here[state] = 1.0
        found = mdp.spread(here, action)
    return found[found > 0.0]


def _p_values(groups: _Groups, low: float, high: float) -> NDArray[np.float64]:
    """Return the p-value of each mean, with one reward more at the end of the scale on the other side."""
    gap = groups.mean - groups.expected
    above, below = np.maximum(high - groups.expected, 0.0), np.minimum(low - groups.expected, 0.0)
    extreme = np.where(gap < 0, above, below)
    n = groups.n + 1.0
    mean = (groups.n * gap + extreme) / n
    spread = groups.spread + groups.n * (gap - mean) ** 2 + (extreme - mean) ** 2
    error = np.sqrt(spread / (n - 1.0) / n)
    # Where the one reward more turns the difference round, nothing speaks against the model.
    t = np.where(mean * gap > 0, np.abs(mean), 0.0) / np.maximum(error, np.finfo(float).tiny)
    return np.asarray(2.0 * stdtr(n - 1.0, -t), dtype=np.float64)


def _pair_words(mdp: FactoredMDP, name: int) -> str:
    state, action = divmod(name, mdp.n_actions)
    return f"in {mdp.space.state(state)!r} with action {mdp.actions[action]!r}"


def _action_words(mdp: FactoredMDP, name: int) -> str:
    return f"with action {mdp.actions[name]!r}"


def _all_words(mdp: FactoredMDP, name: int) -> str:
    return "in the steps whose state was seen completely"


def _sentence(
    rows: TableRows, mdp: FactoredMDP, groups: _Groups, group: int, words: Callable[[FactoredMDP, int], str]
) -> str:
    """Return where a difference occurs first, and how large it is."""
    n, where = int(groups.n[group]), words(mdp, int(groups.name[group]))
    mean, expected = groups.mean[group], groups.expected[group]
    place = rows.where(int(groups.first[group]))
    if groups.constant[group]:
        often = f" in all {n:,} steps" if n > 1 else ""
        return f"{place}: the reward {where} is {mean:.6g}{often}, but the model's is {expected:.6g}"
    error = np.sqrt(groups.spread[group] / (n - 1) / n)
    return (
        f"{place}: the mean reward {where} is {mean:.6g} (over {n:,} steps, standard error {error:.2g}), but the "
        f"model's is {expected:.6g}"
    )


def _more(n: int) -> str:
    return "" if n == 1 else f" ({n - 1:,} more such {'differences' if n > 2 else 'difference'})"
