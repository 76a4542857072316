"""Saved policies of any kind."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from missmdp.plan import files as alpha_files

if TYPE_CHECKING:
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.ppo.policy import PPOPolicy

__all__ = ["load_policy"]


def load_policy(path: str | Path) -> AlphaVectorPolicy | PPOPolicy:
    """Return the policy in an `.mmpolicy` file: `AlphaVectorPolicy` or `PPOPolicy`, by what the file holds.

    Raises
    ------
    FormatError
        If the file is no such file, damaged, or from a newer version.
    """
    from missmdp.plan.ppo import files as ppo_files

    if _kind(path) == ppo_files.KIND:
        return ppo_files.load_policy(path)
    return alpha_files.load_policy(path)


def _kind(path: str | Path) -> object:
    """Return what a file says it holds, or None; what is wrong with it is said by who reads all of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("meta.json"))["kind"]
    except Exception:
        return None
