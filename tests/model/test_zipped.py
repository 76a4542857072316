"""Zip files that promise too much, or other things than they hold: refused before they take time or memory."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import missmdp as mm
from missmdp.model import zipped
from missmdp.model.archive import FLOATS, Array, Schema, read_archive, write_archive
from missmdp.model.missmdp import ModelMeta

MEGABYTE = 2**20


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "model.mmdp"
    mm.load_benchmark("example-1").save(path)
    return path


def rewrite(path: Path, change: dict[str, bytes], twice: str = "") -> None:
    """Write the members of a file again, some of them others."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | change
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        if twice:
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr(twice, members[twice])


def entry(path: Path, name: str) -> int:
    """Return where the directory has the entry of a member."""
    content = path.read_bytes()
    place = content.index(b"PK\x01\x02")
    while content[place + 46 : place + 46 + len(name)] != name.encode():
        place = content.index(b"PK\x01\x02", place + 1)
    return place


def patch(path: Path, place: int, content: bytes) -> None:
    changed = bytearray(path.read_bytes())
    changed[place : place + len(content)] = content
    path.write_bytes(changed)


def assert_refused(path: Path, fragment: str, most: int = 8 * MEGABYTE) -> None:
    """Check that a file is refused by name, with little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(mm.FormatError, match=fragment) as caught:
            mm.MissMDP.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert peak < most
    with pytest.raises(mm.FormatError):
        mm.load_policy(path)


def npy(shape: tuple[int, ...], content: bytes) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + content


def test_a_bomb_is_not_unpacked(saved):
    zeros = npy((10 * MEGABYTE,), bytes(80 * MEGABYTE))
    rewrite(saved, {"initial.npy": zeros})
    assert saved.stat().st_size < MEGABYTE
    assert_refused(saved, "bytes unpack to")


def test_a_small_bomb_is_refused_by_its_shape(saved):
    rewrite(saved, {"initial.npy": npy((6 * MEGABYTE,), bytes(48 * MEGABYTE))})
    assert_refused(saved, r"initial has shape \(6291456,\)")


def test_large_metadata_are_not_read(saved):
    with zipfile.ZipFile(saved) as archive:
        meta = archive.read("meta.json")
    rewrite(saved, {"meta.json": meta + b" " * (17 * MEGABYTE)})
    assert_refused(saved, "meta.json has 17,8")


def test_a_directory_that_promises_more_than_there_is(saved):
    patch(saved, entry(saved, "initial.npy") + 24, struct.pack("<I", 2**31))
    assert_refused(saved, "bytes unpack to")


def test_a_directory_that_promises_less_than_there_is(saved):
    """Only as much is unpacked as was promised."""
    rewrite(saved, {"initial.npy": npy((6 * MEGABYTE,), bytes(48 * MEGABYTE))})
    patch(saved, entry(saved, "initial.npy") + 24, struct.pack("<I", 160))
    assert_refused(saved, "damaged")


def test_a_header_that_promises_more_than_there_is(saved):
    for shape in ((2**40,), (2**62, 4), (2**70,), (-4,), (0, 2**63)):
        rewrite(saved, {"initial.npy": npy(shape, bytes(32))})
        assert_refused(saved, "initial has shape")


def test_a_directory_without_end_is_not_read(saved):
    content = saved.read_bytes()
    patch(saved, content.rindex(b"PK\x05\x06") + 12, struct.pack("<I", 2**31))
    assert_refused(saved, "damaged")


def test_a_name_that_is_listed_twice_is_refused(saved):
    rewrite(saved, {}, twice="initial.npy")
    assert_refused(saved, "listed twice")


def test_encrypted_members_are_refused(saved):
    patch(saved, entry(saved, "initial.npy") + 8, b"\x01")
    assert_refused(saved, "encrypted")


@pytest.mark.parametrize(
    "name", ["../outside.npy", "/etc/passwd", "model.mmdp", "a/b.npy", "meta.json.npy", "initial"]
)
def test_other_names_are_refused(saved, name):
    rewrite(saved, {name: saved.read_bytes()})
    assert_refused(saved, "unknown array|there twice")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.mmdp")
    assert_refused(tmp_path / "pipe.mmdp", "pipe or device")
    assert_refused(Path("/dev/zero"), "pipe or device")


def test_what_packs_too_well_is_stored_as_it_is(tmp_path, monkeypatch):
    """Else it could be written, and never read."""
    monkeypatch.setattr(zipped, "_FREE", 1000)
    schema = Schema("test", ModelMeta, lambda _: {"zeros": Array(FLOATS, ("n",))})
    meta = {"features": [], "actions": [], "discount": 0.5}
    write_archive(tmp_path / "x", "test", meta, {"zeros": np.zeros(MEGABYTE)})
    assert (tmp_path / "x").stat().st_size > 8 * MEGABYTE
    assert len(read_archive(tmp_path / "x", schema)[1]["zeros"]) == MEGABYTE
