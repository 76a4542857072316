"""Read and write models by the ending of the file's name."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import FormatError
from missmdp.interop.pomdp.reader import read_pomdp
from missmdp.interop.pomdp.writer import write_pomdp
from missmdp.interop.pomdpx.reader import read_pomdpx
from missmdp.interop.pomdpx.writer import write_pomdpx
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

SUFFIXES = (".pomdp", ".pomdpx")


def read_model(path: str | Path) -> POMDP:
    """Return the model in a `.pomdp` or `.pomdpx` file; see `read_pomdp` and `read_pomdpx`."""
    return read_pomdpx(path) if _suffix(path) == ".pomdpx" else read_pomdp(path)


def write_model(model: POMDP | MissMDP, path: str | Path) -> None:
    """Write a model to a `.pomdp` or `.pomdpx` file; see `write_pomdp` and `write_pomdpx`."""
    if _suffix(path) == ".pomdpx":
        write_pomdpx(model, path)
    else:
        write_pomdp(model, path)


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: a model's name must end in {' or '.join(SUFFIXES)}")
    return suffix
