"""A diagnosis in sentences."""

from __future__ import annotations

from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.diagnosis.rows import ClassScore, Driver, NestedTest

__all__ = [
    "class_words",
    "driver_words",
    "in_sentences",
    "learner_name",
    "p_words",
    "test_words",
    "type_words",
    "variable_words",
]

_TYPES = {
    "MCAR": "MCAR: what is missing depends on nothing.",
    "simple MAR": "simple MAR: what is missing depends on always-observed features only.",
    "MAR": "MAR: what is missing depends on values only where these are seen.",
    "MNAR": "MNAR: what is missing depends on values that are not seen.",
    "not simple MAR": "not simple MAR: what is missing depends on values that go missing themselves.",
}


_LEARNERS = {"amcar": "AMCAR", "asmar": "AsMAR", "aimi": "AIMI", "icin": "ICIN", "em": "DynamicsEM"}


def in_sentences(diagnosis: Diagnosis) -> str:
    """Return all that a diagnosis says."""
    if not diagnosis.blocks:
        return f"Nothing is missing in {diagnosis.n_steps:,} observations."
    lines = [type_words(diagnosis)]
    for block, rate in zip(diagnosis.blocks, diagnosis.rates, strict=True):
        own = [driver for driver in diagnosis.drivers if driver.features == block]
        lines.append(f"{' and '.join(block)}: missing in {rate:.1%}{_because(own)}")
    lines += [test_words(test) for test in (*diagnosis.tests, *diagnosis.own_tests)]
    lines.append(f"Scores (higher is better): {'; '.join(class_words(row) for row in diagnosis.classes)}.")
    lines.append(f"Learner: {learner_name(diagnosis.recommended)}. {diagnosis.reason}")
    return "\n".join([*lines, *(f"Note: {note}." for note in diagnosis.notes)])


def learner_name(label: str) -> str:
    """Return the learner's name."""
    return _LEARNERS[label]


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
    verdict = "the data speak against it" if test.rejected else "the data do not speak against it"
    return f"{test.null} ({', '.join(test.features)}) against {test.alternative}: {verdict}, {p_words(test.p_value)}."


def p_words(p_value: float) -> str:
    """Return a p-value for people."""
    return "p < 1e-300" if p_value < 1e-300 else f"p = {p_value:.2g}"
