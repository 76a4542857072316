"""The grid as a list of cells: pieces of work that know nothing of each other, each seeded from its own key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Literal

from missmdp._version import __version__
from missmdp.benchmarks.registry import load_benchmark
from missmdp.experiments.fingerprint import content_hash, model_hash
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.model.missmdp import MissMDP, fully_observed_model

__all__ = ["Cell", "Kind", "all_cells", "benchmark_model"]

Kind = Literal["learning", "value", "baseline"]
"""learning: total variation of all learners on one dataset. value: the policy of one learner from one dataset.
baseline: a policy that needs no data."""

SCALE = ("random", "prior", "optimal")
"""Baselines that are made once and evaluated on the luck of every run, to be paired with what was learned."""
_DIGITS = 10


@dataclass(frozen=True)
class Cell:
    """A piece of work, and all that decides what comes out."""

    kind: Kind
    benchmark: str
    policy: str
    """The baseline, the learner, or "all" learners."""
    size: int
    """Of the dataset; 0 for baselines."""
    run: int
    """Which of the independent repetitions; 0 for baselines that are made once."""
    fully_observed: bool
    settings: tuple[tuple[str, Any], ...]
    """Name → value of what matters for this cell in the configuration."""

    def __getitem__(self, name: str) -> Any:
        return dict(self.settings)[name]

    @cached_property
    def name(self) -> str:
        """The name of its file: what it is in words, and a hash of all that decides what comes out."""
        key = {
            "settings": dict(self.settings),
            "model": _benchmark_hash(self.benchmark),
            "version": __version__,
        }
        words = [self.kind, self.benchmark, self.policy]
        words += ["nothing-missing"] if self.fully_observed else []
        words += [str(self.size)] if self.size else []
        return "-".join([*words, f"{self.run:02d}", content_hash(key)[:_DIGITS]])

    @property
    def data_seed(self) -> int:
        """The seed of its dataset: the same for all learners."""
        return _seed(self["seed"], "data", self.benchmark, self.size, self.run)

    @property
    def training_seed(self) -> int:
        """The seed of PPO's training."""
        return _seed(self["seed"], "training", self.benchmark, self.policy, self.run)

    def evaluation_seed(self, run: int) -> int:
        """Return the seed of the episodes of a run: the same for all policies, which so share their luck."""
        return _seed(self["seed"], "evaluation", self.benchmark, run)


def _seed(*key: str | int) -> int:
    """Return 63 bits of a hash, so that neighbouring keys have nothing in common."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, key)).encode()).digest()[:8], "big") >> 1


@lru_cache(maxsize=8)
def benchmark_model(benchmark: str) -> MissMDP:
    """Return a benchmark, built once per process."""
    return load_benchmark(benchmark)


@lru_cache
def _benchmark_hash(benchmark: str) -> str:
    return model_hash(benchmark_model(benchmark))


@lru_cache
def _fully_observed_hash(benchmark: str) -> str:
    return model_hash(fully_observed_model(benchmark_model(benchmark)))


def all_cells(config: ReproduceConfig) -> list[Cell]:
    """Return the cells of a configuration: baselines first, since one of them may take as long as much of the rest.

    Cells that use one dataset follow each other.
    """
    own = [(benchmark, config.of(benchmark)) for benchmark in config.benchmarks]
    return [
        *chain.from_iterable(_baseline_cells(*each) for each in own),
        *_fully_observed_cells(config),
        *chain.from_iterable(_learning_cells(*each) for each in own),
        *chain.from_iterable(_value_cells(*each) for each in own),
    ]


def _learning_cells(benchmark: str, config: ReproduceConfig) -> Iterator[Cell]:
    settings = _chosen(config, "learners", "seed")
    for size in config.sizes:
        for run in range(config.runs):
            yield Cell("learning", benchmark, "all", size, run, False, settings)


def _value_cells(benchmark: str, config: ReproduceConfig) -> Iterator[Cell]:
    settings = _chosen(config, "episodes", "precision", "max_trials", "solve_timeout", "seed")
    for size in config.value_sizes:
        for run in range(config.value_runs):
            for learner in config.learners:
                yield Cell("value", benchmark, learner, size, run, False, settings)


def _baseline_cells(benchmark: str, config: ReproduceConfig) -> Iterator[Cell]:
    """Yield the cells of baselines, those that take longest first."""
    for policy in reversed(config.baselines):
        settings = _baseline_settings(policy, config)
        if policy in SCALE:
            yield Cell("baseline", benchmark, policy, 0, 0, False, settings)
            continue
        for run in range(config.baseline_seeds):
            yield Cell("baseline", benchmark, policy, 0, run, False, settings)


def _fully_observed_cells(config: ReproduceConfig) -> Iterator[Cell]:
    """Yield POMCP and PPO without missingness, once for benchmarks that then are the same."""
    seen: set[str] = set()
    for benchmark in config.benchmarks:
        own = config.of(benchmark)
        without = _fully_observed_hash(benchmark)
        if not own.fully_observed or without in seen:
            continue
        seen.add(without)
        for policy in own.baselines:
            if policy in ("pomcp", "ppo"):
                settings = _baseline_settings(policy, own)
                for run in range(own.baseline_seeds):
                    yield Cell("baseline", benchmark, policy, 0, run, True, settings)


def _baseline_settings(policy: str, config: ReproduceConfig) -> tuple[tuple[str, Any], ...]:
    match policy:
        case "random":
            return _chosen(config, "episodes", "value_runs", "seed")
        case "optimal":
            names = ("episodes", "value_runs", "precision", "optimal_trials", "baseline_timeout", "seed")
            return _chosen(config, *names)
        case "prior":
            names = ("episodes", "value_runs", "precision", "prior_trials", "baseline_timeout", "seed")
            return _chosen(config, *names)
        case "pomcp":
            fewer = replace(config, pomcp_episodes=min(config.pomcp_episodes, config.episodes))
            return _chosen(fewer, "pomcp_episodes", "tree_queries", "seed")
        case _:
            fewer = replace(config, ppo_episodes=min(config.ppo_episodes, config.episodes))
            return _chosen(fewer, "ppo_episodes", "ppo_steps", "seed")


def _chosen(config: ReproduceConfig, *names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, getattr(config, name)) for name in names)
