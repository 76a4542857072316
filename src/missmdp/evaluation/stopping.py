"""How long to simulate: a number of episodes, an error that is small enough, or a time."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from missmdp.checks import checked_integer, checked_number, checked_threads
from missmdp.data.simulation import Stopped
from missmdp.errors import Argument, DataError
from missmdp.evaluation.simulation import EpisodeStore
from missmdp.progress import show_progress

_log = logging.getLogger(__name__)

Ended = Literal["episodes", "stderr", "timeout", "interrupted"]
"""Why no more episodes were simulated: all were, the error was small enough, time was up, or Ctrl-C."""

_MOST_EPISODES = 10_000_000
_FEWEST_EPISODES = 1000
"""Before an error is believed: it is an estimate too, and 0 while something rare has not happened yet."""
_GROWTH = 4
"""How many times as many episodes to simulate at most before the error is looked at again."""
_FIRST_PART = 64
"""Episodes that each of several policies gets before any gets more."""
_MARGIN = 1.05
"""Of the episodes that the error seems to need."""


@dataclass(frozen=True)
class StoppingRule:
    """When to stop simulating; the arguments are checked when it is made."""

    episodes: int
    until_stderr: float | None = None
    max_episodes: int | None = None
    timeout: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        checked_integer("episodes", self.episodes, least=1)
        for name in ("until_stderr", "timeout"):
            if getattr(self, name) is not None:
                checked_number(name, getattr(self, name), above=0.0)
        if self.max_episodes is not None:
            checked_integer("max_episodes", self.max_episodes, least=1)
            if self.until_stderr is None:
                raise DataError(
                    Argument("max_episodes"),
                    " goes with ",
                    Argument("until_stderr"),
                    "; otherwise give the number as ",
                    Argument("episodes"),
                )
        checked_threads(self.threads)

    @property
    def thread_count(self) -> int:
        """How many threads to use: one per core unless given."""
        return os.cpu_count() or 1 if self.threads is None else self.threads

    @property
    def first(self) -> int:
        """How many episodes to simulate before the error is looked at, or altogether."""
        if self.until_stderr is None:
            return self.episodes
        return min(max(self.episodes, _FEWEST_EPISODES), self.most)

    @property
    def most(self) -> int:
        """The most episodes."""
        if self.until_stderr is None:
            return self.episodes
        return _MOST_EPISODES if self.max_episodes is None else self.max_episodes


def simulate(
    stores: Sequence[EpisodeStore],
    rule: StoppingRule,
    stderr: Callable[[], float],
    description: str,
    progress: bool | None,
) -> Ended:
    """Simulate the same episodes in all stores until a limit; return which.

    `stderr` is asked after each round. How many episodes a round has follows from the errors alone, so the result
    is the same for any number of threads.
    """
    for store in stores:
        store.make_ready()
    deadline = math.inf if rule.timeout is None else time.monotonic() + float(rule.timeout)
    wanted = None if rule.until_stderr is None else float(rule.until_stderr)
    target = rule.first
    ended: Ended = "episodes"
    total = None if wanted is not None else target * len(stores)
    with show_progress(description, total, enabled=progress) as advance:
        try:
            while True:
                for part in _parts(target, len(stores)):
                    for store in stores:
                        store.extend_to(part, rule.thread_count, advance, deadline)
                if wanted is None:
                    break
                error = stderr()
                if error <= wanted:
                    ended = "stderr"
                    break
                if target == rule.most:
                    _log.warning(
                        "after %d episodes the standard error is %g, not %g",
                        target,
                        error,
                        wanted,
                    )
                    break
                target = min(rule.most, _next_target(target, error, wanted))
        except Stopped:
            ended = "timeout"
        except KeyboardInterrupt:
            if not all(map(len, stores)):
                raise
            _log.warning("interrupted after %d episodes", min(map(len, stores)))
            ended = "interrupted"
    return ended


def _parts(target: int, stores: int) -> list[int]:
    """Return numbers up to the target: few first, so all stores have some wherever it stops."""
    parts = [target]
    while stores > 1 and parts[-1] > _FIRST_PART:
        parts.append(parts[-1] // 2)
    return parts[::-1]


def _next_target(count: int, error: float, wanted: float) -> int:
    """Return how many episodes the wanted error seems to need, but not too many more than there are."""
    ratio = error / wanted
    # Not ratio**2, which raises where the result is too large for a float.
    needed = math.inf if math.isnan(error) else _MARGIN * count * ratio * ratio
    return math.ceil(min(max(needed, count + 1), _GROWTH * max(count, 25)))
