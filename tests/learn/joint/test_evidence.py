"""Logged rewards as evidence on the state."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.learn.joint.evidence import prepare_with_rewards

PLANT = mm.FactoredMDP(
    features={"wear": [0, 1, 2], "load": ["half", "full"]},
    actions=["run", "fix"],
    transition=lambda s, a: [
        ((w, load), p * 0.5)
        for w, p in ([(0, 1.0)] if a == "fix" else [(s.wear, 0.6), (min(s.wear + 1, 2), 0.4)])
        for load in ("half", "full")
    ],
    reward=lambda s, a: -float(s.wear == 2) - 0.5 * (a == "fix"),
    initial={(0, "half"): 0.5, (1, "full"): 0.5},
    discount=0.9,
)
MODEL = mm.MissMDP(
    PLANT, mm.MissingnessFunction.independent(PLANT, {"wear": lambda s: (0.3, 0.5, 0.8)[s.wear]})
)


def reward(state, action):
    return -float(state.wear == 2) - 0.5 * (action == "fix")


def paid_log(tmp_path, steps, horizon=30, seed=1):
    path = tmp_path / "log.csv"
    mm.collect(MODEL, steps, seed=seed, horizon=horizon, keep_states=True).to_csv(path)
    return mm.Dataset.from_table(path, reward="reward", features=PLANT.features)


def test_all_hidden_paths_that_pay_what_was_logged(tmp_path):
    log = paid_log(tmp_path, 24, horizon=4)
    prepared = prepare_with_rewards(log, None, reward, ends=False)
    layout = prepared.histories.layout
    states = layout.states.space
    n, rng = len(states), np.random.default_rng(5)
    transition = rng.dirichlet(np.ones(n), size=(n, 2))
    initial = rng.dirichlet(np.ones(n))
    table = rng.dirichlet(np.ones(len(layout.blocks.patterns)), size=n).T
    before, after = layout.state_of[layout.steps.before], layout.state_of[layout.steps.after]
    blocks = transition[before[:, :, None], layout.steps.action[:, None, None], after[:, None, :]]
    found = prepared.histories.expect(
        blocks * layout.agrees, initial[layout.state_of[layout.starts.seen]], table
    )

    pattern = {tuple(row): k for k, row in enumerate(layout.blocks.patterns.tolist())}
    total, counted = 0.0, np.zeros((n, 2, n))
    for begin, end in itertools.pairwise(log.offsets):
        seen, actions, rewards = (
            log.observations[begin:end],
            log.actions[begin:end],
            log.logged_rewards[begin:end],
        )
        fits = [
            [s for s in range(n) if all(o in (-1, c) for o, c in zip(row, states.codes[s], strict=True))]
            for row in seen
        ]
        sums, steps = 0.0, np.zeros_like(counted)
        for path in itertools.product(*fits):
            p = initial[path[0]]
            for t, s in enumerate(path):
                p *= table[pattern[tuple((seen[t] >= 0).tolist())], s]
                if t + 1 < len(path):
                    p *= transition[s, actions[t], path[t + 1]]
                    p *= math.isclose(reward(states.state(s), log.action_names[actions[t]]), rewards[t])
            sums += p
            for t in range(len(path) - 1):
                steps[path[t], actions[t], path[t + 1]] += p
        total += math.log(sums)
        counted += steps / sums
    assert found.log_likelihood == pytest.approx(total, rel=1e-9)
    own = np.zeros_like(counted)
    np.add.at(own, (before[:, :, None], layout.steps.action[:, None, None], after[:, None, :]), found.moved)
    np.testing.assert_allclose(own, counted, atol=1e-9)


def test_evidence_brings_the_dynamics_closer_and_is_off_by_default(tmp_path):
    log = paid_log(tmp_path, 1500)
    assert mm.JointEM().reward_evidence is False
    rows = {}
    for evidence in (False, True):
        learner = mm.JointEM(discount=0.9, reward=reward, reward_evidence=evidence).fit(log)
        order = [log.action_names.index(action) for action in PLANT.actions]
        place = learner.mdp_.space.find(PLANT.space.codes)
        rows[evidence] = [learner.mdp_.transition[a].toarray()[np.ix_(place, place)] for a in order]
    truth = [one.toarray() for one in PLANT.transition]
    off = {e: sum(np.abs(a - b).sum() for a, b in zip(own, truth, strict=True)) for e, own in rows.items()}
    assert off[True] < off[False]
    both = mm.JointEM(discount=0.9, reward=lambda s, a, t: reward(s, a), reward_evidence=True).fit(log)
    assert both.log_likelihood_ == pytest.approx(learner.log_likelihood_)


def test_what_cannot_be_evidence_is_refused(tmp_path):
    log = paid_log(tmp_path, 200)
    with pytest.raises(mm.DataError, match=r"logged rewards cannot be what reward=… pays.*episode 0, step"):
        mm.JointEM(discount=0.9, reward=lambda s, a: 7.0, reward_evidence=True).fit(log)
    with pytest.raises(mm.ParameterError, match="takes a function as reward"):
        mm.JointEM(discount=0.9, reward_evidence=True).fit(log)
    without = mm.Dataset.from_table(tmp_path / "log.csv", features=PLANT.features)
    with pytest.raises(mm.ParameterError, match="takes a column of rewards"):
        mm.JointEM(discount=0.9, reward=reward, reward_evidence=True).fit(without)
    with pytest.raises(mm.ParameterError, match="leave it out"):
        mm.JointEM(transitions=PLANT, reward=reward, reward_evidence=True).fit(log.with_mdp(PLANT))
