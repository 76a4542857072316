"""Histories followed feature by feature, against histories followed state by state."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from large_models import random_model, two_machines
from missmdp.data import support, validation


def random_log(model: mm.MissMDP, seed: int) -> mm.Dataset:
    """A log of the model in which some values are changed to others."""
    data = mm.collect(model, 300, seed=seed, horizon=12)
    random = np.random.default_rng(seed)
    observations = data.observations.copy()
    changed = (observations >= 0) & (random.random(observations.shape) < 0.05)
    observations[changed] = (random.integers(0, model.space.features.sizes, size=observations.shape))[changed]
    return mm.Dataset(model.mdp, observations, data.actions, data.offsets, data.terminated)


@pytest.mark.parametrize("seed", range(12))
def test_what_boxes_find_is_wrong(seed, monkeypatch):
    """Each row that a box rules out, or calls ended or going on, is one that the exact sets do so for."""
    model = random_model(seed, terminal=seed % 2 == 1)()
    log = random_log(model, seed)
    distinct = support.distinct_observations(model.space.features, log.observations)
    begins = np.zeros(log.n_steps, dtype=np.int8)
    begins[log.offsets[:-1]] = 1
    exact = support.follow(model.mdp, distinct, log.actions, begins)
    monkeypatch.setattr(support, "_MOST_ENTRIES", -1)
    boxes = support.follow(model.mdp, distinct, log.actions, begins)
    assert not boxes.no_state.any()
    np.testing.assert_array_equal(boxes.no_start <= exact.no_start, True)
    # After the first conflict in an episode the two may go on from different places.
    for first, stop in zip(log.offsets[:-1], log.offsets[1:], strict=True):
        wrong = np.flatnonzero((exact.conflict | exact.no_start)[first:stop])
        until = first + (wrong[0] if len(wrong) else stop - first)
        assert not boxes.conflict[first:until].any()
        for name in ("ended", "going_on"):
            mine, theirs = (getattr(one, name)[first:until] for one in (boxes, exact))
            assert (mine <= theirs).all()


@pytest.mark.parametrize("seed", range(6))
def test_boxes_of_independent_features_are_exact(seed, monkeypatch):
    """Two machines with nothing in common but a load that is always seen: nothing is lost."""
    mdp = two_machines()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"a": 0.5, "b": 0.5}))
    log = random_log(model, seed)
    exact = mm.validate(log, mdp)
    monkeypatch.setattr(support, "_MOST_ENTRIES", -1)
    boxes = mm.validate(log, mdp)
    for name in (
        "impossible_starts", "impossible_transitions", "impossible_histories", "never_visited", "never_seen_in_full",
        "never_missing", "actions_after_end", "ends_without_terminal",
    ):  # fmt: skip
        assert getattr(boxes, name) == getattr(exact, name), name
    assert exact.impossible_transitions.count > 0
    assert "which values of each feature" in boxes.notes[0]


def test_a_clean_log_stays_clean(monkeypatch):
    monkeypatch.setattr(support, "_MOST_ENTRIES", -1)
    for seed in range(5):
        model = random_model(seed, terminal=True)()
        assert mm.validate(mm.collect(model, 500, seed=seed), model.mdp).ok


def test_many_states_are_made_when_asked_for(monkeypatch):
    mdp = two_machines()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"a": 0.5}))
    log = mm.collect(model, 5, seed=0)
    listed = mm.validate(log, mdp)
    monkeypatch.setattr(validation, "_MOST_LISTED", 0)
    lazily = mm.validate(log, mdp)
    assert tuple(lazily.never_seen_in_full) == listed.never_seen_in_full
    assert lazily.notes == listed.notes
