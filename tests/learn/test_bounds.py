"""Bounds on M̂: the failure budget, consistency, validity by construction, and exact coverage by enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import missmdp as mm
from missmdp.data.counts import ObservationCounts
from missmdp.learn.limits import (
    clopper_pearson,
    divergence_interval,
    group_limits,
    mcdiarmid_radius,
    mixture_divergence,
    weissman_radius,
)
from oracles.logs import counts_of, dataset_of
from strategies import seeds

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

METHODS = ("auto", "okamoto", "clopper-pearson", "weissman", "anytime")
BEHAVIOURS = ("blind", "adaptive")


def free_mdp(features, *, initial=None, states=None, reach=None):
    """Return an MDP whose states are drawn afresh in every step, where only those in `reach` are drawn."""
    states = list(product(*features.values())) if states is None else states
    n = len(states)
    weights = np.array([1.0 if reach is None or s in reach else 0.0 for s in states])
    drawn = weights / weights.sum() if initial is None else np.asarray(initial)
    return mm.FactoredMDP(
        features, ["go"], [np.tile(drawn, (n, 1))], np.zeros((n, 1)), drawn, np.zeros(n, bool), 0.5, states=states
    )  # fmt: skip


@pytest.fixture(scope="module")
def ward():
    return free_mdp({"sex": ["f", "m"], "pulse": [0, 1, 2], "fever": [False, True]})


COUNTS = {
    ("f", 0, True): 210,
    ("f", 1, None): 90,
    ("f", 2, True): 40,
    ("f", None, True): 35,
    ("f", None, None): 20,
    ("m", 2, False): 150,
    ("m", 2, None): 80,
    ("m", 0, True): 33,
    ("m", None, False): 25,
}
"""395 rows of f, 288 of m."""


def failure_of(learner, mdp, counts, **options):
    """Return the budget of one group, read off a Clopper–Pearson or mixture interval by inversion."""
    bound = learner.fit(counts_of(mdp, counts)).bound(0.9, "clopper-pearson", behaviour="blind", **options)
    group = next(g for g in bound.per_group if g.samples > 0)
    k = round(group.estimate[0] * group.samples)
    # P(X ≤ k | n, upper) is half of the budget.
    return 2 * stats.binom.cdf(k, group.samples, group.upper[0]), bound


# The budget


def test_the_budget_is_split_over_groups_categories_and_what_the_data_decide(ward):
    exact = {"smoothing": 0.0, "always_observed": ["sex", "pulse", "fever"]}
    declared = {"smoothing": 0.0, "always_observed": ["sex"]}
    open_ = {"smoothing": 0.0}
    # Two groups, four patterns; nothing declared: one more category, and 2³ ways to decide.
    for parameters, expected in ((open_, 0.1 / (8 * 2 * 5)), (declared, 0.1 / (4 * 2 * 4))):
        failure, bound = failure_of(mm.AsMAR(**parameters), ward, COUNTS)
        assert failure == pytest.approx(expected, rel=1e-6)
        assert bound.n_groups == 2
    failure, bound = failure_of(mm.AMCAR(**open_), ward, COUNTS)
    assert failure == pytest.approx(0.1 / (8 * 1 * 5), rel=1e-6)
    assert bound.n_groups == 1
    # AIMI: 6 groups for sex (a sentinel), 4 for pulse, 6 for fever; binary, and the data decide nothing.
    failure, bound = failure_of(mm.AIMI(**open_), ward, COUNTS)
    assert failure == pytest.approx(0.1 / 16, rel=1e-6)
    assert bound.n_groups == 16
    failure, bound = failure_of(mm.AIMI(**declared), ward, COUNTS)
    assert failure == pytest.approx(0.1 / 10, rel=1e-6)
    # Simple MAR: by sex for pulse and fever, one group for sex itself; the data decide by what.
    failure, bound = failure_of(mm.AIMI(assume="simple MAR", **open_), ward, COUNTS)
    assert failure == pytest.approx(0.1 / (8 * 5), rel=1e-6)
    failure, bound = failure_of(mm.AIMI(assume="MCAR", **open_), ward, COUNTS)
    assert failure == pytest.approx(0.1 / 3, rel=1e-6)
    full = {z: c for z, c in COUNTS.items() if None not in z}
    assert mm.AsMAR(**exact).fit(counts_of(ward, full)).bound().tv == 0.0


def test_only_groups_with_reachable_states_share_the_budget():
    features = {"a": [0, 1, 2], "b": [0, 1]}
    mdp = free_mdp(features, reach={(0, 0), (0, 1), (1, 0), (1, 1)})
    counts = {(0, 0): 50, (0, None): 30, (1, 1): 40, (1, None): 70}
    bound = mm.AsMAR().fit(counts_of(mdp, counts)).bound()
    assert bound.n_groups == 2
    assert [g.given for g in bound.per_group] == [{"a": 0}, {"a": 1}]
    assert bound.per_state[4:].tolist() == bound.per_state_tv[4:].tolist() == [1.0, 1.0]
    assert bound.worst < 1.0


def test_unreachable_states_get_one_also_where_nothing_is_open():
    mdp = free_mdp({"a": [0, 1], "b": [0, 1]}, reach={(0, 0)})
    counts = counts_of(mdp, {(0, 0): 5})
    for learner in (mm.AIMI(always_observed=["a", "b"]), mm.AsMAR(always_observed=["a", "b"])):
        bound = learner.fit(counts).bound()
        assert bound.per_state.tolist() == bound.per_state_tv.tolist() == [0.0, 1.0, 1.0, 1.0]
        assert bound.worst == bound.tv == 0.0


def test_declaring_what_is_always_observed_tightens(ward):
    for make in (mm.AMCAR, mm.AsMAR, mm.AIMI):
        for method in METHODS:
            open_ = make().fit(counts_of(ward, COUNTS)).bound(method=method)
            declared = make(always_observed=["sex"]).fit(counts_of(ward, COUNTS)).bound(method=method)
            assert declared.tv <= open_.tv
            assert declared.worst <= open_.worst
            if method == "anytime":
                assert (declared.per_state_tv < open_.per_state_tv).all()


# Consistency


LEARNERS = {
    "amcar": mm.AMCAR,
    "asmar": mm.AsMAR,
    "asmar seen": lambda **k: mm.AsMAR(patterns="seen", **k),
    "aimi": mm.AIMI,
    "aimi blocks": lambda **k: mm.AIMI(blocks=[("pulse", "fever")], **k),
    "aimi simple MAR": lambda **k: mm.AIMI(assume="simple MAR", **k),
    "aimi MCAR": lambda **k: mm.AIMI(assume="MCAR", **k),
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LEARNERS)
def test_the_parts_of_a_bound_agree(ward, name, method, behaviour):
    learner = LEARNERS[name](smoothing=0.0).fit(counts_of(ward, COUNTS))
    bound = learner.bound(0.9, method, behaviour=behaviour)
    reachable = ward.reachable
    assert bound.worst == bound.per_state[reachable].max()
    assert bound.tv == bound.per_state_tv[reachable].max()
    assert (bound.per_state <= bound.per_state_tv).all()
    assert ((bound.per_state >= 0) & (bound.per_state_tv <= 1)).all()
    for group in bound.per_group:
        assert (group.lower <= group.estimate + 1e-12).all() or group.samples == 0
        assert (group.upper >= group.estimate - 1e-12).all()
        assert ((group.lower >= 0) & (group.upper <= 1)).all()
        assert group.radius <= group.tv + 1e-15
        assert group.patterns.shape == (len(group.estimate), len(group.features))
        assert group.estimate.sum() == pytest.approx(1.0)
    assert bound.weakest.tv == max(g.tv for g in bound.per_group)
    if not name.startswith("aimi"):
        assert bound.tv == pytest.approx(bound.weakest.tv)
        assert bound.worst == pytest.approx(max(g.radius for g in bound.per_group))
    assert f"{bound.tv:.3g}" in repr(bound)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LEARNERS)
def test_more_confidence_is_wider_and_more_data_tighter(ward, name, method, behaviour):
    little, much = (
        LEARNERS[name]().fit(counts_of(ward, {z: times * c for z, c in COUNTS.items()})) for times in (1, 10)
    )
    bounds = [little.bound(c, method, behaviour=behaviour) for c in (0.5, 0.9, 0.99, 0.999999)]
    for one, other in pairwise(bounds):
        assert (one.per_state_tv <= other.per_state_tv).all()
        assert (one.per_state <= other.per_state).all()
        assert one.tv < other.tv or one.tv == 1.0 or any(g.samples == 0 for g in one.per_group)
    more = much.bound(0.9, method, behaviour=behaviour)
    assert (more.per_state_tv <= bounds[1].per_state_tv + 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LEARNERS)
def test_adaptive_is_never_narrower_than_blind(ward, name, method):
    learner = LEARNERS[name]().fit(counts_of(ward, COUNTS))
    blind, adaptive = (learner.bound(0.9, method, behaviour=b) for b in BEHAVIOURS)
    assert (blind.per_state_tv <= adaptive.per_state_tv + 1e-15).all()
    assert (blind.per_state <= adaptive.per_state + 1e-15).all()


def test_adaptive_fixed_bounds_spend_their_budget_over_all_numbers(ward):
    """For n samples α/(n(n + 1)): over all n that adds up to α."""
    learner = mm.AMCAR(smoothing=0, always_observed=["sex"]).fit(counts_of(ward, COUNTS))
    group = learner.bound(0.9, "clopper-pearson", behaviour="adaptive").per_group[0]
    n = group.samples
    each = 0.1 / 4 / 4 / (n * (n + 1))
    lower, upper = clopper_pearson(np.round(group.estimate * n), n, each)
    assert (group.lower, group.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_auto_is_clopper_pearson_for_one_indicator_and_the_mixture_when_adaptive(ward):
    learner = mm.AIMI(smoothing=0).fit(counts_of(ward, COUNTS))
    auto, exact = (learner.bound(0.9, m, behaviour="blind") for m in ("auto", "clopper-pearson"))
    assert np.array_equal(auto.per_state_tv, exact.per_state_tv)
    auto, mixture = (learner.bound(0.9, m, behaviour="adaptive") for m in ("auto", "anytime"))
    assert np.array_equal(auto.per_state_tv, mixture.per_state_tv)
    group = next(g for g in mixture.per_group if g.samples > 20)
    counts = np.round(group.estimate * group.samples).astype(int)
    divergence = mixture_divergence(counts[None], 2, 0.1 / mixture.n_groups)
    lower, upper = divergence_interval(counts / group.samples, divergence)
    assert (group.lower, group.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_auto_spends_half_on_cells_and_half_on_the_whole(ward):
    """Several patterns: the tighter of Clopper–Pearson per cell and the TV radius, each with half of the budget."""
    learner = mm.AMCAR(smoothing=0, always_observed=["sex"]).fit(counts_of(ward, COUNTS))
    group = learner.bound(0.9, behaviour="blind").per_group[0]
    n, half = group.samples, 0.1 / 4 / 2
    radius = min(weissman_radius(n, 4, half), mcdiarmid_radius(n, 4, half))
    lower, upper = clopper_pearson(np.round(group.estimate * n), n, half / 4)
    assert group.lower == pytest.approx(np.maximum(lower, group.estimate - radius))
    assert group.upper == pytest.approx(np.minimum(upper, group.estimate + radius))
    boxed = np.maximum(group.estimate - lower, upper - group.estimate).sum() / 2
    assert group.tv == pytest.approx(
        min(radius, boxed, (group.estimate - lower).sum(), (upper - group.estimate).sum())
    )


def test_bounds_stay_useful_with_very_many_samples(ward):
    """A budget that is tiny compared with 1 is no budget of zero."""
    learner = mm.AMCAR().fit(counts_of(ward, {z: 10**7 * c for z, c in COUNTS.items()}))
    for method in METHODS:
        assert learner.bound(0.999, method, behaviour="adaptive").tv < 1e-3


@given(st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6))
def test_errors_of_independent_factors_add_up_at_most(values):
    """TV(Π p_i, Π q_i) ≤ 1 − Π (1 − |p_i − q_i|), which AIMI's bound rests on."""
    p, q = values[:3], values[3:]

    def chance(rates, pattern):
        return np.prod([rate if r else 1 - rate for rate, r in zip(rates, pattern, strict=True)])

    tv = 0.5 * sum(abs(chance(p, r) - chance(q, r)) for r in product((0, 1), repeat=3))
    assert tv <= 1 - np.prod([1 - abs(a - b) for a, b in zip(p, q, strict=True)]) + 1e-12


