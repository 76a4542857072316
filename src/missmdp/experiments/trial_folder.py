"""The folder of a search: what is searched, and the trials that are finished.

`search.json` says what the search is, `trial-007.json` is written when trial 7 is finished, after its policy
`trial-007.mmpolicy`. Every file is written to a temporary name and renamed, so whatever ends the process, a trial
is either finished or was never there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from missmdp._version import __version__
from missmdp.errors import DataError, FormatError, MissMDPError
from missmdp.model.archive import write_atomically
from missmdp.plan.load import load_policy
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["Trial", "TrialFolder"]

_log = logging.getLogger(__name__)

_KIND = "PPO search"
_SEARCH = "search.json"
_TRIAL = re.compile(r"trial-([0-9]{3,9})\.json")


@dataclass(frozen=True)
class Trial:
    """A finished trial."""

    number: int
    """From 1."""
    settings: PPOSettings
    training_seed: int
    value: float
    """Mean discounted return over the episodes that all trials are evaluated on."""
    stderr: float
    episodes: int
    steps: int
    """Steps that were trained."""
    seconds: float
    """Time of training."""

    def row(self) -> dict[str, Any]:
        """Return the trial as one row of a table."""
        settings = asdict(self.settings)
        steps = settings.pop("steps")
        return {
            "trial": self.number,
            "value": self.value,
            "stderr": self.stderr,
            "episodes": self.episodes,
            "training_seed": self.training_seed,
            "steps": steps,
            "trained_steps": self.steps,
            "seconds": self.seconds,
            **settings,
        }


class TrialFolder:
    """Where a search keeps its trials.

    Parameters
    ----------
    path
        The folder; made when something is written.
    identity
        What makes the search what it is: name → value. A folder of another search is refused.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._identity = dict(identity)
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file; a search needs a folder")
        known = self._known()
        if known is None:
            if self.path.is_dir() and any(self.path.glob("trial-*.json")):
                raise DataError(f"{self.path} has trials but no {_SEARCH}; give another folder")
            content = {"kind": _KIND, "written_by": f"missmdp {__version__}", **self._identity}
            write_atomically(self.path / _SEARCH, f"{json.dumps(content, indent=1)}\n".encode())
            return
        for name, value in self._identity.items():
            if known.get(name) != value:
                raise DataError(
                    f"{self.path} holds a search {_difference(name, known.get(name), value)}; "
                    "give another folder, or the same settings to go on with it"
                )

    def trial_path(self, number: int, suffix: str) -> Path:
        """Return the file of a trial."""
        return self.path / f"trial-{number:03d}{suffix}"

    def numbers(self) -> list[int]:
        """Return the numbers of all trials that there are files of."""
        found = (_TRIAL.fullmatch(path.name) for path in self.path.glob("trial-*.json"))
        return sorted({int(match[1]) for match in found if match is not None})

    def read(self, number: int, settings: PPOSettings, training_seed: int) -> Trial | None:
        """Return a trial if it is finished, or None; one that is damaged is not."""
        path = self.trial_path(number, ".json")
        if not path.exists():
            return None
        try:
            stored = json.loads(path.read_bytes())
            policy = self.trial_path(number, ".mmpolicy").read_bytes()
            trial = Trial(
                number=stored["trial"],
                settings=PPOSettings.from_dict(stored["settings"]),
                training_seed=stored["training_seed"],
                value=float(stored["value"]),
                stderr=float(stored["stderr"]),
                episodes=int(stored["episodes"]),
                steps=int(stored["trained_steps"]),
                seconds=float(stored["seconds"]),
            )
            expected = (number, settings, training_seed, _sha256(policy))
            if (trial.number, trial.settings, trial.training_seed, stored["policy_sha256"]) == expected:
                return trial
            reason = "it is not what was finished"
        except (OSError, ValueError, KeyError, TypeError, RecursionError, MissMDPError) as error:
            reason = f"{type(error).__name__}: {error}"
        _log.warning("%s: damaged (%s); the trial counts as not finished", path, reason)
        return None

    def write(self, trial: Trial, policy: PPOPolicy) -> None:
        """Keep a finished trial."""
        path = self.trial_path(trial.number, ".mmpolicy")
        policy.save(path)
        content = {
            **{key: value for key, value in trial.row().items() if key in _OWN},
            "settings": asdict(trial.settings),
            "policy": path.name,
            "policy_sha256": _sha256(path.read_bytes()),
        }
        text = f"{json.dumps(content, indent=1)}\n"
        write_atomically(self.trial_path(trial.number, ".json"), text.encode())

    def policy(self, number: int) -> PPOPolicy:
        """Return the policy of a finished trial."""
        path = self.trial_path(number, ".mmpolicy")
        policy = load_policy(path)
        if not isinstance(policy, PPOPolicy):
            raise FormatError(f"{path}: holds another kind of policy than PPO's")
        return policy

    def _known(self) -> dict[str, Any] | None:
        path = self.path / _SEARCH
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise FormatError(f"{path}: cannot be read ({error})") from error
        if not isinstance(content, dict) or cast("dict[str, Any]", content).get("kind") != _KIND:
            raise FormatError(f"{path}: not the description of a search for PPO's settings")
        return cast("dict[str, Any]", content)


_OWN = ("trial", "value", "stderr", "episodes", "training_seed", "trained_steps", "seconds")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _difference(name: str, known: Any, wanted: Any) -> str:
    if name == "model":
        return "for another model"
    return f"with {name} = {known}, not {wanted}"
