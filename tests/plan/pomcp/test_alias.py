"""Tables of outcomes: they hold the distributions that they were made from, and are drawn from as they say."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from missmdp._kernels.pomcp.alias import pick
from missmdp.plan.pomcp.search import alias_rows, compile_generative
from oracles.pouct import mixed, outcome
from random_pomdps import pomdps
from strategies import seeds, some_weights

ROUNDED = 2.0**-31
"""An outcome's probability is a sum of multiples of 2⁻³² of a column, and there are as many roundings as columns."""


@numba.njit
def picked(rows, row, words, out):
    for i in range(len(words)):
        out[i] = pick(rows, row, words[i])


def distribution(rows, row):
    """Return {outcome: probability} of a row, from its columns."""
    first, bits = divmod(int(rows.row[row]), 64)
    width = 8 * rows.column.itemsize
    found = {}
    for threshold, both in rows.column[first : first + 2**bits].tolist():
        share = threshold / 2**width
        for target, mass in ((both % 2 ** (width // 2), share), (both >> (width // 2), 1.0 - share)):
            if mass > 0.0:
                found[target] = found.get(target, 0.0) + mass / 2**bits
    return found


@given(seeds(), st.integers(1, 40), st.integers(1, 4), st.booleans())
def test_tables_hold_their_distributions(seed, width, n, wide):
    rng = np.random.default_rng(seed)
    table = np.stack([some_weights(rng, width) for _ in range(n)])
    table[0] = rng.dirichlet(np.full(width, 0.1))
    rows = alias_rows(sparse.csr_array(table), wide=wide)
    for r in range(n):
        expected = {s: p for s, p in enumerate(table[r].tolist()) if p > 0.0}
        found = distribution(rows, r)
        assert set(found) <= set(expected), "nothing of probability zero"
        assert {s: found.get(s, 0.0) for s in expected} == pytest.approx(
            expected, abs=1e-14 if wide else ROUNDED, rel=0
        )


@given(seeds(), st.integers(1, 20), st.booleans())
def test_kernels_draw_what_the_tables_say(seed, width, wide):
    rng = np.random.default_rng(seed)
    table = np.stack([rng.dirichlet(np.ones(width)), np.eye(width)[width // 2]])
    rows = alias_rows(sparse.csr_array(table), wide=wide)
    words = np.concatenate(
        [rng.integers(0, 2**64, 50, dtype=np.uint64), np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)]
    )
    out = np.empty(len(words), dtype=np.int64)
    for row in (0, 1):
        picked(rows, row, words, out)
        assert out.tolist() == [outcome(rows, row, word) for word in words.tolist()]
    assert set(out.tolist()) == {width // 2}


def test_frequencies_are_the_probabilities():
    """Each of 7 frequencies of 400,000 draws is within 5 standard errors: fails by chance with 4e-6; seed fixed."""
    p = np.array([0.3, 1e-3, 0.2, 0.05, 0.149, 0.25, 0.05])
    words = np.array([mixed(i * 0x9E3779B97F4A7C15 % 2**64) for i in range(400_000)], dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    picked(alias_rows(sparse.csr_array(p[None, :]), wide=False), 0, words, out)
    share = np.bincount(out, minlength=7) / len(words)
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / len(words))).all()


@given(pomdps())
def test_wandering_is_a_random_action_with_its_reward_and_its_outcome(pomdp):
    compiled = compile_generative(pomdp)
    for s in range(pomdp.n_states):
        expected = {}
        for a, T in enumerate(pomdp.transition):
            for t, p in enumerate(T.toarray()[s].tolist()):
                if p > 0.0:
                    pair = (t, float(pomdp.reward[s, a]))
                    expected[pair] = expected.get(pair, 0.0) + p / pomdp.n_actions
        found = {}
        for code, p in distribution(compiled.wander, s).items():
            t, a = divmod(code, 2**compiled.action_bits)
            found[t, float(pomdp.reward[s, a])] = p
        assert found == pytest.approx(expected, abs=ROUNDED, rel=0)


@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-smar"])
def test_a_search_draws_from_the_model(name):
    model = mm.load_benchmark(name)
    pomdp, compiled = model.to_pomdp(), compile_generative(model)
    rng = np.random.default_rng(0)
    shown = list(model.missingness.occurring().observations)
    for s in rng.integers(0, model.n_states, 20).tolist():
        a = int(rng.integers(model.n_actions))
        T = pomdp.transition[a][[s]].toarray()[0]
        expected = {t: p for t, p in enumerate(T.tolist()) if p > 0.0}
        assert distribution(compiled.step, s * model.n_actions + a) == pytest.approx(
            expected, abs=ROUNDED, rel=0
        )
        seen = {shown[z]: p for z, p in distribution(compiled.seen, s).items()}
        assert seen == pytest.approx(model.missingness.distribution(model.states[s]), abs=ROUNDED, rel=0)


def test_models_that_are_too_large_are_named():
    class Huge:
        n_states, n_actions = 2**31, 3

        def __repr__(self):
            return "Huge"

    with pytest.raises(mm.ModelError, match="fewer than Huge has"):
        compile_generative(Huge())
