"""What is reproduced, and how thoroughly: one frozen dataclass, which is also the file format, and ready-made profiles.

A field is a key in a TOML file (`sizes = [100, 1000]`) and an option (`--sizes 100,1000`). What holds for one
benchmark only stands in a table of its own (`[only.predator-mcar]`, `--only predator-mcar.max_trials=12`).
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from missmdp.benchmarks.registry import list_benchmarks
from missmdp.checks import (
    checked_flag,
    checked_instance,
    checked_integer,
    checked_mapping,
    checked_names,
    checked_number,
    checked_path,
    checked_text,
)
from missmdp.errors import Argument, DataError, FormatError, MissMDPError, ModelError, ParameterError
from missmdp.experiments.baselines import PAPER_BASELINES
from missmdp.experiments.reproduce.cells import learner_names
from missmdp.files import read_text, write_atomically
from missmdp.words import did_you_mean

CONFIG = "config.toml"
"""The configuration of a run, in its folder."""
PAPER = ("AMCAR", "AsMAR", "AIMI")
"""The paper's learners."""
SIZES = (10, 50, 100, 500, 1_000, 5_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""The paper's dataset sizes."""


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class ReproduceConfig:
    """The grid of experiments; the defaults are the paper's."""

    benchmarks: tuple[str, ...] = _setting(tuple(list_benchmarks()), "Benchmarks.")
    learners: tuple[str, ...] = _setting(
        PAPER, "Learners, by name; with +graph at the end they are told the true m-graph."
    )
    sizes: tuple[int, ...] = _setting(SIZES, "Dataset sizes at which total variation is measured.")
    runs: int = _setting(20, "Independent datasets of each size for total variation.")
    value_sizes: tuple[int, ...] = _setting(
        SIZES, "Dataset sizes at which policies are computed; none: no policies."
    )
    value_runs: int = _setting(20, "Independent datasets of each size for policies, the first of `runs`.")
    episodes: int = _setting(2_000, "Episodes in which a policy is evaluated, per run.")
    precision: float = _setting(1e-3, "Relative gap at which solving stops.")
    max_trials: int | None = _setting(None, "Trials after which solving stops; the same on every machine.")
    solve_timeout: float | None = _setting(180.0, "Seconds after which solving a learned model stops.")
    optimal_trials: int | None = _setting(None, "Trials for the true model.")
    prior_trials: int | None = _setting(None, "Trials for the prior's model, which is harder.")
    baseline_timeout: float | None = _setting(
        300.0, "Seconds for solving the true model and the prior's, each."
    )
    baselines: tuple[str, ...] = _setting(
        PAPER_BASELINES, "Policies to compare with; optimal and prior are the scale."
    )
    baseline_seeds: int = _setting(
        20, "Runs of POMCP and PPO, each with a seed of its own; at most value_runs."
    )
    pomcp_episodes: int = _setting(2_000, "Episodes per run of POMCP, if fewer than `episodes`.")
    tree_queries: int = _setting(1_000, "Tree queries per action of POMCP.")
    ppo_steps: int = _setting(1_000_000, "Steps that PPO trains for.")
    ppo_episodes: int = _setting(2_000, "Episodes per run of PPO, if fewer than `episodes`.")
    fully_observed: bool = _setting(True, "Also POMCP and PPO where nothing goes missing.")
    seed: int = _setting(0, "For everything random.")
    only: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]], metadata={"help": "Settings of one benchmark."}
    )

    def __post_init__(self) -> None:
        for known in fields(self):
            object.__setattr__(self, known.name, _checked(known, getattr(self, known.name)))
        checked_names("benchmarks", self.benchmarks, list_benchmarks(), "benchmark")
        checked_names("learners", self.learners, learner_names(), "learner")
        checked_names("baselines", self.baselines, PAPER_BASELINES, "baseline")
        if not self.benchmarks:
            raise ParameterError("benchmarks", self.benchmarks, "at least one")
        if self.value_sizes or self.baselines:
            _check_values(self)
        object.__setattr__(self, "only", {name: _own(name, settings) for name, settings in self.only.items()})
        for benchmark in self.only:
            # Raises if values do not go together.
            self.of(benchmark)

    def of(self, benchmark: str) -> ReproduceConfig:
        """Return what holds for one benchmark."""
        checked_text("benchmark", benchmark)
        return replace(self, benchmarks=(benchmark,), only={}, **self.only.get(benchmark, {}))

    def to_toml(self) -> str:
        """Return the configuration as TOML; None, which TOML does not have, is the word "none"."""
        lines = [f"{name} = {_toml(value)}" for name, value in asdict(self).items() if name != "only"]
        for benchmark, settings in self.only.items():
            lines += [
                "",
                f"[only.{benchmark}]",
                *(f"{name} = {_toml(value)}" for name, value in settings.items()),
            ]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the configuration to a TOML file."""
        write_atomically(path, self.to_toml().encode())

    @classmethod
    def of_run(cls, folder: str | Path) -> ReproduceConfig:
        """Return the configuration of a run, from its folder."""
        folder = checked_path(folder, "folder")
        if not is_reproduction(folder):
            raise MissMDPError(f"{folder}: no run of `missmdp reproduce` (there is no {CONFIG})")
        return cls.load(Path(folder) / CONFIG)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], base: ReproduceConfig | None = None) -> ReproduceConfig:
        """Return a configuration from what a TOML file holds; what is not said is as in `base`."""
        names = [known.name for known in fields(cls)]
        content = checked_mapping("content", content, "settings by name")
        for name in content:
            if name not in names:
                raise DataError(
                    f"there is no setting {name!r}; there are {', '.join(names)}{did_you_mean(name, names)}"
                )
        if base is not None:
            checked_instance("base", base, ReproduceConfig, "a ReproduceConfig")
        return replace(cls() if base is None else base, **content)

    @classmethod
    def load(cls, path: str | Path, base: ReproduceConfig | None = None) -> ReproduceConfig:
        """Return the configuration in a TOML file; what it does not say is as in `base`."""
        text = read_text(path, _MOST_BYTES)
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: not TOML ({error})") from error
        try:
            return cls.from_dict(content, base)
        except (DataError, ModelError) as error:
            raise DataError(f"{path}: {error}") from error


def is_reproduction(folder: str | Path) -> bool:
    """Return whether a folder is one of `reproduce`."""
    return (Path(folder) / CONFIG).is_file()


OWN = (
    "sizes",
    "runs",
    "value_sizes",
    "value_runs",
    "episodes",
    "precision",
    "max_trials",
    "solve_timeout",
    "optimal_trials",
    "prior_trials",
    "baseline_timeout",
    "baselines",
    "baseline_seeds",
    "pomcp_episodes",
    "tree_queries",
    "ppo_steps",
    "ppo_episodes",
    "fully_observed",
)
"""Settings that may differ between benchmarks."""


def field_type(known: Field[Any]) -> tuple[type, bool, bool]:
    """Return the type of a field's entries, whether it is a list of them, and whether None is allowed."""
    return _field_types()[known.name]


