"""The one simulator: models and policies as arrays that the kernels run, or agents step by step.

Collection, evaluation and tree search all draw states and patterns from here. A policy that can simulate itself in
bulk offers `runner`; others are asked for an agent, step by step. In either case random numbers are addressed by
(seed, episode, step, purpose), so policies that are simulated with the same seed meet the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.factor_draws import PatternDraws, Tables, ValueDraws
from missmdp._kernels.random import RowSampler, episode_key, fill_cdf, fill_guide
from missmdp._kernels.simulator import Outcomes, Simulation, first_state, next_state, score_episode, seen_as
from missmdp.checks import checked_seed, checked_shape
from missmdp.errors import ParameterError
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import ActionTable, BlindPolicy, MemorylessPolicy, Policy
from missmdp.model.pomdp import POMDP, Labels, advantages
from missmdp.model.probabilities import as_floats, as_integers, checked_table

_TRAINING = 1
"""The stream of draws that is set aside for training."""


class PolicySampler(NamedTuple):
    """A memoryless policy: on the observation z it draws from row action_row[z] of `actions`."""

    action_row: NDArray[np.int32]
    actions: RowSampler


def row_sampler(rows: sparse.csr_array | NDArray[np.float64]) -> RowSampler:
    """Return distributions, given as the rows of a matrix, ready to be drawn from."""
    matrix = sparse.csr_array(rows)
    start = np.asarray(matrix.indptr, dtype=np.int64)
    weights = np.asarray(matrix.data, dtype=np.float64)
    cdf = np.empty_like(weights)
    guide = np.empty(len(cdf), dtype=np.int32)
    fill_cdf(start, weights, cdf)
    fill_guide(start, cdf, guide)
    # A copy: kernels are compiled again for arrays that cannot be written to.
    return RowSampler(start, np.array(matrix.indices, dtype=np.int32), cdf, guide)


def compile_simulation(model: MissMDP | POMDP, potential: NDArray[np.float64] | None = None) -> Simulation:
    """Return a model as the simulator sees it; `potential` is 0 unless given, and advantages are rewards then.

    Observations of a miss-MDP are numbered as in `MissingnessFunction.occurring`, and drawn in the order of their
    patterns, so a draw means the same pattern in every state.
    """
    mdp = model.mdp if isinstance(model, MissMDP) else model
    values = np.zeros(mdp.n_states) if potential is None else potential
    reward = np.array(mdp.reward, order="C")
    by_value, by_part = simulated_by_factors(model)
    transition = observation = None
    if isinstance(model, MissMDP) and (by_value or by_part):
        codes = model.space.codes.astype(np.int32)
        transition = _value_draws(model, codes) if by_value else None
        observation = _pattern_draws(model, codes) if by_part else None
    if transition is None:
        transition = row_sampler(interleaved(mdp.transition))
    if isinstance(model, MissMDP):
        observation, n_watched = observation or _drawn_by_pattern(model), 1
    else:
        observation, n_watched = row_sampler(interleaved(model.observation)), len(model.observation)
    return Simulation(
        initial=row_sampler(mdp.initial[None, :]),
        transition=transition,
        observation=observation,
        reward=reward,
        potential=np.array(values),
        advantage=reward if potential is None else np.array(advantages(mdp, values), order="C"),
        terminal=np.array(mdp.terminal),
        n_actions=mdp.n_actions,
        n_watched=n_watched,
        stop=np.zeros(1, dtype=np.uint8),
    )


def simulated_by_factors(model: MissMDP | POMDP) -> tuple[bool, bool]:
    """Return whether next states are drawn feature by feature, and whether patterns are drawn part by part.

    What is small, or comes as matrices and tables, is drawn from as a whole. Where patterns are drawn part by part,
    observations are numbered by rank.
    """
    if not isinstance(model, MissMDP):
        return False, False
    return not model.mdp.is_small, not model.missingness.is_small


def _value_draws(model: MissMDP, codes: NDArray[np.int32]) -> ValueDraws:
    factors = model.mdp.factors
    assert factors is not None
    tables = [scope.table.reshape(-1, scope.table.shape[-1]) for scope in factors.scopes]
    return ValueDraws(
        _tables(tables, [scope.parents for scope in factors.scopes]),
        codes,
        np.array(model.space.features.sizes),
    )


def _pattern_draws(model: MissMDP, codes: NDArray[np.int32]) -> PatternDraws:
    parts, space = model.missingness.parts, model.space
    groups = [part.groups if isinstance(part.groups, tuple) else part.rows(space) for part in parts]
    return PatternDraws(
        _tables([part.table for part in parts], groups, apart=True),
        codes,
        np.array(space.features.sizes),
        np.array(space.features.weights),
        np.concatenate([~part.observed(len(space.features)) for part in parts]),
    )


def _tables(
    tables: Sequence[NDArray[np.float64]],
    groups: Sequence[tuple[int, ...] | NDArray[np.int64]],
    *,
    apart: bool = False,
) -> Tables:
    """Return draws from the rows of tables, by the values of features (a tuple) or by the group of each state.

    With `apart`, targets of different tables are numbered apart, one table after the other.
    """
    parents = [group if isinstance(group, tuple) else () for group in groups]
    listed = [group for group in groups if not isinstance(group, tuple)]
    label = np.full(len(groups), -1, dtype=np.int64)
    label[[not isinstance(group, tuple) for group in groups]] = np.arange(len(listed))
    rows = [row_sampler(table) for table in tables]
    shift = np.cumsum([0, *(table.shape[1] if apart else 0 for table in tables)])
    entries = np.cumsum([0, *(len(one.target) for one in rows)])
    starts = [one.start[:-1] + first for one, first in zip(rows, entries[:-1], strict=True)]
    targets = [one.target + first for one, first in zip(rows, shift[:-1], strict=True)]
    return Tables(
        first=np.cumsum([0, *(len(table) for table in tables[:-1])], dtype=np.int64),
        start=np.cumsum([0, *(len(one) for one in parents)], dtype=np.int64),
        parent=np.array([p for one in parents for p in one], dtype=np.int64),
        label=label,
        labels=np.array(listed, dtype=np.int32) if listed else np.empty((0, 0), np.int32),
        rows=RowSampler(
            np.append(np.concatenate(starts), entries[-1]).astype(np.int64),
            np.concatenate(targets).astype(np.int32),
            np.concatenate([one.cdf for one in rows]),
            np.concatenate([one.guide for one in rows]),
        ),
    )


def interleaved(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Return matrices as one, with row i of matrix k in row i · len(matrices) + k."""
    if len(matrices) == 1:
        return matrices[0]
    stacked = sparse.csr_array(sparse.vstack(matrices, format="csr"))
    height = matrices[0].shape[0]
    order = np.arange(len(matrices))[None, :] * height + np.arange(height)[:, None]
    return sparse.csr_array(stacked[order.reshape(-1)])


