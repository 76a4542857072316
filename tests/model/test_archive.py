"""Saved models: exact round trips, the same bytes every time, and a `FormatError` for whatever is wrong."""

from __future__ import annotations

import datetime
import errno
import hashlib
import io
import json
import math
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.files import write_atomically
from missmdp.model.archive import Array, Schema, read_archive, write_archive
from strategies import missmdps


def assert_identical(first: mm.MissMDP, second: mm.MissMDP) -> None:
    """Compare everything that a file holds: bits of arrays, and the types of names and values."""
    assert first.name == second.name
    assert repr(first.features) == repr(second.features)
    assert repr(first.actions) == repr(second.actions)
    assert first.discount.hex() == second.discount.hex()
    arrays = [
        ("space", "codes"),
        ("mdp", "reward"),
        ("mdp", "initial"),
        ("mdp", "terminal"),
        ("mdp", "reachable"),
    ]
    arrays += [("missingness", "patterns"), ("missingness", "probabilities")]
    pairs = [(getattr(getattr(m, part), name) for m in (first, second)) for part, name in arrays]
    for a, b in zip(first.mdp.transition, second.mdp.transition, strict=True):
        pairs += [(getattr(a, name), getattr(b, name)) for name in ("data", "indices", "indptr")]
    for a, b in pairs:
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def model() -> mm.MissMDP:
    """A small model with values and actions of every kind that a file can hold."""
    features = {
        'größe "in" cm': (1.5, -0.0, math.inf, 1e-300),
        "place": ((0, 1), (0, "x", (True,)), ()),
        "flag": (False, True, "False", 2, 2**80),
    }
    mdp = mm.FactoredMDP(
        features,
        ["go", 3, ("north", 0.5), False],
        lambda s, a: [(s, 1 / 3), ((1.5, (0, 1), 2**80), 1 / 7), ((math.inf, s.place, True), 11 / 21)],
        lambda s, a: 0.1 if a == "go" else -1 / 3,
        {(1e-300, (), "False"): 0.1, (-0.0, (0, "x", (True,)), 2): 0.9},
        lambda s: s.flag is True,
        discount=0.9 + 1e-16,
    )
    M = mm.MissingnessFunction.independent(mdp, {"flag": lambda s: 0.3 if s.place else 0.7, "place": 1 / 3})
    return mm.MissMDP(mdp, M, name="Köln\n2")


@pytest.fixture
def saved(model, tmp_path) -> Path:
    path = tmp_path / "model.mmdp"
    model.save(path)
    return path


@pytest.fixture
def plain(tmp_path) -> Path:
    """A saved model of three levels and two actions, to be damaged."""
    mdp = mm.FactoredMDP(
        {"level": range(3)},
        ["wait", "treat"],
        [[[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]], [[1, 0, 0]] * 3],
        [[0.0, -0.5], [-1.0, -0.5], [-2.0, -0.5]],
        [1.0, 0.0, 0.0],
    )
    path = tmp_path / "plain.mmdp"
    mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"level": 0.25})).save(path)
    return path


