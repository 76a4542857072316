"""Models and policies in the file formats of other tools: `.pomdp` (Cassandra), `.pomdpx` and `.policyx` (APPL).

Functions are loaded when first used, so nobody pays for a parser that is not needed.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as typing says; this package is loaded first of all, and must be quick
if TYPE_CHECKING:
    from typing import Any

    from missmdp.interop.model_files import read_model, write_model
    from missmdp.interop.pomdp.reader import read_pomdp
    from missmdp.interop.pomdp.writer import write_pomdp
    from missmdp.interop.pomdpx.by_features import read_miss_mdp
    from missmdp.interop.pomdpx.policyx import read_policyx, write_policyx
    from missmdp.interop.pomdpx.reader import read_pomdpx
    from missmdp.interop.pomdpx.writer import write_pomdpx

_MODULE_OF = {
    "read_miss_mdp": "missmdp.interop.pomdpx.by_features",
    "read_model": "missmdp.interop.model_files",
    "read_policyx": "missmdp.interop.pomdpx.policyx",
    "read_pomdp": "missmdp.interop.pomdp.reader",
    "read_pomdpx": "missmdp.interop.pomdpx.reader",
    "write_model": "missmdp.interop.model_files",
    "write_policyx": "missmdp.interop.pomdpx.policyx",
    "write_pomdp": "missmdp.interop.pomdp.writer",
    "write_pomdpx": "missmdp.interop.pomdpx.writer",
}

__all__ = [
    "read_miss_mdp",
    "read_model",
    "read_policyx",
    "read_pomdp",
    "read_pomdpx",
    "write_model",
    "write_policyx",
    "write_pomdp",
    "write_pomdpx",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'missmdp.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
