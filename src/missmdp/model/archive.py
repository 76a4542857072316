"""Files of arrays and JSON: one zip, no pickle, written to a temporary name and renamed.

An archive holds `meta.json` and one `.npy` per array. The metadata carry the kind of content, the version of the
format and of the library, and a hash over everything else. What each kind of file holds is said once, in a `Schema`.
Reading never runs code, trusts no size and no index, and whatever is wrong with a file becomes a `FormatError` that
names the file and the array.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._version import __version__
from missmdp.errors import FormatError, MissMDPError
from missmdp.files import write_atomically
from missmdp.model.zipped import Members, open_members, unpacks_safely

FORMAT_VERSION = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed time stamp, so the same content gives the same bytes."""
_META = "meta.json"
_MATRIX = ("data", "indices", "indptr")
_HEAD = ("kind", "format", "written_by", "sha256")
"""What the metadata of every kind have in common."""
_MOST_META, _META_RATIO = 16 * 2**20, 16
"""Bytes of metadata that any file may have, and how many times its own size beyond that: as objects, metadata can take
twenty times as much."""
_MOST_HEADER = 4096
"""Bytes before an array's own, of which 128 are usual."""
_DEEPEST, _LONGEST = 50, 4000
"""How often tuples may be nested in values, and the digits that integers may have."""

M = TypeVar("M", bound=msgspec.Struct)

CODES, POINTERS, INTEGERS = "i1 i2 i4", "i4 i8", "i8"
FLOATS, SHORT_FLOATS, FLAGS = "f8", "f4", "b1"


class Array(NamedTuple):
    """What an array of an archive must be."""

    dtypes: str
    """The types that it may have, such as "i4 i8"."""
    shape: tuple[int | str, ...]
    """The length of each axis; a name stands for the same number everywhere, "states+1" for one more."""
    least: int | None = None
    """The smallest value that is allowed."""
    below: int | str | None = None
    """What all values are below; may be the name of a length."""


@dataclass(frozen=True)
class Schema(Generic[M]):
    """What a kind of file holds."""

    kind: str
    """What such files say they hold."""
    meta: type[M]
    """The metadata besides what all kinds have; all fields without a default must be there, and no others."""
    arrays: Callable[[M], Mapping[str, Array]]
    """Name → what the array must be, given the metadata."""


