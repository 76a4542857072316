"""Missingness-MDPs: an MDP and a missingness function over its states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_instance
from missmdp.errors import FormatError, ModelError, ParameterError
from missmdp.memory import check_fits
from missmdp.model.archive import (
    CODES,
    FLAGS,
    FLOATS,
    INTEGERS,
    Array,
    Schema,
    decode_features,
    decode_values,
    encode_features,
    encode_values,
    matrix_arrays,
    matrix_from_parts,
    matrix_parts,
    named_damage,
    read_archive,
    write_archive,
)
from missmdp.model.factors import Factors
from missmdp.model.given import given_states
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missing_factors import Part, checked_parts
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.pomdp import POMDP
from missmdp.model.space import FeatureSpace, Rows, StateSpace
from missmdp.model.types import MissingnessTypes, classify
from missmdp.pages.notebook import notebook_table
from missmdp.words import count, listed, preview


class MissMDP:
    """A missingness-MDP (S, A, T, b₀, ρ, Z, M, γ).

    Parameters
    ----------
    mdp
        The underlying MDP.
    missingness
        The missingness function over the same states.
    name
        A name for reports; optional.
    """

    def __init__(
        self, mdp: FactoredMDP, missingness: MissingnessFunction, *, name: str | None = None
    ) -> None:
        self.mdp = checked_instance("mdp", mdp, FactoredMDP, "a FactoredMDP")
        self.missingness = checked_instance(
            "missingness", missingness, MissingnessFunction, "a MissingnessFunction"
        )
        if missingness.space != mdp.space:
            raise ModelError("the missingness function is over other states than the MDP's")
        if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError("name", name, "a string")
        self.name = name

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        return f"MissMDP({label}{self.mdp!r}, {self.missingness!r})"

    def _repr_html_(self) -> str:
        """Return the features and how often they are missing as a table, for notebooks."""
        mdp = self.mdp
        title = (
            f"MissMDP {self.name or ''}: {count(mdp.n_states, 'state')}, actions "
            f"{listed([*map(str, mdp.actions)])}, discount {mdp.discount:g}"
        ).replace(" :", ":")
        rates = self.missingness.rate_texts(mdp.reachable)
        rows = [[name, preview(values), rates[name]] for name, values in mdp.features.items()]
        return notebook_table(title, ["feature", "values", "missing in"], rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MissMDP) and self.mdp == other.mdp and self.missingness == other.missingness

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def space(self) -> StateSpace:
        """The states as codes."""
        return self.mdp.space

    @property
    def features(self) -> dict[str, tuple[Any, ...]]:
        """Name → values of each feature."""
        return self.mdp.features

    @property
    def states(self) -> Rows:
        """The states in order, as named tuples."""
        return self.mdp.states

    @property
    def actions(self) -> tuple[Any, ...]:
        """The names of the actions."""
        return self.mdp.actions

    @property
    def discount(self) -> float:
        """The discount γ."""
        return self.mdp.discount

    @property
    def n_states(self) -> int:
        """|S|."""
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        """|A|."""
        return self.mdp.n_actions

    @cached_property
    def n_observations(self) -> int:
        """|Z|, the number of `observations`."""
        return self._reachable_space.count_observations()

    @property
    def observations(self) -> Rows:
        """Z: every way to leave values out of a reachable state, as named tuples with None for missing.

        This is the paper's observation space. Fewer occur: those are `occurring_observations`.
        """
        return Rows(self._reachable_space.all_observations(), self.space.features.decode_observation)

    @property
    def occurring_observations(self) -> Rows:
        """The observations that M can produce in a reachable state, as named tuples with None for missing."""
        return self.missingness.occurring(self.mdp.reachable).observations

    @property
    def _reachable_space(self) -> StateSpace:
        return StateSpace(self.space.features, self.space.codes[self.mdp.reachable])

    def with_missingness(self, missingness: MissingnessFunction) -> MissMDP:
        """Return the miss-MDP with the same MDP and another missingness function, such as a learned one."""
        return MissMDP(self.mdp, missingness, name=self.name)

    def types(self) -> MissingnessTypes:
        """Return which types and assumptions of the paper hold over the reachable states."""
        return classify(self.missingness, self.mdp.reachable)

    def mgraph(self) -> MissingnessGraph:
        """Return the m-graph over the reachable states."""
        return MissingnessGraph.from_missingness(self.missingness, self.mdp.reachable)

    def to_pomdp(self) -> POMDP:
        """Return the POMDP that solvers see, with the observations that M can produce, in order of rank.

        It contains all states of the MDP, including unreachable ones that were given as matrices. Histories of a
        miss-MDP start with an observation, so the POMDP has `observe_initial` set.
        """
        entries = float(self.n_states) * self.missingness.n_patterns
        what = f"the POMDP of this model, with {entries:.2g} pairs of a state and what is seen of it,"
        check_fits(
            what,
            80.0 * entries,
            "pass the model itself: where T and M are products of small parts, Sarsop lists nothing",
        )
        seen = self.missingness.occurring()
        matrix = sparse.coo_array(
            (self.missingness.probabilities[seen.state, seen.pattern], (seen.state, seen.place)),
            shape=(self.n_states, len(seen.observations)),
        )
        return POMDP(
            states=self.states,
            actions=self.actions,
            observations=seen.observations,
            transition=self.mdp.transition,
            reward=self.mdp.reward,
            observation=(sparse.csr_array(matrix),),
            initial=self.mdp.initial,
            terminal=self.mdp.terminal,
            discount=self.discount,
            observe_initial=True,
        )

    def save(self, path: str | Path) -> None:
        """Save the model as an `.mmdp` file: arrays and JSON, no pickle."""
        write_archive(path, MODEL_FILE.kind, *model_parts(self))

    @classmethod
    def load(cls, path: str | Path) -> MissMDP:
        """Return the model in an `.mmdp` file.

        Raises
        ------
        FormatError
            If the file is not an `.mmdp` file, is damaged, or comes from a newer version.
        """
        meta, arrays = read_archive(path, MODEL_FILE)
        with named_damage(path):
            return model_from_parts(meta, arrays)


class PartMeta(msgspec.Struct, kw_only=True):
    """What a file says of one part of a large missingness function."""

    features: list[int]
    given: list[int] | None
    """The features by whose combinations it goes; None where the file has the group of each state."""


class ModelMeta(msgspec.Struct, kw_only=True):
    """What a file says of a model besides its arrays."""

    features: list[tuple[str, Any]]
    actions: list[Any]
    discount: float
    name: str | None = None
    factors: list[list[int]] | msgspec.UnsetType = msgspec.UNSET
    """For T by factors: the features that each feature's next value depends on."""
    parts: list[PartMeta] | msgspec.UnsetType = msgspec.UNSET
    """For M by parts: what they are."""


