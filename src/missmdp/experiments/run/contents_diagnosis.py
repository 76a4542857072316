"""What run.json and the tables say about why values are missing."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.run.diagnosing import Reasons
from missmdp.learn.diagnosis.result import Diagnosis, type_words
from missmdp.learn.registry import learner_name

__all__ = [
    "CLASSES",
    "DRIVERS",
    "TESTS",
    "class_rows",
    "diagnosis_contents",
    "driver_rows",
    "test_rows",
]

DRIVERS = (
    "missing",
    "driver",
    "kind",
    "lowest",
    "lowest_rate",
    "highest",
    "highest_rate",
    "difference",
    "low",
    "high",
)
CLASSES = ("name", "log_likelihood", "n_parameters", "score", "behind", "best")
TESTS = ("tested", "against", "features", "statistic", "freedom", "p_value", "level", "rejected")
"""The columns of the tables."""


def diagnosis_contents(reasons: Reasons) -> dict[str, Any]:
    """Return what was found, or why nothing was."""
    found = reasons.diagnosis
    if found is None:
        return {"why_not": reasons.why_not, "found": None}
    own = {"summary": type_words(found), "learner": learner_name(found.recommended)}
    return {"why_not": None, "found": {**found.as_dict(), **own, "text": found.describe()}}


def driver_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
    """Return one row for each reason: how much more often something is missing at one value than at another."""
    return [
        {
            "missing": " + ".join(driver.features),
            "driver": driver.driver,
            "kind": "indicator" if driver.indicator else "own value" if driver.own else "value",
            # Values may be of many types, which one column cannot hold.
            "lowest": str(driver.lowest),
            "lowest_rate": driver.lowest_rate,
            "highest": str(driver.highest),
            "highest_rate": driver.highest_rate,
            "difference": driver.difference,
            "low": None if driver.interval is None else driver.interval[0],
            "high": None if driver.interval is None else driver.interval[1],
        }
        for driver in (found.drivers if found is not None else ())
    ]


def class_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
    """Return one row for each class of reasons: how well its best structure explains the data."""
    return [
        {
            **{name: getattr(row, name) for name in CLASSES[:-1]},
            "best": row.behind == 0.0,
        }
        for row in (found.classes if found is not None else ())
    ]


def test_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
    """Return one row for each likelihood-ratio test."""
    return [
        {
            "tested": test.null,
            "against": test.alternative,
            "features": " + ".join(test.features),
            **{name: getattr(test, name) for name in TESTS[3:]},
        }
        for test in ((*found.tests, *found.own_tests) if found is not None else ())
    ]