@settings(max_examples=25)
@given(missmdps())
def test_random_models_come_back_bit_for_bit(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("archive") / "model.mmdp"
    model.save(path)
    assert_identical(mm.MissMDP.load(path), model)


@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-smar"])
def test_benchmarks_come_back_bit_for_bit(name, tmp_path):
    model = mm.load_benchmark(name)
    model.save(tmp_path / "model.mmdp")
    again = mm.MissMDP.load(str(tmp_path / "model.mmdp"))
    assert_identical(again, model)
    assert again.types() == model.types()
    assert again.mgraph() == model.mgraph()


def test_values_of_every_kind_come_back_with_their_types(model, saved):
    again = mm.MissMDP.load(saved)
    assert_identical(again, model)
    assert again.states[0].flag == model.states[0].flag
    assert type(again.actions[3]) is bool
    assert math.copysign(1.0, again.features['größe "in" cm'][1]) == -1.0


def test_a_model_without_a_name_has_none_afterwards(model, tmp_path):
    mm.MissMDP(model.mdp, model.missingness).save(tmp_path / "model.mmdp")
    assert mm.MissMDP.load(tmp_path / "model.mmdp").name is None


def test_the_same_model_gives_the_same_bytes(model, saved, tmp_path):
    model.save(tmp_path / "again.mmdp")
    mm.MissMDP.load(saved).save(tmp_path / "loaded.mmdp")
    assert (tmp_path / "again.mmdp").read_bytes() == saved.read_bytes()
    assert (tmp_path / "loaded.mmdp").read_bytes() == saved.read_bytes()


def test_files_hold_arrays_and_json_only(saved):
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        meta = json.loads(archive.read("meta.json"))
        stamps = {info.date_time for info in archive.infolist()}
    assert stamps == {(1980, 1, 1, 0, 0, 0)}
    assert names[0] == "meta.json"
    assert all(name.endswith(".npy") for name in names[1:])
    assert meta["kind"] == "miss-MDP"
    assert meta["format"] == 1
    assert meta["written_by"] == f"missmdp {mm.__version__}"


def assert_refused(path: Path, *fragments: str) -> None:
    with pytest.raises(mm.FormatError) as caught:
        mm.MissMDP.load(path)
    for fragment in (str(path), *fragments):
        assert fragment in str(caught.value)


def test_a_file_cut_off_anywhere_is_refused(saved):
    content = saved.read_bytes()
    for length in [*range(0, len(content) - 1, max(1, len(content) // 150)), len(content) - 1]:
        saved.write_bytes(content[:length])
        assert_refused(saved)


def outcome(path: Path) -> mm.MissMDP | None:
    """Return the model in a file, or None if it is refused by name; any other exception is a bug."""
    try:
        return mm.MissMDP.load(path)
    except mm.FormatError as error:
        if str(path) not in str(error):
            raise
        return None


def test_a_changed_byte_is_noticed_or_changes_nothing(plain):
    """Some bytes of a zip file (time stamps, permissions) carry nothing; all others must be noticed."""
    model, content = mm.MissMDP.load(plain), plain.read_bytes()
    rng = np.random.default_rng(7)
    directory = content.index(b"PK\x01\x02")
    # All of the first entry of the directory and of the end record, and samples of the rest.
    positions = {
        *range(0, len(content), 7),
        *range(directory, directory + 60),
        *range(len(content) - 22, len(content)),
    }
    noticed = 0
    for position in sorted(positions):
        changed = bytearray(content)
        changed[position] ^= int(rng.integers(1, 256))
        plain.write_bytes(changed)
        loaded = outcome(plain)
        if loaded is None:
            noticed += 1
        else:
            assert_identical(loaded, model)
    assert noticed > len(positions) / 2


def test_any_compression_method_in_the_directory_is_handled(plain):
    """Among them are bzip2 (12) and LZMA (14), whose decoders have errors of their own."""
    content = bytearray(plain.read_bytes())
    methods = {}
    for method in range(100):
        content[content.index(b"PK\x01\x02") + 10] = method
        plain.write_bytes(content)
        methods[method] = outcome(plain) is not None
    assert [method for method, read in methods.items() if read] == [zipfile.ZIP_DEFLATED]


def test_bytes_before_and_after_do_not_crash_the_reader(model, saved):
    content = saved.read_bytes()
    for changed in (b"junk" + content, content + b"junk", content + content):
        saved.write_bytes(changed)
        loaded = outcome(saved)
        if loaded is not None:
            assert_identical(loaded, model)


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def npy(array, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "fragment"),
    [
        (None, "cannot be read"),
        (b"", "not a file of missmdp"),
        (b"just some text\n", "not a file of missmdp"),
        (b"PK\x03\x04 not really", "not a file of missmdp"),
        (zipped(readme__txt=b"hello"), "no meta.json"),
        (zipped(), "no meta.json"),
        (zipped(meta__json=b"{ this is not JSON"), "not JSON"),
        (zipped(meta__json=b"\xff\xfe\xfd"), "not JSON"),
        (zipped(meta__json=b"[" * 100_000), "not JSON"),
        (zipped(meta__json=b"[1, 2]"), "not an object"),
        (zipped(meta__json=b"{}"), "something unknown"),
        (npy(np.eye(2)), "not a file of missmdp"),
        (pickle.dumps({"kind": "miss-MDP"}), "not a file of missmdp"),
    ],
    ids=[
        "absent",
        "empty",
        "text",
        "zip magic only",
        "other zip",
        "empty zip",
        "meta no JSON",
        "meta no text",
        "meta too deep",
        "meta a list",
        "meta empty",
        "npy",
        "pickle",
    ],
)
def test_other_files_are_refused(content, fragment, tmp_path):
    path = tmp_path / "model.mmdp"
    if content is not None:
        path.write_bytes(content)
    assert_refused(path, fragment)


def test_a_folder_is_refused(tmp_path):
    assert_refused(tmp_path, "cannot be read")


def forge(path: Path, meta=None, remove=(), checksum=None, **members: bytes) -> None:
    """Rewrite a file with other metadata or members, and a checksum that fits: what a faulty writer might do.

    The checksum is SHA-256 over the metadata as sorted JSON, then for each member in order of its name the
    name and the SHA-256 of the content.
    """
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    head = {**json.loads(content.pop("meta.json")), **(meta or {})}
    head = {key: value for key, value in head.items() if key != "sha256" and value is not ...}
    content |= {f"{name}.npy": data for name, data in members.items()}
    content = {name: data for name, data in content.items() if name.removesuffix(".npy") not in remove}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, data in sorted(content.items()):
        digest.update(name.encode() + hashlib.sha256(data).digest())
    head["sha256"] = checksum or digest.hexdigest()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps(head))
        for name, data in content.items():
            archive.writestr(name, data)


def test_a_forged_file_without_a_mistake_is_read(plain):
    """So each forgery below is refused for its own mistake."""
    before = mm.MissMDP.load(plain)
    forge(plain)
    assert_identical(mm.MissMDP.load(plain), before)
    forge(plain, meta={"discount": 0.5}, reward=npy(np.ones((3, 2))))
    assert mm.MissMDP.load(plain).discount == 0.5
    assert mm.MissMDP.load(plain).mdp.reward.sum() == 6


METADATA = {
    "another kind": ({"kind": "dataset"}, "'dataset', not 'miss-MDP'"),
    "next format": ({"format": 2}, "newer"),
    "format of the far future": ({"format": 99}, "upgrade missmdp"),
    "format zero": ({"format": 0}, "format is 0"),
    "format as a word": ({"format": "1"}, "format is '1'"),
    "no format": ({"format": ...}, "format is None"),
    "no features": ({"features": ...}, "'features'"),
    "no actions": ({"actions": ...}, "'actions'"),
    "no discount": ({"discount": ...}, "'discount'"),
    "discount one": ({"discount": 1.0}, "discount"),
    "discount as a word": ({"discount": "much"}, "discount"),
    "discount that no float holds": ({"discount": 10**400}, "discount"),
    "features as a number": ({"features": 5}, "damaged"),
    "features as an object": ({"features": {"level": [0, 1, 2]}}, "damaged"),
    "value too few": ({"features": [["level", [0, 1]]]}, "outside"),
    "value twice": ({"features": [["level", [0, 1, 1]]]}, "twice"),
    "value null": ({"features": [["level", [0, 1, None]]]}, "None"),
    "value of an unknown kind": ({"features": [["level", [0, 1, {"list": [1]}]]]}, "list"),
    "values as a word": ({"features": [["level", "abc"]]}, "list of values"),
    "feature named by a list": ({"features": [[["level"], [0, 1, 2]]]}, "damaged"),
    "feature too many": ({"features": [["level", [0, 1, 2]], ["extra", [0]]]}, "shape"),
    "action too few": ({"actions": ["wait"]}, "damaged"),
    "action too many": ({"actions": ["wait", "treat", "test"]}, "transition_2_data"),
    "empty actions": ({"actions": []}, "damaged"),
    "name as a list": ({"name": ["a", "list"]}, "name"),
}


@pytest.mark.parametrize(("meta", "fragment"), METADATA.values(), ids=METADATA)
def test_metadata_that_make_no_model_are_refused(plain, meta, fragment):
    forge(plain, meta)
    assert_refused(plain, fragment)


def test_a_checksum_that_does_not_fit_is_noticed(plain):
    with zipfile.ZipFile(plain) as archive:
        checksum = json.loads(archive.read("meta.json"))["sha256"]
    forge(plain, checksum=checksum)
    mm.MissMDP.load(plain)
    for change in ({"meta": {"discount": 0.5}}, {"reward": npy(np.ones((3, 2)))}, {"remove": ["terminal"]}):
        forge(plain, checksum=checksum, **change)
        assert_refused(plain, "checksum")


UNCLOSED = npy(np.zeros(3)).replace(b"(3,), }", b"(3,,   ")

ARRAYS = {
    "states too large for a byte": {"states": npy(np.array([[0], [1], [258]]))},
    "states out of range": {"states": npy(np.array([[0], [1], [3]], dtype=np.int8))},
    "states twice": {"states": npy(np.array([[0], [1], [1]], dtype=np.int8))},
    "states as floats": {"states": npy(np.array([[0.0], [1.0], [2.0]]))},
    "states in one row": {"states": npy(np.arange(3))},
    "reward of another shape": {"reward": npy(np.zeros(3))},
    "reward NaN": {"reward": npy(np.full((3, 2), np.nan))},
    "reward of words": {"reward": npy(np.array([["a", "b"]] * 3))},
    "initial that sums to two": {"initial": npy(np.array([1.0, 1.0, 0.0]))},
    "initial of dates": {"initial": npy(np.array([1, 0, 0], dtype="datetime64[s]"))},
    "initial complex": {"initial": npy(np.array([1.0, 0.0, 0.0]) + 0j)},
    "initial a record": {"initial": npy(np.array([(1.0,), (0.0,), (0.0,)], dtype=[("p", "f8")]))},
    "terminal as numbers": {"terminal": npy(np.zeros(3))},
    "terminal neither true nor false": {"terminal": npy(np.zeros(3, dtype=bool))[:-1] + b"\x07"},
    "patterns neither true nor false": {"patterns": npy(np.array([[True], [False]]))[:-2] + b"\x02\x00"},
    "patterns too wide": {"patterns": npy(np.ones((2, 2), dtype=bool))},
    "patterns of numbers": {"patterns": npy(np.array([[2], [0]]))},
    "patterns twice": {"patterns": npy(np.ones((2, 1), dtype=bool))},
    "probabilities of another shape": {"probabilities": npy(np.ones((3, 1)))},
    "probabilities negative": {"probabilities": npy(np.array([[1.5, -0.5]] * 3))},
    "probabilities complex": {"probabilities": npy(np.array([[0.75, 0.25]] * 3) + 1j)},
    "transition data too short": {"transition_0_data": npy(np.ones(2))},
    "transition data negative": {"transition_1_data": npy(-np.ones(3))},
    "transition data in two rows": {"transition_1_data": npy(np.ones((3, 1)))},
    "transition index negative": {"transition_1_indices": npy(np.array([0, -1, 0], dtype=np.int32))},
    "transition pointers too short": {"transition_1_indptr": npy(np.array([0, 1, 2], dtype=np.int32))},
    "transition pointers back and forth": {
        "transition_1_indptr": npy(np.array([0, 3, 1, 3], dtype=np.int32))
    },
    "transition pointers as fractions": {"transition_1_indptr": npy(np.array([0.0, 1.5, 2.0, 3.0]))},
    "objects": {"initial": npy(np.array([1.0, None, 0.0]), allow_pickle=True)},
    "pickle": {"initial": pickle.dumps([1.0, 0.0, 0.0])},
    "npy cut off": {"initial": npy(np.zeros(3))[:-4]},
    "npy header cut off": {"initial": npy(np.zeros(3))[:40]},
    "npy header never closed": {"initial": UNCLOSED},
    "npy of a newer version": {"initial": npy(np.zeros(3)).replace(b"NUMPY\x01", b"NUMPY\x09")},
    "npy larger than memory": {"initial": npy(np.zeros(3)).replace(b"(3,), }       ", b"(9999999999,),}")},
    "npy empty": {"initial": b""},
    "npy of text": {"initial": b"1.0 0.0 0.0"},
    "zip in an npy": {"states": zipped(states__npy=npy(np.zeros((3, 1), dtype=np.int8)))},
}


@pytest.mark.parametrize("members", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_make_no_model_are_refused(plain, members):
    forge(plain, **members)
    assert_refused(plain)


@pytest.mark.parametrize("name", ["states", "reward", "initial", "terminal", "patterns", "probabilities"])
def test_an_array_that_is_not_there_is_named(plain, name):
    forge(plain, remove=[name])
    assert_refused(plain, repr(name))


@pytest.mark.parametrize("index", [3, 10**6])
def test_an_index_beyond_the_states_does_not_crash_python(plain, index):
    """In a process of its own, since sparse matrices with such indices write outside their memory."""
    forge(plain, transition_0_indices=npy(np.array([0, 1, 1, 2, index], dtype=np.int32)))
    code = f"import missmdp as mm; mm.MissMDP.load({str(plain)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, f"ended with {done.returncode}"
    assert "FormatError" in done.stderr


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_reading_runs_no_code(plain, tmp_path):
    bomb = Bomb(tmp_path / "exploded")
    for content in (pickle.dumps(bomb), npy(np.array([bomb], dtype=object), allow_pickle=True)):
        forge(plain, initial=content)
        assert_refused(plain)
    assert not (tmp_path / "exploded").exists()


def with_value(value) -> mm.MissMDP:
    mdp = mm.FactoredMDP(
        {"level": [value, "other"]}, ["go"], lambda s, a: {s: 1.0}, lambda s, a: 0.0, {("other",): 1.0}
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))


@pytest.mark.parametrize(
    "value",
    [
        Fraction(1, 3),
        datetime.date(2024, 2, 29),
        b"bytes",
        (1, None),
        (1, frozenset()),
        1j,
        int,
        "\ud800",
    ],
    ids=[
        "fraction",
        "date",
        "bytes",
        "None in a tuple",
        "set in a tuple",
        "complex",
        "type",
        "half a character",
    ],
)
def test_values_that_no_file_can_hold_are_named_and_the_old_file_stays(value, saved):
    before = saved.read_bytes()
    with pytest.raises(mm.MissMDPError) as caught:
        with_value(value).save(saved)
    assert ("'level'" in str(caught.value)) or (repr(value) in str(caught.value))
    assert_unchanged(saved, before)


def test_actions_that_no_file_can_hold_are_named(tmp_path):
    mdp = mm.FactoredMDP(
        {"level": [0]}, ["go", Fraction(1, 2)], lambda s, a: {s: 1.0}, lambda s, a: 0.0, {0: 1.0}
    )
    with pytest.raises(mm.MissMDPError, match=r"actions: .*Fraction\(1, 2\)"):
        mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp)).save(tmp_path / "model.mmdp")
    assert os.listdir(tmp_path) == []


