"""Models by factors in files: what comes back, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import missmdp as mm
from archives import archive_contents
from large_models import pair
from missmdp.model.archive import write_archive
from missmdp.model.missing_factors import Part


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A file of a model with T by factors and M by parts, one of them by groups of states."""
    _, model = pair(0, monkeypatch)
    first, *others = model.missingness.parts
    by_state = Part(first.features, first.patterns, first.table, first.rows(model.space))
    M = mm.MissingnessFunction.from_parts(model.space, [by_state, *others])
    path = tmp_path / "large.mmdp"
    model.with_missingness(M).save(path)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_models_come_back(seed, tmp_path, monkeypatch):
    small, large = pair(seed, monkeypatch, terminal=True)
    for model in (small, large):
        model.save(tmp_path / "model.mmdp")
        again = mm.MissMDP.load(tmp_path / "model.mmdp")
        assert again.mdp.by_factors
        assert again == model
        for mine, theirs in zip(again.mdp.factors.scopes, model.mdp.factors.scopes, strict=True):
            assert mine.parents == theirs.parents
            np.testing.assert_array_equal(mine.table, theirs.table)
        np.testing.assert_array_equal(again.mdp.reachable, model.mdp.reachable)
        assert again.missingness.is_small == model.missingness.is_small
        assert not any(name.startswith("transition") for name in archive_contents(tmp_path / "model.mmdp")[1])


def test_draws_are_the_same_after_loading(tmp_path, monkeypatch):
    _, large = pair(1, monkeypatch)
    large.save(tmp_path / "model.mmdp")
    data, other = (mm.collect(one, 200, seed=1) for one in (mm.MissMDP.load(tmp_path / "model.mmdp"), large))
    np.testing.assert_array_equal(data.observations, other.observations)


def test_groups_of_states_come_back(saved):
    meta, arrays = archive_contents(saved)
    assert meta["parts"][0]["given"] is None
    assert arrays["part_0_groups"].shape == arrays["initial"].shape
    model = mm.MissMDP.load(saved)
    assert model == mm.MissMDP.load(saved)
    assert not model.missingness.is_small


def negative(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["factors"][0] = [-1]


def unknown(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["factors"][0] = [99]


def twice(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["factors"][0] = [0, 0]


def too_few(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["factors"].pop()


def other_shape(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["factor_0"] = arrays["factor_0"][..., None]


def no_distribution(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["factor_0"] = arrays["factor_0"] * 2.0


def more_values(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["features"][0][1] = list(range(10**5))


def fewer_states(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    for name in ("reward", "initial", "terminal", "part_0_groups"):
        arrays[name] = arrays[name][:-1]


def group_outside(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["part_0_groups"] = arrays["part_0_groups"] + 10**6


def pattern_twice(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["part_0_patterns"] = np.ones_like(arrays["part_0_patterns"])


def no_patterns(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["part_0_patterns"] = arrays["part_0_patterns"][:0]
    arrays["part_0_table"] = arrays["part_0_table"][:, :0]


def part_no_distribution(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["part_0_table"] = arrays["part_0_table"] - 0.2


def parts_overlap(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["parts"].append(meta["parts"][0])
    for name in ("patterns", "table", "groups"):
        arrays[f"part_{len(meta['parts']) - 1}_{name}"] = arrays[f"part_0_{name}"]


def rows_missing(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    meta["parts"][0]["given"] = [0]
    del arrays["part_0_groups"]
    arrays["part_0_table"] = arrays["part_0_table"][:1]


def matrices_too(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["transition_0_data"] = np.zeros(1)


BROKEN = {
    negative: "no positions of features",
    unknown: "no positions of features",
    twice: "no positions of features",
    too_few: "damaged",
    other_shape: "factor_0 has shape",
    no_distribution: "sum to 2",
    more_values: "shape|damaged",
    fewer_states: "not all combinations",
    group_outside: "out of range",
    pattern_twice: "not distinct",
    no_patterns: "not distinct",
    part_no_distribution: "part 0",
    parts_overlap: "in two parts",
    rows_missing: "has 1 rows, not",
    matrices_too: "unknown array",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_what_makes_no_model_is_refused(saved, damage):
    meta, arrays = archive_contents(saved)
    damage(meta, arrays)
    write_archive(saved, "miss-MDP", meta, arrays)
    with pytest.raises(mm.FormatError, match=BROKEN[damage]):
        mm.MissMDP.load(saved)
