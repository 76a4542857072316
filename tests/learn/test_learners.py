"""AMCAR, AsMAR and AIMI against the paper's equations, closed forms, and what users may give wrongly."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from missmdp.data.counts import ObservationCounts
from oracles import learners as paper
from oracles.definitions import reachable_states
from oracles.logs import counts_of, dataset_of
from strategies import missmdps, rows, seeds

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")

SMOOTHINGS = (0.0, 1e-3, 0.5, 3)
UNSEEN = ("uniform", "pooled")


@st.composite
def logs(draw, max_rows=25):
    """Draw a tiny miss-MDP and rows of it: observations of its states, and now and then something foreign."""
    model = draw(missmdps())
    rng = np.random.default_rng(draw(seeds()))
    states = rng.integers(len(model.states), size=draw(st.integers(1, max_rows)))
    listed = [tuple(z) for z in model.missingness.sample([model.states[s] for s in states], rng)]
    foreign = draw(st.lists(rows(model.space.features, missing=True), max_size=2))
    return model, listed + foreign


def check_against(learner, model, listed, expected):
    """Compare M̂ of every reachable state and every observation with a dict."""
    learner.fit(dataset_of(model.mdp, listed))
    table = learner.missingness_.probabilities
    assert np.isfinite(table).all()
    assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), abs=1e-12)
    for state in reachable_states(model.mdp):
        got = {tuple(z): p for z, p in learner.missingness_.distribution(state).items()}
        assert got.keys() == expected[state].keys()
        assert got == pytest.approx(expected[state], rel=0.0, abs=1e-12)


def plain_states(model):
    return [tuple(s) for s in model.states]


@given(logs(), st.sampled_from(SMOOTHINGS), st.sampled_from(UNSEEN), st.booleans())
def test_amcar_is_the_papers(log, smoothing, unseen, only_seen):
    model, listed = log
    expected = paper.asmar(
        listed, plain_states(model), kappa=smoothing, by_state=False, unseen=unseen, only_seen=only_seen
    )
    learner = mm.AMCAR(smoothing=smoothing, unseen=unseen, patterns="seen" if only_seen else "all")
    check_against(learner, model, listed, expected)


@given(logs(), st.sampled_from(SMOOTHINGS), st.sampled_from(UNSEEN), st.booleans(), st.data())
def test_asmar_is_the_papers(log, smoothing, unseen, only_seen, data):
    model, listed = log
    names = model.space.features.names
    ignore = data.draw(st.sets(st.sampled_from(range(len(names)))))
    expected = paper.asmar(
        listed, plain_states(model), kappa=smoothing, ignore=ignore, unseen=unseen, only_seen=only_seen
    )
    learner = mm.AsMAR(
        smoothing=smoothing,
        unseen=unseen,
        ignore=[names[i] for i in sorted(ignore)],
        patterns="seen" if only_seen else "all",
    )
    check_against(learner, model, listed, expected)


def random_blocks(data, names):
    """Draw a partition of the features, in any order, singletons named or not."""
    label = data.draw(st.lists(st.integers(0, 2), min_size=len(names), max_size=len(names)))
    blocks = [[i for i, own in enumerate(label) if own == b] for b in sorted(set(label))]
    blocks = [block for block in blocks if len(block) > 1 or data.draw(st.booleans())]
    return data.draw(st.permutations([data.draw(st.permutations(block)) for block in blocks]))


@given(
    logs(),
    st.sampled_from(SMOOTHINGS),
    st.sampled_from(UNSEEN),
    st.sampled_from([None, "simple MAR", "MCAR"]),
    st.data(),
)
def test_aimi_is_the_papers(log, smoothing, unseen, assume, data):
    model, listed = log
    names = model.space.features.names
    blocks = random_blocks(data, names)
    expected = paper.aimi(
        listed, plain_states(model), kappa=smoothing, blocks=blocks, assume=assume, unseen=unseen
    )
    learner = mm.AIMI(
        smoothing=smoothing,
        unseen=unseen,
        assume=assume,
        blocks=[tuple(names[i] for i in block) for block in blocks],
    )
    check_against(learner, model, listed, expected)


@given(logs(), st.sampled_from(SMOOTHINGS), st.sampled_from(UNSEEN), st.data())
def test_aimi_with_an_m_graph_counts_by_the_parents_only(log, smoothing, unseen, data):
    model, listed = log
    names = model.space.features.names
    n = len(names)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    edges = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    graph = mm.MissingnessGraph(
        [(names[a], names[b]) for a, b in sorted(edges)], features=names, can_go_missing=names
    )
    parents = {i: {a for a, b in edges if b == i} for i in range(n)}
    expected = paper.aimi(listed, plain_states(model), kappa=smoothing, parents=parents, unseen=unseen)
    check_against(mm.AIMI(graph=graph, smoothing=smoothing, unseen=unseen), model, listed, expected)


LEARNERS = {
    "amcar": mm.AMCAR,
    "asmar": mm.AsMAR,
    "aimi": mm.AIMI,
    "aimi simple MAR": lambda: mm.AIMI(assume="simple MAR"),
    "aimi pooled": lambda: mm.AIMI(unseen="pooled", smoothing=0.0),
}


@pytest.mark.parametrize("name", LEARNERS)
@given(log=logs(), cut=st.integers(0, 25), seed=seeds())
def test_counts_are_all_that_matters(name, log, cut, seed):
    """Rows in any order, in one log or in two, as data or as counts: the same M̂, bit for bit."""
    model, listed = log
    whole = dataset_of(model.mdp, listed)
    learned = LEARNERS[name]().fit(whole).missingness_
    counts = ObservationCounts.from_dataset(whole)
    assert LEARNERS[name]().fit(counts).missingness_ == learned
    shuffled = [listed[i] for i in np.random.default_rng(seed).permutation(len(listed))]
    assert LEARNERS[name]().fit(dataset_of(model.mdp, shuffled)).missingness_ == learned
    if 0 < cut < len(listed):
        parts = [
            ObservationCounts.from_dataset(dataset_of(model.mdp, p)) for p in (listed[:cut], listed[cut:])
        ]
        assert parts[0] + parts[1] == sum(parts) == counts
        assert LEARNERS[name]().fit(parts[0] + parts[1]).missingness_ == learned


@given(logs(), st.sampled_from(SMOOTHINGS), st.sampled_from([None, "simple MAR", "MCAR"]))
def test_unseen_lists_the_groups_without_data_and_nothing_else(log, smoothing, assume):
    model, listed = log
    states, n = sorted(reachable_states(model.mdp), key=repr), len(model.mdp.features)
    dataset = dataset_of(model.mdp, listed)
    asmar, aimi = mm.AsMAR(smoothing=smoothing), mm.AIMI(smoothing=smoothing, assume=assume, unseen="pooled")
    asmar.fit(dataset), aimi.fit(dataset)
    given = paper.joint_groups(listed, n, by_state=True)
    assert {tuple(u.given.values()) for u in asmar.unseen_} == paper.groups_without_data(
        listed, states, given
    )
    for i, name in enumerate(model.mdp.features):
        if i in paper.i_hat_always(listed, n):
            assert not [u for u in aimi.unseen_ if name in u.features]
            continue
        given = paper.aimi_given(listed, [i], n, None, assume)
        unseen = [u for u in aimi.unseen_ if u.features == (name,)]
        assert len(unseen) == len({tuple(u.given.values()) for u in unseen})
        assert {tuple(u.given.values()) for u in unseen} == paper.groups_without_data(listed, states, given)
    for u in asmar.unseen_:
        assert u.gets == "uniform"
        assert {
            tuple(s)
            for s in states
            if all(s[j] == v for j, v in zip(given_of(u, model), u.given.values(), strict=True))
        } == {tuple(model.states[int(s)]) for s in u.states}
        for s in u.states:
            table = asmar.missingness_.probabilities[s]
            assert table == pytest.approx(np.full(len(table), 1 / len(table)), abs=1e-12)


def given_of(unseen, model):
    return [model.space.features.position(name) for name in unseen.given]


# Closed forms


@pytest.fixture(scope="module")
def example():
    return mm.load_benchmark("example-1")


def test_a_row_counts_for_one_pattern_only(example):
    """Example 1: as printed, with ⟹ for ⟺, (2/3, 1/3) comes out where half of the rows are complete."""
    listed = [("x", "y"), ("x", None), ("y", "x"), ("y", None)]

    def as_printed(r):
        return sum(all(z is None for z, ri in zip(row, r, strict=True) if ri == 0) for row in listed)

    counts = {r: as_printed(r) for r in [(1, 1), (1, 0), (0, 1), (0, 0)]}
    assert [counts[r] / sum(counts.values()) for r in counts] == pytest.approx([2 / 3, 1 / 3, 0, 0])
    for learner in (mm.AMCAR(smoothing=0), mm.AsMAR(smoothing=0), mm.AIMI(smoothing=0)):
        learner.fit(dataset_of(example.mdp, listed))
        for s in example.states:
            assert learner.missingness_.distribution(s) == {tuple(s): 0.5, (s.first, None): 0.5}


@pytest.fixture(scope="module")
def ward():
    """Three features of different sizes, every combination a state."""
    sizes = (2, 3, 2)
    n = int(np.prod(sizes))
    return mm.FactoredMDP(
        {"sex": ["f", "m"], "pulse": [0, 1, 2], "fever": [False, True]},
        ["go"],
        [np.full((n, n), 1 / n)],
        np.zeros((n, 1)),
        np.full(n, 1 / n),
        np.zeros(n, dtype=bool),
        0.5,
    )


ROWS = [
    ("f", 0, True),
    ("f", 0, None),
    ("f", 1, None),
    ("f", None, True),
    ("f", None, None),
    ("m", 2, False),
    ("m", 2, None),
    ("m", None, None),
]
"""Sex is always shown; pulse is missing 2/5 for f and 1/3 for m, fever 3/5 and 2/3."""


def test_without_smoothing_frequencies_are_exact(ward):
    data = dataset_of(ward, ROWS)
    amcar = mm.AMCAR(smoothing=0).fit(data).missingness_
    assert amcar.distribution(("m", 1, True)) == {
        ("m", 1, True): 2 / 8,
        ("m", 1, None): 3 / 8,
        ("m", None, True): 1 / 8,
        ("m", None, None): 2 / 8,
    }
    asmar = mm.AsMAR(smoothing=0).fit(data).missingness_
    assert asmar.distribution(("m", 0, True)) == {
        ("m", 0, True): 1 / 3,
        ("m", 0, None): 1 / 3,
        ("m", None, None): 1 / 3,
    }
    aimi = mm.AIMI(smoothing=0).fit(data).missingness_
    # Fever given (f, 0): one row shows it, one does not; pulse given (f, True): likewise.
    assert aimi.distribution(("f", 0, True))[("f", 0, True)] == pytest.approx(1 / 4)
    # Fever given (f, 1) is always missing; pulse given (f, False) was never seen: ½.
    assert aimi.distribution(("f", 1, False)) == pytest.approx({("f", 1, None): 0.5, ("f", None, None): 0.5})


def test_smoothing_by_hand(ward):
    data = dataset_of(ward, ROWS)
    asmar = mm.AsMAR(smoothing=0.5).fit(data).missingness_
    assert asmar.distribution(("m", 0, True)) == pytest.approx(
        {
            ("m", 0, True): 1.5 / 5,
            ("m", 0, None): 1.5 / 5,
            ("m", None, True): 0.5 / 5,
            ("m", None, None): 1.5 / 5,
        }
    )
    fever_missing = (1 + 0.5) / (2 + 1)
    pulse_missing = (1 + 0.5) / (2 + 1)
    aimi = mm.AIMI(smoothing=0.5).fit(data).missingness_
    assert aimi.probability(("f", None, None), ("f", 0, True)) == pytest.approx(fever_missing * pulse_missing)
    assert mm.AIMI(smoothing=0.5, assume="MCAR").fit(data).missingness_.missing_rate("pulse")[
        0
    ] == pytest.approx(3.5 / 9)
    smar = mm.AIMI(smoothing=0.5, assume="simple MAR").fit(data).missingness_
    assert smar.missing_rate("fever")[ward.space.index(("m", 0, False))] == pytest.approx(2.5 / 4)


def test_ignored_features_are_counted_together(ward):
    """Where nothing of what is always shown matters, AsMAR is AMCAR."""
    data = dataset_of(ward, ROWS)
    assert mm.AsMAR(ignore=["sex"]).fit(data).missingness_ == mm.AMCAR().fit(data).missingness_


def test_a_graph_merges_rows_in_which_other_features_are_missing(ward):
    """Fever driven by sex only: rows without pulse count as well, which Eq. 2 would drop."""
    graph = mm.MissingnessGraph([("sex", "fever")], features=ward.features, can_go_missing=["pulse", "fever"])
    learned = mm.AIMI(graph=graph, smoothing=0).fit(dataset_of(ward, ROWS)).missingness_
    assert learned.missing_rate("fever")[ward.space.index(("f", 2, True))] == pytest.approx(3 / 5)
    assert learned.missing_rate("fever")[ward.space.index(("m", 0, True))] == pytest.approx(2 / 3)
    assert learned.missing_rate("pulse") == pytest.approx(np.full(12, 3 / 8))


def test_rows_in_which_a_parent_is_missing_are_left_out_not_guessed(ward):
    """AIMI by all other features: every row is counted once or left out, and none is outside of the model."""
    pulse, fever = mm.AIMI().fit(dataset_of(ward, ROWS)).counts_
    assert (pulse.samples.sum(), pulse.left_out, pulse.outside) == (3, 5, 0)
    assert (fever.samples.sum(), fever.left_out, fever.outside) == (5, 3, 0)


def test_groups_without_data_get_what_was_chosen(ward):
    """Rows of one sex only: the other gets one half of everything, or what all rows say."""
    listed = [row for row in ROWS if row[0] == "f"]
    data = dataset_of(ward, listed)
    uniform, pooled = (mm.AsMAR(smoothing=0, unseen=unseen).fit(data) for unseen in UNSEEN)
    other = ("m", 2, False)
    assert uniform.missingness_.distribution(other) == pytest.approx(
        dict.fromkeys([("m", 2, False), ("m", 2, None), ("m", None, False), ("m", None, None)], 0.25)
    )
    assert pooled.missingness_.distribution(other) == pytest.approx(
        {("m", 2, False): 0.2, ("m", 2, None): 0.4, ("m", None, False): 0.2, ("m", None, None): 0.2}
    )
    for learner, gets in ((uniform, "uniform"), (pooled, "pooled")):
        (only,) = learner.unseen_
        assert only.features == ("pulse", "fever")
        assert only.given == {"sex": "m"}
        assert only.gets == gets
        assert only.states.tolist() == list(range(6, 12))


@pytest.mark.parametrize("smoothing", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("name", LEARNERS)
def test_smoothing_never_makes_an_always_observed_feature_missing(ward, name, smoothing):
    learner = LEARNERS[name]().set_params(smoothing=smoothing).fit(dataset_of(ward, ROWS))
    assert learner.always_observed_ == ("sex",)
    assert learner.missingness_.always_observed == ("sex",)
    assert (learner.missingness_.missing_rate("sex") == 0.0).all()


def test_patterns_that_do_not_occur_can_be_left_out(ward):
    listed = [("f", 0, None), ("f", None, True), ("m", 1, True)]
    seen = mm.AMCAR(patterns="seen", smoothing=1).fit(dataset_of(ward, listed)).missingness_
    assert seen.n_patterns == 3
    assert seen.probabilities[0] == pytest.approx(np.full(3, 1 / 3))
    assert mm.AMCAR(smoothing=1).fit(dataset_of(ward, listed)).missingness_.n_patterns == 4


def test_nothing_missing_and_everything_missing(ward):
    full = [("f", 0, True), ("m", 2, False)]
    for make in LEARNERS.values():
        learner = make().fit(dataset_of(ward, full))
        assert learner.missingness_ == mm.MissingnessFunction.fully_observed(ward)
        assert learner.always_observed_ == ("sex", "pulse", "fever")
    blank = dataset_of(ward, [(None, None, None)] * 7)
    for make in (mm.AMCAR, mm.AsMAR, lambda **k: mm.AIMI(assume="MCAR", **k)):
        learned = make(smoothing=0).fit(blank).missingness_
        assert learned.distribution(("f", 1, True)) == {(None, None, None): 1.0}
    lost = mm.AIMI(smoothing=0).fit(blank)
    assert lost.missingness_.probabilities == pytest.approx(np.full((12, 8), 1 / 8))
    assert len(lost.unseen_) == 6 + 4 + 6


def test_rows_that_no_state_has_are_left_out_and_reported():
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "b": [0, 1]}, ["go"], [np.eye(2)], np.zeros((2, 1)), np.full(2, 0.5), np.zeros(2, bool),
        0.5, states=[(0, 0), (0, 1)],
    )  # fmt: skip
    counts = counts_of(mdp, {(0, 0): 30, (0, None): 10, (1, None): 7})
    with pytest.warns(mm.AssumptionWarning, match="7 of 47 observations have values that no state"):
        learner = mm.AsMAR(smoothing=0).fit(counts)
    assert learner.missingness_.missing_rate("b") == pytest.approx(np.full(2, 0.25))
    assert learner.counts_[0].outside == 7


def test_many_features_are_refused_or_kept_to_what_is_seen():
    names = [f"f{i}" for i in range(27)]
    mdp = mm.FactoredMDP(
        {name: [0, 1] for name in names}, ["go"], [np.eye(1)], np.zeros((1, 1)), np.ones(1), np.zeros(1, bool), 0.5,
        states=[(0,) * 27],
    )  # fmt: skip
    data = counts_of(mdp, {(None,) * 27: 3, (0,) * 27: 1})
    for learner in (mm.AMCAR(), mm.AsMAR()):
        with pytest.raises(mm.DataError, match="patterns='seen'"):
            learner.fit(data)
    by_feature = mm.AIMI(assume="MCAR", smoothing=0).fit(data).missingness_
    assert by_feature.missing_rate("f3").tolist() == [0.75]
    with pytest.raises(mm.ModelError, match="too many"):
        _ = by_feature.probabilities
    seen = mm.AMCAR(patterns="seen", smoothing=0).fit(data)
    assert seen.missingness_.probabilities.tolist() == [[0.25, 0.75]]
    assert mm.AIMI(blocks=[names], smoothing=0).fit(data).missingness_.probabilities.tolist() == [
        [0.25, 0.75]
    ]


# What users may give, rightly and wrongly


WRONG = [
    (mm.AMCAR, {"smoothing": -1e-9}, "smoothing"),
    (mm.AMCAR, {"smoothing": float("nan")}, "smoothing"),
    (mm.AsMAR, {"smoothing": float("inf")}, "smoothing"),
    (mm.AsMAR, {"smoothing": "1"}, "smoothing"),
    (mm.AIMI, {"smoothing": True}, "smoothing"),
    (mm.AIMI, {"smoothing": None}, "smoothing"),
    (mm.AMCAR, {"unseen": "zero"}, "unseen"),
    (mm.AsMAR, {"unseen": None}, "unseen"),
    (mm.AIMI, {"unseen": 0.5}, "unseen"),
    (mm.AMCAR, {"patterns": "some"}, "patterns"),
    (mm.AsMAR, {"patterns": ["all"]}, "patterns"),
    (mm.AMCAR, {"always_observed": ["pressure"]}, "pressure"),
    (mm.AsMAR, {"always_observed": "sex"}, "list of features"),
    (mm.AIMI, {"always_observed": 3}, "list of features"),
    (mm.AsMAR, {"ignore": ["pressure"]}, "ignore.*pressure"),
    (mm.AsMAR, {"ignore": "sex"}, "list of features"),
    (mm.AIMI, {"assume": "MAR"}, "assume"),
    (mm.AIMI, {"assume": 1}, "assume"),
    (mm.AIMI, {"blocks": "sex"}, "blocks"),
    (mm.AIMI, {"blocks": 3}, "blocks"),
    (mm.AIMI, {"blocks": [3]}, "blocks"),
    (mm.AIMI, {"blocks": [()]}, "empty"),
    (mm.AIMI, {"blocks": [("sex", "pressure")]}, "pressure"),
    (mm.AIMI, {"blocks": [("pulse", "fever"), ("fever", "sex")]}, "'fever' is in two blocks"),
    (mm.AIMI, {"blocks": [("pulse", "pulse")]}, "twice"),
    (mm.AIMI, {"graph": "sex -> fever"}, "MissingnessGraph"),
    (mm.AIMI, {"graph": mm.MissingnessGraph([("age", "fever")])}, "age"),
    (mm.AIMI, {"graph": mm.MissingnessGraph([("pulse", "pulse")])}, "self-censoring"),
    (mm.AIMI, {"graph": mm.MissingnessGraph([("sex", "pulse")]), "assume": "MCAR"}, "either graph or assume"),
    (
        mm.AIMI,
        {"graph": mm.MissingnessGraph([("pulse", "fever")]), "blocks": [("pulse", "fever")]},
        "goes missing together",
    ),
    (mm.AIMI, {"graph": mm.MissingnessGraph(dependent=[("pulse", "fever")])}, r"blocks=\[\('pulse', 'fever'\)\]"),
    (mm.AIMI, {"graph": mm.MissingnessGraph([("sex", "pulse")])}, "'fever' goes missing, but the m-graph"),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "parameters", "message"), WRONG)
def test_wrong_parameters_are_named_when_fitting(ward, learner, parameters, message):
    made = learner(**parameters)
    with pytest.raises(mm.DataError, match=message):
        made.fit(dataset_of(ward, ROWS))


@pytest.mark.parametrize("assume", ["simple MAR", "simple mar", "sMAR", "MCAR", "mcar"])
def test_assumptions_may_be_written_in_any_case(ward, assume):
    canonical = "MCAR" if assume.lower() == "mcar" else "simple MAR"
    data = dataset_of(ward, ROWS)
    assert mm.AIMI(assume=assume).fit(data).missingness_ == mm.AIMI(assume=canonical).fit(data).missingness_


@pytest.mark.parametrize("make", [mm.AMCAR, mm.AsMAR, mm.AIMI])
def test_a_declaration_that_the_data_contradict_is_refused(ward, make):
    with pytest.raises(
        mm.DataError, match="'pulse' is declared always observed, but it goes missing, in 3 obs"
    ):
        make(always_observed=["sex", "pulse"]).fit(dataset_of(ward, ROWS))
    kept = make(always_observed=["sex"]).fit(dataset_of(ward, ROWS))
    assert kept.always_observed_ == ("sex",)
    assert kept.missingness_ == make().fit(dataset_of(ward, ROWS)).missingness_


def test_only_logs_and_their_counts_are_learned_from(ward):
    for thing in (None, [("f", 0, True)], {"sex": ["f"]}, mm.MissingnessFunction.fully_observed(ward)):
        with pytest.raises(mm.DataError, match="expected a Dataset"):
            mm.AsMAR().fit(thing)
    empty = ObservationCounts(ward, np.empty((0, 3), dtype=np.int8), np.empty(0, dtype=np.int64))
    with pytest.raises(mm.DataError, match="no observations"):
        mm.AsMAR().fit(empty)


@pytest.mark.parametrize("make", [mm.AMCAR, mm.AsMAR, mm.AIMI])
def test_before_fit_nothing_is_learned(make):
    learner = make()
    for name in ("missingness_", "counts_", "always_observed_", "unseen_", "warnings_"):
        with pytest.raises(AttributeError, match=rf"has no {name} yet: call fit"):
            getattr(learner, name)
    with pytest.raises(AttributeError, match="no attribute 'missingness'"):
        _ = learner.missingness
    with pytest.raises(mm.DataError, match="call fit"):
        learner.bound()
    assert copy.deepcopy(learner).get_params() == learner.get_params()


def test_refitting_forgets_the_old(ward):
    learner = mm.AsMAR().fit(dataset_of(ward, [row for row in ROWS if row[0] == "f"]))
    assert len(learner.unseen_) == 1
    fresh = mm.AsMAR().fit(dataset_of(ward, ROWS[5:]))
    again = learner.fit(dataset_of(ward, ROWS[5:]))
    assert again is learner
    assert again.missingness_ == fresh.missingness_
    assert [u.given for u in again.unseen_] == [u.given for u in fresh.unseen_] == [{"sex": "f"}]
    assert [str(w) for w in again.warnings_] == [str(w) for w in fresh.warnings_]
    assert again.bound().tv == fresh.bound().tv


def test_the_bound_is_of_what_was_learned_not_of_what_was_set_since(ward):
    learner = mm.AsMAR().fit(dataset_of(ward, ROWS))
    before = learner.bound(method="clopper-pearson")
    learner.set_params(smoothing=100.0, always_observed=["sex"], unseen="pooled")
    after = learner.bound(method="clopper-pearson")
    assert np.array_equal(before.per_state_tv, after.per_state_tv)
    assert np.array_equal(before.per_group[0].estimate, after.per_group[0].estimate)


def test_parameters_can_be_read_set_and_shown():
    learner = mm.AIMI(blocks=[("x", "y")], smoothing=0.5)
    assert repr(learner) == "AIMI(blocks=[('x', 'y')], smoothing=0.5)"
    assert repr(mm.AMCAR()) == "AMCAR()"
    assert learner.set_params(assume="MCAR") is learner
    assert learner.get_params() == {
        "graph": None,
        "assume": "MCAR",
        "blocks": [("x", "y")],
        "smoothing": 0.5,
        "always_observed": None,
        "unseen": "uniform",
    }
    with pytest.raises(mm.DataError, match="AsMAR has no parameter 'smooth'; it has smoothing"):
        mm.AsMAR().set_params(smooth=1)
    with pytest.raises(TypeError):
        mm.AMCAR(0.5)


def test_learners_can_be_pickled(ward):
    learner = mm.AIMI(smoothing=0.5).fit(dataset_of(ward, ROWS))
    back = pickle.loads(pickle.dumps(learner))
    assert back.missingness_ == learner.missingness_
    assert back.bound().tv == learner.bound().tv
