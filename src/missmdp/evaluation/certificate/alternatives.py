"""The certificates that can be computed for one policy, each with its terms.

V*_P − V_P(π̂) ≤ (an upper bound on V*_P) − (a lower bound on V_P(π̂)). What they differ in:

| | V*_P is at most | V_P(π̂) is at least |
|---|---|---|
| closed form | upper + C | lower − C |
| policy-uniform | upper + b₀·U | lower − b₀·U |
| occupancy | upper + b₀·U | V_P̂(graph) − Σ_s d(s) ε(s) W(s) |
| robust | upper + b₀·U | the graph's value at worst, with TV balls around M̂ |
| revealing | the upper bound for M⁺, if that is less | the same |

`lower` and `upper` are the solver's bounds for P̂; C, U and W are in `uniform`, M⁺ in `learned`. The policy graph is the
solver's finite controller. Where b₀·U is used beside the graph, V*_P is also at most what a controller gets that sees
everything.

The policy that tracks the belief cannot be evaluated exactly. Its occupancy certificate uses simulated visits, and that
costs part of the failure budget: episodes in P̂ are independent, and their discounted charges Σ_t γᵗ ε(s_t) W(s_t) are
bounded. So the mean over all episodes is at most what Maurer's and Pontil's empirical Bernstein bound says, except with
a small probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.data.collect import collect
from missmdp.evaluation.certificate.controller_value import ControllerValues
from missmdp.evaluation.certificate.uniform import ValueSpan, closed_form, policy_uniform
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy

CertificateMethod = Literal["closed form", "policy-uniform", "occupancy", "robust", "revealing"]
Deployed = Literal["policy", "controller"]
"""The policy that tracks the belief, or the solver's finite controller: the policy graph."""

SIMULATED = "occupancy, simulated"
"""The occupancy certificate for the policy that tracks the belief."""

METHODS: tuple[CertificateMethod, ...] = (
    "closed form",
    "policy-uniform",
    "occupancy",
    "robust",
    "revealing",
)


@dataclass(frozen=True)
class Terms:
    """What a bound on suboptimality is the sum of."""

    solver: float
    """What planning for P̂ left open: the solver's upper bound minus the value of what is deployed, both in P̂."""
    before_planning: float
    """How much more the best policy may be worth in P than the best in P̂."""
    after_planning: float
    """How much less what is deployed may be worth in P than in P̂."""

    @property
    def dominating(self) -> str:
        """The name of the largest."""
        named = {
            "learning, before planning": self.before_planning,
            "learning, after planning": self.after_planning,
            "solver": self.solver,
        }
        return max(named, key=lambda name: named[name])


@dataclass(frozen=True)
class Alternative:
    """One certificate, or why there is none."""

    method: str
    deploys: Deployed
    best: float
    """V*_P is at most this."""
    value_lower: float
    value_upper: float
    """V_P(π̂) is between these."""
    terms: Terms | None
    why: str = ""
    """Why there is no such certificate; empty if there is."""
    reference: bool = False
    """Whether it is shown for comparison only."""

    @property
    def epsilon(self) -> float:
        """Upper minus lower bound; infinite where there is none."""
        return self.best - self.value_lower

    @classmethod
    def none(cls, method: str, deploys: Deployed, why: str) -> Alternative:
        """Return that there is no such certificate."""
        return cls(method, deploys, np.inf, -np.inf, np.inf, None, why)


