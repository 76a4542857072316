"""Expectation–maximisation for T, b₀ and M together, with the structures fixed; iterations are squared (SQUAREM)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.histories import Expected
from missmdp.learn.em.iterate import Maximised, PenalisedFactors, StructureModel
from missmdp.learn.joint.dynamics import Dynamics, Point
from missmdp.learn.joint.layout import JointExpected, JointHistories

Report = Callable[[float], None]
"""Is told the penalised log-likelihood."""


class Parameters(NamedTuple):
    """T, b₀ and M."""

    dynamics: Point
    missingness: Maximised


@dataclass(frozen=True, eq=False)
class JointFit:
    """Where the iterations ended."""

    dynamics: Dynamics
    model: StructureModel
    parameters: Parameters
    expected: JointExpected
    objective: float
    """The log-likelihood with the priors: what is maximised."""
    trace: tuple[float, ...]
    """The objective of each accepted point; it never falls."""
    converged: bool

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of the observations given the actions."""
        return self.expected.log_likelihood

    @property
    def table(self) -> NDArray[np.float64]:
        """M as P(pattern | state), shape (K, S)."""
        return self.parameters.missingness.table


def maximised(
    dynamics: Dynamics, model: StructureModel, expected: JointExpected, before: Parameters | None = None
) -> Parameters:
    """Return the parameters that explain expected counts best."""
    return Parameters(
        dynamics.maximise(expected.moved, expected.began),
        model.maximise(expected.counts, None if before is None else before.missingness),
    )


def fit_jointly(
    histories: JointHistories,
    dynamics: Dynamics,
    model: StructureModel,
    start: Parameters,
    *,
    tolerance: float = 1e-7,
    rest: float = 0.0,
    max_iterations: int = 1000,
    threads: int | None = None,
    report: Report | None = None,
) -> JointFit:
    """Return the parameters at which the penalised likelihood no longer rises.

    Parameters
    ----------
    histories
        The data.
    dynamics, model
        The structures of T and b₀, and of M.
    start
        Where to begin.
    tolerance
        Stop when an expectation step gains less than this per observation, in nats.
    rest
        Stop when an expectation step gains less than this, in nats.
    max_iterations
        Stop after so many expectation steps.
    """

    def looked_at(point: Parameters) -> tuple[JointExpected, float]:
        expected = histories.expect(
            dynamics.transition(point.dynamics),
            dynamics.initial(point.dynamics),
            point.missingness.table,
            threads,
        )
        prior = dynamics.log_prior(point.dynamics) + point.missingness.log_prior
        return expected, expected.log_likelihood + prior

    enough = max(tolerance * histories.n_steps, rest)
    now = start
    expected, value = looked_at(now)
    trace, steps = [value], 1
    while steps < max_iterations:
        if report is not None:
            report(value)
        first = maximised(dynamics, model, expected, now)
        expected_first, value_first = looked_at(first)
        steps += 1
        gain = value_first - value
        if gain < enough or steps >= max_iterations:
            if gain > 0.0:
                now, expected, value = first, expected_first, value_first
                trace.append(value)
            break
        trace.append(value_first)
        second = maximised(dynamics, model, expected_first, first)
        further = _extrapolated(dynamics, model, now, first, second)
        now, expected, value = first, expected_first, value_first
        if further is not None:
            expected_further, value_further = looked_at(further)
            steps += 1
            if value_further > value_first and expected_further.impossible <= expected_first.impossible:
                now, expected, value = further, expected_further, value_further
                trace.append(value)
                continue
        expected_second, value_second = looked_at(second)
        steps += 1
        now, expected, value = second, expected_second, value_second
        trace.append(value)
    return JointFit(dynamics, model, now, expected, value, tuple(trace), converged=steps < max_iterations)


