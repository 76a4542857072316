"""What a policy is worth if the world is a little different from the model that it was made for.

The policy goes on believing its own model; the world has other transition probabilities, or another
missingness function. These are examples, chosen at random or by a rule: neither the worst case nor a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_instance, checked_integer, checked_list, checked_seed
from missmdp.errors import ParameterError
from missmdp.evaluation.perturbed import (
    Intervals,
    anywhere,
    distance,
    furthest,
    intervals_of,
    mixed,
    random_rows,
    random_within,
    with_probabilities,
    worst_successors,
)
from missmdp.evaluation.value import evaluate, standard_error
from missmdp.learn.bounds import Bound
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.policy import Policy, as_policy
from missmdp.model.pomdp import check_values, has_quick_values, optimal_values
from missmdp.plan.stopping import raise_if_interrupted
from missmdp.progress import show_progress
from missmdp.words import count, decimals, signed

What = Literal["transition", "missingness"]


@dataclass(frozen=True)
class SensitivityRow:
    """What the policy is worth in a world that differs from the model."""

    what: What
    """What is different."""
    how: str
    """In which way, in words."""
    size: float
    """How different: the share of T, or the largest total variation between M′ and M over reachable states."""
    value: float
    """What the policy is worth there."""
    stderr: float
    """The standard error of `value`."""
    difference: float
    """`value` minus what it is worth in the model itself."""
    difference_stderr: float
    """The standard error of `difference`, on the same episodes."""

    def __str__(self) -> str:
        places = decimals(self.difference_stderr)
        gap = f"{signed(self.difference, places)} ± {self.difference_stderr:.{places}f}"
        return f"{self.what}, {self.how}: {signed(self.value, places)} ({gap})"


class _Case(NamedTuple):
    """One way to be different: one world, or several that are drawn at random."""

    what: What
    how: str
    worlds: Iterable[MissMDP]
    """Made one by one."""
    share: float | None = None
    """None where the size is to be measured."""
    drawn: bool = False


class _Simulated(NamedTuple):
    """A policy's episodes in a world."""

    estimates: NDArray[np.float64]
    """Of its value, one per episode, shape (episodes,)."""
    size: float


def sensitivity(
    policy: Policy | Callable[[Any], Any] | None,
    model: MissMDP,
    bound: Bound | None = None,
    shares: Sequence[float] = (0.01, 0.05, 0.1),
    draws: int = 5,
    episodes: int = 2000,
    seed: int = 0,
    progress: bool | None = None,
    *,
    missingness: Sequence[MissingnessFunction] = (),
) -> list[SensitivityRow]:
    """Return what a policy is worth in worlds that differ slightly from its model.

    The policy keeps believing its own model. Every world is simulated with the same random draws, so differences
    have small errors. For each share, the transition probabilities are T′ = (1 − share) · T + share · D, where D is

    - a random distribution on the next states that T allows (`draws` of them: the average and the worst),
    - the next state of T with the lowest optimal value, as if an adversary who knows the state chose it,
    - anywhere: states that are reachable, but not in this step, so the policy sees what it considers impossible.

    With a bound, the missingness function is moved within its intervals: as seldom observed as they allow, as often
    observed, and `draws` random ones. Features that were never missing in the data stay observed. You can also give
    other missingness functions that may be true, such as those that `DynamicsEM.bootstrap` returns.

    None of this is a worst case or a guarantee: a world that is as close to the model can be worse. The worst of
    the draws is chosen and reported on the same episodes, so it looks a little worse than it is.

    Parameters
    ----------
    policy
        The policy, as for `evaluate`.
    model
        The model that it was made for, such as one with a learned missingness function.
    bound
        The learner's bound on the model's missingness function; M is moved within its intervals.
    shares
        How much of T is replaced.
    draws
        How many random D and random M to draw.
    episodes
        How many episodes to simulate in each world.
    seed
        For the episodes and the draws.
    progress
        Whether to show progress; by default on a terminal.
    missingness
        Missingness functions to try as they are: reported are the average over them, and the worst.
    """
    checked_model(model)
    policy, shares = as_policy(policy), _checked_shares(shares)
    seed, draws = checked_seed(seed), checked_integer("draws", draws, least=1)
    cases, total = _transition_cases(model, shares, draws, seed), 1 + len(shares) * (draws + 2)
    if bound is not None:
        factors = intervals_of(
            checked_instance("bound", bound, Bound, "a learner's bound, such as learner.bound()"), model
        )
        cases, total = chain(cases, _missingness_cases(model, factors, draws, seed)), total + draws + 2
    others = checked_list("missingness", missingness, "a list of missingness functions")
    if others:
        worlds = [model.with_missingness(other) for other in others]
        drawn = _Case("missingness", "learned from the resampled log", worlds, drawn=True)
        cases, total = chain(cases, [drawn]), total + len(worlds)
    rows: list[SensitivityRow] = []
    # Every world has values of its own, and for a large model they take longer than more episodes would.
    control_variate = has_quick_values(model.mdp, total)
    with show_progress("Sensitivity", total, enabled=progress) as advance:

        def simulated(world: MissMDP) -> NDArray[np.float64]:
            result = evaluate(policy, world, episodes, seed, control_variate=control_variate, progress=False)
            raise_if_interrupted(result.status)  # fewer episodes could not be compared with the others
            advance()
            return result.estimates

        nominal = simulated(model)
        for case in cases:
            found = [
                _Simulated(simulated(world), distance(world, model) if case.share is None else case.share)
                for world in case.worlds
            ]
            rows += _rows(case, found, nominal)
    return rows


