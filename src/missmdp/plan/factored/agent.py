"""What is deployed of a policy with memory: its agent, and whole episodes of it in kernels."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.random import RowSampler
from missmdp._kernels.simulator import Simulation
from missmdp._kernels.table_episodes import NodeTables, run_memory_episodes
from missmdp.checks import checked_seed
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, row_sampler, seen_codes
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import MISSING
from missmdp.plan.agent import NOTHING, CountsFallbacks, check_first
from missmdp.plan.factored.explain import Situation
from missmdp.words import listed

if TYPE_CHECKING:
    from missmdp.plan.factored.policy import MemoryPolicy

_log = logging.getLogger(__name__)

_EVENTS = ("admitted",)
"""What is counted: observations that lack a feature which is always seen; the values that are there are believed."""


class MemoryAgent(CountsFallbacks):
    """An agent that keeps one node per feature that can go missing.

    Observations are tuples or mappings of feature values with None or NaN for missing; a feature that a mapping leaves
    out is missing. Values that the model does not have raise `ModelError` and leave the agent as it was.

    Attributes
    ----------
    policy : MemoryPolicy
        The policy.

    Notes
    -----
    What counts as an impossible observation is one that lacks a feature which should always be seen (`impossible`, and
    `fallbacks`: "admitted", since the values that are there are believed); see `MemoryPolicy`. The first one is logged.
    """

    def __init__(self, policy: MemoryPolicy, *, seed: int | None = None) -> None:
        super().__init__()
        self.policy = policy
        self._random = np.random.default_rng(None if seed is None else checked_seed(seed))
        features = policy.model.space.features
        self._sites = [features.position(name) for name in policy.sites]
        self._seen = [features.position(name) for name in policy.scene_features]
        self._sizes = [int(features.sizes[i]) for i in self._seen]
        self._values: list[int] = []
        self._situation: Situation | None = None
        self._taken = 0

    def __repr__(self) -> str:
        return f"MemoryAgent({self.policy!r}, {self.impossible} impossible observations)"

    @property
    def situation(self) -> Situation:
        """The scene and the nodes, for `explain`."""
        if self._situation is None:
            raise ModelError("the episode has not started: call reset first")
        return self._situation

    @property
    def beliefs(self) -> dict[str, dict[Any, float]]:
        """What the nodes stand for: for each feature that can go missing, value → probability."""
        values = self.policy.model.space.features.as_dict()
        return {
            name: dict(zip(values[name], beliefs[node].tolist(), strict=True))
            for name, beliefs, node in zip(
                self.policy.sites, self.policy.beliefs, self.situation.nodes, strict=True
            )
        }

    @property
    def belief(self) -> NDArray[np.float64]:
        """What the scene and the nodes stand for as a distribution over states, shape (S,); features independent."""
        return self.policy.belief(self.situation)

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._situation is None else self.policy.model.actions[self._taken]

    def reset(self, observation: Any = NOTHING) -> Any:
        """Start an episode with its first observation and return the first action."""
        check_first(observation, observe_initial=True)
        codes = self._codes(observation)
        self._values = _digits(self.policy.likely_scene, self._sizes)
        scene = self._next_scene(codes)
        return self._act(scene, codes, [first[scene] for first in self.policy.first])

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        before = self.situation
        codes = self._codes(observation)
        scene = self._next_scene(codes)
        return self._act(
            scene,
            codes,
            [
                steps[self._taken, before.scene, scene, node]
                for steps, node in zip(self.policy.steps, before.nodes, strict=True)
            ],
        )

    def took(self, action: Any) -> None:
        """Say that another action was taken than the one returned last; the nodes go on from there."""
        if self._situation is None:
            raise ModelError("the episode has not started: call reset first")
        self._taken = self.policy.model.mdp.action_index(action)

    def _codes(self, observation: Any) -> tuple[int, ...]:
        return self.policy.model.space.features.encode_observation(observation)

    def _next_scene(self, codes: tuple[int, ...]) -> int:
        """Return the scene after an observation; what is missing of it stays as it was."""
        lacking = [i for i in self._seen if codes[i] == MISSING]
        if lacking:
            if not self.impossible:
                names = self.policy.model.space.features.names
                _log.warning(
                    "%s is missing, which is always seen under the model that the policy was made for; the agent "
                    "goes on with the value before and counts such observations",
                    listed([repr(names[i]) for i in lacking], "and"),
                )
            self._fallbacks["admitted"] += 1
        self._values = [
            last if codes[i] == MISSING else codes[i]
            for i, last in zip(self._seen, self._values, strict=True)
        ]
        scene = 0
        for size, value in zip(self._sizes, self._values, strict=True):
            scene = scene * size + value
        return scene

    def _act(self, scene: int, codes: tuple[int, ...], missing: list[NDArray[np.float64]]) -> Any:
        nodes = [
            codes[i] if codes[i] != MISSING else self._draw(row)
            for i, row in zip(self._sites, missing, strict=True)
        ]
        self._situation = Situation(scene, tuple(nodes))
        tied = self.policy.tied(int(self.policy.table[scene, *nodes]), nodes)
        self._taken = tied[0] if len(tied) == 1 else tied[int(self._random.integers(len(tied)))]
        return self.policy.model.actions[self._taken]

    def _draw(self, row: NDArray[np.float64]) -> int:
        possible = np.flatnonzero(row)
        if len(possible) == 1:
            return int(possible[0])
        sums = np.cumsum(row[possible])
        place = int((sums <= self._random.random() * sums[-1]).sum())
        return int(possible[min(place, len(possible) - 1)])


def _digits(number: int, sizes: list[int]) -> list[int]:
    """Return the values of features in a scene."""
    found: list[int] = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        found.append(digit)
    return found[::-1]


def memory_runner(
    policy: MemoryPolicy,
    model: MissMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    """Return what simulates a policy with memory in a model; see `BulkPolicy`."""
    tables = _tables(policy, model, simulation)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(_EVENTS))
        count = run_memory_episodes(
            simulation,
            tables,
            words,
            first,
            horizon,
            model.discount,
            episodes.outcomes,
            episodes.events,
        )
        return episodes.first(count)

    return EpisodeRunner(run, _EVENTS)


def _tables(policy: MemoryPolicy, model: MissMDP, simulation: Simulation) -> NodeTables:
    """Return a policy as kernels take it, with the observations of the model that is acted in."""
    features = model.space.features
    n = len(features)
    sites = [features.position(name) for name in policy.sites]
    seen = [features.position(name) for name in policy.scene_features]
    weights, begins_with = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    sizes = [int(features.sizes[i]) for i in seen]
    weights[seen] = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    begins_with[seen] = _digits(policy.likely_scene, sizes)
    parts = [array.reshape(-1, array.shape[-1]) for array in (*policy.first, *policy.steps)]
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1].astype(np.int64)
    is_listed = isinstance(cast("Any", simulation.observation), RowSampler)
    codes = seen_codes(model) if is_listed else np.empty((0, n))
    return NodeTables(
        site=np.array(sites, dtype=np.int64),
        n_nodes=np.array(policy.nodes, dtype=np.int64),
        stride=np.array([math.prod(policy.nodes[k + 1 :]) for k in range(len(sites))], dtype=np.int64),
        scene_weight=weights,
        begins_with=begins_with,
        first_row=starts[: len(sites)].copy(),
        step_row=starts[len(sites) :].copy(),
        rows=_stacked(parts),
        # Copies: kernels are compiled anew for arrays that cannot be written to.
        action=np.array(policy.table.reshape(-1)),
        alike=np.array(policy.alike if policy.alike is not None else np.empty((0, 0)), dtype=np.int32),
        n_scenes=policy.n_scenes,
        codes=np.ascontiguousarray(codes, dtype=np.int32),
        sizes=np.array(features.sizes),
        weights=np.array(features.weights),
    )


def _stacked(parts: list[NDArray[np.float64]]) -> RowSampler:
    """Return the rows of matrices, one after the other, ready to be drawn from."""
    rows = [row_sampler(part) for part in parts] or [row_sampler(np.ones((1, 1)))]
    ends = np.cumsum([0, *(len(one.target) for one in rows)])
    starts = [one.start[:-1] + begin for one, begin in zip(rows, ends[:-1], strict=True)]
    return RowSampler(
        np.append(np.concatenate(starts), ends[-1]).astype(np.int64),
        np.concatenate([one.target for one in rows]),
        np.concatenate([one.cdf for one in rows]),
        np.concatenate([one.guide for one in rows]),
    )