def model_arrays(meta: ModelMeta) -> dict[str, Array]:
    """Return what the arrays of a model must be, by name."""
    n_features, n_actions = len(meta.features), len(meta.actions)
    arrays = {"states": Array(CODES, ("states", n_features), 0)} if meta.factors is msgspec.UNSET else {}
    arrays |= {
        "reward": Array(FLOATS, ("states", n_actions)),
        "initial": Array(FLOATS, ("states",)),
        "terminal": Array(FLAGS, ("states",)),
    }
    if meta.parts is msgspec.UNSET:
        arrays["patterns"] = Array(FLAGS, ("patterns", n_features))
        arrays["probabilities"] = Array(FLOATS, ("states", "patterns"))
    else:
        arrays |= _part_arrays(meta.parts, n_features)
    if meta.factors is msgspec.UNSET:
        for a in range(n_actions):
            arrays |= matrix_arrays(f"transition_{a}", "states", "states")
        return arrays
    sizes = [len(values) for values in decode_features(meta.features).values()]
    for i, (parents, size) in enumerate(zip(meta.factors, sizes, strict=True)):
        lengths = [sizes[p] for p in _checked_positions(parents, n_features)]
        arrays[f"factor_{i}"] = Array(FLOATS, (*lengths, n_actions, size))
    return arrays


def _part_arrays(parts: list[PartMeta], n_features: int) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for i, part in enumerate(parts):
        own = len(_checked_positions(part.features, n_features))
        groups, patterns = f"groups of part {i}", f"patterns of part {i}"
        arrays[f"part_{i}_patterns"] = Array(FLAGS, (patterns, own))
        arrays[f"part_{i}_table"] = Array(FLOATS, (groups, patterns))
        if part.given is None:
            arrays[f"part_{i}_groups"] = Array(INTEGERS, ("states",), 0, groups)
        else:
            _checked_positions(part.given, n_features)
    return arrays


def _checked_positions(positions: list[int], n_features: int) -> list[int]:
    if not all(0 <= p < n_features for p in positions) or len(set(positions)) < len(positions):
        raise FormatError(f"{positions} are no positions of features, each once")
    return positions


MODEL_FILE = Schema("miss-MDP", ModelMeta, model_arrays)


