"""Writing `.pomdp` files: what is read back is the same, bit for bit."""

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from interop.models import act_first_pomdps, every_day_or_slow
from interop.same import assert_same_numbers
from missmdp.interop import read_pomdp, write_pomdp, write_pomdpx
from oracles.pomdp_files import dense_pomdp
from strategies import missmdps


@given(act_first_pomdps())
def test_what_is_written_reads_back_bit_for_bit(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("written") / "model.pomdp"
    write_pomdp(model, path)
    assert_same_numbers(read_pomdp(path), model)


@given(missmdps())
def test_miss_mdps_read_back_bit_for_bit(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("written") / "model.pomdp"
    write_pomdp(model, path)
    back, pomdp = read_pomdp(path), model.to_pomdp()
    assert np.array_equal(back.terminal | pomdp.terminal, back.terminal)
    object.__setattr__(pomdp, "terminal", back.terminal)  # what is absorbing for free is terminal in a file
    assert_same_numbers(back, pomdp)


@pytest.mark.parametrize("name", every_day_or_slow(mm.list_benchmarks(), {"icu-smar", "predator-mcar"}))
def test_benchmarks_read_back_bit_for_bit(tmp_path, name):
    model = mm.load_benchmark(name)
    write_pomdp(model, tmp_path / "model.pomdp")
    assert_same_numbers(read_pomdp(tmp_path / "model.pomdp"), model.to_pomdp())


def test_writing_what_was_read_gives_the_same_file(tmp_path):
    write_pomdp(mm.load_benchmark("example-3"), tmp_path / "one.pomdp")
    write_pomdp(read_pomdp(tmp_path / "one.pomdp"), tmp_path / "two.pomdp")
    write_pomdp(read_pomdp(tmp_path / "two.pomdp"), tmp_path / "three.pomdp")
    assert (tmp_path / "two.pomdp").read_bytes() == (tmp_path / "three.pomdp").read_bytes()


def test_names_that_fit_are_kept_and_others_are_explained(tmp_path):
    write_pomdp(mm.load_benchmark("example-1"), tmp_path / "model.pomdp")
    text = (tmp_path / "model.pomdp").read_text()
    assert "\nactions: guess_x guess_y\n" in text
    assert "\n# guess_x = 'guess x'\n" in text
    assert "\n# x_missing = Observation(first='x', second=None)\n" in text
    assert list(read_pomdp(tmp_path / "model.pomdp").states) == ["x_x", "x_y", "y_x", "y_y"]


def test_the_header_says_that_the_file_acts_first(tmp_path):
    model = mm.load_benchmark("example-1")
    write_pomdp(model, tmp_path / "model.pomdp")
    assert "This file acts first" in (tmp_path / "model.pomdp").read_text()
    write_pomdp(read_pomdp(tmp_path / "model.pomdp"), tmp_path / "again.pomdp")
    assert "acts first" not in (tmp_path / "again.pomdp").read_text()


@pytest.mark.parametrize(
    "name", ["example-1", "example-2-mar", pytest.param("icu-smar", marks=pytest.mark.slow)]
)
def test_a_first_observation_can_be_written_as_one_more_step(tmp_path, name):
    """From the added state every action leads to b₀, so that P(z⁽⁰⁾) is that of the model."""
    model = mm.load_benchmark(name)
    pomdp = model.to_pomdp()
    write_pomdp(model, tmp_path / "model.pomdp", observe_initial=True)
    back = read_pomdp(tmp_path / "model.pomdp")
    assert back.n_states == pomdp.n_states + 1
    assert back.initial.tolist() == [0.0] * pomdp.n_states + [1.0]
    for a in range(pomdp.n_actions):
        after = back.initial @ back.transition[a]
        assert np.array_equal(after[:-1], pomdp.initial)
        assert np.array_equal(after @ back.observation[0], pomdp.initial @ pomdp.observation[0])
    assert not back.reward[-1].any()


def test_a_first_observation_that_there_is_not_cannot_be_written(tmp_path):
    write_pomdp(mm.load_benchmark("example-1"), tmp_path / "model.pomdp")
    acts_first = read_pomdp(tmp_path / "model.pomdp")
    with pytest.raises(mm.ModelError, match="no observation before the first action"):
        write_pomdp(acts_first, tmp_path / "no.pomdp", observe_initial=True)
    assert not (tmp_path / "no.pomdp").exists()


def test_only_models_are_written(tmp_path):
    with pytest.raises(mm.ModelError, match="expected a MissMDP or a POMDP, got str"):
        write_pomdp("icu-smar", tmp_path / "no.pomdp")


def test_the_oracle_reads_it_too(tmp_path):
    model = mm.load_benchmark("example-2-smar")
    write_pomdp(model, tmp_path / "model.pomdp")
    dense, pomdp = dense_pomdp((tmp_path / "model.pomdp").read_text()), model.to_pomdp()
    assert np.array_equal(dense.transition, np.stack([matrix.toarray() for matrix in pomdp.transition]))
    assert np.allclose(dense.reward, pomdp.reward)
    assert np.array_equal(dense.initial, pomdp.initial)


@pytest.mark.parametrize("suffix", ["pomdp", "pomdpx"])
def test_a_file_that_nobody_could_read_is_not_written(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("missmdp.interop.outgoing.MAX_CELLS", 30)
    write = {"pomdp": write_pomdp, "pomdpx": write_pomdpx}[suffix]
    with pytest.raises(mm.ModelError, match=r"probabilities \(about .*\), and what is read has at most 30"):
        write(mm.load_benchmark("example-1"), tmp_path / f"model.{suffix}")
    assert not list(tmp_path.iterdir())
