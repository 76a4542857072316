"""The folder of a run: its configuration, and one file per finished cell, which is there as a whole or not at all."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from missmdp.errors import FormatError, MissMDPError
from missmdp.experiments.reproduce.cells import Cell
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.work import CellResult
from missmdp.model.archive import read_archive, write_archive

__all__ = ["CellStore", "is_reproduction"]

_KIND = "missmdp cell"
_CONFIG = "config.toml"
_ABANDONED = 3600.0
"""Seconds after which nobody writes to a file any more."""


def is_reproduction(folder: str | Path) -> bool:
    """Return whether a folder is one of `reproduce`."""
    return (Path(folder) / _CONFIG).is_file()


class CellStore:
    """Finished cells in a folder.

    A file's name has a hash of the model, the settings and the version, so that what is found is what would come out.

    Parameters
    ----------
    folder
        Of the run; made when something is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: Cell) -> Path:
        """Return where a cell is kept."""
        return self.folder / "cells" / f"{cell.name}.npz"

    def read(self, cell: Cell) -> CellResult | None:
        """Return a finished cell, or None if it is not there or damaged."""
        path = self.path(cell)
        if not path.is_file():
            return None
        try:
            meta, arrays = read_archive(path, _KIND)
            return CellResult(meta["found"], arrays["estimates"], meta["seconds"], meta["version"])
        except (FormatError, KeyError):
            return None

    def write(self, cell: Cell, result: CellResult) -> None:
        """Keep a finished cell."""
        meta: dict[str, Any] = {
            "cell": cell.name,
            "found": result.found,
            "seconds": result.seconds,
            "version": result.version,
        }
        write_archive(self.path(cell), _KIND, meta, {"estimates": result.estimates})

    def read_config(self) -> ReproduceConfig:
        """Return the configuration of the run."""
        if not is_reproduction(self.folder):
            raise MissMDPError(f"{self.folder}: no run of `missmdp reproduce` (there is no {_CONFIG})")
        return ReproduceConfig.load(self.folder / _CONFIG)

    def write_config(self, config: ReproduceConfig) -> None:
        """Keep the configuration of the run."""
        config.save(self.folder / _CONFIG)

    def check_writable(self) -> None:
        """Raise unless files can be written to the folder, which may not exist yet."""
        probe = self.folder / "cells" / ".probe"
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            # Another run in the same folder may have taken it away.
            probe.unlink(missing_ok=True)
        except OSError as error:
            raise MissMDPError(f"{self.folder}: cannot be written to ({error.strerror or error})") from error

    def sweep(self) -> None:
        """Remove what was being written when an earlier run was killed, long enough ago to be nobody's."""
        for path in (self.folder / "cells").glob(".*.npz.*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()