def _drawn_by_pattern(model: MissMDP) -> RowSampler:
    seen = model.missingness.occurring()
    by_pattern = row_sampler(model.missingness.probabilities)
    # `occurring` lists states, and the patterns of each, in the order of the sampler.
    return by_pattern._replace(target=np.ascontiguousarray(seen.place, dtype=np.int32))


def compile_policy(policy: MemorylessPolicy, model: MissMDP) -> PolicySampler:
    """Return a memoryless policy as the simulator sees it; in a large model only a blind one can be."""
    if not model.missingness.is_small:
        if not isinstance(policy, BlindPolicy):
            raise ParameterError("policy", policy, "a blind policy, in a model of so many observations")
        probabilities = as_floats(policy.probabilities(None, model), "the policy's probabilities")
        return PolicySampler(np.zeros(1, dtype=np.int32), row_sampler(probabilities[None, :]))
    table = _checked_actions(policy.table(model), model)
    seen = model.missingness.occurring()
    action_row = np.zeros(len(seen.observations), dtype=np.int32)
    action_row[seen.place] = table.row[seen.state, seen.pattern]
    return PolicySampler(action_row, row_sampler(table.probabilities))


def _checked_actions(table: ActionTable, model: MissMDP) -> ActionTable:
    """Return the table of a policy, which may be anybody's own, with rows that are there and are distributions."""
    probabilities = as_floats(table.probabilities, "the policy's probabilities")
    shape = (probabilities.shape[0] if probabilities.ndim else 0, model.n_actions)
    checked_shape("probabilities", probabilities, shape, "(rows, actions)")
    row = checked_shape("row", as_integers(table.row, "row"), model.missingness.probabilities.shape)
    if row.min() < 0 or row.max() >= len(probabilities):
        raise ParameterError("row", int(row.max()), f"from 0 to {len(probabilities) - 1}")
    return ActionTable(
        row.astype(np.int32), checked_table(probabilities, lambda row: f"row {row} of the policy")
    )


