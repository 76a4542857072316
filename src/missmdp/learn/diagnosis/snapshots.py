"""Single observations as evidence about M: enough where reasons are seen whenever they matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, pattern_numbers
from missmdp.learn.em.histories import Expected
from missmdp.learn.em.observation_classes import admitting_states


@dataclass(frozen=True, eq=False)
class Snapshots:
    """How often each observation occurs, put at one state that admits it: K patterns, S states.

    Structures that look only at what an observation shows do not care which one.
    """

    pattern: NDArray[np.int64]
    state: NDArray[np.int64]
    """Of each distinct observation, shape (D,)."""
    times: NDArray[np.float64]
    shape: tuple[int, int]
    impossible: int
    """Observations left out: no state of the model admits them."""

    @classmethod
    def of(cls, counts: ObservationCounts, blocks: Blocks) -> Snapshots:
        """Return the observations of a log."""
        start, states = admitting_states(counts.mdp, counts.codes)
        possible = np.diff(start) > 0
        if not possible.any():
            raise DataError("no state of the model admits any of the observations")
        return cls(
            pattern_numbers(blocks, counts.observed)[possible],
            states[start[:-1][possible]],
            counts.counts[possible].astype(np.float64),
            (len(blocks.patterns), counts.mdp.n_states),
            int(counts.counts[~possible].sum()),
        )

    @property
    def n_steps(self) -> int:
        """The number of observations."""
        return int(self.times.sum())

    def thinned(self, most: int) -> Self:
        """Return all of them: distinct observations are few, however many there are."""
        return self

    def expect(self, table: NDArray[np.float64], threads: int | None = None) -> Expected:
        """Return the counts of patterns and states, and the log-likelihood of patterns given what is shown."""
        counts = np.zeros(self.shape)
        np.add.at(counts, (self.pattern, self.state), self.times)
        with np.errstate(divide="ignore"):
            logs = np.log(table[self.pattern, self.state])
        return Expected(counts, float(self.times @ logs))

    def redrawn(self, generator: np.random.Generator) -> Snapshots:
        """Return as many observations, drawn from these with replacement."""
        drawn = generator.multinomial(self.n_steps, self.times / self.times.sum())
        return Snapshots(self.pattern, self.state, drawn.astype(np.float64), self.shape, self.impossible)
