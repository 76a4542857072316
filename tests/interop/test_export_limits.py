"""What is too large to be written says so before anything is multiplied out."""

from __future__ import annotations

import pytest

import missmdp as mm
from missmdp.interop.outgoing import outgoing_pomdp


def test_files_that_nobody_could_read_are_refused_first(monkeypatch):
    model = mm.load_benchmark("fleet-10")
    monkeypatch.setattr(mm.MissMDP, "to_pomdp", lambda self: pytest.fail("it was multiplied out"))
    with pytest.raises(mm.ModelError, match=r"would hold 273,437,500 probabilities \(about 19 GB\).*\.mmdp"):
        outgoing_pomdp(model)
