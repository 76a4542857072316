"""What an episode is worth, summed while it runs: by every kernel that keeps only the outcomes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.rollout import Simulation

__all__ = ["RETURN", "SCORE", "Outcomes", "begin_score", "earn", "new_score", "score_episode", "settle"]

WORTH, RETURN, ADVANTAGES, SCORE = 0, 1, 2, 3
"""Places in a score, and how many there are."""


class Outcomes(NamedTuple):
    """Where outcomes go; see `data.episodes.Episodes`. All have shape (E,)."""

    returns: NDArray[np.float64]
    advantages: NDArray[np.float64]
    decisions: NDArray[np.int64]
    terminated: NDArray[np.bool_]


@inner
def new_score() -> NDArray[np.float64]:
    """Return room for the score of one episode: what a reward is worth now, rewards and advantages so far."""
    return np.zeros(SCORE)


@inner
def begin_score(score: NDArray[np.float64]) -> None:
    """Begin an episode."""
    score[WORTH], score[RETURN], score[ADVANTAGES] = 1.0, 0.0, 0.0


@inner
def earn(model: Simulation, score: NDArray[np.float64], state: int, action: int, discount: float) -> None:
    """Add what a decision earns."""
    score[RETURN] += score[WORTH] * model.reward[state, action]
    score[ADVANTAGES] += score[WORTH] * model.advantage[state, action]
    score[WORTH] *= discount


@inner
def settle(
    model: Simulation, score: NDArray[np.float64], state: int, decisions: int, episode: int, out: Outcomes
) -> None:
    """Write down what an episode came to, that many decisions and a last state after its beginning."""
    out.returns[episode] = score[RETURN]
    out.advantages[episode] = score[ADVANTAGES] - score[WORTH] * model.potential[state]
    out.decisions[episode] = decisions
    out.terminated[episode] = model.terminal[state]


@kernel
def score_episode(
    model: Simulation,
    states: NDArray[np.int64],
    actions: NDArray[np.int64],
    discount: float,
    episode: int,
    out: Outcomes,
) -> None:
    """Write down what a whole episode came to; there is one state more than actions."""
    score = new_score()
    begin_score(score)
    for step in range(len(actions)):
        earn(model, score, states[step], actions[step], discount)
    settle(model, score, states[-1], len(actions), episode, out)