@lru_cache
def _field_types() -> dict[str, tuple[type, bool, bool]]:
    return {name: _parts(kind) for name, kind in get_type_hints(ReproduceConfig).items()}


def _parts(kind: Any) -> tuple[type, bool, bool]:
    optional = get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind)
    if optional:
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is tuple:
        return get_args(kind)[0], True, optional
    return (dict if get_origin(kind) is not None else kind), False, optional


def _own(benchmark: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one benchmark, checked one by one."""
    checked_names("only", [benchmark], list_benchmarks(), "benchmark")
    known = {each.name: each for each in fields(ReproduceConfig) if each.name in OWN}
    for name in settings:
        if name not in known:
            problem = (
                f"only.{benchmark}: {name!r} cannot differ between benchmarks; these can: {', '.join(OWN)}"
            )
            raise ParameterError("only", settings, f"settings among {', '.join(OWN)}", problem)
    return {name: _checked(known[name], value) for name, value in settings.items()}


def _checked(known: Field[Any], value: Any) -> Any:
    kind, several, optional = field_type(known)
    if value is None or (isinstance(value, str) and value == "none"):
        if optional:
            return None
        raise ParameterError(known.name, value, "a value", f"{known.name}: a value is needed")
    if several:
        if isinstance(value, str) or not isinstance(value, list | tuple):
            raise ParameterError(known.name, value, "a list")
        entries = tuple(_checked_entry(known.name, kind, entry) for entry in cast("list[Any]", value))
        if len(set(entries)) < len(entries):
            problem = f"{known.name}: something is listed twice"
            raise ParameterError(known.name, list(entries), "a list without repetitions", problem)
        return entries
    return _checked_entry(known.name, kind, value)


def _checked_entry(name: str, kind: type, value: Any) -> Any:
    if kind is bool:
        return checked_flag(name, value)
    if kind is int:
        least = 0 if name in _MAY_BE_NOTHING else 1
        return checked_integer(name, value, least=least, most=_MOST.get(name, 10**12))
    if kind is float:
        return checked_number(name, value, least=0.0, finite=False)
    if kind is str:
        return str(value)
    if not isinstance(value, Mapping):
        raise ParameterError(name, value, "settings per benchmark")
    given = cast("Mapping[str, Any]", value)
    for key, inner in given.items():
        if not isinstance(inner, Mapping):
            raise ParameterError(
                name, inner, f"settings of {key}", f"{name}.{key}: expected settings, got {inner!r}"
            )
    return {str(key): dict(inner) for key, inner in given.items()}


_MOST_BYTES = 2**20
"""Of a file of settings. What reads TOML takes time that grows with the square of long lines."""
_MOST = {"runs": 10_000, "value_runs": 10_000, "baseline_seeds": 10_000, "seed": 2**128}
"""Beyond what anybody waits for; every run is a cell, and all cells are listed before the first begins."""
_MAY_BE_NOTHING = ("seed", "max_trials", "optimal_trials", "prior_trials", "baseline_seeds")


def _check_values(config: ReproduceConfig) -> None:
    if config.value_sizes and not {"optimal", "prior"} <= set(config.baselines):
        raise DataError(
            "values are normalised by those of optimal and prior: add them to ",
            Argument("baselines"),
            ", or give no ",
            Argument("value_sizes"),
        )
    if config.episodes < 2:
        problem = "one episode has no error; evaluate at least two"
        raise ParameterError("episodes", config.episodes, "at least 2", problem)
    if config.baseline_seeds > config.value_runs:
        most = f"at most value_runs ({config.value_runs})"
        raise ParameterError("baseline_seeds", config.baseline_seeds, most)


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, cast('list[Any]', value)))}]"
    return repr(value)


PROFILES = {
    "smoke": ReproduceConfig(
        benchmarks=("icu-smar", "predator-smar"),
        sizes=(100, 1_000, 10_000),
        runs=4,
        value_sizes=(100, 10_000),
        value_runs=2,
        episodes=200,
        max_trials=5,
        optimal_trials=6,
        prior_trials=2,
        solve_timeout=None,
        baseline_timeout=None,
        baselines=("random", "prior", "optimal", "pomcp"),
        baseline_seeds=1,
        pomcp_episodes=10,
        tree_queries=100,
        fully_observed=False,
    ),
    "small": ReproduceConfig(
        value_sizes=(100, 1_000, 10_000, 100_000),
        value_runs=5,
        episodes=4_000,
        max_trials=16,
        optimal_trials=24,
        prior_trials=12,
        solve_timeout=None,
        baseline_timeout=None,
        baseline_seeds=2,
        pomcp_episodes=100,
        only={
            "predator-smar": {"prior_trials": 6},
            "predator-mnar-unid": {"prior_trials": 6},
            # Policies differ less there, and it is the hardest to solve.
            "predator-mcar": {"episodes": 20_000, "max_trials": 24, "optimal_trials": 36, "prior_trials": 6},
        },
    ),
    "paper": ReproduceConfig(),
}
"""smoke: whether it works, in under three minutes. small: about an hour on two cores, and the same on every machine,
since solving is limited by trials. paper: everything as in the paper's appendix, in more than a day."""


def profile(name: str) -> ReproduceConfig:
    """Return a ready-made configuration by its name."""
    if name not in PROFILES:
        problem = (
            f"there is no profile {name!r}; there are {', '.join(PROFILES)}{did_you_mean(name, PROFILES)}"
        )
        raise ParameterError("config", name, "a profile", problem)
    return PROFILES[name]
