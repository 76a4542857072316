"""What is deployed of an α-vector policy: its agent, and whole episodes of it in kernels, with the same decisions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.alpha import ActingVectors, OwnObservations, run_alpha_episodes
from missmdp._kernels.beliefs import FALLBACKS, condition
from missmdp._kernels.simulator import Simulation
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP, Labels
from missmdp.plan.acting import EVENTS, compile_tracker
from missmdp.plan.value_function import Decision, ValueFunction

if TYPE_CHECKING:
    from missmdp.plan.alpha import AlphaVectorPolicy

_log = logging.getLogger(__name__)

Fallback = Literal["admitted", "restarted", "ignored"]
"""What an agent does on an observation of probability zero; see `AlphaVectorAgent`."""

NOTHING: Any = object()
"""No observation at all; None is one, of a model with one feature."""


class CountsFallbacks:
    """What agents say of observations of probability zero."""

    def __init__(self) -> None:
        self._fallbacks: dict[Fallback, int] = {"admitted": 0, "restarted": 0, "ignored": 0}

    @property
    def fallbacks(self) -> dict[Fallback, int]:
        """How many observations of probability zero there were since the agent was made, by what was done."""
        return dict(self._fallbacks)

    @property
    def impossible(self) -> int:
        """How many observations of probability zero there were since the agent was made."""
        return sum(self._fallbacks.values())


def check_first(observation: Any, *, observe_initial: bool) -> None:
    """Raise unless a first observation is given where one comes before the first action, and only there."""
    if observe_initial and observation is NOTHING:
        raise ModelError("this policy acts on a first observation: call reset(observation)")
    if not observe_initial and observation is not NOTHING:
        raise ModelError(
            "this policy acts before the first observation: call reset() without one, then step(observation)"
        )


class AlphaVectorAgent(CountsFallbacks):
    """An agent that tracks the belief under the policy's model and takes the policy's actions.

    For a miss-MDP, observations are tuples or mappings of feature values with None or NaN for missing; a
    feature that a mapping leaves out is missing. For a POMDP they are its labels. Values and
    labels that the model does not have raise `ModelError` and leave the agent as it was.

    Where the belief holds only terminal states possible, the episode is over: every action is worth 0, and
    the first is returned.

    Notes
    -----
    An observation can have probability zero under the model, which is then wrong somewhere. The agent does
    not stop. It logs a warning the first time, counts (`impossible`, and `fallbacks` by kind), and goes on:

    1. "admitted": the predicted belief is conditioned on the states that admit the observation, z ⪯ s, as if
       M were ignorable. The pattern of what is missing is what surprised; the values are believed.
    2. "restarted": if no predicted state admits it, the belief becomes uniform over all states of the model that
       do; over terminal ones only if there are no others. The dynamics are what surprised.
    3. "ignored": if no state admits it, or if the model is a POMDP, where nothing says which part of a label to
       believe, the predicted belief is kept.
    """

    def __init__(self, policy: AlphaVectorPolicy) -> None:
        super().__init__()
        self.policy = policy
        self._value_function = policy.value_function
        self._belief: NDArray[np.float64] = policy.pomdp.initial
        self._decision: Decision | None = None
        self._actions = Labels(policy.pomdp.actions, "action")
        self._labels = (
            None if isinstance(policy.model, MissMDP) else Labels(policy.pomdp.observations, "observation")
        )

    def __repr__(self) -> str:
        return f"AlphaVectorAgent({self.policy!r}, {self.impossible} impossible observations)"

    @property
    def belief(self) -> NDArray[np.float64]:
        """The current distribution over states, shape (S,); a copy."""
        return self._belief.copy()

    @property
    def value(self) -> float:
        """The policy's value at the current belief."""
        return self._decided().value

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._decision is None else self.policy.pomdp.actions[self._decision.action]

    def reset(self, observation: Any = NOTHING) -> Any:
        """Start an episode and return the first action.

        Parameters
        ----------
        observation
            The first observation; to be left out for policies that act first (`observe_initial` is False).
        """
        check_first(observation, observe_initial=self.policy.observe_initial)
        initial = self.policy.pomdp.initial
        if self.policy.observe_initial:
            return self._act(self._conditioned(initial, observation, 0, "as the first observation"))
        return self._act(np.array(initial))

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        last = self._decided().action
        predicted = self._value_function.predicted(self._belief, last)
        after = f"after the action {self.last_action!r}"
        return self._act(self._conditioned(predicted, observation, last, after))

    def took(self, action: Any) -> None:
        """Say that another action was taken than the one returned last; the belief goes on from there."""
        self._decision = self._decided()._replace(action=self._actions.index(action))

    def _decided(self) -> Decision:
        if self._decision is None:
            raise ModelError("the episode has not started: call reset first")
        return self._decision

    def _act(self, belief: NDArray[np.float64]) -> Any:
        self._belief = belief
        self._decision = self._value_function.decide(belief)
        return self.policy.pomdp.actions[self._decision.action]

    def _conditioned(
        self, predicted: NDArray[np.float64], observation: Any, action: int, when: str
    ) -> NDArray[np.float64]:
        """Return the belief after an observation, by a fallback if it is impossible."""
        out = np.empty(len(predicted))
        model = self.policy.model
        if isinstance(model, MissMDP):
            codes = model.space.features.encode_observation(observation)
            if condition(predicted, model.missingness.likelihood_of_codes(codes), out) > 0.0:
                return out
            kind = self._fall_back(model, codes, predicted, out)
            seen: Any = model.space.features.decode_observation(codes)
        else:
            z = cast("Labels", self._labels).index(observation)
            if condition(predicted, self._value_function.likelihood(z, action), out) > 0.0:
                return out
            out[:] = predicted
            kind, seen = "ignored", observation
        if not self.impossible:
            _log.warning(
                "the observation %r has probability zero %s under the model that the policy was made for (%s); "
                "the agent continues and counts such observations",
                seen,
                when,
                _DONE[kind],
            )
        self._fallbacks[kind] += 1
        return out

    def _fall_back(
        self, model: MissMDP, codes: tuple[int, ...], predicted: NDArray[np.float64], out: NDArray[np.float64]
    ) -> Fallback:
        admits = model.space.admit(codes)
        if condition(predicted, admits.astype(np.float64), out) > 0.0:
            return "admitted"
        if not admits.any():
            out[:] = predicted
            return "ignored"
        going_on = admits & ~model.mdp.terminal
        chosen = going_on if going_on.any() else admits
        out[:] = chosen / chosen.sum()
        return "restarted"