def runs_as_table(policy: Policy, model: MissMDP | POMDP) -> TypeGuard[MemorylessPolicy]:
    """Return whether a policy is simulated as a table of what it does on each observation."""
    if not isinstance(policy, MemorylessPolicy):
        return False
    return isinstance(model, POMDP) or model.missingness.is_small or isinstance(policy, BlindPolicy)


def runs_in_bulk(policy: Policy, model: MissMDP | POMDP) -> TypeGuard[BulkPolicy]:
    """Return whether a policy simulates itself; most do not know observations by rank (`simulated_by_factors`)."""
    # Any attribute of that name would do for isinstance.
    if not isinstance(policy, BulkPolicy) or not callable(policy.runner):
        return False
    by_rank = isinstance(model, MissMDP) and not model.missingness.is_small
    return not by_rank or bool(getattr(policy, "knows_ranks", False))


def codes_of(model: MissMDP, seen: Sequence[int]) -> NDArray[np.integer[Any]]:
    """Return some observations of the simulator as codes, shape (len, n)."""
    if model.missingness.is_small:
        return seen_codes(model)[list(seen)]
    return model.space.features.unrank(np.array(seen, dtype=np.int64))


def seen_codes(model: MissMDP) -> NDArray[np.integer[Any]]:
    """Return the observations of the simulator as codes, shape (Z, n)."""
    codes = model.missingness.occurring().observations.codes
    return np.ascontiguousarray(codes, dtype=model.space.features.code_dtype)


def seed_words(seed: int | None, *, training: bool = False) -> tuple[int, NDArray[np.uint64]]:
    """Return the seed (a fresh one for None) and the words from which the kernels draw.

    Training has words of its own: what was trained with a seed must not be evaluated on the episodes that it was
    trained on, because somebody chose the same seed for both.
    """
    entropy = np.random.SeedSequence(None if seed is None else checked_seed(seed)).entropy
    assert isinstance(entropy, int)
    sequence = np.random.SeedSequence(entropy, spawn_key=(_TRAINING,) if training else ())
    return entropy, sequence.generate_state(2, np.uint64).astype(np.uint64)


class Stopped(Exception):  # noqa: N818 (not an error: what was asked for)
    """The time was up before all episodes were simulated."""


class AgentEpisode(NamedTuple):
    """What happened, as indices. There is one action fewer than there are states and observations."""

    observations: list[int]
    states: list[int]
    actions: list[int]


class AgentSimulator:
    """Runs one new agent of a policy per episode.

    An agent's own seed follows from the seed and the number of the episode. In a POMDP that acts first, agents are
    reset without an observation.
    """

    def __init__(self, policy: Policy, model: MissMDP | POMDP, simulation: Simulation, seed: int) -> None:
        self._policy = policy
        self._model: Any = model
        self._simulation = simulation
        self._seed, self._words = seed_words(seed)
        if isinstance(model, MissMDP):
            self._shown = _shown(model)
            self._action_index = model.mdp.action_index
        else:
            self._shown = model.observations.__getitem__
            self._action_index = Labels(model.actions, "action").index
        self._acts_first = isinstance(model, POMDP) and not model.observe_initial

    def episode(self, number: int, decisions: int) -> AgentEpisode:
        """Return an episode with at most that many decisions; raise `Stopped` if told to stop before its end."""
        simulation, key = self._simulation, np.uint64(episode_key(self._words, number))
        own_seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])
        agent: Any = self._policy.agent(self._model, seed=own_seed)
        state, action = first_state(simulation, key), 0
        episode = AgentEpisode([], [], [])
        while True:
            step = len(episode.states)
            episode.states.append(state)
            episode.observations.append(seen_as(simulation, key, step, state, action))
            if simulation.stop[0]:
                raise Stopped
            if step == decisions or simulation.terminal[state]:
                return episode
            if step == 0 and self._acts_first:
                chosen = agent.reset()
            else:
                chosen = (agent.step if step else agent.reset)(self._shown(episode.observations[-1]))
            action = self._action_index(chosen)
            episode.actions.append(action)
            state = next_state(simulation, key, step + 1, state, action)


