"""Saved policies: exact round trips with their models, and a `FormatError` for whatever is wrong."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from archives import archive_contents
from missmdp.model.archive import write_archive
from oracles.alpha import backed_up, tiger
from policies import policies, random_policy


def assert_same(first: mm.AlphaVectorPolicy, second: mm.AlphaVectorPolicy) -> None:
    """Compare everything that a file holds, arrays bit by bit."""
    assert type(first.model) is type(second.model)
    assert first.observe_initial is second.observe_initial
    assert len(first.components) == len(second.components)
    pairs = [
        (getattr(a, name), getattr(b, name))
        for a, b in zip(first.components, second.components, strict=True)
        for name in ("states", "values", "actions")
    ]
    p, q = first.pomdp, second.pomdp
    pairs += [(getattr(p, name), getattr(q, name)) for name in ("reward", "initial", "terminal")]
    for a, b in zip((*p.transition, *p.observation), (*q.transition, *q.observation), strict=True):
        pairs += [(getattr(a, name), getattr(b, name)) for name in ("data", "indices", "indptr")]
    for a, b in pairs:
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    for name in ("states", "actions", "observations"):
        assert list(map(repr, getattr(p, name))) == list(map(repr, getattr(q, name)))
    assert (p.discount, p.observe_initial) == (q.discount, q.observe_initial)
    if isinstance(first.model, mm.MissMDP):
        assert first.model == second.model
        assert first.model.name == second.model.name


@given(policies())
def test_round_trips_are_exact(tmp_path_factory, policy):
    path = tmp_path_factory.mktemp("policies") / "a.mmpolicy"
    policy.save(path)
    loaded = mm.AlphaVectorPolicy.load(path)
    assert_same(policy, loaded)
    once = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == once


def test_a_loaded_policy_can_be_deployed_with_nothing_else(tmp_path):
    model = mm.load_benchmark("example-1")
    policy = random_policy(model, 3)
    policy.save(tmp_path / "guess.mmpolicy")
    history = [seen for seen, _ in mm.collect(model, 50, seed=1).episode(0)]
    agents = [policy.agent(), mm.AlphaVectorPolicy.load(tmp_path / "guess.mmpolicy").agent()]
    taken = [[agent.reset(history[0]), *(agent.step(seen) for seen in history[1:])] for agent in agents]
    assert taken[0] == taken[1]


def test_what_the_policy_does_first_is_saved(tmp_path):
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)], observe_initial=True)
    policy.save(tmp_path / "tiger.mmpolicy")
    loaded = mm.AlphaVectorPolicy.load(tmp_path / "tiger.mmpolicy")
    assert loaded.observe_initial
    assert not loaded.pomdp.observe_initial


def test_labels_that_cannot_be_written_are_named(tmp_path):
    model = mm.load_benchmark("example-1")
    with pytest.raises(mm.MissMDPError, match="observations: the value None"):
        random_policy(model.to_pomdp(), 0).save(tmp_path / "a.mmpolicy")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "tiger.mmpolicy"
    mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)]).save(path)
    return path


def test_other_files_are_no_policies(saved, tmp_path):
    with pytest.raises(mm.FormatError, match="holds 'policy', not 'miss-MDP'"):
        mm.MissMDP.load(saved)
    mm.load_benchmark("example-1").save(tmp_path / "model.mmdp")
    with pytest.raises(mm.FormatError, match="holds 'miss-MDP', not 'policy'"):
        mm.AlphaVectorPolicy.load(tmp_path / "model.mmdp")
    with pytest.raises(mm.FormatError, match="cannot be read"):
        mm.AlphaVectorPolicy.load(tmp_path / "nothing.mmpolicy")


def test_damage_is_noticed(saved):
    whole = saved.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:cut])
        with pytest.raises(mm.FormatError, match=saved.name):
            mm.AlphaVectorPolicy.load(saved)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    meta = json.loads(members["meta.json"])
    meta["observe_initial"] = True
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(meta) if name == "meta.json" else content)
    with pytest.raises(mm.FormatError, match="checksum"):
        mm.AlphaVectorPolicy.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda meta, arrays: arrays.pop("vector_values"), "has no 'vector_values'"),
        (lambda meta, arrays: meta.pop("model"), "has no 'model'"),
        (lambda meta, arrays: meta.update(model_kind="HMM"), "'HMM', which this missmdp does not know"),
        (lambda meta, arrays: meta.update(observe_initial=1), "observe_initial"),
        (
            lambda meta, arrays: arrays.update(block_sizes=np.array([1])),
            "sizes of its components",
        ),
        (
            lambda meta, arrays: arrays.update(block_sizes=np.array([2, 0])),
            r"block_vectors has shape \(1,\), expected \(components\) = \(2,\)",
        ),
        (
            lambda meta, arrays: arrays.update(block_states=np.array([0, 5])),
            "block_states has 5, which is out of range",
        ),
        (
            lambda meta, arrays: arrays.update(model_reward=np.zeros((1, 1))),
            r"model_reward has shape \(1, 1\)",
        ),
        (lambda meta, arrays: arrays.update(vector_actions=arrays["vector_actions"] + 9), "out of range"),
        (lambda meta, arrays: meta["model"].update(states=["a"]), "damaged"),
        (lambda meta, arrays: arrays.pop("model_transition_1_data"), "has no 'model_transition_1_data'"),
    ],
)
def test_content_that_does_not_fit_is_named(saved, change, message):
    meta, arrays = archive_contents(saved)
    change(meta, arrays)
    write_archive(saved, "policy", meta, arrays)
    with pytest.raises(mm.FormatError, match=message):
        mm.AlphaVectorPolicy.load(saved)
