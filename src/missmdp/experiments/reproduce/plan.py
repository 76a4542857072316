"""The grid of a configuration as a list of cells, each seeded from what it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from missmdp.experiments.baselines import BaselineSettings
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.reproduce.cells import (
    SCALE,
    BaselineCell,
    LearningCell,
    ValueCell,
    benchmark_model,
)
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.model.missmdp import fully_observed_model
from missmdp.plan.ppo.settings import PPOSettings

PaperCell = LearningCell | ValueCell | BaselineCell


def all_cells(config: ReproduceConfig) -> list[PaperCell]:
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


def _learning_cells(benchmark: str, config: ReproduceConfig) -> Iterator[LearningCell]:
    for size in config.sizes:
        for run in range(config.runs):
            seed = _data_seed(config, benchmark, size, run)
            yield LearningCell(benchmark, config.learners, size, run, seed)


def _value_cells(benchmark: str, config: ReproduceConfig) -> Iterator[ValueCell]:
    for size in config.value_sizes:
        for run in range(config.value_runs):
            for learner in config.learners:
                yield ValueCell(
                    benchmark,
                    learner,
                    size,
                    run,
                    _data_seed(config, benchmark, size, run),
                    _evaluation_seed(config, benchmark, run),
                    config.episodes,
                    config.precision,
                    config.max_trials,
                    config.solve_timeout,
                )


def _baseline_cells(benchmark: str, config: ReproduceConfig) -> Iterator[BaselineCell]:
    """Yield the cells of baselines, those that take longest first."""
    for policy in reversed(config.baselines):
        if policy in SCALE:
            seeds = tuple(_evaluation_seed(config, benchmark, run) for run in range(config.value_runs))
            settings = _settings(benchmark, policy, 0, config)
            yield BaselineCell(benchmark, policy, 0, False, settings, seeds, config.episodes)
            continue
        for run in range(config.baseline_seeds):
            yield _seeded_baseline(benchmark, policy, run, config, fully_observed=False)


def _fully_observed_cells(config: ReproduceConfig) -> Iterator[BaselineCell]:
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
                for run in range(own.baseline_seeds):
                    yield _seeded_baseline(benchmark, policy, run, own, fully_observed=True)


def _seeded_baseline(
    benchmark: str, policy: str, run: int, config: ReproduceConfig, *, fully_observed: bool
) -> BaselineCell:
    """Return the cell of a baseline with several seeds, in no more episodes than those that it is paired with."""
    most = config.pomcp_episodes if policy == "pomcp" else config.ppo_episodes
    return BaselineCell(
        benchmark,
        policy,
        run,
        fully_observed,
        _settings(benchmark, policy, run, config),
        (_evaluation_seed(config, benchmark, run),),
        min(most, config.episodes),
    )


def _settings(benchmark: str, policy: str, run: int, config: ReproduceConfig) -> BaselineSettings:
    """Return how a baseline is made; what is not its own keeps its default."""
    match policy:
        case "random":
            return BaselineSettings()
        case "optimal" | "prior":
            return BaselineSettings(
                precision=config.precision,
                max_trials=config.optimal_trials if policy == "optimal" else config.prior_trials,
                solve_timeout=config.baseline_timeout,
            )
        case "pomcp":
            return BaselineSettings(tree_queries=config.tree_queries)
        case _:
            return BaselineSettings(
                ppo=PPOSettings(steps=config.ppo_steps),
                ppo_memory=PPOSettings(steps=config.ppo_steps, memory=True),
                seed=_seed(config.seed, "training", benchmark, policy, run),
            )


@lru_cache
def _fully_observed_hash(benchmark: str) -> str:
    return model_hash(fully_observed_model(benchmark_model(benchmark)))


def _data_seed(config: ReproduceConfig, benchmark: str, size: int, run: int) -> int:
    """Return the seed of a dataset: the same for all learners."""
    return _seed(config.seed, "data", benchmark, size, run)


def _evaluation_seed(config: ReproduceConfig, benchmark: str, run: int) -> int:
    """Return the seed of the episodes of a run: the same for all policies, which so share their luck."""
    return _seed(config.seed, "evaluation", benchmark, run)


def _seed(*key: str | int) -> int:
    """Return 63 bits of a hash, so neighbouring keys have nothing in common."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, key)).encode()).digest()[:8], "big") >> 1