@dataclass(frozen=True, eq=False)
class CertificateInputs:
    """What certificates are computed from, but for the radii."""

    lower: float
    upper: float
    """The solver's bounds for P̂."""
    span: ValueSpan
    observe_initial: bool
    values: ControllerValues | None
    """The controller in P̂; None if there is none."""
    no_values: str = ""
    """Why not."""

    def closed(
        self, epsilon: NDArray[np.float64], method: str = "closed form", *, reference: bool = False
    ) -> Alternative:
        """Return the certificate of one formula."""
        return self._symmetric(method, closed_form(self.span, epsilon), reference=reference)

    def uniform(self, epsilon: NDArray[np.float64]) -> Alternative:
        """Return the certificate of the fixed point that holds for all policies."""
        return self._symmetric("policy-uniform", self.uniform_difference(epsilon))

    def uniform_difference(self, epsilon: NDArray[np.float64]) -> float:
        """Return b₀ · U."""
        return policy_uniform(self.span, epsilon, observe_initial=self.observe_initial)

    def occupancy(self, epsilon: NDArray[np.float64]) -> Alternative:
        """Return the certificate of the controller by the states that it visits in P̂."""
        if self.values is None:
            return Alternative.none("occupancy", "controller", self.no_values)
        (low, high), missed = self.values.value(), self.values.charged(epsilon * self.span.width)
        return self._of_controller("occupancy", self._best(epsilon), low - missed, high + missed)

    def simulated(self, epsilon: NDArray[np.float64], missed: float) -> Alternative:
        """Return the certificate of the policy that tracks the belief, by the states that it visited in simulations."""
        best = self._best(epsilon)
        before = max(best - self.upper, 0.0)
        terms = Terms(best - before - self.lower, before, missed)
        return Alternative(SIMULATED, "policy", best, self.lower - missed, self.upper + missed, terms)

    def robust(
        self, epsilon: NDArray[np.float64], unlisted: NDArray[np.float64] | None = None
    ) -> Alternative:
        """Return the certificate of the controller against nature at its worst."""
        if self.values is None:
            return Alternative.none("robust", "controller", self.no_values)
        worst = self.values.at_worst(epsilon, unlisted)
        best = self.values.at_best(epsilon, unlisted)
        return self._of_controller("robust", self._best(epsilon), worst, best)

    def revealing(self, robust: Alternative, upper: float) -> Alternative:
        """Return the certificate of the controller, with the upper bound for the model that reveals what is open."""
        return self._of_controller(
            "revealing", min(upper, robust.best), robust.value_lower, robust.value_upper
        )

    def _best(self, epsilon: NDArray[np.float64]) -> float:
        seen = float(self.span.mdp.initial @ self.span.high)
        return min(self.upper + self.uniform_difference(epsilon), seen)

    def _symmetric(self, method: str, difference: float, *, reference: bool = False) -> Alternative:
        terms = Terms(self.upper - self.lower, difference, difference)
        best, worst = self.upper + difference, self.lower - difference
        return Alternative(method, "policy", best, worst, best, terms, reference=reference)

    def _of_controller(self, method: str, best: float, low: float, high: float) -> Alternative:
        assert self.values is not None
        nominal = self.values.value()[0]
        # An upper bound for another model may come out below the one for P̂, which then was not tight.
        before = max(best - self.upper, 0.0)
        terms = Terms(best - before - nominal, before, nominal - low)
        return Alternative(method, "controller", best, low, high, terms)


SHARE = 0.1
"""The part of the failure budget that simulations get."""


def simulated_charge(
    policy: Policy, model: MissMDP, charge: NDArray[np.float64], episodes: int, failure: float, seed: int
) -> float:
    """Return an upper bound on Σ_s d(s) charge(s) in a model, which fails with probability at most `failure`.

    Parameters
    ----------
    policy
        The policy.
    model
        The miss-MDP that it acts in, P̂.
    charge
        What an observation of each state costs, not negative, shape (S,).
    episodes
        How many episodes to simulate; two at least.
    failure
        The failure budget.
    seed
        For the episodes.
    """
    discount, most = model.discount, float(charge.max(initial=0.0))
    horizon = model.mdp.horizon()
    # At least as many episodes as were decided on beforehand; that there may be more must not matter.
    data = collect(
        model, episodes * horizon, policy, seed=seed, horizon=horizon, keep_states=True, progress=False
    )
    assert data.states is not None
    starts = data.offsets[: episodes + 1]
    lengths = np.diff(starts)
    step = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
    paid = charge[data.states[: int(starts[-1])]] * discount**step
    totals = np.add.reduceat(paid, starts[:-1])
    spread = most * (1.0 - discount**horizon) / (1.0 - discount)
    later = most * discount**horizon / (1.0 - discount)
    log = math.log(2.0 / failure)
    chance = math.sqrt(2.0 * float(totals.var(ddof=1)) * log / episodes)
    return float(totals.mean()) + chance + 7.0 * spread * log / (3.0 * (episodes - 1)) + later
