"""The decorators of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

from missmdp._kernels.cache import kept_on_disk

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on first use, cache it on disk, and let other threads run beside it."""
    compile_: Any = cast("Any", numba).njit(nogil=True, no_cfunc_wrapper=True)
    return cast("Callable[P, R]", kept_on_disk(compile_(function)))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call: without the way in from Python, which takes long to compile."""
    compile_: Any = cast("Any", numba).njit(no_cfunc_wrapper=True, no_cpython_wrapper=True)
    return cast("Callable[P, R]", kept_on_disk(compile_(function)))
