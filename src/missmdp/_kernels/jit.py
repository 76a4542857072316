"""The one decorator of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on first use, cache it on disk, and let other threads run beside it."""
    compile_: Any = cast("Any", numba).njit(cache=True, nogil=True)
    return cast("Callable[P, R]", compile_(function))
