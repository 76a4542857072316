"""Compiled kernels on disk: they save time, and never fail.

Numba decides where they are kept: in `NUMBA_CACHE_DIR`, else beside the source, else in the home of the user. Where
none of these can be written, every process compiles for itself. Files are ours, since those of numba cannot be
trusted: a damaged file raises, or runs as code that nobody compiled, and two processes that compile the same function
for different arguments at the same time may each find what the other one wrote.

A file holds compiled code. Whoever can write to the folder decides what runs.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numba
from numba.core import caching, serialize
from numba.misc.appdirs import AppDirs

from missmdp._version import __version__
from missmdp.errors import MissMDPError
from missmdp.files import read_bytes, write_atomically

if TYPE_CHECKING:
    _FunctionCache = _Implementation = object
else:
    _FunctionCache, _Implementation = caching.FunctionCache, caching.CompileResultCacheImpl

_log = logging.getLogger(__name__)
_DIGEST = hashlib.sha256().digest_size
_NUMBA: str = cast("Any", numba).__version__
_told: set[str] = set()


def kept_on_disk(compiled: Any) -> Any:
    """Return a compiled function that is kept on disk between processes, where that is possible."""
    try:
        compiled._cache = Cache(compiled.py_func)
    except (RuntimeError, OSError):
        beside = Path(compiled.py_func.__code__.co_filename).parent / "__pycache__"
        _tell_once(f"compiled code cannot be kept ({beside} cannot be written, nor can a folder in the home)")
    return compiled


def is_kept_on_disk(compiled: Any) -> bool:
    """Return whether other processes find what is compiled of a function."""
    return isinstance(getattr(compiled, "_cache", None), Cache)


def is_compiled(compiled: Any) -> bool:
    """Return whether a function has been compiled for some arguments, here or in an earlier process."""
    return bool(compiled.overloads) or (is_kept_on_disk(compiled) and compiled._cache.holds_any())


def _has_home() -> bool:
    """Return whether there is a folder for caches of the user; without a home, numba would make one called "~"."""
    folders: Any = AppDirs("numba", appauthor=False)
    return Path(folders.user_cache_dir).is_absolute()


class Places(_Implementation):
    """Where compiled code can be kept."""

    _locator_classes = tuple(
        place
        for place in cast("Any", caching).CompileResultCacheImpl._locator_classes
        if "UserWide" not in place.__name__ or _has_home()
    )


class Cache(_FunctionCache):
    """What numba asks for compiled code, and gives it to; a miss where anything is wrong with it."""

    _impl_class = Places

    def __init__(self, function: Any) -> None:
        base: Any = super()
        base.__init__(function)
        places: Any = cast("Any", self)._impl
        folder, stamp = Path(places.locator.get_cache_path()), places.locator.get_source_stamp()
        self._cache_file = Files(folder, places.filename_base, stamp)

    def holds_any(self) -> bool:
        """Return whether anything can be loaded."""
        return self._cache_file.holds_any()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        base: Any = super()
        try:
            return base.load_overload(sig, target_context)
        except Exception as error:
            # Whatever it is, compiling again mends it; what is found on disk may name types that are gone since.
            _log.debug("%s: cannot be used (%r)", self._cache_file.folder, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature."""
        base: Any = super()
        try:
            base.save_overload(sig, data)
        except (MissMDPError, OSError) as error:
            _tell_once(f"compiled code cannot be kept ({error})")


class Files:
    """The files of one function: one for each signature and processor."""

    def __init__(self, folder: Path, name: str, stamp: object) -> None:
        self.folder = folder
        self._name = name
        self._stamp = (__version__, _NUMBA, stamp)

    def load(self, key: Any) -> Any:
        """Return what is kept for a key, or None."""
        path = self._path(key)
        if not path.exists():
            return None
        stamp, kept_key, data = _content(path)
        return data if (stamp, kept_key) == (self._stamp, key) else None

    def holds_any(self) -> bool:
        """Return whether anything is kept that was made of the source as it is now."""
        try:
            return any(_content(path)[0] == self._stamp for path in self._kept())
        except Exception as error:
            _log.debug("%s: cannot be used (%r)", self.folder, error)
            return False

    def save(self, key: Any, data: Any) -> None:
        """Keep data for a key."""
        content: bytes = cast("Any", serialize).dumps((self._stamp, key, data))
        write_atomically(self._path(key), hashlib.sha256(content).digest() + content)

    def flush(self) -> None:
        """Forget all keys."""
        for path in self._kept():
            path.unlink(missing_ok=True)

    def _kept(self) -> list[Path]:
        return list(self.folder.glob(f"{self._name}.*.kernel"))

    def _path(self, key: Any) -> Path:
        signature, processor, _ = key
        name = hashlib.sha256(f"{signature} {processor}".encode()).hexdigest()[:16]
        return self.folder / f"{self._name}.{name}.kernel"


def _content(path: Path) -> tuple[Any, Any, Any]:
    """Return (stamp, key, data) from a file."""
    content = read_bytes(path)
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        raise ValueError(f"{path}: damaged")
    return pickle.loads(content[_DIGEST:])


def _tell_once(problem: str) -> None:
    """Warn, but only once, and not again in every worker process."""
    if _told or multiprocessing.parent_process() is not None:
        return
    _told.add(problem)
    _log.warning(
        "%s, so every command compiles again, which takes a minute; NUMBA_CACHE_DIR names another folder for it",
        problem,
    )