def test_aimi_puts_its_factors_together(ward):
    bound = mm.AIMI(smoothing=0).fit(counts_of(ward, COUNTS)).bound(0.9, behaviour="blind")
    for s, state in enumerate(ward.states):
        own = [g for g in bound.per_group if all(getattr(state, name) == v for name, v in g.given.items())]
        assert sorted(name for g in own for name in g.features) == ["fever", "pulse", "sex"]
        assert bound.per_state_tv[s] == pytest.approx(1 - np.prod([1 - g.tv for g in own]))
        assert bound.per_state_tv[s] <= sum(g.tv for g in own)


# What cannot be known


def test_groups_without_data_leave_the_bound_vacuous_and_are_named(ward):
    listed = {z: c for z, c in COUNTS.items() if z[0] == "f"}
    for method in METHODS:
        bound = mm.AsMAR(smoothing=0).fit(counts_of(ward, listed)).bound(method=method)
        assert bound.weakest.given == {"sex": "m"}
        assert bound.weakest.samples == 0
        # Four patterns and one more category, uniform over the four: the rest may be all there is.
        assert bound.tv == 1.0
        assert bound.worst == 1.0
        assert "No data at all: 1 group, about which nothing is known." in bound.describe()
        assert "sex = m" in str(bound)
    # Without that category any distribution over the four is still possible, up to 1 − ¼ away.
    declared = mm.AsMAR(smoothing=0, always_observed=["sex"]).fit(counts_of(ward, listed))
    for method in METHODS:
        assert declared.bound(method=method).tv >= 0.75


