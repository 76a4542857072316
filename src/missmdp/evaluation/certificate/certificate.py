"""What a certificate says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from missmdp.evaluation.certificate.alternatives import Alternative, Deployed, Terms
from missmdp.evaluation.certificate.halve import Halving
from missmdp.evaluation.certificate.support import SupportTest
from missmdp.learn.bounds import Bound
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.words import signed

__all__ = ["Certificate"]

_DEPLOYED: dict[Deployed, str] = {
    "policy": "the policy that tracks the belief under M̂",
    "controller": "the policy graph, the solver's finite controller",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """With probability at least `confidence`, `policy` is within `epsilon` of optimal in the true miss-MDP.

    That holds if `assumes` does, and under the `conditions`. The probability is over the data that M̂ was learned from.
    """

    epsilon: float
    """V*_P − V_P(π̂) is at most this."""
    confidence: float
    method: str
    """Which certificate is the smallest: one of `alternatives`, or "trivial"."""
    assumes: str
    """The learner's assumption on how values go missing."""
    deploys: Deployed
    """What is certified: "policy" (it tracks the belief) or "controller" (the policy graph)."""
    policy: AlphaVectorPolicy | FiniteController
    """What is certified: deploy this."""
    terms: Terms
    """What ε is the sum of; of the smallest alternative where the certificate is trivial."""
    value_lower: float
    value_upper: float
    """V_P(π̂) is between these."""
    best_upper: float
    """V*_P is at most this."""
    trivial: float
    """b₀ · W: what is known without data, the value of the best minus that of the worst controller."""
    alternatives: dict[str, Alternative]
    """All certificates that were computed, by name, with what they say or why there is none."""
    conditions: tuple[str, ...]
    """What it rests on, in sentences."""
    bound: Bound = field(repr=False)
    """How far M̂ can be from M."""
    samples: int
    """Observations that M̂ was learned from."""
    samples_to_halve: Halving | None
    """How many more samples would halve ε; None if that was not asked for."""
    support: SupportTest | None
    """Theorem 3's support test, if p was given."""

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what is known without data."""
        return self.epsilon >= self.trivial

    @property
    def relative(self) -> float:
        """ε as a share of `trivial`; 0 where all policies are worth the same."""
        return self.epsilon / self.trivial if self.trivial > 0.0 else 0.0

    @property
    def dominating(self) -> str:
        """The term that ε is mostly made of: "solver", "learning, before planning" or "learning, after planning"."""
        return self.terms.dominating

    def __str__(self) -> str:
        vacuous = ", which says nothing" if self.vacuous else ""
        return (
            f"within {_no_more_than(self.epsilon)} of optimal with probability at least {self.confidence:.12g}, "
            f"assuming {self.assumes} ({self.method}{vacuous})"
        )

    def __repr__(self) -> str:
        return f"Certificate({self})"

    def describe(self) -> str:
        """Return what it says, what it rests on and what else was tried, in lines of text."""
        lines = [
            f"Assuming {self.assumes}: with probability at least {self.confidence:.12g}, {_DEPLOYED[self.deploys]}, is "
            f"within {_no_more_than(self.epsilon)} of optimal in the true miss-MDP.",
        ]
        share = (
            f"{100.0 * self.relative:.2g} % of {_number(self.trivial)}, the best minus the worst controller"
        )
        if self.vacuous:
            lines[0] += " That is vacuous: so is every policy."
            lines.append(
                f"Without data that is known too; the smallest bound with them is {self._smallest()}."
            )
        else:
            lines.append(
                f"That is {share}. Its value is in [{_no_less_than(self.value_lower)}, "
                f"{_no_more_than(self.value_upper)}], and no policy is worth more than "
                f"{_no_more_than(self.best_upper)}."
            )
        lines.append(
            f"Of the bound, learning adds {_number(self.terms.before_planning)} before planning and "
            f"{_number(self.terms.after_planning)} after it, the solver {_number(self.terms.solver)}."
        )
        if self.samples_to_halve is not None:
            lines.append(self.samples_to_halve.describe())
        lines += ["", "Certificates:", *self._table(), "", "Conditions:"]
        lines += [f"- {condition}" for condition in self.conditions]
        return "\n".join(lines)

    def _smallest(self) -> str:
        smallest = min((a.epsilon for a in self.alternatives.values() if not a.reference), default=math.inf)
        return _no_more_than(smallest)

    def _table(self) -> list[str]:
        width = max(len(name) for name in self.alternatives)
        rows: list[str] = []
        for name, found in self.alternatives.items():
            said = found.why or f"{_no_more_than(found.epsilon)}, for {_DEPLOYED[found.deploys]}"
            rows.append(f"  {name:{width}}  {said}" + ("  (for comparison)" if found.reference else ""))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers, strings, lists and mappings, for files."""
        halve = self.samples_to_halve
        return {
            "epsilon": self.epsilon,
            "confidence": self.confidence,
            "method": self.method,
            "assumes": self.assumes,
            "deploys": self.deploys,
            "vacuous": self.vacuous,
            "trivial": self.trivial,
            "value": [self.value_lower, self.value_upper],
            "best_upper": self.best_upper,
            "terms": {
                "solver": self.terms.solver,
                "before planning": self.terms.before_planning,
                "after planning": self.terms.after_planning,
            },
            "dominating": self.dominating,
            "alternatives": {
                name: {
                    "epsilon": None if found.why else found.epsilon,
                    "deploys": found.deploys,
                    "why": found.why,
                    "reference": found.reference,
                }
                for name, found in self.alternatives.items()
            },
            "samples": self.samples,
            "samples_to_halve": None
            if halve is None
            else {"factor": halve.factor, "samples": halve.samples, "more": halve.more, "why": halve.why},
            "support": None if self.support is None else self.support.describe(),
            "conditions": list(self.conditions),
        }


def _number(value: float) -> str:
    """Return a value with three digits or two decimals, whichever is more."""
    return signed(value, _places(value))


def _no_more_than(bound: float) -> str:
    """Return the same for a bound from above: rounded up, so that what is printed is one too."""
    return signed(_rounded(bound, ROUND_CEILING), _places(bound))


def _no_less_than(bound: float) -> str:
    """Return the same for a bound from below."""
    return signed(_rounded(bound, ROUND_FLOOR), _places(bound))


def _places(value: float) -> int:
    if not math.isfinite(value) or value == 0.0:
        return 2
    return max(2, 2 - math.floor(math.log10(abs(value)))) if abs(value) < 1.0 else 2


def _rounded(value: float, direction: str) -> float:
    if not math.isfinite(value):
        return value
    return float(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-_places(value)), rounding=direction))
