"""What was run, in short."""

from __future__ import annotations

from missmdp._version import __version__
from missmdp.experiments.reproduce.config import ReproduceConfig
from missmdp.experiments.reproduce.style import POLICIES, size_text
from missmdp.experiments.reproduce.summary import Summary
from missmdp.pages.markup import Html
from missmdp.pages.page import facts
from missmdp.words import count, listed

__all__ = ["run_facts"]


def run_facts(summary: Summary) -> Html:
    """Return what was run, as names and texts."""
    config = summary.config
    pairs = [
        ("benchmarks", listed(config.benchmarks)),
        ("learners", listed(config.learners)),
        ("total variation", f"{count(config.runs, 'dataset')} each of {_sizes(config.sizes)} steps"),
        ("policies", _policies(config)),
        ("solver", _solver(config)),
        ("baselines", _baselines(config)),
        ("cells", f"{summary.finished:,} of {len(summary.cells):,} finished"),
        ("seed", f"{config.seed}; every cell has seeds of its own, made from it"),
        ("version", f"missmdp {__version__}"),
    ]
    if config.only:
        pairs.append(("other settings for", listed(list(config.only))))
    return facts(pairs)


def _sizes(sizes: tuple[int, ...]) -> str:
    return listed([size_text(size) for size in sizes], most=12)


def _policies(config: ReproduceConfig) -> str:
    if not config.value_sizes:
        return "none"
    return (
        f"for {count(config.value_runs, 'dataset')} each of {_sizes(config.value_sizes)} steps, "
        f"evaluated in {config.episodes:,} episodes each"
    )


def _solver(config: ReproduceConfig) -> str:
    limits = [
        f"to a gap of {100 * config.precision:g} %",
        *([f"at most {config.max_trials} trials"] if config.max_trials is not None else []),
        *([f"at most {config.solve_timeout:g} s"] if config.solve_timeout is not None else []),
    ]
    return ", ".join(limits)


def _baselines(config: ReproduceConfig) -> str:
    if not config.baselines:
        return "none"
    names = listed([name for policy, name in POLICIES.items() if policy in config.baselines], most=12)
    if not {"pomcp", "ppo", "ppo-memory"} & set(config.baselines):
        return names
    return f"{names}; {count(config.baseline_seeds, 'seed')} where chance has a part"