def test_sentences_say_what_is_claimed(ward):
    bound = mm.AsMAR().fit(counts_of(ward, COUNTS, "blind")).bound(0.9)
    text = bound.describe()
    for part in (
        "simple MAR",
        "0.9",
        f"{bound.tv:.3g}",
        "blind behaviour",
        "2 groups",
        "pulse, fever",
        "Known worst",
    ):
        assert part in text


# Arguments


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 95, -0.1, "0.95", None, True, float("nan")])
def test_confidence_is_between_zero_and_one(ward, confidence):
    with pytest.raises(mm.DataError, match="confidence must be a number between 0 and 1"):
        mm.AMCAR().fit(counts_of(ward, COUNTS)).bound(confidence)


@pytest.mark.parametrize("method", ["hoeffding", "", None, 3])
def test_methods_are_named(ward, method):
    with pytest.raises(
        mm.DataError, match="the methods are auto, okamoto, clopper-pearson, weissman, anytime"
    ):
        mm.AMCAR().fit(counts_of(ward, COUNTS)).bound(0.9, method)


def test_methods_may_be_written_as_people_write_them(ward):
    learner = mm.AMCAR().fit(counts_of(ward, COUNTS))
    for written in ("Clopper–Pearson", "clopper_pearson", "CLOPPER-PEARSON"):
        assert learner.bound(0.9, written).method == "clopper-pearson"
    assert learner.bound(0.9, "McDiarmid").tv == learner.bound(0.9, "weissman").tv


