"""Teams: results in order, and matrix products that have one thread while any team works."""

from __future__ import annotations

import pytest

from missmdp.plan.factored import team
from missmdp.plan.factored.team import Team


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_items(threads):
    with Team(threads) as some:
        assert list(some.results(lambda k: k * k, range(20))) == [k * k for k in range(20)]


class Limits:
    """What threadpoolctl does, on a machine where matrix products have as many threads as `now` says."""

    now = 8

    def __init__(self, limits: int, user_api: str) -> None:
        assert user_api == "blas"
        self.before, Limits.now = Limits.now, limits

    def restore_original_limits(self) -> None:
        Limits.now = self.before


def test_searches_that_overlap_give_matrix_products_their_threads_back(monkeypatch):
    monkeypatch.setattr(team.threadpoolctl, "threadpool_limits", Limits)
    one, other = Team(), Team(2)
    for _ in range(2):
        one.__enter__()
        other.__enter__()
        one.__exit__()
        assert Limits.now == 1
        other.__exit__()
        assert Limits.now == 8
