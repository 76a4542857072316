"""Saved policies: one archive with the vectors and the model that they were made for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError
from missmdp.model.archive import decode_values, encode_values, read_archive, write_archive
from missmdp.model.missmdp import MissMDP, model_from_parts, model_parts, named_damage
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.components import ComponentVectors

__all__ = ["load_policy", "policy_from_parts", "policy_parts", "save_policy"]

KIND = "policy"
_MODEL = "model_"
"""Prefix of the model's arrays, to keep them apart from the policy's."""
_LABELS = ("states", "actions", "observations")
_PARTS = ("data", "indices", "indptr")


def save_policy(policy: AlphaVectorPolicy, path: str | Path) -> None:
    """Write a policy and its model to a file."""
    write_archive(path, KIND, *policy_parts(policy))


def policy_parts(policy: AlphaVectorPolicy) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a policy and its model as metadata and arrays, for an archive."""
    missmdp = isinstance(policy.model, MissMDP)
    meta, arrays = (
        model_parts(policy.model) if isinstance(policy.model, MissMDP) else _pomdp_parts(policy.pomdp)
    )
    components = policy.components
    empty = np.empty(0, dtype=np.int64)
    return {
        "model": meta,
        "model_kind": "miss-MDP" if missmdp else "POMDP",
        "observe_initial": policy.observe_initial,
    }, {
        **{_MODEL + name: array for name, array in arrays.items()},
        "block_states": np.concatenate([empty, *(component.states for component in components)]),
        "block_sizes": np.array([len(component.states) for component in components], dtype=np.int64),
        "block_vectors": np.array([len(component) for component in components], dtype=np.int64),
        "vector_actions": np.concatenate([empty, *(component.actions for component in components)]),
        "vector_values": np.concatenate(
            [np.empty(0), *(component.values.reshape(-1) for component in components)]
        ),
    }


def load_policy(path: str | Path) -> AlphaVectorPolicy:
    """Return the policy in a file, with its model."""
    meta, arrays = read_archive(path, KIND)
    with named_damage(path):
        return policy_from_parts(meta, arrays)


def policy_from_parts(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> AlphaVectorPolicy:
    """Return the policy that `policy_parts` was given; call it inside `named_damage`."""
    parts = {name.removeprefix(_MODEL): array for name, array in arrays.items() if name.startswith(_MODEL)}
    observe_initial = meta["observe_initial"]
    if not isinstance(observe_initial, bool):
        raise FormatError(f"observe_initial is {observe_initial!r}, not true or false")
    match meta["model_kind"]:
        case "miss-MDP":
            model = model_from_parts(meta["model"], parts)
        case "POMDP":
            model = _pomdp_from_parts(meta["model"], parts)
        case kind:
            raise FormatError(f"the policy is for {kind!r}, which this missmdp does not know")
    return AlphaVectorPolicy(model, _components(arrays), observe_initial=observe_initial)


def _components(arrays: Mapping[str, NDArray[Any]]) -> list[ComponentVectors]:
    sizes, counts = arrays["block_sizes"], arrays["block_vectors"]
    states, actions, values = arrays["block_states"], arrays["vector_actions"], arrays["vector_values"]
    expected = (sizes.sum(), counts.sum(), (sizes * counts).sum())
    if (len(states), len(actions), len(values)) != expected or (sizes < 0).any() or (counts < 0).any():
        raise FormatError("the sizes of its components do not match their content")
    return (
        [
            ComponentVectors(own_states, own_values.reshape(count, size), own_actions)
            for own_states, own_values, own_actions, count, size in zip(
                np.split(states, np.cumsum(sizes)[:-1]),
                np.split(values, np.cumsum(sizes * counts)[:-1]),
                np.split(actions, np.cumsum(counts)[:-1]),
                counts,
                sizes,
                strict=True,
            )
        ]
        if len(sizes)
        else []
    )


def _pomdp_parts(pomdp: POMDP) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    meta: dict[str, Any] = {name: encode_values(tuple(getattr(pomdp, name)), name) for name in _LABELS}
    meta |= {"discount": pomdp.discount, "observe_initial": pomdp.observe_initial}
    meta["observation_matrices"] = len(pomdp.observation)
    arrays: dict[str, NDArray[Any]] = {
        "reward": pomdp.reward,
        "initial": pomdp.initial,
        "terminal": pomdp.terminal,
    }
    for kind, matrices in (("transition", pomdp.transition), ("observation", pomdp.observation)):
        for a, matrix in enumerate(matrices):
            arrays |= {f"{kind}_{a}_{part}": getattr(matrix, part) for part in _PARTS}
    return meta, arrays


def _pomdp_from_parts(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> POMDP:
    states, actions, observations = (decode_values(meta[name], name) for name in _LABELS)

    def matrices(kind: str, count: int, width: int) -> tuple[sparse.csr_array, ...]:
        parts = [tuple(arrays[f"{kind}_{a}_{part}"] for part in _PARTS) for a in range(count)]
        return tuple(sparse.csr_array(part, shape=(len(states), width)) for part in parts)

    return POMDP(
        states=states,
        actions=actions,
        observations=observations,
        transition=matrices("transition", len(actions), len(states)),
        reward=arrays["reward"],
        observation=matrices("observation", meta["observation_matrices"], len(observations)),
        initial=arrays["initial"],
        terminal=arrays["terminal"],
        discount=meta["discount"],
        observe_initial=meta["observe_initial"],
    )
