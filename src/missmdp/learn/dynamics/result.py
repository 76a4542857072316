"""The answer of a check of the dynamics, as values and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from missmdp.checks import checked_integer
from missmdp.words import count, listed, percent, shown

Verdict = Literal["fits", "rejected", "cannot tell"]


@dataclass(frozen=True)
class ProbabilityChange:
    """The change of a probability that the data ask for, on average over the steps that a test is about."""

    value: Any
    """The next value."""
    given: float
    """The probability in the MDP."""
    asked: float
    """The probability that the data ask for."""

    @property
    def size(self) -> float:
        """By how much it changes."""
        return self.asked - self.given

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"value": _plain(self.value), "given": self.given, "asked": self.asked}


@dataclass(frozen=True)
class DynamicsRow:
    """One test: of the probabilities of a feature's next value, with everything else as given."""

    feature: str
    action: Any
    """The action that it is about; None for all."""
    where: str
    """The states that it is about, such as "wear is new"; "" for all."""
    first: bool
    """Whether it is about the feature's first value (b₀) rather than its next one (T)."""
    statistic: float
    """Twice the difference of the log-likelihoods."""
    freedom: int
    """Degrees of freedom of the chi-square distribution; 0 where there was too little information for a test."""
    p_value: float
    adjusted: float
    """The p-value adjusted for the number of tests (Holm)."""
    change: ProbabilityChange | None
    """The largest change of a probability that the data ask for; None without a test."""
    steps: float
    """How many steps it rests on: those that show the feature afterwards, in expectation."""
    power: float
    """The chance to reject if the probability of a value were off by `DynamicsCheck.shift`."""
    verdict: Verdict
    reason: str
    """Why the test cannot tell; else ""."""

    @property
    def subject(self) -> str:
        """What is tested, in words."""
        parts = [f"first {self.feature}" if self.first else self.feature]
        if self.action is not None:
            parts.append(f"after {_word(self.action)}")
        if self.where:
            parts.append(f"where {self.where}")
        return " ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "feature": self.feature,
            "action": _plain(self.action),
            "where": self.where,
            "first": self.first,
            "statistic": self.statistic,
            "freedom": self.freedom,
            "p_value": self.p_value,
            "adjusted": self.adjusted,
            "change": None if self.change is None else self.change.as_dict(),
            "steps": self.steps,
            "power": self.power,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class DynamicsCheck:
    """Whether an MDP fits a log, whatever made values go missing."""

    rows: tuple[DynamicsRow, ...]
    """One per test, feature by feature."""
    level: float
    shift: float
    """The error of a probability that a test should see: it decides between "fits" and "cannot tell"."""
    missingness: str
    """What was assumed about how values go missing, in words."""
    impossible: int
    """Observations that the MDP rules out after what came before; they were left out of the tests."""
    examples: tuple[str, ...]
    """The first few of them."""
    n_steps: int
    notes: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether the log contradicts the MDP: a test rejects, or something impossible occurs."""
        return self.impossible > 0 or any(row.verdict == "rejected" for row in self.rows)

    @property
    def features(self) -> tuple[str, ...]:
        """The features whose next or first values the log contradicts."""
        return tuple(dict.fromkeys(row.feature for row in self.rows if row.verdict == "rejected"))

    def describe(self, most: int = 5) -> str:
        """Return the result in sentences, with at most so many tests of each kind."""
        return "\n".join(in_sentences(self, checked_integer("most", most, least=0)))

    def __str__(self) -> str:
        return self.describe()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "rejected": self.rejected,
            "features": list(self.features),
            "level": self.level,
            "shift": self.shift,
            "missingness": self.missingness,
            "impossible": self.impossible,
            "examples": list(self.examples),
            "n_steps": self.n_steps,
            "notes": list(self.notes),
            "rows": [row.as_dict() for row in self.rows],
        }


def in_sentences(check: DynamicsCheck, most: int) -> list[str]:
    """Return all that a check says, line by line."""
    lines = contradictions(check, most)
    fits = sum(row.verdict == "fits" for row in check.rows)
    if fits:
        lines.append(
            f"{count(fits, 'test')} found no contradiction, and would probably have seen {_shift(check)}."
        )
    unsure = [row for row in check.rows if row.verdict == "cannot tell"]
    if unsure:
        lines.append(f"{count(len(unsure), 'test')} cannot tell:")
        lines += [f"  {row.subject}: {row.reason}" for row in unsure[:most]]
        if len(unsure) > most:
            lines.append(f"  and {len(unsure) - most} more")
    lines.append(f"Assumed about gaps: {check.missingness}.")
    return [*lines, *(f"Note: {note}." for note in check.notes)]


def contradictions(check: DynamicsCheck, most: int = 5) -> list[str]:
    """Return whether the log contradicts the MDP, and where, line by line."""
    lines = [headline(check)]
    if check.impossible:
        lines.append(
            f"  {count(check.impossible, 'observation')} cannot happen in the MDP, for example "
            + "; ".join(check.examples)
        )
    clearest: dict[str, list[DynamicsRow]] = {}
    for row in sorted(check.rows, key=lambda row: row.p_value):
        if row.verdict == "rejected":
            clearest.setdefault(row.feature, []).append(row)
    for own in list(clearest.values())[:most]:
        more = f"; and {count(len(own) - 1, 'more test')} of {own[0].feature}" if len(own) > 1 else ""
        lines.append(f"  {row_words(own[0])}{more}")
    if len(clearest) > most:
        lines.append(f"  and {count(len(clearest) - most, 'more feature')}")
    return lines


def headline(check: DynamicsCheck) -> str:
    """Return the result in one sentence."""
    tests = f"{count(check.n_steps, 'observation')}, {count(len(check.rows), 'test')}, level {check.level:g}"
    if not check.rejected:
        known = any(row.verdict == "fits" for row in check.rows)
        says = (
            "The log does not contradict the MDP" if known else "The log cannot tell whether the MDP is right"
        )
        return f"{says} ({tests})."
    what = [*check.features, *(["impossible steps"] if check.impossible else [])]
    return f"The MDP is in doubt: the log contradicts it in {listed(what)} ({tests})."


def row_words(row: DynamicsRow, *, brief: bool = False) -> str:
    """Return what a test that rejects says; brief is without its p-value."""
    words, change = row.subject, row.change
    if change is not None:
        given, asked = percent(change.given, 1), percent(change.asked, 1)
        words += f": P({_word(change.value)}) is {given} in the MDP, {asked} in the log"
    return words if brief else f"{words} ({_p_words(row.adjusted)})"


def _shift(check: DynamicsCheck) -> str:
    return f"a probability that is off by {100.0 * check.shift:g} points"


def _p_words(p_value: float) -> str:
    return "adjusted p < 1e-300" if p_value < 1e-300 else f"adjusted p = {p_value:.2g}"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
