"""Files of cells with valid checksums and wrong contents: they count as damaged, with one warning, for every kind."""

import copy
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import missmdp as mm
from experiments import stand_in
from experiments.reproduce.fake_run import fake_result
from experiments.reproduce.pretend import TINY
from missmdp.experiments.baselines import BaselineSettings, make_baseline
from missmdp.experiments.grid.cell import CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.policy_store import PolicyStore
from missmdp.experiments.ppo_trials import Trial, TrialFolder, sample_settings
from missmdp.experiments.reproduce.cells import BaselineCell, LearningCell, ValueCell
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.runner import reproduce
from missmdp.experiments.reproduce.summary import summarise
from missmdp.experiments.studies import bounds, certificates, diagnosis, learning
from missmdp.model.archive import write_archive

GONE, MORE = object(), object()
WRONG = ["word", [1], {"a": 1}, True, float("nan"), 10**400, GONE, MORE]
"""What no leaf may become, but for words among words, truth among truths, and numbers of any size among seeds."""


def of_kind(kind):
    return next(cell for cell in all_cells(TINY) if isinstance(cell, kind))


def finished():
    """Return a cell of every kind that the grid runs, with what it might find."""
    own = {kind: of_kind(kind) for kind in (LearningCell, ValueCell, BaselineCell)}
    found = [(cell, fake_result(cell)) for cell in own.values()]
    options = learning.cells()[0]
    distance = {"atv": 0.1, "wtv": 0.5}
    found.append((options, CellResult({shown: dict(distance) for shown, _, _ in options.learners})))
    named = {"type": "MCAR", "self_censoring": ["test"], "same_graph": True, "p_values": {"MCAR": 0.5}}
    found.append((diagnosis.cells()[0], CellResult(named)))
    certificate = dict.fromkeys(certificates._COLUMNS, 0.5) | {"method": "robust", "vacuous": False}
    found.append((certificates.cells()[0], CellResult(certificate)))
    held = {method: {"held": 3, "worst": 0.5, "tv": 0.25} for method in bounds.METHODS}
    found.append((bounds.CoverageCell("AMCAR", "blind"), CellResult(held)))
    found.append((bounds.PeekingCell("blind"), CellResult(dict.fromkeys(bounds.METHODS, 3))))
    return found


def leaves(tree, path=()):
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


def changed(tree, path, value):
    """Return a copy in which a leaf is another value, or gone, or has a neighbour."""
    tree = copy.deepcopy(tree)
    *way, last = path
    place = tree
    for key in way:
        place = place[key]
    if value is GONE:
        del place[last]
    elif value is MORE:
        place["more"] = place[last]
    else:
        place[last] = value
    return tree


