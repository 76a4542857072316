"""The answer to whether M is identified, and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.model.mdp import FactoredMDP

__all__ = ["Identifiability", "Unidentified", "nothing_to_identify"]

_MOST_LISTED = 5
"""What `describe` lists before it only counts."""

_BARELY = 1e-6
"""A margin below which numbers are close to another answer."""


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
    """Whether the law of observations determines M.

    `describe()` says it in words.
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

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the answer for people."""
        if self.n_parameters is None:
            return self._from_snapshots()
        lines = self._verdict(self.n_parameters)
        lines += [f"  {line}" for line in self._listed()]
        if self.identified is not False and self.margin < _BARELY:
            lines.append(
                f"Only just: the smallest singular value is {self.margin:.1g} of the largest, so that it takes very "
                "many data."
            )
        return "\n".join(lines)

    def _verdict(self, n_parameters: int) -> list[str]:
        law = f"the law of observations under known dynamics (structure: {self.structure})"
        count = f"{n_parameters:,} probabilit{'y' if n_parameters == 1 else 'ies'}"
        if n_parameters == 0:
            return ["Nothing goes missing, so that M is known."]
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
                f"M is not identified, however many data there are: {law} leaves {open_:,} of {count} open.",
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