def _shown(model: MissMDP) -> Callable[[int], Any]:
    """Return what decodes an observation of the simulator."""
    if model.missingness.is_small:
        return model.missingness.occurring().observations.__getitem__
    features = model.space.features
    return lambda rank: features.decode_observation(features.unrank(np.array([rank]))[0])


class Episodes(NamedTuple):
    """The outcomes of some episodes, in order."""

    returns: NDArray[np.float64]
    """Σ_t γᵗ ρ(s_t, a_t) over at most `horizon` decisions, shape (E,)."""
    advantages: NDArray[np.float64]
    """Σ_t γᵗ advantage(s_t, a_t) over the same T decisions, minus γᵀ h(s_T), shape (E,); see `Simulation`. It
    is the return minus h(s_0) and the luck of the draws of states, as h sees it, which has mean 0."""
    decisions: NDArray[np.int64]
    """How many decisions were made, shape (E,)."""
    terminated: NDArray[np.bool_]
    """Whether a terminal state was reached, shape (E,)."""
    events: NDArray[np.int64]
    """How often each of the runner's `events` happened, shape (E, len(events))."""

    @property
    def outcomes(self) -> Outcomes:
        """All but the events, as kernels fill it."""
        return Outcomes(self.returns, self.advantages, self.decisions, self.terminated)

    def first(self, count: int) -> Episodes:
        """Return the first episodes."""
        if count == len(self.returns):
            return self
        return Episodes(
            self.returns[:count],
            self.advantages[:count],
            self.decisions[:count],
            self.terminated[:count],
            self.events[:count],
        )


def empty_episodes(count: int, events: int = 0) -> Episodes:
    """Return room for outcomes, for kernels to fill."""
    return Episodes(
        np.empty(count),
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.bool_),
        np.empty((count, events), dtype=np.int64),
    )


def write_outcome(
    simulation: Simulation,
    discount: float,
    states: Sequence[int],
    actions: Sequence[int],
    episode: int,
    out: Episodes,
) -> None:
    """Write down what an episode came to that was simulated step by step; there is one state more than actions."""
    visited, taken = np.array(states, dtype=np.int64), np.array(actions, dtype=np.int64)
    score_episode(simulation, visited, taken, discount, episode, out.outcomes)


@dataclass(frozen=True)
class EpisodeRunner:
    """Simulates episodes of one policy in one model, with one seed."""

    run: Callable[[int, int], Episodes]
    """(first, count) → the episodes first, …, first + count − 1. Called from several threads at once. Where the
    simulation's `stop` is set, it returns soon, with those of the first episodes that are finished."""
    events: tuple[str, ...] = ()
    """What is counted besides, in words, such as "impossible observations"."""
    task: int = 32
    """How many episodes to ask for at once; results of a policy may depend on it by rounding, and on nothing else."""
    parallel: bool = True
    """Whether `run` leaves the interpreter, so threads help."""


@runtime_checkable
class BulkPolicy(Protocol):
    """A policy that can simulate many episodes of itself.

    An attribute `knows_ranks` that is True says that it can do so where observations are numbered by rank.
    """

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model.

        Parameters
        ----------
        model
            The model to act in, which may differ from the one that the policy was made for.
        simulation
            The same model as the kernels see it.
        words
            The seed as `seed_words` gives it; episode e draws with `episode_key(words, e)`.
        horizon
            The most decisions per episode.
        """
        ...