def _transition_cases(model: MissMDP, shares: tuple[float, ...], draws: int, seed: int) -> Iterator[_Case]:
    if not shares:
        return
    mdp = model.mdp
    check_values("moving transitions to the worst next state", mdp, "give shares=[], and only M is moved")
    # The same D for every share, so shares can be compared.
    drawn = [random_rows(mdp, np.random.default_rng([seed, draw])) for draw in range(draws)]
    worst = worst_successors(mdp, optimal_values(mdp))
    for share in shares:
        size = f"share {100 * share:g} %"
        worlds = (_in(model, mixed(mdp, rows, share)) for rows in drawn)
        yield _Case("transition", f"mixed with random rows, {size}", worlds, share, drawn=True)
        worlds = (_in(model, mixed(mdp, rows, share)) for rows in [worst])
        yield _Case("transition", f"moved to the worst next state, {size}", worlds, share)
        worlds = (_in(model, anywhere(mdp, share, rng)) for rng in [np.random.default_rng([seed, draws])])
        yield _Case("transition", f"anything may happen, {size}", worlds, share)


def _missingness_cases(model: MissMDP, factors: list[Intervals], draws: int, seed: int) -> Iterator[_Case]:
    for observed in (False, True):
        ends = [furthest(factor, observed=observed) for factor in factors]
        how = f"as {'often' if observed else 'seldom'} observed as the bound allows"
        yield _Case("missingness", how, [with_probabilities(model, factors, ends)])
    worlds = (
        with_probabilities(model, factors, [random_within(factor, rng) for factor in factors])
        for rng in (np.random.default_rng([seed, draw]) for draw in range(draws))
    )
    yield _Case("missingness", "random within the bound", worlds, drawn=True)


def _in(model: MissMDP, mdp: FactoredMDP) -> MissMDP:
    return MissMDP(mdp, model.missingness, name=model.name)


def _rows(case: _Case, found: list[_Simulated], nominal: NDArray[np.float64]) -> Iterator[SensitivityRow]:
    if not case.drawn:
        yield _row(case, case.how, found[0], nominal)
        return
    many = count(len(found), "draw")
    average = _Simulated(
        np.mean([one.estimates for one in found], axis=0), float(np.mean([one.size for one in found]))
    )
    yield _row(case, f"{case.how}, average of {many}", average, nominal)
    worst = min(found, key=lambda one: one.estimates.mean())
    yield _row(case, f"{case.how}, worst of {many}", worst, nominal)


def _row(case: _Case, how: str, found: _Simulated, nominal: NDArray[np.float64]) -> SensitivityRow:
    gaps = found.estimates - nominal
    return SensitivityRow(
        what=case.what,
        how=how,
        size=found.size,
        value=float(found.estimates.mean()),
        stderr=standard_error(found.estimates),
        difference=float(gaps.mean()),
        difference_stderr=standard_error(gaps),
    )


def _checked_shares(shares: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(share) for share in shares)
    except (TypeError, ValueError):
        numbers = (-1.0,)
    if not all(0.0 <= share <= 1.0 for share in numbers):
        raise ParameterError("shares", shares, "a list of numbers from 0 to 1, such as [0.01, 0.1]")
    return numbers
