"""Kernels made ready: by an exercise that needs all of them, and on a new machine by two processes at once."""

from __future__ import annotations

import logging
import sys
import threading
import time

import numpy as np
from scipy import sparse

from missmdp._kernels import second
from missmdp._kernels.sarsop.exploring import refine_entries
from missmdp.model.pomdp import POMDP
from missmdp.plan.factored.alike.multisets import Matrix, power, spread
from missmdp.plan.sarsop.compile import compile_pomdp
from missmdp.plan.sarsop.loop import Loop
from missmdp.plan.sarsop.lower import improve_lower
from missmdp.plan.sarsop.sampling import sample
from missmdp.plan.sarsop.search import Search
from missmdp.plan.sarsop.start import beliefs_over_states, set_up
from missmdp.plan.stopping import Goal, SearchLimits

_SILENCE = 1.5
"""Seconds after which kernels are being compiled, not loaded: that takes less."""

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_done = threading.Event()


def make_ready(progress: bool | None) -> None:
    """Compile or load all kernels, once per process, by an exercise on a small model."""
    if _done.is_set():
        return
    with _lock:
        if not _done.is_set():
            _exercise_announced(sys.stderr.isatty() if progress is None else progress)
            _done.set()


def _exercise_announced(shown: bool) -> None:
    begin = time.perf_counter()

    def announce() -> None:
        _log.info("compiling the solver's kernels (once on this machine)")
        if shown:
            print("compiling the solver's kernels: half a minute, once on this machine", file=sys.stderr)

    timer = threading.Timer(_SILENCE, announce)
    timer.daemon = True
    timer.start()
    try:
        with second.compiling(f"{__name__}.compile_from_the_end", refine_entries):
            exercise()
    finally:
        timer.cancel()
        timer.join()
    _log.info("kernels ready after %.1f s", time.perf_counter() - begin)


def compile_from_the_end() -> None:
    """Compile the kernels that the exercise needs last: those of backups, of episodes and of better mixtures.

    Meanwhile the exercise begins with the others, and finds these on disk when it comes to them.
    """
    search = Search(compile_pomdp(_noisy(), observe_initial=True), SearchLimits(), np.random.default_rng(0))
    set_up(search)
    improve_lower(search, np.arange(search.pools.n_points))
    sample(search)
    none = np.empty(0, dtype=np.int64)
    refine_entries(*search.upper_arrays(), none, none, none, 0, 1.0, 0, 0, 0)


def exercise() -> None:
    """Run every step of the search once."""
    pomdp = _noisy()
    beliefs: sparse.csr_array | None = None
    for _ in range(2):
        search = Search(compile_pomdp(pomdp, observe_initial=True), SearchLimits(), np.random.default_rng(0))
        Loop(search, Goal(precision=0.0, max_trials=3), say=lambda _: None).run(beliefs)
        search.pools.rehash()
        assert search.controller is not None
        search.controller.policy_vectors(search.compiled)
        beliefs = beliefs_over_states(search, pomdp.n_states)
    one = Matrix.of(np.ones((1, 1)))
    spread(power(np.ones((1, 1)), one, 1), one, 1)


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
