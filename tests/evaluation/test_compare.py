"""Policies against each other: paired where they met the same draws, and never where they did not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.compare import difference
from policies import random_policy
from random_pomdps import tiger

QUIET = {"progress": False}


@pytest.fixture(scope="module")
def model():
    return mm.load_benchmark("example-1")


@pytest.fixture(scope="module")
def policies(model):
    good = mm.Sarsop(max_trials=5, progress=False).solve(model).policy
    return {"good": good, "random vectors": random_policy(mm.prior_model(model), 0), "uniform": None}


@pytest.fixture(scope="module")
def comparison(model, policies):
    return mm.compare(policies, model, 300, 4, **QUIET)


def test_everybody_is_evaluated_as_alone(comparison, model, policies):
    for name, policy in policies.items():
        alone = mm.evaluate(policy, model, 300, 4, **QUIET)
        np.testing.assert_array_equal(comparison[name].returns, alone.returns)
        assert comparison[name].events == alone.events
        assert comparison[name].status == "episodes"
    assert comparison.reference == "good"


def test_differences_are_those_of_episodes(comparison):
    one, other = comparison["random vectors"], comparison["good"]
    gap = comparison.difference("random vectors")
    each = one.returns - other.returns
    assert gap.mean == pytest.approx(each.mean())
    assert gap.mean == pytest.approx(one.mean - other.mean)
    assert gap.stderr == pytest.approx(each.std(ddof=1) / math.sqrt(300))
    assert gap.unpaired_stderr == pytest.approx(math.hypot(one.stderr, other.stderr))
    assert gap.correlation == pytest.approx(np.corrcoef(one.returns, other.returns)[0, 1])
    # Var(x − y) = Var x + Var y − 2 r σ_x σ_y
    assert gap.stderr**2 == pytest.approx(
        one.stderr**2 + other.stderr**2 - 2 * gap.correlation * one.stderr * other.stderr
    )
    assert gap.gain == pytest.approx(gap.unpaired_stderr / gap.stderr)
    assert gap.episodes == 300
    low, high = gap.interval()
    assert low < gap.mean < high
    assert high - low == pytest.approx(2 * 1.9679296 * gap.stderr), "t(0.975; 299)"
    back = comparison.difference("good", "random vectors")
    assert (back.mean, back.stderr) == pytest.approx((-gap.mean, gap.stderr))
    assert set(comparison.differences) == {"random vectors", "uniform"}


def test_the_luck_is_shared():
    """In Tiger, who opens the left door after one more sound does as the other in nearly all episodes."""
    model = tiger()
    full = mm.Sarsop(max_trials=30, progress=False).solve(model).policy
    early = mm.Sarsop(max_trials=2, progress=False).solve(model).policy
    gap = mm.compare({"full": full, "early": early}, model, 2000, 0, **QUIET).difference("early")
    assert gap.correlation > 0.3
    assert gap.gain > 1.1


def test_other_seeds_horizons_and_models_are_not_paired(model, policies):
    good, other = policies["good"], policies["random vectors"]
    one = mm.evaluate(good, model, 200, 0, **QUIET)
    same = mm.evaluate(other, model, 200, 0, **QUIET)
    assert difference(one, same).stderr != difference(one, same).unpaired_stderr
    assert one.shares_luck_with(same)
    copy = mm.MissMDP(model.mdp, model.missingness)
    assert one.shares_luck_with(mm.evaluate(other, copy, 200, 0, **QUIET)), "an equal model is the same"
    for unlike in (
        mm.evaluate(other, model, 200, 1, **QUIET),
        mm.evaluate(other, model, 200, 0, horizon=5, **QUIET),
        mm.evaluate(None, mm.prior_model(model), 200, 0, **QUIET),
    ):
        assert not one.shares_luck_with(unlike)
        gap = difference(one, unlike)
        assert gap.mean == pytest.approx(one.mean - unlike.mean)
        assert gap.stderr == gap.unpaired_stderr == pytest.approx(math.hypot(one.stderr, unlike.stderr))
        assert gap.correlation == 0.0
        assert gap.gain == 1.0


def test_evaluations_of_different_lengths_share_their_first_episodes(model, policies):
    short = mm.evaluate(policies["good"], model, 50, 0, **QUIET)
    long = mm.evaluate(policies["random vectors"], model, 400, 0, **QUIET)
    gap = difference(long, short)
    each = long.returns[:50] - short.returns
    assert gap.episodes == 50
    assert gap.mean == pytest.approx(each.mean())
    assert gap.stderr == pytest.approx(each.std(ddof=1) / math.sqrt(50))


def test_controlled_estimates_are_compared_with_their_like(model, policies):
    found = mm.compare(policies, model, 300, 4, control_variate=True, **QUIET)
    gap = found.difference("uniform")
    each = found["uniform"].controlled - found["good"].controlled
    assert gap.mean == pytest.approx(each.mean())
    assert gap.stderr == pytest.approx(each.std(ddof=1) / math.sqrt(300))
    raw = mm.evaluate(policies["good"], model, 300, 4, **QUIET)
    with pytest.raises(mm.DataError, match="control_variate"):
        difference(found["uniform"], raw)
    with pytest.raises(mm.DataError, match="control_variate"):
        difference(raw, found["uniform"])


def test_a_policy_is_worth_as_much_as_itself(model, policies):
    found = mm.compare({"one": policies["good"], "same": policies["good"]}, model, 40, 0, **QUIET)
    gap = found.difference("same")
    assert (gap.mean, gap.stderr) == (0.0, 0.0)
    assert gap.correlation == pytest.approx(1.0)
    assert gap.gain == math.inf
    assert gap.interval() == (0.0, 0.0)
    one = mm.compare([None, None], model, 1, 0, **QUIET).difference("UniformPolicy 2")
    assert math.isnan(one.stderr)
    assert one.correlation == 0.0
    assert one.interval() == (-math.inf, math.inf)


def test_constant_returns_have_no_correlation(model):
    still = mm.BlindPolicy({model.actions[0]: 1.0})
    zero = mm.FactoredMDP({"x": [0]}, ["a", "b"], lambda s, a: {s: 1.0}, 1.0, {(0,): 1.0}, discount=0.5)
    alone = mm.MissMDP(zero, mm.MissingnessFunction.fully_observed(zero))
    found = mm.compare([None, None], alone, 20, 0, **QUIET)
    assert found.difference("UniformPolicy 2").correlation == 0.0
    assert still.weights


def test_simulation_goes_on_until_all_differences_are_known(model, policies):
    results = [
        mm.compare(policies, model, 50, 1, until_stderr=0.1, threads=threads, reference="uniform", **QUIET)
        for threads in (1, 3)
    ]
    for found in results:
        assert {e.episodes for e in found.evaluations.values()} == {results[0]["good"].episodes}
        assert all(e.status == "stderr" for e in found.evaluations.values())
        assert all(gap.stderr <= 0.1 for gap in found.differences.values())
    errors = [gap.stderr for gap in results[0].differences.values()]
    assert max(errors) > 0.08, "not many more episodes than needed"
    assert results[0].reference == "uniform"
    # One alone: its own error counts.
    single = mm.compare({"only": None}, model, 50, 1, until_stderr=0.05, **QUIET)
    assert 0.04 < single["only"].stderr <= 0.05
    assert single.differences == {}


def test_identical_policies_need_no_more_episodes(model):
    found = mm.compare([None, None], model, 1200, 0, until_stderr=1e-6, **QUIET)
    assert found["UniformPolicy"].episodes == 1200
    assert found["UniformPolicy"].stderr > 0.05


def test_listed_policies_are_named_by_their_kind(model, policies):
    found = mm.compare(
        [None, policies["good"], mm.UniformPolicy(), lambda z: model.actions[0], lambda z: model.actions[1]],
        model,
        10,
        0,
        **QUIET,
    )
    assert list(found.evaluations) == [
        "UniformPolicy",
        "AlphaVectorPolicy",
        "UniformPolicy 2",
        "ObservationPolicy",
        "ObservationPolicy 2",
    ]
    assert found.reference == "UniformPolicy"
    np.testing.assert_array_equal(found["UniformPolicy"].returns, found["UniformPolicy 2"].returns)
    as_tuple = mm.compare((None, policies["good"]), model, 10, 0, **QUIET)
    assert list(as_tuple.evaluations) == ["UniformPolicy", "AlphaVectorPolicy"]


def test_names_need_not_be_strings_but_must_differ(model):
    found = mm.compare({1: None, 2: None}, model, 5, 0, reference=2, **QUIET)
    assert found.reference == "2"
    assert list(found.evaluations) == ["1", "2"]
    with pytest.raises(mm.DataError, match="two policies have the name '1'"):
        mm.compare({1: None, "1": None}, model, 5, 0, **QUIET)


def test_unknown_names_are_answered_with_the_known(comparison, model):
    for ask in (
        lambda: comparison["bad"],
        lambda: comparison.difference("bad"),
        lambda: comparison.difference("good", "bad"),
    ):
        with pytest.raises(
            mm.DataError, match="there is no policy 'bad'; the policies are good, random vectors, unif"
        ):
            ask()
    with pytest.raises(mm.DataError, match="reference: there is no policy 'bad'; the policies are a, b"):
        mm.compare({"a": None, "b": None}, model, 5, 0, reference="bad", **QUIET)


@pytest.mark.parametrize("policies", ["abc", None, 7, mm.UniformPolicy(), {}, [], iter([None])])
def test_what_is_no_policies_is_refused(policies, model):
    with pytest.raises(mm.DataError, match=r"expected \{name: policy\} or a list|there are no policies"):
        mm.compare(policies, model, 5, 0, **QUIET)


def test_rows_and_frames(comparison):
    rows = comparison.rows(0.9)
    assert [row["policy"] for row in rows] == ["good", "random vectors", "uniform"]
    for row in rows:
        evaluation = comparison[row["policy"]]
        assert (row["value"], row["stderr"]) == (evaluation.mean, evaluation.stderr)
        assert (row["low"], row["high"]) == evaluation.interval(0.9)
        assert row["episodes"] == 300
    assert [rows[0][k] for k in ("difference", "difference_stderr", "difference_low", "difference_high")] == [
        0.0
    ] * 4
    assert rows[0]["correlation"] == pytest.approx(1.0)
    gap = comparison.difference("uniform")
    assert rows[2]["difference"] == gap.mean
    assert rows[2]["difference_stderr"] == gap.stderr
    assert (rows[2]["difference_low"], rows[2]["difference_high"]) == gap.interval(0.9)
    frame = comparison.to_pandas(0.9)
    assert frame["value"].tolist() == [row["value"] for row in rows]
    single = mm.compare({"a": None}, mm.load_benchmark("example-1"), 5, 0, **QUIET).rows()
    assert "difference" not in single[0]


def test_a_comparison_is_said_in_lines(comparison):
    lines = str(comparison).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("good            ")
    assert lines[3].startswith("random vectors − good")
    assert len({line.index("±") > 0 for line in lines}) == 1
    assert "95 % interval [" in lines[4]
    assert "-" not in str(comparison)
    assert repr(comparison) == "Comparison(good, random vectors, uniform; reference good)"
    assert str(comparison.difference("uniform")) in str(comparison)


def test_time_for_none_is_an_error(model):
    import time

    class Slow:
        def agent(self, model=None, *, seed=None):
            time.sleep(0.05)
            return mm.UniformPolicy().agent(model, seed=seed)

    with pytest.raises(mm.DataError, match="not one episode was finished in time"):
        mm.compare({"slow": Slow(), "late": Slow()}, model, 100, 0, timeout=0.01, horizon=2, **QUIET)


def test_values_of_the_largest_size_are_compared():
    """As those of ordinary size, times the size: their squares are finite, too."""
    size = 1e148

    def compared(reward):
        mdp = mm.FactoredMDP(
            features={"x": range(2)},
            actions=["a", "b"],
            transition=lambda state, action: {(0,): 0.5, (1,): 0.5},
            reward=lambda state, action: reward * (state.x + (action == "b")),
            initial={(0,): 1.0},
            discount=0.9,
        )
        model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
        return mm.compare({"u": None, "b": mm.BlindPolicy({"b": 1.0})}, model, 200, 0, horizon=50, **QUIET)

    found, expected = compared(size), compared(1.0)
    assert found["u"].mean == pytest.approx(size * expected["u"].mean)
    assert found["u"].stderr == pytest.approx(size * expected["u"].stderr)
    one, other = found.difference("b"), expected.difference("b")
    assert (one.stderr, one.correlation) == pytest.approx((size * other.stderr, other.correlation))
