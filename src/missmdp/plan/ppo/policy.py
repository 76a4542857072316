"""Policies that a network decides: what PPO returns, their agents, and how they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.network import (
    Frames,
    Network,
    choose,
    infer,
    push_frame,
    run_network,
    running_places,
    softmax,
)
from missmdp._kernels.simulator import Simulation
from missmdp.checks import checked_flag, checked_instance, checked_integer, checked_shape
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, seen_codes
from missmdp.errors import ModelError, ParameterError
from missmdp.model.archive import (
    SHORT_FLOATS,
    Array,
    Schema,
    decode_features,
    decode_values,
    encode_features,
    encode_values,
    named_damage,
    read_archive,
    write_archive,
)
from missmdp.model.given import checked_actions
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import as_floats
from missmdp.model.space import FeatureSpace
from missmdp.plan.ppo.encoding import Encoder, Encoding
from missmdp.plan.ppo.settings import PPOSettings

_PLACES = 16
"""Episodes that are simulated in parallel."""


class Layer(NamedTuple):
    """A dense layer of the network: x ↦ x · weight + bias."""

    weight: NDArray[np.float32]
    """Shape (inputs, outputs)."""
    bias: NDArray[np.float32]
    """Shape (outputs,)."""


class PPOPolicy:
    """A policy whose action probabilities come from a network, given the current observation or the last frames.

    Actions are drawn from the network's distribution, as in the paper, or are the likeliest ones. The network is a
    set of arrays and needs neither torch nor stable-baselines3.

    Parameters
    ----------
    actions
        The names of the actions.
    layers
        The actor's layers: tanh between them, logits at the end.
    encoder
        How observations and actions become the network's input.
    deterministic
        Whether to take the likeliest action instead of drawing one.
    settings
        How the policy was trained, if it was.
    """

    def __init__(
        self,
        actions: Sequence[Any],
        layers: Sequence[Layer],
        encoder: Encoder,
        *,
        deterministic: bool = False,
        settings: PPOSettings | None = None,
    ) -> None:
        self.actions: tuple[Any, ...] = checked_actions(actions)
        self.encoder = checked_instance("encoder", encoder, Encoder, "an Encoder")
        if encoder.n_actions != len(self.actions):
            problem = f"it is for {encoder.n_actions} actions; there are {len(self.actions)}"
            raise ParameterError("encoder", encoder.n_actions, "for as many actions", problem)
        self.layers: tuple[Layer, ...] = tuple(_checked_layers(layers, encoder.size, len(self.actions)))
        self.deterministic = checked_flag("deterministic", deterministic)
        self.settings = settings

    def __repr__(self) -> str:
        sizes = " → ".join(str(size) for size in self.network.sizes)
        how = "the likeliest action" if self.deterministic else "drawn actions"
        return f"PPOPolicy({sizes}, {self.encoder.encoding} input, {how}, {self.features!r})"

    @property
    def features(self) -> FeatureSpace:
        """The features that the policy looks at."""
        return self.encoder.features

    @property
    def memory(self) -> bool:
        """Whether the policy looks at more than the current observation."""
        return self.encoder.frames is not None

    @cached_property
    def network(self) -> Network:
        """The layers as the kernels see them."""
        sizes = [self.encoder.size, *(len(layer.bias) for layer in self.layers)]
        parts = [part.reshape(-1) for layer in self.layers for part in layer]
        return Network(np.array(sizes, dtype=np.int64), np.concatenate(parts))

    def likeliest(self) -> PPOPolicy:
        """Return the policy that takes the likeliest action where this one draws."""
        return PPOPolicy(self.actions, self.layers, self.encoder, deterministic=True, settings=self.settings)

    def agent(self, model: MissMDP | None = None, *, seed: int | None = None) -> PPOAgent:
        """Return a new agent.

        Parameters
        ----------
        model
            What the agent will act in, optional; its features and actions must be the policy's.
        seed
            For the actions that are drawn.
        """
        if model is not None:
            self._check_interface(model)
        return PPOAgent(self, np.random.default_rng(seed))

    def action_probabilities(self, *history: Any) -> dict[Any, float]:
        """Return action → probability after a history: z⁽⁰⁾, or z⁽⁰⁾, a⁽⁰⁾, z⁽¹⁾, … up to the current observation.

        A policy without memory looks only at the last observation.
        """
        if len(history) % 2 == 0:
            raise ModelError(
                f"a history begins and ends with an observation: expected 1, 3, 5, … arguments, got {len(history)}"
            )
        inputs = self.seen(self.encoder.blank(), history[0])
        for action, observation in zip(history[1::2], history[2::2], strict=True):
            inputs = self.seen(inputs, observation, self.action_index(action))
        return dict(zip(self.actions, self.probabilities(inputs).tolist(), strict=True))

    def seen(
        self, inputs: NDArray[np.float32], observation: Any, action: int | None = None
    ) -> NDArray[np.float32]:
        """Return the input after an action, by its number, and the observation that it led to, shape (D,)."""
        codes = np.array([self.features.encode_observation(observation)])
        after = self._checked_inputs(inputs).copy()
        last = len(self.actions)
        taken = last if action is None else checked_integer("action", action, least=0, most=last - 1)
        push_frame(self.encoder.frames_of(codes), 0, taken, after)
        return after

    def logits(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the network's outputs for one input, shape (A,)."""
        scratch = np.empty((2, 1, int(self.network.sizes[1:].max())), dtype=np.float32)
        return infer(self.network, self._checked_inputs(inputs)[None, :], 1, scratch)[0, : len(self.actions)]

    def probabilities(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return P(action | input), shape (A,); all on one action if the policy is deterministic."""
        logits = self.logits(inputs)
        if self.deterministic:
            return np.eye(len(self.actions))[logits.argmax()]
        out = np.empty(len(self.actions))
        softmax(logits, out)
        return out

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model; see `BulkPolicy`."""
        model = self._check_interface(model)
        frames: Frames = self.encoder.frames_of(seen_codes(model))
        network, likeliest, discount = self.network, self.deterministic, model.discount

        def run(first: int, count: int) -> Episodes:
            side = min(_PLACES, count)
            out = empty_episodes(count)
            inputs = np.empty((side, self.encoder.size), dtype=np.float32)
            hidden = np.empty((2, side, int(network.sizes[1:].max())), dtype=np.float32)
            count = run_network(
                simulation,
                frames,
                network,
                words,
                first,
                horizon,
                discount,
                likeliest,
                running_places(side),
                np.zeros(side, dtype=np.int64),
                inputs,
                hidden,
                out.outcomes,
            )
            return out.first(count)

        return EpisodeRunner(run)

    def save(self, path: str | Path) -> None:
        """Save the policy, such as `ward.mmpolicy`: arrays and JSON, no pickle."""
        _save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> PPOPolicy:
        """Return the policy in a file that `save` wrote.

        Raises
        ------
        FormatError
            If the file is of another kind, damaged, or from a newer version.
        """
        return _load(path)

    def _checked_inputs(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        array = np.ascontiguousarray(as_floats(inputs, "inputs"), dtype=np.float32)
        return checked_shape("inputs", array, (self.encoder.size,))

    def action_index(self, action: Any) -> int:
        """Return the position of an action; raise `ModelError` if there is none of that name."""
        if action not in self.actions:
            raise ModelError(f"there is no action {action!r}; the actions are {list(self.actions)}")
        return self.actions.index(action)

    def _check_interface(self, model: MissMDP | POMDP) -> MissMDP:
        """Return a model that is observed and acted in as the policy needs it, or raise."""
        if not isinstance(model, MissMDP):
            raise ModelError(
                f"the policy looks at features: it needs a MissMDP, this is a {type(model).__name__}"
            )
        if self.actions != tuple(model.actions):
            raise ModelError(
                f"the policy has the actions {list(self.actions)}; this model has {list(model.actions)}"
            )
        if self.features != model.space.features:
            raise ModelError(
                f"the policy has the features {self.features!r}; this model has {model.space.features!r}"
            )
        return model


def _checked_layers(layers: Sequence[Layer], n_in: int, n_out: int) -> list[Layer]:
    if not isinstance(layers, Sequence) or not layers:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("layers", layers, "a list of layers", "a network needs at least one layer")
    checked: list[Layer] = []
    for i, given in enumerate(layers):
        if not isinstance(given, tuple) or len(given) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError("layers", given, "layers with a weight and a bias each")
        layer = Layer(
            *(np.ascontiguousarray(as_floats(part, f"layer {i}"), dtype=np.float32) for part in given)
        )
        if layer.bias.ndim != 1 or layer.weight.shape != (n_in, len(layer.bias)) or not len(layer.bias):
            raise ModelError(
                f"layer {i} must have a weight of shape ({n_in}, units) and a bias of shape (units,), "
                f"got {layer.weight.shape} and {layer.bias.shape}"
            )
        if not (np.isfinite(layer.weight).all() and np.isfinite(layer.bias).all()):
            raise ModelError(f"layer {i} has weights that are not finite")
        n_in = len(layer.bias)
        checked.append(layer)
    if n_in != n_out:
        raise ModelError(f"the last layer must have {n_out} outputs, one per action, got {n_in}")
    return checked


class PPOAgent:
    """An agent that keeps what the network looks at, and draws from its action distribution.

    Observations are tuples or mappings of feature values with None or NaN for missing; a feature that a mapping
    leaves out is missing. Values that the policy does not know raise `ModelError` and leave the agent as it was.
    """

    def __init__(self, policy: PPOPolicy, random: np.random.Generator) -> None:
        self.policy = policy
        self._random = random
        self._inputs: NDArray[np.float32] = policy.encoder.blank()
        self._last: int | None = None

    def __repr__(self) -> str:
        return f"PPOAgent({self.policy!r})"

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._last is None else self.policy.actions[self._last]

    @property
    def probabilities(self) -> dict[Any, float]:
        """Action → the probability with which the last action was drawn."""
        if self._last is None:
            raise ModelError("the episode has not started: call reset first")
        return dict(zip(self.policy.actions, self.policy.probabilities(self._inputs).tolist(), strict=True))

    def reset(self, observation: Any) -> Any:
        """Start an episode with its first observation and return the first action."""
        return self._act(self.policy.seen(self.policy.encoder.blank(), observation))

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        if self._last is None:
            raise ModelError("the episode has not started: call reset first")
        return self._act(self.policy.seen(self._inputs, observation, self._last))

    def took(self, action: Any) -> None:
        """Say that another action was taken than the one returned last; a policy with memory remembers it."""
        if self._last is None:
            raise ModelError("the episode has not started: call reset first")
        self._last = self.policy.action_index(action)

    def _act(self, inputs: NDArray[np.float32]) -> Any:
        self._inputs = inputs
        u: float = self._random.random()
        self._last = choose(self.policy.logits(inputs), u, self.policy.deterministic)
        return self.policy.actions[self._last]


class NetworkMeta(msgspec.Struct):
    """What a file says of a policy besides its arrays."""

    features: list[tuple[str, Any]]
    actions: list[Any]
    encoding: Encoding
    frames: Annotated[int, msgspec.Meta(ge=1)] | None
    deterministic: bool
    settings: dict[str, Any] | None
    layers: Annotated[int, msgspec.Meta(ge=1, le=1000)]


def _encoder(meta: NetworkMeta) -> Encoder:
    return Encoder(
        FeatureSpace(decode_features(meta.features)), len(meta.actions), meta.encoding, meta.frames
    )


def _network_arrays(meta: NetworkMeta) -> dict[str, Array]:
    """Return what the arrays of a policy must be, by name."""
    units = [_encoder(meta).size, *(f"units {i}" for i in range(meta.layers - 1)), len(meta.actions)]
    arrays: dict[str, Array] = {}
    for i in range(meta.layers):
        arrays[f"weight_{i}"] = Array(SHORT_FLOATS, (units[i], units[i + 1]))
        arrays[f"bias_{i}"] = Array(SHORT_FLOATS, (units[i + 1],))
    return arrays


NETWORK_FILE = Schema("PPO policy", NetworkMeta, _network_arrays)


def _save(policy: PPOPolicy, path: str | Path) -> None:
    """Write a policy to a file."""
    encoder = policy.encoder
    meta = NetworkMeta(
        features=encode_features(encoder.features.as_dict()),
        actions=encode_values(policy.actions, "actions"),
        encoding=encoder.encoding,
        frames=encoder.frames,
        deterministic=policy.deterministic,
        settings=None if policy.settings is None else asdict(policy.settings),
        layers=len(policy.layers),
    )
    arrays: dict[str, NDArray[Any]] = {}
    for i, layer in enumerate(policy.layers):
        arrays |= {f"weight_{i}": layer.weight, f"bias_{i}": layer.bias}
    write_archive(path, NETWORK_FILE.kind, meta, arrays)


def _load(path: str | Path) -> PPOPolicy:
    """Return the policy in a file."""
    meta, arrays = read_archive(path, NETWORK_FILE)
    with named_damage(path):
        return PPOPolicy(
            decode_values(meta.actions, "actions"),
            [Layer(arrays[f"weight_{i}"], arrays[f"bias_{i}"]) for i in range(meta.layers)],
            _encoder(meta),
            deterministic=meta.deterministic,
            settings=None if meta.settings is None else PPOSettings.from_dict(meta.settings),
        )
