"""Reports on logs: against sets of possible states worked out by hand, and on logs with known mistakes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from large_models import log_of, random_model, two_machines
from missmdp._kernels import support as kernels
from missmdp.data import support, validation
from missmdp.data.tables import parts
from oracles import trajectory_tables as oracle
from strategies import mdps, missmdps, seeds


@given(model=missmdps(), seed=seeds(), steps=st.integers(1, 200))
def test_what_a_model_simulates_is_possible_in_it(model, seed, steps):
    data = mm.collect(model, steps, seed=seed, horizon=8)
    report = mm.validate(data, model.mdp)
    assert report.ok, str(report)
    assert report.problems == ()
    assert report.n_steps == steps
    assert report.n_episodes == data.n_episodes


def admitting(mdp, observation):
    return {
        s
        for s, state in enumerate(mdp.states)
        if all(seen is None or seen == value for seen, value in zip(observation, state, strict=True))
    }


def follow(mdp, episode, terminated):
    """Return what is wrong with an episode, as {kind: [step, …]}, by sets of states."""
    wrong = {}
    possible = None
    for t, (z, action) in enumerate(episode):
        admits = admitting(mdp, z)
        if t == 0:
            now = {s for s in admits if mdp.initial[s] > 0}
            kind = "impossible_starts"
        elif possible:
            matrix = mdp.transition[mdp.actions.index(episode[t - 1][1])].toarray()
            now = {s for s in admits if any(matrix[b, s] > 0 for b in possible)}
            before = admitting(mdp, episode[t - 1][0])
            local = any(matrix[b, s] > 0 for b in before for s in admits)
            kind = "impossible_histories" if local else "impossible_transitions"
        else:
            now = admits
        if not admits:
            wrong.setdefault("impossible_observations", []).append(t)
        elif not now:
            wrong.setdefault(kind, []).append(t)
            now = admits
        possible = now
        if action is not None and possible and all(mdp.terminal[s] for s in possible):
            wrong.setdefault("actions_after_end", []).append(t)
    if terminated and possible and not any(mdp.terminal[s] for s in possible):
        wrong.setdefault("ends_without_terminal", []).append(len(episode) - 1)
    return wrong


KINDS = [
    "impossible_observations",
    "impossible_starts",
    "impossible_transitions",
    "impossible_histories",
    "actions_after_end",
    "ends_without_terminal",
]


def random_log(mdp, rng, episodes):
    """Return histories that were drawn without looking at the model."""
    lengths = rng.integers(1, 7, size=episodes)
    n = int(lengths.sum())
    sizes = mdp.space.features.sizes
    observations = np.stack([rng.integers(-1, size, size=n) for size in sizes], axis=1).astype(np.int8)
    observations[rng.random(observations.shape) < 0.4] = -1
    actions = rng.integers(0, mdp.n_actions, size=n).astype(np.int8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    actions[offsets[1:] - 1] = -1
    return mm.Dataset(mdp, observations, actions, offsets, rng.random(episodes) < 0.3)


@given(mdp=mdps(), seed=seeds(), episodes=st.integers(1, 40), room=st.sampled_from([None, (1, 1), (9, 30)]))
def test_reports_agree_with_sets_of_states_worked_out_by_hand(mdp, seed, episodes, room):
    """Also when there is room for hardly any set, so that what is kept is thrown away all the time."""
    data = random_log(mdp, np.random.default_rng(seed), episodes)
    patch = pytest.MonkeyPatch()
    if room is not None:
        patch.setattr(support, "_MOST_SETS", room[0])
        patch.setattr(support, "_MOST_STATES", room[1])
    try:
        report = mm.validate(data, mdp)
    finally:
        patch.undo()
    expected = {kind: [] for kind in KINDS}
    for number, episode in enumerate(data.episodes()):
        for kind, steps in follow(mdp, episode, data.terminated[number]).items():
            expected[kind] += [(number, step) for step in steps]
    for kind in KINDS:
        finding = getattr(report, kind)
        assert finding.count == len(expected[kind]), kind
        if expected[kind]:
            first = finding.examples[0]
            assert (first.episode, first.step) == expected[kind][0], kind
            assert {(e.episode, e.step) for e in finding.examples} <= set(expected[kind])
            for example in finding.examples:
                assert example.observation == data.episode(example.episode)[example.step][0]
    assert report.ok == (not any(expected.values()))
    assert len(report.problems) == sum(bool(found) for found in expected.values())

    seen = [tuple(z) for episode in data.episodes() for z, _ in episode]
    admitted = set().union(*(admitting(mdp, z) for z in set(seen)))
    reachable = {s for s in range(mdp.n_states) if mdp.reachable[s]}
    assert set(report.never_visited) == {mdp.states[s] for s in reachable - admitted}
    assert set(report.never_seen_in_full) == {
        mdp.states[s] for s in reachable if tuple(mdp.states[s]) not in seen
    }
    for i, name in enumerate(mdp.features):
        assert (name in report.never_missing) == all(z[i] is not None for z in seen)
        assert (name in report.always_missing) == all(z[i] is None for z in seen)


def ladder():
    """Return an MDP that climbs 0 → 1 → 2 → 3 (the end) on "up" and stays on "wait", in one of two moods for good."""

    def transition(state, action):
        return {(min(state.rung + 1, 3) if action == "up" else state.rung, state.mood): 1.0}

    return mm.FactoredMDP(
        {"rung": range(4), "mood": ["good", "bad"]},
        ["up", "wait"],
        transition,
        0.0,
        {(0, "good"): 0.5, (0, "bad"): 0.5},
        lambda state: state.rung == 3,
    )


def table(*rows):
    return {
        name: [row[i] for row in rows]
        for i, name in enumerate(["episode", "step", "rung", "mood", "action", "terminated"])
    }


GOOD = table(
    ("x", 0, 0, "good", "up", None),
    ("x", 1, None, None, "up", None),
    ("x", 2, 2, "good", "up", None),
    ("x", 3, 3, None, None, True),
)


def with_cell(cells, name, row, value):
    values = list(cells[name])
    values[row] = value
    return {**cells, name: values}


@pytest.mark.parametrize(
    ("name", "row", "value", "kind", "fragments"),
    [
        (
            "rung",
            0,
            2,
            "impossible_starts",
            ["no initial state admits 1 first", "episode 'x', step 0: (rung=2,"],
        ),
        (
            "rung",
            1,
            2,
            "impossible_transitions",
            ["step 1", "(rung=0, mood='good'), then 'up', then (rung=2,"],
        ),
        (
            "mood",
            2,
            "bad",
            "impossible_histories",
            ["whole history", "step 2", "(rung=None, mood=None), then 'up'"],
        ),
        (
            "rung",
            3,
            2,
            "impossible_transitions",
            ["step 3", "(rung=2, mood='good'), then 'up', then (rung=2"],
        ),
    ],
)
def test_impossible_steps_are_found_and_named(name, row, value, kind, fragments):
    assert mm.validate(GOOD, ladder()).ok
    report = mm.validate(with_cell(GOOD, name, row, value), ladder())
    finding = getattr(report, kind)
    assert finding.count >= 1
    assert not report.ok
    for fragment in fragments:
        assert fragment in str(report)
    if kind.endswith(("transitions", "histories")):
        assert finding.examples[0].before is not None


def test_acting_after_the_end_and_ends_that_are_none_are_found():
    longer = table(
        ("x", 0, 0, "good", "up", None),
        ("x", 1, None, None, "up", None),
        ("x", 2, None, None, "up", None),
        ("x", 3, None, None, "wait", None),
        ("x", 4, 3, None, None, None),
        ("y", 0, 0, None, "up", None),
        ("y", 1, 1, None, None, True),
    )
    report = mm.validate(longer, ladder())
    assert report.actions_after_end.count == 1
    assert "an action after the end" in str(report)
    assert report.actions_after_end.examples[0][:2] == ("x", 3)
    assert report.ends_without_terminal.examples[0][:2] == ("y", 1)
    assert report.impossible_histories.count == report.impossible_transitions.count == 0


def test_unknown_values_are_collected_with_counts_and_places(tmp_path):
    cells = with_cell(with_cell(with_cell(GOOD, "rung", 1, 7), "rung", 2, 7), "mood", 0, "blue")
    cells = with_cell(cells, "action", 1, "down")
    pd.DataFrame(cells).astype({"rung": "Int64"}).to_csv(tmp_path / "log.csv", index=False)
    report = mm.validate(tmp_path / "log.csv", ladder())
    found = {(u.column, u.value): (u.count, u.first) for u in report.unknown_values}
    assert {key: count for key, (count, _) in found.items()} == {
        ("rung", "7"): 2,
        ("mood", "blue"): 1,
        ("action", "down"): 1,
    }
    for fragment in ("log.csv, row 2, episode 'x'", "'rung' cannot be '7'", "0, 1, 2, 3"):
        assert fragment in found["rung", "7"][1]
    # An unknown action is not also a missing one; what comes before and after it is looked at apart.
    assert not report.broken
    assert report.impossible_transitions.count == 0
    text = str(report)
    assert text.startswith("4 observations in 1 episode: 3 problems\nProblems:\n  - ")
    assert "(2 rows like this)" in text


def test_broken_episodes_are_reported_and_the_rest_is_still_looked_at():
    rows = table(
        ("a", 0, 0, None, "up", None),
        ("a", 0, 0, None, "up", None),
        ("a", 2, 3, None, None, None),
        (None, 0, 1, None, None, None),
        ("b", 0, 0, None, "wait", None),
        ("b", 1, 1, None, None, None),
        ("c", None, 3, None, None, None),
        ("c", 0, None, None, "wait", None),
        ("c", 3, None, None, None, None),
    )
    report = mm.validate(rows, ladder())
    assert report.n_steps == 7
    assert {(u.column, u.value, u.count) for u in report.unknown_values} == {
        ("episode", None, 1),
        ("step", None, 1),
    }
    assert len(report.broken) == 1
    assert report.broken[0].startswith("rows 1 and 2, episode 'a': two rows for 'step' 0")
    assert "1 more episodes" in report.broken[0]
    # 0 → wait → 1 in b is impossible; nothing else follows anything.
    assert report.impossible_transitions.count == 1
    assert report.impossible_transitions.examples[0][:2] == ("b", 1)
    assert report.impossible_starts.count == 0


def test_what_is_not_known_to_follow_is_not_held_against_a_log():
    """After an unknown action, and where an episode does not start at its start."""
    rows = table(
        ("a", 0, 0, "good", "jump", None),
        ("a", 1, 3, "good", None, None),
        ("b", 2, 2, "bad", "wait", None),
        ("b", 3, 2, "bad", None, None),
        ("c", 0, 0, None, None, None),
    )
    report = mm.validate(rows, ladder())
    assert [u.value for u in report.unknown_values] == ["jump"]
    assert "row 3, episode 'b': 'step' starts at 2" in report.broken[0]
    assert "more episodes" not in report.broken[0]
    assert len(report.problems) == 2


def test_unknown_values_are_counted_over_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 60)
    lines = [f"{row},0,{row % 2 * 9},,," for row in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["episode,step,rung,mood,action,terminated", *lines]))
    report = mm.validate(tmp_path / "log.csv", ladder())
    assert [(u.value, u.count) for u in report.unknown_values] == [("9", 30)]
    assert "row 2, episode '1'" in report.unknown_values[0].first


@pytest.mark.parametrize("written", [float, str])
def test_measurements_without_bins_are_one_problem(written):
    n = 9000
    cells = {
        "episode": range(n),
        "step": [0] * n,
        "rung": [written(round(i / 10 + 0.05, 2)) for i in range(n)],
        "mood": ["good"] * n,
        "action": [None] * n,
    }
    report = mm.validate(cells, ladder())
    (problem,) = report.problems
    assert problem.startswith("'rung': 9,000 distinct numbers such as 0.05, 0.15, ")
    assert "bins={'rung': Binning.from_edges([…])} with 3 edges" in problem
    assert problem.endswith("(9,000 rows like this)")
    assert report.unknown_values[0].count == n
    assert not any("yet other" in note for note in report.notes)


@given(model=missmdps(), seed=seeds(), steps=st.integers(1, 200), pieces=st.integers(1, 20))
def test_the_size_of_pieces_does_not_matter(model, seed, steps, pieces):
    data = mm.collect(model, steps, seed=seed, horizon=8)
    # Another order of actions, so that something is impossible.
    data = replace(data, actions=np.where(data.actions < 0, -1, model.mdp.n_actions - 1 - data.actions))
    whole = mm.validate(data, model.mdp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support, "_FIRST_ROWS", pieces)
        patch.setattr(support, "_FEWEST_ROWS", pieces)
        patch.setattr(support, "_SECONDS", 0.0)
        assert str(mm.validate(data, model.mdp)) == str(whole)


def test_pieces_cover_all_rows_and_end_where_nothing_goes_on(monkeypatch):
    monkeypatch.setattr(support, "_FIRST_ROWS", 3)
    monkeypatch.setattr(support, "_FEWEST_ROWS", 3)
    monkeypatch.setattr(support, "_SECONDS", 0.0)
    begins = np.array([1, 0, 0, 0, 2, 1, 0, 1, 0, 0, 0, 0], dtype=np.int8)
    assert [(piece.start, piece.stop) for piece in support._pieces(begins)] == [(0, 4), (4, 7), (7, 12)]


def test_progress_is_shown_while_checking(monkeypatch):
    shown = []

    @contextmanager
    def spy(description, total=None, *, enabled=None):
        shown.append((description, total, enabled, []))
        yield shown[-1][3].append

    monkeypatch.setattr(support, "show_progress", spy)
    monkeypatch.setattr(support, "_FIRST_ROWS", 100)
    data = mm.collect(mm.load_benchmark("icu-smar"), 5000, seed=0, horizon=10)
    mm.validate(data, data.mdp, progress=True)
    ((description, total, enabled, done),) = shown
    assert (description, total, enabled, sum(done)) == ("Checking", 5000, True, 5000)
    assert len(done) > 1


def test_many_unknown_values_are_cut_short():
    n = 200
    cells = {
        "episode": range(n),
        "step": [0] * n,
        "rung": [f"rung {i}" for i in range(n)],
        "mood": [None] * n,
        "action": [None] * n,
    }
    report = mm.validate(cells, ladder())
    assert len(report.unknown_values) == 20
    assert any("yet other unknown values, in 180 more rows" in note for note in report.notes)
    assert report.always_missing == ("rung", "mood")


def test_notes_of_the_table_and_what_was_never_seen_are_told():
    report = mm.validate({**GOOD, "nurse": ["n"] * 4}, ladder())
    assert report.ok
    text = str(report)
    assert text.startswith("4 observations in 1 episode: nothing unknown, nothing impossible\nNotes:")
    assert "1 column is ignored: 'nurse'" in text
    assert report.never_visited == ()
    seen = {(0, "good"), (2, "good")}
    assert set(report.never_seen_in_full) == {state for state in ladder().states if state not in seen}
    # Without the observation in which everything is missing, some states were certainly not visited.
    report = mm.validate(with_cell(with_cell(GOOD, "rung", 1, 1), "mood", 1, "good"), ladder())
    assert set(report.never_visited) == {(r, "bad") for r in range(3)}
    assert report.never_missing == ("rung",)


def test_a_dataset_is_judged_like_its_table(tmp_path):
    model = mm.load_benchmark("predator-smar")
    data = mm.collect(model, 2000, seed=3)
    shifted = replace(data, observations=np.roll(data.observations, 3, axis=0), notes=("a note",))
    report = mm.validate(shifted, model.mdp)
    assert not report.ok
    assert report.remarks == ("a note",)
    again = mm.validate(shifted.to_arrow(), model.mdp)
    assert again.problems == report.problems


def test_what_does_not_fit_the_model_is_refused():
    model = mm.load_benchmark("icu-smar")
    with pytest.raises(mm.DataError, match="other features, values or actions"):
        mm.validate(mm.collect(model, 5, seed=0), ladder())
    with pytest.raises(mm.ModelError, match="expected a FactoredMDP"):
        mm.validate(GOOD, model)
    with pytest.raises(mm.DataError, match="no column 'rung'"):
        mm.validate({name: values for name, values in GOOD.items() if name != "rung"}, ladder())
    with pytest.raises(mm.DataError, match="row 1.*'step' is missing"):
        mm.validate({**GOOD, "step": [None] * 4}, ladder())
    with pytest.raises(mm.DataError, match="row 1.*'step' cannot be '2024-01-01'; steps are integers"):
        mm.validate({**GOOD, "step": ["2024-01-01"] * 4}, ladder())


def test_sets_that_hash_alike_are_told_apart():
    """Slots are few, so that numbers of sets collide all the time."""
    pool, start = np.empty(4000, dtype=np.int32), np.zeros(402, dtype=np.int64)
    used, slots = np.zeros(1, dtype=np.int64), np.full(401, -1, dtype=np.int64)
    rng = np.random.default_rng(0)
    numbers = {}
    for _ in range(2000):
        states = np.flatnonzero(rng.random(9) < 0.5).astype(np.int32)
        number = kernels._intern(states, pool, start, used, slots)
        assert numbers.setdefault(tuple(states.tolist()), number) == number
        if len(numbers) > 390:
            break
    assert len(set(numbers.values())) == len(numbers)


def test_many_examples_that_differ_come_first():
    data = random_log(oracle.small_mdp(mm), np.random.default_rng(0), 50)
    report = mm.validate(data, ladder_like(data.mdp))
    examples = report.impossible_transitions.examples
    assert len(examples) == len({(e.before, e.action, e.observation) for e in examples}) == 3


def ladder_like(mdp):
    """Return an MDP with the features and actions of another in which nothing ever changes."""
    eye = [np.eye(mdp.n_states)] * mdp.n_actions
    return mm.FactoredMDP(mdp.features, mdp.actions, eye, 0.0, mdp.initial)


def shuffled(log, seed, share=0.05):
    """Return a log in which some rows are of other episodes, so that much of it is impossible."""
    random = np.random.default_rng(seed)
    rows = np.arange(log.n_steps)
    moved = random.random(log.n_steps) < share
    rows[moved] = random.permutation(rows[moved])
    return replace(log, observations=log.observations[rows])


@pytest.mark.parametrize("name", ["fleet-3", "plant-3"])
def test_large_models_are_followed_feature_by_feature(name, monkeypatch):
    model = mm.load_benchmark(name)
    log = shuffled(mm.collect(model, 3_000, seed=1, horizon=40), seed=2)
    whole = mm.validate(log, model.mdp)
    monkeypatch.setattr(support, "_MOST_ENTRIES", 0)
    assert len(support.views_of(model.mdp)) > 1
    by_feature = mm.validate(log, model.mdp)
    assert whole.impossible_transitions.count > 20
    assert by_feature.impossible_starts == whole.impossible_starts
    if name == "fleet-3":  # the load, which machines share, is always seen
        assert by_feature == whole
    else:
        assert 0 < by_feature.impossible_transitions.count <= whole.impossible_transitions.count
        assert by_feature.remarks == (*whole.remarks, validation._BY_FEATURE)
        assert mm.validate(mm.collect(model, 3_000, seed=1), model.mdp).ok


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ends", ["none", "known", "unknown"])
def test_what_views_find_impossible_is_impossible(seed, ends, monkeypatch):
    model = random_model(seed, terminal=ends != "none")()
    log = shuffled(mm.collect(model, 400, seed=seed, horizon=10), seed=seed, share=0.3)
    whole = mm.validate(log, model.mdp)
    distinct = support.distinct_observations(model.mdp.space.features, log.observations)
    begins = np.zeros(log.n_steps, dtype=np.int8)
    begins[log.offsets[:-1]] = kernels.FIRST
    exact = support.follow(model.mdp, distinct, log.actions, begins)
    monkeypatch.setattr(support, "_MOST_ENTRIES", 0)
    if ends == "unknown":
        monkeypatch.setattr(support, "_MOST_WITH_ENDS", 0)
    assert all(view.knows_ends == (ends != "unknown") for view in support.views_of(model.mdp))
    found = support.follow(model.mdp, distinct, log.actions, begins)
    # Up to the first conflict of an episode: after it, sets of states begin anew.
    for start, stop in zip(log.offsets[:-1], log.offsets[1:], strict=True):
        rows = slice(start, stop)
        first = np.flatnonzero(exact.conflict[rows] | exact.no_start[rows])
        clean = rows if not len(first) else slice(start, start + first[0])
        assert not found.conflict[clean].any()
        assert not found.no_start[clean].any()
        assert not (found.ended & ~exact.ended)[clean].any()
        assert not (found.going_on & ~exact.going_on)[clean].any()
    assert mm.validate(log, model.mdp).never_visited == whole.never_visited


def test_large_models_with_terminal_states_are_followed_feature_by_feature(monkeypatch):
    """What is terminal is always seen here, so views notice all that is impossible."""
    mdp = two_machines(terminal=("lamp", lambda lamp: lamp == 1))
    log = log_of(mdp, {"a": 0.5, "b": 0.4})
    actions = log.actions.copy()
    over = np.flatnonzero(log.terminated)
    actions[log.offsets[1:][over[0]] - 1] = 0
    whole = mm.validate(replace(shuffled(log, seed=3), actions=actions), mdp)
    monkeypatch.setattr(support, "_MOST_ENTRIES", 0)
    assert len(support.views_of(mdp)) > 1
    assert mm.validate(log, mdp).ok
    by_feature = mm.validate(replace(shuffled(log, seed=3), actions=actions), mdp)
    assert whole.actions_after_end.count
    assert whole.ends_without_terminal.count
    assert whole.impossible_transitions.count
    assert by_feature == whole
    # Where views do not know what is terminal, they say less, and nothing that is wrong.
    monkeypatch.setattr(support, "_MOST_WITH_ENDS", 0)
    less = mm.validate(replace(shuffled(log, seed=3), actions=actions), mdp)
    assert less.actions_after_end.count == less.ends_without_terminal.count == 0
    assert validation._BY_FEATURE in less.remarks


def test_states_that_were_never_seen_are_not_made_where_they_are_many(monkeypatch):
    model = mm.load_benchmark("icu-smar")
    log = mm.collect(model, 20, seed=0)
    few = mm.validate(log, model.mdp)
    monkeypatch.setattr("missmdp.data.validation._MANY", 10)
    many = mm.validate(log, model.mdp)
    assert isinstance(few.never_seen_in_full, tuple)
    assert not isinstance(many.never_seen_in_full, tuple)
    assert tuple(many.never_seen_in_full) == few.never_seen_in_full
    assert str(many) == str(few)
