"""The decorators of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import types

from missmdp._kernels.cache import kept_on_disk

P = ParamSpec("P")
R = TypeVar("R")

_types: Any = types


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on first use, cache it on disk, and let other threads run beside it."""
    compile_: Any = cast("Any", numba).njit(nogil=True, no_cfunc_wrapper=True)
    return cast("Callable[P, R]", kept_on_disk(_called_with_wide(compile_(function))))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only kernels call: without the way in from Python, which takes long to compile."""
    compile_: Any = cast("Any", numba).njit(no_cfunc_wrapper=True, no_cpython_wrapper=True)
    return cast("Callable[P, R]", kept_on_disk(_called_with_wide(compile_(function))))


def _called_with_wide(compiled: Any) -> Any:
    """Let kernels call a function with integers of 64 bits only.

    Otherwise it is compiled for each mixture of 32 bits, 64 bits and constants, and constants are tried for every
    variable that a loop begins with.
    """
    template = compiled.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        return template(tuple(map(_wide, arguments)), {name: _wide(kind) for name, kind in named.items()})

    compiled.get_call_template = get_call_template
    return compiled


def _wide(kind: Any) -> Any:
    plain = _types.unliteral(kind)
    if isinstance(plain, _types.Integer):
        return _types.int64 if plain.signed else plain
    return kind