def test_behaviour_is_blind_or_adaptive(ward):
    with pytest.raises(mm.DataError, match="'blind' or 'adaptive', got 'fair'"):
        mm.AMCAR().fit(counts_of(ward, COUNTS)).bound(0.9, behaviour="fair")


def test_behaviour_is_what_the_data_say_of_themselves():
    model = mm.load_benchmark("icu-smar")
    uniform = mm.collect(model, 500, mm.UniformPolicy(), seed=0)
    reacting = mm.collect(model, 500, lambda z: "wait" if z.infection is None else "test", seed=0)
    rows = [tuple(z) for z, _ in uniform.episode(0)]
    by_hand = dataset_of(model.mdp, rows)
    one, other = (ObservationCounts.from_dataset(data) for data in (uniform, reacting))
    for data, expected in (
        (uniform, "blind"),
        (mm.collect(model, 500, mm.BlindPolicy({"wait": 1.0}), seed=0), "blind"),
        (reacting, "adaptive"),
        (by_hand, "adaptive"),
        (one, "blind"),
        (one + one, "blind"),
        (one + other, "adaptive"),
    ):
        learner = mm.AMCAR().fit(data)
        assert learner.bound().behaviour == expected
        for stated in BEHAVIOURS:
            assert learner.bound(behaviour=stated).behaviour == stated


