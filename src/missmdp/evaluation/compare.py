"""Policies against each other, episode by episode with the same luck."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from missmdp.errors import DataError
from missmdp.evaluation.arena import Arena
from missmdp.evaluation.rounds import Limits, simulate
from missmdp.evaluation.statistics import standard_error, student_interval
from missmdp.evaluation.value import Evaluation, finished
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy, as_policy
from missmdp.model.pomdp import POMDP
from missmdp.words import decimals, interval_text, signed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Difference", "compare", "difference"]

Given = Policy | Callable[[Any], Any] | None
"""What `evaluate` takes as a policy."""
Policies = Mapping[str, Given] | list[Given] | tuple[Given, ...]


@dataclass(frozen=True)
class Difference:
    """How much more one policy is worth than another."""

    mean: float
    stderr: float
    episodes: int
    """How many episodes of each were compared."""
    correlation: float
    """Between the two policies' estimates in the same episodes; 0 where they did not share their luck."""
    unpaired_stderr: float
    """What the standard error would be with luck of their own."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Student's interval for the difference."""
        return student_interval(self.mean, self.stderr, self.episodes, confidence)

    @property
    def gain(self) -> float:
        """How many times smaller the error is for the shared luck."""
        return self.unpaired_stderr / self.stderr if self.stderr > 0.0 else math.inf

    def __str__(self) -> str:
        places = decimals(self.stderr)
        value = f"{signed(self.mean, places)} ± {self.stderr:.{places}f}"
        return f"{value} (95 % interval {interval_text(self.interval(), places)})"


def difference(one: Evaluation, other: Evaluation) -> Difference:
    """Return how much more the first policy is worth, paired where both met the same draws.

    If one has more episodes than the other, the episodes that both have are compared.
    """
    if (one.controlled is None) != (other.controlled is None):
        raise DataError("one of the two was evaluated with control_variate and the other without")
    count = min(one.episodes, other.episodes)
    mine, theirs = one.estimates[:count], other.estimates[:count]
    unpaired = math.hypot(standard_error(mine), standard_error(theirs))
    if not one.shares_luck_with(other):
        return Difference(float(mine.mean() - theirs.mean()), unpaired, count, 0.0, unpaired)
    varies = count > 1 and mine.std() > 0.0 and theirs.std() > 0.0
    correlation = float(np.corrcoef(mine, theirs)[0, 1]) if varies else 0.0
    return Difference(
        float((mine - theirs).mean()), standard_error(mine - theirs), count, correlation, unpaired
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several policies in one model, evaluated on the same episodes."""

    evaluations: dict[str, Evaluation]
    reference: str
    """The policy that the others are compared with."""

    def __getitem__(self, name: str) -> Evaluation:
        return self.evaluations[self._known(name)]

    def difference(self, name: str, other: str | None = None) -> Difference:
        """Return how much more a policy is worth than another, by default than the reference."""
        base = self.reference if other is None else self._known(other)
        return difference(self.evaluations[self._known(name)], self.evaluations[base])

    @property
    def differences(self) -> dict[str, Difference]:
        """How much more each policy is worth than the reference."""
        return {name: self.difference(name) for name in self.evaluations if name != self.reference}

    def _known(self, name: str) -> str:
        if name not in self.evaluations:
            raise DataError(f"there is no policy {name!r}; there are {', '.join(self.evaluations)}")
        return name

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return one row per policy: its value and its difference to the reference, with errors and intervals."""
        rows: list[dict[str, Any]] = []
        for name, evaluation in self.evaluations.items():
            low, high = evaluation.interval(confidence)
            row: dict[str, Any] = {
                "policy": name,
                "value": evaluation.mean,
                "stderr": evaluation.stderr,
                "low": low,
                "high": high,
                "episodes": evaluation.episodes,
            }
            if len(self.evaluations) > 1:
                gap = self.difference(name)
                itself = name == self.reference
                low, high = (0.0, 0.0) if itself else gap.interval(confidence)
                row |= {
                    "difference": 0.0 if itself else gap.mean,
                    "difference_stderr": 0.0 if itself else gap.stderr,
                    "difference_low": low,
                    "difference_high": high,
                    "correlation": gap.correlation,
                }
            rows.append(row)
        return rows

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return `rows` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows(confidence))

    def __str__(self) -> str:
        width = max(map(len, self.evaluations))
        lines = [f"{name:<{width}}  {evaluation}" for name, evaluation in self.evaluations.items()]
        lines += [
            f"{f'{name} − {self.reference}':<{2 * width + 3}}  {gap}"
            for name, gap in self.differences.items()
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.evaluations)}; reference {self.reference})"


def compare(
    policies: Policies,
    model: MissMDP | POMDP,
    episodes: int = 2000,
    seed: int | None = None,
    *,
    reference: str | None = None,
    until_stderr: float | None = None,
    max_episodes: int | None = None,
    horizon: int | None = None,
    control_variate: bool = False,
    timeout: float | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Return several policies' values in one model and their differences, on the same episodes.

    Parameters
    ----------
    policies
        {name: policy}, or a list of policies.
    model
        The model to act in: the truth.
    episodes
        How many episodes of each policy to simulate; with `until_stderr`, at least, and not fewer than 1,000.
    seed
        A non-negative integer; by default a fresh one.
    reference
        The policy that the others are compared with; by default the first.
    until_stderr
        Simulate until the standard error of every difference to the reference is at most this. The error is itself
        an estimate, and not believed before 1,000 episodes, or `max_episodes` if that is less; see `evaluate`.
    max_episodes, horizon, control_variate, timeout, workers, progress
        As in `evaluate`.
    """
    named = _named(policies)
    reference = next(iter(named)) if reference is None else str(reference)
    if reference not in named:
        raise DataError(f"the reference {reference!r} is none of the policies: {', '.join(named)}")
    limits = Limits(episodes, until_stderr, max_episodes, timeout, workers)
    arena = Arena(model, seed, horizon, control_variate=control_variate)
    stores = {name: arena.store(policy) for name, policy in named.items()}

    def largest_error() -> float:
        values = {name: arena.estimates(store.episodes()) for name, store in stores.items()}
        errors = [standard_error(values[name] - values[reference]) for name in values if name != reference]
        return max(errors, default=standard_error(values[reference]))

    began = time.monotonic()
    status = simulate(list(stores.values()), limits, largest_error, "Comparing", progress)
    seconds = time.monotonic() - began
    return Comparison(
        {name: finished(store, arena, status, seconds) for name, store in stores.items()}, reference
    )


def _named(policies: Policies) -> dict[str, Policy]:
    if isinstance(policies, Mapping):
        named = {str(name): as_policy(policy) for name, policy in policies.items()}
        if len(named) < len(policies):
            double = next(name for name in named if sum(str(other) == name for other in policies) > 1)
            raise DataError(f"two policies have the name {double!r}")
    elif isinstance(policies, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        named: dict[str, Policy] = {}
        for policy in map(as_policy, policies):
            kind = type(policy).__name__
            same = sum(type(known).__name__ == kind for known in named.values())
            named[kind if not same else f"{kind} {same + 1}"] = policy
    else:
        raise DataError(f"expected {{name: policy}} or a list of policies, got {cast('object', policies)!r}")
    if not named:
        raise DataError("there are no policies to compare")
    return named
