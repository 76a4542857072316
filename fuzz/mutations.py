"""Small damage to valid things: values as in JSON, arrays, texts and archives."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "\x1b]52;c;aGFja2Vk\x07",
    "\x1b[8mhidden\x1b[0m",
    "\u202egnp.exe",
    "a\nb\r\nc",
    "\x00\x01\x7f\x85\x9b31m",
    "=1+1",
    "{0.__class__}%s%n[bold]",
    "../../etc/passwd",
    "q\"'\\`;&|",
    "\ud800",
    "x" * 100_000,
    "",
    " ",
    "None",
    "$x^2$",
)
"""Names that try to be something else."""
INTEGERS = (-1, 0, 1, 2, 7, 255, 256, 2**20, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, -(2**63), 10**400)
FLOATS = (0.5, 1.0, -0.5, 1.5, 1e-320, 1e-9, 1e300, 1.7e308, -0.0, float("nan"), float("inf"), -float("inf"))


def odd_value(rng: random.Random, depth: int = 0) -> Any:
    """Return a value that hardly anybody expects."""
    match rng.randrange(8 if depth < 2 else 6):
        case 0:
            return rng.choice(HOSTILE)
        case 1 | 2:
            return rng.choice(INTEGERS)
        case 3:
            return rng.choice(FLOATS)
        case 4:
            return rng.choice((None, True, False))
        case 5:
            return rng.choice(([], {}, [[]], {"": None}, [None] * 3))
        case 6:
            return [odd_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        case _:
            return {str(odd_value(rng, 2))[:50]: odd_value(rng, depth + 1) for _ in range(rng.randrange(3))}


def mutate_tree(tree: Any, rng: random.Random) -> tuple[Any, str]:
    """Return a copy of JSON in which one thing is different, and what."""
    tree = copy.deepcopy(tree)
    places = list(_places(tree, ()))
    if not places:
        return odd_value(rng), "all"
    holder, key, path = rng.choice(places)
    where = "/".join(map(str, path))[:80]
    match rng.randrange(6):
        case 0:
            del holder[key]
            return tree, f"no {where}"
        case 1 if isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(rng.choice(holder)))
            return tree, f"{where} again"
        case 1:
            holder[str(odd_value(rng, 2))[:50]] = odd_value(rng)
            return tree, f"more than {where}"
        case 2 if isinstance(holder, list):
            rng.shuffle(holder)
            return tree, f"{where} shuffled"
        case 2 | 3:
            other, name, _ = rng.choice(places)
            holder[key] = copy.deepcopy(other[name]) if name in other or isinstance(other, list) else None
            return tree, f"{where} from elsewhere"
        case _:
            holder[key] = odd_value(rng)
            return tree, f"{where} = {str(holder[key])[:40]!r}"


def _places(tree: Any, path: tuple[Any, ...]) -> Any:
    """Yield every place in a tree: what holds it, its key there, and its path."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key, (*path, key)
        yield from _places(value, (*path, key))


def mutate_array(array: NDArray[Any], rng: random.Random) -> tuple[Any, str]:
    """Return an array that differs in an entry, its type or its shape, and how."""
    changed = np.array(array)
    if changed.dtype.kind not in "biuf":
        return changed, "as it is"
    if rng.random() < 0.5 and changed.size:
        return _with_entry(changed, rng)
    way = rng.choice(list(_SHAPES))
    with np.errstate(all="ignore"):
        return _SHAPES[way](changed), way


def _with_entry(array: NDArray[Any], rng: random.Random) -> tuple[NDArray[Any], str]:
    where = rng.randrange(array.size)
    value = rng.choice(INTEGERS + (FLOATS if array.dtype.kind == "f" else (array.size, array.size + 1)))
    if array.dtype.kind in "iu" and not np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max:
        array = array.astype(np.int64 if abs(value) < 2**63 else np.float64)
    with np.errstate(all="ignore"):
        array.flat[where] = float("inf") if abs(value) > 1e308 else value
    return array, f"[{where}] = {str(array.flat[where])[:30]}"


