"""What a policy is worth in worlds that differ from its model, against exact values.

Statistical checks fix their seeds and allow `ERRORS` standard errors: a mean is that far off by chance with a
probability of 6e-7, so that all comparisons of this file together fail by chance with less than 1e-3.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import missmdp as mm
from large_models import pair
from missmdp.evaluation import sensitivity as module
from missmdp.evaluation.perturbed import (
    anywhere,
    distance,
    intervals_of,
    mixed,
    random_rows,
    random_within,
    with_probabilities,
)
from oracles.policy_values import (
    AmbiguousError,
    Memoryless,
    Tracking,
    World,
    optimal_values_by_policy_iteration,
    outcome,
)
from policies import random_policy
from strategies import KINDS, POOL, random_mdp, random_missingness

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

ERRORS = 5.0
EPISODES = 4000
SHARES = (0.1, 0.5)


def tiny(seed):
    """Return a miss-MDP of two features with a low discount, so that few decisions count."""
    rng = np.random.default_rng([seed, 31])
    mdp = random_mdp(rng, {name: POOL[name][:2] for name in list(POOL)[:2]}, 2, full=seed % 2 == 0)
    mdp = mm.FactoredMDP(
        mdp.features,
        mdp.actions,
        mdp.transition,
        mdp.reward,
        mdp.initial,
        mdp.terminal,
        0.2,
        states=mdp.space,
    )
    return mm.MissMDP(mdp, random_missingness(rng, mdp, KINDS[seed % len(KINDS)]))


def learned(seed):
    """Return what AsMAR learns from a few steps of a tiny model, the bound, and a policy for it."""
    truth = tiny(seed)
    learner = mm.AsMAR(smoothing=0.5).fit(mm.collect(truth, 80, seed=seed))
    model = truth.with_missingness(learner.missingness_)
    return model, learner.bound(0.8), random_policy(model, seed)


def exactly(actor, world):
    return outcome(World(world), actor, world.mdp.horizon()).value


def with_dense(model, T):
    mdp = model.mdp
    return mm.MissMDP(
        mm.FactoredMDP(
            mdp.features,
            mdp.actions,
            T,
            mdp.reward,
            mdp.initial,
            mdp.terminal,
            mdp.discount,
            states=mdp.space,
        ),
        model.missingness,
    )


def pessimal(model, share):
    """Return the world in which a share goes to the next state with the lowest V*, the first of equals."""
    world = World(model)
    values = optimal_values_by_policy_iteration(world).round(8)
    T = world.transition * (1.0 - share)
    for a in range(model.n_actions):
        for s in range(model.n_states):
            after = np.flatnonzero(world.transition[a, s])
            T[a, s, min(after, key=lambda t: (values[t], t))] += share
    return with_dense(model, T)


def extreme(model, bound, *, observed):
    """Return the world with one group of M̂ after the other at its end, over all patterns that are listed."""
    (names,) = {group.features for group in bound.per_group}

    def patterns(state):
        for group in bound.per_group:
            if all(getattr(state, name) == value for name, value in group.given.items()):
                break
        else:  # unreachable
            return {(True,) * len(model.features): 1.0}
        p, left = group.lower.copy(), 1.0 - group.lower.sum()
        for k in sorted(range(len(p)), key=lambda k: group.patterns[k].sum(), reverse=observed):
            more = min(left, group.upper[k] - p[k])
            p[k], left = p[k] + more, left - more
        shown = [dict(zip(names, row, strict=True)) for row in group.patterns]
        return {tuple(row.get(f, True) for f in model.features): q for row, q in zip(shown, p, strict=True)}

    return model.with_missingness(mm.MissingnessFunction.from_patterns(model.mdp, patterns))


def agree(row, value, nominal):
    assert abs(row.value - value) <= ERRORS * row.stderr + 1e-7
    assert abs(row.difference - (value - nominal)) <= ERRORS * row.difference_stderr + 1e-7


def clear_cases(count):
    """Yield learned models whose policies never have to choose between equals."""
    found = 0
    for seed in range(100):
        model, bound, policy = learned(seed)
        try:
            exactly(Tracking(policy), model)
        except AmbiguousError:
            continue
        yield seed, model, bound, policy
        found += 1
        if found == count:
            return


def test_values_and_differences_are_those_of_all_histories():
    """Every row, against the world built again here (but for what is random)."""
    moved = surprising = 0
    for seed, model, bound, policy in clear_cases(3):
        actor = Tracking(policy)
        nominal = exactly(actor, model)
        rows = mm.sensitivity(policy, model, bound, SHARES, 3, EPISODES, seed, progress=False)
        assert [row.what for row in rows] == ["transition"] * 8 + ["missingness"] * 4
        found = iter(rows)
        for share in SHARES:
            drawn = [random_rows(model.mdp, np.random.default_rng([seed, draw])) for draw in range(3)]
            worlds = [mm.MissMDP(mixed(model.mdp, D, share), model.missingness) for D in drawn]
            exact = [exactly(actor, world) for world in worlds]
            agree(next(found), np.mean(exact), nominal)
            worst = next(found)
            # Up to luck in which one is picked.
            slack = 2 * ERRORS * worst.difference_stderr + 1e-7
            assert abs(worst.difference - (min(exact) - nominal)) <= slack
            bad = next(found)
            agree(bad, exactly(actor, pessimal(model, share)), nominal)
            mdp = anywhere(model.mdp, share, np.random.default_rng([seed, 3]))
            surprise = next(found)
            agree(surprise, exactly(actor, mm.MissMDP(mdp, model.missingness)), nominal)
            moved += abs(bad.difference) > 5 * bad.difference_stderr
            surprising += abs(surprise.difference) > 5 * surprise.difference_stderr
        for observed in (False, True):
            row, world = next(found), extreme(model, bound, observed=observed)
            agree(row, exactly(actor, world), nominal)
            assert row.size == pytest.approx(distance(world, model))
        factors = intervals_of(bound, model)
        worlds = [
            with_probabilities(model, factors, [random_within(factor, rng) for factor in factors])
            for rng in (np.random.default_rng([seed, draw]) for draw in range(3))
        ]
        row = next(found)
        agree(row, np.mean([exactly(actor, world) for world in worlds]), nominal)
        assert row.size == pytest.approx(np.mean([distance(world, model) for world in worlds]))
        assert next(found).value <= row.value
    assert moved >= 2, "worlds that matter"
    assert surprising >= 2


def test_a_memoryless_policy_and_no_bound():
    model, _, _ = learned(4)
    n = model.n_actions
    actor = Memoryless(lambda _: dict.fromkeys(range(n), 1.0 / n))
    (_, _, row, _) = mm.sensitivity(None, model, shares=[0.5], draws=1, episodes=EPISODES, progress=False)
    agree(row, exactly(actor, pessimal(model, 0.5)), exactly(actor, model))


def test_no_share_is_no_difference_at_all():
    """The same world with the same draws: exactly zero, of value and error."""
    for seed, model, _, policy in clear_cases(3):
        rows = mm.sensitivity(policy, model, None, [0.0], 2, 200, seed, progress=False)
        value = mm.evaluate(policy, model, 200, seed, control_variate=True, progress=False)
        assert len(rows) == 4
        for row in rows:
            assert (row.difference, row.difference_stderr, row.size) == (0.0, 0.0, 0.0)
            assert row.value == pytest.approx(value.mean, abs=1e-12)
            assert row.stderr == pytest.approx(value.stderr, abs=1e-12)


def test_intervals_without_width_are_no_difference():
    model, bound, policy = learned(2)
    certain = dataclasses.replace(
        bound,
        per_group=tuple(dataclasses.replace(g, lower=g.estimate, upper=g.estimate) for g in bound.per_group),
    )
    rows = mm.sensitivity(policy, model, certain, [], 2, 500, progress=False)
    assert len(rows) == 4
    for row in rows:
        assert (row.what, row.difference, row.difference_stderr) == ("missingness", 0.0, 0.0)
        assert row.size == pytest.approx(0.0, abs=1e-12)


def test_luck_is_shared_so_that_differences_have_small_errors():
    truth = mm.load_benchmark("predator-smar")
    learner = mm.AsMAR().fit(mm.collect(truth, 5000, seed=0))
    model = truth.with_missingness(learner.missingness_)
    policy = mm.Sarsop(max_trials=10, progress=False).solve(model).policy
    rows = mm.sensitivity(policy, model, learner.bound(), [0.01, 0.1], 2, 400, progress=False)
    one, again, other = (
        mm.sensitivity(policy, model, learner.bound(), [0.1], 1, 50, seed=seed, progress=False)
        for seed in (0, 0, 1)
    )
    assert one == again
    assert one != other
    for row in (*rows[:2], *rows[8:]):
        assert row.difference_stderr < 0.7 * row.stderr, row.how
    assert [row.how for row in rows] == [
        *(
            f"{how}, share {share} %{draws}"
            for share in (1, 10)
            for how, draws in (
                ("mixed with random rows", ", average of 2 draws"),
                ("mixed with random rows", ", worst of 2 draws"),
                ("moved to the worst next state", ""),
                ("anything may happen", ""),
            )
        ),
        "as seldom observed as the bound allows",
        "as often observed as the bound allows",
        "random within the bound, average of 2 draws",
        "random within the bound, worst of 2 draws",
    ]
    assert [row.size for row in rows[:8]] == [0.01] * 4 + [0.1] * 4
    assert all(0.0 < row.size <= learner.bound().tv + 1e-9 for row in rows[8:])
    # An informed adversary, and surprises, cost more with a larger share; what is seen less often is worth less.
    assert rows[6].difference < rows[2].difference < 0.0
    assert rows[7].difference < rows[3].difference < 0.0
    assert rows[8].difference < 0.0 < rows[9].difference
    assert str(rows[6]).startswith("transition, moved to the worst next state, share 10 %: ")
    assert "(−" in str(rows[6])


def test_ctrl_c_does_not_compare_unequal_numbers_of_episodes(monkeypatch):
    model, _, policy = learned(0)

    def interrupted(*arguments, **options):
        return dataclasses.replace(mm.evaluate(*arguments, **options), status="interrupted")

    monkeypatch.setattr(module, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mm.sensitivity(policy, model, episodes=10)


def test_what_is_wrong_is_named():
    model, bound, policy = learned(0)
    for shares in ([-0.1], [1.5], ["much"], 0.1, [float("nan")]):
        with pytest.raises(mm.DataError, match="shares must be a list of numbers from 0 to 1"):
            mm.sensitivity(policy, model, shares=shares)
    with pytest.raises(mm.DataError, match="draws must be"):
        mm.sensitivity(policy, model, draws=0)
    with pytest.raises(mm.DataError, match="episodes must be"):
        mm.sensitivity(policy, model, episodes=0)
    with pytest.raises(mm.DataError, match="seed must be"):
        mm.sensitivity(policy, model, seed=-1)
    with pytest.raises(
        mm.DataError, match="expected a learner's bound, such as learner.bound\\(\\), got AsMAR"
    ):
        mm.sensitivity(policy, model, mm.AsMAR())
    with pytest.raises(mm.ModelError, match="expected a MissMDP"):
        mm.sensitivity(policy, model.mdp)
    with pytest.raises(mm.DataError, match="another missingness function"):
        mm.sensitivity(policy, mm.prior_model(model), bound)


def test_missingness_functions_are_tried_as_they_are():
    """The average and the worst of the worlds with them, each evaluated by hand with the same luck."""
    model, _, policy = learned(0)
    others = [
        mm.MissingnessFunction.independent(model.mdp, dict.fromkeys(model.features, rate))
        for rate in (0.0, 0.5, 0.9)
    ]
    rows = mm.sensitivity(policy, model, shares=[0.1], draws=1, episodes=50, seed=3, missingness=others)
    found = [row for row in rows if row.what == "missingness"]
    assert [row.how for row in found] == [
        "learned from the resampled log, average of 3 draws",
        "learned from the resampled log, worst of 3 draws",
    ]
    values = [
        mm.evaluate(policy, model.with_missingness(other), 50, 3, control_variate=True).mean
        for other in others
    ]
    sizes = [distance(model.with_missingness(other), model) for other in others]
    assert found[0].value == pytest.approx(np.mean(values))
    assert found[1].value == pytest.approx(min(values))
    assert found[0].size == pytest.approx(np.mean(sizes))
    assert found[1].size == pytest.approx(sizes[int(np.argmin(values))])
    without = mm.sensitivity(policy, model, shares=[0.1], draws=1, episodes=50, seed=3)
    assert without == [row for row in rows if row.what == "transition"]


def test_large_models_do_without_a_control_variate(monkeypatch):
    _, large = pair(1, monkeypatch)
    learner = mm.AIMI(assume="simple MAR").fit(mm.collect(large, 200, seed=0))
    learned = large.with_missingness(learner.missingness_)
    monkeypatch.setattr("missmdp.model.pomdp._MOST_WORK", 0.0)
    rows = mm.sensitivity(
        mm.UniformPolicy(), learned, learner.bound(), shares=[], draws=1, episodes=10, seed=0
    )
    assert {row.what for row in rows} == {"missingness"}
