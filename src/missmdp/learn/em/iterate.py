"""Expectation–maximisation: expected counts under M, M from expected counts, until the likelihood stays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts
from missmdp.learn.blocks import Blocks, pattern_numbers
from missmdp.learn.em.histories import Expected
from missmdp.learn.em.structures import Factors
from missmdp.learn.groups import group_states
from missmdp.model.space import MISSING, StateSpace

Report = Callable[[int, float], None]
"""Is told the iteration and the penalised log-likelihood."""

_TRACE = 1e-3
"""Added to the count of every pattern over all groups: EM cannot leave a probability of zero."""


class Maximised(NamedTuple):
    """M after a maximisation step."""

    table: NDArray[np.float64]
    """P(pattern | state), shape (K, S)."""
    log_prior: float
    """What the prior adds to the log-likelihood there, up to a constant."""
    parameters: tuple[NDArray[np.float64], ...]


class Evidence(Protocol):
    """What M is learned from: histories, or single observations."""

    @property
    def n_steps(self) -> int:
        """The number of observations."""
        ...

    def expect(self, table: NDArray[np.float64], threads: int | None = None) -> Expected:
        """Return expected counts and the log-likelihood under M, P(pattern | state) of shape (K, S)."""
        ...

    def thinned(self, most: int) -> Self:
        """Return some of it, about `most` observations: enough to look for a structure."""
        ...


class StructureModel(Protocol):
    """A structure with its prior: all that is different between structures is the maximisation step."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def blocks(self) -> Blocks:
        """The blocks whose patterns M ranges over."""
        ...

    def maximise(self, expected: NDArray[np.float64], before: Maximised | None = None) -> Maximised:
        """Return the M that explains expected counts, shape (K, S), best; or one that does so better than before."""
        ...

    def n_parameters(self, reachable: NDArray[np.bool_]) -> int:
        """Return the number of free parameters."""
        ...


@dataclass(frozen=True, eq=False)
class PenalisedFactors:
    """Factors with pseudo-counts."""

    factors: Factors
    priors: tuple[NDArray[np.float64], ...]
    """Pseudo-counts of each factor, shape (G, O) each."""
    fallback: tuple[NDArray[np.float64], ...]
    """What groups without counts get, shape (G, O) each."""

    @property
    def name(self) -> str:
        """For people."""
        return self.factors.name

    @property
    def blocks(self) -> Blocks:
        """The blocks whose patterns M ranges over."""
        return self.factors.blocks

    def n_parameters(self, reachable: NDArray[np.bool_]) -> int:
        """Return the number of free probabilities of reachable states."""
        return self.factors.n_parameters(reachable)

    def maximise(self, expected: NDArray[np.float64], before: Maximised | None = None) -> Maximised:
        """Return the frequencies, pseudo-counts included."""
        thetas: list[NDArray[np.float64]] = []
        log_prior = 0.0
        for counts, prior, other in zip(
            self.factors.counts(expected), self.priors, self.fallback, strict=True
        ):
            both = counts + prior
            total = both.sum(axis=1, keepdims=True)
            theta = np.divide(both, total, out=other.copy(), where=total > 0.0)
            thetas.append(theta)
            some = prior > 0.0
            log_prior += float(prior[some] @ np.log(theta[some]))
        return Maximised(self.factors.table(thetas), log_prior, tuple(thetas))


def penalised(
    factors: Factors, start: NDArray[np.float64], visits: NDArray[np.float64], pseudo_count: float
) -> PenalisedFactors:
    """Return factors with pseudo-counts towards a start.

    Each group gets `pseudo_count` observations in all, distributed as the start has it on average over the group's
    states, as often as each is visited.

    Parameters
    ----------
    start
        P(pattern | state), shape (K, S).
    visits
        How often each state is visited, shape (S,).
    """
    # A trace of every state, so groups that are never visited have an average too.
    weight = visits + 1e-9 * max(float(visits.max(initial=0.0)), 1.0)
    means: list[NDArray[np.float64]] = []
    for counts in factors.counts(start * weight):
        total = counts.sum(axis=1, keepdims=True)
        uniform = np.full(counts.shape, 1.0 / counts.shape[1])
        means.append(np.divide(counts, total, out=uniform, where=total > 0.0))
    return PenalisedFactors(factors, tuple(pseudo_count * mean for mean in means), tuple(means))


