"""Saved files with a checksum that fits and contents that do not: every array of every kind of file, wrong in turn.

All are refused while they are read. What is refused later could crash this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from archives import archive_contents
from memory_policies import random_memory
from missmdp.experiments.grid.cell import Cell, CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.model.archive import write_archive
from missmdp.plan.ppo.encoding import Encoder
from missmdp.plan.ppo.policy import Layer, PPOPolicy
from policies import random_policy


def small_model() -> mm.MissMDP:
    mdp = mm.FactoredMDP(
        {"level": range(3), "flag": [False, True]},
        ["wait", "treat"],
        lambda s, a: [((0 if a == "treat" else min(s.level + 1, 2), s.flag), 0.5), ((0, True), 0.5)],
        lambda s, a: -s.level,
        {(0, False): 0.5, (1, True): 0.5},
        lambda s: s.level == 2,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"level": 0.25}))


def small_pomdp() -> mm.POMDP:
    stay = sparse.csr_array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
    return mm.POMDP(
        states=("low", "high", "end"),
        actions=("wait", "act"),
        observations=("dark", "light"),
        transition=(stay, stay),
        reward=np.ones((3, 2)),
        observation=(sparse.csr_array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]),) * 2,
        initial=np.array([0.5, 0.5, 0.0]),
        terminal=np.array([False, False, True]),
        discount=0.9,
        observe_initial=True,
    )


def network_policy() -> PPOPolicy:
    encoder = Encoder(small_model().space.features, 2, "mixed", 2)
    layers = [Layer(np.ones((encoder.size, 3)), np.ones(3)), Layer(np.ones((3, 2)), np.ones(2))]
    return PPOPolicy(["wait", "treat"], layers, encoder)


class _Sum(Cell, kind="sum of a test"):
    def estimates_shape(self):
        return 2, 3


def load_cell(path: Path) -> CellResult:
    store = CellStore(path.parent)
    path.rename(store.path(_Sum()))
    found = store.read(_Sum())
    if found is None:
        raise mm.FormatError(f"{path}: not finished")
    return found


def save_cell(path: Path) -> None:
    store = CellStore(path.parent)
    store.write(_Sum(), CellResult({"sum": 3.0}, np.ones((2, 3))))
    store.path(_Sum()).rename(path)


KINDS: dict[str, tuple[str, Callable[[Path], object], Callable[[Path], object]]] = {
    "model": ("miss-MDP", lambda path: small_model().save(path), mm.MissMDP.load),
    "policy": ("policy", lambda path: random_policy(small_model(), 0).save(path), mm.load_policy),
    "POMDP policy": ("policy", lambda path: random_policy(small_pomdp(), 0).save(path), mm.load_policy),
    "controller": (
        "finite controller",
        lambda path: mm.FiniteController.from_policy(random_policy(small_model(), 0)).save(path),
        mm.load_policy,
    ),
    "POMDP controller": (
        "finite controller",
        lambda path: mm.FiniteController.from_policy(random_policy(small_pomdp(), 0)).save(path),
        mm.load_policy,
    ),
    "memory": ("policy with memory", lambda path: random_memory(small_model(), 0).save(path), mm.load_policy),
    "network": ("PPO policy", lambda path: network_policy().save(path), mm.load_policy),
    "counts": (
        "observation counts",
        lambda path: mm.ObservationCounts(
            small_model().mdp, np.array([[-1, 0], [0, 1]], dtype=np.int8), np.array([3, 4])
        ).save(path),
        lambda path: mm.ObservationCounts.load(path, small_model().mdp),
    ),
    "cell": ("missmdp cell", save_cell, load_cell),
}


def with_one(array: Any, place: int, value: Any) -> Any:
    changed = np.array(array)
    changed.reshape(-1)[place] = value
    return changed


def wrong_arrays(name: str, array: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong, and the array."""
    yield "two axes more", array[None, ..., None]
    yield "no axis", np.array(array.reshape(-1)[0])
    yield "complex", array.astype(np.complex128)
    yield "of words", array.astype("U3")
    yield "of dates", array.astype(np.int64).astype("datetime64[s]")
    yield "unsigned", array.astype(np.uint64)
    yield "float128", array.astype(np.longdouble)
    if name != "estimates":
        yield "shorter", array[:-1]
        yield "empty", array[:0]
        if name != "node_sight_of":
            yield "longer", np.concatenate([array, array[:1]])
    if array.dtype.kind == "f":
        yield "half as wide", array.astype(np.float16)
        for value in (np.nan, np.inf, -np.inf):
            yield f"with {value}", with_one(array, -1, value)
    if array.dtype.kind == "i":
        yield "as floats", array.astype(np.float64)
        if name != "node_sight_of":
            yield "negative", with_one(array, -1, -2)
        wide = array.astype(np.int64)
        for value in (-(2**40), 2**20, 2**31, 2**40, 2**63 - 1):
            if name != "counts" or value < 0 or value > 2**40:
                yield f"with {value} first", with_one(wide, 0, value)
                yield f"with {value} in the middle", with_one(wide, len(wide.reshape(-1)) // 2, value)
    if array.dtype.kind == "b":
        yield "as numbers", array.astype(np.int8)
    if name.endswith("indptr"):
        yield "back and forth", array[::-1]
        yield "back to nothing", with_one(array, -1, 0)
        yield "beyond", with_one(array, 1, 2**20)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arrays_are_refused_by_name(kind, tmp_path):
    archive_kind, save, load = KINDS[kind]
    save(tmp_path / "saved")
    meta, arrays = archive_contents(tmp_path / "saved")
    read: list[Any] = []
    # What several kinds have in common is tried once.
    own = {
        "policy": ("block_", "vector_"),
        "controller": ("node_",),
        "POMDP controller": ("node_",),
        "memory": ("beliefs_", "steps_", "first_", "actions"),
    }.get(kind, ("",))
    for name, array in arrays.items():
        if not name.startswith(own) or "_0_" in name:
            continue
        for what, wrong in wrong_arrays(name, array):
            write_archive(tmp_path / "file", archive_kind, meta, arrays | {name: wrong})
            with pytest.raises(mm.FormatError, match="file|cell") as caught:
                read.append((name, what, load(tmp_path / "file")))
            assert len(str(caught.value)) < 1000
    assert read == []


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_and_fields_are_all_there_and_no_others(kind, tmp_path):
    archive_kind, save, load = KINDS[kind]
    save(tmp_path / "saved")
    meta, arrays = archive_contents(tmp_path / "saved")
    write_archive(tmp_path / "file", archive_kind, meta, arrays)
    load(tmp_path / "file")
    for name in arrays:
        fewer = {other: array for other, array in arrays.items() if other != name}
        write_archive(tmp_path / "file", archive_kind, meta, fewer)
        with pytest.raises(mm.FormatError, match=f"no '{name}'|not finished"):
            load(tmp_path / "file")
    for changed, others in ((meta, arrays | {"extra": np.zeros(3)}), (meta | {"extra": 1}, arrays)):
        write_archive(tmp_path / "file", archive_kind, changed, others)
        with pytest.raises(mm.FormatError, match="unknown (array|field) 'extra'|not finished"):
            load(tmp_path / "file")


WRONG_FIELDS = (None, [], {}, "x", -1, 2**70, 10**400, 1.5, True, [None], [[["x"]]], {"x": {}}, float("nan"))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_fields_are_refused_or_make_something_that_can_be_used(kind, tmp_path):
    """Some wrong values are right by chance: a model may have the name "x"."""
    archive_kind, save, load = KINDS[kind]
    save(tmp_path / "saved")
    meta, arrays = archive_contents(tmp_path / "saved")
    parts = {"": meta} | {
        name: value for name, value in meta.items() if name in ("model", "settings") and value
    }
    refused = 0
    for part, fields in parts.items():
        for name in fields:
            for value in WRONG_FIELDS:
                changed = fields | {name: value}
                write_archive(
                    tmp_path / "file", archive_kind, meta | {part: changed} if part else changed, arrays
                )
                try:
                    repr(load(tmp_path / "file"))
                except (mm.FormatError, mm.DataError):
                    refused += 1
    assert refused > 5 * len(meta)


@pytest.mark.parametrize("kind", ["model", "POMDP policy", "controller", "memory", "network"])
def test_files_of_machines_with_another_byte_order_are_read(kind, tmp_path):
    archive_kind, save, load = KINDS[kind]
    save(tmp_path / "saved")
    meta, arrays = archive_contents(tmp_path / "saved")
    swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in arrays.items()}
    write_archive(tmp_path / "file", archive_kind, meta, swapped)
    load(tmp_path / "file").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "saved").read_bytes()


def test_a_controller_whose_sights_nobody_has_is_refused(tmp_path):
    """Their number decides how much memory a certificate takes."""
    archive_kind, save, load = KINDS["controller"]
    save(tmp_path / "saved")
    meta, arrays = archive_contents(tmp_path / "saved")
    for name in ("node_sight", "node_sight_of"):
        for value in (-3, 10_000, 2**40):
            write_archive(
                tmp_path / "file", archive_kind, meta, arrays | {name: with_one(arrays[name], -1, value)}
            )
            with pytest.raises(mm.FormatError):
                load(tmp_path / "file")


@pytest.mark.parametrize("path", [None, 5, 1.5, b"\0", "\0", [], object(), True, ".", ""])
def test_what_is_no_path_is_refused(path):
    with pytest.raises((mm.FormatError, mm.ParameterError)):
        mm.load_policy(path)
    with pytest.raises((mm.FormatError, mm.ParameterError)):
        mm.MissMDP.load(path)
