"""Kernels are made ready by two processes where that helps, and by one where it cannot."""

import logging
import multiprocessing
import os
import subprocess
import sys

import pytest

from missmdp.plan.sarsop import ready


@pytest.fixture
def commands(monkeypatch):
    """Return the commands of processes that would have been started."""
    started = []
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(ready.subprocess, "Popen", lambda command, **_: started.append(command))
    return started


def test_the_helper_does_its_part():
    command = [sys.executable, "-P", "-c", f"import {ready.__name__} as ready; ready.compile_from_the_end()"]
    subprocess.run(command, check=True)


def test_a_helper_is_started(commands):
    assert len(ready._start_helper()) == 1
    assert "compile_from_the_end" in commands[0][-1]


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (os, "cpu_count", lambda: 1),
        (sys, "executable", "/usr/bin/an-application"),
        (sys, "executable", None),
        (multiprocessing, "parent_process", lambda: "a parent"),
        (ready, "is_kept_on_disk", lambda _: False),
    ],
)
def test_no_helper_where_it_would_not_help(commands, monkeypatch, where, name, value):
    monkeypatch.setattr(where, name, value)
    assert ready._start_helper() == []
    assert commands == []


def test_a_helper_that_cannot_be_started_is_not_missed(commands, monkeypatch, caplog):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(ready.subprocess, "Popen", refuse)
    with caplog.at_level(logging.DEBUG, logger=ready.__name__):
        assert ready._start_helper() == []
    assert "no more processes" in caplog.text


def test_a_helper_does_not_outlive_the_exercise(monkeypatch):
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(ready, "_SILENCE", 0.0)
    monkeypatch.setattr(ready, "_start_helper", lambda: [sleeper])
    ready._exercise_announced(shown=False)
    assert sleeper.returncode is not None
