"""Large `.pomdp` files are read in pieces: with the same result, and the same words about mistakes."""

import numpy as np
import pytest

import missmdp as mm
from interop.test_broken_files import damaged
from interop.test_pomdp_reader import random_text
from missmdp.interop import read_pomdp, write_pomdp
from missmdp.interop.pomdp import header
from random_pomdps import random_pomdp


def outcome(path):
    """Return all numbers of a file, or the error."""
    try:
        model = read_pomdp(path)
    except mm.MissMDPError as error:
        return str(error)
    matrices = [matrix.toarray().tobytes() for matrix in (*model.transition, *model.observation)]
    return [*matrices, model.reward.tobytes(), model.initial.tobytes(), *model.states]


@pytest.mark.parametrize("seed", range(60))
def test_a_file_in_pieces_means_the_same_and_has_the_same_mistakes(tmp_path, monkeypatch, seed):
    """Random files and written ones, half of them damaged, in pieces of a line or a few."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "model.pomdp"
    if seed % 3:
        path.write_text(random_text(rng))
    else:
        write_pomdp(random_pomdp(seed), path)
    if seed % 2:
        path.write_bytes(damaged(rng, path.read_bytes()))
    whole = outcome(path)
    for size in (0, 30, 200):
        monkeypatch.setattr(header, "PIECE", size)
        assert outcome(path) == whole


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("T: 0 : 1 : 0 1.0\n", "T: 0 : 1 : 0 0.5\n"),  # a row that does not sum to one
        ("T: 0 : 1 : 0 1.0\n", "T: 0 : 1 : 0 1.0 1.0\n"),  # one number too many
        ("T: 0 : 1 : 0 1.0\n", "T: 0 : 1 : 7 1.0\n"),  # no such state
        ("T: 0 : 1 : 0 1.0\n", "T: 0 : 1 : 0 1_0\n"),  # no number
        ("O: 0 : 1 : 0 1.0\n", "O: 0 : 1 : 0\n1.0\n"),  # over two lines
        ("O: 0 : 1 : 0 1.0\n", "O: 0 : 1 : 0 1.0\ndiscount: 0.9\n"),  # given twice
        ("O: 0 : 1 : 0 1.0\n", "O: 0 : 1 :\nO: 0 : 0 : 0 1.0\n"),  # a keyword where a name should be
        ("discount: 0.9\n", ""),
    ],
)
def test_single_entries_are_read_all_at_once(tmp_path, monkeypatch, old, new):
    entries = "".join(f"{kind}: 0 : {s} : 0 1.0\n" for kind in "TO" for s in range(3))
    text = f"states: 3\nactions: 1\nobservations: 1\ndiscount: 0.9\n{entries}R: 0 : * : * : * 1\n"
    path = tmp_path / "model.pomdp"
    path.write_text(text.replace(old, new))
    whole = outcome(path)
    for size in (0, 20, 40, 60):
        monkeypatch.setattr(header, "PIECE", size)
        assert outcome(path) == whole
    # What comes before the tables may also come after them.
    path.write_text(text.replace("discount: 0.9\n", "") + "discount: 0.9\n")
    assert isinstance(outcome(path), list)
