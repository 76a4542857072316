"""The answer of a diagnosis, as values and in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from missmdp.learn.dynamics.result import DynamicsCheck, contradictions, headline
from missmdp.learn.registry import find_learner, learner_name
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph

if TYPE_CHECKING:
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.learn.joint.estimator import JointEM

JOINT = "joint"
"""The learner for logs without a model."""


@dataclass(frozen=True, eq=False)
class ClassScore:
    """A class of reasons, and how well its best structure explains the data."""

    name: str
    """"MCAR", "simple MAR", "MAR", "no self-censoring", "all parents"; "shown values" for single observations."""
    log_likelihood: float
    n_parameters: int
    score: float
    """Log-likelihood minus what it takes to tell the structure, as BIC has it: higher is better."""
    behind: float
    """How much lower the score is than the best one, in nats."""
    graph: MissingnessGraph
    """What the best structure of the class depends on."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "log_likelihood": self.log_likelihood,
            "n_parameters": self.n_parameters,
            "score": self.score,
            "behind": self.behind,
            "graph": graph_as_dict(self.graph),
        }


@dataclass(frozen=True)
class NestedTest:
    """A likelihood-ratio test of a class within a wider one."""

    null: str
    """What is tested, such as "simple MAR"."""
    alternative: str
    """What it is tested against, such as "no self-censoring"."""
    features: tuple[str, ...]
    """The features whose missingness it is about."""
    statistic: float
    """Twice the difference of the log-likelihoods."""
    freedom: int
    """Degrees of freedom of the chi-square distribution."""
    p_value: float
    level: float

    @property
    def rejected(self) -> bool:
        """Whether the data speak against what is tested, at the level."""
        return self.p_value < self.level

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "null": self.null,
            "alternative": self.alternative,
            "features": list(self.features),
            "statistic": self.statistic,
            "freedom": self.freedom,
            "p_value": self.p_value,
            "level": self.level,
            "rejected": self.rejected,
        }


@dataclass(frozen=True)
class Driver:
    """What makes a feature or block go missing, and how much.

    Rates are standardised: all else is distributed as it was visited, whatever the value of the driver.
    """

    features: tuple[str, ...]
    """What goes missing."""
    driver: str
    """The feature on whose value that depends, or the first feature of the block on whose indicator it does."""
    indicator: bool
    """Whether it depends on that being missing, rather than on its value."""
    lowest: Any
    highest: Any
    """The values at which the rate is lowest and highest; "seen" or "missing" for indicators."""
    lowest_rate: float
    highest_rate: float
    interval: tuple[float, float] | None
    """Of the difference, at 95 %, from a bootstrap, which guarantees nothing; None if none was made."""

    @property
    def difference(self) -> float:
        """How much more often it is missing at the one value than at the other."""
        return self.highest_rate - self.lowest_rate

    @property
    def own(self) -> bool:
        """Whether this is self-censoring."""
        return not self.indicator and self.driver in self.features

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "features": list(self.features),
            "driver": self.driver,
            "indicator": self.indicator,
            "own": self.own,
            "lowest": _plain(self.lowest),
            "highest": _plain(self.highest),
            "lowest_rate": self.lowest_rate,
            "highest_rate": self.highest_rate,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
        }