_SHAPES: dict[str, Callable[[NDArray[Any]], Any]] = {
    "empty": lambda a: np.atleast_1d(a)[:0],
    "without the last": lambda a: a[:-1] if a.ndim else a,
    "twice": lambda a: np.concatenate([np.atleast_1d(a), np.atleast_1d(a)]),
    "one more axis": lambda a: a[None],
    "a number": lambda a: a.ravel()[0] if a.size else np.array(0),
    "flat": lambda a: a.ravel(),
    "transposed": lambda a: np.asfortranarray(a).T,
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "sorted": lambda a: np.sort(a, axis=None).reshape(a.shape),
    "all zero": np.zeros_like,
    "all one": np.ones_like,
    "all −1": lambda a: np.full(a.shape, -1),
    "all NaN": lambda a: np.full(a.shape, np.nan),
    "all 1e308": lambda a: np.full(a.shape, 1e308),
    "negative": lambda a: -a.astype(np.float64),
    "halved": lambda a: a / 2,
    "a million": lambda a: np.zeros(10**6, a.dtype),
    "of bool": lambda a: a.astype(bool),
    "of int8": lambda a: a.astype(np.int8),
    "of uint64": lambda a: a.astype(np.int64).astype(np.uint64),
    "of float16": lambda a: a.astype(np.float16),
    "of float128": lambda a: a.astype(np.longdouble),
    "of complex": lambda a: a.astype(np.complex128),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "of text": lambda a: a.astype("U5"),
    "of records": lambda a: np.zeros(a.shape, [("x", "f8"), ("y", "i4")]),
    "of dates": lambda a: np.zeros(a.shape, "datetime64[s]"),
}


