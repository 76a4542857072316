"""What a finite controller is worth: exactly, at worst and at best where nature moves some probability.

Values are those of (node, state). Whatever the sweeps start from, after one that lets values fall by at most d they are
at most γd/(1 − γ) above the fixed point, since every sweep is monotone and contracts by γ. That is taken off, and added
where the bound is from above: the results are bounds, however early the sweeps end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.product import Against, Product, reach_pairs, start_value, sweep_pairs
from missmdp.data.simulation import interleaved
from missmdp.errors import ModelError
from missmdp.evaluation.certificate.state_aggregation import aggregate_states
from missmdp.evaluation.certificate.uniform import MOST_SWEEPS, ValueSpan
from missmdp.learn.groups import all_patterns
from missmdp.model.equal_rows import EqualRows, equal_rows
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import MISSING
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.finite.plan import NO_SIGHT

TOO_LARGE = 50_000_000
"""Pairs of a node and a class of states that are too many to evaluate (400 MB)."""

_MOST_ROWS = 2_000_000
"""States × patterns up to which every pattern is looked at."""


@dataclass(frozen=True, eq=False)
class ControllerProduct:
    """A controller in a miss-MDP."""

    arrays: Product
    reward: NDArray[np.float64]
    """ρ by class, shape (C, A)."""
    initial: NDArray[np.float64]
    """b₀, shape (S,)."""
    discount: float
    all_listed: bool
    """Whether every pattern that is possible has been listed."""
    guess: NDArray[np.float64]
    """The value of each node and class, more or less, shape (K, C)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and classes."""
        return len(self.arrays.action), len(self.reward)

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.initial)


def controller_product(
    controller: FiniteController,
    missingness: MissingnessFunction,
    can_go_missing: NDArray[np.bool_] | None = None,
    counted: NDArray[np.bool_] | None = None,
) -> ControllerProduct:
    """Return a controller in its MDP, where values go missing by any missingness function.

    Parameters
    ----------
    controller
        The controller; its own model has the MDP.
    missingness
        How values go missing.
    can_go_missing
        The features that nature may let go missing besides, shape (n,); by default those that do.
    counted
        The patterns that a learner counts, besides those that occur, shape (…, n).

    Raises
    ------
    ModelError
        If that is too large to be evaluated, or not for a miss-MDP.
    """
    model = controller.model
    if not isinstance(model, MissMDP):
        raise ModelError("controllers can be evaluated exactly for miss-MDPs only")
    mdp = model.mdp
    if missingness.space != mdp.space:
        raise ModelError("the missingness function is over other states than the controller's MDP")
    class_of, members = _classes(mdp)
    pairs = controller.n_nodes * len(members)
    if pairs > TOO_LARGE:
        raise ModelError(
            f"the policy graph is too large: {controller.n_nodes:,} nodes × {len(members):,} classes of states are "
            f"{pairs:.2g} pairs, at most {TOO_LARGE:.2g} are evaluated"
        )
    listed = _with(missingness.patterns, missingness.patterns if counted is None else counted)
    patterns, all_listed = _patterns(listed, len(missingness.space), can_go_missing)
    n_listed = len(listed)
    follow, looks = _following(mdp, members), _sightings(controller, missingness, patterns, n_listed)
    plan = controller.plan
    return ControllerProduct(
        Product(
            action=np.array(plan.action),
            node_start=np.array(plan.start),
            node_sight=np.array(plan.sight),
            successor=np.array(plan.successor),
            root=plan.root,
            n_sights=int(max(plan.sight.max(initial=0), plan.sight_of.max(initial=0))) + 1,
            start=np.array(follow.indptr, dtype=np.int64),
            state=np.array(follow.indices, dtype=np.int32),
            prob=np.array(follow.data, dtype=np.float64),
            class_of=class_of,
            seen_start=looks.seen_start,
            seen_sight=looks.seen_sight,
            seen_prob=looks.seen_prob,
            seen_listed=looks.seen_listed,
            seen_default=looks.seen_default,
            other_start=looks.other_start,
            other_node=looks.other_node,
        ),
        np.ascontiguousarray(mdp.reward[members]),
        np.array(mdp.initial),
        mdp.discount,
        all_listed,
        _guess(controller, class_of, len(members)),
    )


def _classes(mdp: FactoredMDP) -> EqualRows:
    """Return the class of each state, −1 for terminal ones, and a state of each; a class has one future."""
    return equal_rows(mdp.transition, (mdp.reward,), np.flatnonzero(~mdp.terminal).tolist())


def _guess(controller: FiniteController, class_of: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Return a node's own vector, and where that says nothing the best vector for the state; shape (K, C)."""
    policy = controller.policy
    best = np.zeros(n_classes)
    for component in policy.components:
        best[class_of[component.states]] = component.values.max(axis=0)
    guess = np.repeat(best[None, :], controller.n_nodes, axis=0)
    for first, component in zip(policy.value_function.table.first, policy.components, strict=False):
        guess[int(first) : int(first) + len(component), class_of[component.states]] = component.values
    return guess


