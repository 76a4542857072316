"""Zip files of unknown origin: what they promise is looked at before anything is unpacked, and held against them."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from missmdp.errors import FormatError
from missmdp.files import open_regular

_FREE = 64 * 2**20
"""Bytes that any file may unpack to."""
_RATIO = 128
"""How many times its own size a file may unpack to beyond that. Models reach 60; zeros alone can reach 1,000."""
_MOST_DIRECTORY = 8 * 2**20
"""The longest directory, in bytes: it becomes objects that take twenty times as much, for 100,000 members."""
_PIECE = 2**20
"""How much is unpacked at once."""
_ENCRYPTED = 1


def unpacks_safely(packed: int, unpacked: int) -> bool:
    """Return whether that many bytes may come out of a file of that size."""
    return unpacked <= max(_FREE, _RATIO * packed)


class Members:
    """The members of an open zip file, whose directory has been checked: names are distinct and sizes bounded."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        listed = archive.infolist()
        for info in listed:
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):
                raise zipfile.BadZipFile(f"{info.filename!r} is encrypted, or packed in an unknown way")
        self.sizes: dict[str, int] = {info.filename: info.file_size for info in listed}
        """Name → the bytes that the directory promises."""
        if len(self.sizes) != len(listed):
            raise zipfile.BadZipFile("a name is listed twice")
        if not unpacks_safely(size, sum(self.sizes.values())):
            raise zipfile.BadZipFile(f"its {size:,} bytes unpack to {sum(self.sizes.values()):,}")
        self.packed = size
        """The bytes of the file."""
        self._archive = archive

    def head(self, name: str, most: int) -> bytes:
        """Return the first bytes of a member."""
        with self._archive.open(name) as file:
            return file.read(most)

    def read(self, name: str) -> bytearray:
        """Return a member: exactly as many bytes as were promised, or `BadZipFile`."""
        content = bytearray(self.sizes[name])
        view, end = memoryview(content), 0
        with self._archive.open(name) as file:
            while piece := file.read(_PIECE):
                view[end : end + len(piece)] = piece
                end += len(piece)
        if end != len(content):
            raise zipfile.BadZipFile(f"{name!r} ends after {end} of {len(content)} bytes")
        return content


@contextmanager
def open_members(path: str | Path) -> Generator[Members]:
    """Give the members of a zip file; whatever is wrong with the file becomes a `FormatError` that names it."""
    with open_regular(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            with zipfile.ZipFile(cast("BinaryIO", _InPieces(file))) as archive:
                yield Members(archive, size)
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


class _InPieces:
    """A file of which nobody reads very much at once, as `zipfile` would read a directory of any length."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too long")
        return self._file.read(size)
