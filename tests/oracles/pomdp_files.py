"""A `.pomdp` file as dense arrays, by doing what each statement says to a tensor, one after the other."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

import numpy as np

HEADS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")


class Dense(NamedTuple):
    """T[a, s, s′], O[a, s′, z], R[a, s, s′, z], b₀[s], ρ[s, a] and γ."""

    transition: np.ndarray
    observation: np.ndarray
    rewards: np.ndarray
    initial: np.ndarray
    reward: np.ndarray
    discount: float


def dense_pomdp(text: str) -> Dense:
    """Return what a small and correct file means."""
    plain = " ".join(line.split("#")[0] for line in text.splitlines())
    words = re.sub(r"([+-]) +", r"\1", plain.replace(":", " : ").replace("*", " * ")).split()
    parts: list[list[str]] = []
    for i, word in enumerate(words):
        colon = words[i + 1 : i + 2] == [":"] or words[i + 1 : i + 2] in (["include"], ["exclude"])
        if word in HEADS and colon and words[i - 1 : i] != [":"]:
            parts.append([])
        parts[-1].append(word)
    head = {part[0]: part for part in parts}
    names = {kind: _names(head[kind][2:]) for kind in ("states", "actions", "observations")}
    S, A, Z = (len(names[kind]) for kind in ("states", "actions", "observations"))
    initial = _start(head.get("start", ["start", ":", "uniform"]), names["states"])
    tensors = {"T": np.zeros((A, S, S)), "O": np.zeros((A, S, Z)), "R": np.zeros((A, S, S, Z))}
    kinds = {
        "T": ["actions", "states", "states"],
        "O": ["actions", "states", "observations"],
        "R": ["actions", "states", "states", "observations"],
    }
    for part in parts:
        if part[0] in tensors:
            _apply(part, tensors[part[0]], [names[kind] for kind in kinds[part[0]]], initial)
    T, M, R = tensors["T"], tensors["O"], tensors["R"]
    if head.get("values", [""])[-1] == "cost":
        R *= -1.0
    reward = np.zeros((S, A))
    for a, s, t, z in product(range(A), range(S), range(S), range(Z)):
        reward[s, a] += T[a, s, t] * M[a, t, z] * R[a, s, t, z]
    return Dense(T, M, R, initial, reward, float(head["discount"][2]))


def _names(words: list[str]) -> list[str]:
    return [str(i) for i in range(int(words[0]))] if words[0].isdigit() else words


def _position(word: str, names: list[str]) -> int:
    return names.index(word) if word in names else int(word)


def _start(part: list[str], states: list[str]) -> np.ndarray:
    words = part[part.index(":") + 1 :]
    if part[1] in ("include", "exclude"):
        listed = {_position(word, states) for word in words}
        weights = np.array([float((s in listed) == (part[1] == "include")) for s in range(len(states))])
        return weights / weights.sum()
    if words == ["uniform"]:
        return np.full(len(states), 1.0 / len(states))
    if len(words) == 1 and (words[0] in states or (words[0].isdigit() and len(states) > 1)):
        return np.array([float(s == _position(words[0], states)) for s in range(len(states))])
    return np.array([float(word) for word in words])


def _apply(part: list[str], tensor: np.ndarray, names: list[list[str]], initial: np.ndarray) -> None:
    fields, rest = [part[2]], part[3:]
    while rest[:1] == [":"]:
        fields, rest = [*fields, rest[1]], rest[2:]
    where = tuple(
        slice(None) if word == "*" else _position(word, own) for word, own in zip(fields, names, strict=False)
    )
    shape = tensor.shape[len(fields) :]
    if rest == ["uniform"]:
        tensor[where] = 1.0 / shape[-1]
    elif rest == ["identity"]:
        tensor[where] = np.eye(shape[0])
    elif rest == ["reset"]:
        tensor[where] = initial
    else:
        tensor[where] = np.array([float(word) for word in rest]).reshape(shape)
