"""Safe use of files: bounded reads of regular files, writes that are whole, one writer per folder."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import platform
import re
import shutil
import stat
import sys
import threading
import time
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from missmdp.checks import checked_path
from missmdp.errors import DataError, FormatError, MissMDPError

_log = logging.getLogger(__name__)

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
    path = checked_path(path)
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
            size = os.fstat(file.fileno()).st_size
            # Not most + 1 at once: Python would set as much memory aside.
            content = file.read(min(size, most) + 1)
            if len(content) > size:
                # It grows, or is one of those that do not know their size.
                content += file.read(most + 1 - len(content))
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


def write_atomically(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, whole or piece by piece, so that a reader sees the old content or the new, never a part."""
    try:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with removed_after(path.with_name(f".{path.name}.{uuid.uuid4().hex}")) as temporary:
            with temporary.open("xb") as file:
                file.writelines([content] if isinstance(content, bytes) else content)
            os.replace(temporary, path)
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissMDPError(f"{path}: cannot be written ({reason})") from error


_temporary: set[Path] = set()
"""What is to be removed, also where the process ends early."""


@contextmanager
def removed_after(path: Path) -> Generator[Path, None, None]:
    """Remove a temporary file or folder at the end; `remove_temporary_files` knows of it in between."""
    _temporary.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _temporary.discard(path)


def remove_temporary_files() -> None:
    """Remove all temporary files of this process, which is about to end."""
    for path in tuple(_temporary):
        _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove what `write_atomically` was writing when its process was killed; the caller must hold the folder."""
    for left in path.parent.glob(f".{path.name}.{'[0-9a-f]' * 32}"):
        with contextlib.suppress(OSError):
            left.unlink()


LOCK = ".missmdp-lock"
"""The file that is locked while a folder is held. One that a killed process leaves behind holds nothing."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_held: dict[str, tuple[int, int]] = {}
"""Folder → process and thread that hold it."""


@contextmanager
def held_folder(folder: str | Path, patience: float = 0.0) -> Generator[None, None, None]:
    """Hold a folder as the only one who writes there, among all that ask; it is made if need be.

    The system lets go of a folder when a process ends, however it ends. A thread that holds a folder may ask again.

    Parameters
    ----------
    folder
        What to hold.
    patience
        Seconds to wait for another one to let go.

    Raises
    ------
    DataError
        If it is in use, or cannot be written.
    """
    me = (os.getpid(), threading.get_ident())
    try:
        path, place = Path(folder), os.path.realpath(folder)
        if path.is_file():
            raise DataError(f"{folder} is a file; give a folder")
        made = [each for each in (path, *path.parents) if not each.exists()]
        handle = None if _held.get(place) == me else _lock(path, time.monotonic() + patience)
    except DataError:
        raise
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{folder}: cannot be written ({reason})") from error
    if handle is None:
        yield
        return
    _held[place] = me
    try:
        yield
    finally:
        del _held[place]
        _unlock(path / LOCK, handle)
        with contextlib.suppress(OSError):
            # Nothing came of it.
            for each in made:
                each.rmdir()


def _lock(folder: Path, until: float) -> int:
    """Return the open file that holds a folder."""
    path = folder / LOCK
    # What stands there may be anything: links and pipes are not followed.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, flags, 0o666)
        except (FileNotFoundError, FileExistsError):
            # Whoever held it has just removed it, after or before `mkdir` looked; unless it is a name for nothing.
            if time.monotonic() >= until + 1.0:
                raise
            time.sleep(0.01)
            continue
        try:
            if _try_lock(handle, path):
                if _is_there(path, handle):
                    _sign(handle)
                    kept, handle = handle, -1
                    return kept
            elif time.monotonic() >= until:
                raise DataError(
                    f"{folder} is in use by {_signature(handle)}; wait for it, or give another folder"
                )
            else:
                time.sleep(0.02)
        finally:
            if handle >= 0:
                os.close(handle)


def _try_lock(handle: int, path: Path) -> bool:
    """Return whether the file is ours now, which it also is where files cannot be locked."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, f"{path.name} is not a file")
    try:
        if sys.platform == "win32":
            import msvcrt

            # Far behind the end, so what is written there can be read.
            os.lseek(handle, 2**30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            _log.warning(
                "%s: files cannot be locked here; see to it that nothing else writes there", path.parent
            )
            return True
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _is_there(path: Path, handle: int) -> bool:
    """Return whether the open file is the one of this name: whoever lets go of a folder removes it."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _unlock(path: Path, handle: int) -> None:
    with contextlib.suppress(OSError):
        if sys.platform != "win32":
            try:
                if _is_there(path, handle):
                    path.unlink()
            finally:
                os.close(handle)
        else:
            # Closing lets go of it; a file that another one has opened meanwhile cannot be removed, and need not be.
            os.close(handle)
            path.unlink()


def _sign(handle: int) -> None:
    """Write who holds the folder; a full disk is no reason not to hold it."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"{os.getpid()} {platform.node()}\n".encode())


def _signature(handle: int) -> str:
    """Return who holds the folder, in words."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        found = re.fullmatch(rb"([0-9]{1,10}) ([\w.-]{0,64})\n", os.read(handle, 100))
    except OSError:
        found = None
    if found is None:
        return "another process"
    process, machine = (part.decode() for part in found.groups())
    return f"process {process}" + (f" on {machine}" if machine != platform.node() else "")
