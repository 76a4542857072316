"""Read and write models by the ending of the file's name."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import FormatError, MissMDPError, ModelError, ParameterError
from missmdp.interop.pomdp.reader import read_pomdp
from missmdp.interop.pomdp.writer import write_pomdp
from missmdp.interop.pomdpx.by_features import by_features
from missmdp.interop.pomdpx.document import Document, damage_of, read_document
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
    """Return the model in a file, by features where that is what a search needs: else as a POMDP.

    It is read by features if it is a miss-MDP that would be large otherwise, and if it is one for the search for many
    features; or if there is no other way.
    """
    from missmdp.plan.factored.search import structured_parts

    if _suffix(path) == ".pomdp":
        return read_pomdp(path)
    document = read_document(path)
    with damage_of(path):
        if document.joint_probabilities() <= _FEW:
            return flat(document)
        try:
            model = by_features(document)
        except MissMDPError as error:
            return _flat_if_it_can_be(document, error)
        if structured_parts(model) is not None:
            return model
        try:
            return flat(document)
        except MissMDPError:
            return model


def _flat_if_it_can_be(document: Document, no_features: MissMDPError) -> POMDP:
    """Return a model as a POMDP; say also why it cannot be read by features if that does not work either."""
    try:
        return flat(document)
    except MissMDPError as error:
        problem, other = (str(one).removeprefix(f"{document.path}: ") for one in (error, no_features))
        raise ModelError(f"{problem} (by features: {other})") from None


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
