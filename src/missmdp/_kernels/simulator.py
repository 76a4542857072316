"""The simulator: one step of a miss-MDP, whole episodes of it, and what an episode is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.factor_draws import PatternDraws, ValueDraws, code_seen, draw_next, draw_seen
from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import DRAW_ACTION, DRAW_STATE, RowSampler, draw, episode_key, uniform


class Simulation(NamedTuple):
    """A model as the simulator sees it: states, actions and observations are indices.

    Large models are drawn from feature by feature; where patterns are, an observation is the rank of its codes. Kernels
    are compiled apart for them.
    """

    initial: RowSampler
    """One row: b₀."""
    transition: RowSampler | ValueDraws
    """Row s · n_actions + a: T(· | s, a)."""
    observation: RowSampler | PatternDraws
    """Row s′ · n_watched + w: O(· | s′, a), where w is a, or 0 where O does not depend on the action."""
    reward: NDArray[np.float64]
    """ρ(s, a), shape (S, A)."""
    potential: NDArray[np.float64]
    """Some h(s) that is 0 in terminal states, shape (S,); 0 everywhere where nobody asked."""
    advantage: NDArray[np.float64]
    """ρ(s, a) + γ E[h(s′)] − h(s), shape (S, A)."""
    terminal: NDArray[np.bool_]
    n_actions: int
    n_watched: int
    """The number of actions if O depends on them, or 1."""
    stop: NDArray[np.uint8]
    """One number, which another thread sets to 1 where kernels are to return as soon as they can, shape (1,)."""


@kernel
def first_state(model: Simulation, key: Any) -> int:
    return draw(model.initial, 0, uniform(key, 0, DRAW_STATE))


@kernel
def next_state(model: Simulation, key: Any, step: int, state: int, action: int) -> int:
    """Return the state at `step` after an action in the state before it."""
    return draw_next(model.transition, model.n_actions, key, step, state, action)


@kernel
def seen_as(model: Simulation, key: Any, step: int, state: int, action: int) -> int:
    """Return the observation at `step` of a state that an action led to; at step 0 that action is 0."""
    return draw_seen(model.observation, model.n_watched, key, step, state, action)


@kernel
def run_episodes(
    model: Simulation,
    action_row: NDArray[np.int32],
    action: RowSampler,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    seen_codes: NDArray[Any],
    out_observations: NDArray[Any],
    out_actions: NDArray[Any],
    out_states: NDArray[np.int32],
    out_length: NDArray[np.int64],
    out_terminated: NDArray[np.bool_],
) -> int:
    """Run episodes first_episode, … one after the other into the rows of out_*, and return how many.

    Stops after len(out_length) episodes, when another one of `horizon` observations might not fit, or when told to. The
    policy draws from row action_row[z] of `action` when it sees z, or action_row[0] if that is all. The last
    observation of an episode has action −1. `out_states` may be empty: then states are not kept.
    """
    n_features = seen_codes.shape[1]
    keep_states = len(out_states) > 0
    row = 0
    for e in range(len(out_length)):
        if row + horizon > len(out_observations):
            return e
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        step = 0
        chosen = 0
        while True:
            if model.stop[0]:
                return e
            seen = seen_as(model, key, step, state, chosen)
            for i in range(n_features):
                out_observations[row, i] = code_seen(model.observation, seen_codes, seen, i)
            if keep_states:
                out_states[row] = state
            if step == horizon - 1 or model.terminal[state]:
                break
            chosen = draw(
                action, action_row[seen if len(action_row) > 1 else 0], uniform(key, step, DRAW_ACTION)
            )
            out_actions[row] = chosen
            step += 1
            row += 1
            state = next_state(model, key, step, state, chosen)
        out_actions[row] = -1
        row += 1
        out_length[e] = step + 1
        out_terminated[e] = model.terminal[state]
    return len(out_length)


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