# Validity


@st.composite
def limits_cases(draw):
    """Draw counts, a smoothed estimate, and how many categories are not listed."""
    rng = np.random.default_rng(draw(seeds()))
    k, extra = draw(st.integers(2, 5)), draw(st.integers(0, 3))
    n = draw(st.sampled_from([0, 1, 3, 10, 200, 10_000]))
    counts = rng.multinomial(n, rng.dirichlet(np.full(k, 0.5)))
    kappa = draw(st.sampled_from([0.0, 1e-3, 1.0, 50.0, 5e4]))
    if n + kappa == 0:
        kappa = 1.0
    return rng, counts, (counts + kappa) / (n + k * kappa), extra


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25)
@given(case=limits_cases())
def test_every_distribution_within_the_limits_is_within_the_radius(method, behaviour, case):
    """By construction, also where smoothing has moved the estimate: |M̂ − p| ≤ radius and TV(M̂, p) ≤ tv.

    For each p that the cell intervals and the ball around the frequencies allow, drawn towards their edges.
    """
    rng, counts, estimate, extra = case
    k, n = len(counts), counts.sum()
    limits = group_limits(counts[None], estimate[None], extra, 0.01, method, behaviour)
    radius, tv = limits.radius(estimate[None])[0], limits.tv[0]
    allowed = beside_the_box(counts, extra, 0.01, method, behaviour)
    within = 0
    for _ in range(40):
        low = np.append(limits.lower[0], np.zeros(extra))
        high = np.append(limits.upper[0], np.full(extra, limits.hidden[0]))
        p = np.where(rng.random(k + extra) < 0.5, low, high)
        p = low + (p - low) * rng.choice([1.0, 0.999, 0.5])
        p = put_to_one(p, low, high, rng)
        if p is None or not allowed(p):
            continue
        within += 1
        full = np.append(estimate, np.zeros(extra))
        assert np.abs(p - full).max() <= radius + 1e-9
        assert 0.5 * np.abs(p - full).sum() <= tv + 1e-9
    assert within or n > 0


def beside_the_box(counts, extra, failure, method, behaviour):
    """Return whether p is in the set that a method claims beside intervals for each category: a ball, or KL."""
    n, k = counts.sum(), len(counts) + extra
    frequency = np.append(counts, np.zeros(extra)) / max(n, 1)
    if method == "anytime" or (method == "auto" and behaviour == "adaptive"):
        divergence = mixture_divergence(counts[None], k, failure)[0]

        def within(p):
            with np.errstate(divide="ignore"):
                kl = sum(f * np.log(f / q) for f, q in zip(frequency, p, strict=True) if f > 0)
            return kl <= divergence

        return within
    if n == 0 or method in ("okamoto", "clopper-pearson") or (method == "auto" and k == 2):
        return lambda p: True
    budget = failure / (2 if method == "auto" else 1) / (n * (n + 1) if behaviour == "adaptive" else 1)
    radius = min(weissman_radius(n, k, budget), mcdiarmid_radius(n, k, budget))
    return lambda p: 0.5 * np.abs(p - frequency).sum() <= radius


