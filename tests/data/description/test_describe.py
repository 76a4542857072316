"""What `describe` counts, against loops and dicts; what it says; what it draws."""

import doctest
import importlib
import re
import xml.etree.ElementTree as ET
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import missmdp as mm
from hostile_names import FEATURES, hostile_model
from missmdp.data.statistics import wilson_interval
from missmdp.words import rate_text
from oracles import missing_tables as oracle
from random_logs import random_table, table_of
from strategies import seeds


@st.composite
def tables(draw, max_rows=60):
    sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    words = draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    n_rows, longest = draw(st.integers(1, max_rows)), draw(st.sampled_from([1, 5, 50]))
    return random_table(draw(seeds()), sizes, words, n_rows, longest)


@given(tables())
def test_sizes_and_patterns_are_counted_as_by_hand(table):
    found = mm.describe(table)
    lengths = oracle.episode_lengths(table)
    assert found.n_rows == oracle.n_rows(table)
    assert found.n_episodes == len(lengths)
    assert found.lengths == (lengths[0], median(lengths), lengths[-1])
    expected = oracle.patterns(table)
    counted = {
        frozenset(name for name, gap in zip(found.features, pattern, strict=True) if gap): rows
        for pattern, rows in zip(found.patterns, found.pattern_rows, strict=True)
    }
    assert counted == expected
    assert found.n_patterns == len(expected)
    assert list(found.pattern_rows) == sorted(expected.values(), reverse=True)
    for name, count in zip(found.features, found.missing, strict=True):
        assert count == sum(rows for gaps, rows in expected.items() if name in gaps)


def same_counts(by, rows, missing, features):
    """Check groups, told apart by their label, against the oracle's."""
    assert dict(zip(by.labels, by.rows.tolist(), strict=True)) == rows
    for group, label in enumerate(by.labels):
        for i, name in enumerate(features):
            assert by.missing[group, i] == missing[label, name]


@given(tables(max_rows=150))
def test_rates_by_value_are_counted_as_by_hand(table):
    found = mm.describe(table)
    assert [by.what for by in found.by_value] == oracle.feature_names(table) == list(found.features)
    for name, by in zip(found.features, found.by_value, strict=True):
        rows, _ = oracle.missing_by(table, name, lambda value: value)
        if len(rows) <= 12:
            group_of = str
            assert list(by.labels) == [str(value) for value in sorted(rows)]
        elif all(isinstance(value, int) for value in rows):
            group_of = range_of(by.labels)
            assert by.ordered
            assert 2 <= len(by) <= 12
            # No range has more than two twelfths of the rows unless one value has nearly as many by itself.
            assert by.rows.max() <= 2 * max(sum(rows.values()) / 12, max(rows.values()))
        else:
            frequent = sorted(rows, key=lambda value: (-rows[value], value))[:12]
            assert list(by.labels) == [*frequent, "other"]
            group_of = {value: value if value in frequent else "other" for value in rows}.get
        same_counts(by, *oracle.missing_by(table, name, group_of), found.features)


def range_of(labels):
    """Return the function from a number to the label of its range; ranges must not overlap and must rise."""
    ends = [[int(end) for end in re.findall(r"-?\d+", label)] for label in labels]
    flat = [end for pair in ends for end in pair]
    assert flat == sorted(set(flat))

    def label(value):
        (found,) = (text for text, pair in zip(labels, ends, strict=True) if pair[0] <= value <= pair[-1])
        return found

    return label


@given(tables(max_rows=150))
def test_rates_over_steps_are_counted_as_by_hand(table):
    found = mm.describe(table)
    distinct = set(table["step"])
    by = found.over_steps
    if len(distinct) <= 20:
        assert list(by.labels) == [str(step) for step in sorted(distinct)]
    else:
        assert 8 <= len(by) <= 16
    same_counts(by, *oracle.missing_by(table, "step", range_of(by.labels)), found.features)


@given(st.integers(1, 500), st.data())
def test_wilson_intervals_are_those_of_scipy(rows, data):
    hits = data.draw(st.integers(0, rows))
    low, high = wilson_interval(np.array(hits), np.array(rows))
    expected = binomtest(hits, rows).proportion_ci(method="wilson")
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert low <= hits / rows <= high


def test_a_dataset_and_its_table_give_the_same():
    data = mm.collect(mm.load_benchmark("predator-smar"), 3000, seed=1)
    names = data.mdp.space.features.names
    table = {"episode": [], "step": [], "action": [], **{name: [] for name in names}}
    for number, episode in enumerate(data.episodes()):
        for step, (observation, action) in enumerate(episode):
            for name, value in zip(table, [number, step, action, *observation], strict=True):
                table[name].append(value)
    assert mm.describe(data).describe() == mm.describe(table).describe()
    assert mm.describe(data).rates.tolist() == pytest.approx(list(data.missing_rates().values()))


def test_what_is_known_of_the_icu_is_seen_in_its_log():
    found = mm.describe(mm.collect(mm.load_benchmark("icu-mnar-unid"), 10_000, seed=0))
    assert found.never_missing == ("test", "temperature")
    assert found.can_go_missing == ("infection", "heart_rate")
    # Infections go missing by test and by heart rate; see docs/benchmarks.md.
    assert [(a.feature, a.given) for a in found.strongest(2)] == [
        ("infection", "test"),
        ("infection", "heart_rate"),
    ]
    text = str(found)
    assert text.startswith("10,000 rows in 38 episodes of ")
    assert "Never missing: test, temperature." in text
    assert f"infection {rate_text(found.rates[0])}" in text


