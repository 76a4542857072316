"""Saved policies of any kind."""

from __future__ import annotations

from pathlib import Path

from missmdp.model.archive import archive_kind
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MEMORY_FILE, MemoryPolicy
from missmdp.plan.finite.controller import CONTROLLER_FILE, FiniteController
from missmdp.plan.ppo.policy import NETWORK_FILE, PPOPolicy


def load_policy(path: str | Path) -> AlphaVectorPolicy | FiniteController | MemoryPolicy | PPOPolicy:
    """Return the policy in an `.mmpolicy` file.

    It is an `AlphaVectorPolicy`, a `FiniteController`, a `MemoryPolicy` or a `PPOPolicy`, depending on the file.

    Raises
    ------
    FormatError
        If the file is of another kind, damaged, or from a newer version.
    """
    match archive_kind(path):
        case NETWORK_FILE.kind:
            return PPOPolicy.load(path)
        case CONTROLLER_FILE.kind:
            return FiniteController.load(path)
        case MEMORY_FILE.kind:
            return MemoryPolicy.load(path)
        case _:
            return AlphaVectorPolicy.load(path)
