"""Policies with one node per feature that can go missing: what is deployed where a belief over states is too large."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp.checks import checked_list, checked_shape
from missmdp.errors import ModelError, ParameterError
from missmdp.model.archive import (
    CODES,
    FLOATS,
    Array,
    Schema,
    checked_fields,
    named_damage,
    read_archive,
    write_archive,
)
from missmdp.model.missmdp import (
    MissMDP,
    ModelMeta,
    checked_model,
    model_arrays,
    model_from_parts,
    model_parts,
)
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import as_floats, as_integers, checked_distribution, checked_table
from missmdp.model.space import MISSING
from missmdp.plan.acting import check_acts_in, check_interface
from missmdp.plan.factored.explain import MemoryExplanation, Situation, explain
from missmdp.words import count, listed

if TYPE_CHECKING:
    from missmdp._kernels.simulator import Simulation
    from missmdp.data.simulation import EpisodeRunner
    from missmdp.plan.factored.agent import MemoryAgent
    from missmdp.plan.factored.memory import Memory

_MODEL = "model_"
"""Prefix of the model's arrays in a file, to keep them apart from the policy's."""
_KINDS = ("beliefs", "steps", "first")
"""The arrays that there are for each site."""
_OF_VECTORS = frozenset(
    ("action_values", "components", "graph", "initial_value", "n_vectors", "pomdp", "value", "value_function")
)
"""What only policies of α-vectors have."""


class MemoryPolicy:
    """A policy that remembers one node per feature that can go missing, and no belief over states.

    A node stands for a belief about its feature. A value that is seen sets the node of that value. While the feature is
    missing, its node moves on, as the action and the features that are always seen say. What is done depends on these
    features, which make the *scene*, and on all nodes. So the policy needs little memory and no time to speak of,
    however many states the model has.

    Parameters
    ----------
    model
        The model that the policy was made for.
    beliefs
        For each feature that can go missing, the beliefs that its nodes stand for, shape (N, values). Node v, for the
        value with the code v, comes first and is certain of it.
    steps
        For each of them, P(next node | action, scene, next scene, node) while it is missing, shape (A, X, X, N, N).
    first
        For each of them, P(node | scene) where it is missing in the first observation, shape (X, N).
    actions
        The action at each scene and nodes, as a number, shape (X, N₁, …, N_k).
    alike
        Where features are alike: for each action on one of these features, the actions that do the same to each of
        them, as numbers, shape (A, k); −1 for other actions. Where the action is on a feature and others are at the
        same node, one of all these is drawn, each as likely. None if there are no such actions.

    Attributes
    ----------
    model : MissMDP
        The model.
    sites : tuple of str
        The features that can go missing.
    table : ndarray
        The action at each scene and nodes.

    Notes
    -----
    The arrays for each feature are attributes too, under the names of the parameters.

    Scenes are all combinations of values of the features that are always seen, the last one changing fastest. Such a
    feature can be missing all the same if the model is wrong. Then its last value counts on, or, in a first
    observation, its value in the most likely first scene; agents count it (`impossible`).
    """

    knows_ranks = True

    def __init__(
        self,
        model: MissMDP,
        beliefs: Sequence[ArrayLike],
        steps: Sequence[ArrayLike],
        first: Sequence[ArrayLike],
        actions: ArrayLike,
        alike: ArrayLike | None = None,
    ) -> None:
        self.model = checked_model(model)
        self.sites: tuple[str, ...] = tuple(model.missingness.can_go_missing)
        given = [
            _per_site(name, arrays, self.sites)
            for name, arrays in zip(_KINDS, (beliefs, steps, first), strict=True)
        ]
        self.beliefs = tuple(
            _checked_beliefs(array, site, self._values[site])
            for site, array in zip(self.sites, given[0], strict=True)
        )
        self.nodes: tuple[int, ...] = tuple(len(array) for array in self.beliefs)
        moves = (model.n_actions, self.n_scenes, self.n_scenes)
        self.steps = tuple(
            _checked_rows("steps", array, site, (*moves, n, n), "(actions, scenes, scenes, nodes, nodes)")
            for site, array, n in zip(self.sites, given[1], self.nodes, strict=True)
        )
        self.first = tuple(
            _checked_rows("first", array, site, (self.n_scenes, n), "(scenes, nodes)")
            for site, array, n in zip(self.sites, given[2], self.nodes, strict=True)
        )
        self.table = _checked_actions(actions, (self.n_scenes, *self.nodes), model.n_actions)
        self.alike = None if alike is None else _checked_alike(alike, (model.n_actions, len(self.sites)))

    @classmethod
    def from_memory(cls, model: MissMDP, memory: Memory) -> MemoryPolicy:
        """Return what a solver's controller does in its model; moves that cannot be leave nodes as they are."""
        n_scenes = len(memory.parts.scenes)
        moves = (memory.parts.n_actions, n_scenes, n_scenes)
        steps = [np.array(np.broadcast_to(np.eye(n), (*moves, n, n))) for n in memory.nodes]
        for move, of_sites in memory.steps.items():
            for site, step in enumerate(of_sites):
                steps[site][move] = step
        first = [np.array([of_scene[site] for of_scene in memory.first]) for site in range(len(memory.nodes))]
        return cls(model, memory.beliefs, steps, first, np.array(memory.actions))

    @classmethod
    def from_action(cls, model: MissMDP, action: Any) -> MemoryPolicy:
        """Return the policy that always does the same; its nodes are the values that were seen last."""
        number = checked_model(model).mdp.action_index(action)
        features = model.space.features.as_dict()
        sizes = [len(features[name]) for name in model.missingness.can_go_missing]
        n_scenes = math.prod(len(values) for values in features.values()) // math.prod(sizes)
        moves = (model.n_actions, n_scenes, n_scenes)
        return cls(
            model,
            [np.eye(n) for n in sizes],
            [np.broadcast_to(np.eye(n), (*moves, n, n)) for n in sizes],
            [np.broadcast_to(np.eye(n)[0], (n_scenes, n)) for n in sizes],
            np.full((n_scenes, *sizes), number),
        )

    @classmethod
    def from_observations(
        cls, model: MissMDP, chosen: NDArray[np.integer[Any]], visits: NDArray[np.float64]
    ) -> MemoryPolicy:
        """Return the policy that acts on the last observation alone; its nodes are the values, and one for a gap.

        Parameters
        ----------
        model
            The model, whose observations can be listed.
        chosen
            The action on each of them, in the order of `occurring`, shape (Z,).
        visits
            How often states are visited, which says what a gap stands for, shape (S,).
        """
        space, gaps = model.space, model.missingness
        positions = [space.features.position(name) for name in gaps.can_go_missing]
        others = [i for i in range(len(space.features)) if i not in positions]
        sizes = [int(space.features.sizes[i]) for i in positions]
        seen_sizes = [int(space.features.sizes[i]) for i in others]
        n_scenes, codes = math.prod(seen_sizes), gaps.occurring().observations.codes.astype(np.int64)
        # What cannot be seen has the most frequent action.
        table = np.full((n_scenes, *(size + 1 for size in sizes)), np.bincount(chosen).argmax())
        scene = np.zeros(len(codes), dtype=np.int64)
        for i, size in zip(others, seen_sizes, strict=True):
            scene = scene * size + codes[:, i]
        nodes = [
            np.where(codes[:, i] == MISSING, size, codes[:, i])
            for i, size in zip(positions, sizes, strict=True)
        ]
        table[scene, *nodes] = chosen
        missing = gaps.probabilities @ ~gaps.patterns[:, positions] * visits[:, None]
        beliefs: list[NDArray[np.float64]] = []
        for k, (i, size) in enumerate(zip(positions, sizes, strict=True)):
            mass = np.bincount(space.codes[:, i], weights=missing[:, k], minlength=size)
            gap = mass / mass.sum() if mass.sum() > 0.0 else np.full(size, 1.0 / size)
            beliefs.append(np.vstack([np.eye(size), gap]))
        shape = (model.n_actions, n_scenes, n_scenes)
        last = [np.eye(size + 1)[size] for size in sizes]
        return cls(
            model,
            beliefs,
            [np.broadcast_to(row, (*shape, len(row), len(row))) for row in last],
            [np.broadcast_to(row, (n_scenes, len(row))) for row in last],
            table,
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OF_VECTORS:
                raise AttributeError(
                    f"a MemoryPolicy has no {name!r}: it has nodes, not α-vectors over states; `explain` says what "
                    "it does, `evaluate` what it is worth"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"MemoryPolicy({count(self.n_nodes, 'node')} of {count(len(self.sites), 'feature')}, "
            f"for {self.model!r})"
        )

    @cached_property
    def _values(self) -> dict[str, tuple[Any, ...]]:
        return self.model.space.features.as_dict()

    @cached_property
    def scene_features(self) -> tuple[str, ...]:
        """The features that are always seen, whose values make the scene."""
        return tuple(name for name in self._values if name not in self.sites)

    @cached_property
    def n_scenes(self) -> int:
        """The number of scenes."""
        return math.prod(len(self._values[name]) for name in self.scene_features)

    @property
    def n_nodes(self) -> int:
        """The number of nodes of all features together."""
        return sum(self.nodes)

    @cached_property
    def only_action(self) -> Any:
        """The action that it takes whatever is seen; None if what is seen matters."""
        first = int(self.table.flat[0])
        # Among features that are alike, one is drawn.
        alone = len({*self._alike_of(first)} - {-1}) <= 1
        return self.model.actions[first] if alone and (self.table == first).all() else None

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return tuple(self.model.actions)

    @property
    def observe_initial(self) -> bool:
        """Whether an observation comes before the first action: always."""
        return True

    @cached_property
    def _scene_of(self) -> NDArray[np.int64]:
        """The scene of each state, shape (S,)."""
        features = self.model.space.features
        scene = np.zeros(self.model.n_states, dtype=np.int64)
        for i in map(features.position, self.scene_features):
            scene = scene * int(features.sizes[i]) + self.model.space.codes[:, i]
        return scene

    @cached_property
    def likely_scene(self) -> int:
        """The most likely first scene."""
        return int(
            np.argmax(np.bincount(self._scene_of, weights=self.model.mdp.initial, minlength=self.n_scenes))
        )

    @cached_property
    def first_actions(self) -> tuple[Any, ...]:
        """All actions that the policy may begin with; none if everything has ended before."""
        mdp, codes = self.model.mdp, self.model.space.codes
        begins = np.flatnonzero((mdp.initial > 0.0) & ~mdp.terminal)
        found: set[int] = set()
        for scene in np.unique(self._scene_of[begins]).tolist():
            states = begins[self._scene_of[begins] == scene]
            nodes = [
                np.union1d(
                    codes[states, self.model.space.features.position(name)], np.flatnonzero(first[scene])
                )
                for name, first in zip(self.sites, self.first, strict=True)
            ]
            table = self.table[scene][np.ix_(*nodes)]
            for action in np.unique(table).tolist():
                found |= {action, *self._drawn_with(action, nodes, table == action)}
        return tuple(self.model.actions[a] for a in sorted(found))

    def _drawn_with(
        self, action: int, nodes: Sequence[NDArray[np.int64]], taken: NDArray[np.bool_]
    ) -> Iterator[int]:
        """Yield the actions that may be drawn instead of one, where it is taken at some of all these nodes."""
        own = self.feature_of(action)
        if own is None:
            return
        grids = np.meshgrid(*nodes, indexing="ij", sparse=True)
        for site, other in enumerate(self._alike_of(action)):
            if bool((taken & (grids[site] == grids[own])).any()):
                yield other

    def _alike_of(self, action: int) -> list[int]:
        return [] if self.alike is None else self.alike[action].tolist()

    def feature_of(self, action: int) -> int | None:
        """Return which of the features that are alike an action is on, as a place in `sites`; None if on none."""
        alike = self._alike_of(action)
        return alike.index(action) if action in alike else None

    def tied(self, action: int, nodes: Sequence[int]) -> list[int]:
        """Return the actions of which one is drawn where the table says `action` at some nodes; often just that."""
        own = self.feature_of(action)
        if own is None:
            return [action]
        return [
            other
            for other, node in zip(self._alike_of(action), nodes, strict=True)
            if other >= 0 and node == nodes[own]
        ]

    def scene_values(self, scene: int) -> dict[str, Any]:
        """Return the values of the features that are always seen in a scene."""
        sizes = [len(self._values[name]) for name in self.scene_features]
        codes = np.unravel_index(scene, sizes) if sizes else ()
        return {
            name: self._values[name][int(code)] for name, code in zip(self.scene_features, codes, strict=True)
        }

    def action(self, situation: Situation | NDArray[np.float64]) -> Any:
        """Return the action in a situation, such as an agent's, or at a belief over states; see `explain`."""
        return self.model.actions[int(self.table[self.checked_situation(situation)])]

    def belief(self, situation: Situation) -> NDArray[np.float64]:
        """Return what a situation stands for as a distribution over states, shape (S,); features independent."""
        scene, *nodes = self.checked_situation(situation)
        belief = (self._scene_of == scene).astype(np.float64)
        for name, beliefs, node in zip(self.sites, self.beliefs, nodes, strict=True):
            belief *= beliefs[node][self.model.space.codes[:, self.model.space.features.position(name)]]
        total = float(belief.sum())
        if not total:
            raise ModelError("the model has no state that fits what the nodes stand for")
        return belief / total

    def _nearest(self, belief: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the most likely scene of a belief, and the nodes that are nearest to it in that scene."""
        space = self.model.space
        scene = int(np.argmax(np.bincount(self._scene_of, weights=belief, minlength=self.n_scenes)))
        inside = np.where(self._scene_of == scene, belief, 0.0)
        place = [scene]
        for name, beliefs in zip(self.sites, self.beliefs, strict=True):
            codes = space.codes[:, space.features.position(name)]
            wanted = np.bincount(codes, weights=inside, minlength=beliefs.shape[1]) / inside.sum()
            place.append(int(np.argmin(np.abs(beliefs - wanted).sum(axis=1))))
        return tuple(place)

    def checked_situation(self, situation: Any) -> tuple[int, ...]:
        """Return a situation, or what is nearest to a belief over states, as a place in `table`."""
        if isinstance(situation, np.ndarray):
            belief = as_floats(cast("object", situation), "a belief")
            if belief.shape == (self.model.n_states,):
                return self._nearest(checked_distribution(belief, "the belief", self.model.space.state))
        expected = f"a scene from 0 to {self.n_scenes - 1} and a node for each of {listed(self.sites, 'and')}"
        try:
            scene, nodes = situation
            place = (int(scene), *map(int, nodes))
        except (TypeError, ValueError):
            raise ParameterError("situation", cast("object", situation), expected) from None
        fits = len(place) == self.table.ndim
        if not fits or any(not 0 <= k < n for k, n in zip(place, self.table.shape, strict=True)):
            raise ParameterError("situation", cast("object", situation), expected)
        return place

    def agent(self, model: MissMDP | POMDP | None = None, *, seed: int | None = None) -> MemoryAgent:
        """Return a new agent.

        Parameters
        ----------
        model
            What the agent will act in, optional; it must have the same features and actions.
        seed
            The seed of the draws between nodes, where there are any.
        """
        from missmdp.plan.factored.agent import MemoryAgent

        if model is not None:
            check_interface(self.model, model)
        return MemoryAgent(self, seed=seed)

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model, for `evaluate`; see `BulkPolicy`."""
        from missmdp.plan.factored.agent import memory_runner

        check_acts_in(self.model, self.observe_initial, model)
        assert isinstance(model, MissMDP)
        return memory_runner(self, model, simulation, words, horizon)

    def explain(self, situation: Situation | NDArray[np.float64]) -> MemoryExplanation:
        """Return what the policy does in a situation and what that depends on, to be printed.

        Parameters
        ----------
        situation
            Such as an agent's `situation`. A belief over states stands for its most likely scene and, feature by
            feature, the nearest nodes.
        """
        return explain(self, Situation(*_split(self.checked_situation(situation))))

    def save(self, path: str | Path) -> None:
        """Save the policy with its model, such as `fleet.mmpolicy`: arrays and JSON, no pickle."""
        meta, arrays = model_parts(self.model)
        own = MemoryMeta(
            cast("dict[str, Any]", msgspec.to_builtins(meta)), list(self.sites), self.alike is not None
        )
        mine = {f"{kind}_{k}": array for kind in _KINDS for k, array in enumerate(getattr(self, kind))}
        if self.alike is not None:
            mine["alike"] = self.alike
        write_archive(
            path,
            MEMORY_FILE.kind,
            own,
            {**{_MODEL + name: array for name, array in arrays.items()}, **mine, "actions": self.table},
        )

    @classmethod
    def load(cls, path: str | Path) -> MemoryPolicy:
        """Return the policy in a file that `save` wrote, with its model.

        Raises
        ------
        FormatError
            If the file is of another kind, damaged, or from a newer version.
        """
        meta, arrays = read_archive(path, MEMORY_FILE)
        with named_damage(path):
            return _from_parts(meta, arrays)


class MemoryMeta(msgspec.Struct):
    """What a file says of a policy with memory besides its arrays."""

    model: dict[str, Any]
    sites: list[str]
    alike: bool = False


def _memory_arrays(meta: MemoryMeta) -> dict[str, Array]:
    """Return what the arrays of a policy and its model must be, by name."""
    own = checked_fields(meta.model, ModelMeta)
    arrays = {_MODEL + name: array for name, array in model_arrays(own).items()}
    n_actions, scenes = len(own.actions), "scenes"
    for k in range(len(meta.sites)):
        nodes = f"nodes of feature {k}"
        arrays |= {
            f"beliefs_{k}": Array(FLOATS, (nodes, f"values of feature {k}")),
            f"steps_{k}": Array(FLOATS, (n_actions, scenes, scenes, nodes, nodes)),
            f"first_{k}": Array(FLOATS, (scenes, nodes)),
        }
    shape = (scenes, *(f"nodes of feature {k}" for k in range(len(meta.sites))))
    if meta.alike:
        arrays["alike"] = Array(CODES, (n_actions, len(meta.sites)), -1, n_actions)
    return arrays | {"actions": Array(CODES, shape, 0, n_actions)}


MEMORY_FILE = Schema("policy with memory", MemoryMeta, _memory_arrays)


def _from_parts(meta: MemoryMeta, arrays: Mapping[str, NDArray[Any]]) -> MemoryPolicy:
    parts = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
    model = model_from_parts(checked_fields(meta.model, ModelMeta), parts)
    if list(model.missingness.can_go_missing) != meta.sites:
        raise ModelError(f"it has nodes of {meta.sites}, and what can go missing is something else")
    given = {kind: [arrays[f"{kind}_{k}"] for k in range(len(meta.sites))] for kind in _KINDS}
    return MemoryPolicy(model, **given, actions=arrays["actions"], alike=arrays.get("alike"))


def _split(place: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return place[0], place[1:]


def _per_site(name: str, arrays: Any, sites: tuple[str, ...]) -> list[Any]:
    expected = f"a list with one array for each feature that can go missing ({len(sites)})"
    given = checked_list(name, arrays, expected)
    if len(given) != len(sites):
        raise ParameterError(name, given, expected, f"expected {expected}, got {len(given)}")
    return given


def _checked_beliefs(array: Any, site: str, values: tuple[Any, ...]) -> NDArray[np.float64]:
    floats = as_floats(array, f"beliefs of {site!r}")
    n_nodes = floats.shape[0] if floats.ndim else 0
    beliefs = _checked_rows("beliefs", floats, site, (n_nodes, len(values)), "(nodes, values)")
    if n_nodes < len(values) or not np.array_equal(beliefs[: len(values)], np.eye(len(values))):
        problem = f"those of {site!r} must begin with certainty of each of its {len(values)} values, in order"
        raise ParameterError("beliefs", site, "certainty of each value first", problem)
    return beliefs


def _checked_rows(name: str, array: Any, site: str, shape: tuple[int, ...], axes: str) -> NDArray[np.float64]:
    """Return distributions along the last axis, an array that cannot be written to."""
    floats = as_floats(array, f"{name} of {site!r}")
    if floats.shape != shape:
        problem = f"those of {site!r} have shape {floats.shape}, expected {axes} = {shape}"
        raise ParameterError(name, floats.shape, f"of shape {shape}", problem)
    try:
        rows = checked_table(floats.reshape(-1, shape[-1]), lambda row: f"those of {site!r}, row {row}")
    except ParameterError:
        raise
    except ModelError as error:
        raise ParameterError(name, site, "distributions", str(error)) from None
    rows = np.array(rows).reshape(shape)
    rows.setflags(write=False)
    return rows


def _checked_actions(actions: Any, shape: tuple[int, ...], n_actions: int) -> NDArray[np.int32]:
    numbers = checked_shape("actions", as_integers(actions, "actions"), shape, "(scenes, nodes …)")
    for extreme in (int(numbers.min()), int(numbers.max())):
        if not 0 <= extreme < n_actions:
            raise ParameterError("actions", extreme, f"from 0 to {n_actions - 1}")
    table = numbers.astype(np.int32)
    table.setflags(write=False)
    return table


def _checked_alike(alike: Any, shape: tuple[int, int]) -> NDArray[np.int32]:
    """Return which actions do the same to which features, an array that cannot be written to."""
    numbers = checked_shape(
        "alike", as_integers(alike, "alike"), shape, "(actions, features that go missing)"
    )
    for action, row in enumerate(numbers):
        used = row[row >= 0]
        fits = len(set(used.tolist())) == len(used) and (row < shape[0]).all() and (row >= -1).all()
        if len(used) and not (fits and action in used and (numbers[used] == row).all()):
            expected = "for each action on a feature, the same row of actions, one for each feature"
            raise ParameterError("alike", row.tolist(), expected, f"that is not so in row {action}")
    table = numbers.astype(np.int32)
    table.setflags(write=False)
    return table
