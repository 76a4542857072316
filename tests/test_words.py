"""Numbers and lists for readers."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from missmdp.words import (
    bound_above,
    bound_below,
    closest,
    count,
    did_you_mean,
    duration,
    gap_text,
    interval,
    label,
    listed,
    number,
    percent,
    percent_range,
    plus,
    points,
    preview,
    printable,
    rate_text,
    rough_duration,
    sentence,
    share_text,
    short_number,
    shortened,
    shown,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (number(-68.6512, 0.17), "−68.65"),
        (number(-68.6512, 0.0017), "−68.6512"),
        (number(141.61968734, 4e-7), "141.62"),
        (number(1234.5), "1,234.50"),
        (number(0.00123), "0.00123"),
        (number(0.0), "0.00"),
        (number(-0.001, 0.5), "0.00"),
        (number(None), "–"),
        (number(float("nan")), "–"),
        (plus(0.071, 0.06), "+0.071"),
        (plus(-0.071, 0.06), "−0.071"),
        (plus(0.0001, 0.5), "0.00"),
        (interval(-1.0, 2.0, 0.1), "−1.00 to 2.00"),
        (interval(None, 2.0, 0.1), "unbounded to 2.00"),
        (interval(None, None), "–"),
        (percent(0.625), "62\u00a0%"),
        (percent(0.625, 1), "62.5\u00a0%"),
        (percent(0.008), "0.8\u00a0%"),
        (percent(0.00001), "<0.1\u00a0%"),
        (percent(0.999999), ">99.9\u00a0%"),
        (percent(0.0), "0\u00a0%"),
        (percent(1.0), "100\u00a0%"),
        (percent(None), "–"),
        (percent_range(0.59, 0.74), "59–74\u00a0%"),
        (share_text(0.9973, 0.004), "99.7\u00a0%"),
        (share_text(-4.31, 0.13), "−431\u00a0%"),
        (share_text(1.0, 0.0), "100\u00a0%"),
        (points(0.0239), "2.4 in 100"),
        (points(0.0001), "less than 0.1 in 100"),
        (duration(3.21), "3.2 s"),
        (duration(61), "1 min 1 s"),
        (duration(3 * 3600 + 61), "3 h 1 min"),
        (duration(None), "–"),
        (count(1, "step"), "1 step"),
        (count(12345, "step"), "12,345 steps"),
        (count(2, "probability", "probabilities"), "2 probabilities"),
        (listed([]), "nothing"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (listed(list("abcdef"), most=4), "a, b, c and 3 more"),
        (sentence("heart_rate is odd"), "heart_rate is odd."),
        (sentence("Is it?"), "Is it?"),
        (short_number(-1250.0), "−1,250"),
    ],
)
def test_figures_read_well(given, expected):
    assert given == expected


def test_rough_times_are_in_the_unit_that_fits():
    times = (0.2, 75.0, 600.0, 9000.0, 200_000.0)
    assert [rough_duration(s) for s in times] == ["1 s", "75 s", "10 min", "2.5 h", "2.3 days"]


def test_what_is_printed_of_a_bound_is_a_bound():
    assert [bound_above(x) for x in (3.3411, 0.01234, -2.349, 0.0)] == ["3.35", "0.0124", "−2.34", "0.00"]
    assert [bound_below(x) for x in (3.3411, 0.01234, -2.341)] == ["3.34", "0.0123", "−2.35"]


def test_what_was_meant_whatever_the_case():
    assert closest("Wards", ["ward", "level"]) == "ward"
    assert closest("x", ["ward", "level"]) is None
    assert did_you_mean("levle", ["ward", "Level"]) == "; did you mean 'Level'?"
    assert did_you_mean("x", ["ward", "level"]) == ""


def test_values_as_python_writes_them():
    assert preview(["a", 1, None]) == "'a', 1, None"
    assert preview(range(9), most=3) == "0, 1, 2, … (9 in all)"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0%"), (0.0001, "<0.1%"), (0.1234, "12.3%"), (0.99951, ">99.9%"), (1.0, "100.0%")],
)
def test_rates_have_one_decimal(share, text):
    assert rate_text(share) == text


ANY_TEXT = st.text(st.characters(categories=("L", "N", "P", "S", "Z", "C")))
"""Halves of surrogate pairs and unassigned characters included."""


TURNING = ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""Classes of characters that turn around the text after them."""


@given(ANY_TEXT)
def test_what_is_printable_has_no_control_codes_and_is_left_alone(text):
    once = printable(text)
    for letter in once:
        assert letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(letter) not in TURNING
    assert printable(once) == once
    once.encode()


def test_what_steers_a_terminal_is_seen():
    assert printable("a\x1b]52;c;eA==\x07\r\x9b2J\u202e") == r"a\x1b]52;c;eA==\x07\r\x9b2J\u202e"
    assert printable("two\nlines\tעברית 👩\u200d🔬 Ünï\\x1b") == "two\nlines\tעברית 👩\u200d🔬 Ünï\\x1b"
    assert label("two\nlines\t\x00") == r"two\nlines\t\x00"
    assert len(label("x" * 10**6)) == 200


@given(ANY_TEXT, st.integers(3, 20))
def test_long_texts_keep_their_ends(text, letters):
    cut = shortened(text, letters)
    assert len(cut) == min(len(text), letters)
    assert text[:1] == cut[:1]
    assert text[-1:] == cut[-1:]


class Unfriendly:
    def __repr__(self):
        raise RuntimeError


def test_values_of_any_size_are_shown_in_part():
    large = [
        "x" * 10**6,
        [0] * 10**6,
        dict.fromkeys(range(1000), "y" * 500),
        10**5000,
        Unfriendly(),
        {"a" * 10**6},
    ]
    for value in large:
        assert len(shown(value)) <= 200


@pytest.mark.parametrize(
    "value", ["a'b", 3, [1, "x"], {"b": 1.5, "a": {}}, (None,), {1}, True, float("nan"), range(3)]
)
def test_ordinary_values_are_shown_as_python_writes_them(value):
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (-77.85, 364.1, "gap 441.95, 567.69 %"),
        (100.0, 100.5, "gap 0.5, 0.5 %"),
        (0.001, 5.0, "gap 5.00"),
        (0.0, 1.0, "gap 1.00"),
        (2.0, 2.0, "gap 0, 0 %"),
    ],
)
def test_gaps_in_words_have_a_share_if_that_means_something(lower, upper, text):
    assert gap_text(lower, upper) == text
