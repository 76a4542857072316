"""The trials of a search for PPO's settings: how they are drawn, and the folder that keeps them.

The search space is the paper's (App., tab:parameter-search):

| hyperparameter | values | drawn |
|---|---|---|
| hidden layers | 2, 3, 4, 5 | uniformly |
| units per layer | 32, 64, 128, 256, 512 | uniformly |
| clip range | [0.1, 0.3] | uniformly |
| entropy coefficient | [10⁻⁴, 5 · 10⁻²] | log-uniformly |
| target KL divergence | [5 · 10⁻³, 3 · 10⁻²] | log-uniformly |
| actor's learning rate | [10⁻⁵, 3 · 10⁻⁴] | log-uniformly |
| critic's learning rate | [10⁻⁴, 3 · 10⁻³] | log-uniformly |
| minibatch | 32, 64, 128, 256 | uniformly |
| epochs per update | 5, 10, 20 | uniformly |

`search.json` says what the search is. A trial is a cell of the grid: its file is written when the trial is finished,
after its policy, `trial-007-….mmpolicy`.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast, get_type_hints

import msgspec
import numpy as np

from missmdp._version import __version__
from missmdp.checks import checked_integer, checked_seed
from missmdp.errors import DataError, FormatError, MissMDPError
from missmdp.experiments.grid.cell import Cell, CellResult, Count, Finite
from missmdp.experiments.grid.store import CellStore
from missmdp.files import read_text, write_atomically
from missmdp.plan.load import load_policy
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings

CHOICES = {
    "layers": (2, 3, 4, 5),
    "units": (32, 64, 128, 256, 512),
    "minibatch": (32, 64, 128, 256),
    "epochs": (5, 10, 20),
}
INTERVALS = {
    "clip_range": (0.1, 0.3),
    "entropy": (1e-4, 5e-2),
    "target_kl": (5e-3, 3e-2),
    "actor_learning_rate": (1e-5, 3e-4),
    "critic_learning_rate": (1e-4, 3e-3),
}
"""What is drawn from an interval: `clip_range` uniformly, the rest log-uniformly."""

_SETTINGS, _TRAINING, _SELECTION, _FRESH = range(4)
"""What a search draws for; each has a stream of its own."""


def sample_settings(
    seed: int, trial: int, *, steps: int = 1_000_000, memory: bool = False, horizon: int | None = None
) -> PPOSettings:
    """Return the hyperparameters of a trial, which depend on the seed and the trial's number alone.

    What the paper's table does not name is as in `PPOSettings`, but for learning rates, which stay what they are
    throughout: the paper speaks of no schedule.
    """
    random = np.random.default_rng(_sequence(seed, _SETTINGS, trial))
    drawn: dict[str, Any] = {name: int(random.choice(values)) for name, values in CHOICES.items()}
    drawn |= {name: _between(random, *ends, log=name != "clip_range") for name, ends in INTERVALS.items()}
    return PPOSettings(memory=memory, steps=steps, horizon=horizon, anneal=False, **drawn)


def training_seed(seed: int, trial: int) -> int:
    """Return the seed that a trial trains with."""
    return _number(_sequence(seed, _TRAINING, trial))


def selection_seed(seed: int) -> int:
    """Return the seed of the episodes in which all trials are evaluated, so they share their luck."""
    return _number(_sequence(seed, _SELECTION))


def fresh_seed(seed: int) -> int:
    """Return the seed of the episodes in which the winner is evaluated once more."""
    return _number(_sequence(seed, _FRESH))


def _sequence(seed: int, purpose: int, trial: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(
        checked_seed(seed), spawn_key=(purpose, checked_integer("trial", trial, least=0))
    )


def _number(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1, np.uint64)[0])


def _between(random: np.random.Generator, low: float, high: float, *, log: bool) -> float:
    if not log:
        return float(random.uniform(low, high))
    # Clipped for the last bit, which the exponential may round outwards.
    return min(high, max(low, math.exp(random.uniform(math.log(low), math.log(high)))))


_log = logging.getLogger(__name__)
_KIND = "PPO search"
_SEARCH = "search.json"
_TRIAL = re.compile(r"trial-([0-9]{3,9})-[0-9a-f]+\.cell")
_POLICY = ".mmpolicy"


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


_functional: Any = TypedDict
_HINTS = get_type_hints(PPOSettings)


def _narrow(kind: Any) -> Any:
    """Return a type without integers that no computer holds."""
    return {int: Count, int | None: Count | None}.get(kind, kind)


_FOUND = _functional(
    "_FOUND",
    {
        "settings": _functional("_SETTINGS", {name: _narrow(kind) for name, kind in _HINTS.items()}),
        "training_seed": Annotated[int, msgspec.Meta(ge=0)],
        **dict.fromkeys(("value", "stderr", "seconds"), Finite),
        **dict.fromkeys(("episodes", "steps"), Count),
    },
)
"""What is kept of a `Trial` besides its number and its policy."""


@dataclass(frozen=True)
class TrialCell(Cell, kind="trial", version=1):
    """One trial of a search."""

    number: int
    search: tuple[tuple[str, Any], ...]
    """What makes the search what it is: name → value."""

    files = (_POLICY,)

    def found_type(self) -> Any:
        """Return the type of what is kept."""
        return _FOUND

    def label(self) -> str:
        """Return which trial it is."""
        return f"trial-{self.number:03d}"


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
        self._store = CellStore(path)
        self._identity = dict(identity)
        if any(self.path.glob("trial-*.json")):
            raise FormatError(
                f"{self.path}: has trials of an earlier version of missmdp, which cannot be used; give another folder"
            )
        known = self._known()
        if known is None:
            if any(self.path.glob("trial-*.cell")):
                raise DataError(f"{self.path} has trials but no {_SEARCH}; give another folder")
            content = {"kind": _KIND, "written_by": f"missmdp {__version__}", **self._identity}
            write_atomically(self.path / _SEARCH, f"{json.dumps(content, indent=1)}\n".encode())
            return
        for name, value in self._identity.items():
            if known.get(name) != value:
                raise DataError(
                    f"{self.path} holds a search {_difference(name, known.get(name), value)}; "
                    "give another folder, or the same settings to resume it"
                )

    def _cell(self, number: int) -> TrialCell:
        return TrialCell(number, tuple(self._identity.items()))

    def trial_path(self, number: int) -> Path:
        """Return where the policy of a trial is."""
        return self._store.path(self._cell(number), _POLICY)

    def numbers(self) -> list[int]:
        """Return the numbers of all trials that there are files of."""
        found = (_TRIAL.fullmatch(path.name) for path in self.path.glob("trial-*.cell"))
        return sorted({int(match[1]) for match in found if match is not None})

    def read(self, number: int) -> Trial | None:
        """Return a trial if it is finished, or None; one that is damaged is not."""
        kept = self._store.read(self._cell(number))
        if kept is None:
            return None
        try:
            settings: Any = PPOSettings.from_dict(kept.found["settings"])
        except MissMDPError as error:
            _log.warning(
                "%s: damaged (%s); the trial is done again", self._store.path(self._cell(number)), error
            )
            return None
        return Trial(number=number, **{**kept.found, "settings": settings})

    def write(self, trial: Trial, policy: PPOPolicy) -> None:
        """Keep a finished trial."""
        policy.save(self.trial_path(trial.number))
        found = asdict(trial)
        del found["number"]
        self._store.write(self._cell(trial.number), CellResult(found))

    def policy(self, number: int) -> PPOPolicy:
        """Return the policy of a finished trial."""
        path = self.trial_path(number)
        policy = load_policy(path)
        if not isinstance(policy, PPOPolicy):
            raise FormatError(f"{path}: holds another kind of policy than PPO's")
        return policy

    def _known(self) -> dict[str, Any] | None:
        path = self.path / _SEARCH
        if not path.exists():
            return None
        text = read_text(path)
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: cannot be read (not JSON: {error})") from error
        if not isinstance(content, dict) or cast("dict[str, Any]", content).get("kind") != _KIND:
            raise FormatError(f"{path}: not the description of a search for PPO's settings")
        return cast("dict[str, Any]", content)


def _difference(name: str, known: Any, wanted: Any) -> str:
    if name == "model":
        return "for another model"
    return f"with {name} = {known}, not {wanted}"
