"""How much memory is free, and errors before it is taken."""

import subprocess
import sys

import pytest

import missmdp as mm
from missmdp import memory


def test_what_does_not_fit_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2.5e9)
    memory.check_fits("the table", 2.4e9, "use less")
    with pytest.raises(mm.ModelError) as error:
        memory.check_fits("the table", 1.6e13, "use less")
    assert str(error.value) == "the table would take about 16 TB of memory, and 2.5 GB is free; use less"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0.0, "0.0 MB"), (3.44e6, "3.4 MB"), (1.2e8, "120 MB"), (7.25e9, "7.2 GB"), (3e15, "3e+03 TB")],
)
def test_bytes_in_words(nbytes, text):
    assert memory.memory_text(nbytes) == text


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_the_limit_of_the_process_counts():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9)); "
        "from missmdp.memory import free_memory; before = free_memory(); taken = bytearray(10**8); "
        "print(before < 2e9, 0.9e8 < before - free_memory() < 1.3e8)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_a_system_that_does_not_say(monkeypatch):
    monkeypatch.setattr(memory, "_lines", lambda path: [])
    monkeypatch.setattr(memory, "address_limit", lambda: None)
    assert memory.free_memory() > 1e8


def test_work_that_does_not_fit_is_not_begun(monkeypatch):
    """Everything that multiplies out asks first, and says so in one line."""
    model = mm.load_benchmark("fleet-3")
    mdp = mm.FactoredMDP(
        model.features, model.actions, model.mdp.transition, model.mdp.reward, model.mdp.initial
    )
    monkeypatch.setattr(memory, "free_memory", lambda: 1e3)
    for work in (
        mdp.with_last_action,
        mm.MissMDP(mdp, model.missingness).to_pomdp,
        lambda: (
            mm.FactoredMDP.from_factors(
                {"x": range(40)}, ["a"], {"x": ("x", lambda x, a: {0: 0.5, 1: 0.5})}, 0.0, {"x": 0}
            ).transition
        ),
    ):
        with pytest.raises(mm.ModelError, match=r"would take about .* of memory, and 0.0 MB is free; \w"):
            work()
