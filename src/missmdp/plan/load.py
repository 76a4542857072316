"""Saved policies of any kind."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite import controller
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.ppo import policy
from missmdp.plan.ppo.policy import PPOPolicy


def load_policy(path: str | Path) -> AlphaVectorPolicy | FiniteController | PPOPolicy:
    """Return the policy in an `.mmpolicy` file.

    It is an `AlphaVectorPolicy`, a `FiniteController` or a `PPOPolicy`, depending on the file.

    Raises
    ------
    FormatError
        If the file is of another kind, damaged, or from a newer version.
    """
    kind = _kind(path)
    if kind == policy.KIND:
        return PPOPolicy.load(path)
    if kind == controller.KIND:
        return FiniteController.load(path)
    return AlphaVectorPolicy.load(path)


def _kind(path: str | Path) -> object:
    """Return what a file says it holds, or None; what is wrong with it is said by who reads all of it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("meta.json"))["kind"]
    except Exception:
        return None