class Archive:
    """A file of arrays and JSON, as metadata and arrays."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.meta = json.loads(archive.read("meta.json"))
            self.arrays = {
                name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
                for name in archive.namelist()
                if name != "meta.json"
            }

    def mutated(self, rng: random.Random, target: Path) -> str:
        """Write a copy with one to three changes and a checksum that is right; return what was changed."""
        meta = {name: value for name, value in self.meta.items() if name != "sha256"}
        arrays: dict[str, Any] = dict(self.arrays)
        notes: list[str] = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if rng.random() < 0.35 or not arrays:
                meta, note = mutate_tree(meta, rng)
                notes.append(f"meta: {note}")
                if not isinstance(meta, dict):
                    meta = {"": meta}
                continue
            name = rng.choice(sorted(arrays))
            match rng.randrange(12):
                case 0:
                    del arrays[name]
                    notes.append(f"no {name}")
                case 1:
                    other = rng.choice(sorted(arrays))
                    arrays[name], arrays[other] = arrays[other], arrays[name]
                    notes.append(f"{name} and {other} swapped")
                case 2:
                    arrays[rng.choice(("more", "../x", "meta.json", "\u202e", "a/b"))] = arrays[name]
                    notes.append("one more array")
                case _:
                    arrays[name], note = mutate_array(np.asarray(arrays[name]), rng)
                    notes.append(f"{name} {note}")
        content = pack(meta, arrays)
        if rng.random() < 0.1:
            content = mutate_bytes(content, rng)
            notes.append("damaged")
        target.write_bytes(content)
        return "; ".join(notes)


def pack(meta: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Return an archive whose checksum is right, whatever it holds."""
    members: dict[str, bytes] = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, content in sorted(members.items()):
        digest.update(name.encode())
        digest.update(hashlib.sha256(content).digest())
    meta = {**meta, "sha256": digest.hexdigest()}
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"meta.json": json.dumps(meta).encode(), **members}.items():
            archive.writestr(name, content)
    return result.getvalue()


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes of which some are different, missing or new."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(5):
            case 0:
                changed[at : at + rng.choice((1, 4, 100))] = b""
            case 1:
                changed[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
            case 2:
                changed[at : at + 4] = rng.choice((b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\xff\xff\xff\xff"))
            case 3:
                del changed[at:]
            case _:
                changed[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(changed)


_TOKEN = re.compile(r"\d+\.?\d*(?:[eE][-+]?\d+)?|\w+|\s+|.", re.DOTALL)
_TOKENS = (
    "-1",
    "0",
    "1",
    "2",
    "1e999",
    "-1e308",
    "nan",
    "inf",
    "1e-320",
    "9" * 5000,
    "4294967296",
    "99999999999999999999",
    "0x10",
    "1_000",
    "٣",
    "*",
    ":",
    "=",
    "<",
    ">",
    "/>",
    "</",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "\\",
    ",",
    ";",
    "#",
    "--",
    "->",
    "\n",
    "\t",
    "\0",
    "\ufeff",
    "&amp;",
    "&#0;",
    "&x;",
    "<!DOCTYPE x [<!ENTITY x 'y'>]>",
    "null",
    "true",
    "NaN",
    "[" * 3000,
    "{'a':" * 1000,
    "<a>" * 3000,
    "uniform",
    "identity",
    "reset",
)


def mutate_rows(rows: list[list[str]], rng: random.Random) -> tuple[list[list[str]], str]:
    """Return a table, as rows of cells, with other cells, rows or columns, and what is different."""
    rows, notes = [list(row) for row in rows], list[str]()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
        match rng.randrange(8):
            case 0 | 1 | 2:
                rows[at][column] = rng.choice((*_TOKENS, *HOSTILE, "", "NA"))
                notes.append(f"row {at}, column {column}: {rows[at][column][:20]!r}")
            case 3 | 4:
                rows[at][column] = rng.choice(rows)[column]
                notes.append(f"row {at}, column {column}: {rows[at][column][:20]!r}")
            case 5 if len(rows) > 2:
                del rows[at]
                notes.append(f"no row {at}")
            case 6:
                rows.insert(rng.randrange(len(rows) + 1), list(rows[at]))
                notes.append(f"row {at} again")
            case _:
                head, *body = rows
                rng.shuffle(body)
                rows = [head, *body]
                notes.append("other order")
    return rows, "; ".join(notes)


def mutate_text(text: str, rng: random.Random) -> tuple[bytes, str]:
    """Return a text of which words, lines or blocks are different, and how."""
    tokens, notes = _TOKEN.findall(text), list[str]()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(tokens)) if tokens else 0
        match rng.randrange(9):
            case 0:
                notes.append(f"no {''.join(tokens[at : at + 1])[:20]!r}")
                del tokens[at : at + 1]
            case 1 | 2 | 3:
                new = rng.choice((*_TOKENS, *HOSTILE))
                notes.append(f"{new[:20]!r} at {at}")
                tokens[at : at + rng.randrange(2)] = [new]
            case 4 | 5:
                new = rng.choice(tokens) if tokens else ""
                notes.append(f"{new[:20]!r} at {at}")
                tokens[at : at + 1] = [new]
            case 6:
                length = rng.choice((3, 10, 50))
                notes.append(f"no {length} at {at}")
                del tokens[at : at + length]
            case 7:
                length = rng.choice((3, 10, 50))
                notes.append(f"{length} again at {at}")
                tokens[at:at] = tokens[at : at + length]
            case _:
                other = rng.randrange(len(tokens)) if tokens else 0
                if tokens:
                    tokens[at], tokens[other] = tokens[other], tokens[at]
                notes.append(f"{at} and {other} swapped")
    content = "".join(tokens).encode("utf-8", errors="surrogatepass")
    if rng.random() < 0.1:
        content = mutate_bytes(content, rng)
        notes.append("damaged")
    return content, "; ".join(notes)
