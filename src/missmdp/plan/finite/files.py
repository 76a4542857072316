"""Saved controllers: the file of their α-vectors' policy, with the nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from missmdp.errors import FormatError
from missmdp.model.archive import read_archive, write_archive
from missmdp.model.missmdp import named_damage
from missmdp.plan.files import policy_from_parts, policy_parts
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.finite.plan import ControllerPlan

__all__ = ["KIND", "load_controller", "save_controller"]

KIND = "finite controller"
_ARRAYS = ("action", "start", "sight", "successor", "sight_of")
_NODE = "node_"
"""Prefix of the plan's arrays."""


def save_controller(controller: FiniteController, path: str | Path) -> None:
    """Write a controller and its model to a file."""
    meta, arrays = policy_parts(controller.policy)
    plan = {_NODE + name: getattr(controller.plan, name) for name in _ARRAYS}
    write_archive(path, KIND, {**meta, "root": controller.plan.root}, {**arrays, **plan})


def load_controller(path: str | Path) -> FiniteController:
    """Return the controller in a file, with its model."""
    meta, arrays = read_archive(path, KIND)
    with named_damage(path):
        for name in _ARRAYS:
            if arrays[_NODE + name].dtype != np.int64:
                raise FormatError(f"{_NODE + name} must hold integers, not {arrays[_NODE + name].dtype}")
        if not isinstance(meta["root"], int):
            raise FormatError(f"root is {meta['root']!r}, not a number")
        plan = ControllerPlan(root=meta["root"], **{name: arrays[_NODE + name] for name in _ARRAYS})
        return FiniteController(policy_from_parts(meta, arrays), plan)
