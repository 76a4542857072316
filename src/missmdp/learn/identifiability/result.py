"""The answer to whether M is identified, and in words.

The full law of states and indicators is identified if and only if the m-graph has no self-censoring edge S_i → R_i
and no colluder S_j → R_i ← R_j (Nabi, Bhattacharya and Shpitser, ICML 2020), provided that every pattern is possible.
The graphs of that theorem have directed edges between indicators. Ours have none: a dependence R_i — R_j is taken
as an edge in whichever direction makes a colluder, since nothing in the graph rules it out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.identifiability.dynamics_result import DynamicsAnswer
from missmdp.learn.identifiability.tangent import Tangent
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph

_MOST_LISTED = 5
"""What `describe` lists before it only counts."""

_BARELY = 1e-6
"""A margin below which numbers are close to another answer."""

_MOVES = 1e-7
"""An entry is open if some direction moves it more than this."""


@dataclass(frozen=True, eq=False)
class Unidentified:
    """Probabilities of a structure that the law of observations leaves open: one group of states."""

    features: tuple[str, ...]
    """The features whose indicators these are."""
    given: dict[str, Any]
    """The values that the states of the group share; empty where all states are one group."""
    patterns: tuple[tuple[str, ...], ...]
    """What is missing in each of the patterns whose probability is open."""
    states: NDArray[np.int64] | None
    """Indices of the reachable states in the group; None where no MDP was given."""
    why: str = ""
    """The reason, where there is one to name, or which effect of a logistic structure it is."""

    def __str__(self) -> str:
        what = ", ".join(f"P({' + '.join(pattern)} missing)" for pattern in self.patterns if pattern)
        where = " and ".join(f"{name} = {value!r}" for name, value in self.given.items())
        return what + (f" where {where}" if where else "") + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Whether the distribution of observations determines M.

    `describe()` explains the answer.
    """

    structure: str
    """The structure that M is taken to have."""
    identified: bool | None
    """True if M is identified, False if it is not, None if neither could be shown."""
    globally: bool
    """Whether a condition holds under which almost no M of the structure shares its law with another one."""
    locally: bool | None
    """True if no small change of M leaves the law of observations as it is; False if some does, however long histories
    are; None if some does for histories of length `horizon`, but perhaps not for longer ones."""
    horizon: int | None
    """The h of the law of z₀ … z_h that `locally` and `unidentified` are about."""
    n_parameters: int | None
    """How many free probabilities the structure has for reachable states."""
    rank: int | None
    """How many of them, or independent combinations of them, the law determines locally."""
    unidentified: tuple[Unidentified, ...]
    """What is left open, by group of states."""
    states: NDArray[np.bool_] | None
    """Which states have an M(· | s) that is left open, shape (S,)."""
    undetermined: tuple[Any, ...]
    """The observations z for which T does not determine M(z | ·) by itself, as it would with full column rank; with
    less than a saturated M that may be no harm."""
    margin: float
    """The smallest singular value that was counted as positive, relative to the largest: near 0, the answer is a
    matter of rounding, and learning of very many data."""
    dynamics: DynamicsAnswer | None = None
    """What is determined of T and b₀ if they are unknown, and by which theorems; None where T is known. Otherwise
    `identified`, `globally`, `locally`, `n_parameters` and `rank` are about T, b₀ and M together."""

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the answer in sentences."""
        if self.n_parameters is None:
            return self._from_snapshots()
        if self.dynamics is not None:
            lines = self._with_dynamics(self.dynamics, self.n_parameters)
        else:
            lines = self._verdict(self.n_parameters)
            lines += [f"  {line}" for line in self._listed()]
        if self.identified is not False and self.margin < _BARELY:
            lines.append(
                f"Only just: the smallest singular value is {self.margin:.1g} of the largest, so it takes very "
                "many data."
            )
        return "\n".join(lines)

    def _verdict(self, n_parameters: int) -> list[str]:
        law = f"the law of observations under known dynamics (structure: {self.structure})"
        count = f"{n_parameters:,} probabilit{'y' if n_parameters == 1 else 'ies'}"
        if n_parameters == 0:
            return ["Nothing goes missing, so M is known."]
        if self.identified:
            return [f"M is identified: {law} determines {'it' if n_parameters == 1 else 'all'} of {count}."]
        open_ = n_parameters - (self.rank or 0)
        if self.identified is False and not open_:
            return [
                f"M is not identified: no small change of its {count} leaves {law} as it is, but some M share "
                "it with a quite different one.",
                "They differ in:",
            ]
        if self.identified is False:
            return [
                f"M is not identified, however much data there is: {law} leaves {open_:,} of {count} open.",
                "Open are:",
            ]
        if self.locally:
            return [
                f"M is identified at least locally: no small change of its {count} leaves {law} as it is. Whether "
                "a quite different M does is not decided."
            ]
        return [
            f"Not decided: for histories of {self.horizon} steps after a full observation, {law} leaves {open_:,} "
            f"of {count} open; longer histories may determine more (horizon=).",
            "Open so far are:",
        ]

    def _with_dynamics(self, dynamics: DynamicsAnswer, n_parameters: int) -> list[str]:
        rank, steps = self.rank or 0, self.horizon or 1
        lines = [dynamics.verdict(self.structure, n_parameters, rank, locally=self.locally, steps=steps)]
        if rank < n_parameters:
            lines.append("Open are:" if self.locally is False else "Open so far are:")
            lines += [f"  {line}" for line in [*self._listed(), *dynamics.lines()]]
        return [*lines, *dynamics.remarks()]

    def _listed(self) -> list[str]:
        lines = [str(entry) for entry in self.unidentified[:_MOST_LISTED]]
        rest = Counter(entry.features for entry in self.unidentified[_MOST_LISTED:])
        lines += [
            f"… and {count:,} more group{'' if count == 1 else 's'} of states for {' and '.join(features)}"
            for features, count in rest.items()
        ]
        return lines

    def _from_snapshots(self) -> str:
        if self.identified:
            return (
                "M is identified from single observations: the m-graph has no self-censoring edge and no colluder "
                "(if every pattern is possible)."
            )
        lines = ["M is not identified from single observations; known dynamics may help (give the MDP):"]
        return "\n".join([*lines, *(f"  {entry.features[0]}: {entry.why}" for entry in self.unidentified)])


def nothing_to_identify(mdp: FactoredMDP, structure: str) -> Identifiability:
    """Return the answer where nothing goes missing."""
    return Identifiability(
        structure, True, True, True, None, 0, 0, (), np.zeros(mdp.n_states, dtype=np.bool_), (), 1.0
    )


def open_entries(
    mdp: FactoredMDP, structure: Factors | Logistic, tangent: Tangent, directions: NDArray[np.float64]
) -> tuple[Unidentified, ...]:
    """Return the probabilities, or effects, that some direction changes, by factor and group of states.

    Parameters
    ----------
    directions
        Orthonormal directions in the space of parameters, shape (P, directions).
    """
    moved = _moves(tangent.entries @ directions)
    found: list[Unidentified] = []
    owners = np.stack([tangent.owner[moved], tangent.group[moved]], axis=1)
    for row in np.unique(owners, axis=0):
        f, g = int(row[0]), int(row[1])
        mine = moved & (tangent.owner == f) & (tangent.group == g)
        if isinstance(structure, Logistic):
            names = structure.blocks.names[f]
            effect = structure.labels[f][g]
            found.append(
                Unidentified(names, {}, (names,), np.flatnonzero(mdp.reachable), f"the effect {effect}")
            )
        else:
            found.append(_group(mdp, structure, structure.parts[f], g, tangent.outcome[mine]))
    return tuple(found)


def open_states(mdp: FactoredMDP, tangent: Tangent, directions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the reachable states whose M(· | s) some direction changes, shape (S,)."""
    return _moves(tangent.jacobian @ directions).reshape(tangent.table.shape).any(axis=0) & mdp.reachable


