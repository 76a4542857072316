"""Factored Markov decision processes: what is known before anything goes missing.

An MDP (S, A, T, b₀, ρ, γ) with S ⊆ S₁ × … × Sₙ. It can be written down as functions of named states,
as one sparse matrix per action, as tables, or feature by feature; inside it is sparse matrices over a list of
states, or factors, which are multiplied out only where somebody asks for matrices. Terminal states are absorbing with
reward 0, whatever the functions, matrices or factors say of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from missmdp.checks import checked_instance, checked_number, checked_shape, checked_text
from missmdp.errors import ModelError, ParameterError
from missmdp.memory import check_fits
from missmdp.model.factors import (
    Factors,
    given_factor_initial,
    given_factor_terminal,
    sum_of_parts,
)
from missmdp.model.found_factors import find_factors
from missmdp.model.given import (
    Distribution,
    all_states,
    checked_actions,
    enumerate_reachable,
    given_initial,
    given_matrices,
    given_states,
    given_terminal,
    one_of,
)
from missmdp.model.probabilities import (
    as_floats,
    call,
    checked_discount,
    checked_distribution,
    checked_rewards,
    checked_rows,
    number,
)
from missmdp.model.space import FeatureSpace, Rows, StateSpace, plain
from missmdp.model.tables import mdp_from_tables
from missmdp.pages.notebook import notebook_table
from missmdp.progress import show_progress
from missmdp.words import count, did_you_mean, listed, preview

_FEW_ENTRIES = 5_000_000
"""Entries of matrices up to which factors are multiplied out where matrices are quicker."""

_WRITE_FACTORS = (
    "write the model down feature by feature (FactoredMDP.from_factors), where it takes next to nothing"
)
_BY_FACTORS = "mdp.factors has the same dynamics feature by feature"


class FactoredMDP:
    """A Markov decision process whose states are combinations of named features.

    Parameters
    ----------
    features
        Name → values of each feature, in the order in which states list them.
    actions
        The names of the actions.
    transition
        A function (state, action) → {next state: probability}, or → a list of (next state, probability)
        pairs, which add up where a state occurs twice; the states reachable from `initial` are then
        enumerated. Or one sparse or dense (S, S) matrix per action, as a sequence in the order of
        `actions` or a mapping from action to matrix; then all given states are kept. Or `Factors`: see `from_factors`.
    reward
        A function (state, action) → number, one number for all, or (with matrices) an array of shape (S, A).
    initial
        {state: probability}, a list of (state, probability) pairs, or (with matrices) an array of shape (S,).
    terminal
        A function state → bool, a collection of states, or (with matrices) a boolean array of shape (S,).
    discount
        γ in [0, 1).
    states
        With matrices: the states that rows and columns stand for. By default all combinations of
        feature values, the last feature changing fastest.
    max_states
        With functions: stop with an error when more states than this are reachable.
    progress
        Whether to show progress; by default on a terminal.

    Attributes
    ----------
    space : StateSpace
        The states as codes.
    reward : numpy.ndarray
        ρ, shape (S, A).
    initial : numpy.ndarray
        b₀, shape (S,).
    terminal : numpy.ndarray
        Which states are terminal, shape (S,).
    reachable : numpy.ndarray
        Which states can be reached from the initial ones, shape (S,).

    Examples
    --------
    >>> mdp = FactoredMDP(
    ...     features={"level": range(3)},
    ...     actions=["wait", "treat"],
    ...     transition=lambda s, a: {(0,): 1.0} if a == "treat" else {(min(s.level + 1, 2),): 1.0},
    ...     reward=lambda s, a: -s.level - 0.5 * (a == "treat"),
    ...     initial={(0,): 1.0},
    ...     discount=0.9,
    ... )
    >>> mdp.n_states
    3
    """

    def __init__(
        self,
        features: Mapping[str, Iterable[Any]] | FeatureSpace,
        actions: Iterable[Any],
        transition: Callable[[Any, Any], Distribution]
        | Sequence[Any]
        | Mapping[Any, Any]
        | NDArray[Any]
        | Factors,
        reward: Callable[[Any, Any], float] | ArrayLike,
        initial: Distribution | ArrayLike,
        terminal: Callable[[Any], bool] | Iterable[Any] | None = None,
        discount: float = 0.95,
        *,
        states: Sequence[Any] | StateSpace | None = None,
        max_states: int = 2_000_000,
        progress: bool | None = None,
    ) -> None:
        space = features if isinstance(features, FeatureSpace) else FeatureSpace(features)
        self.actions: tuple[Any, ...] = checked_actions(actions)
        self.discount = checked_discount(discount)
        max_states = int(checked_number("max_states", max_states, least=1))
        matrices: list[sparse.csr_array] = []
        self._given = transition if isinstance(transition, Factors) else None
        if callable(transition):
            if states is not None:
                problem = "goes with matrices; with a transition function the states are enumerated"
                raise ParameterError("states", states, "left out", problem)
            self.space, matrices, start, self.terminal = enumerate_reachable(
                space,
                self.actions,
                transition,
                cast("Distribution", initial),
                terminal if terminal is None or callable(terminal) else one_of(terminal, space),
                max_states=max_states,
                progress=progress,
            )
        else:
            self.space = given_states(space, states, max_states)
            if self._given is None:
                matrices = given_matrices(transition, self.actions, len(self.space))
            start = given_initial(self.space, initial)
            self.terminal = given_terminal(self.space, terminal)
        if self._given is None:
            self.transition = tuple(
                self._checked_transition(action, matrix, enumerated=callable(transition))
                for action, matrix in zip(self.actions, matrices, strict=True)
            )
        self.initial: NDArray[np.float64] = checked_distribution(
            start, "the initial distribution", self.space.state
        )
        self.reward: NDArray[np.float64] = self._checked_reward(
            reward, enumerated=callable(transition), progress=progress
        )
        self.reachable: NDArray[np.bool_] = self._reach()
        for array in (self.initial, self.reward, self.terminal, self.reachable):
            array.setflags(write=False)

    @cached_property
    def factors(self) -> Factors | None:
        """T feature by feature: as it was given, or as found in the matrices.

        None if the next values of features depend on each other given the state and the action, or if states are not
        all combinations of values in order. Of terminal states factors say nothing, whatever their tables hold.
        """
        if self._given is not None:
            return self._given
        return find_factors(self.space, self.actions, self.transition, self.terminal)

    @property
    def by_factors(self) -> bool:
        """Whether T was given feature by feature."""
        return self._given is not None

    @cached_property
    def is_small(self) -> bool:
        """Whether T is used as matrices: it was given like that, or has few entries when factors are multiplied out."""
        return self._given is None or self.n_entries <= _FEW_ENTRIES

    @cached_property
    def n_entries(self) -> int:
        """How many entries the transition matrices have in all, multiplied out or not."""
        return sum(m.nnz for m in self.transition) if self._given is None else self._given.count_entries()

    def expect(self, values: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return E[values(s′) | s, a] for every state s and the action of that number, shape (S,)."""
        if self.is_small or self._given is None:
            return self.transition[action] @ values
        return np.where(self.terminal, values, self._given.expect(values, action))

    def spread(self, weights: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return Σ_s weights(s) T(s′ | s, a) for every state s′ and the action of that number, shape (S,)."""
        if self.is_small or self._given is None:
            return self.transition[action].T @ weights
        gone = self._given.spread(np.where(self.terminal, 0.0, weights), action)
        return gone + np.where(self.terminal, weights, 0.0)

    @cached_property
    def transition(self) -> tuple[sparse.csr_array, ...]:
        """One (S, S) matrix per action; factors are multiplied out here.

        Raises
        ------
        ModelError
            If the matrices of factors would not fit into memory.
        """
        assert self._given is not None
        entries = self.n_entries
        what = f"the transition matrices of this model, with {entries:.2g} entries,"
        # Each takes 12 bytes, and 120 while it is made.
        check_fits(what, entries * (12.0 + 120.0 / self.n_actions), _BY_FACTORS)
        return tuple(
            self._checked_transition(action, self._given.matrix(a), enumerated=False)
            for a, action in enumerate(self.actions)
        )

    def __repr__(self) -> str:
        return (
            f"FactoredMDP({self.n_states} states of {', '.join(self.space.features.names)}; "
            f"actions {', '.join(map(str, self.actions))}; discount {self.discount:g})"
        )

    def _repr_html_(self) -> str:
        """Return the features as a table, for notebooks."""
        title = (
            f"FactoredMDP: {count(self.n_states, 'state')}, actions {listed([*map(str, self.actions)])}, discount "
            f"{self.discount:g}"
        )
        rows = [[name, preview(values)] for name, values in self.features.items()]
        return notebook_table(title, ["feature", "values"], rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FactoredMDP)
            and (self.actions, self.discount, self.space) == (other.actions, other.discount, other.space)
            and np.array_equal(self.reward, other.reward)
            and np.array_equal(self.initial, other.initial)
            and np.array_equal(self.terminal, other.terminal)
            and self._moves_like(other)
        )

    def _moves_like(self, other: FactoredMDP) -> bool:
        if self._given is not None and other._given is not None and self._given.same_as(other._given):
            return True
        return (
            self.is_small
            and other.is_small
            and all(
                np.array_equal(mine.indptr, theirs.indptr)
                and np.array_equal(mine.indices, theirs.indices)
                and np.array_equal(mine.data, theirs.data)
                for mine, theirs in zip(self.transition, other.transition, strict=True)
            )
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def features(self) -> dict[str, tuple[Any, ...]]:
        """Name → values of each feature."""
        return self.space.features.as_dict()

    @property
    def states(self) -> Rows:
        """The states in order, as named tuples."""
        return self.space.states

    @property
    def n_states(self) -> int:
        """|S|, the number of states."""
        return len(self.space)

    @property
    def n_actions(self) -> int:
        """|A|, the number of actions."""
        return len(self.actions)

    def action_index(self, action: Any) -> int:
        """Return the position of an action; raise `ModelError` if there is none of that name."""
        try:
            return self.actions.index(action)
        except ValueError:
            names, meant = preview(self.actions, most=self.n_actions), did_you_mean(action, self.actions)
            raise ModelError(f"there is no action {action!r}; the actions are {names}{meant}") from None

    @classmethod
    def from_tables(
        cls,
        transitions: Any,
        rewards: Any,
        initial: Any,
        *,
        discount: float = 0.95,
        terminal: Any = None,
        features: Mapping[str, Iterable[Any]] | None = None,
    ) -> FactoredMDP:
        """Return the MDP that three tables describe; no Python needed to write one down.

        Each table is a CSV or Parquet file, or a pandas, polars or pyarrow frame. Other columns than those
        named here are features, in the order in which `transitions` has them.

        Parameters
        ----------
        transitions
            One column per feature, `action`, one column `next_<feature>` per feature, `probability`.
        rewards
            One column per feature, `action`, `reward`. State-action pairs that are not listed have reward 0.
        initial
            One column per feature, `probability`.
        discount
            γ in [0, 1).
        terminal
            The terminal states: a table with one column per feature, or a function of the state.
        features
            Name → values; by default the values that occur, sorted, or in the order of ordered pandas categories.
        """
        parts = mdp_from_tables(transitions, rewards, initial, terminal=terminal, features=features)
        return cls(
            parts.features,
            parts.actions,
            parts.transition,
            parts.reward,
            parts.initial,
            parts.terminal,
            discount,
            states=parts.states,
        )

    @classmethod
    def from_factors(
        cls,
        features: Mapping[str, Iterable[Any]] | FeatureSpace,
        actions: Iterable[Any],
        transitions: Mapping[str, tuple[Sequence[str] | str, Any]],
        reward: Any,
        initial: Any,
        terminal: Any = None,
        discount: float = 0.95,
        *,
        max_states: int = 20_000_000,
    ) -> FactoredMDP:
        """Return the MDP that is written down feature by feature.

        Given the state and the action, the next values of features are independent. So a model with a million states
        needs a few small tables. States are all combinations of values; `reachable` says which can occur.

        Parameters
        ----------
        features
            Name → values of each feature, in the order in which states list them.
        actions
            The names of the actions.
        transitions
            Feature → (the features that its next value depends on, table). A table is a function of their values and
            the action that returns {next value: probability}, or an array with one axis for each of them, then one for
            actions and one for next values.
        reward
            Parts that are added up: a list of pairs (features, table), or a mapping from features to tables. A table is
            a function of their values and the action, or an array with one axis for each of them and one for actions.
            Or one number for all.
        initial
            Feature → first value, or feature → {value: probability}, all independent; or {state: probability}.
        terminal
            A pair (features, function of their values), a function of the state, or a collection of states.
        discount
            γ in [0, 1).
        max_states
            Stop with an error when there are more combinations of values than this.

        Examples
        --------
        >>> mdp = FactoredMDP.from_factors(
        ...     features={"load": [0, 1], "wear": range(3)},
        ...     actions=["run", "fix"],
        ...     transitions={
        ...         "load": ([], lambda action: {0: 0.5, 1: 0.5}),
        ...         "wear": (
        ...             ["wear", "load"],
        ...             lambda wear, load, action: (
        ...                 [(0, 1.0)]
        ...                 if action == "fix"
        ...                 else [(wear, 0.9 - 0.1 * load), (min(wear + 1, 2), 0.1 + 0.1 * load)]
        ...             ),
        ...         ),
        ...     },
        ...     reward=[("load", lambda load, action: 2 + 2 * load), ("wear", lambda wear, action: -3 * (wear == 2))],
        ...     initial={"load": {0: 0.5, 1: 0.5}, "wear": 0},
        ... )
        >>> mdp.n_states
        6
        """
        space = features if isinstance(features, FeatureSpace) else FeatureSpace(features)
        named = checked_actions(actions)
        most = int(checked_number("max_states", max_states, least=1))
        _check_size(space, len(named), most)
        states = all_states(space, most, "use fewer features or values, or allow more")
        return cls(
            space,
            named,
            Factors(space, named, transitions),
            sum_of_parts(reward, space, named),
            given_factor_initial(initial, space),
            given_factor_terminal(terminal, space),
            discount,
            states=states,
        )

    def horizon(self, precision: float = 1e-3) -> int:
        """Return L, the number of steps after which less than `precision` of discounted reward is left.

        L = ⌈log_γ((1 − γ) · precision / max |ρ|)⌉, at least 1; where all rewards are 0, as if max |ρ| were 1.

        Deviation: the paper has max ρ instead of max |ρ|, which fails where all rewards are penalties.
        """
        return reward_horizon(self.reward, self.discount, precision)

    def with_last_action(self, name: str = "last_action", none: Any = "none") -> FactoredMDP:
        """Return the MDP whose states also say which action led to them.

        Missingness that depends on the action is then an ordinary function of the state, as the paper
        suggests. Before the first action the new feature has the value `none`. It is a state feature
        like any other: whether the agent sees it is up to the missingness function.
        """
        return _with_last_action(self, self._given, name, none)

    def _checked_transition(
        self, action: Any, matrix: sparse.csr_array, *, enumerated: bool
    ) -> sparse.csr_array:
        absorbing = sparse.diags_array(self.terminal.astype(np.float64), format="csr")
        rows = sparse.csr_array(_without_rows(matrix, self.terminal) + absorbing)
        hint = "in a dict equal next states count once; return a list of (state, probability) pairs to add them up"
        checked = checked_rows(
            rows, lambda row: f"transition({self.space.state(row)!r}, {action!r})", hint if enumerated else ""
        )
        for part in (checked.data, checked.indices, checked.indptr):
            part.setflags(write=False)
        return checked

    def _rewards(self, reward: Callable[[Any, Any], Any], progress: bool | None) -> NDArray[np.float64]:
        """Return what a function says of all states that are not terminal, shape (S, A)."""
        array = np.zeros((self.n_states, self.n_actions))
        with show_progress("Evaluating rewards", self.n_states, enabled=progress) as advance:
            for s, codes in enumerate(self.space.codes.tolist()):
                if not self.terminal[s]:
                    state = self.space.features.decode(codes)
                    array[s] = [
                        number(call(reward, "reward", state, action), "reward({!r}, {!r})", state, action)
                        for action in self.actions
                    ]
                advance()
        return array

    def _checked_reward(self, reward: Any, *, enumerated: bool, progress: bool | None) -> NDArray[np.float64]:
        shape = (self.n_states, self.n_actions)
        if callable(reward):
            array = self._rewards(reward, progress)
        else:
            array = as_floats(reward, "reward")
            if array.ndim == 0:
                array = np.full(shape, float(array))
            elif enumerated:
                problem = "with a transition function, it must be a function (state, action) → number"
                raise ParameterError("reward", reward, "a function", problem)
            checked_shape("reward", array, shape, "(states, actions)")
            array = np.where(self.terminal[:, None], 0.0, array)
        return checked_rewards(
            array, self.discount, lambda s, a: f"reward({self.space.state(s)!r}, {self.actions[a]!r})"
        )

    def _reach(self) -> NDArray[np.bool_]:
        """Return the states on a path from an initial one, by a breadth-first search from an extra node."""
        if self._given is not None:
            return self._given.reach(self.initial > 0.0, self.terminal)
        n = self.n_states
        steps = sparse.csr_array(sum(self.transition, sparse.csr_array((n, n))))
        start = sparse.csr_array(self.initial[None, :])
        corner = sparse.csr_array((1, 1))
        graph = sparse.block_array([[steps, None], [start, corner]], format="csr")
        order = csgraph.breadth_first_order(graph, n, return_predecessors=False)
        reachable = np.zeros(n + 1, dtype=np.bool_)
        reachable[order] = True
        return reachable[:n]


def checked_mdp(mdp: object) -> FactoredMDP:
    """Return an MDP; say what to give instead where something else came."""
    return checked_instance("mdp", mdp, FactoredMDP, "a FactoredMDP", "a MissMDP has one in .mdp")


def _without_rows(matrix: sparse.csr_array, drop: NDArray[np.bool_]) -> sparse.csr_array:
    """Return the matrix with the dropped rows' stored values zeroed, also where they are NaN."""
    keep = np.repeat(~drop, np.diff(matrix.indptr))
    return sparse.csr_array(
        (np.where(keep, matrix.data, 0.0), matrix.indices, matrix.indptr), shape=matrix.shape
    )


def reward_horizon(reward: NDArray[np.float64], discount: float, precision: float = 1e-3) -> int:
    """Return the number of steps after which less than `precision` of discounted reward is left."""
    precision = checked_number("precision", precision, above=0.0)
    if discount == 0.0:
        return 1
    largest = float(np.abs(reward).max()) or 1.0
    # In logarithms, so nothing underflows.
    log_target = math.log1p(-discount) + math.log(precision) - math.log(largest)
    return max(1, math.ceil(log_target / math.log(discount)))


def _with_last_action(mdp: FactoredMDP, given: Factors | None, name: str, none: Any) -> FactoredMDP:
    """Return the MDP whose states also say which action led to them; see `FactoredMDP.with_last_action`."""
    if checked_text("name", name) in mdp.space.features.names:
        raise ParameterError("name", name, "a new name", f"there is a feature {name!r} already")
    none = plain(none)
    if not isinstance(none, Hashable):
        raise ParameterError("none", none, "a value")
    if none in mdp.actions:
        problem = f"{none!r} is an action; give another value for 'no action yet'"
        raise ParameterError("none", none, "no action", problem)
    if given is not None:
        return _factors_with_last_action(mdp, given, name, none)
    n_copies = mdp.n_actions + 1
    entries = sum(matrix.nnz for matrix in mdp.transition) * n_copies
    check_fits(
        f"this MDP with its last action, with {entries:.2g} transitions,", 60.0 * entries, _WRITE_FACTORS
    )
    # Copy 0 of a state is "none", copy a + 1 follows action a; s * n_copies + copy keeps the order of rank.
    occurs = np.zeros((mdp.n_states, n_copies), dtype=np.bool_)
    starts = np.flatnonzero(mdp.initial > 0.0)
    occurs[starts, 0] = True
    alive = np.flatnonzero(mdp.reachable & ~mdp.terminal)
    for a, matrix in enumerate(mdp.transition):
        occurs[matrix[alive].indices, a + 1] = True
    kept = np.flatnonzero(occurs.reshape(-1))
    state, copy = np.divmod(kept, n_copies)
    place = np.full(mdp.n_states * n_copies, -1)
    place[kept] = np.arange(len(kept))

    def lift(a: int, matrix: sparse.csr_array) -> sparse.csr_array:
        rows = matrix[state]
        columns = place[rows.indices.astype(np.int64) * n_copies + a + 1]
        # Rows of terminal states lead to copies that need not exist: they are overwritten anyway.
        data = np.where(columns < 0, 0.0, rows.data)
        return sparse.csr_array((data, np.maximum(columns, 0), rows.indptr), shape=(len(kept), len(kept)))

    initial = np.zeros(len(kept))
    initial[place[starts * n_copies]] = mdp.initial[starts]
    features = FeatureSpace({**mdp.features, name: (none, *mdp.actions)})
    return FactoredMDP(
        features,
        mdp.actions,
        [lift(a, matrix) for a, matrix in enumerate(mdp.transition)],
        mdp.reward[state],
        initial,
        mdp.terminal[state],
        mdp.discount,
        states=StateSpace(features, np.column_stack([mdp.space.codes[state], copy])),
    )


def _check_size(space: FeatureSpace, n_actions: int, max_states: int) -> None:
    """Raise `ModelError` if codes and rewards of all combinations would not fit into memory."""
    n_states = math.prod(map(int, space.sizes))
    if n_states > max_states:
        return  # which is said elsewhere
    # Codes, and whether they are right; numbers of states, beliefs and flags; rewards, their sum and a copy.
    each = 2.0 * len(space) * space.code_dtype.itemsize + 64.0 + 24.0 * n_actions
    check_fits(
        f"a model of {n_states:,} states and {n_actions:,} actions",
        n_states * each,
        "leave out features, or give them fewer values",
    )


def _factors_with_last_action(mdp: FactoredMDP, given: Factors, name: str, none: Any) -> FactoredMDP:
    """Return the same for an MDP that is given by factors: all combinations are states, reachable or not."""
    names = mdp.space.features.names
    tables = {
        names[i]: ([names[p] for p in scope.parents], scope.table) for i, scope in enumerate(given.scopes)
    }
    tables[name] = ([], np.eye(mdp.n_actions, mdp.n_actions + 1, 1))
    features = FeatureSpace({**mdp.features, name: (none, *mdp.actions)})
    n_copies = mdp.n_actions + 1
    n_states = mdp.n_states * n_copies
    check_fits(
        f"this MDP with its last action, of {n_states:,} states,",
        n_states * (24.0 * mdp.n_actions + 12.0 * len(features)),
        "state what matters of the last action as a feature of your own",
    )
    return FactoredMDP(
        features,
        mdp.actions,
        Factors(features, mdp.actions, tables),
        np.repeat(mdp.reward, n_copies, axis=0),
        np.multiply.outer(mdp.initial, np.eye(n_copies)[0]).reshape(-1),
        np.repeat(mdp.terminal, n_copies),
        mdp.discount,
        max_states=max(n_states, 1),
    )
