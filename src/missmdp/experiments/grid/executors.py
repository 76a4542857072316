"""Where cells run: here, in worker processes, or on a Dask cluster. All give back results as they are finished."""

from __future__ import annotations

import importlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from missmdp._version import __version__
from missmdp.errors import Argument, MissingExtra, MissMDPError
from missmdp.experiments.grid.cell import Cell, CellResult, run_cell

_PATIENCE = 30
"""Seconds to wait for the first worker of a cluster."""
_GLANCE = 0.5
"""Seconds between two looks of a worker at whether its parent is still there."""


@dataclass(frozen=True)
class Failed:
    """What a cell raised instead of a result."""

    reason: str


Finished = tuple[Cell, CellResult | Failed]
Work = Callable[[Cell], CellResult]


def execute(
    cells: Sequence[Cell], *, workers: int = 1, dask: str | None = None, work: Work = run_cell
) -> Generator[Finished, None, None]:
    """Yield each cell with its result when it is finished, in no particular order.

    A cell that fails does not keep the others from running.

    Parameters
    ----------
    cells
        What to run.
    workers
        How many processes; 1 for this one.
    dask
        The address of a Dask scheduler, such as tcp://host:8786, instead of processes here.
    work
        What to do with a cell.
    """
    if dask is not None:
        return _on_dask(cells, dask, work)
    if workers == 1 or len(cells) < 2:
        return _here(cells, work)
    return _in_processes(cells, workers, work)


def _attempt(cell: Cell, work: Work) -> CellResult | Failed:
    try:
        return work(cell)
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}")


def _here(cells: Sequence[Cell], work: Work) -> Generator[Finished, None, None]:
    for cell in cells:
        yield cell, _attempt(cell, work)


def _in_processes(cells: Sequence[Cell], workers: int, work: Work) -> Generator[Finished, None, None]:
    # Neither it nor Dask says which types it has.
    joblib: Any = importlib.import_module("joblib")
    loky: Any = importlib.import_module("joblib.externals.loky.process_executor")
    task = joblib.delayed(_numbered)
    # One cell at a time: cells take seconds to minutes, and a batch would be lost as a whole.
    parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
    here = os.getpid()
    results = parallel(task(i, cell, work, here) for i, cell in enumerate(cells))
    try:
        for index, result in results:
            yield cells[index], result
    except loky.TerminatedWorkerError as error:
        raise MissMDPError(
            "a worker process was killed, perhaps because memory ran out; run it again to resume, with a smaller ",
            Argument("workers"),
        ) from error
    finally:
        with warnings.catch_warnings(category=UserWarning, action="ignore"):
            # That cells were under way is no news to whoever stops, and why is said in one line.
            results.close()


def _numbered(index: int, cell: Cell, work: Work, parent: int) -> tuple[int, CellResult | Failed]:
    _end_with(parent)
    return index, _attempt(cell, work)


@cache
def _end_with(parent: int) -> None:
    """End this process when its parent has ended, however it did: nobody would take what comes out of it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)

    if os.getpid() != parent:
        threading.Thread(target=watch, name="missmdp-parent", daemon=True).start()


def _on_dask(cells: Sequence[Cell], address: str, work: Work) -> Generator[Finished, None, None]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtra('a Dask cluster needs the extra dask: pip install "missmdp[dask]"') from None
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError, TypeError) as error:
        raise MissMDPError(f"{address}: no Dask scheduler answers there ({error})") from error
    with client:
        _check_workers(client, address)
        # Dask gives the cells of a worker that dies to the others.
        futures: dict[Any, Cell] = {client.submit(_attempt, cell, work, pure=False): cell for cell in cells}
        try:
            for future in distributed.as_completed(list(futures)):
                cell = futures.pop(future)
                yield cell, _outcome(future)
                future.release()
        finally:
            client.cancel(list(futures))


def _check_workers(client: Any, address: str) -> None:
    """Raise unless there are workers, and all have this version of missmdp: elsewhere cells would wait for ever."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        versions: set[str] = set(client.run(_version).values())
    except TimeoutError as error:
        raise MissMDPError(f"{address}: no worker has joined the cluster in {_PATIENCE} s") from error
    except Exception as error:
        raise MissMDPError(
            f"{address}: workers cannot use missmdp; is it installed there? ({type(error).__name__}: {error})"
        ) from error
    if versions != {__version__}:
        raise MissMDPError(
            f"{address}: workers have missmdp {', '.join(sorted(versions))}, this is {__version__}"
        )


def _version() -> str:
    return __version__


def _outcome(future: Any) -> CellResult | Failed:
    try:
        return future.result()
    except Exception as error:
        # Not of the cell itself: its worker died again and again, or cannot import what it takes.
        return Failed(f"{type(error).__name__}: {error}")
