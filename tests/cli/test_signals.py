"""Ctrl-C and SIGTERM at random moments of every long command: it ends soon, keeps its promises, and leaves no trace.

MISSMDP_SIGNAL_MOMENTS=50 tries more moments; with -s, how long it took is printed per command.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path
from statistics import median

import pytest

import missmdp as mm

pytestmark = [
    pytest.mark.slow,  # many processes, one after the other
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
]

MOMENTS = int(os.environ.get("MISSMDP_SIGNAL_MOMENTS", "2"))
PATIENCE = 15.0
"""Seconds to end. On an idle machine one is enough; this is about ending at all."""
FIRST, LAST = 0.2, 6.0
"""Seconds after the start between which signals come; before, Python itself is not ready."""

COMMANDS = {
    "collect": "collect icu-smar --steps 100000000 -o log.parquet",
    "collect CSV": "collect icu-smar --steps 20000000 -o log.csv",
    "solve": "solve predator-mcar --precision 1e-9 -o policy.mmpolicy --trace trace.csv",
    "evaluate": "evaluate {data}/slow.mmdp --policy random --policy optimal --solve-timeout 2 -o values.csv",
    "diagnose": "diagnose {data}/icu.mmdp {data}/log.parquet",
    "learn": "learn {data}/icu.mmdp {data}/log.parquet --learner em -o learned.mmdp",
    "learn-model": "learn-model {data}/log.csv --reward reward --discount 0.9 -o learned.mmdp",
    "describe": "describe {data}/log.csv",
    "validate": "validate {data}/icu.mmdp {data}/log.csv",
    "plan-data": "plan-data icu-smar --epsilon 10",
    "coverage": "coverage {data}/slow.mmdp",
    "run": "run icu-smar --steps 20000 -o run",
    "reproduce": "reproduce --profile smoke --workers 2 -o reproduction",
    "tune-ppo": "tune-ppo icu-smar -o tuned",
}
PROMISED = {
    "solve": {"policy.mmpolicy", "trace.csv"},
    "evaluate": {"values.csv"},
    "learn-model": {"learned.mmdp"},
}
"""Written also after Ctrl-C, once there is a result; the command then ends well."""
ENDS_SOON = {"describe", "validate", "coverage"}
"""They may have said all before the signal comes, with Python itself left to end; then they ended well."""
GOES_ON = {"evaluate", "run"}
"""After Ctrl-C in some steps, with the next one; a second Ctrl-C ends them."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    icu = mm.load_benchmark("icu-smar")
    icu.save(folder / "icu.mmdp")
    log = mm.collect(icu, 500_000, seed=0, keep_states=True, progress=False)
    log.to_parquet(folder / "log.parquet")
    log.to_csv(folder / "log.csv")
    mdp = mm.FactoredMDP(
        features={"x": range(3)},
        actions=["stay", "move"],
        transition=lambda state, action: {state: 0.8, ((state.x + 1) % 3,): 0.2},
        reward=lambda state, action: state.x - (action == "move"),
        initial={(0,): 1.0},
        discount=0.999999,
    )
    missing = mm.MissingnessFunction.independent(mdp, {"x": lambda state: 0.4})
    mm.MissMDP(mdp, missing).save(folder / "slow.mmdp")
    return folder


@pytest.fixture(scope="module")
def durations() -> Generator[dict[str, list[float]]]:
    taken: dict[str, list[float]] = {}
    yield taken
    for name, seconds in taken.items():
        print(
            f"\n{name}: {len(seconds)} signals, median {median(seconds):.2f} s, most {max(seconds):.2f} s",
            end="",
        )


def waited(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def ended_after(name, words, moment, number, folder) -> tuple[subprocess.Popen[bytes], float] | None:
    """Run a command and send it a signal; return it with the seconds it took to end, or None if it was done before."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "missmdp", *words],
            cwd=folder,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "TMPDIR": str(temporary)},
            start_new_session=True,
            # As in a terminal, also where the tests run in the background, which ignores Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        try:
            if waited(process, moment):
                return None
            began = time.monotonic()
            process.send_signal(number)
            if name in GOES_ON and number == signal.SIGINT and not waited(process, 0.5):
                began = time.monotonic()
                process.send_signal(number)
            assert waited(process, PATIENCE), "it does not end"
            return process, time.monotonic() - began
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@cache
def undisturbed(words: tuple[str, ...], folder: Path) -> tuple[bytes, float]:
    """Return what a command prints that nobody disturbs, and the seconds that it takes."""
    command = [sys.executable, "-m", "missmdp", *words]
    began = time.monotonic()
    said = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    return said, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment(name, number, data, tmp_path, durations):
    if name == "tune-ppo":
        pytest.importorskip("torch")
    draw = random.Random(f"{name} {number}")
    words = tuple(COMMANDS[name].format(data=data).split())
    last = undisturbed(words, tmp_path)[1] if name in ENDS_SOON else LAST
    for i in range(MOMENTS):
        folder, moment = tmp_path / str(i), draw.uniform(FIRST, max(last, FIRST))
        ended = ended_after(name, words, moment, number, folder)
        if ended is None:
            continue
        process, seconds = ended
        durations.setdefault(name, []).append(seconds)
        said = (folder / "stderr").read_text().splitlines()
        there = {path.name for path in folder.iterdir()}
        where = f"after {moment:.2f} s: {said}, {there}"
        if process.returncode == 0 and name in ENDS_SOON:
            assert (folder / "stdout").read_bytes() == undisturbed(words, tmp_path)[0], where
        elif process.returncode == 0:
            assert number == signal.SIGINT, where
            assert PROMISED[name] <= there, where
        else:
            code, word = (130, "Interrupted") if number == signal.SIGINT else (143, "Terminated")
            assert (process.returncode, said[-1:]) == (code, [word]), where
        assert not any("Traceback" in line or "Error" in line for line in said), where
        # PyTorch keeps an empty folder of its own there, whatever ends it.
        left = [
            path for path in (folder / "temporary").rglob("*") if not path.name.startswith("torchinductor_")
        ]
        assert left == [], where
        hidden = [path for path in folder.rglob(".*") if path.is_file() and path.name != ".missmdp-lock"]
        assert hidden == [], where
