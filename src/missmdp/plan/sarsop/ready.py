"""Kernels are compiled on their first use on a machine; that is announced, and not counted as solving."""

from __future__ import annotations

import logging
import sys
import threading
import time

import numpy as np
from scipy import sparse

from missmdp.model.pomdp import POMDP

__all__ = ["make_ready"]

_log = logging.getLogger(__name__)

_PATIENCE = 1.5
"""Seconds before anything is said: kernels that are on disk load faster."""
_state = {"ready": False}


def make_ready(progress: bool | None) -> None:
    """Compile or load all kernels, once per process, by solving a model of two states."""
    if _state["ready"]:
        return
    _state["ready"] = True
    start = time.perf_counter()
    shown = sys.stderr.isatty() if progress is None else progress

    def announce() -> None:
        _log.info("compiling the solver's kernels (once on this machine)")
        if shown:
            print("compiling the solver's kernels: half a minute, once on this machine", file=sys.stderr)

    timer = threading.Timer(_PATIENCE, announce)
    timer.daemon = True
    timer.start()
    try:
        _exercise()
    except BaseException:
        _state["ready"] = False
        raise
    finally:
        timer.cancel()
    _log.info("kernels ready after %.1f s", time.perf_counter() - start)


def _exercise() -> None:
    from missmdp.plan.sarsop.solver import Sarsop

    solver = Sarsop(precision=0.0, max_trials=3, progress=False)
    solver.solve(_noisy(), warm_start=solver.solve(_noisy()))


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