def _moves(change: Any) -> NDArray[np.bool_]:
    return np.sqrt((np.asarray(change) ** 2).sum(axis=1)) > _MOVES


def _group(
    mdp: FactoredMDP, factors: Factors, factor: Factor, group: int, outcomes: NDArray[np.int64]
) -> Unidentified:
    names = factors.blocks.names
    states = np.flatnonzero((factor.label == group).any(axis=0) & mdp.reachable)
    codes = mdp.space.codes[states]
    given: dict[str, Any] = {}
    for name in factor.given:
        place = mdp.space.features.position(name)
        if len(np.unique(codes[:, place])) == 1:
            given[name] = mdp.space.features.values[place][codes[0, place]]
    patterns = tuple(
        tuple(name for i, block in enumerate(factor.blocks) if outcome >> i & 1 for name in names[block])
        for outcome in sorted(outcomes.tolist())
    )
    features = tuple(name for block in factor.blocks for name in names[block])
    return Unidentified(features, given, patterns, states, _after(factors, factor, group))


def _after(factors: Factors, factor: Factor, group: int) -> str:
    """Return what the group says of earlier indicators, in words."""
    missing = factors.blocks.missing[(factor.label == group).any(axis=1)]
    words = [
        f"{' and '.join(factors.blocks.names[block])} {'missing' if missing[0, block] else 'seen'}"
        for block in factor.after
        if (missing[:, block] == missing[0, block]).all()
    ]
    return "with " + ", ".join(words) if words else ""


def identified_from_snapshots(graph: MissingnessGraph) -> Identifiability:
    """Return whether single observations identify M under an m-graph, and what stands against it."""
    edges = set(graph.edges)
    found: dict[str, list[str]] = {}
    for name in graph.self_censoring:
        found.setdefault(name, []).append(f"S_{name} → R_{name} is self-censoring")
    for one, other in graph.dependent:
        for i, j in ((one, other), (other, one)):
            if (j, i) in edges:
                found.setdefault(i, []).append(f"S_{j} → R_{i} ← R_{j} is a colluder")
    return Identifiability(
        structure="m-graph, single observations",
        identified=not found,
        globally=not found,
        locally=None,
        horizon=None,
        n_parameters=None,
        rank=None,
        unidentified=tuple(
            Unidentified((name,), {}, ((name,),), None, why=", ".join(reasons))
            for name, reasons in found.items()
        ),
        states=None,
        undetermined=(),
        margin=1.0,
    )