def _following(mdp: FactoredMDP, members: NDArray[np.int64]) -> sparse.csr_array:
    """Return γ T(s′ | s, a) without terminal s′, with row c · A + a for class c."""
    going_on = sparse.diags_array(mdp.discount * (~mdp.terminal).astype(np.float64))
    rows = [sparse.csr_array(matrix[members] @ going_on) for matrix in mdp.transition]
    joint = sparse.csr_array(interleaved(rows))
    joint.eliminate_zeros()
    return joint


def _patterns(
    listed: NDArray[np.bool_], n_states: int, can_go_missing: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], bool]:
    """Return the listed patterns, then all others that are possible, and whether these are all of them."""
    if can_go_missing is None:
        return listed, True
    open_ = can_go_missing | ~listed.all(axis=0)
    if 2.0 ** int(open_.sum()) * n_states > _MOST_ROWS:
        return listed, False
    return _with(listed, all_patterns(open_)), True


def _with(patterns: NDArray[np.bool_], more: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return patterns and those of `more` that are not among them."""
    known = {row.tobytes() for row in np.ascontiguousarray(patterns)}
    new = [row for row in np.ascontiguousarray(more) if row.tobytes() not in known]
    return np.concatenate([patterns, np.array(new, dtype=np.bool_).reshape(-1, patterns.shape[1])])


class _Sightings(NamedTuple):
    """What each state can look like; see `Product`."""

    seen_start: NDArray[np.int64]
    seen_sight: NDArray[np.int64]
    seen_prob: NDArray[np.float64]
    seen_listed: NDArray[np.bool_]
    seen_default: NDArray[np.int64]
    other_start: NDArray[np.int64]
    other_node: NDArray[np.int64]


def _sightings(
    controller: FiniteController,
    missingness: MissingnessFunction,
    patterns: NDArray[np.bool_],
    n_listed: int,
) -> _Sightings:
    """Return what each state can look like to the controller, and where that leads."""
    space, plan = missingness.space, controller.plan
    n_states, n_patterns = len(space), len(patterns)
    codes = np.where(patterns[None, :, :], space.codes[:, None, :], MISSING).reshape(-1, patterns.shape[1])
    _, first, number = np.unique(space.features.rank(codes), return_index=True, return_inverse=True)
    distinct, number = codes[first], number.reshape(-1)
    place = controller.places_of_codes(distinct)
    sight = np.where(place == NO_SIGHT, NO_SIGHT, plan.sight_of[0, place])[number]
    default = controller.defaults_of_codes(distinct)[number]
    probability = np.zeros((n_states, n_patterns))
    probability[:, : missingness.n_patterns] = missingness.probabilities
    flat = probability.reshape(-1)
    counted = np.tile(np.arange(n_patterns) < n_listed, n_states)
    seen = (flat > 0.0) | (sight != NO_SIGHT) | counted
    by_state = seen.reshape(n_states, n_patterns).sum(axis=1)
    others = [np.unique(nodes) for nodes in np.split(default[~seen], np.cumsum(n_patterns - by_state)[:-1])]
    return _Sightings(
        seen_start=np.concatenate([[0], np.cumsum(by_state)]).astype(np.int64),
        seen_sight=sight[seen].astype(np.int64),
        seen_prob=np.ascontiguousarray(flat[seen]),
        seen_listed=counted[seen],
        seen_default=default[seen],
        other_start=np.concatenate([[0], np.cumsum([len(nodes) for nodes in others])]).astype(np.int64),
        other_node=np.concatenate(others),
    )


_SMALL = 1e-6
"""Of b₀ · W: sweeps end when they can be off by no more than that."""
_LEAP = 8
"""Sweeps after which the rest of the way is extrapolated; the next sweep says how far off that is."""


@dataclass(frozen=True, eq=False)
class ControllerValues:
    """Evaluates a controller; later evaluations begin where earlier ones ended."""

    product: ControllerProduct
    span: ValueSpan
    kept: dict[str, NDArray[np.float64]]
    """Values of (node, class) by what they are for, shape (K, C) each."""

    @classmethod
    def of(cls, product: ControllerProduct, span: ValueSpan) -> ControllerValues:
        """Return what evaluates a controller, with nothing evaluated yet."""
        return cls(product, span, {})

    def value(self) -> tuple[float, float]:
        """Return bounds on the controller's value, as close as makes no difference."""
        return self._run("value", self._against(np.zeros(self.product.n_states), 1.0), self.product.guess)

    def at_worst(self, epsilon: NDArray[np.float64], unlisted: NDArray[np.float64] | None = None) -> float:
        """Return a lower bound on the value in every miss-MDP whose M is within ε(s) of this one, shape (S,).

        Where it is known that patterns which are not counted have no more than a certain probability in all,
        `unlisted` has it, shape (S,).
        """
        return self._run("worst", self._against(epsilon, 1.0, unlisted), self._nominal())[0]

    def at_best(self, epsilon: NDArray[np.float64], unlisted: NDArray[np.float64] | None = None) -> float:
        """Return an upper bound on the value in every miss-MDP whose M is within ε(s) of this one, shape (S,)."""
        return self._run("best", self._against(epsilon, -1.0, unlisted), self._nominal())[1]

    def charged(self, charge: NDArray[np.float64]) -> float:
        """Return an upper bound on Σ_s d(s) charge(s), with d the discounted number of observations in a state."""
        against = self._against(np.zeros(self.product.n_states), 1.0)
        against = against._replace(reward=np.zeros_like(against.reward), charge=np.array(charge))
        return self._run("charged", against, np.zeros(self.product.shape))[1]

    def with_product(self, product: ControllerProduct) -> ControllerValues:
        """Return the same for another missingness function, beginning where this one ended."""
        return replace(self, product=product, kept={name: old.copy() for name, old in self.kept.items()})

    def _against(
        self, epsilon: NDArray[np.float64], sign: float, unlisted: NDArray[np.float64] | None = None
    ) -> Against:
        if self.product.all_listed:
            beyond = np.full(self.product.n_states, math.inf)
        else:
            # Patterns that are too many to list: whatever the controller does then, no controller does worse.
            beyond = self.span.low if sign > 0.0 else -self.span.high
        return Against(
            reward=self.product.reward,
            charge=np.zeros(self.product.n_states),
            epsilon=np.array(epsilon),
            unlisted=np.array(epsilon if unlisted is None else np.minimum(unlisted, epsilon)),
            sign=sign,
            beyond=np.array(beyond),
        )

    def _nominal(self) -> NDArray[np.float64]:
        if "value" not in self.kept:
            self.value()
        return self.kept["value"]

    def _run(self, name: str, against: Against, start: NDArray[np.float64]) -> tuple[float, float]:
        """Sweep until little changes; return bounds on the fixed point's value at the start."""
        product, against, initial = aggregate_states(self.product.arrays, against, self.product.initial)
        needed = np.zeros(self.product.shape, dtype=np.bool_)
        stack = np.empty((needed.size, 2), dtype=np.int64)
        reach_pairs(product, against.epsilon, initial, against.reward.shape[1], needed, stack)
        values = self.kept.setdefault(name, start.copy())
        left = self.product.discount / (1.0 - self.product.discount)
        small = max(_SMALL * self.span.trivial, self.span.negligible)
        changed, sweeps, leapt_from = math.inf, 0, None
        while True:
            before = values.copy() if sweeps % _LEAP == _LEAP - 1 else None
            rise, fall = sweep_pairs(product, against, needed, values)
            last, changed = changed, max(rise, fall)
            sweeps += 1
            if changed * left <= small or sweeps >= MOST_SWEEPS:
                break
            if leapt_from is not None and changed > last:
                # Not so where states follow each other in cycles: leaps would lead away without end.
                values[...], changed = leapt_from, last
            leapt_from = None
            if before is not None and changed < last:
                # Changes shrink by a nearly constant factor: go at once where they lead to.
                leapt_from = values.copy()
                values += (values - before) * changed / (last - changed)
        value = start_value(product, against, initial, values)
        return value - fall * left, value + rise * left
