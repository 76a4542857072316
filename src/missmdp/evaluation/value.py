"""What a policy is worth: simulated episodes of it, with the error of their mean.

V(π) = E Σ_t γᵗ ρ(s_t, a_t). Episodes are cut after L decisions, after which less than 10⁻³ of discounted reward is
left (the paper's horizon). All draws are addressed by (seed, episode, step, purpose) and invert a CDF, so policies
which are evaluated with one seed share their luck, and the differences between them have small errors.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from missmdp.checks import checked_confidence
from missmdp.errors import Argument, DataError, ParameterError
from missmdp.evaluation.simulation import Arena, EpisodeStore
from missmdp.evaluation.stopping import Ended, StoppingRule, simulate
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy, as_policy
from missmdp.model.pomdp import POMDP
from missmdp.pages.notebook import notebook_table
from missmdp.words import count, decimals, interval_text, rounded_up, signed, with_error

_log = logging.getLogger(__name__)


_ROUNDING = 1e-12

_COLUMNS = ("value", "95 % interval", "episodes")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of a policy in a model, from simulated episodes."""

    returns: NDArray[np.float64]
    """Discounted return of each episode, shape (episodes,)."""
    decisions: NDArray[np.int64]
    """Decisions per episode, shape (episodes,)."""
    terminated: NDArray[np.bool_]
    """Whether the episode reached a terminal state, shape (episodes,)."""
    events: dict[str, int]
    """What else happened and how often: how the policy got over observations that its model excludes."""
    horizon: int
    """The most decisions per episode."""
    truncation: float
    """What the decisions after the horizon are worth at most, in either direction."""
    seed: int
    status: Ended
    """Why no more episodes were simulated."""
    seconds: float
    controlled: NDArray[np.float64] | None = None
    """Estimates of the value per episode with less luck in them, if asked for (`control_variate`)."""
    model: MissMDP | POMDP | None = field(default=None, repr=False)
    """The model that was acted in."""

    @property
    def episodes(self) -> int:
        """How many episodes there are."""
        return len(self.returns)

    @property
    def estimates(self) -> NDArray[np.float64]:
        """What is averaged: the returns, or `controlled` with a control variate."""
        return self.returns if self.controlled is None else self.controlled

    @cached_property
    def mean(self) -> float:
        """The estimate of the value."""
        return float(self.estimates.mean())

    @cached_property
    def stderr(self) -> float:
        """The standard error of `mean`."""
        return standard_error(self.estimates)

    @property
    def std(self) -> float:
        """The standard deviation of the returns."""
        return float(self.returns.std(ddof=1)) if self.episodes > 1 else math.nan

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Student's interval for the value."""
        return student_interval(self.mean, self.stderr, self.episodes, confidence)

    def quantile(self, q: ArrayLike) -> Any:
        """Return quantiles of the returns: a number, or an array for several."""
        try:
            found = np.quantile(self.returns, np.asarray(q, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ParameterError("q", q, "a number between 0 and 1, or several") from error
        return float(found) if np.ndim(found) == 0 else found

    @property
    def quantiles(self) -> dict[float, float]:
        """The quantiles 5, 25, 50, 75 and 95 % of the returns."""
        levels = (0.05, 0.25, 0.5, 0.75, 0.95)
        return dict(zip(levels, np.quantile(self.returns, levels).tolist(), strict=True))

    @property
    def impossible(self) -> int:
        """How many observations had probability zero under the policy's own model."""
        return sum(self.events.get(kind, 0) for kind in ("admitted", "restarted", "ignored"))

    def shares_luck_with(self, other: Evaluation) -> bool:
        """Whether two policies met the same draws, so episodes can be compared one by one."""
        same_model = self.model is not None and (self.model is other.model or self.model == other.model)
        return self.seed == other.seed and self.horizon == other.horizon and same_model

    def __str__(self) -> str:
        places = decimals(self.stderr)
        text = f"{signed(self.mean, places)} ± {self.stderr:.{places}f} ({count(self.episodes, 'episode')}"
        return f"{text}; 95 % interval {interval_text(self.interval(), places)})"

    def __repr__(self) -> str:
        return f"Evaluation({self})"

    def _repr_html_(self) -> str:
        """Return the value as a table, for notebooks."""
        return notebook_table("Evaluation", _COLUMNS, [self.cells()])

    def cells(self) -> list[str]:
        """Return the value, its 95 % interval and the number of episodes, for a table."""
        between = interval_text(self.interval(), decimals(self.stderr))
        return [with_error(self.mean, self.stderr), between, f"{self.episodes:,}"]

    def describe(self) -> str:
        """Return the result in a few lines of text."""
        places = decimals(self.stderr)
        low, *middle, high = (signed(value, places) for value in self.quantiles.values())
        lines = [
            f"value         {signed(self.mean, places)}   standard error {self.stderr:.{places}f}",
            f"95 % interval {interval_text(self.interval(), places)}",
            f"episodes      {self.episodes:,} of at most {self.horizon:,} decisions, seed {self.seed}",
            f"returns       5 % {low}, quartiles {', '.join(middle)}, 95 % {high}",
        ]
        if self.terminated.any():
            share, after = 100 * self.terminated.mean(), self.decisions[self.terminated].mean()
            lines.append(f"ended early   {share:.1f} % of episodes, after {after:.1f} decisions on average")
        if self.truncation > self._negligible():
            left = rounded_up(self.truncation)
            lines.append(f"cut off       decisions after the horizon are worth {left} at most")
        happened = [f"{times:,} {name}" for name, times in self.events.items() if times]
        if happened:
            lines.append(f"events        {', '.join(happened)}")
        if self.status in ("timeout", "interrupted"):
            lines.append(f"stopped       {self.status} before all episodes were simulated")
        return "\n".join(lines)

    def _negligible(self) -> float:
        """Return what need not be mentioned beside the error, or beside the mean if that has none but of rounding."""
        if self.stderr > _ROUNDING * abs(self.mean):
            return 0.1 * self.stderr
        return 1e-6 * abs(self.mean)


def evaluate(
    policy: Policy | Callable[[Any], Any] | None,
    model: MissMDP | POMDP,
    episodes: int = 2000,
    seed: int | None = None,
    *,
    until_stderr: float | None = None,
    max_episodes: int | None = None,
    horizon: int | None = None,
    control_variate: bool = False,
    timeout: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Return the value of a policy in a model.

    Policies track the belief under the model that they were made for, which may be a learned one. Those
    made of α-vectors, memoryless ones, POMCP and PPO are simulated in bulk; any other policy is asked for an agent per
    episode, in Python. The same seed gives the same result for any number of threads, and more episodes extend
    fewer.

    Parameters
    ----------
    policy
        The policy; a function from observation to action will do, and None is uniformly random.
    model
        The model to act in: the truth.
    episodes
        How many episodes to simulate; with `until_stderr`, at least, and not fewer than 1,000.
    seed
        A non-negative integer; by default a fresh one, which the result records.
    until_stderr
        Simulate until the standard error of the mean is at most this. The error is itself an estimate, which misses
        what is too rare to have happened yet. So it is not believed before 1,000 episodes, or `max_episodes` if that
        is less.
    max_episodes
        The most episodes with `until_stderr`; by default ten million.
    horizon
        The most decisions per episode; by default L, after which less than 10⁻³ of discounted reward is left.
    control_variate
        Whether to subtract the luck of the draws of states, measured with the value V* of the fully observed MDP:
        V*(b₀) + Σ_t γᵗ A*(s_t, a_t) − γᵀ V*(s_T) is averaged then, with A* the advantage in that MDP and T the
        number of decisions. Its mean is that of the returns, and it usually needs far fewer episodes. `returns` are
        not affected.
    timeout
        Stop after this many seconds with the episodes that were finished by then.
    threads
        How many threads; by default one per core.
    progress
        Whether to show progress; by default on a terminal.
    """
    rule = StoppingRule(episodes, until_stderr, max_episodes, timeout, threads)
    arena = Arena(model, seed, horizon, control_variate=control_variate)
    store = arena.store(as_policy(policy))
    began = time.monotonic()
    status = simulate(
        [store], rule, lambda: standard_error(arena.estimates(store.episodes())), "Evaluating", progress
    )
    return finished(store, arena, status, time.monotonic() - began)


def finished(store: EpisodeStore, arena: Arena, status: Ended, seconds: float) -> Evaluation:
    """Return what the episodes so far say."""
    if not len(store):
        raise DataError("not one episode was finished in time; give it a longer ", Argument("timeout"))
    episodes = store.episodes()
    result = Evaluation(
        returns=episodes.returns,
        decisions=episodes.decisions,
        terminated=episodes.terminated,
        events=dict(zip(store.events, episodes.events.sum(axis=0).tolist(), strict=True)),
        horizon=arena.horizon,
        truncation=arena.truncation,
        seed=arena.seed,
        status=status,
        seconds=seconds,
        controlled=arena.estimates(episodes) if arena.controls else None,
        model=arena.model,
    )
    _log.info("evaluated %d episodes with seed %d: %s", result.episodes, result.seed, result)
    return result


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean; nan for fewer than two values."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def student_interval(mean: float, stderr: float, samples: int, confidence: float) -> tuple[float, float]:
    """Return Student's interval for a mean of so many samples; without a standard error it is unbounded."""
    confidence = checked_confidence(confidence)
    if math.isnan(stderr):
        return -math.inf, math.inf
    half = stderr * float(stats.t.ppf(0.5 + 0.5 * confidence, samples - 1))
    return mean - half, mean + half
