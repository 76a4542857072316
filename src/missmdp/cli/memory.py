"""Too little memory: said before anything is loaded.

A library that runs out of memory while it is loaded may wait for ever (OpenBLAS), or end the process without a word
that helps (LLVM, Arrow). So limits of the process and its container are compared with what commands need at the least.
Memory that runs out later raises as usual.
"""

from __future__ import annotations

import os

from missmdp.errors import MissMDPError
from missmdp.memory import MB, address_limit, container_limit

__all__ = ["check_memory", "is_out_of_memory"]

_LARGE = {"run", "reproduce"}
"""The commands that load everything. The others need less, and --help and --version nearly nothing."""
ADDRESSES = {False: 1024 * MB, True: 2048 * MB}
"""Address space that small and large commands need. Libraries reserve it, and most is never used."""
MEMORY = {False: 384 * MB, True: 768 * MB}
"""Measured with icu-smar and 2,000 steps, compilation included, and rounded up; larger models need more."""
THRIFTY = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""What makes libraries reserve less address space, where that is limited."""
_ENOUGH = 4096 * MB
_SAID = ("failed to map segment", "cannot allocate memory", "can't start new thread")
"""What errors of other kinds say where memory has run out."""


def check_memory(command: str) -> None:
    """Raise `MissMDPError` if limits of the process or its container are too low for a command to begin."""
    large = command in _LARGE
    addresses = address_limit()
    if addresses is not None and addresses < _ENOUGH:
        for name, value in THRIFTY.items():
            os.environ.setdefault(name, value)
    for what, needed, limit, where in (
        ("address space", ADDRESSES[large], addresses, "ulimit -v"),
        ("memory", MEMORY[large], container_limit(), "of the control group, as in a container"),
    ):
        if limit is not None and limit < needed:
            raise MissMDPError(
                f"missmdp {command} needs {needed // MB:,} MB of {what}, but the limit is {limit // MB:,} MB ({where})"
            )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error comes from memory that has run out, whatever it is called."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        said = str(error).lower()
        if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
            return True
        if isinstance(error, ImportError | OSError | RuntimeError) and any(words in said for words in _SAID):
            return True
        error = error.__cause__ or error.__context__
    return False