def write_archive(
    path: str | Path, kind: str, meta: msgspec.Struct | Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write metadata and arrays to a file; the same content gives the same bytes."""
    members = {f"{name}.npy": _array_bytes(array) for name, array in sorted(arrays.items())}
    head = {
        **msgspec.to_builtins(meta),
        "kind": kind,
        "format": FORMAT_VERSION,
        "written_by": f"missmdp {__version__}",
    }
    head["sha256"] = _digest(head, {name: hashlib.sha256(content) for name, content in members.items()})
    try:
        text = json.dumps(head, ensure_ascii=False, indent=1, sort_keys=True).encode()
    except UnicodeEncodeError as error:
        raise MissMDPError(
            f"{path}: {error.object[error.start : error.end]!r} cannot be written as text"
        ) from error
    members = {_META: text, **members}
    content = _zipped(members, zipfile.ZIP_DEFLATED)
    if not (unpacks_safely(len(content), sum(map(len, members.values()))) and _fits(len(text), len(content))):
        # Mostly zeros: packed it would be too small to be trusted when it is read.
        content = _zipped(members, zipfile.ZIP_STORED)
    write_atomically(path, content)


def _zipped(members: Mapping[str, bytes], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, method)
    return buffer.getvalue()


def read_archive(path: str | Path, schema: Schema[M]) -> tuple[M, dict[str, NDArray[Any]]]:
    """Return the metadata and the arrays of a file that `write_archive` wrote.

    Arrays have types, shapes and ranges as the schema says, and floats are finite. Anything else has to be checked by
    who makes something of them, inside `named_damage`.

    Raises
    ------
    FormatError
        If the file is absent, no archive of this kind, of a newer format, or damaged.
    """
    with open_members(path) as members:
        head = _checked_head(path, members, schema.kind)
        with named_damage(path):
            own = {name: value for name, value in head.items() if name not in _HEAD}
            meta = checked_fields(own, schema.meta)
            arrays, hashes = _checked_arrays(members, schema.arrays(meta))
    if head.get("sha256") != _digest({k: v for k, v in head.items() if k != "sha256"}, hashes):
        raise FormatError(f"{path}: damaged (the content does not match its checksum)")
    return meta, arrays


def archive_kind(path: str | Path) -> object:
    """Return what a file says it holds, such as "policy"; raise `FormatError` if it is no archive."""
    with open_members(path) as members:
        return _head(path, members).get("kind", "something unknown")


@contextmanager
def named_damage(path: str | Path) -> Generator[None]:
    """Turn whatever is wrong with a file's content into a `FormatError` that names the file."""
    try:
        yield
    except KeyError as error:
        raise FormatError(f"{path}: damaged (it has no {error.args[0]!r})") from error
    except (MissMDPError, ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise FormatError(f"{path}: damaged ({error})") from error


def checked_fields(given: Any, kind: type[M]) -> M:
    """Return metadata as a record; raise `FormatError` if a field is missing, unknown, or of another type."""
    if not isinstance(given, dict):
        raise FormatError(f"metadata must be an object, not {type(given).__name__}")
    fields = {field.name: field.required for field in msgspec.structs.fields(kind)}
    for name in cast("dict[str, Any]", given):
        if name not in fields:
            raise FormatError(f"it has the unknown field {name!r}")
    for name, required in fields.items():
        if required and name not in given:
            raise FormatError(f"it has no {name!r}")
    return msgspec.convert(given, kind)


def _fits(size: int, packed: int) -> bool:
    """Return whether a file may have that many bytes of metadata."""
    return size <= max(_MOST_META, _META_RATIO * packed)


def _head(path: str | Path, members: Members) -> dict[str, Any]:
    if _META not in members.sizes:
        raise FormatError(f"{path}: not a file of missmdp (it has no {_META})")
    if not _fits(members.sizes[_META], members.packed):
        raise FormatError(
            f"{path}: not a file of missmdp, or damaged ({_META} has {members.sizes[_META]:,} bytes)"
        )
    try:
        head = json.loads(members.read(_META))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: damaged ({_META} is not JSON: {error})") from error
    if not isinstance(head, dict):
        raise FormatError(f"{path}: damaged ({_META} is not an object)")
    return cast("dict[str, Any]", head)


def _checked_head(path: str | Path, members: Members, kind: str) -> dict[str, Any]:
    """Return the metadata of a file of a kind, in a format that this version reads."""
    head = _head(path, members)
    if head.get("kind") != kind:
        raise FormatError(f"{path}: holds {head.get('kind', 'something unknown')!r}, not {kind!r}")
    version = head.get("format")
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"{path}: damaged (the version of its format is {version!r})")
    if version > FORMAT_VERSION:
        raise FormatError(
            f"{path}: has format {version}, newer than this missmdp reads ({FORMAT_VERSION}); upgrade missmdp"
        )
    return head


class _Header(NamedTuple):
    """What an array says of itself."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    start: int
    """Where its numbers begin."""


def _checked_arrays(
    members: Members, expected: Mapping[str, Array]
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays, and a hash of each member; nothing large is unpacked before all headers are right."""
    for name in expected:
        if f"{name}.npy" not in members.sizes:
            raise FormatError(f"it has no {name!r}")
    for member in members.sizes:
        if member != _META and member.removesuffix(".npy") not in expected:
            raise FormatError(f"it has the unknown array {member.removesuffix('.npy')!r}")
    if len(members.sizes) != len(expected) + 1:
        raise FormatError("an array is there twice")
    headers = {name: _header(members, name, array) for name, array in expected.items()}
    lengths = _checked_lengths(expected, headers)
    arrays: dict[str, NDArray[Any]] = {}
    hashes: dict[str, Any] = {}
    for name, (dtype, shape, order, start) in headers.items():
        content = members.read(f"{name}.npy")
        hashes[f"{name}.npy"] = hashlib.sha256(content)
        numbers = np.frombuffer(content, dtype, offset=start).reshape(shape, order=order)
        arrays[name] = np.require(numbers, dtype.newbyteorder("="), ["C", "A"])
        _check_values(name, arrays[name], expected[name], lengths)
    return arrays, hashes


def _header(members: Members, name: str, expected: Array) -> _Header:
    """Return the header of an array, whose type and size have been checked."""
    file = io.BytesIO(members.head(f"{name}.npy", _MOST_HEADER))
    try:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"version {version} of its format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except Exception as error:
        # numpy parses the header as Python literals; a damaged one can fail in many ways.
        raise FormatError(f"{name}.npy: {error}") from error
    if dtype.str[1:] not in expected.dtypes.split():
        raise FormatError(f"{name} holds {dtype}, not {_TYPE_WORDS[expected.dtypes]}")
    size = file.tell() + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != members.sizes[f"{name}.npy"]:
        raise FormatError(f"{name} has shape {shape}, which {members.sizes[f'{name}.npy']} bytes do not hold")
    return _Header(dtype, shape, "F" if fortran else "C", file.tell())


_TYPE_WORDS = {
    CODES: "codes",
    POINTERS: "integers",
    INTEGERS: "integers",
    FLOATS: "float64",
    SHORT_FLOATS: "float32",
    FLAGS: "booleans",
}


def _checked_lengths(expected: Mapping[str, Array], headers: Mapping[str, _Header]) -> dict[str, int]:
    """Return what names of lengths stand for: the first array that has one decides, and all others must agree."""
    lengths: dict[str, int] = {}
    for name, array in expected.items():
        for axis, length in zip(array.shape, headers[name].shape, strict=False):
            if isinstance(axis, str) and "+" not in axis:
                lengths.setdefault(axis, length)
    for name, array in expected.items():
        shape = tuple(_length(axis, lengths) for axis in array.shape)
        if headers[name].shape != shape:
            axes = ", ".join(map(str, array.shape))
            raise FormatError(f"{name} has shape {headers[name].shape}, expected ({axes}) = {shape}")
    return lengths


def _length(axis: int | str, lengths: Mapping[str, int]) -> int:
    if isinstance(axis, int):
        return axis
    name, _, more = axis.partition("+")
    return lengths[name] + int(more or 0)


def _check_values(name: str, array: NDArray[Any], expected: Array, lengths: Mapping[str, int]) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise FormatError(f"{name} has {array[~np.isfinite(array)][0]}; every number must be finite")
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        # Neither numpy nor kernels expect other bytes.
        raise FormatError(f"{name} has bytes that are neither true nor false")
    if array.size and expected.least is not None and array.min() < expected.least:
        raise FormatError(f"{name} has {array.min()}, which is out of range: the least is {expected.least}")
    if array.size and expected.below is not None:
        below = _length(expected.below, lengths)
        if array.max() >= below:
            raise FormatError(f"{name} has {array.max()}, which is out of range: it must be below {below}")


def _array_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()


def _digest(meta: Mapping[str, Any], hashes: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, member in sorted(hashes.items()):
        digest.update(name.encode())
        digest.update(member.digest())
    return digest.hexdigest()


def _can_be_written(value: object) -> bool:
    """Return whether a value comes back from JSON as it was; half of a surrogate pair and very long integers do not."""
    match value:
        case bool() | float() if type(value) in (bool, float):
            return True
        case str() if type(value) is str:
            return not any("\ud800" <= character <= "\udfff" for character in value)
        case int() if type(value) is int:
            return abs(value) < 10**_LONGEST
        case _:
            return False


def matrix_arrays(name: str, rows: int | str, columns: int | str) -> dict[str, Array]:
    """Return what the arrays of a sparse matrix must be, by name."""
    entries = f"entries of {name}"
    pointers = rows + 1 if isinstance(rows, int) else f"{rows}+1"
    return {
        f"{name}_data": Array(FLOATS, (entries,)),
        f"{name}_indices": Array(POINTERS, (entries,), 0, columns),
        f"{name}_indptr": Array(POINTERS, (pointers,), 0, f"{entries}+1"),
    }


def matrix_parts(name: str, matrix: sparse.csr_array) -> dict[str, NDArray[Any]]:
    """Return the arrays of a sparse matrix, by name."""
    return {f"{name}_{part}": getattr(matrix, part) for part in _MATRIX}


def matrix_from_parts(
    name: str, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a sparse matrix, whose pointers have yet to be checked, as `given_matrix` does."""
    return sparse.csr_array(tuple(arrays[f"{name}_{part}"] for part in _MATRIX), shape=shape)


def encode_values(values: tuple[Any, ...], what: str) -> list[Any]:
    """Return the user's values as JSON: strings, booleans, integers and floats as they are, tuples tagged."""

    def encode(value: Any, depth: int) -> Any:
        if isinstance(value, tuple) and depth < _DEEPEST:
            return {"tuple": [encode(item, depth + 1) for item in cast("tuple[Any, ...]", value)]}
        if _can_be_written(cast("object", value)):
            return cast("object", value)
        raise MissMDPError(
            f"{what}: the value {value!r} of type {type(cast('object', value)).__name__} cannot be saved; "
            "files hold strings, booleans, integers, floats and tuples of these"
        )

    return [encode(value, 0) for value in values]


def decode_values(encoded: Any, what: str) -> tuple[Any, ...]:
    """Return what `encode_values` was given."""

    def decode(value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).get("tuple")
            if isinstance(items, list) and depth < _DEEPEST:
                return tuple(decode(item, depth + 1) for item in cast("list[Any]", items))
        elif isinstance(value, str | bool | int | float):
            return value
        raise FormatError(f"{what}: cannot read the value {value!r}")

    if not isinstance(encoded, list):
        raise FormatError(f"{what}: expected a list of values")
    return tuple(decode(value, 0) for value in cast("list[Any]", encoded))


def encode_features(features: Mapping[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """Return features and their values as JSON, in order."""
    return [(name, encode_values(values, f"feature {name!r}")) for name, values in features.items()]


def decode_features(encoded: list[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return what `encode_features` was given."""
    features = {name: decode_values(values, f"feature {name!r}") for name, values in encoded}
    if len(features) != len(encoded):
        raise FormatError("a feature is listed twice")
    return features