def test_the_example_in_the_docstring_runs():
    failed, tried = doctest.testmod(importlib.import_module("missmdp.data.description.describe"))
    assert tried > 0
    assert failed == 0


EDGES = {
    "one row": table_of(a=[1], b=[None]),
    "one feature": table_of(a=[1, None, 2]),
    "never missing": table_of(a=[1, 2], b=["x", "y"]),
    "always missing": table_of(a=[None, None], b=["x", None]),
    "all missing": table_of(a=[None, None], b=[None, None]),
    "hundreds of values": table_of(a=list(range(300)), b=[None, *(f"word {k}" for k in range(299))]),
    "fractions": table_of(a=[k / 7 for k in range(40)], b=[None if k % 3 else k for k in range(40)]),
    "odd names": table_of(**{"$x_1$ [red]": [None, "$", "\n"], "体温" * 20: [1, None, 2.5]}),
    "many features": table_of(
        **{f"feature {i}": [None if k % (i + 2) else 1 for k in range(99)] for i in range(130)}
    ),
    "many measurements": table_of(
        **{f"m{i}": [None if k % 5 == i else k / 8 for k in range(200)] for i in range(10)}
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edge_cases_are_described_and_drawn(name, tmp_path):
    found = mm.describe(EDGES[name])
    assert np.isfinite(found.rates).all()
    assert all(np.isfinite(end).all() for end in found.intervals)
    assert str(found).startswith(found.size)
    assert "nan" not in str(found)
    assert found.draw(tmp_path / "picture.svg", title="$edge").stat().st_size > 1000


def test_sentences_count_and_lump():
    assert mm.describe(EDGES["one row"]).size == "1 row in 1 episode of 1 step"
    assert repr(mm.describe(EDGES["one row"])) == "Description(1 row in 1 episode of a, b)"
    assert mm.describe(EDGES["one feature"]).size == "3 rows in 1 episode of 3 steps"
    found = mm.describe(EDGES["many features"])
    assert found.together(2)[-1][0] == f"{found.n_patterns - 2} rarer patterns"
    assert sum(rows for _, rows in found.together(2)) == 99
    assert mm.describe(EDGES["never missing"]).together(3) == [("nothing", 2)]
    assert any("always missing" in note for note in mm.describe(EDGES["always missing"]).notes)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0%"), (1e-9, "<0.1%"), (0.1234, "12.3%"), (0.99951, ">99.9%"), (1.0, "100.0%")],
)
def test_percentages_do_not_round_to_all_or_nothing(share, text):
    assert rate_text(share) == text


def test_a_log_without_rows_is_refused():
    mdp = mm.load_benchmark("example-1").mdp
    empty = np.empty(0, dtype=np.int8)
    offsets = np.zeros(1, dtype=np.int64)
    data = mm.Dataset(mdp, empty.reshape(0, len(mdp.features)), empty, offsets, empty.astype(bool))
    with pytest.raises(mm.DataError, match="no rows"):
        mm.describe(data)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_description_gives_the_same_picture(suffix, tmp_path):
    found = mm.describe(EDGES["fractions"])
    files = [found.draw(tmp_path / f"{name}{suffix}", title="Twice") for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    other = mm.describe(EDGES["one feature"]).draw(tmp_path / f"c{suffix}", title="Twice")
    assert other.read_bytes() != files[0].read_bytes()


def test_pictures_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(mm.MissMDPError, match=r"\.svg"):
        mm.describe(EDGES["one row"]).draw(tmp_path / "x.gif")
    assert list(tmp_path.iterdir()) == []


def svg_text(path):
    """Return what is written in a picture: matplotlib notes each text beside its outlines."""
    return re.findall(r"<!-- (.*?) -->", path.read_text())


def test_shares_of_some_features_say_so(tmp_path):
    """With 14 features that go missing, 12 are drawn; what is missing of these is not what is missing of all."""
    rng = np.random.default_rng(5)
    gaps = rng.random((3000, 14)) < np.linspace(0.3, 0.6, 14)
    columns = {f"f{i}": [None if gap else 1 for gap in gaps[:, i]] for i in range(14)}
    found = mm.describe(table_of(**columns))
    assert found.n_patterns > 1000
    assert len(found.often_missing) == 12
    assert found.often_pattern_rows.sum() == 3000
    drawn = gaps[:, found.often_missing]
    for pattern, rows in zip(found.often_patterns, found.often_pattern_rows, strict=True):
        assert rows == (drawn == pattern).all(axis=1).sum()
    assert "Missing together (of these 12 features)" in svg_text(found.draw(tmp_path / "some.svg"))
    fewer = mm.describe(table_of(**columns), ignore=["f0", "f1"])
    assert "Missing together" in svg_text(fewer.draw(tmp_path / "all.svg"))


def test_a_picture_does_not_call_noise_clear(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"f{i}": [None if u < 0.2 else int(9 * u) % 3 for u in rng.random(900)] for i in range(14)}
    texts = svg_text(mm.describe(table_of(**columns)).draw(tmp_path / "noise.svg"))
    assert "By value: 12 of 14 features, as rates differ clearly at none" in texts


def test_pictures_are_xml_whatever_the_names(tmp_path):
    found = mm.describe(mm.collect(hostile_model(), 300, seed=0))
    ET.parse(found.draw(tmp_path / "picture.svg", title=FEATURES[0]))
