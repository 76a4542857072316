"""What the extra `baselines` brings: loaded when it is used, with a word on how to get it where it is not there."""

from __future__ import annotations

import importlib
from typing import Any

from missmdp.errors import MissingExtra


def require(module: str) -> Any:
    """Return a module of the extra `baselines`; raise `MissingExtra` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f'{module} cannot be imported ({error}); install it with: pip install "missmdp[baselines]"',
            name=module,
        ) from error
