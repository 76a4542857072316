"""Finished cells in a folder: one file per cell, which is there as a whole or not at all."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from missmdp.errors import FormatError, MissMDPError
from missmdp.experiments.grid.cell import Cell, CellResult
from missmdp.files import remove_leftovers
from missmdp.model.archive import FLOATS, Array, Schema, read_archive, write_archive

_log = logging.getLogger(__name__)

_ENDING = ".cell"


class _CellMeta(msgspec.Struct):
    """What the file of a cell says besides its estimates."""

    cell: dict[str, Any]
    key: str
    found: dict[str, Any]
    files: dict[str, str]
    seconds: float
    version: str


_CELL_FILE = Schema("missmdp cell", _CellMeta, lambda _: {"estimates": Array(FLOATS, ("runs", "episodes"))})


class CellStore:
    """Finished cells in a folder.

    A file's name has a hash of all that decides what comes out, so what is found is what would come out. Whatever
    is damaged counts as not finished.

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
        if not path.is_file():
            return None
        try:
            meta, arrays = read_archive(path, _CELL_FILE)
            if meta.key != cell.key:
                raise FormatError("it is another cell")
            for ending, digest in meta.files.items():
                if _sha256(self.path(cell, ending)) != digest:
                    raise FormatError(f"{self.path(cell, ending).name} is not what was finished")
            return CellResult(meta.found, arrays["estimates"], meta.seconds, meta.version)
        except (OSError, FormatError) as error:
            _log.warning("%s: damaged (%s); the cell counts as not finished", path, error)
            return None

    def write(self, cell: Cell, result: CellResult, files: Sequence[str] = ()) -> None:
        """Keep a finished cell.

        Parameters
        ----------
        cell
            What was done.
        result
            What came out.
        files
            Endings of files that belong to it and have been written already, such as ".mmpolicy".
        """
        meta = _CellMeta(
            cell={"kind": cell.kind, "version": cell.version, **cell.parameters()},
            key=cell.key,
            found=result.found,
            files={ending: _sha256(self.path(cell, ending)) for ending in files},
            seconds=result.seconds,
            version=result.version,
        )
        write_archive(self.path(cell), _CELL_FILE.kind, meta, {"estimates": result.estimates})

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


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
