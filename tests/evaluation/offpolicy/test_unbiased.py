"""Estimators that promise to be unbiased are, exactly: every episode of tiny random models is enumerated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.estimators import doubly_robust_terms, weighted_terms
from missmdp.evaluation.offpolicy.modelled import modelled_values
from missmdp.evaluation.offpolicy.target import choices
from missmdp.evaluation.offpolicy.weights import Weights
from oracles.off_policy import all_episodes, as_log
from oracles.policy_values import AmbiguousError, Memoryless, Tracking, World, outcome
from policies import random_policy
from strategies import missmdps, seeds

UNBIASED = ("is", "pdis", "dr")
MOST = 4000
"""Episodes that are enumerated."""


def random_rule(rng, model, *, full):
    """Return observation → {action: probability}, at random; with `full`, every action is possible."""
    table = {}

    def rule(seen):
        if tuple(seen) not in table:
            weights = rng.integers(1 if full else 0, 4, size=model.n_actions) + 0.0
            weights[rng.integers(model.n_actions)] += 1.0
            table[tuple(seen)] = dict(zip(model.actions, (weights / weights.sum()).tolist(), strict=True))
        return table[tuple(seen)]

    return rule


def enumerated(model, act, horizon):
    found = []
    for episode in all_episodes(model, act, horizon):
        found.append(episode)
        assume(len(found) <= MOST)
    assert sum(e.probability for e in found) == pytest.approx(1.0)
    return found, np.array([e.probability for e in found]), as_log(model, found)


@settings(max_examples=60, deadline=None)
@given(missmdps(max_features=2), seeds(), st.integers(1, 3))
def test_random_targets(model, seed, horizon):
    """E over logs of every unbiased estimate is the target's value, with exact behaviour probabilities."""
    rng = np.random.default_rng(seed)
    behaviour, target = random_rule(rng, model, full=True), random_rule(rng, model, full=False)
    episodes, p, log = enumerated(model, behaviour, horizon)
    assume(max(len(e.actions) for e in episodes) > 0)
    index = model.mdp.action_index

    def rule(seen):
        return {index(a): q for a, q in target(seen).items() if q > 0.0}

    truth = outcome(World(model), Memoryless(rule), horizon).value
    for method in UNBIASED:
        found = mm.off_policy_value(
            target, log, discount=model.discount, method=method, behaviour=behaviour, model=model
        )
        if np.isfinite(found.terms).all():
            assert p @ found.terms == pytest.approx(truth, abs=1e-9), method
    # With the policy that made the log, weights are 1.
    same = mm.off_policy_value(behaviour, log, discount=model.discount, method="pdis", behaviour=behaviour)
    assert same.terms == pytest.approx(mm.logged_value(log, discount=model.discount).returns)
    assert same.effective == pytest.approx(len(episodes))
    assert same.largest_weight == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(missmdps(max_features=2), seeds(), st.integers(1, 3))
def test_alpha_vector_targets_that_track_a_belief(model, seed, horizon):
    """The policy is told what was done, so its belief is right after any history."""
    policy = random_policy(model, seed)
    behaviour = random_rule(np.random.default_rng(seed), model, full=True)
    _, p, log = enumerated(model, behaviour, horizon)
    assume(log.n_steps > log.n_episodes)
    try:
        truth = outcome(World(model), Tracking(policy), horizon).value
    except AmbiguousError:
        assume(False)
    for method in UNBIASED:
        found = mm.off_policy_value(
            policy, log, discount=model.discount, method=method, behaviour=behaviour, progress=False,
            model=model if method == "dr" else None,
        )  # fmt: skip
        assert found.followed == 1.0
        if np.isfinite(found.terms).all():
            assert p @ found.terms == pytest.approx(truth, abs=1e-9), method


@settings(max_examples=40, deadline=None)
@given(missmdps(max_features=2), seeds(), st.integers(1, 3))
def test_doubly_robust_with_any_action_values(model, seed, horizon):
    """Whatever Q̂ is, if it only depends on the history; with Q̂ = 0 it is the per-decision estimate."""
    rng = np.random.default_rng(seed)
    behaviour, target = random_rule(rng, model, full=True), random_rule(rng, model, full=False)
    episodes, p, log = enumerated(model, behaviour, horizon)
    assume(log.n_steps > log.n_episodes)
    decisions = decisions_of(log, None)
    done = log.actions[decisions.rows].astype(np.int64)
    wanted = choices(mm.ObservationPolicy(target), log, decisions, model=model)
    likely = choices(mm.ObservationPolicy(behaviour), log, decisions, model=model).of(done)
    weights = Weights(decisions, wanted.of(done) / likely)
    rewards = log.rewards[decisions.rows]
    by_history = {}
    table = np.array(
        [
            by_history.setdefault((tuple(e.seen[: t + 1]), tuple(e.actions[:t])), rng.normal(size=model.n_actions))
            for e in episodes
            for t in range(len(e.actions))
        ]
    )  # fmt: skip
    values = (wanted.probabilities * table).sum(axis=1)
    terms = doubly_robust_terms(weights, rewards, model.discount, table[np.arange(len(done)), done], values)
    plain = weighted_terms("pdis", weights, rewards, model.discount)
    assert p @ terms == pytest.approx(p @ plain, abs=1e-9)
    zeros = np.zeros(len(done))
    assert doubly_robust_terms(weights, rewards, model.discount, zeros, zeros) == pytest.approx(plain)


@settings(max_examples=40, deadline=None)
@given(missmdps(max_features=2), seeds(), st.integers(1, 3))
def test_action_values_of_a_memoryless_policy_in_its_model_are_exact(model, seed, horizon):
    """V̂ of the first histories averages to the value, and the doubly robust correction has mean zero everywhere."""
    rng = np.random.default_rng(seed)
    behaviour, target = random_rule(rng, model, full=True), random_rule(rng, model, full=False)
    episodes, p, log = enumerated(model, behaviour, horizon)
    assume(max(len(e.actions) for e in episodes) == horizon)
    index = model.mdp.action_index

    def rule(seen):
        return {index(a): q for a, q in target(seen).items() if q > 0.0}

    truth = outcome(World(model), Memoryless(rule), horizon).value
    decisions = decisions_of(log, None)
    policy = mm.ObservationPolicy(target)
    wanted = choices(policy, log, decisions, model=model)
    found = modelled_values(policy, model, log, decisions, wanted, model.discount, seed=0)
    first = np.array([found.values[a] if b > a else 0.0 for a, b in pairwise(decisions.start)])
    assert p @ first == pytest.approx(truth, abs=1e-9)
