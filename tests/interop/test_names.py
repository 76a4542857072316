"""WrittenNames and numbers in files."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from hostile_names import hostile_model, no_text
from interop.same import assert_same_numbers
from missmdp.interop import read_policyx, read_pomdp, read_pomdpx, write_policyx, write_pomdp, write_pomdpx
from missmdp.interop.outgoing import WrittenNames, number_text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_and_have_a_point(value):
    text = number_text(value)
    assert float(text) == value
    assert re.fullmatch(r"-?\d+\.\d+(e[+-]?\d+)?", text)


@pytest.mark.parametrize(
    ("value", "text"), [(1e-5, "0.00001"), (-2.5e-7, "-0.00000025"), (3.0, "3.0"), (1e22, "1.0e+22")]
)
def test_numbers_have_no_exponent_where_that_is_possible(value, text):
    assert number_text(value) == text


@given(
    st.lists(
        st.one_of(
            st.text(max_size=6),
            st.integers(-3, 12),
            st.none(),
            st.tuples(st.integers(0, 3), st.text(max_size=2)),
        )
    )
)
def test_names_differ_and_fit_the_grammar(labels):
    names = WrittenNames(labels, "s", {"T", "uniform"}, numbers_as_words=True)
    assert len(set(names.names)) == len(labels)
    for name in names.names:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name)
        assert name not in ("T", "uniform")
    assert not any("\n" in comment for comment in names.comments())


def test_names_stay_what_they_are_where_they_can():
    names = WrittenNames(["a b", "a_b", "T", (1, None, "x"), "a b!"], "s", {"T"})
    assert names.names == ["a_b_2", "a_b", "T_2", "s1_missing_x", "a_b_3"]
    assert WrittenNames([0, 1, 2], "s").counted
    assert not WrittenNames([0, 2, 1], "s").counted
    assert not WrittenNames([False, True], "s").counted


def test_hostile_names_change_nothing_but_comments(tmp_path):
    """Files read back as the same numbers under plain names, and hold nothing but text."""
    model = hostile_model()
    policy = mm.Sarsop(precision=0.1, progress=False).solve(model).policy
    write_pomdp(model, tmp_path / "ward.pomdp")
    write_pomdpx(model, tmp_path / "ward.pomdpx")
    write_policyx(policy, tmp_path / "ward.policyx")
    expected = model.to_pomdp()
    for read, ending in ((read_pomdp, "pomdp"), (read_pomdpx, "pomdpx")):
        assert_same_numbers(read(tmp_path / f"ward.{ending}"), expected)
    assert read_policyx(tmp_path / "ward.policyx", model).n_vectors == policy.n_vectors
    for path in tmp_path.iterdir():
        assert not no_text(path.read_text())