def test_a_name_that_no_file_can_hold_is_refused(model, tmp_path):
    with pytest.raises(mm.MissMDPError, match="name"):
        mm.MissMDP(model.mdp, model.missingness, name=Path("name")).save(tmp_path / "model.mmdp")


def assert_unchanged(path: Path, before: bytes) -> None:
    """Check that a file is as it was and that nothing else is in its folder."""
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved):
    """The limit on the size of files stands for the disk: the write fails half-way."""
    resource = pytest.importorskip("resource")
    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(mm.MissMDPError, match=r"model\.mmdp: cannot be written \(File too large\)"):
            mm.load_benchmark("example-1").save(saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_unchanged(saved, before)


@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), mm.MissMDPError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=["refused", "interrupted"],
)
def test_a_write_that_fails_at_the_end_leaves_the_old_file_and_nothing_else(
    saved, monkeypatch, failure, seen
):
    def fails(*_):
        raise failure

    before = saved.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(seen):
            mm.load_benchmark("example-1").save(saved)
    assert_unchanged(saved, before)


def test_places_that_cannot_be_written_are_named(model, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "folder", tmp_path / "file" / "model.mmdp", tmp_path / ("x" * 300)):
        with pytest.raises(mm.MissMDPError) as caught:
            model.save(path)
        assert str(path) in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert os.listdir(tmp_path / "folder") == []


