"""Action values that are fitted to a log: to other episodes, and right where observations are states."""

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.fitted import fitted_values
from missmdp.evaluation.offpolicy.target import choices


def ward(discount=0.9):
    """Return a fully observed ward of three states, in which 2 is the end."""
    stay = [[0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.0, 0.0, 1.0]]
    act = [[0.9, 0.1, 0.0], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]]
    mdp = mm.FactoredMDP(
        {"level": (0, 1, 2)},
        ["stay", "act"],
        [stay, act],
        np.array([[0.0, -1.0], [-2.0, -3.0], [0.0, 0.0]]),
        [0.5, 0.5, 0.0],
        terminal=[(2,)],
        discount=discount,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))


def target(seen):
    return {"act": 0.8, "stay": 0.2} if seen.level == 1 else {"act": 0.3, "stay": 0.7}


def fitted(log, rewards, policy=None, seed=0, folds=5):
    decisions = decisions_of(log, None)
    wanted = choices(mm.ObservationPolicy(policy or target), log, decisions)
    return decisions, fitted_values(
        log, decisions, wanted, rewards[decisions.rows], 0.9, folds=folds, seed=seed
    )


def test_they_approach_the_action_values_where_observations_are_states():
    model = ward()
    log = mm.collect(model, 200_000, seed=0, horizon=11, keep_states=True)
    decisions, found = fitted(log, log.rewards)
    transition = np.stack([m.toarray() for m in model.mdp.transition])
    policy = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    action_values, values = [], np.zeros(3)
    for _ in range(10):
        q = np.where(model.mdp.terminal[:, None], 0.0, model.mdp.reward + 0.9 * (transition @ values).T)
        values = (policy * q).sum(axis=1)
        action_values.append(q)
    states, actions = log.states[decisions.rows], log.actions[decisions.rows]
    q = np.array([action_values[10 - t - 1][s] for t, s in zip(decisions.step, states, strict=True)])
    assert found.action_values == pytest.approx(q[np.arange(len(q)), actions], abs=0.15)
    assert found.values == pytest.approx((policy[states] * q).sum(axis=1), abs=0.15)


def test_an_episode_has_no_part_in_its_own_values():
    log = mm.collect(ward(), 600, seed=1, horizon=6, keep_states=True)
    decisions, before = fitted(log, log.rewards)
    changed = log.rewards.copy()
    first = slice(int(log.offsets[0]), int(log.offsets[1]))
    changed[first] += 100.0
    _, after = fitted(log, changed)
    own = decisions.episode == 0
    assert after.values[own].tolist() == before.values[own].tolist()
    assert after.action_values[own].tolist() == before.action_values[own].tolist()
    assert not np.allclose(after.values[~own], before.values[~own])


def test_a_single_episode_has_nothing_to_be_fitted_to():
    log = mm.collect(ward(), 5, seed=3, horizon=5, keep_states=True)
    if log.n_episodes == 1:
        _, found = fitted(log, log.rewards)
        assert not found.values.any()


def test_agents_that_were_lost_sight_of_are_left_out():
    """Only what the agent is known to do counts; the estimate is still one number per episode."""

    class Deaf:
        def agent(self, model=None, *, seed=None):
            return DeafAgent()

    class DeafAgent:
        def step(self, seen):
            return "act" if seen.level == 1 else "stay"

        reset = step

    log = mm.collect(ward(), 3000, seed=1, horizon=6, keep_states=True)
    options = {"discount": 0.9, "behaviour": mm.UniformPolicy(), "progress": False}
    deaf = mm.off_policy_value(Deaf(), log, method="dr", **options)
    told = mm.off_policy_value(lambda seen: "act" if seen.level == 1 else "stay", log, method="dr", **options)
    assert deaf.followed < 1.0 == told.followed
    assert deaf.effective_by_step == pytest.approx(told.effective_by_step)
    exact = mm.evaluate(Deaf(), ward(), 4000, seed=1, horizon=5)
    for found in (deaf, told):
        # Five standard errors, which chance exceeds with a probability of 6e-7.
        assert abs(found.mean - exact.mean) < 5 * np.hypot(found.stderr, exact.stderr)
