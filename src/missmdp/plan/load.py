"""Saved policies of any kind."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from missmdp.plan import files as alpha_files

if TYPE_CHECKING:
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.finite.controller import FiniteController
    from missmdp.plan.ppo.policy import PPOPolicy

__all__ = ["load_policy"]


def load_policy(path: str | Path) -> AlphaVectorPolicy | FiniteController | PPOPolicy:
    """Return the policy in an `.mmpolicy` file.

    It is an `AlphaVectorPolicy`, a `FiniteController` or a `PPOPolicy`, by what the file holds.

    Raises
    ------
    FormatError
        If the file is no such file, damaged, or from a newer version.
    """
    from missmdp.plan.finite import files as controller_files
    from missmdp.plan.ppo import files as ppo_files

    kind = _kind(path)
    if kind == ppo_files.KIND:
        return ppo_files.load_policy(path)
    if kind == controller_files.KIND:
        return controller_files.load_controller(path)
    return alpha_files.load_policy(path)


def _kind(path: str | Path) -> object:
    """Return what a file says it holds, or None; what is wrong with it is said by who reads all of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("meta.json"))["kind"]
    except Exception:
        return None
