"""Structures of T and b₀: any, by the parents of each feature, or as `JointEM` found them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_list
from missmdp.errors import ModelError, ParameterError
from missmdp.learn.identifiability.moving import Chances, DynamicsStructure, Entries
from missmdp.learn.joint.dynamics import Dynamics, Family, Point, Variables
from missmdp.learn.joint.estimator import JointEM
from missmdp.learn.joint.given import order_of, rules_of
from missmdp.model.mdp import FactoredMDP
from missmdp.words import listed

_OFF = 1e-6
"""By how much T may differ from a product of chances: rounding."""

_MOST_ENTRIES = 1_000_000
"""Entries of T above which an answer is refused."""


@dataclass(frozen=True, eq=False)
class _Columns:
    """The values of variables in entries."""

    mdp: FactoredMDP
    variables: Variables
    before: NDArray[np.int64] | None
    action: NDArray[np.int64] | None
    after: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.after)

    def column(self, variable: int) -> NDArray[np.int64]:
        codes, n = self.mdp.space.codes, len(self.variables.features)
        if variable > n:
            return codes[self.after, variable - n - 1].astype(np.int64)
        assert self.before is not None
        assert self.action is not None
        return self.action if variable == n else codes[self.before, variable].astype(np.int64)


def checked_transitions(chosen: Any, learner: JointEM | None) -> str | Mapping[str, Any]:
    """Return "known", "unknown", "learned", or the parents of each feature."""
    if chosen is None:
        return "known" if learner is None or learner.fit_ is None else "learned"
    expected = "'known', 'unknown' or {feature: features that its next value depends on}"
    if isinstance(chosen, Mapping):
        given = cast("Mapping[Any, Any]", chosen)
        for own in given.values():
            names: list[Any] = (
                [own] if isinstance(own, str) else list(checked_list("transitions", own, expected))
            )
            if not all(isinstance(name, str) for name in names):
                raise ParameterError("transitions", given, expected)
        return given
    if not isinstance(chosen, str) or chosen not in ("known", "unknown"):
        raise ParameterError("transitions", chosen, expected)
    return chosen


def as_dynamics(
    mdp: FactoredMDP, chosen: str | Mapping[str, Any], learner: JointEM | None
) -> DynamicsStructure:
    if isinstance(chosen, Mapping):
        return dynamics_by_parents(mdp, chosen)
    if chosen == "learned" and learner is not None and learner.fit_ is not None:
        return learned_dynamics(mdp, learner.fit_.dynamics, learner.fit_.parameters.dynamics)
    return any_dynamics(mdp)


def any_dynamics(mdp: FactoredMDP) -> DynamicsStructure:
    """Return the structure in which every state and action has a distribution of its own."""
    entries = _entries(mdp)
    row = entries.action * mdp.n_states + entries.before
    whole = Chances(np.arange(len(row), dtype=np.int64), entries.value, row)
    starts, value = _starts(mdp)
    return DynamicsStructure("any T", entries, (whole,), starts, value, (_any_start(value),))


def dynamics_by_parents(mdp: FactoredMDP, parents: Mapping[str, Any]) -> DynamicsStructure:
    """Return the structure in which the next value of each feature depends on its parents and the action.

    Raises
    ------
    ParameterError
        If the parents make no sense, or the MDP's T has other parents.
    """
    rules = rules_of(
        mdp.space, mdp.actions, transitions=parents, known=None, initial=None, terminal=None, ends=True
    )
    variables = Variables(mdp.space.features, mdp.n_actions)
    entries = _entries(mdp)
    columns = _Columns(mdp, variables, entries.before, entries.action, entries.after)
    given = rules.parents
    assert given is not None
    names = mdp.space.features.names
    found: list[Chances] = []
    earlier = _numbered(entries.action * mdp.n_states + entries.before)
    for feature in order_of(rules, variables):
        after = columns.column(variables.next(feature))
        context = np.zeros(columns.count, dtype=np.int64)
        for variable in given[feature]:
            context = context * variables.size(variable) + columns.column(variable)
        size = variables.size(feature)
        place = _numbered(context) * size + after
        shared = _shares(place, place // size, entries.value)
        # What T itself says of the next value, given the state, the action and the next values before this one.
        joint = _numbered(earlier * size + after)
        off = np.abs(_shares(joint, earlier, entries.value) - shared)
        if off.max(initial=0.0) > _OFF:
            _other_parents(mdp, entries, int(off.argmax()), names[feature], parents)
        earlier = joint
        found.append(Chances.of(place, shared, place // size))
    starts, value = _starts(mdp)
    said = {names[i]: _in_words(own, variables) for i, own in given.items()}
    return DynamicsStructure(
        "T with the given parents", entries, tuple(found), starts, value, (_any_start(value),), parents=said
    )


def _other_parents(
    mdp: FactoredMDP, entries: Entries, worst: int, name: str, parents: Mapping[str, Any]
) -> NoReturn:
    state, action = mdp.states[int(entries.before[worst])], mdp.actions[int(entries.action[worst])]
    own = parents[name]
    said = listed([repr(one) for one in ([own] if isinstance(own, str) else own)]) or "nothing but the action"
    raise ParameterError(
        "transitions",
        dict(parents),
        "the features that next values depend on",
        f"in the MDP, the next value of {name!r} depends on more than {said}: see {tuple(state)!r} and {action!r}",
    )


def learned_dynamics(mdp: FactoredMDP, dynamics: Dynamics, point: Point) -> DynamicsStructure:
    """Return the structure that `JointEM` found, at the T̂ and b̂₀ that it learned.

    Trees give a little weight to changes that a value cannot make, such as up from the highest. It is left out here,
    distribution by distribution; in the MDP, row by row.
    """
    variables = Variables(mdp.space.features, mdp.n_actions)
    entries = _entries(mdp)
    starts, value = _starts(mdp)
    steps = _Columns(mdp, variables, entries.before, entries.action, entries.after)
    first = _Columns(mdp, variables, None, None, starts)
    pairs = list(zip(dynamics.steps.families, point.steps, strict=True))
    families = [(family, theta) for family, theta in pairs if family.target != variables.ended]
    own = [_of_family(family, theta, steps, variables) for family, theta in families]
    entries = replace(entries, value=_product(own))
    begin: list[_Factor] = []
    if dynamics.initial_given is None:
        both = zip(dynamics.start.families, point.start, strict=True)
        begin = [_of_family(family, theta, first, variables) for family, theta in both]
        value = _product(begin)
    asked = {
        mdp.space.features.names[variables.feature(family.target)]: _in_words(
            _asked(family, variables), variables
        )
        for family, _ in families
    }
    return DynamicsStructure(
        "T as it was learned",
        entries,
        tuple(factor.chances for factor in own),
        starts,
        value,
        tuple(factor.chances for factor in begin),
        found=True,
        parents=asked,
    )


class _Factor(NamedTuple):
    chances: Chances
    known: NDArray[np.float64]
    """What each entry has besides its chance: what is known of it, or its share of the chance."""


def _product(factors: Sequence[_Factor]) -> NDArray[np.float64]:
    """Return the entries that chances make."""
    found = np.ones(len(factors[0].known))
    for chances, known in factors:
        found *= known * np.where(chances.place >= 0, np.append(chances.value, 1.0)[chances.place], 1.0)
    return found


def _in_words(given: Iterable[int], variables: Variables) -> tuple[str, ...]:
    """Return the names of variables other than the action."""
    names = variables.features.names
    return tuple(
        names[v] if v < variables.action else f"next_{names[variables.feature(v)]}"
        for v in given
        if v != variables.action
    )


def _asked(family: Family, variables: Variables) -> tuple[int, ...]:
    """Return what the next value depends on; the value before, if some leaf tells changes of it."""
    changes = family.outcomes.column.shape[1] > 1 and bool((family.way > 0).any())
    before = (variables.feature(family.target),) if changes else ()
    known = tuple(range(variables.action)) if family.known is not None else ()
    return tuple(sorted({*family.partition.asked, *before, *known}))


def _of_family(
    family: Family, theta: NDArray[np.float64], columns: _Columns, variables: Variables
) -> _Factor:
    after = columns.column(family.target)
    before = (
        columns.column(variables.feature(family.target)) if family.outcomes.column.shape[1] > 1 else after
    )
    leaf = family.partition.leaf(columns.column, columns.count)
    column = family.outcomes.columns(family.way[leaf], before, after)
    place = leaf * family.outcomes.width + column
    share = family.outcomes.share[column]
    known = family.known
    if known is not None and len(known.rows) and columns.before is not None and columns.action is not None:
        row = known.row[columns.before, columns.action]
        place = np.where(row >= 0, -1, place)
        share = np.where(row >= 0, known.rows[row, after], share)
    group = leaf * family.outcomes.n_blocks + family.outcomes.block[column]
    return _Factor(Chances.of(place, theta[leaf, column], group), share)


def _entries(mdp: FactoredMDP) -> Entries:
    entries = Entries.of(mdp)
    if len(entries.value) > _MOST_ENTRIES:
        raise ModelError(
            f"{len(entries.value):,} transitions of an unknown T are too many to say what is identified (at most "
            f"{_MOST_ENTRIES:,}); ask about a smaller model, with fewer features or values"
        )
    return entries


def _starts(mdp: FactoredMDP) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    starts = np.flatnonzero(mdp.initial > 0.0)
    return starts, mdp.initial[starts]


def _any_start(value: NDArray[np.float64]) -> Chances:
    return Chances(np.arange(len(value), dtype=np.int64), value, np.zeros(len(value), dtype=np.int64))


def _numbered(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    _, number = np.unique(labels, return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def _shares(
    place: NDArray[np.int64], context: NDArray[np.int64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of each entry's place as a share of that of its context, shape (entries,)."""
    return np.bincount(place, weight)[place] / np.bincount(context, weight)[context]
