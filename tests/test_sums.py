"""Sums are the same on every version of Python."""

from missmdp.sums import one_by_one


def test_numbers_are_added_one_by_one():
    assert one_by_one([0.1] * 10) == 0.9999999999999999  # sum() says 1.0 since Python 3.12
    assert one_by_one([1e100, 1.0, -1e100]) == 0.0
    assert one_by_one(iter([])) == 0.0
