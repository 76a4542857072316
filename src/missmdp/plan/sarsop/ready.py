"""Kernels are compiled on their first use on a machine; that is announced, and not counted as solving."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from missmdp.model.pomdp import POMDP

__all__ = ["make_ready"]

_log = logging.getLogger(__name__)

_PATIENCE = 1.5
"""Seconds before anything is said: kernels that are on disk load faster."""
_lock = threading.Lock()
_done = threading.Event()


def make_ready(exercise: Callable[[POMDP], None], progress: bool | None) -> None:
    """Compile or load all kernels, once per process, by an exercise on a small model."""
    if _done.is_set():
        return
    with _lock:
        if not _done.is_set():
            _announced(exercise, sys.stderr.isatty() if progress is None else progress)
            _done.set()


def _announced(exercise: Callable[[POMDP], None], shown: bool) -> None:
    start = time.perf_counter()

    def announce() -> None:
        _log.info("compiling the solver's kernels (once on this machine)")
        if shown:
            print("compiling the solver's kernels: half a minute, once on this machine", file=sys.stderr)

    timer = threading.Timer(_PATIENCE, announce)
    timer.daemon = True
    timer.start()
    try:
        exercise(_noisy())
    finally:
        timer.cancel()
    _log.info("kernels ready after %.1f s", time.perf_counter() - start)


def _noisy() -> POMDP:
    """Return a model in which every step of the search has something to do."""
    stay = sparse.csr_array(np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.0, 1.0]]))
    leave = sparse.csr_array(np.array([[0.4, 0.6, 0.0], [0.5, 0.4, 0.1], [0.0, 0.0, 1.0]]))
    return POMDP(
        states=(0, 1, 2),
        actions=(0, 1),
        observations=(0, 1),
        transition=(stay, leave),
        reward=np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]]),
        observation=(sparse.csr_array(np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])),),
        initial=np.array([0.5, 0.5, 0.0]),
        terminal=np.array([False, False, True]),
        discount=0.9,
        observe_initial=True,
    )
