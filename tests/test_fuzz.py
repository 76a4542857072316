"""Hostile input: a short run of every kind of case, and a harness that notices trouble."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

import missmdp as mm
from fuzz import kinds
from fuzz.harness import Kind, attempt, case_rng, run_kind

CASES = int(os.environ.get("MISSMDP_TEST_CASES", "40"))
SEED = 1
"""Other cases than those of `make fuzz`."""


@pytest.mark.parametrize("name", kinds.KINDS)
def test_hostile_input_is_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind = kinds.load(name)(tmp_path)
    outcomes = []
    for number in range(CASES):
        kind.note = "?"
        outcome, what = attempt(lambda n=number: kind.run(case_rng(SEED, name, n)))
        assert outcome != "trouble", (
            f"python -m fuzz {name} --seed {SEED} --case {number}: {what} ({kind.note})"
        )
        outcomes.append(outcome)
    assert len(set(outcomes)) == 2, "some cases should work, and some be refused"


class Troubled(Kind):
    """Every sixth case dies, hangs, raises, or takes too much memory."""

    def run(self, rng: random.Random) -> None:
        way = rng.randrange(6)
        self.note = f"way {way}"
        match way:
            case 0:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 1:
                time.sleep(60)
            case 2:
                raise KeyError("x")
            case 3:
                b"x" * 2**28
            case 4:
                raise mm.DataError("no")
            case _:
                pass


def test_the_harness_notices_trouble_and_goes_on():
    cases = range(14)
    ways = [case_rng(0, "troubled", number).randrange(6) for number in cases]
    assert set(ways) == set(range(6))
    book = run_kind("troubled", Troubled, 0, cases, workers=2, patience=4.0, memory=2**27)
    assert (book.fine, book.refused) == (ways.count(5), ways.count(4))
    found = {number: what for what, all_ in book.troubles.items() for number, _ in all_}
    expected = {0: "dies (SIGSEGV)", 1: "hangs", 2: "KeyError", 3: "MB"}
    assert found.keys() == {number for number in cases if ways[number] < 4}
    for number, what in found.items():
        assert expected[ways[number]] in what


def test_a_case_is_the_same_every_time(tmp_path: Path):
    notes = []
    for _ in range(2):
        kind = kinds.load("policies")(tmp_path)
        attempt(lambda kind=kind: kind.run(case_rng(0, "policies", 3)))
        notes.append(kind.note)
    assert notes[0] == notes[1]
