"""What a certificate says, and what it rests on.

Theorem 3's support test says whether the data show every pattern that a state can have. If every pattern that occurs
has a probability of at least p, one that did not occur in n samples is impossible except with a chance of (1 − p)ⁿ.

Deviation: the paper's p bounds all M(z | s), and is 0 as soon as something cannot be seen. We take the positive ones.
The certificates need neither p nor equal supports: the test is reported besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from missmdp.checks import checked_number
from missmdp.evaluation.certificate.alternatives import Alternative, Deployed, Terms
from missmdp.evaluation.certificate.learned import Halving
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.solving import SolveResult
from missmdp.words import bound_above, bound_below, count, number

_DEPLOYED: dict[Deployed, str] = {
    "policy": "the policy that tracks the belief under M̂",
    "controller": "the policy graph, the solver's finite controller",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """With probability at least `confidence`, `policy` is within `epsilon` of optimal in the true miss-MDP.

    This holds if `assumes` does, and under the `conditions`. The probability is over the data that M̂ was learned
    from.
    """

    epsilon: float
    """V*_P − V_P(π̂) is at most this."""
    confidence: float
    method: str
    """Which certificate is the smallest: one of `alternatives`, or "trivial"."""
    assumes: str
    """The learner's assumption on how values go missing."""
    deploys: Deployed
    """What is certified: "policy" (the solver's policy, which mostly tracks the belief) or "controller" (the graph)."""
    policy: AlphaVectorPolicy | FiniteController | MemoryPolicy
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
        """Whether it says no more than was known without data."""
        return self.epsilon >= self.trivial

    @property
    def relative(self) -> float:
        """ε as a share of `trivial`; 0 if all policies are worth the same."""
        return self.epsilon / self.trivial if self.trivial > 0.0 else 0.0

    @property
    def dominating(self) -> str:
        """The largest term of ε: "solver", "learning, before planning" or "learning, after planning"."""
        return self.terms.dominating

    def __str__(self) -> str:
        vacuous = ", which says nothing" if self.vacuous else ""
        return (
            f"within {bound_above(self.epsilon)} of optimal with probability at least {self.confidence:.12g}, "
            f"assuming {self.assumes} ({self.method}{vacuous})"
        )

    def __repr__(self) -> str:
        return f"Certificate({self})"

    def describe(self) -> str:
        """Return what it says, what it rests on and what else was tried, in lines of text."""
        lines = [
            f"Assuming {self.assumes}: with probability at least {self.confidence:.12g}, "
            f"{self._deployed(self.deploys)}, is within {bound_above(self.epsilon)} of optimal in the true miss-MDP.",
        ]
        share = (
            f"{100.0 * self.relative:.2g} % of {number(self.trivial)}, the best minus the worst controller"
        )
        if self.vacuous:
            lines[0] += " That is vacuous: it is true of every policy."
            lines.append(f"The smallest bound from the data is {self._smallest()}.")
        else:
            lines.append(
                f"That is {share}. Its value is in [{bound_below(self.value_lower)}, "
                f"{bound_above(self.value_upper)}], and no policy is worth more than "
                f"{bound_above(self.best_upper)}."
            )
        lines.append(
            f"Of the bound, learning adds {number(self.terms.before_planning)} before planning and "
            f"{number(self.terms.after_planning)} after it, the solver {number(self.terms.solver)}."
        )
        if self.samples_to_halve is not None:
            lines.append(self.samples_to_halve.describe())
        lines += ["", "Certificates:", *self._table(), "", "Conditions:"]
        lines += [f"- {condition}" for condition in self.conditions]
        return "\n".join(lines)

    def _deployed(self, deploys: Deployed) -> str:
        # Where a memory is certified, there is no other policy.
        return (
            "the policy that remembers a node per feature"
            if isinstance(self.policy, MemoryPolicy)
            else _DEPLOYED[deploys]
        )

    def _smallest(self) -> str:
        smallest = min((a.epsilon for a in self.alternatives.values() if not a.reference), default=math.inf)
        return bound_above(smallest)

    def _table(self) -> list[str]:
        width = max(len(name) for name in self.alternatives)
        rows: list[str] = []
        for name, found in self.alternatives.items():
            said = found.why or f"{bound_above(found.epsilon)}, for {self._deployed(found.deploys)}"
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


