"""The folder of a run: what is where in it, and whose it is.

`unfinished.json` says what a run is for as long as it is under way; `run.json`, which is written last, says the same of
one that is finished. A folder with neither is nobody's: it must be empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, cast

from missmdp.checks import checked_path
from missmdp.errors import Argument, DataError
from missmdp.experiments.record.coding import (
    RUN_FILE,
    RunIdentity,
    encode_identity,
    encode_record,
    read_identity,
)
from missmdp.experiments.record.record import RunRecord
from missmdp.files import LOCK, remove_leftovers, write_atomically

TABLE_NAMES = (
    "data",
    "drivers",
    "classes",
    "tests",
    "learned",
    "heldout",
    "values",
    "sensitivity",
    "certificates",
)
_FILES = (RUN_FILE, "report.html", "log.parquet", "policy.mmpolicy", "certified.mmpolicy")
_LEARNER_FILES = ("learned.mmdp", "policy.mmpolicy", "trace.csv", "certified.mmpolicy")
_TABLES = tuple(f"{name}{ending}" for name, ending in product(TABLE_NAMES, (".csv", ".parquet")))
"""All that a run may write: in the folder itself, for each learner, and tables. Nothing else there is touched."""
_OTHER = {"model": "of another model", "files": "on other data", "data": "on other data"}
"""What is said where there is no short value to show."""


class RunFolder:
    """Where a run keeps what it makes.

    Parameters
    ----------
    path
        The folder; made when something is written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = checked_path(path, "folder")
        self.contents = self.path / RUN_FILE
        self.report = self.path / "report.html"
        self.log = self.path / "log.parquet"
        self.policy = self.path / "policy.mmpolicy"
        self.certified = self.path / "certified.mmpolicy"
        """What the certificate of the recommended learner is for, where that is another policy."""
        self._unfinished = self.path / "unfinished.json"

    def learner(self, label: str, name: str) -> Path:
        """Return a file of one learner."""
        return self.path / "learners" / label / name

    def table(self, name: str) -> Path:
        """Return a table."""
        return self.path / "tables" / name

    def relative(self, path: Path) -> str:
        """Return a file's name inside the folder, with /."""
        return path.relative_to(self.path).as_posix()

    def made(self) -> dict[str, int]:
        """Return the files of a run that are there, by their names inside the folder, and when they were written."""
        return {self.relative(path): path.stat().st_mtime_ns for path in self._paths() if path.is_file()}

    def _paths(self) -> list[Path]:
        paths = [self.path / name for name in _FILES]
        paths += [each / name for each in sorted(self.path.glob("learners/*")) for name in _LEARNER_FILES]
        return [*paths, *(self.table(name) for name in _TABLES)]

    def check(self, identity: RunIdentity, *, overwrite: bool = False) -> None:
        """Raise `DataError` unless this run may write here; call it before long work, in a folder that is held.

        Parameters
        ----------
        identity
            What the run is. A folder that holds another one is refused.
        overwrite
            Whether another run may be written over.
        """
        here = self.path.absolute().resolve()
        for name in identity.files:
            if Path(name).resolve().is_relative_to(here):
                raise DataError(f"{name}: the data must not lie in {self.path}, which is written to")
        if not self._occupied():
            return
        known = self._known()
        if known is None:
            raise DataError(f"{self.path} is not empty, and holds no run; give another folder")
        difference = None if overwrite else _difference(asdict(known), asdict(identity))
        if difference is not None:
            raise DataError(
                f"{self.path} holds another run, {difference}; give another folder, or pass ",
                Argument("overwrite", True),
            )

    def _occupied(self) -> bool:
        """Return whether there is anything in the folder."""
        try:
            return self.path.exists() and any(each.name != LOCK for each in self.path.iterdir())
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror or error})") from error

    def begin(self, identity: RunIdentity) -> None:
        """Take what an earlier run left out of the way, and say whose the folder is now."""
        for path in (self._unfinished, *self._paths()):
            remove_leftovers(path)
        write_atomically(self._unfinished, encode_identity(identity))
        for name in self.made():
            (self.path / name).unlink()

    def finish(self, record: RunRecord) -> None:
        """Write what was found, which ends the run."""
        write_atomically(self.contents, encode_record(record))
        self._unfinished.unlink(missing_ok=True)

    def _known(self) -> RunIdentity | None:
        """Return the identity of the run that is here, or None if there is no run."""
        return read_identity(self._unfinished) or read_identity(self.contents)


def _difference(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Return in which respect two runs differ, in words, or None."""
    for name, value in wanted.items():
        there = known.get(name)
        if there == value:
            continue
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            return _difference(cast("Mapping[str, Any]", there), cast("Mapping[str, Any]", value))
        if name in _OTHER:
            return _OTHER[name]
        return f"with {name} = {_short(there)}, not {_short(value)}"
    return None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
