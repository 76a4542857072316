"""Decisions when part of the state goes missing.

The public names are listed in `__init__.pyi`, each with the module that defines it. They are loaded when first used,
so `import missmdp` is quick.
"""

from __future__ import annotations

import importlib
from functools import cache

from missmdp.interop.gymnasium_ids import announce as _announce_to_gymnasium

TYPE_CHECKING = False  # as typing says; without loading it, Ctrl-C is heard sooner
if TYPE_CHECKING:
    from typing import Any


@cache
def _modules() -> dict[str, str]:
    """Return the module of each public name, as the stub says."""
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _modules():
        value = globals()[name] = getattr(importlib.import_module(_modules()[name]), name)
        return value
    raise AttributeError(f"module 'missmdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_modules())


_announce_to_gymnasium()
