"""Records as JSON and back. What cannot be a record is refused in one line that names the file and the field."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from missmdp.errors import FormatError
from missmdp.experiments.record.record import FORMAT, KIND, RunRecord
from missmdp.files import read_bytes

RUN_FILE = "run.json"

_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""The types of JSON, in words."""


@dataclass(frozen=True)
class RunIdentity:
    """What makes a run what it is: with the same identity it finds the same."""

    settings: dict[str, Any]
    model: str
    """A hash of the model."""
    files: list[str]
    """The files that data come from, as they were given."""


class _Model(msgspec.Struct):
    sha256: str


class _Data(msgspec.Struct):
    files: list[str]


class _Header(msgspec.Struct):
    """What tells a run's file from others, and from those of other versions."""

    kind: Any = None
    format: Any = 1
    version: Any = "unknown"


class _Identity(msgspec.Struct):
    """The part of a file that says which run it is, whatever the version."""

    kind: str
    settings: dict[str, Any]
    model: _Model
    data: _Data


def encode_record(record: RunRecord) -> bytes:
    """Return a record as JSON, for people too: indented, in its order."""
    return msgspec.json.format(msgspec.json.encode(record, enc_hook=_as_text), indent=1) + b"\n"


def _as_text(value: object) -> str:
    """Return a message in parts as plain text."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in a record")


def read_record(path: Path) -> RunRecord:
    """Return the record in a file.

    Raises
    ------
    FormatError
        If there is no such file, or it holds something else: the message names the field at fault.
    """
    content = read_bytes(path)
    _check_header(path, content)
    try:
        _check_numbers(path, msgspec.json.decode(content))
        return msgspec.json.decode(content, type=RunRecord)
    except msgspec.ValidationError as error:
        raise FormatError(f"{path}: {_in_words(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: damaged (not JSON: {error})") from error
    except RecursionError as error:
        raise FormatError(f"{path}: damaged (objects are nested too deeply)") from error


def _check_numbers(path: Path, value: Any, place: str = "") -> None:
    """Raise `FormatError` for an integer that is too large to reckon with, anywhere in a file."""
    match value:
        case dict():
            for key, item in cast("dict[str, Any]", value).items():
                _check_numbers(path, item, f"{place}.{key}".lstrip("."))
        case list():
            for i, item in enumerate(cast("list[Any]", value)):
                _check_numbers(path, item, f"{place}[{i}]")
        case int() if abs(value) > sys.float_info.max:
            raise FormatError(f"{path}: {place}: number out of range")
        case _:
            pass


def _check_header(path: Path, content: bytes) -> None:
    try:
        header = msgspec.json.decode(content, type=_Header)
    except msgspec.ValidationError:
        raise FormatError(f"{path}: not what `missmdp run` writes") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{path}: damaged (not JSON: {error})") from error
    if header.kind != KIND:
        raise FormatError(f"{path}: not what `missmdp run` writes")
    if isinstance(header.format, int) and header.format != FORMAT:
        age = "an older" if header.format < FORMAT else "a newer"
        raise FormatError(
            f"{path}: format {header.format}, written by {age} version of missmdp ({header.version}); this version "
            f"reads format {FORMAT}: do the run again"
        )


def read_identity(path: Path) -> RunIdentity | None:
    """Return which run a file is of, finished or not, by whatever version; None if it is no run's."""
    try:
        found = msgspec.json.decode(read_bytes(path), type=_Identity)
    except (FormatError, ValueError, RecursionError):
        return None
    if found.kind != KIND:
        return None
    return RunIdentity(found.settings, found.model.sha256, found.data.files)


def encode_identity(identity: RunIdentity) -> bytes:
    """Return the identity of a run that is not finished, as JSON."""
    found = _Identity(KIND, identity.settings, _Model(identity.model), _Data(identity.files))
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: what is not finite is None, and what JSON cannot hold becomes text."""
    match value:
        case Mapping():
            items = cast("Mapping[Any, Any]", value)
            return {str(key): plain(item) for key, item in items.items()}
        case list() | tuple():
            return [plain(item) for item in cast("list[Any]", value)]
        case np.generic():
            return plain(value.item())
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            # How a table is read may be said with anything.
            return str(value)


def record_schema() -> str:
    """Return the JSON schema of run.json."""
    schema = msgspec.json.schema(RunRecord)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"run.json, format {FORMAT}"}
    return f"{json.dumps({**head, **schema}, indent=1, ensure_ascii=False)}\n"


def _in_words(message: str) -> str:
    """Return what a decoder says, as "values[2].mean: expected a number, got a string"."""
    what, _, place = message.partition(" - at `")
    where = place.removesuffix("`").removeprefix("$").removeprefix(".")
    if where.startswith("key"):
        where = "a key"
    field = re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", what)
    if field is not None:
        place = f"{where}.{field[2]}".lstrip(".")
        return f"{place}: {'is missing' if field[1] == 'missing required' else 'unknown field'}"
    what = re.sub(r"`([a-z |]+)`", lambda found: _types_in_words(found[1]), what)
    return f"{where}: {what[0].lower()}{what[1:]}" if where else what


def _types_in_words(types: str) -> str:
    """Return "float | null" as "a number or null"."""
    return " or ".join(_KINDS.get(one, one) for one in types.split(" | "))
