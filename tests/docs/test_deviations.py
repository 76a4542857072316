"""What docs/deviations.md says of the paper's formulas is so."""

import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.plan.ppo.encoding import n_frames


@pytest.fixture
def page(request):
    return (request.config.rootpath / "docs" / "deviations.md").read_text()


def test_patterns_as_printed_would_count_example_1_twice(page):
    """As printed, r = (1, 1) asks nothing of z, so that it counts all n rows, and (1, 0) half of them."""
    truth = mm.load_benchmark("example-1")
    data = mm.collect(truth, 20_000, seed=0)
    shown = data.observed
    as_printed = {
        r: int(np.all(~shown[:, [i for i in (0, 1) if not r[i]]], axis=1).sum()) for r in [(1, 1), (1, 0)]
    }
    shares = np.array(list(as_printed.values())) / sum(as_printed.values())
    assert shares == pytest.approx([2 / 3, 1 / 3], abs=0.01)
    learned = mm.AsMAR().fit(data).missingness_.missing_rate("second")
    assert learned == pytest.approx(np.full(4, 0.5), abs=0.03)
    assert "(⅔, ⅓) instead of (½, ½)" in page


def test_the_union_bound_as_printed_covers_nothing(page):
    """100 frequencies of 1,000 samples, p = 0.3; 2,000 repetitions, seed fixed."""
    found = np.random.default_rng(0).binomial(1_000, 0.3, (2_000, 100)) / 1_000
    worst = np.abs(found - 0.3).max(axis=1)

    def covered(failure):
        return (worst <= math.sqrt(math.log(2 / failure) / 2_000)).mean()

    assert covered(1 - 0.95 / 100) == 0.0
    assert covered((1 - 0.95) / 100) > 0.99
    assert "0 % of simulations as printed, and in more than 99 % this way" in page


def test_the_number_of_frames(page):
    def printed(epsilon):
        return math.log(epsilon * 0.05) / math.log(0.95)

    assert n_frames(0.95) == math.floor(printed(1e-2)) == 148
    assert math.ceil(printed(1e-2)) == 149
    assert math.ceil(printed(1e-3)) == 194
    assert "148.19" in page
    assert f"{printed(1e-2):.2f}" == "148.19"


def test_sizes_are_those_of_the_appendix(page):
    assert mm.load_benchmark("predator-smar").n_states == 626
    assert mm.load_benchmark("predator-smar").n_observations == 1311
    assert mm.load_benchmark("predator-mcar").n_states == 1765
    assert "626 and 1,765 states" in page


def test_every_docstring_that_departs_is_known_to_the_page(request):
    """A new "Deviation" in the code needs a row here, and its module in this list."""
    source = request.config.rootpath / "src" / "missmdp"
    departing = {
        str(path.relative_to(source)) for path in source.rglob("*.py") if "Deviation" in path.read_text()
    }
    assert departing == {
        "evaluation/certificate/certificate.py",
        "learn/aimi.py",
        "learn/asmar.py",
        "learn/bounds.py",
        "learn/histories_needed.py",
        "model/mdp.py",
        "model/missingness.py",
        "plan/pomcp/solver.py",
        "plan/ppo/encoding.py",
        "plan/ppo/solver.py",
        "plan/sarsop/solver.py",
    }