def conditions(
    result: SolveResult,
    learner: CountingEstimator,
    bound: Bound,
    chosen: Alternative,
    support: SupportTest | None,
    failure: float,
) -> tuple[str, ...]:
    """Return what a certificate rests on."""
    said = [
        f"How values go missing is assumed to be {bound.assumes}, which data cannot prove; T, ρ and b₀ are taken as "
        "known.",
        _behaviour(bound),
        _budget(learner, bound, failure),
        _deployed(result.policy, chosen),
        _solver(result, chosen),
    ]
    unseen = sum(group.samples == 0 for group in bound.per_group)
    if unseen:
        said.append(f"There are no data for {count(unseen, 'group')} of states, where anything is possible.")
    if support is not None:
        said.append(support.describe())
    return tuple(said)


def _behaviour(bound: Bound) -> str:
    if bound.behaviour == "blind":
        return "The data come from a policy that does not react to observations (blind)."
    return "The data may come from a policy that reacts to observations (adaptive): the bounds hold for any."


def _budget(learner: CountingEstimator, bound: Bound, failure: float) -> str:
    ways = learner.structure_.candidates
    split = f"The failure budget of {failure:.3g} is split over {count(bound.n_groups, 'group')}"
    if ways > 1:
        split += f", times {ways:,} ways in which the data could have decided what the groups are"
    simulated = failure - (1.0 - bound.confidence)
    if simulated > 1e-9:
        split += f"; {simulated:.3g} of it is set aside for simulated visits"
    return f"{split}. All certificates rest on the same event, so choosing the smallest costs nothing."


def _deployed(policy: AlphaVectorPolicy | MemoryPolicy, chosen: Alternative) -> str:
    if chosen.deploys == "policy":
        kind = (
            "remembers a node per feature"
            if isinstance(policy, MemoryPolicy)
            else "tracks the belief under M̂"
        )
        return (
            f"What is certified is the policy that {kind}; the bound holds for every policy that "
            "decides by its observations."
        )
    return (
        "What is certified is the policy graph (certificate.policy), which keeps track of a node instead of a belief; "
        'for the policy that tracks the belief, pass deploy="policy".'
    )


def _solver(result: SolveResult, chosen: Alternative) -> str:
    bounds = f"The solver's bounds for M̂ hold however it ended ({result.status})"
    if isinstance(result.policy, MemoryPolicy):
        return f"{bounds}; `lower` was evaluated for this very policy."
    if chosen.deploys == "policy":
        return f"{bounds}; `lower` was evaluated for the vectors that remain after pruning."
    again = " So do those for the model that reveals what is open." if chosen.method == "revealing" else ""
    return f"{bounds}; the graph was evaluated again in M̂, so pruning does not matter.{again}"


@dataclass(frozen=True)
class SupportTest:
    """Whether the patterns in the data are all that there are."""

    minimum_probability: float
    """p: patterns that occur at all have at least this probability."""
    confidence: float
    needed: int
    """Samples that every group needs."""
    short: int
    """Groups that have fewer."""
    fewest: int
    """Samples of the group with fewest."""

    @property
    def established(self) -> bool:
        """Whether every group has enough samples."""
        return self.short == 0

    def describe(self) -> str:
        """Return what the test says, in a sentence."""
        known = (
            f"If no pattern that occurs has a probability below {self.minimum_probability:g}, then with probability "
            f"at least {self.confidence:g}"
        )
        if self.established:
            return f"{known} the data show all patterns that occur: unsmoothed, M̂ has the support of M (Theorem 3)."
        return (
            f"{known} {self.needed:,} samples show all patterns of a group; {count(self.short, 'group')} have fewer "
            f"({self.fewest:,} at least), so equal supports (Theorem 3) are not established."
        )


def support_test(
    learner: CountingEstimator, bound: Bound, minimum_probability: float, confidence: float
) -> SupportTest:
    """Return whether the supports of M̂, unsmoothed, and M are the same.

    The number of samples that is needed does not depend on what was seen, so behaviour may be adaptive.
    """
    minimum_probability = checked_number("minimum_probability", minimum_probability, above=0.0, below=1.0)
    structure = learner.structure_
    cells = structure.candidates * sum(_categories(group, structure.hidden) for group in bound.per_group)
    failure = (1.0 - confidence) / max(cells, 1)
    needed = math.ceil(math.log(failure) / math.log1p(-minimum_probability))
    samples = [group.samples for group in bound.per_group]
    return SupportTest(
        minimum_probability,
        confidence,
        needed,
        sum(n < needed for n in samples),
        min(samples, default=0),
    )


def _categories(group: GroupBound, hidden: int) -> int:
    together = len(group.patterns) == 2
    return (2 if together else 2 ** len(group.features)) + hidden