_DONE: dict[Fallback, str] = {
    "admitted": "the belief was conditioned on its values alone",
    "restarted": "the belief was restarted from all states that admit it",
    "ignored": "it was ignored",
}


def alpha_runner(
    value_function: ValueFunction,
    own: MissMDP | POMDP,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
    *,
    observe_initial: bool,
) -> EpisodeRunner:
    """Return what simulates an α-vector policy, made for `own`, in a model; see `BulkPolicy`."""
    tracker = compile_tracker(own, model)
    vectors, observations = _acting_vectors(value_function), _own_observations(value_function)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, FALLBACKS)
        count = run_alpha_episodes(
            simulation,
            tracker,
            vectors,
            observations,
            words,
            first,
            horizon,
            model.discount,
            observe_initial,
            episodes.outcomes,
            episodes.events,
        )
        return episodes.first(count)

    return EpisodeRunner(run, EVENTS)


def _acting_vectors(value_function: ValueFunction) -> ActingVectors:
    components = value_function.components
    flat = [np.ascontiguousarray(component.values.T).reshape(-1) for component in components]
    return ActingVectors(
        table=value_function.table,
        by_state=np.concatenate(flat) if flat else np.empty(0),
        action=np.concatenate([component.actions for component in components])
        if components
        else np.empty(0, np.int64),
    )


def _own_observations(value_function: ValueFunction) -> OwnObservations:
    pomdp, columns = value_function.pomdp, value_function.columns
    ends = np.cumsum([0, *(len(part.state) for part in columns)])
    return OwnObservations(
        start=np.concatenate([part.start + end for part, end in zip(columns, ends[:-1], strict=True)]),
        state=np.concatenate([part.state for part in columns]),
        probability=np.concatenate([part.probability for part in columns]),
        reward=value_function.reward,
        n_observations=pomdp.n_observations,
        n_watched=len(columns),
        discount=pomdp.discount,
    )