def _extrapolated(
    dynamics: Dynamics, model: StructureModel, start: Parameters, first: Parameters, second: Parameters
) -> Parameters | None:
    """Return a point further along the way that two iterations took; None if there is none worth a look."""
    points = [_listed(model, point) for point in (start, first, second)]
    change = [b - a for a, b in zip(points[0], points[1], strict=True)]
    turn = [c - b - d for b, c, d in zip(points[1], points[2], change, strict=True)]
    length = np.sqrt(sum(float((d * d).sum()) for d in change))
    curved = np.sqrt(sum(float((v * v).sum()) for v in turn))
    if curved <= 1e-12 or length / curved <= 1.05:
        return None
    far = length / curved
    moved = [
        # No probability falls to less than a tenth of what the plain iteration gives it.
        np.maximum(a + 2.0 * far * d + far * far * v, 0.1 * c)
        for a, d, v, c in zip(points[0], change, turn, points[2], strict=True)
    ]
    n_steps, n_start = len(dynamics.steps.families), len(dynamics.start.families)
    families = [family for family, _ in dynamics.paired(start.dynamics)]
    scaled = [family.normalised(table) for family, table in zip(families, moved, strict=False)]
    point = Point(
        tuple(scaled[:n_steps]),
        tuple(scaled[n_steps : n_steps + n_start]),
        None if dynamics.ending is None else scaled[-1],
    )
    if not isinstance(model, PenalisedFactors):
        return Parameters(point, second.missingness)
    return Parameters(point, _as_maximised(model, moved[len(families) :]))


def _listed(model: StructureModel, point: Parameters) -> list[NDArray[np.float64]]:
    own = point.missingness.parameters if isinstance(model, PenalisedFactors) else ()
    ending = () if point.dynamics.ending is None else (point.dynamics.ending,)
    return [*point.dynamics.steps, *point.dynamics.start, *ending, *own]


def _as_maximised(model: PenalisedFactors, tables: list[NDArray[np.float64]]) -> Maximised:
    thetas: list[NDArray[np.float64]] = []
    log_prior = 0.0
    for table, prior, other in zip(tables, model.priors, model.fallback, strict=True):
        total = table.sum(axis=1, keepdims=True)
        theta = np.divide(table, total, out=other.copy(), where=total > 0.0)
        thetas.append(theta)
        some = prior > 0.0
        log_prior += float(prior[some] @ np.log(np.maximum(theta[some], 1e-300)))
    return Maximised(model.factors.table(thetas), log_prior, tuple(thetas))


class FittedAlong:
    """Evidence on M in which T and b₀ are fitted along: each expectation step leaves better dynamics behind.

    Their structure is kept. There are no pseudo-counts, so log-likelihoods of nested structures of M can be compared.
    """

    def __init__(self, histories: JointHistories, dynamics: Dynamics, point: Point) -> None:
        self.histories, self.dynamics, self.point = histories, dynamics, point
        self._plain = dynamics.without_prior()

    @classmethod
    def of(cls, histories: JointHistories, fit: JointFit) -> FittedAlong:
        """Return what a fit goes on from."""
        return cls(histories, fit.dynamics, fit.parameters.dynamics)

    @property
    def n_steps(self) -> int:
        """The number of observations."""
        return self.histories.n_steps

    @property
    def impossible(self) -> int:
        """Observations that cannot happen: none, since the dynamics are fitted to them."""
        return 0

    def expect(self, table: NDArray[np.float64], threads: int | None = None) -> Expected:
        """Return expected counts and the log-likelihood under M and the dynamics so far, and improve these."""
        initial = self.dynamics.initial(self.point)
        found = self.histories.expect(self.dynamics.transition(self.point), initial, table, threads)
        self.point = self._plain.maximise(found.moved, found.began)
        return Expected(found.counts, found.log_likelihood)

    def thinned(self, most: int) -> FittedAlong:
        """Return a part of the log, with dynamics of its own from here on."""
        thin = self.histories.thinned(most)
        return self if thin is self.histories else FittedAlong(thin, self.dynamics, self.point)
