"""Files of arrays and JSON: one zip, no pickle, written to a temporary name and renamed.

An archive holds `meta.json` and one `.npy` per array. The metadata carry the kind of content, the version
of the format and of the library, and a hash over everything else. Reading never runs code, and whatever is
wrong with a file becomes a `FormatError` that names it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._version import __version__
from missmdp.errors import FormatError, MissMDPError
from missmdp.files import write_atomically

FORMAT_VERSION = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed time stamp, so the same content gives the same bytes."""


def write_archive(
    path: str | Path, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write metadata and arrays to a file; the same content gives the same bytes."""
    members = {f"{name}.npy": _array_bytes(array) for name, array in sorted(arrays.items())}
    head = {**meta, "kind": kind, "format": FORMAT_VERSION, "written_by": f"missmdp {__version__}"}
    head["sha256"] = _digest(head, members)
    try:
        text = json.dumps(head, ensure_ascii=False, indent=1, sort_keys=True).encode()
    except UnicodeEncodeError as error:
        raise MissMDPError(
            f"{path}: {error.object[error.start : error.end]!r} cannot be written as text"
        ) from error
    members = {"meta.json": text, **members}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    write_atomically(path, buffer.getvalue())


def read_archive(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the metadata and the arrays of a file that `write_archive` wrote.

    Raises
    ------
    FormatError
        If the file is absent, no archive of this kind, of a newer format, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if "meta.json" not in archive.namelist():
                raise FormatError(f"{path}: not a file of missmdp (it has no meta.json)")
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except FormatError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        TypeError,
    ) as error:
        raise FormatError(f"{path}: not a file of missmdp, or damaged ({error})") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read ({error.strerror or error})") from error
    meta = _checked_meta(path, members.pop("meta.json"), kind)
    if meta.get("sha256") != _digest({k: v for k, v in meta.items() if k != "sha256"}, members):
        raise FormatError(f"{path}: damaged (the content does not match its checksum)")
    return meta, {name.removesuffix(".npy"): _array(path, name, content) for name, content in members.items()}


def _array(path: str | Path, name: str, content: bytes) -> NDArray[Any]:
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:
        # numpy parses the header as Python literals; a damaged one can fail in many ways.
        raise FormatError(f"{path}: damaged ({name}: {error})") from error
    if array.dtype.kind not in "biuf":
        raise FormatError(f"{path}: damaged ({name} holds {array.dtype}, not numbers)")
    return array


def _checked_meta(path: str | Path, content: bytes, kind: str) -> dict[str, Any]:
    try:
        meta = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: damaged (meta.json is not JSON: {error})") from error
    if not isinstance(meta, dict):
        raise FormatError(f"{path}: damaged (meta.json is not an object)")
    meta = cast("dict[str, Any]", meta)
    if meta.get("kind") != kind:
        raise FormatError(f"{path}: holds {meta.get('kind', 'something unknown')!r}, not {kind!r}")
    version = meta.get("format")
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"{path}: damaged (the version of its format is {version!r})")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{path}: has format {version}, newer than this missmdp reads ({FORMAT_VERSION}); upgrade missmdp"
        )
    return meta


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()


def _digest(meta: Mapping[str, Any], members: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, content in sorted(members.items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _is_text(value: str) -> bool:
    """Return whether a string can be written in UTF-8; half of a surrogate pair cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode_values(values: tuple[Any, ...], what: str) -> list[Any]:
    """Return the user's values as JSON: strings, booleans, integers and floats as they are, tuples tagged."""

    def encode(value: Any) -> Any:
        if isinstance(value, tuple):
            return {"tuple": [encode(item) for item in cast("tuple[Any, ...]", value)]}
        if type(value) in (bool, int, float) or (type(value) is str and _is_text(value)):
            return value
        raise MissMDPError(
            f"{what}: the value {value!r} of type {type(value).__name__} cannot be saved; "
            "files hold strings, booleans, integers, floats and tuples of these"
        )

    return [encode(value) for value in values]


def decode_values(encoded: Any, what: str) -> tuple[Any, ...]:
    """Return what `encode_values` was given."""

    def decode(value: Any) -> Any:
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).get("tuple")
            if isinstance(items, list):
                return tuple(decode(item) for item in cast("list[Any]", items))
        elif isinstance(value, str | bool | int | float):
            return value
        raise FormatError(f"{what}: cannot read the value {value!r}")

    if not isinstance(encoded, list):
        raise FormatError(f"{what}: expected a list of values")
    return tuple(decode(value) for value in cast("list[Any]", encoded))
