"""Finished cells in a folder: one file per cell, which is there as a whole or not at all."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from missmdp.errors import FormatError, MissMDPError
from missmdp.experiments.grid.cell import Cell, CellResult, Finite
from missmdp.experiments.grid.fingerprint import content_hash
from missmdp.files import read_bytes, remove_leftovers
from missmdp.model.archive import FLOATS, Array, Schema, named_damage, read_archive, write_archive

_log = logging.getLogger(__name__)

_KIND = "missmdp cell"
_ENDING = ".cell"
_MOST = 1e100
"""Estimates beyond that could not be added up."""


class _CellMeta(msgspec.Struct):
    """What the file of a cell says besides its estimates."""

    cell: dict[str, Any]
    key: str
    found: dict[str, Any]
    files: dict[str, str]
    seconds: Finite
    version: str


def _cell_file(cell: Cell) -> Schema[_CellMeta]:
    shape = cell.estimates_shape()
    return Schema(_KIND, _CellMeta, lambda _: {"estimates": Array(FLOATS, shape)})


class CellStore:
    """Finished cells in a folder.

    A file's name has a hash of all that decides what comes out, so what is found is what would come out. Whatever is
    damaged counts as not finished: files of other cells, and those that hold what such a cell cannot find.

    Parameters
    ----------
    folder
        Where files are; made when something is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell, ending: str = _ENDING) -> Path:
        """Return where a cell is kept, or a file that belongs to it."""
        return self.folder / f"{cell.name}{ending}"

    def read(self, cell: Cell) -> CellResult | None:
        """Return a finished cell, or None if it is not there or damaged."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            meta, arrays = read_archive(path, _cell_file(cell))
            with named_damage(path):
                found = self._checked(cell, meta)
                if arrays["estimates"].size and not np.abs(arrays["estimates"]).max() <= _MOST:
                    raise FormatError("it has estimates that no benchmark gives")
        except FormatError as error:
            _log.warning("%s; the cell counts as not finished", error)
            return None
        return CellResult(found, arrays["estimates"], meta.seconds, meta.version)

    def _checked(self, cell: Cell, meta: _CellMeta) -> dict[str, Any]:
        """Return what a cell found; raise whatever is wrong with that."""
        if meta.key != cell.key or content_hash(meta.cell) != content_hash(_described(cell)):
            raise FormatError("it is another cell")
        if set(meta.files) != set(cell.files):
            raise FormatError(f"it has the files {sorted(meta.files)}, not {sorted(cell.files)}")
        for ending, digest in meta.files.items():
            if _sha256(self.path(cell, ending)) != digest:
                raise FormatError(f"{self.path(cell, ending).name} is not what was finished")
        found = msgspec.convert(meta.found, cell.found_type())
        if found != meta.found:
            raise FormatError("it has found more than such a cell finds")
        return found

    def write(self, cell: Cell, result: CellResult) -> None:
        """Keep a finished cell; other files that belong to it must have been written before."""
        meta = _CellMeta(
            cell=_described(cell),
            key=cell.key,
            found=result.found,
            files={ending: _sha256(self.path(cell, ending)) for ending in cell.files},
            seconds=result.seconds,
            version=result.version,
        )
        write_archive(self.path(cell), _KIND, meta, {"estimates": result.estimates})

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that are not finished."""
        return [cell for cell in cells if self.read(cell) is None]

    def check(self) -> None:
        """Raise if the folder holds cells of another form, which would be done again without a word."""
        if any(self.folder.glob("*.npz")):
            raise FormatError(
                f"{self.folder}: has cells of an earlier version of missmdp, which named them by other rules; they "
                "cannot be used; give another folder, or delete them"
            )

    def check_writable(self) -> None:
        """Raise unless files can be written to the folder, which may not exist yet."""
        probe = self.folder / ".probe"
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            probe.unlink(missing_ok=True)
        except OSError as error:
            raise MissMDPError(f"{self.folder}: cannot be written to ({error.strerror or error})") from error

    def sweep(self) -> None:
        """Remove what was being written when an earlier run was killed; the caller must hold the folder."""
        remove_leftovers(self.folder / f"*{_ENDING}")


def _described(cell: Cell) -> dict[str, Any]:
    """Return what a cell is, for its file."""
    return {"kind": cell.kind, "version": cell.version, **cell.parameters()}


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
