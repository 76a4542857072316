"""The sparse tabular POMDP, which is all that solvers see, and the values of an MDP whose state is seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from missmdp.checks import checked_flag, checked_shape
from missmdp.errors import FormatError, ModelError, ParameterError
from missmdp.model.archive import (
    FLAGS,
    FLOATS,
    Array,
    decode_values,
    encode_values,
    matrix_arrays,
    matrix_from_parts,
    matrix_parts,
)
from missmdp.model.given import given_matrix
from missmdp.model.mdp import FactoredMDP
from missmdp.model.probabilities import (
    as_flags,
    as_floats,
    checked_discount,
    checked_distribution,
    checked_rewards,
    checked_rows,
)
from missmdp.words import count, did_you_mean, preview


@dataclass(frozen=True, eq=False)
class POMDP:
    """(S, A, T, b₀, ρ, Z, O, γ) as sparse matrices, with labels.

    Parameters
    ----------
    states, actions, observations
        Labels, in the order of the matrices.
    transition
        One (S, S) matrix per action, sparse or dense; kept as CSR matrices.
    reward
        ρ(s, a), shape (S, A).
    observation
        O(z | s′) as one (S, Z) matrix, or one per action where it depends on the action.
    initial
        b₀, shape (S,).
    terminal
        Which states are absorbing with reward 0, as booleans or 0 and 1, shape (S,). These states stay where they
        are and earn nothing, whatever `transition` and `reward` say.
    discount
        γ in [0, 1).
    observe_initial
        Whether an observation is made before the first action. True for miss-MDPs, whose histories start with z⁽⁰⁾;
        file formats and other solvers act first. If O depends on the action, the first observation uses the first
        matrix.
    """

    states: Sequence[Any]
    actions: Sequence[Any]
    observations: Sequence[Any]
    transition: tuple[sparse.csr_array, ...]
    reward: NDArray[np.float64]
    observation: tuple[sparse.csr_array, ...]
    initial: NDArray[np.float64]
    terminal: NDArray[np.bool_]
    discount: float
    observe_initial: bool

    def __post_init__(self) -> None:
        # Frozen for users. All is kept as checked: kernels rely on types and indices, and rows that sum to a little
        # more than one must not reach a solver's bounds.
        for name, value in _checked_parts(self).items():
            object.__setattr__(self, name, value)
        if self.terminal.any():
            object.__setattr__(self, "reward", np.where(self.terminal[:, None], 0.0, self.reward))
            object.__setattr__(self, "transition", tuple(map(self._absorbed, self.transition)))

    def _absorbed(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """Return a transition matrix in which terminal states stay where they are."""
        ends = np.flatnonzero(self.terminal)
        stays = matrix[ends, ends] == 1.0
        if stays.all():
            return matrix
        going_on = sparse.diags_array((~self.terminal).astype(np.float64)) @ matrix
        absorbed = sparse.csr_array(going_on + sparse.diags_array(self.terminal.astype(np.float64)))
        absorbed.eliminate_zeros()
        return absorbed

    def __repr__(self) -> str:
        return (
            f"POMDP({self.n_states} states, {self.n_actions} actions, {self.n_observations} observations, "
            f"discount {self.discount:g})"
        )

    @property
    def n_states(self) -> int:
        """|S|."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """|A|."""
        return len(self.actions)

    @property
    def n_observations(self) -> int:
        """|Z|, counting the observations that have positive probability in some state."""
        return len(self.observations)

    def observation_of(self, action: int) -> sparse.csr_array:
        """Return O(z | s′) after an action given by its index, shape (S, Z)."""
        return self.observation[action if len(self.observation) > 1 else 0]


def _checked_parts(given: POMDP) -> dict[str, Any]:
    """Return the parts of a POMDP, each checked and in its proper type."""
    states, actions, observations = (
        _checked_labels(name, getattr(given, name)) for name in ("states", "actions", "observations")
    )
    reward = checked_shape("reward", as_floats(given.reward, "reward"), (len(states), len(actions)))
    discount = checked_discount(given.discount)
    checked_rewards(reward, discount, lambda s, a: f"reward({states[s]!r}, {actions[a]!r})")
    initial = checked_shape("initial", as_floats(given.initial, "initial"), (len(states),))
    checked_distribution(initial, "the initial distribution", states.__getitem__)

    def matrices(name: str, width: int) -> tuple[sparse.csr_array, ...]:
        # A matrix that is given for several actions is checked and kept once.
        listed = list(getattr(given, name))
        kept: dict[int, sparse.csr_array] = {}
        for a, matrix in enumerate(listed):
            if id(matrix) not in kept:
                kept[id(matrix)] = checked_rows(
                    given_matrix(
                        name, matrix, (len(states), width), f"the {name} matrix of action {actions[a]!r}"
                    ),
                    lambda s, a=a: f"{name} of state {states[s]!r}, action {actions[a]!r}",
                )
        return tuple(kept[id(matrix)] for matrix in listed)

    n_actions = len(actions)
    _check_count("transition", given.transition, {n_actions}, f"{n_actions} matrices, one per action")
    _check_count(
        "observation", given.observation, {1, n_actions}, f"1 matrix, or {n_actions}, one per action"
    )
    return {
        "states": states,
        "actions": actions,
        "observations": observations,
        "transition": matrices("transition", len(states)),
        "reward": reward,
        "observation": matrices("observation", len(observations)),
        "initial": initial,
        "terminal": checked_shape("terminal", as_flags(given.terminal, "terminal"), (len(states),)),
        "discount": discount,
        "observe_initial": checked_flag("observe_initial", given.observe_initial),
    }


def _checked_labels(name: str, labels: Any) -> Sequence[Any]:
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence) or not len(cast("Any", listed)):
        raise ParameterError(name, cast("Any", listed), "a list with at least one label")
    return cast("Sequence[Any]", listed)


def _check_count(name: str, matrices: Any, counts: set[int], expected: str) -> None:
    """Raise unless there are as many matrices as there should be."""
    if not isinstance(matrices, Sequence) and not (isinstance(matrices, np.ndarray) and matrices.ndim == 3):
        raise ParameterError(name, cast("Any", matrices), expected)
    if len(cast("Any", matrices)) not in counts:
        raise ParameterError(name, len(cast("Any", matrices)), expected)


class PomdpMeta(msgspec.Struct):
    """What a file says of a POMDP besides its arrays."""

    states: list[Any]
    actions: list[Any]
    observations: list[Any]
    discount: float
    observe_initial: bool
    observation_matrices: int


def pomdp_arrays(meta: PomdpMeta) -> dict[str, Array]:
    """Return what the arrays of a POMDP must be, by name."""
    n_states, n_actions = len(meta.states), len(meta.actions)
    if meta.observation_matrices not in (1, n_actions):
        raise FormatError(f"it has {meta.observation_matrices} observation matrices for {n_actions} actions")
    arrays = {
        "reward": Array(FLOATS, (n_states, n_actions)),
        "initial": Array(FLOATS, (n_states,)),
        "terminal": Array(FLAGS, (n_states,)),
    }
    for a in range(n_actions):
        arrays |= matrix_arrays(f"transition_{a}", n_states, n_states)
    for a in range(meta.observation_matrices):
        arrays |= matrix_arrays(f"observation_{a}", n_states, len(meta.observations))
    return arrays


def pomdp_parts(pomdp: POMDP) -> tuple[PomdpMeta, dict[str, NDArray[Any]]]:
    """Return a POMDP as metadata and arrays, for an archive."""
    meta = PomdpMeta(
        states=encode_values(tuple(pomdp.states), "states"),
        actions=encode_values(tuple(pomdp.actions), "actions"),
        observations=encode_values(tuple(pomdp.observations), "observations"),
        discount=pomdp.discount,
        observe_initial=pomdp.observe_initial,
        observation_matrices=len(pomdp.observation),
    )
    arrays: dict[str, NDArray[Any]] = {
        "reward": pomdp.reward,
        "initial": pomdp.initial,
        "terminal": pomdp.terminal,
    }
    for kind, matrices in (("transition", pomdp.transition), ("observation", pomdp.observation)):
        for a, matrix in enumerate(matrices):
            arrays |= matrix_parts(f"{kind}_{a}", matrix)
    return meta, arrays


def pomdp_from_parts(meta: PomdpMeta, arrays: Mapping[str, NDArray[Any]]) -> POMDP:
    """Return the POMDP that `pomdp_parts` was given; call it inside `named_damage`."""
    states, actions, observations = (
        decode_values(labels, name)
        for name, labels in (
            ("states", meta.states),
            ("actions", meta.actions),
            ("observations", meta.observations),
        )
    )

    def matrices(kind: str, count: int, width: int) -> tuple[sparse.csr_array, ...]:
        return tuple(matrix_from_parts(f"{kind}_{a}", arrays, (len(states), width)) for a in range(count))

    return POMDP(
        states=states,
        actions=actions,
        observations=observations,
        transition=matrices("transition", len(actions), len(states)),
        reward=arrays["reward"],
        observation=matrices("observation", meta.observation_matrices, len(observations)),
        initial=arrays["initial"],
        terminal=arrays["terminal"],
        discount=meta.discount,
        observe_initial=meta.observe_initial,
    )


class Labels:
    """Where each label is in a list.

    Parameters
    ----------
    labels
        The labels, in order; where one occurs twice, the first counts.
    what
        What they are called in errors, such as "observation".
    """

    def __init__(self, labels: Sequence[Any], what: str) -> None:
        self._labels = labels
        self._what = what
        self._index: dict[Any, int] = {}
        for index, label in enumerate(labels):
            self._index.setdefault(label, index)

    def index(self, label: Any) -> int:
        """Return the index of a label; raise `ModelError` if there is none of that name."""
        try:
            return self._index[label]
        except (KeyError, TypeError):
            meant = did_you_mean(label, self._index)
            raise ModelError(
                f"there is no {self._what} {label!r}; the {self._what}s are {preview(self._index)}{meant}"
            ) from None


_PRECISION = 1e-10
"""Relative to the largest value that rewards allow."""
_MOST_SWEEPS = 25_000
"""Beyond a discount of about 0.999 there are better ways."""
_MOST_WORK = 1e10
"""Values of features that value iteration on factors goes through at most; about a minute."""
_WORK_PER_SECOND = 2e8
_MOST_POLICIES = 1000
"""Policy iteration needs some ten, and could go round in circles by rounding."""
_ROUNDING = 1e-14
"""Of the largest value: what an action must be better by."""


def optimal_values(mdp: FactoredMDP | POMDP) -> NDArray[np.float64]:
    """Return V* to ten digits of the largest value that rewards allow, shape (S,).

    Where the discount is so close to 1 that value iteration would take for ever, policy iteration finds it, as
    precisely as rounding allows.
    """
    values = np.zeros(mdp.n_states)
    scale = float(np.abs(mdp.reward).max(initial=0.0))
    if scale == 0.0:
        return values
    sweeps = _sweeps(mdp)
    check_values("the optimal values", mdp, "evaluate without a control variate")
    if sweeps > _MOST_SWEEPS:
        return _by_policies(mdp)
    for _ in range(sweeps):
        values = action_values(mdp, values).max(axis=1)
    return values


def _sweeps(mdp: FactoredMDP | POMDP) -> int:
    """Return how many sweeps value iteration takes: the error shrinks by γ per sweep, from at most max|ρ| / (1 − γ)."""
    return math.ceil(math.log(_PRECISION) / math.log(mdp.discount)) if mdp.discount > 0.0 else 1


def has_quick_values(mdp: FactoredMDP | POMDP, times: int = 1) -> bool:
    """Return whether the optimal values of an MDP take a minute at most, even so many times."""
    return times * _work(mdp) <= _MOST_WORK


def optimal_values_seconds(mdp: FactoredMDP) -> float:
    """Return about how long `optimal_values` takes, infinite where it would need matrices that are not there."""
    if not mdp.is_small and _sweeps(mdp) > _MOST_SWEEPS:
        return math.inf
    return _work(mdp) / _WORK_PER_SECOND


def check_values(what: str, mdp: FactoredMDP | POMDP, instead: str) -> None:
    """Raise `ModelError` if the values of a large MDP would take minutes.

    Parameters
    ----------
    what
        What is to be worked out, as the subject of a sentence.
    instead
        What to do instead.
    """
    work = _work(mdp)
    if work > _MOST_WORK:
        raise ModelError(
            f"{what} of {mdp.n_states:,} states with {len(mdp.actions):,} actions would take {_sweeps(mdp):,} "
            f"sweeps, about {count(max(round(work / (60.0 * _WORK_PER_SECOND)), 1), 'minute')}; {instead}"
        )


def _work(mdp: FactoredMDP | POMDP) -> float:
    """Return how many values of features value iteration goes through; 0 where matrices are used, which are quick."""
    if not isinstance(mdp, FactoredMDP) or mdp.is_small:
        return 0.0
    return float(_sweeps(mdp)) * mdp.n_actions * mdp.n_states * len(mdp.features)


def _by_policies(mdp: FactoredMDP | POMDP) -> NDArray[np.float64]:
    """Return V* by policy iteration."""
    states, values = np.arange(mdp.n_states), np.zeros(mdp.n_states)
    best: NDArray[np.intp] = mdp.reward.argmax(axis=1)
    for _ in range(_MOST_POLICIES):
        chosen = sum(
            (
                sparse.diags_array((best == a).astype(np.float64)) @ matrix
                for a, matrix in enumerate(mdp.transition)
            ),
            sparse.csr_array((mdp.n_states, mdp.n_states)),
        )
        going_on = sparse.diags_array((~mdp.terminal).astype(np.float64)) @ chosen
        reward = np.where(mdp.terminal, 0.0, mdp.reward[states, best])
        system = sparse.csc_array(sparse.eye_array(mdp.n_states) - mdp.discount * going_on)
        found = _solution(system, reward)
        if found is None:
            break
        values = found
        better = action_values(mdp, values)
        # An action is changed only for one that is better by more than rounding, so policies do not alternate.
        gain = better.max(axis=1) - better[states, best]
        improved = gain > _ROUNDING * np.abs(values).max()
        if not improved.any():
            break
        best = np.where(improved, better.argmax(axis=1), best)
    return values


def _solution(system: sparse.csc_array, right: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the solution of a linear system; None where rounding has made it singular."""
    try:
        found = np.asarray(linalg.splu(system).solve(right))
    except RuntimeError:
        return None
    return found if np.isfinite(found).all() else None


def action_values(mdp: FactoredMDP | POMDP, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ρ(s, a) + γ Σ_s′ T(s′ | s, a) V(s′), 0 in terminal states, shape (S, A)."""
    if isinstance(mdp, FactoredMDP):
        future = np.stack([mdp.expect(values, a) for a in range(mdp.n_actions)], axis=1)
    else:
        future = np.stack([matrix @ values for matrix in mdp.transition], axis=1)
    return np.where(mdp.terminal[:, None], 0.0, mdp.reward + mdp.discount * future)


def advantages(mdp: FactoredMDP | POMDP, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ρ(s, a) + γ Σ_s′ T(s′ | s, a) V(s′) − V(s), shape (S, A)."""
    return action_values(mdp, values) - values[:, None]