def model_parts(model: MissMDP) -> tuple[ModelMeta, dict[str, NDArray[Any]]]:
    """Return a model as metadata and arrays, for an archive."""
    mdp = model.mdp
    meta = ModelMeta(
        name=model.name,
        features=encode_features(model.features),
        actions=encode_values(model.actions, "actions"),
        discount=model.discount,
    )
    arrays: dict[str, NDArray[Any]] = {
        "reward": mdp.reward,
        "initial": mdp.initial,
        "terminal": mdp.terminal,
    }
    if mdp.by_factors and mdp.factors is not None:
        meta.factors = [list(scope.parents) for scope in mdp.factors.scopes]
        arrays |= {f"factor_{i}": scope.table for i, scope in enumerate(mdp.factors.scopes)}
    else:
        arrays["states"] = model.space.codes
        for a, matrix in enumerate(mdp.transition):
            arrays |= matrix_parts(f"transition_{a}", matrix)
    if model.missingness.is_small:
        arrays["patterns"] = model.missingness.patterns
        arrays["probabilities"] = model.missingness.probabilities
        return meta, arrays
    meta.parts = []
    for i, part in enumerate(model.missingness.parts):
        given = list(part.groups) if isinstance(part.groups, tuple) else None
        meta.parts.append(PartMeta(features=list(part.features), given=given))
        arrays[f"part_{i}_patterns"], arrays[f"part_{i}_table"] = part.patterns, part.table
        if given is None:
            arrays[f"part_{i}_groups"] = part.rows(model.space)
    return meta, arrays


def model_from_parts(meta: ModelMeta, arrays: Mapping[str, NDArray[Any]]) -> MissMDP:
    """Return the model that `model_parts` was given; call it inside `named_damage`."""
    features = FeatureSpace(decode_features(meta.features))
    actions = decode_values(meta.actions, "actions")
    n_states = len(arrays["initial"])
    if meta.factors is msgspec.UNSET:
        space = StateSpace(features, arrays["states"])
        shape = (n_states, n_states)
        transition = [matrix_from_parts(f"transition_{a}", arrays, shape) for a in range(len(actions))]
    else:
        if math.prod(map(int, features.sizes)) != n_states:
            raise FormatError(f"it has {n_states:,} states, not all combinations of values")
        space = given_states(features, None, n_states)
        named = {
            name: ([features.names[p] for p in parents], arrays[f"factor_{i}"])
            for i, (name, parents) in enumerate(zip(features.names, meta.factors, strict=True))
        }
        transition = Factors(features, actions, named)
    mdp = FactoredMDP(
        features,
        actions,
        transition,
        arrays["reward"],
        arrays["initial"],
        arrays["terminal"],
        meta.discount,
        states=space,
    )
    return MissMDP(mdp, _missingness_from_parts(meta, arrays, mdp.space), name=meta.name)


def _missingness_from_parts(
    meta: ModelMeta, arrays: Mapping[str, NDArray[Any]], space: StateSpace
) -> MissingnessFunction:
    if meta.parts is msgspec.UNSET:
        return MissingnessFunction(space, arrays["patterns"], arrays["probabilities"])
    parts = [
        Part(
            tuple(part.features),
            arrays[f"part_{i}_patterns"],
            arrays[f"part_{i}_table"],
            arrays[f"part_{i}_groups"] if part.given is None else tuple(part.given),
        )
        for i, part in enumerate(meta.parts)
    ]
    return MissingnessFunction.from_parts(space, checked_parts(space, parts))


def checked_model(model: object) -> MissMDP:
    """Return a miss-MDP; say what to give instead where something else came."""
    return checked_instance("model", model, MissMDP, "a MissMDP", "make one with MissMDP(mdp, missingness)")


PRIOR_RATE = 0.5
"""The probability with which each feature goes missing under the uninformed prior."""


def prior_model(model: MissMDP) -> MissMDP:
    """Return the miss-MDP with an uninformed guess of M, whose policy is the paper's baseline π^prior (Sec. 6).

    Every feature, even one that is always observed, is independently missing with probability 0.5, in every state.
    """
    mdp = checked_model(model).mdp
    return model.with_missingness(
        MissingnessFunction.independent(mdp, dict.fromkeys(mdp.features, PRIOR_RATE))
    )


def fully_observed_model(model: MissMDP) -> MissMDP:
    """Return the miss-MDP in which nothing goes missing."""
    return checked_model(model).with_missingness(MissingnessFunction.fully_observed(model.mdp))
