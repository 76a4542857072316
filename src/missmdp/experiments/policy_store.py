"""Policies that took long to make, kept in a folder and found again.

A policy is kept as `optimal-1f0c92ab34.mmpolicy` beside its cell, `optimal-1f0c92ab34.cell`. The digits are a hash of
the policy's name, the model and the settings: what is found was made with just these.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from missmdp.errors import MissMDPError
from missmdp.experiments.baselines import BaselineSettings, MadePolicy, baseline_settings
from missmdp.experiments.grid.cell import Cell, CellResult, Finite
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.grid.store import CellStore
from missmdp.files import held_folder
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.load import load_policy
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.stopping import Status

KEPT = ("prior", "optimal", "ppo", "ppo-memory")
"""The baselines of which there is something to keep."""

_log = logging.getLogger(__name__)
_POLICY = ".mmpolicy"
_PATIENCE = 10.0
"""Seconds to wait for another evaluation, which needs only as long as writing takes."""


class Told(TypedDict):
    """What is kept of a `MadePolicy` besides the policy."""

    how: str
    seconds: Finite | None
    lower: Finite | None
    upper: Finite | None
    status: Status | None


@dataclass(frozen=True)
class PolicyCell(Cell, kind="policy", version=1):
    """A baseline for a model."""

    policy: str
    model: str
    """Its hash."""
    settings: BaselineSettings

    files = (_POLICY,)

    def found_type(self) -> Any:
        """Return the type of what is kept."""
        return Told

    def label(self) -> str:
        """Return the name of the policy."""
        return self.policy

    def parameters(self) -> dict[str, Any]:
        """Return what decides what comes out: of the settings, those of this policy."""
        return super().parameters() | {"settings": baseline_settings(self.policy, self.settings)}


class PolicyStore:
    """Baselines for one model, in a folder.

    Parameters
    ----------
    path
        The folder; made when something is kept.
    model
        The model that policies are for.
    settings
        How they are made.
    """

    def __init__(self, path: str | Path, model: MissMDP | POMDP, settings: BaselineSettings) -> None:
        self._store = CellStore(path)
        self._model = model_hash(model)
        self._settings = settings

    def _cell(self, name: str) -> PolicyCell:
        return PolicyCell(name, self._model, self._settings)

    def file(self, name: str) -> Path:
        """Return where a baseline is kept."""
        return self._store.path(self._cell(name), _POLICY)

    def find(self, name: str) -> MadePolicy | None:
        """Return a baseline if it is there, was made to its end, and is as it was written."""
        kept = self._store.read(self._cell(name))
        if kept is None or kept.found["status"] == "interrupted":
            return None
        try:
            policy = load_policy(self.file(name))
        except MissMDPError as error:
            _log.warning("%s; it is made again", error)
            return None
        return MadePolicy(policy, name, settings=baseline_settings(name, self._settings), **kept.found)

    def keep(self, name: str, made: MadePolicy) -> Path:
        """Write a baseline; return where."""
        assert isinstance(made.policy, AlphaVectorPolicy | MemoryPolicy | PPOPolicy)
        path = self.file(name)
        found = {key: getattr(made, key) for key in Told.__annotations__}
        # Several evaluations may share the folder; the two files must be of one.
        with held_folder(path.parent, patience=_PATIENCE):
            made.policy.save(path)
            self._store.write(self._cell(name), CellResult(found))
        return path
