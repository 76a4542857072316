"""The tables of a run: .csv for people, .parquet for programs, written as soon as there is something to write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from missmdp.data.description.description import Description
from missmdp.evaluation.heldout import HeldOutScore
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Certified, Learned, World
from missmdp.experiments.tables import write_columns, write_table
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.table import learned_rows

_DRIVERS = (
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
_CLASSES = ("name", "log_likelihood", "n_parameters", "score", "behind", "best")
_TESTS = ("tested", "against", "features", "statistic", "freedom", "p_value", "level", "rejected")
_CERTIFICATES = (
    "learner",
    "certificate",
    "epsilon",
    "deploys",
    "taken",
    "vacuous",
    "for_comparison",
    "why_not",
)
_SENSITIVITY = ("what", "how", "size", "value", "stderr", "difference", "difference_stderr")
"""The columns of tables that may have no rows."""


class RunTables:
    """Writes the tables of a run.

    Parameters
    ----------
    folder
        The folder of the run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def write_data(self, description: Description) -> None:
        """Write how often each feature is missing."""
        self._write("data", _feature_rows(description))

    def write_learned(self, found: Iterable[Learned]) -> None:
        """Write a row for every learner, group and pattern, with the truth where it is known."""
        rows: list[dict[str, Any]] = []
        for learned in found:
            known = learned.group_truths
            truths = [] if known is None else [float(mean) for group in known for mean in group.mean]
            features = learned.model.space.features.names
            for i, row in enumerate(learned_rows(learned.bound, features)):
                # Values may be of many types, which one column cannot hold.
                words = {
                    name: None if value is None else str(value)
                    for name, value in row.items()
                    if name.startswith("given_")
                }
                truth = truths[i] if truths and not math.isnan(truths[i]) else None
                rows.append({"learner": learned.label, **row, **words, "truth": truth})
        self._write("learned", rows, ("learner",))

    def write_heldout(self, scores: Mapping[str, HeldOutScore] | None, recommended: str) -> None:
        """Write how well each learner predicts what it has not seen."""
        rows = [
            {"learner": label, **_heldout_row(score), "recommended": label == recommended}
            for label, score in (scores or {}).items()
        ]
        self._write("heldout", rows, ("learner",))

    def write_values(self, worlds: Iterable[World], confidence: float) -> None:
        """Write what each policy is worth in each world."""
        rows = [{"world": world.name, **row} for world in worlds for row in value_rows(world, confidence)]
        self._write("values", rows)

    def write_diagnosis(self, found: Diagnosis | None) -> None:
        """Write what drives missingness, how the classes of reasons do, and the tests."""
        self._write("drivers", _driver_rows(found), _DRIVERS)
        self._write("classes", _class_rows(found), _CLASSES)
        self._write("tests", _test_rows(found), _TESTS)

    def write_certificates(self, found: Mapping[str, Certified]) -> None:
        """Write how far from optimal policies can be in truth: a row for every learner and kind of certificate."""
        self._write("certificates", _certificate_rows(found), _CERTIFICATES)

    def write_sensitivity(self, found: Iterable[SensitivityRow]) -> None:
        """Write what the policy is worth where the model is another one."""
        self._write("sensitivity", sensitivity_rows(found), _SENSITIVITY)

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Write rows, or the columns alone where there are none."""
        for ending in (".csv", ".parquet"):
            path = self._folder.table(f"{name}{ending}")
            if rows:
                write_table(rows, path)
            else:
                write_columns({column: [] for column in columns}, path)


def value_rows(world: World, confidence: float) -> list[dict[str, Any]]:
    """Return one row per policy: its value, its difference to the reference, and its normalised value."""
    rows: list[dict[str, Any]] = []
    for row in world.comparison.rows(confidence):
        name = row["policy"]
        scaled = world.normalised.get(name)
        low, high = (None, None) if scaled is None else scaled.interval(confidence)
        rows.append(
            {
                "policy": name,
                "kind": world.kinds[name],
                **{key: row[key] for key in ("value", "stderr", "low", "high", "episodes")},
                **{key: value for key, value in row.items() if key.startswith("difference")},
                "normalised": None if scaled is None else scaled.mean,
                "normalised_stderr": None if scaled is None else scaled.stderr,
                "normalised_low": low,
                "normalised_high": high,
                "impossible": world.comparison[name].impossible,
            }
        )
    return rows


def sensitivity_rows(found: Iterable[SensitivityRow]) -> list[dict[str, Any]]:
    """Return one row per change of the model: what it is, and what it does to the value."""
    return [{name: getattr(row, name) for name in _SENSITIVITY} for row in found]


def _feature_rows(described: Description) -> list[dict[str, Any]]:
    """Return one row per feature: how often it is missing, with a 95 % interval as if rows were independent."""
    low, high = described.intervals
    return [
        {
            "feature": name,
            "rows": described.n_rows,
            "missing": int(described.missing[i]),
            "rate": float(described.rates[i]),
            "low": float(low[i]),
            "high": float(high[i]),
        }
        for i, name in enumerate(described.features)
    ]


def _heldout_row(score: HeldOutScore) -> dict[str, Any]:
    """Return how well a learner predicts what it has not seen, as one row."""
    names = (
        "per_step",
        "stderr",
        "steps",
        "folds",
        "difference",
        "difference_stderr",
        "impossible",
        "by",
        "outside",
        "units",
    )
    return {name: getattr(score, name) for name in names}


def _driver_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
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


def _class_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
    """Return one row for each class of reasons: how well its best structure explains the data."""
    return [
        {
            **{name: getattr(row, name) for name in _CLASSES[:-1]},
            "best": row.behind == 0.0,
        }
        for row in (found.classes if found is not None else ())
    ]


def _test_rows(found: Diagnosis | None) -> list[dict[str, Any]]:
    """Return one row for each likelihood-ratio test."""
    return [
        {
            "tested": test.null,
            "against": test.alternative,
            "features": " + ".join(test.features),
            **{name: getattr(test, name) for name in _TESTS[3:]},
        }
        for test in ((*found.tests, *found.own_tests) if found is not None else ())
    ]


def _certificate_rows(found: Mapping[str, Certified]) -> list[dict[str, Any]]:
    """Return one row for each learner and kind of certificate; one alone where there is none."""
    rows: list[dict[str, Any]] = []
    for label, one in found.items():
        if one.certificate is None:
            rows.append({**dict.fromkeys(_CERTIFICATES), "learner": label, "why_not": one.why_not})
            continue
        rows += [
            {
                "learner": label,
                "certificate": name,
                "epsilon": None if other.why else float(other.epsilon),
                "deploys": other.deploys,
                "taken": name == one.certificate.method,
                "vacuous": None if other.why else bool(other.epsilon >= one.certificate.trivial),
                "for_comparison": other.reference,
                "why_not": other.why or None,
            }
            for name, other in one.certificate.alternatives.items()
        ]
    return rows
