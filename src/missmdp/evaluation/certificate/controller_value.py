"""What a finite controller is worth: exactly, at worst and at best where nature moves some probability.

Values are those of (node, state). Whatever the sweeps start from, after one that lets values fall by at most d they are
at most γd/(1 − γ) above the fixed point, since every sweep is monotone and contracts by γ. That is taken off, and added
where the bound is from above: the results are bounds, however early the sweeps end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.product import Against, reach_pairs, start_value, sweep_pairs
from missmdp.evaluation.certificate.product import ControllerProduct
from missmdp.evaluation.certificate.uniform import ValueSpan
from missmdp.evaluation.certificate.views import merged_views

__all__ = ["ControllerValues"]

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
        product, against, initial = merged_views(self.product.arrays, against, self.product.initial)
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
            if changed * left <= small:
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
