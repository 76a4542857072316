"""Policies against each other: differences on the same episodes, and values on a common scale.

On that scale 1 is what the optimal policy is worth and 0 what the prior's is worth (Sec. 6, "Metrics").
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.checks import checked_confidence, checked_number
from missmdp.errors import Argument, DataError, ParameterError
from missmdp.evaluation.simulation import Arena
from missmdp.evaluation.stopping import StoppingRule, simulate
from missmdp.evaluation.value import Evaluation, finished, standard_error, student_interval
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy, as_policy
from missmdp.model.pomdp import POMDP
from missmdp.pages.notebook import notebook_table
from missmdp.sums import one_by_one
from missmdp.words import UNKNOWN, decimals, did_you_mean, interval_text, signed, with_error

if TYPE_CHECKING:
    import pandas as pd

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
        """How many times smaller the error is because of the shared luck."""
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
        raise DataError(
            "one of the two was evaluated with ", Argument("control_variate"), " and the other without"
        )
    shared = min(one.episodes, other.episodes)
    mine, theirs = one.estimates[:shared], other.estimates[:shared]
    unpaired = math.hypot(standard_error(mine), standard_error(theirs))
    if not one.shares_luck_with(other):
        return Difference(float(mine.mean() - theirs.mean()), unpaired, shared, 0.0, unpaired)
    varies = shared > 1 and mine.std() > 0.0 and theirs.std() > 0.0
    correlation = float(np.corrcoef(mine, theirs)[0, 1]) if varies else 0.0
    return Difference(
        float((mine - theirs).mean()), standard_error(mine - theirs), shared, correlation, unpaired
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several policies in one model, evaluated on the same episodes."""

    evaluations: dict[str, Evaluation]
    reference: str
    """The policy that the others are compared with."""

    def __getitem__(self, name: str) -> Evaluation:
        return self.evaluations[_known("name", name, self.evaluations)]

    def difference(self, name: str, other: str | None = None) -> Difference:
        """Return how much more a policy is worth than another, by default than the reference."""
        base = self.reference if other is None else _known("other", other, self.evaluations)
        return difference(self[name], self.evaluations[base])

    @property
    def differences(self) -> dict[str, Difference]:
        """How much more each policy is worth than the reference."""
        return {name: self.difference(name) for name in self.evaluations if name != self.reference}

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

    def _repr_html_(self) -> str:
        """Return the values and their differences as a table, for notebooks."""
        gaps = self.differences
        rows = [
            [name, *one.cells(), with_error(gaps[name].mean, gaps[name].stderr) if name in gaps else UNKNOWN]
            for name, one in self.evaluations.items()
        ]
        columns = ["policy", "value", "95 % interval", "episodes", f"minus {self.reference}"]
        return notebook_table("Comparison", columns, rows)


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
    threads: int | None = None,
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
    max_episodes, horizon, control_variate, timeout, threads, progress
        As in `evaluate`.
    """
    named = _named(policies)
    reference = next(iter(named)) if reference is None else _known("reference", str(reference), named)
    rule = StoppingRule(episodes, until_stderr, max_episodes, timeout, threads)
    arena = Arena(model, seed, horizon, control_variate=control_variate)
    stores = {name: arena.store(policy) for name, policy in named.items()}

    def largest_error() -> float:
        values = {name: arena.estimates(store.episodes()) for name, store in stores.items()}
        errors = [standard_error(values[name] - values[reference]) for name in values if name != reference]
        return max(errors, default=standard_error(values[reference]))

    began = time.monotonic()
    status = simulate(list(stores.values()), rule, largest_error, "Comparing", progress)
    seconds = time.monotonic() - began
    return Comparison(
        {name: finished(store, arena, status, seconds) for name, store in stores.items()}, reference
    )


def _known(argument: str, name: str, policies: Mapping[str, Any]) -> str:
    """Return the name of a policy that there is."""
    if not isinstance(name, str) or name not in policies:  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = did_you_mean(name, policies)
        problem = f"there is no policy {name!r}; the policies are {', '.join(policies)}{hint}"
        raise ParameterError(argument, name, "the name of a policy", problem)
    return name


def _named(policies: Policies) -> dict[str, Policy]:
    if isinstance(policies, Mapping):
        named = {str(name): as_policy(policy) for name, policy in policies.items()}
        if len(named) < len(policies):
            double = next(name for name in named if sum(str(other) == name for other in policies) > 1)
            problem = f"two policies have the name {double!r}"
            raise ParameterError("policies", policies, "{name: policy}", problem)
    elif isinstance(policies, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        named: dict[str, Policy] = {}
        for policy in map(as_policy, policies):
            kind = type(policy).__name__
            same = sum(type(known).__name__ == kind for known in named.values())
            named[kind if not same else f"{kind} {same + 1}"] = policy
    else:
        problem = f"expected {{name: policy}} or a list of policies, got {cast('object', policies)!r}"
        raise ParameterError("policies", policies, "{name: policy} or a list of policies", problem)
    if not named:
        raise ParameterError("policies", policies, "not empty", "there are no policies to compare")
    return named


@dataclass(frozen=True)
class NormalisedValue:
    """(V − V_prior)/(V_optimal − V_prior), with its error."""

    numerator: float
    """V − V_prior."""
    denominator: float
    """V_optimal − V_prior."""
    covariance: tuple[tuple[float, float], tuple[float, float]]
    """Of the two estimates."""
    episodes: float = math.inf
    """The fewest episodes behind any of them; infinite where all are known without error."""

    @property
    def mean(self) -> float:
        """The normalised value."""
        return self.numerator / self.denominator

    def __float__(self) -> float:
        return self.mean

    @property
    def stderr(self) -> float:
        """The standard error, to first order (delta method)."""
        (vn, cov), (_, vd) = self.covariance
        variance = vn - 2.0 * self.mean * cov + self.mean**2 * vd
        return math.sqrt(max(0.0, variance)) / abs(self.denominator)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Fieller's interval, which is correct even if the denominator is uncertain.

        It is unbounded if the data do not even tell the optimal policy from the prior policy.
        """
        z = float(stats.t.ppf(0.5 + 0.5 * checked_confidence(confidence), self.episodes - 1.0))
        (vn, cov), (_, vd) = self.covariance
        n, d = self.numerator, self.denominator
        # All θ with (n − θd)² ≤ z² Var(n − θd): a θ² − 2 b θ + c ≤ 0.
        a, b, c = d * d - z * z * vd, n * d - z * z * cov, n * n - z * z * vn
        if a <= 0.0:
            return -math.inf, math.inf
        root = math.sqrt(max(0.0, b * b - a * c))
        return (b - root) / a, (b + root) / a

    def __str__(self) -> str:
        places = decimals(self.stderr)
        value = f"{signed(self.mean, places)} ± {self.stderr:.{places}f}"
        return f"{value} (95 % interval {interval_text(self.interval(), places)})"