@dataclass(frozen=True, eq=False)
class EMFit:
    """Where the iterations ended."""

    model: StructureModel
    maximised: Maximised
    expected: NDArray[np.float64]
    """Expected counts of patterns and states, shape (K, S)."""
    log_likelihood: float
    objective: float
    """The log-likelihood with the prior: what is maximised."""
    trace: tuple[float, ...]
    """The objective before each maximisation."""
    converged: bool

    @property
    def table(self) -> NDArray[np.float64]:
        """M as P(pattern | state), shape (K, S)."""
        return self.maximised.table

    def bic(self, n_steps: int, reachable: NDArray[np.bool_]) -> float:
        """Return the log-likelihood minus half the number of parameters times log n: higher is better."""
        return self.log_likelihood - 0.5 * self.model.n_parameters(reachable) * math.log(n_steps)


def iterate(
    histories: Evidence,
    model: StructureModel,
    start: NDArray[np.float64],
    *,
    tolerance: float = 1e-7,
    rest: float = 0.0,
    max_iterations: int = 1000,
    threads: int | None = None,
    report: Report | None = None,
) -> EMFit:
    """Return the M at which the penalised likelihood no longer rises.

    Parameters
    ----------
    histories
        The data.
    model
        The structure of M and its prior.
    start
        P(pattern | state) to begin with, shape (K, S); it need not have the structure.
    tolerance
        Stop when an iteration gains less than this per observation, in nats.
    rest
        Stop when all further iterations together would gain less than this, in nats, if gains go on falling as they do.
    max_iterations
        Stop after this many at the latest.
    """
    now = model.maximise(histories.expect(start, threads).counts)
    trace: list[float] = []
    enough = tolerance * histories.n_steps
    while True:
        expected = histories.expect(now.table, threads)
        trace.append(expected.log_likelihood + now.log_prior)
        if report is not None:
            report(len(trace), trace[-1])
        converged = len(trace) > 1 and (trace[-1] - trace[-2] < enough or _to_come(trace) < rest)
        if converged or len(trace) >= max_iterations:
            return EMFit(
                model, now, expected.counts, expected.log_likelihood, trace[-1], tuple(trace), converged
            )
        now = model.maximise(expected.counts, now)


def _to_come(trace: list[float]) -> float:
    """Return what is left to gain if each iteration gains a fixed share of what the one before gained."""
    if len(trace) < 3:
        return math.inf
    before, last = trace[-2] - trace[-3], trace[-1] - trace[-2]
    return last * last / (before - last) if before > last else math.inf


def asmar_table(counts: ObservationCounts, blocks: Blocks) -> NDArray[np.float64]:
    """Return what AsMAR learns from counts of observations, as a table over states; see `asmar_of`."""
    return asmar_of(counts.mdp.space, blocks, counts.codes, counts.counts)


def asmar_of(
    space: StateSpace, blocks: Blocks, codes: NDArray[np.integer[Any]], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return P(pattern | values of what is always observed) as a table over states, shape (K, S).

    One observation that is distributed like all of them is added to every group, so groups with few observations
    have no probabilities of zero.

    Parameters
    ----------
    codes, counts
        The distinct observations, shape (D, n), and how often each occurs, shape (D,).
    """
    features = space.features
    given = ~features.mask(blocks.features)
    values, label = group_states(space, given)
    ranks = features.rank(values)
    rows = features.rank(np.where(given, codes, MISSING))
    place = np.minimum(np.searchsorted(ranks, rows), len(ranks) - 1)
    pattern = pattern_numbers(blocks, codes != MISSING)
    inside = (ranks[place] == rows) & (pattern >= 0)
    table = np.zeros((len(ranks), len(blocks.patterns)))
    np.add.at(table, (place[inside], pattern[inside]), counts[inside])
    pooled = table.sum(axis=0) + _TRACE
    table += pooled / pooled.sum()
    table /= table.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(table[label].T)


def perturbed(table: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Return another M to start from: every state's distribution mixed half and half with a random one."""
    random = generator.dirichlet(np.ones(len(table)), size=table.shape[1]).T
    return 0.5 * table + 0.5 * random