def put_to_one(p, low, high, rng):
    """Move entries within their limits, in random order, until p sums to one; None if it cannot."""
    p = p.copy()
    for i in rng.permutation(len(p)):
        p[i] = np.clip(p[i] + 1.0 - p.sum(), low[i], high[i])
    return p if abs(p.sum() - 1.0) < 1e-9 else None


AIMI_VARIANTS = [
    mm.AIMI,
    lambda: mm.AIMI(smoothing=1.0),
    lambda: mm.AIMI(assume="MCAR"),
    lambda: mm.AIMI(blocks=[("a", "c")]),
]


@pytest.mark.parametrize("method", ["clopper-pearson", "weissman", "anytime"])
@pytest.mark.parametrize("variant", range(len(AIMI_VARIANTS)))
@settings(max_examples=20)
@given(seed=seeds(), n=st.sampled_from([1, 2, 3, 5, 10, 40]))
def test_every_choice_of_factors_within_their_intervals_is_within_aimis_bound(variant, method, seed, n):
    """M made of factors at the ends of the groups' intervals, those of features that were never missing included."""
    rng = np.random.default_rng(seed)
    mdp = free_mdp({"a": [0, 1], "b": [0, 1], "c": [0]})
    codes = np.array(list(product((0, 1), (0, 1), (0,))))[rng.integers(4, size=n)]
    hidden = rng.random((n, 3)) < rng.choice([0.0, 0.3, 0.9], size=3)
    listed = [
        tuple(None if h else int(v) for v, h in zip(*row, strict=True))
        for row in zip(codes, hidden, strict=True)
    ]
    learner = AIMI_VARIANTS[variant]().fit(dataset_of(mdp, listed))
    bound = learner.bound(0.6, method, behaviour="blind")
    for _ in range(8):
        # P(observed) of each factor; the first pattern is the one that shows it.
        chosen = [float(rng.choice([g.lower[0], g.upper[0]])) for g in bound.per_group]

        def truth(state, chosen=chosen):
            patterns = {(1, 1, 1): 1.0}
            for group, shown in zip(bound.per_group, chosen, strict=True):
                if any(getattr(state, name) != value for name, value in group.given.items()):
                    continue
                mask = [name not in group.features for name in mdp.features]
                lost = {
                    tuple(int(r and m) for r, m in zip(r, mask, strict=True)): p for r, p in patterns.items()
                }
                patterns = {r: p * shown for r, p in patterns.items()}
                for r, p in lost.items():
                    patterns[r] = patterns.get(r, 0.0) + p * (1 - shown)
            return patterns

        cells, tv = distances(learner.missingness_, mm.MissingnessFunction.from_patterns(mdp, truth))
        assert (cells <= bound.per_state + 1e-9).all()
        assert (tv <= bound.per_state_tv + 1e-9).all()


def compositions(n, k):
    """Yield every way to spread n over k places."""
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, k - 1):
            yield (first, *rest)


class Enumeration:
    """All logs of n rows of a model whose states are drawn afresh, up to order, and M̂ and bounds of each."""

    def __init__(self, mdp, n, make):
        self.mdp, self.n = mdp, n
        values = [(*v, None) for v in mdp.features.values()]
        self.rows = list(product(*values))
        self.counts = np.array(list(compositions(n, len(self.rows))))
        self.make = make
        self.learned, self.bounds = [], []
        for counts in self.counts:
            listed = {z: int(c) for z, c in zip(self.rows, counts, strict=True) if c}
            learner = make().fit(counts_of(mdp, listed))
            self.learned.append(learner.missingness_)
            self.bounds.append([learner.bound(0.8, m, behaviour=b) for m in METHODS for b in BEHAVIOURS])

    def coverage(self, M):
        """Return P(the bound holds for every reachable state) for each method and behaviour, two ways."""
        chance = np.array([self.mdp.initial @ M.likelihood(z) for z in self.rows])
        weight = stats.multinomial.pmf(self.counts, self.n, chance)
        assert weight.sum() == pytest.approx(1.0)
        held = np.zeros((2, len(METHODS) * len(BEHAVIOURS)))
        for w, learned, bounds in zip(weight, self.learned, self.bounds, strict=True):
            if w == 0.0:
                continue
            cells, tv = distances(learned, M)
            for j, bound in enumerate(bounds):
                held[0, j] += w * (cells <= bound.per_state + 1e-12).all()
                held[1, j] += w * (tv <= bound.per_state_tv + 1e-12).all()
        return held


