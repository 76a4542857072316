"""What `off_policy_value` says, and what it refuses."""

import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.offpolicy.doubts import LEAST_EFFECTIVE
from missmdp.model.space import NO_ACTION
from policies import random_policy

ICU = mm.load_benchmark("icu-smar")
UNIFORM = mm.UniformPolicy()
LOG = mm.collect(ICU, 6000, seed=0, horizon=4, keep_states=True)
METHODS = ("is", "pdis", "wis", "wpdis", "dr")


def leaning(seen):
    return {"test": 0.5, "wait": 0.3, "antibiotics": 0.2}


def value(policy=leaning, log=LOG, **options):
    chosen = {"discount": 0.95, "behaviour": UNIFORM, **options}
    return mm.off_policy_value(policy, log, **chosen)


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_near_the_truth(method):
    """Five standard errors; a mean is that far off by chance with a probability of about 6e-7."""
    exact = mm.evaluate(leaning, ICU, 40_000, seed=1, horizon=3)
    for given in (UNIFORM, None):
        found = value(method=method, behaviour=given)
        assert found.no_interval is None
        assert abs(found.mean - exact.mean) < 5 * math.hypot(found.stderr, exact.stderr)
        low, high = found.interval()
        assert low < found.mean < high
        assert found.interval(0.5)[0] > low


def test_a_model_makes_the_doubly_robust_estimate_sharper():
    exact = mm.evaluate(leaning, ICU, 40_000, seed=1, horizon=3)
    sharp, plain = value(method="dr", model=ICU), value(method="pdis")
    assert sharp.stderr < 0.9 * plain.stderr
    assert abs(sharp.mean - exact.mean) < 5 * math.hypot(sharp.stderr, exact.stderr)


def test_the_model_is_simulated_over_the_same_decisions():
    found = value(method="model", model=ICU)
    same = mm.evaluate(leaning, ICU, 2000, seed=0, horizon=3)
    assert found.mean == same.mean
    assert found.interval() == same.interval()
    assert "the log has no part in this number" in found.describe()
    assert np.isnan(found.effective)
    with pytest.raises(mm.ParameterError, match="needs a model"):
        value(method="model")
    other = value(method="model", model=ICU, discount=0.5, episodes=500)
    log = mm.collect(ICU, 8000, leaning, seed=3, horizon=4, keep_states=True)
    logged = mm.logged_value(log, discount=0.5)
    assert abs(other.mean - logged.mean) < 5 * math.hypot(other.stderr, logged.stderr)
    undiscounted, logged = value(method="model", model=ICU, discount=1.0), mm.logged_value(log, discount=1.0)
    assert abs(undiscounted.mean - logged.mean) < 5 * math.hypot(undiscounted.stderr, logged.stderr)


def test_deterministic_policies_leave_few_episodes_and_no_interval():
    found = value(lambda seen: "test", method="wpdis")
    by_step = [
        np.count_nonzero([[a for _, a in e[: t + 1]] == ["test"] * (t + 1) for e in LOG.episodes()])
        for t in range(3)
    ]
    assert found.effective_by_step == pytest.approx(by_step)
    assert found.largest_weight == pytest.approx(27.0)
    assert found.agreement == pytest.approx(1 / 3, abs=0.02)
    long = mm.collect(ICU, 6000, seed=0, keep_states=True)
    for method in METHODS:
        none = value(lambda seen: "test", long, method=method)
        assert none.interval() == (pytest.approx(math.nan, nan_ok=True),) * 2
        assert "effective episodes" in none.no_interval
        assert "no interval" in str(none)
        assert "from step" in none.describe()
        assert "nan" not in none.describe() + str(none) + none._repr_html_()
    assert math.isnan(value(lambda seen: "test", long, method="wis").mean)
    assert math.isnan(value(lambda seen: "test", long, method="is").mean)
    assert any("no episode did" in warning for warning in none.warnings)


def test_a_shorter_horizon_leaves_more():
    long = mm.collect(ICU, 60_000, seed=0, keep_states=True, horizon=30)
    assert value(lambda seen: "test", long).no_interval is not None
    short = value(lambda seen: "test", long, horizon=2)
    assert short.no_interval is None
    assert short.effective > LEAST_EFFECTIVE
    assert "the first 2 decisions" in short.describe()


def test_rare_rewards_get_no_interval():
    """A few episodes with a reward decide the mean, however many there are without."""
    rewards = np.zeros(LOG.n_steps)
    rewards[LOG.offsets[:3]] = 100.0
    for method in METHODS:
        assert "a few episodes decide the mean (skewness" in value(method=method, rewards=rewards).no_interval
        assert "worth the same" in value(method=method, rewards=np.zeros(LOG.n_steps)).no_interval


def test_the_result_says_what_it_assumes_and_what_was_cut():
    text = value().describe()
    assert "What was done rested on the recorded history only" in text
    assert "1,500 of 1,500 episodes (100\xa0%) were cut" in text
    assert "agreement     33" in text
    assert "learned from the log (constant" in value(behaviour=None).describe()
    assert "given: UniformPolicy()" in text
    assert "Off-policy value" in value()._repr_html_()


def test_probabilities_may_be_given_as_arrays_or_learned_before():
    rows = LOG.n_steps
    expected = value().terms
    assert value(behaviour=np.full(rows, 1 / 3)).terms == pytest.approx(expected)
    assert value(behaviour=np.full((rows, 3), 1 / 3)).terms == pytest.approx(expected)
    learned = mm.learn_behaviour(LOG)
    assert value(behaviour=learned).terms.tolist() == value(behaviour=None).terms.tolist()
    assert value(behaviour=learned).mean == pytest.approx(value().mean, abs=3 * value().stderr)


