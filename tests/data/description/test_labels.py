"""Values and ranges in words: short, and told apart."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from missmdp.data.description.groups import range_labels, value_labels
from random_logs import table_of


@pytest.mark.parametrize(
    ("ranges", "labels"),
    [
        ([(0.500266, 0.6882536), (0.6882537, 0.9)], ["0.5 – 0.69", "0.69 – 0.9"]),
        ([(36.0, 36.4), (36.5, 36.9)], ["36 – 36.4", "36.5 – 36.9"]),
        ([(0.117, 0.1219), (0.123, 0.18)], ["0.117 – 0.122", "0.123 – 0.18"]),
        ([(998.2, 999.7), (1234.5, 98765.4)], ["998 – 1000", "1234 – 98765"]),
        ([(1000.12, 1000.34), (1000.35, 1000.98)], ["1000.1 – 1000.3", "1000.4 – 1001"]),
        ([(2.0e9, 3.0e9), (4.0e9, 5.5e9)], ["2e+09 – 3e+09", "4e+09 – 5.5e+09"]),
        ([(0.5, 0.5), (0.501, 0.7)], ["0.5", "0.501 – 0.7"]),
        ([(10, 15), (16, 16)], ["10 – 15", "16"]),
    ],
)
def test_ranges_are_rounded_to_what_tells_them_apart(ranges, labels):
    assert range_labels(ranges) == labels


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=24, unique=True))
def test_ranges_stay_distinct(values):
    ends = sorted(values)[: len(values) // 2 * 2]
    labels = range_labels(list(zip(ends[::2], ends[1::2], strict=True)))
    assert len(set(labels)) == len(labels)
    for text in labels:
        low, high = text.split(" – ")
        assert low != high


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12, unique=True))
def test_values_stay_distinct(values):
    assert len(set(value_labels(values))) == len(values)


def test_dates_are_days_if_that_tells_them_apart():
    start = datetime(2024, 1, 1, 8, 30)
    days = [(start + timedelta(days=10 * k), start + timedelta(days=10 * k + 9)) for k in range(2)]
    assert range_labels(days) == ["2024-01-01 – 2024-01-10", "2024-01-11 – 2024-01-20"]
    hours = [(start, start + timedelta(hours=1)), (start + timedelta(hours=2), start + timedelta(hours=3))]
    assert range_labels(hours)[0] == "2024-01-01 08:30 – 2024-01-01 09:30"
    assert value_labels([start, start + timedelta(seconds=1)])[1] == "2024-01-01 08:30:01"


def test_measurements_have_short_ranges_in_text_and_picture(tmp_path):
    rng = np.random.default_rng(0)
    shares = rng.random(20_000)
    table = table_of(share=shares.tolist(), late=[None if u > 0.7 else 1 for u in shares])
    found = mm.describe(table)
    assert max(map(len, found.by_value[0].labels)) <= len("0.000012 – 0.083")
    assert found.by_value[0].labels[6] == "0.5 – 0.59"
    assert "<!-- 0.5 – 0.59 -->" in found.draw(tmp_path / "shares.svg").read_text()
