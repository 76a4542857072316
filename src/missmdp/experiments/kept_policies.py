"""Policies that took long to make, kept in a folder and found again.

A policy is kept as `optimal-1f0c92ab34.mmpolicy` beside `optimal-1f0c92ab34.json`. The digits are a hash of the
policy's name, the model, the settings and the version of the library: what is found was made with just these. The
.json file is written last and has a hash of the policy's file, so that what is damaged is not found.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from missmdp._version import __version__
from missmdp.errors import MissMDPError
from missmdp.experiments.baselines import BaselineSettings, MadePolicy, baseline_settings
from missmdp.experiments.grid.fingerprint import content_hash, model_hash
from missmdp.model.archive import write_atomically
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.load import load_policy
from missmdp.plan.ppo.policy import PPOPolicy

__all__ = ["KEPT", "PolicyFolder"]

KEPT = ("prior", "optimal", "ppo", "ppo-memory")
"""The baselines of which there is something to keep."""

_log = logging.getLogger(__name__)
_DIGITS = 10
_TOLD = ("how", "seconds", "lower", "upper", "status")
"""What is kept of a `MadePolicy` besides the policy."""


class PolicyFolder:
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
        self.path = Path(path)
        self._model = model_hash(model)
        self._settings = settings

    def file(self, name: str) -> Path:
        """Return where a baseline is kept."""
        return self.path / f"{name}-{content_hash(self._key(name))[:_DIGITS]}.mmpolicy"

    def find(self, name: str) -> MadePolicy | None:
        """Return a baseline if it is there, was made to its end, and is as it was written."""
        path = self.file(name)
        try:
            told = json.loads(path.with_suffix(".json").read_bytes())
            known = {key: told[key] for key in self._key(name)} == self._key(name)
            if not known or told["status"] == "interrupted" or told["policy_sha256"] != _sha256(path):
                return None
            settings = baseline_settings(name, self._settings)
            return MadePolicy(load_policy(path), name, settings=settings, **{key: told[key] for key in _TOLD})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, MissMDPError) as error:
            _log.warning("%s: cannot be used (%s)", path, error)
            return None

    def keep(self, name: str, made: MadePolicy) -> Path:
        """Write a baseline; return where."""
        assert isinstance(made.policy, AlphaVectorPolicy | PPOPolicy)
        path = self.file(name)
        made.policy.save(path)
        told = {
            **self._key(name),
            **{key: getattr(made, key) for key in _TOLD},
            "policy_sha256": _sha256(path),
        }
        write_atomically(path.with_suffix(".json"), f"{json.dumps(told, indent=1)}\n".encode())
        return path

    def _key(self, name: str) -> dict[str, Any]:
        return {
            "policy": name,
            "model": self._model,
            "settings": baseline_settings(name, self._settings),
            "written_by": f"missmdp {__version__}",
        }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