def test_where_nothing_is_random_but_actions_the_right_model_leaves_no_error():
    states = [0, 1, 2, 0]
    moves = [np.eye(3)[states[1:]], np.eye(3)]
    mdp = mm.FactoredMDP(
        {"a": (0, 1, 2)}, ["go", "stay"], moves, np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]]), [1.0, 0.0, 0.0]
    )  # fmt: skip
    model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
    log = mm.collect(model, 1000, seed=0, horizon=5, keep_states=True)
    found = value(lambda seen: {"go": 0.7, "stay": 0.3}, log, method="dr", model=model)
    assert found.stderr == pytest.approx(0.0, abs=1e-12)
    assert "worth the same" in found.no_interval
    exact = mm.evaluate(lambda seen: {"go": 0.7, "stay": 0.3}, model, 20_000, 0, horizon=4)
    assert abs(found.mean - exact.mean) < 5 * exact.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"behaviour": np.full(5, 1 / 3)}, "behaviour must be a policy or an array of shape"),
        ({"behaviour": np.zeros(LOG.n_steps)}, "0 is no probability of what was done: episode 0, step 0"),
        ({"behaviour": np.full(LOG.n_steps, 1.5)}, "1.5 is no probability"),
        ({"behaviour": mm.BlindPolicy({"wait": 1.0})}, "probability 0 under behaviour: episode 0, step"),
        ({"behaviour": random_policy(ICU, 0)}, "would have done something else"),
        ({"policy": random_policy(mm.load_benchmark("example-3"), 0)}, "was made for the features"),
        ({"method": "magic"}, "method must be 'is', 'pdis', 'wis', 'wpdis', 'dr' or 'model'"),
        ({"folds": 1}, "folds must be an integer of at least 2"),
        ({"horizon": 0}, "horizon must be an integer of at least 1"),
        ({"model": "icu"}, "expected a MissMDP"),
        ({"log": "log.csv"}, "expected a Dataset"),
        ({"policy": 3}, "expected a policy"),
        ({"discount": 2}, "discount must be a number from 0 to 1"),
        ({"method": "dr", "model": mm.load_benchmark("example-3")}, "other features"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(mm.MissMDPError, match=message):
        value(**options)


def test_wrong_probabilities_are_noticed():
    """The mean weight is 1 only if the probabilities of what was done are right."""
    likely = np.where(LOG.actions == ICU.actions.index("test"), 0.4, 0.3)
    (warning,) = value(behaviour=likely).warnings
    assert "the mean weight at step 0 is" in warning
    assert "warning" in value(behaviour=likely).describe()
    assert value().warnings == value(behaviour=None).warnings == ()
    # What is never done cannot be told from a log.
    never = mm.collect(
        ICU, 6000, mm.BlindPolicy({"wait": 0.5, "test": 0.5}), seed=0, horizon=4, keep_states=True
    )
    assert "was done at times" in value(log=never, behaviour=None).warnings[0]


def test_a_log_without_decisions_is_refused():
    log = mm.Dataset(ICU.mdp, LOG.observations[:1], [NO_ACTION], [0, 1], [False], LOG.states[:1])
    with pytest.raises(mm.DataError, match="no decision"):
        value(log=log)


class Stubborn:
    """Draws one action per episode, and cannot be told that another was taken."""

    def agent(self, model=None, *, seed=None):
        return StubbornAgent(ICU.actions[int(np.random.default_rng(seed).integers(3))])


class StubbornAgent:
    def __init__(self, action):
        self.action = action

    def step(self, observation):
        return self.action

    reset = step


def test_agents_that_cannot_be_told_are_followed_up_to_the_first_disagreement():
    """One draw per episode stands for the policy: the estimate is unbiased over draws."""
    found = value(Stubborn(), method="pdis", progress=False)
    # 1/3 of the episodes agree at step 0, and 1/9 at steps 0 and 1.
    assert found.followed == pytest.approx((1 + 1 / 3 + 1 / 9) / 3, abs=0.02)
    exact = mm.evaluate(Stubborn(), ICU, 2000, seed=1, horizon=3)
    assert abs(found.mean - exact.mean) < 5 * math.hypot(found.stderr, exact.stderr)
    assert any("up to where it disagrees" in warning for warning in found.warnings)
    assert value(Stubborn(), method="pdis", progress=False, seed=1).mean != found.mean


class Told(Stubborn):
    """Says its probabilities, which depend on what was done before, and hears what was done."""

    def agent(self, model=None, *, seed=None):
        return ToldAgent()


class ToldAgent:
    last = None

    @property
    def probabilities(self):
        return {a: 0.6 if a == self.last else 0.2 for a in ICU.actions} if self.last else leaning(None)

    def step(self, observation):
        self.shown = self.last
        return "wait"

    reset = step

    def took(self, action):
        self.last = action


def test_agents_that_say_their_probabilities_are_asked_for_them():
    found = value(Told(), method="pdis", progress=False)
    expected = []
    for e in range(LOG.n_episodes):
        weight, total, last = 1.0, 0.0, None
        for t in range(3):
            row = int(LOG.offsets[e]) + t
            action = ICU.actions[LOG.actions[row]]
            p = leaning(None)[action] if last is None else (0.6 if action == last else 0.2)
            weight *= 3 * p
            total += 0.95**t * weight * LOG.rewards[row]
            # It hears only of what it had not returned itself.
            last = action if action != "wait" else last
        expected.append(total)
    assert found.terms == pytest.approx(expected)
    assert found.followed == 1.0