def test_folders_are_made_and_permissions_are_those_of_any_new_file(model, tmp_path):
    path = tmp_path / "a" / "b" / "model.mmdp"
    old = os.umask(0o027)
    try:
        model.save(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert_identical(mm.MissMDP.load(path), model)


class Note(msgspec.Struct):
    note: str
    numbers: list[Any]


def test_archives_of_another_kind_keep_their_arrays(tmp_path):
    arrays = {
        "a": np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::2],
        "b": np.array(0.1),
        "c": np.zeros((0, 4)),
    }
    write_archive(tmp_path / "x.zip", "test", {"note": "ü", "numbers": [1, 2.5, None]}, arrays)
    meta, again = read_archive(
        tmp_path / "x.zip",
        Schema(
            "test", Note, lambda _: {"a": Array("i2", (2, 2)), "b": Array("f8", ()), "c": Array("f8", (0, 4))}
        ),
    )
    assert meta.note == "ü"
    assert meta.numbers == [1, 2.5, None]
    assert set(again) == set(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)
        assert again[name].shape == array.shape
    with pytest.raises(mm.FormatError, match="'test', not 'miss-MDP'"):
        mm.MissMDP.load(tmp_path / "x.zip")


def test_writing_replaces_the_content(tmp_path):
    write_atomically(tmp_path / "x", b"one")
    write_atomically(str(tmp_path / "x"), b"two")
    assert (tmp_path / "x").read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["x"]
