"""The tables of a run: .csv for people, .parquet for programs, written as soon as there is something to write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from missmdp.data.description.description import Description
from missmdp.evaluation.heldout import HeldOutScore
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.run.contents import SENSITIVITY, sensitivity_rows, value_rows
from missmdp.experiments.run.contents_certificates import CERTIFICATES, certificate_rows
from missmdp.experiments.run.contents_data import feature_rows
from missmdp.experiments.run.contents_diagnosis import (
    CLASSES,
    DRIVERS,
    TESTS,
    class_rows,
    driver_rows,
    test_rows,
)
from missmdp.experiments.run.contents_learners import heldout_row
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import Certified, Learned, World
from missmdp.experiments.tables import write_columns, write_table
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.table import learned_rows

__all__ = ["RunTables"]


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
        self._write("data", feature_rows(description))

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
            {"learner": label, **heldout_row(score), "recommended": label == recommended}
            for label, score in (scores or {}).items()
        ]
        self._write("heldout", rows, ("learner",))

    def write_values(self, worlds: Iterable[World], confidence: float) -> None:
        """Write what each policy is worth in each world."""
        rows = [{"world": world.name, **row} for world in worlds for row in value_rows(world, confidence)]
        self._write("values", rows)

    def write_diagnosis(self, found: Diagnosis | None) -> None:
        """Write what drives missingness, how the classes of reasons do, and the tests."""
        self._write("drivers", driver_rows(found), DRIVERS)
        self._write("classes", class_rows(found), CLASSES)
        self._write("tests", test_rows(found), TESTS)

    def write_certificates(self, found: Mapping[str, Certified]) -> None:
        """Write how far from optimal policies can be in truth: a row for every learner and kind of certificate."""
        self._write("certificates", certificate_rows(found), CERTIFICATES)

    def write_sensitivity(self, found: Iterable[SensitivityRow]) -> None:
        """Write what the policy is worth where the model is another one."""
        self._write("sensitivity", sensitivity_rows(found), SENSITIVITY)

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
        """Write rows, or the columns alone where there are none."""
        for ending in (".csv", ".parquet"):
            path = self._folder.table(f"{name}{ending}")
            if rows:
                write_table(rows, path)
            else:
                write_columns({column: [] for column in columns}, path)
