"""Reading and writing files so that nothing bad comes of it: bounded reads of regular files, writes that are whole."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path
from typing import BinaryIO

from missmdp.errors import FormatError, MissMDPError

MOST_BYTES = 256 * 2**20
"""The largest file that is read into memory as a whole. Models and records of real size are far smaller."""


def open_regular(path: str | Path) -> BinaryIO:
    """Return a file open for reading in bytes.

    Pipes and devices are refused: they may never end, or never begin.

    Raises
    ------
    FormatError
        If there is no such file, or it is none that can be read as a whole.
    """
    try:
        # Opening a pipe that nobody writes to would wait.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError, TypeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise FormatError(f"{path}: cannot be read ({reason})") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
        raise FormatError(f"{path}: cannot be read (it is {kind}, not a file)")
    return os.fdopen(handle, "rb")


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes; raise `FormatError` if that cannot be."""
    with open_regular(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise FormatError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(content) > most:
        raise FormatError(f"{path}: cannot be read (it has more than {most >> 20} MB)")
    return content


def read_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """Return the text of a regular file in UTF-8; raise `FormatError` if that cannot be."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: cannot be read (not text in UTF-8: {error})") from error


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    temporary = None
    try:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with temporary.open("xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissMDPError(f"{path}: cannot be written ({reason})") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