def graph_as_dict(graph: MissingnessGraph) -> dict[str, Any]:
    """Return an m-graph as plain values."""
    return {
        "features": list(graph.features),
        "can_go_missing": list(graph.can_go_missing),
        "edges": [list(edge) for edge in graph.edges],
        "dependent": [list(pair) for pair in graph.dependent],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Why values go missing, as far as a log can tell."""

    type: str
    """"MCAR", "simple MAR", "MAR" or "MNAR"; from single observations also "not simple MAR"."""
    self_censoring: tuple[str, ...]
    """The features whose own value drives whether they are missing, as the best structure has it."""
    blocks: tuple[tuple[str, ...], ...]
    """The features that go missing; those that go missing together are one block."""
    graph: MissingnessGraph
    """The m-graph of the best structure."""
    classes: tuple[ClassScore, ...]
    """The classes of reasons, narrowest first."""
    tests: tuple[NestedTest, ...]
    """Likelihood-ratio tests of each class within the next."""
    own_tests: tuple[NestedTest, ...]
    """For each block, the test that its own values play no part, given all other reasons."""
    drivers: tuple[Driver, ...]
    """What makes each block go missing, the strongest first."""
    rates: tuple[float, ...]
    """How often each block is missing."""
    recommended: str
    """The learner that suits: "amcar", "asmar", "aimi", "icin" or "em"; "joint" where the dynamics are learned too."""
    reason: str
    """Why."""
    snapshots_only: bool
    """Whether single observations were looked at only, without the dynamics."""
    n_steps: int
    notes: tuple[str, ...] = ()
    """What a reader should know."""
    dynamics: DynamicsCheck | None = None
    """Whether the dynamics fit the log: if they do not, all else is in doubt. None if that was not checked."""
    mdp: FactoredMDP = field(kw_only=True, repr=False)
    """The MDP; the one that was learned, if there was none."""
    joint: JointEM | None = field(default=None, kw_only=True, repr=False)
    """Where the dynamics were learned too: a learner with what was found of M, not fitted yet."""

    def learner(self) -> MissingnessEstimator:
        """Return the recommended learner, not fitted yet."""
        if self.joint is not None:
            return self.joint
        several = [block for block in self.blocks if len(block) > 1]
        # An m-graph cannot say that a value matters only where it is seen.
        structure = "auto" if self.type == "MAR" else self.graph
        given: dict[str, dict[str, Any]] = {
            "aimi": {"blocks": several},
            "icin": {"blocks": self.blocks},
            "em": {"structure": structure},
        }
        return find_learner(self.recommended).make(self.mdp, **given.get(self.recommended, {}))

    def describe(self) -> str:
        """Return a description in sentences."""
        return in_sentences(self)

    def __str__(self) -> str:
        return self.describe()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "type": self.type,
            "self_censoring": list(self.self_censoring),
            "blocks": [list(block) for block in self.blocks],
            "rates": list(self.rates),
            "graph": graph_as_dict(self.graph),
            "classes": [row.as_dict() for row in self.classes],
            "tests": [row.as_dict() for row in self.tests],
            "own_tests": [row.as_dict() for row in self.own_tests],
            "drivers": [row.as_dict() for row in self.drivers],
            "recommended": self.recommended,
            "reason": self.reason,
            "snapshots_only": self.snapshots_only,
            "n_steps": self.n_steps,
            "notes": list(self.notes),
            **({} if self.dynamics is None else {"dynamics": self.dynamics.as_dict()}),
        }


_TYPES = {
    "MCAR": "MCAR: what is missing depends on nothing.",
    "simple MAR": "simple MAR: what is missing depends on always-observed features only.",
    "MAR": "MAR: what is missing depends on values only where these are seen.",
    "MNAR": "MNAR: what is missing depends on values that are not seen.",
    "not simple MAR": "not simple MAR: what is missing depends on values that go missing themselves.",
}


def in_sentences(diagnosis: Diagnosis) -> str:
    """Return all that a diagnosis says."""
    if not diagnosis.blocks:
        nothing = f"Nothing is missing in {diagnosis.n_steps:,} observations."
        notes = [f"Note: {note}." for note in diagnosis.notes]
        return "\n".join([*doubt_words(diagnosis), nothing, *dynamics_words(diagnosis), *notes])
    lines = [*doubt_words(diagnosis), type_words(diagnosis)]
    for block, rate in zip(diagnosis.blocks, diagnosis.rates, strict=True):
        own = [driver for driver in diagnosis.drivers if driver.features == block]
        lines.append(f"{' and '.join(block)}: missing in {rate:.1%}{_because(own)}")
    lines += [test_words(test) for test in (*diagnosis.tests, *diagnosis.own_tests)]
    lines.append(f"Scores (higher is better): {'; '.join(class_words(row) for row in diagnosis.classes)}.")
    lines += dynamics_words(diagnosis)
    lines.append(f"Learner: {recommended_name(diagnosis)}. {diagnosis.reason}")
    return "\n".join([*lines, *(f"Note: {note}." for note in diagnosis.notes)])


def recommended_name(diagnosis: Diagnosis) -> str:
    """Return what the recommended learner is called."""
    return "JointEM" if diagnosis.recommended == JOINT else learner_name(diagnosis.recommended)


def doubt_words(diagnosis: Diagnosis) -> list[str]:
    """Return what comes first if the log contradicts the dynamics."""
    check = diagnosis.dynamics
    if check is None or not check.rejected:
        return []
    return [*contradictions(check), "What follows takes T as given, so it is in doubt too."]


def dynamics_words(diagnosis: Diagnosis) -> list[str]:
    """Return what is said of dynamics that the log does not contradict."""
    check = diagnosis.dynamics
    return [] if check is None or check.rejected else [f"Dynamics: {headline(check)}"]


def type_words(diagnosis: Diagnosis) -> str:
    """Return the type, and what censors itself."""
    words = _TYPES[diagnosis.type]
    if diagnosis.self_censoring:
        words += f" Self-censoring: {', '.join(diagnosis.self_censoring)}."
    return words


def _because(drivers: list[Driver]) -> str:
    if not drivers:
        return ", whatever the state."
    return "; " + "; ".join(driver_words(driver) for driver in drivers) + "."


def variable_words(driver: Driver) -> str:
    """Return what a rate goes by."""
    if driver.indicator:
        return f"{driver.driver} being missing"
    return f"{driver.driver} (itself)" if driver.own else driver.driver


def driver_words(driver: Driver) -> str:
    """Return how much a reason matters."""
    own = "its own value" if driver.own and len(driver.features) == 1 else driver.driver
    spread = ""
    if driver.interval is not None:
        low, high = (100.0 * end for end in driver.interval)
        spread = f" (95% interval of the difference: {low:.1f} to {high:.1f} points)"
    return (
        f"{driver.highest_rate:.1%} where {own} is {driver.highest}, {driver.lowest_rate:.1%} where it is "
        f"{driver.lowest}{spread}"
    )


def class_words(row: ClassScore) -> str:
    """Return a class and its score."""
    return f"{row.name} {f'−{row.behind:,.1f}' if row.behind else 'best'}"


def test_words(test: NestedTest) -> str:
    """Return what a test says."""
    verdict = "the data contradict it" if test.rejected else "the data do not contradict it"
    return f"{test.null} ({', '.join(test.features)}) against {test.alternative}: {verdict}, {p_words(test.p_value)}."


def p_words(p_value: float) -> str:
    """Return a p-value for people."""
    return "p < 1e-300" if p_value < 1e-300 else f"p = {p_value:.2g}"
