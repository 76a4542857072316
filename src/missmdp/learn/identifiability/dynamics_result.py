"""What is determined of T and b₀, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.identifiability.moving import DynamicsStructure, Moving
from missmdp.model.mdp import FactoredMDP
from missmdp.words import count, listed

_MOVES = 1e-7
"""A probability is open if some direction moves it more than this."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an answer about T, b₀ and M rests on."""

    every_row: bool
    """Whether every state that is reached is seen in full before every action."""
    complete: bool
    """Whether all histories of the length were followed, not random ones."""
    closed: bool
    """Whether longer histories say nothing more."""
    clear: bool
    """Whether no singular value is close to the tolerance."""
    for_good: bool
    """Whether what is open stays open, and is no matter of one special point."""
    moves: bool
    """Whether T, b₀ and M close by were found that have the same law of histories of any length."""
    by_odds: bool
    """Whether a condition holds under which everything is identified, not only locally."""


@dataclass(frozen=True, eq=False)
class DynamicsAnswer:
    """What the law of observations determines of T and b₀, if they are unknown, near the given ones."""

    structure: str
    """What T was taken to be."""
    n_parameters: int
    """How many free probabilities T and b₀ have."""
    missingness: bool
    """Whether M is determined locally."""
    features: dict[str, bool]
    """Whether the next value of each feature, given the state and the action, has a determined distribution."""
    initial: bool
    """Whether b₀ is determined locally."""
    open_pairs: dict[str, int]
    """In how many pairs of a state and an action the next value of each feature is open."""
    n_pairs: int
    """How many pairs there are."""
    together: bool
    """Whether how next values go together is open although each by itself is determined."""
    confounded: tuple[str, ...]
    """Features whose own value drives their gaps, where that is open together with their T or b₀."""
    theorems: tuple[str, ...]
    """Known theorems whose conditions hold, in sentences."""
    evidence: Evidence
    found: bool = False
    """Whether the structure of T was found in data."""

    def verdict(
        self, structure: str, n_parameters: int, rank: int, *, locally: bool | None, steps: int
    ) -> str:
        """Return the answer in one sentence or two."""
        law = f"with T and b₀ unknown ({self.structure}; M: {structure}), the law of observations"
        total = count(n_parameters, "probability", "probabilities")
        open_ = n_parameters - rank
        if self.evidence.by_odds:
            return f"T, b₀ and M are identified: {law} determines all of {total}."
        if not open_ and not self.evidence.clear:
            return (
                f"Cannot tell: {law} seems to determine all of {total} locally, but singular values are so close to "
                "zero that this may be rounding."
            )
        if not open_:
            return (
                f"T, b₀ and M are identified at least locally: {law} changes with every small change of {total}, here "
                "and at almost every other point of the structure. Whether quite different ones share it is open."
            )
        if locally is False and not self.evidence.moves:
            return (
                f"T, b₀ and M are not identified, however much data there is: {law} leaves {open_:,} of {total} "
                "open."
            )
        if self.evidence.moves:
            return (
                f"T, b₀ and M are not identified, however much data there is: {law} leaves up to {open_:,} of {total} "
                "open. Others, close by, were found that share it."
            )
        return f"Not decided: {law} leaves {open_:,} of {total} open to first order. {self._doubt(steps)}"

    def _doubt(self, steps: int) -> str:
        evidence = self.evidence
        if not evidence.clear:
            return "Some singular values are so close to zero that this may be rounding."
        if not evidence.complete:
            return (
                "Only some histories were looked at, since there are too many: what is determined is, but what is open "
                "may not be."
            )
        if not evidence.closed:
            return (
                f"This is for histories of {count(steps, 'step')}; longer ones may determine more (horizon=)."
            )
        return (
            "No longer history changes that. But T nearby have a higher rank, so this T is special, and larger changes "
            "may still show; a structure of T that says what is special (transitions=) would tell."
        )

    def lines(self) -> list[str]:
        """Return what is determined and what is open of T and b₀, and what that means."""
        found: list[str] = []
        for name, pairs in self.open_pairs.items():
            if pairs:
                found.append(
                    f"T: the next {name}, in {pairs:,} of {count(self.n_pairs, 'pair')} of state and action"
                )
        if self.together:
            found.append("T: how next values go together")
        if not self.initial:
            found.append("b₀")
        return found

    def remarks(self) -> list[str]:
        """Return what to make of it."""
        fixed = [name for name, known in self.features.items() if known]
        found: list[str] = []
        if not all(self.features.values()) or self.together or not self.initial or not self.missingness:
            parts = [f"the next {name}" for name in fixed]
            parts += ["b₀"] if self.initial else []
            parts += ["M"] if self.missingness else []
            found.append(
                f"Determined locally: {listed(parts)}." if parts else "Nothing is determined as a whole."
            )
        found += [
            f"A shift of T({name}) or b₀ can equal a change in how {name} hides itself: the log cannot tell them apart."
            for name in self.confounded
        ]
        found += self.theorems
        if self.found:
            found.append("The structures were found in the data; the answer is for them.")
        found.append(
            "All this holds near the given T, for almost every M. What cannot happen under the given T and b₀, and "
            "which states are terminal, counts as known."
        )
        return found


def dynamics_answer(
    mdp: FactoredMDP,
    dynamics: DynamicsStructure,
    here: Moving,
    directions: NDArray[np.float64],
    *,
    gaps_open: bool,
    hiding: Sequence[str],
    theorems: Sequence[str],
    evidence: Evidence,
) -> DynamicsAnswer:
    """Return what is determined of T and b₀.

    Parameters
    ----------
    here
        T and b₀ at the point.
    directions
        Directions in which the law does not change, in parameters of T and b₀, columns.
    gaps_open, hiding
        Whether they change M, and the features for which they change how a value drives its own gaps.
    """
    entries = here.entries
    _, pair = np.unique(entries.action * mdp.n_states + entries.before, return_inverse=True)
    pair = pair.reshape(-1)
    change = np.asarray(here.change @ directions)
    first = np.asarray(here.start_change @ directions)
    open_pairs: dict[str, int] = {}
    begins: set[str] = set()
    for place, name in enumerate(mdp.space.features.names):
        codes = mdp.space.codes[:, place].astype(np.int64)
        size = int(mdp.space.features.sizes[place])
        moved = _moves(_added_up(pair * size + codes[entries.after], change))
        open_pairs[name] = len(np.unique(np.flatnonzero(moved) // size))
        if _moves(_added_up(codes[here.starts], first)).any():
            begins.add(name)
    alone = any(open_pairs.values())
    return DynamicsAnswer(
        structure=dynamics.name,
        n_parameters=here.n_parameters,
        missingness=not gaps_open,
        features={name: not pairs for name, pairs in open_pairs.items()},
        initial=not _moves(first).any(),
        open_pairs=open_pairs,
        n_pairs=int(pair.max(initial=-1)) + 1,
        together=not alone and bool(_moves(change).any()),
        confounded=tuple(name for name in hiding if open_pairs[name] or name in begins),
        theorems=tuple(theorems),
        evidence=evidence,
        found=dynamics.found,
    )


def _added_up(label: NDArray[np.int64], change: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros((int(label.max(initial=-1)) + 1, change.shape[1]))
    np.add.at(found, label, change)
    return found


def _moves(change: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.sqrt((change**2).sum(axis=1)) > _MOVES
