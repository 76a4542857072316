"""The decorators of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on first use, cache it on disk, and let other threads run beside it."""
    compile_: Any = cast("Any", numba).njit(cache=True, nogil=True, no_cfunc_wrapper=True)
    return cast("Callable[P, R]", _past_old_caches(compile_(function)))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call: without the way in from Python, which takes long to compile."""
    compile_: Any = cast("Any", numba).njit(cache=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
    return cast("Callable[P, R]", _past_old_caches(compile_(function)))


def _past_old_caches(compiled: Any) -> Any:
    """Return a compiled function that compiles again where an older version left a cache it cannot read.

    An index on disk names the types of arguments. Numba reads it before it looks at its date, and fails if a type has
    been renamed since.
    """
    index: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    read = getattr(index, "_load_index", None)
    if read is None:
        return compiled

    def read_or_forget() -> Any:
        try:
            return read()
        except (AttributeError, ImportError):
            return {}

    index._load_index = read_or_forget
    return compiled