def contents(path):
    with zipfile.ZipFile(path) as archive:
        meta = json.loads(archive.read("meta.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(archive.open(name))
            for name in archive.namelist()
            if name != "meta.json"
        }
    return {k: v for k, v in meta.items() if k not in ("kind", "format", "written_by", "sha256")}, arrays


def put(path, meta, arrays):
    write_archive(path, "missmdp cell", meta, arrays)


def admits(old, value):
    """Return whether a leaf may have this value all the same."""
    words = isinstance(old, str) and isinstance(value, str)
    return words or (isinstance(old, bool) and value is True)


@pytest.mark.parametrize(("cell", "result"), finished(), ids=lambda each: getattr(each, "kind", ""))
def test_what_a_cell_of_a_kind_cannot_find_is_damage(tmp_path, caplog, cell, result):
    store = CellStore(tmp_path)
    store.write(cell, result)
    read = store.read(cell)
    assert read is not None
    assert read.found == result.found
    meta, arrays = contents(store.path(cell))
    for path in leaves(meta["found"]):
        old = meta["found"]
        for key in path:
            old = old[key]
        for value in WRONG:
            free = path[0] == "p_values" and value in (GONE, MORE)
            if admits(old, value) or free:
                continue
            put(store.path(cell), meta | {"found": changed(meta["found"], path, value)}, arrays)
            caplog.clear()
            assert store.read(cell) is None, (path, value)
            assert len(caplog.records) == 1
            assert caplog.text.count("the cell counts as not finished") == 1


@pytest.mark.parametrize("field", ["cell", "key", "found", "files", "seconds", "version"])
def test_every_field_of_a_cell_is_needed_and_typed(tmp_path, caplog, field):
    cell, store = of_kind(ValueCell), CellStore(tmp_path)
    store.write(cell, fake_result(cell))
    meta, arrays = contents(store.path(cell))
    for value in (None, 5, "word", [1], {"a": 1}, float("nan"), 10**400, GONE, MORE):
        if (field, value) in (("version", "word"), ("seconds", 5)):
            continue
        put(store.path(cell), changed(meta, (field,), value), arrays)
        caplog.clear()
        assert store.read(cell) is None, value
        assert len(caplog.records) == 1


def test_a_cell_with_the_key_of_another_is_known_by_what_it_says_it_is(tmp_path):
    store = CellStore(tmp_path)
    one, other = [cell for cell in all_cells(TINY) if isinstance(cell, ValueCell)][:2]
    store.write(one, fake_result(one))
    meta, arrays = contents(store.path(one))
    put(store.path(other), meta, arrays)
    assert store.read(other) is None
    put(store.path(other), meta | {"key": other.key}, arrays)
    assert store.read(other) is None
    for name, value in (("version", 2), ("kind", "baseline"), ("size", 1), ("more", 0)):
        put(store.path(one), meta | {"cell": meta["cell"] | {name: value}}, arrays)
        assert store.read(one) is None, name


@pytest.mark.parametrize(
    "estimates",
    [
        np.ones((2, 50)),
        np.ones((1, 49)),
        np.ones(50),
        np.empty((0, 0)),
        np.full((1, 50), np.nan),
        np.ones((1, 50), np.float32),
        np.ones((1, 50), np.int64),
    ],
    ids=str,
)
def test_estimates_are_those_of_the_cell(tmp_path, estimates):
    cell, store = of_kind(ValueCell), CellStore(tmp_path)
    store.write(cell, replace(fake_result(cell), estimates=estimates))
    assert store.read(cell) is None


def test_something_else_in_the_place_of_a_cell(tmp_path):
    cell, store = of_kind(ValueCell), CellStore(tmp_path)
    store.path(cell).mkdir()
    assert store.read(cell) is None
    store.path(cell).rmdir()
    store.path(cell).symlink_to("/dev/zero")
    assert store.read(cell) is None


def test_damaged_cells_are_done_again_with_one_warning_each(tmp_path, caplog):
    reproduce(TINY, tmp_path, workers=1, progress=False, work=fake_result)
    before = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    store = CellStore(tmp_path / "cells")
    spoilt = [of_kind(kind) for kind in (LearningCell, ValueCell, BaselineCell)]
    for cell in spoilt:
        meta, arrays = contents(store.path(cell))
        put(store.path(cell), meta | {"found": {}}, arrays)
    assert summarise(tmp_path).finished == len(all_cells(TINY)) - 3
    caplog.clear()
    done = reproduce(TINY, tmp_path, workers=1, progress=False, work=fake_result)
    assert (done.finished, len(caplog.records)) == (3, 3)
    assert {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()} == before


def test_a_kept_policy_with_wrong_contents_is_made_again(tmp_path, caplog):
    model = mm.load_benchmark("example-1")
    settings = BaselineSettings(max_trials=1)
    folder = PolicyStore(tmp_path, model, settings)
    made = make_baseline("optimal", model, settings, progress=False)
    folder.keep("optimal", made)
    assert folder.find("optimal").lower == made.lower
    (path,) = tmp_path.glob("*.cell")
    meta, arrays = contents(path)
    for leaf in leaves(meta["found"]):
        for value in [each for each in WRONG if not (leaf == ("how",) and each == "word")]:
            put(path, meta | {"found": changed(meta["found"], leaf, value)}, arrays)
            caplog.clear()
            assert folder.find("optimal") is None, (leaf, value)
            assert len(caplog.records) == 1
    put(path, meta | {"files": {}}, arrays)
    assert folder.find("optimal") is None
    put(path, meta | {"files": {"/../../../../../dev/zero": "0"}}, arrays)
    assert folder.find("optimal") is None


def test_a_trial_with_wrong_contents_is_done_again(tmp_path, caplog):
    model, settings = mm.load_benchmark("example-1"), sample_settings(0, 1, steps=100)
    folder = TrialFolder(tmp_path, {"model": "m", "seed": 0})
    trial = Trial(1, settings, 7, 0.5, 0.1, 20, 100, 0.25)
    folder.write(trial, stand_in.drawn_network(model, settings, 0))
    assert folder.read(1) == trial
    (path,) = tmp_path.glob("*.cell")
    meta, arrays = contents(path)
    for leaf in leaves(meta["found"]):
        old = meta["found"]
        for key in leaf:
            old = old[key]
        for value in WRONG:
            if admits(old, value) or (leaf == ("training_seed",) and value == 10**400):
                continue
            put(path, meta | {"found": changed(meta["found"], leaf, value)}, arrays)
            caplog.clear()
            assert folder.read(1) is None, (leaf, value)
            assert len(caplog.records) == 1
    put(path, meta | {"found": changed(meta["found"], ("settings", "minibatch"), 1)}, arrays)
    assert folder.read(1) is None, "it does not go with the other settings"


@pytest.mark.parametrize(
    "content", [b"[", b"[]", b'{"kind": 5}', b"\xff", b"[" * 100_000, b'{"seed": ' + b"9" * 5000 + b"}"]
)
def test_a_search_that_cannot_be_read_is_refused(tmp_path, content):
    (tmp_path / "search.json").write_bytes(content)
    with pytest.raises(mm.FormatError, match="search.json"):
        TrialFolder(tmp_path, {"model": "m"})
