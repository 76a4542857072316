"""A model, ready to be acted in: compiled once for all policies that are evaluated in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_integer
from missmdp.data.simulation import Episodes, compile_simulation, seed_words
from missmdp.errors import DataError, ModelError
from missmdp.evaluation.simulation import EpisodeStore
from missmdp.model.mdp import reward_horizon
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.model.pomdp import POMDP, optimal_values

__all__ = ["Arena"]

_LONGEST = 10**12
"""Decisions per episode; more than anybody waits for."""


class Arena:
    """Where policies are evaluated: a model, a seed and a horizon.

    Parameters
    ----------
    model
        The model to act in.
    seed
        The seed; None for a fresh one.
    horizon
        The most decisions per episode; None for L.
    control_variate
        Whether `estimates` are controlled.
    """

    def __init__(
        self, model: MissMDP | POMDP, seed: int | None, horizon: int | None, *, control_variate: bool
    ) -> None:
        if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"expected a MissMDP or a POMDP to act in, got {type(model).__name__}")
        mdp = model.mdp if isinstance(model, MissMDP) else model
        self.model = model
        self.seed, self._words = seed_words(seed)
        self.horizon = (
            reward_horizon(mdp.reward, mdp.discount) if horizon is None else _checked_horizon(horizon)
        )
        self.controls = control_variate
        potential = optimal_values(mdp) if control_variate else np.zeros(mdp.n_states)
        self._start = float(mdp.initial @ potential)
        self._simulation = compile_simulation(model, potential)
        largest = float(np.abs(mdp.reward).max(initial=0.0))
        self.truncation = float(mdp.discount**self.horizon / (1.0 - mdp.discount) * largest)
        """What the decisions after the horizon can add to the estimate at most, in either direction."""

    def store(self, policy: Policy) -> EpisodeStore:
        """Return room for a policy's episodes."""
        return EpisodeStore(policy, self.model, self._simulation, self.seed, self._words, self.horizon)

    def estimates(self, episodes: Episodes) -> NDArray[np.float64]:
        """Return an estimate of the value per episode: the return, or V*(b₀) plus advantages minus what is cut off."""
        return self._start + episodes.advantages if self.controls else episodes.returns


def _checked_horizon(horizon: int) -> int:
    checked = checked_integer("horizon", horizon, least=1)
    if checked > _LONGEST:
        raise DataError(f"horizon can be at most {_LONGEST:,}, got {horizon!r}")
    return checked
