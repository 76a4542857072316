"""Read and write models by the ending of the file's name."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import FormatError, MissMDPError, ModelError, ParameterError
from missmdp.interop.pomdp.reader import read_pomdp
from missmdp.interop.pomdp.writer import write_pomdp
from missmdp.interop.pomdpx.by_features import by_features
from missmdp.interop.pomdpx.document import damage_of, read_document
from missmdp.interop.pomdpx.reader import flat, read_pomdpx
from missmdp.interop.pomdpx.writer import write_pomdpx
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

SUFFIXES = (".pomdp", ".pomdpx")

_FEW = 5e5
"""Probabilities of next states and observations up to which files are multiplied out."""


def read_model(path: str | Path) -> POMDP:
    """Return the model in a `.pomdp` or `.pomdpx` file; see `read_pomdp` and `read_pomdpx`."""
    return read_pomdpx(path) if _suffix(path) == ".pomdpx" else read_pomdp(path)


def read_for_planning(path: str | Path) -> POMDP | MissMDP:
    """Return the model in a file: by features if it is a miss-MDP that would be large otherwise, else as a POMDP."""
    if _suffix(path) == ".pomdp":
        return read_pomdp(path)
    document = read_document(path)
    with damage_of(path):
        if document.joint_probabilities() <= _FEW:
            return flat(document)
        try:
            return by_features(document)
        except MissMDPError as no_features:
            try:
                return flat(document)
            except MissMDPError as error:
                raise ModelError(
                    f"{_without(path, error)} (by features: {_without(path, no_features)})"
                ) from None


def _without(path: str | Path, error: MissMDPError) -> str:
    """Return what is wrong with a file, without the file's name, where that comes first."""
    return str(error).removeprefix(f"{path}: ")


def write_model(model: POMDP | MissMDP, path: str | Path, *, by_features: bool | None = None) -> None:
    """Write a model to a `.pomdp` or `.pomdpx` file; see `write_pomdp` and `write_pomdpx`.

    Parameters
    ----------
    model
        The model.
    path
        Where to write it; the ending decides the format.
    by_features
        For `.pomdpx` files, whether to write feature by feature; by default only if the file would be large otherwise.
    """
    if _suffix(path) == ".pomdpx":
        write_pomdpx(model, path, by_features=by_features)
    elif by_features:
        raise ParameterError(
            "by_features", by_features, "left out", "only .pomdpx files can be written by features"
        )
    else:
        write_pomdp(model, path)


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError(f"{path}: a model's name must end in {' or '.join(SUFFIXES)}")
    return suffix
