"""How many histories are enough: the distribution of visits by enumeration, and whether the promise is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from large_models import treat_all_as_large
from missmdp.benchmarks.fleet import fleet
from missmdp.learn import histories_needed as planning
from missmdp.learn import visits
from missmdp.learn.histories_needed import _with_actions
from missmdp.learn.limits import group_limits, okamoto_radius
from missmdp.model.policy import ActionTable, as_policy
from oracles.histories import all_histories
from oracles.logs import dataset_of

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

METHODS = ("auto", "okamoto", "clopper-pearson", "weissman", "anytime")


def ward(*, pulse=0.4, site=0.0, rare=0.3, terminal=(), fever=None):
    """Return a model of three features and two actions: "visit" changes the site, "wait" hardly."""
    mdp = mm.FactoredMDP(
        features={"site": ["home", "icu"], "pulse": [0, 1]},
        actions=["wait", "visit"],
        transition=lambda s, a: {
            ("icu", s.pulse): rare if a == "visit" else 0.1 * rare,
            ("home", 1 - s.pulse): 1.0 - (rare if a == "visit" else 0.1 * rare),
        },
        reward=0.0,
        initial={("home", 0): 0.75, ("home", 1): 0.25},
        terminal=terminal,
        discount=0.5,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"pulse": pulse, "site": site}))


def by_site(state):
    return 0.4 if state.site == "home" else 0.15


POLICIES = {
    "uniform": (None, lambda z: {"wait": 0.5, "visit": 0.5}),
    "blind": (mm.BlindPolicy({"visit": 0.9, "wait": 0.1}), lambda z: {"visit": 0.9, "wait": 0.1}),
    "reacts": (
        lambda z: "visit" if z.pulse is None else {"wait": 0.75, "visit": 0.25},
        lambda z: {"visit": 1.0} if z.pulse is None else {"wait": 0.75, "visit": 0.25},
    ),
}
TERMINAL = {"no end": (), "an end": [("icu", 1)]}


def visits_of_groups(model, learner, policy, horizon):
    groups, _, length = planning._groups(
        model, learner, as_policy(policy), 0.2, 0.9, "auto", horizon, total_variation=False
    )
    return groups, length


def counts_for(group, state, z):
    """Return whether an observation made in a state is a sample of a group, from the definition."""
    names = list(state._fields) if hasattr(state, "_fields") else ["site", "pulse"]
    if group.to_appear:
        return all(z[i] is None for i in range(len(names)) if group.counter.features[i])
    shown = all(z[i] is not None for i in range(len(names)) if group.counter.given[i])
    return shown and all(state[names.index(name)] == value for name, value in group.given.items())


@pytest.mark.parametrize("terminal", TERMINAL)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("learner", [mm.AsMAR(), mm.AMCAR(), mm.AIMI(), mm.AIMI(assume="simple MAR")])
def test_visits_are_those_of_all_histories(policy, learner, terminal):
    """E[(1 − lost)ᴺ] and E[N], summed over every history of three observations."""
    given, act = POLICIES[policy]
    model = ward(pulse=by_site, site=0.2 if type(learner) is mm.AIMI else 0.0, terminal=TERMINAL[terminal])
    horizon = 3
    groups, length = visits_of_groups(model, learner, given, horizon)
    histories = list(all_histories(model, act, horizon))
    assert sum(p for _, p in histories) == pytest.approx(1.0)
    assert sum(len(h) * p for h, p in histories) == pytest.approx(length)
    acting = visits.acting_probabilities(model, as_policy(given))
    assert groups
    for group in groups:
        n = np.array([sum(counts_for(group, s, z) for s, z in h) for h, _ in histories])
        weight = np.array([p for _, p in histories])
        assert group.expected == pytest.approx(float(weight @ n))
        for lost in (1e-9, 0.3, 1.0):
            complement = visits.mgf_complement(model.mdp, acting, [group], np.array([lost]), horizon)[0]
            expected = math.fsum(
                weight * -np.expm1(n * np.log1p(-lost) if lost < 1 else np.where(n > 0, -np.inf, 0.0))
            )
            assert complement == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15])
def test_groups_that_are_hardly_ever_visited_are_not_rounded_away(rare):
    """The number of histories grows as visits become rare, also where 1 − E[…] is below the rounding of 1."""
    needed = mm.histories_needed(ward(rare=rare), 0.2, 0.9, horizon=3)
    assert needed.given == {"site": "icu"}
    assert needed.expected == pytest.approx(2 * 0.55 * rare, rel=0.01)
    assert needed > needed.samples / needed.expected
    assert needed < 2.0 * needed.samples / needed.expected


# How many samples


@pytest.mark.parametrize("behaviour", ["blind", "adaptive"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.3, 0.1])
def test_enough_samples_are_enough_whatever_is_counted(method, behaviour, epsilon):
    """For every outcome of n and of some more samples the bound is at most ε; with a tenth fewer it is not."""

    def widest(n):
        counts = np.column_stack([np.arange(n + 1), n - np.arange(n + 1)])
        limits = group_limits(counts, counts / n, 0, 0.01, method, behaviour)
        return limits.radius(counts / n).max()

    n = planning._needed(
        2, 0, epsilon, 0.01, method, behaviour, 0.0, never_missing=False, total_variation=False
    )
    for more in (0, 1, 2, 5, n // 2, n):
        assert widest(n + more) <= epsilon * (1 + 1e-4)
    assert widest(int(0.9 * n)) > epsilon


@pytest.mark.parametrize("total_variation", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_enough_samples_are_enough_over_several_patterns(method, total_variation):
    """The same over three patterns and a hidden category, every outcome."""
    epsilon = 0.42
    n = planning._needed(
        3, 1, epsilon, 0.05, method, "blind", 0.0, never_missing=False, total_variation=total_variation
    )
    counts = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    limits = group_limits(counts, counts / n, 1, 0.05, method, "blind")
    width = limits.tv if total_variation else limits.radius(counts / n)
    assert width.max() <= epsilon * 1.001


@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 5.0])
def test_smoothing_is_paid_for(smoothing):
    n = planning._needed(
        2, 0, 0.1, 0.01, "auto", "blind", smoothing, never_missing=False, total_variation=False
    )
    counts = np.column_stack([np.arange(n + 1), n - np.arange(n + 1)])
    estimate = (counts + smoothing) / (n + 2 * smoothing)
    limits = group_limits(counts, estimate, 0, 0.01, "auto", "blind")
    assert limits.radius(estimate).max() <= 0.1 * (1 + 1e-4)


# How many histories


def test_more_precision_and_more_confidence_need_more():
    model = ward(pulse=by_site)
    by_epsilon = [int(mm.histories_needed(model, e, 0.9)) for e in (0.4, 0.2, 0.1, 0.05)]
    by_confidence = [int(mm.histories_needed(model, 0.1, c)) for c in (0.5, 0.9, 0.99, 0.999999)]
    for row in (by_epsilon, by_confidence):
        assert row == sorted(set(row))
    assert mm.histories_needed(model, 0.1, total_variation=True) >= mm.histories_needed(model, 0.1)
    assert mm.histories_needed(model, 0.1, method="okamoto") > mm.histories_needed(model, 0.1)


@pytest.mark.parametrize("learner", [mm.AMCAR(), mm.AsMAR(), mm.AIMI(), mm.AIMI(assume="simple MAR")])
def test_luck_with_visits_is_paid_for(learner):
    """More than the mean number of visits asks for, of course; what it says of itself is consistent."""
    needed = mm.histories_needed(ward(pulse=by_site), 0.1, 0.95, learner=learner, horizon=5)
    assert needed.histories == int(needed)
    assert needed * needed.expected > needed.samples
    assert needed.steps == pytest.approx(5 * int(needed))
    assert f"{int(needed):,} histories" in needed.describe()
    assert f"{needed.samples:,}" in needed.describe()


def test_policies_that_may_react_are_planned_for_as_such():
    """The same behaviour, but told as a function of the observation: bounds must hold for every number of samples."""
    model = ward(pulse=by_site)
    blind = mm.histories_needed(model, 0.1)
    reacts = mm.histories_needed(model, 0.1, policy=lambda z: {"wait": 0.5, "visit": 0.5})
    assert reacts.samples > blind.samples
    assert reacts.samples == mm.histories_needed(model, 0.1, method="anytime").samples
    assert reacts.expected == pytest.approx(blind.expected)


def test_independent_factors_share_epsilon():
    """Two indicators with errors e each: 1 − (1 − e)² ≤ ε."""
    model = ward(pulse=0.3, site=0.3)
    needed = mm.histories_needed(model, 0.1, 0.9, learner=mm.AIMI(assume="MCAR", smoothing=0.0))
    counts = np.column_stack([np.arange(needed.samples + 1), needed.samples - np.arange(needed.samples + 1)])
    limits = group_limits(counts, counts / needed.samples, 0, 0.05 / 2, "auto", "blind")
    widest = limits.tv.max()
    assert 0.099 < 1 - (1 - widest) ** 2 <= 0.1 * (1 + 1e-4)


def test_one_sample_per_history_needs_more():
    """The paper's argument: a history counts at most once, each with P(visit), by Chernoff's bound for a binomial."""
    model = ward(pulse=by_site)
    horizon, failure = 30, 0.05
    needed = mm.histories_needed(model, 0.1, 1 - failure, horizon=horizon)
    groups, _ = visits_of_groups(model, mm.AsMAR(), None, horizon)
    group = next(g for g in groups if g.given == needed.given)
    acting = visits.acting_probabilities(model, mm.UniformPolicy())
    visit = float(visits.mgf_complement(model.mdp, acting, [group], np.ones(1), horizon)[0])
    papers = needed.samples
    while stats.binom.cdf(needed.samples - 1, papers, visit) > failure:
        papers += 1
    assert needed < papers / 3


def test_nothing_needs_nothing():
    model = ward(pulse=0.0)
    declared = mm.AsMAR(always_observed=["site", "pulse"])
    assert mm.histories_needed(model, 0.1, learner=declared) == 0
    # Not declared, it takes data to be sure that nothing goes missing.
    assert mm.histories_needed(model, 0.1) > 0


def test_a_feature_must_be_seen_to_go_missing_before_it_can_be_pooled_over():
    """Site hardly ever goes missing: until it does, AsMAR counts by site, and the icu is hardly ever visited."""
    model = ward(site=1e-3, rare=0.01)
    asmar, amcar = (mm.histories_needed(model, 0.2, 0.9, learner=make()) for make in (mm.AsMAR, mm.AMCAR))
    assert asmar.to_appear
    assert asmar.features == ("site",)
    assert "must go missing once" in asmar.describe()
    # (1 − P(it shows))ⁿ is at most the part of the budget that visits leave it: one group, and two to appear.
    missing = 1 - (1 - 1e-3) ** model.mdp.horizon()
    assert asmar == math.ceil(math.log(0.05 / 3) / math.log1p(-missing))
    assert not amcar.to_appear
    assert amcar < asmar
    assert not mm.histories_needed(model, 0.2, 0.9, learner=mm.AsMAR(ignore=["site"])).to_appear


def learn(model, learner, histories, policy, horizon, seed):
    """Return M̂ from a number of whole histories."""
    data = mm.collect(model, histories * horizon, policy, seed=seed, horizon=horizon)
    assert data.n_episodes >= histories
    rows = data.observations[: data.offsets[histories]]
    shown = [model.space.features.decode_observation(row) for row in rows]
    return learner.fit(dataset_of(model.mdp, shown)).missingness_


PROMISES = [
    ("asmar", mm.AsMAR, {"pulse": by_site}, None),
    ("amcar", mm.AMCAR, {"pulse": 0.3}, None),
    ("amcar okamoto", mm.AMCAR, {"pulse": 0.5}, None),
    ("aimi", mm.AIMI, {"pulse": by_site, "site": 0.2}, None),
    ("asmar reacts", mm.AsMAR, {"pulse": by_site}, POLICIES["reacts"][0]),
    ("asmar end", mm.AsMAR, {"pulse": by_site, "terminal": [("icu", 1)]}, None),
    ("asmar appears", mm.AsMAR, {"pulse": 0.5, "site": 0.02, "rare": 0.02}, None),
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: p[0])
def test_the_promise_is_kept(promise):
    """n* histories, 60 times: |M̂ − M| ≤ ε at least δ of the time.

    If the promise holds, the one-sided binomial test rejects with probability at most 1e-3; the seeds are fixed.
    """
    name, make, parameters, policy = promise
    model, horizon, confidence = ward(**parameters), 6, 0.8
    needed = mm.histories_needed(
        model, 0.2, confidence, learner=make(), policy=policy, horizon=horizon,
        method="okamoto" if "okamoto" in name else "auto",
    )  # fmt: skip
    kept = 0
    for seed in range(60):
        learned = learn(model, make(), int(needed), policy, horizon, seed)
        far = [
            abs(learned.probability(z, s) - model.missingness.probability(z, s))
            for s in model.states
            for z in {*learned.distribution(s), *model.missingness.distribution(s)}
        ]
        kept += max(far) <= 0.2
    assert stats.binomtest(kept, 60, confidence, alternative="less").pvalue > 1e-3


# Errors


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epsilon": 0.0}, mm.DataError, "epsilon must be a number between 0 and 1"),
        ({"epsilon": 1.0}, mm.DataError, "epsilon"),
        ({"epsilon": True}, mm.DataError, "epsilon"),
        ({"epsilon": "0.1"}, mm.DataError, "epsilon"),
        ({"confidence": 1}, mm.DataError, "confidence"),
        ({"method": "guess"}, mm.DataError, "the methods are"),
        ({"horizon": 0}, mm.DataError, "horizon"),
        ({"learner": mm.AsMAR(smoothing=-1)}, mm.DataError, "smoothing"),
        ({"learner": mm.AsMAR(ignore=["age"])}, mm.DataError, "age"),
        ({"policy": 3}, mm.ModelError, "policy"),
        ({"learner": mm.AsMAR}, mm.DataError, r"such as AsMAR\(\)"),
        ({"learner": "AsMAR"}, mm.DataError, "learner must be a learner"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        mm.histories_needed(ward(), **options)


def test_policies_with_memory_are_refused():
    class Remembers:
        def agent(self, model=None, *, seed=None):
            return self

        def reset(self, observation):
            return "wait"

        step = reset

    with pytest.raises(mm.DataError, match="without memory"):
        mm.histories_needed(ward(), policy=Remembers())


def test_a_policy_that_never_gets_there_is_refused():
    mdp = mm.FactoredMDP(
        features={"site": ["home", "icu"], "pulse": [0, 1]},
        actions=["wait", "visit"],
        transition=lambda s, a: {("icu" if a == "visit" else s.site, s.pulse): 1.0},
        reward=0.0,
        initial={("home", 0): 0.5, ("home", 1): 0.5},
        discount=0.5,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"pulse": 0.3}))
    with pytest.raises(mm.DataError, match="nothing is ever learned of pulse at site = icu"):
        mm.histories_needed(model, policy=mm.BlindPolicy({"wait": 1.0}))
    with pytest.raises(mm.DataError, match="site = icu"):
        mm.histories_needed(model, horizon=1)
    assert mm.histories_needed(model, learner=mm.AMCAR(), policy=mm.BlindPolicy({"wait": 1.0})) > 0


def test_what_can_never_be_shown_is_refused():
    """AIMI by pulse, which is always missing: against positivity."""
    model = ward(pulse=1.0, site=0.3)
    with pytest.raises(mm.DataError, match="nothing is ever learned of site at pulse = 0"):
        mm.histories_needed(model, learner=mm.AIMI())


def test_okamoto_plans_with_the_papers_formula():
    """One indicator, one group: n ≥ ln(2 / (1 − δ)) / 2ε² samples, with the failure budget of estimation."""
    model = ward(pulse=0.3)
    learner = mm.AMCAR(smoothing=0.0, always_observed=["site"])
    needed = mm.histories_needed(model, 0.1, 0.9, learner=learner, method="okamoto")
    assert needed.samples == pytest.approx(math.log(2 / (0.05 / 2)) / (2 * 0.1**2), abs=2)
    assert okamoto_radius(needed.samples, 0.05 / 2) <= 0.1


def test_what_is_declared_must_be_so_in_the_model():
    model = mm.load_benchmark("icu-smar")
    with pytest.raises(mm.DataError, match="'infection' is declared always observed, but it goes missing$"):
        mm.histories_needed(model, 0.2, 0.9, learner=mm.AsMAR(always_observed=["infection"]))
    graph = mm.MissingnessGraph([("temperature", "heart_rate")], features=list(model.features))
    with pytest.raises(mm.DataError, match="'infection' goes missing, but the m-graph has no indicator"):
        mm.histories_needed(model, 0.2, 0.9, learner=mm.AIMI(graph=graph))


def test_too_many_patterns_are_refused_before_memory_is():
    names = [f"f{i}" for i in range(14)]
    mdp = mm.FactoredMDP(
        {name: [0] for name in names}, ["go"], lambda s, a: {s: 1.0}, 0.0, {(0,) * 14: 1.0}, discount=0.9
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.blocks(mdp, {tuple(names): 0.5}))
    with pytest.raises(mm.DataError, match="16,384 patterns"):
        mm.histories_needed(model, 0.2, 0.9, learner=mm.AMCAR())
    assert mm.histories_needed(model, 0.2, 0.9, learner=mm.AIMI(blocks=[names])) > 0


@pytest.mark.parametrize("learner", [mm.AsMAR, lambda: mm.AIMI(assume="simple MAR")])
def test_visits_are_worked_out_on_the_features_that_they_depend_on(learner, monkeypatch):
    model = mm.load_benchmark("fleet-3")
    sizes = []
    complement = visits.mgf_complement

    def noted(mdp, *arguments):
        sizes.append(mdp.n_states)
        return complement(mdp, *arguments)

    monkeypatch.setattr(visits, "mgf_complement", noted)
    found = mm.histories_needed(model, 0.1, learner=learner(), horizon=20)
    assert set(sizes) == {2}  # the load decides, and moves on its own
    monkeypatch.setattr(visits, "_projected", lambda mdp, acting, batch: (mdp, acting, batch))
    whole = mm.histories_needed(model, 0.1, learner=learner(), horizon=20)
    assert sizes[-1] == model.n_states
    # Both loads are equally likely: which one decides is up to rounding.
    assert (int(found), found.samples) == (int(whole), whole.samples)


def test_visits_that_would_take_too_long_are_refused(monkeypatch):
    monkeypatch.setattr(visits, "_MOST_WORK", 0.0)
    with pytest.raises(mm.ModelError, match="would take about 1 minute; give a shorter horizon"):
        mm.histories_needed(mm.load_benchmark("example-2-smar"))


def test_too_many_patterns_are_refused_before_a_table_of_them_is_made(monkeypatch):
    treat_all_as_large(monkeypatch)
    monkeypatch.setattr("missmdp.learn.histories_needed._MOST_PATTERNS", 4)
    model = fleet(3)
    with pytest.raises(mm.DataError, match=r"3 features go missing, which makes 8 patterns.*AIMI"):
        mm.histories_needed(model)
    assert "probabilities" not in vars(model.missingness)


def test_counts_with_actions_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    weights = rng.random((5, 4))
    for rows in (1, 3):
        table = ActionTable(rng.integers(0, rows, (5, 4)).astype(np.int32), rng.dirichlet(np.ones(2), rows))
        expected = np.einsum("sk,ska->sa", weights, table.probabilities[table.row])
        np.testing.assert_allclose(_with_actions(weights, table), expected, rtol=1e-12)