def normalised_value(
    value: Evaluation | float, optimal: Evaluation | float, prior: Evaluation | float
) -> NormalisedValue:
    """Return a policy's value on a scale on which the optimal policy has 1 and the prior policy has 0.

    Parameters
    ----------
    value, optimal, prior
        The three values: evaluations, or numbers that are known without error. Evaluations with the same random
        draws are compared episode by episode, which makes the error far smaller; one may have fewer episodes than
        the others.

    Raises
    ------
    DataError
        If the optimal policy is worth no more than the prior policy: then there is no scale.
    """
    for name, given in (("value", value), ("optimal", optimal), ("prior", prior)):
        if not isinstance(given, Evaluation):
            checked_number(name, given, expected="an Evaluation or a finite number")
    kinds = {given.controlled is None for given in (value, optimal, prior) if isinstance(given, Evaluation)}
    if len(kinds) > 1:
        raise DataError(
            "some of the three were evaluated with ", Argument("control_variate"), " and others without"
        )
    above, scale = _Gap(value, prior), _Gap(optimal, prior)
    if not scale.mean > 0.0:
        raise DataError(
            f"the optimal policy is worth {scale.one:.6g} and the prior's {scale.other:.6g}: no scale from 0 to 1 "
            "(is the problem solved, and are these the right way round?)"
        )
    covariance = _covariance(above, scale)
    return NormalisedValue(
        above.mean,
        scale.mean,
        ((_covariance(above, above), covariance), (covariance, _covariance(scale, scale))),
        min(above.episodes, scale.episodes),
    )


class _Gap:
    """The mean of one value minus that of another, over the same episodes where both met the same luck."""

    def __init__(self, one: Evaluation | float, other: Evaluation | float) -> None:
        paired = isinstance(one, Evaluation) and isinstance(other, Evaluation) and one.shares_luck_with(other)
        shared = min(_episodes(one), _episodes(other)) if paired else None
        self.terms = ((1.0, _Mean(one, shared)), (-1.0, _Mean(other, shared)))
        (_, first), (_, second) = self.terms
        self.one, self.other = first.value, second.value
        self.mean = self.one - self.other
        self.episodes = min(term.episodes for _, term in self.terms)


class _Mean:
    """A mean over the first episodes of an evaluation, or a number."""

    def __init__(self, given: Evaluation | float, episodes: float | None) -> None:
        self.source = given if isinstance(given, Evaluation) else None
        self.episodes = _episodes(given) if episodes is None else episodes
        if self.episodes == 1:
            raise DataError("one episode has no error; evaluate at least two")
        self.value = (
            float(given) if not isinstance(given, Evaluation) else float(self.estimates(self.episodes).mean())
        )

    def estimates(self, episodes: float) -> NDArray[np.float64]:
        """Return the first estimates."""
        assert self.source is not None
        return self.source.estimates[: int(episodes)]


def _episodes(given: Evaluation | float) -> float:
    return given.episodes if isinstance(given, Evaluation) else math.inf


def _covariance(one: _Gap, other: _Gap) -> float:
    return one_by_one(
        sign * other_sign * _covariance_of_means(mine, theirs)
        for sign, mine in one.terms
        for other_sign, theirs in other.terms
    )


def _covariance_of_means(one: _Mean, other: _Mean) -> float:
    """Return the covariance of two means: σ_xy over the larger number of episodes, where luck is shared."""
    if one.source is None or other.source is None:
        return 0.0
    if one.source is not other.source and not one.source.shares_luck_with(other.source):
        return 0.0
    both = min(one.episodes, other.episodes)
    together = np.cov(one.estimates(both), other.estimates(both))[0, 1]
    return float(together / max(one.episodes, other.episodes))