def distances(learned, M):
    """Return the largest |M̂(z | s) − M(z | s)| and the total variation of every state."""
    keys = sorted({tuple(map(bool, r)) for f in (learned, M) for r in f.patterns})

    def table(f):
        index = {tuple(map(bool, r)): k for k, r in enumerate(f.patterns)}
        return np.stack(
            [f.probabilities[:, index[r]] if r in index else np.zeros(len(f.space)) for r in keys], axis=1
        )

    difference = np.abs(table(learned) - table(M))
    return difference.max(axis=1), 0.5 * difference.sum(axis=1)


def independent(mdp, a, b):
    return mm.MissingnessFunction.independent(mdp, {"a": a, "b": b})


ONE_STEP = {"a": [0, 1], "b": [0]}
"""Six observations; b has one value, so that all logs of a few rows can be listed."""

CASES = [
    # AMCAR: patterns of both features, dependent or not, common or rare.
    (mm.AMCAR, 4, [
        lambda mdp: mm.MissingnessFunction.from_patterns(mdp, lambda s: {(1, 1): 0.4, (0, 0): 0.6}),
        lambda mdp: mm.MissingnessFunction.from_patterns(
            mdp, lambda s: {(1, 1): 0.7, (1, 0): 0.1, (0, 1): 0.05, (0, 0): 0.15}
        ),
        lambda mdp: independent(mdp, 0.0, 0.03),
    ]),
    # AsMAR: b by the value of a; and a model in which a may go missing after all, though few logs show it.
    (mm.AsMAR, 4, [
        lambda mdp: independent(mdp, 0.0, lambda s: [0.3, 0.9][s.a]),
        lambda mdp: independent(mdp, 0.0, lambda s: [0.0, 0.5][s.a]),
        lambda mdp: independent(mdp, 0.05, 0.4),
        lambda mdp: independent(mdp, 0.2, 0.2),
    ]),
    (mm.AIMI, 3, [
        lambda mdp: independent(mdp, 0.2, lambda s: [0.3, 0.9][s.a]),
        lambda mdp: independent(mdp, 0.0, lambda s: [0.05, 0.5][s.a]),
        lambda mdp: independent(mdp, 0.6, 0.4),
    ]),
    (lambda: mm.AIMI(assume="simple MAR", smoothing=0.3), 3, [
        lambda mdp: independent(mdp, 0.0, lambda s: [0.3, 0.9][s.a]),
        lambda mdp: independent(mdp, 0.1, 0.4),
    ]),
    (lambda: mm.AsMAR(smoothing=1.0, patterns="seen"), 3, [
        lambda mdp: independent(mdp, 0.0, lambda s: [0.3, 0.9][s.a]),
        lambda mdp: independent(mdp, 0.3, 0.3),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_exact_coverage_over_all_small_logs(case):
    """Every log of n rows with its probability: P(the bound holds) is never below the confidence of 0.8."""
    make, n, truths = CASES[case]
    mdp = free_mdp(ONE_STEP, initial=[0.3, 0.7])
    everything = Enumeration(mdp, n, make)
    for truth in truths:
        assert everything.coverage(truth(mdp)).min() >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
def test_exact_coverage_over_all_longer_logs(case):
    """The same for twice as many rows, up to eight."""
    make, n, truths = CASES[case]
    mdp = free_mdp(ONE_STEP, initial=[0.3, 0.7])
    everything = Enumeration(mdp, 2 * n, make)
    for truth in truths:
        assert everything.coverage(truth(mdp)).min() >= 0.8


def stopped_badly(p, horizon, outside):
    """Return P(outside) for an adversary who stops as soon as the interval misses p, or at the horizon."""
    inside, lost = {0: 1.0}, 0.0
    for n in range(1, horizon + 1):
        reached: dict[int, float] = {}
        for k, weight in inside.items():
            reached[k] = reached.get(k, 0.0) + weight * (1 - p)
            reached[k + 1] = reached.get(k + 1, 0.0) + weight * p
        missed = {k: outside(k, n) for k in reached}
        lost += sum(weight for k, weight in reached.items() if missed[k])
        inside = {k: weight for k, weight in reached.items() if not missed[k]}
    return lost


@pytest.mark.parametrize("method", METHODS)
def test_adaptive_bounds_survive_an_adversary_who_stops_when_it_suits(method):
    """Behaviour that leaves a group for good once its frequency is off: exact, over all paths of 40 rows."""
    p, confidence = 0.4, 0.8
    mdp = free_mdp({"a": [0]})
    truth = mm.MissingnessFunction.independent(mdp, {"a": p})

    def outside(behaviour):
        def check(k, n):
            counts = counts_of(mdp, {z: c for z, c in (((None,), k), ((0,), n - k)) if c})
            learner = mm.AMCAR(smoothing=0.0).fit(counts)
            cells, _ = distances(learner.missingness_, truth)
            return bool(cells[0] > learner.bound(confidence, method, behaviour=behaviour).worst + 1e-12)

        return check

    assert stopped_badly(p, 40, outside("adaptive")) <= 1 - confidence


def test_blind_bounds_do_not_survive_that_adversary():
    p, mdp = 0.4, free_mdp({"a": [0]})

    def outside(k, n):
        lower, upper = clopper_pearson(k, n, 0.2)
        return not lower <= p <= upper

    assert mdp.n_states == 1
    assert stopped_badly(p, 200, outside) > 0.2


def many_gaps(count):
    """Two states that `count` features show, each of which goes missing on its own."""
    mdp = mm.FactoredMDP(
        features={"seen": range(2), **{f"f{i}": range(2) for i in range(count)}},
        actions=["wait"],
        transition=lambda s, _: {tuple(s): 0.7, tuple(1 - value for value in s): 0.3},
        reward=0.0,
        initial={(0,) * (count + 1): 1.0},
    )
    return mm.MissMDP(
        mdp, mm.MissingnessFunction.independent(mdp, {f"f{i}": 0.02 + 0.01 * i for i in range(count)})
    )


@pytest.mark.parametrize("count", [9, 10, 12, 16])
@pytest.mark.parametrize("behaviour", ["blind", "adaptive"])
def test_bounds_with_many_features_that_go_missing(count, behaviour):
    """2¹⁶ patterns and no overflow; the bound holds (with probability 0.95), listed patterns or all."""
    truth = many_gaps(count)
    log = mm.collect(truth, 500, seed=0)
    for learner in (mm.AsMAR(), mm.AMCAR(), mm.AsMAR(patterns="seen"), mm.AIMI()):
        fitted = learner.fit(log)
        bound = fitted.bound(behaviour=behaviour)
        apart = mm.total_variation(fitted.missingness_, truth)
        assert apart.worst <= bound.tv <= 1.0
        assert bound.worst <= bound.tv


@pytest.mark.parametrize(("learner", "count"), [("icin", 15), ("em", 12)])
def test_too_many_features_that_go_missing_are_refused_in_words(learner, count, monkeypatch):
    monkeypatch.setattr("missmdp.learn.em.search._MOST_BYTES", 1e6)
    truth = many_gaps(count)
    log = mm.collect(truth, 3000, seed=0)
    make = {"icin": mm.ICIN, "em": lambda: mm.DynamicsEM(truth.mdp)}[learner]
    with pytest.raises(mm.DataError, match=f"{count} features or blocks go missing on their own"):
        make().fit(log)
