"""Several threads for steps that do not depend on each other; the result does not depend on how many there are."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

import threadpoolctl  # pyright: ignore[reportMissingTypeStubs]

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Products:
    """Keeps matrix products on one thread while any team works; the limit holds for the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._teams = 0
        self._limits: Any = None

    def enter(self) -> None:
        """Set the limit if this is the first team."""
        with self._lock:
            if self._teams == 0:
                self._limits = cast("Any", threadpoolctl).threadpool_limits(1, user_api="blas")
            self._teams += 1

    def leave(self) -> None:
        """Restore what was there before if this was the last team."""
        with self._lock:
            self._teams -= 1
            if self._teams == 0:
                self._limits.restore_original_limits()


_products = _Products()


class Team:
    """Some threads that work side by side.

    In its block, matrix products have no threads of their own: they would come on top of these.

    Parameters
    ----------
    threads
        How many.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, "missmdp-structured") if threads > 1 else None

    def __enter__(self) -> Team:
        _products.enter()
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown()
        _products.leave()

    def results(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items; not many more are ready than have been taken."""
        if self._executor is None:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                if len(pending) > self._threads:
                    yield pending.popleft().result()
                pending.append(self._executor.submit(function, item))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
