"""Cells: pieces of work that know nothing of each other, and what comes out of them."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, TypedDict, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from missmdp._version import __version__
from missmdp.errors import AssumptionWarning
from missmdp.experiments.grid.fingerprint import content_hash

Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Number = Annotated[float, msgspec.Meta(ge=-sys.float_info.max)]
"""Infinite where there is no bound."""
Value = Annotated[float, msgspec.Meta(ge=-1e100, le=1e100)]
"""Of a policy in a benchmark; squares and sums of such numbers are finite."""
Share = Annotated[float, msgspec.Meta(ge=-1e-9, le=1.0 + 1e-9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**48)]

KINDS: dict[str, type[Cell]] = {}
"""Name → kind of cell."""
_DIGITS = 10


@dataclass(frozen=True, eq=False)
class CellResult:
    """What came out of a cell."""

    found: dict[str, Any]
    """Numbers and words; the same whenever and wherever the cell runs, unless time is limited."""
    estimates: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """Where policies are evaluated: one number per run and episode, of shape (runs, episodes)."""
    seconds: float = 0.0
    """Wall time."""
    version: str = __version__
    """Of the library."""


@dataclass(frozen=True)
class Cell:
    """A piece of work. A subclass is a kind of cell; its fields decide what comes out, together with `inputs`.

    class Sum(Cell, kind="sum", version=1): ...

    The version is part of the key. Raise it when the same fields would give another result than before: what was
    stored by earlier code is then not found, and never mixed with new results.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    files: ClassVar[tuple[str, ...]] = ()
    """Endings of files that belong to a finished cell, besides its own."""

    def __init_subclass__(cls, *, kind: str | None = None, version: int = 1, **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind is None:
            # What several kinds have in common.
            return
        known = KINDS.setdefault(kind, cls)
        assert known.__qualname__ == cls.__qualname__, f"two kinds of cells are called {kind!r}"
        KINDS[kind] = cls
        cls.kind, cls.version = kind, version

    def work(self) -> CellResult:
        """Return what comes out; needs nothing but the cell, in any process, on any machine."""
        raise NotImplementedError(f"cells of the kind {self.kind!r} are run by whoever makes them")

    def expected_seconds(self) -> float:
        """Return how long it may take on one core, roughly."""
        return 1.0

    def label(self) -> str:
        """Return what the cell is in a few words, for the name of its file."""
        return self.kind

    def parameters(self) -> dict[str, Any]:
        """Return what decides what comes out, as values that JSON has."""
        return {known.name: getattr(self, known.name) for known in fields(self)}

    def found_type(self) -> Any:
        """Return the type of what is found, such as a `TypedDict`: files that hold anything else are damaged."""
        return dict[str, Any]

    def estimates_shape(self) -> tuple[int, int]:
        """Return the shape of the estimates: (runs, episodes)."""
        return (0, 0)

    def inputs(self) -> dict[str, str]:
        """Return hashes of what the cell reads and its fields only name, such as the model of a benchmark."""
        return {}

    @cached_property
    def key(self) -> str:
        """A hash of all that decides what comes out."""
        content = {"parameters": self.parameters(), "inputs": self.inputs()}
        return content_hash({"kind": self.kind, "version": self.version, **content})

    @cached_property
    def name(self) -> str:
        """The name of its file, without ending."""
        return f"{self.label()}-{self.key[:_DIGITS]}"


def run_cell(cell: Cell) -> CellResult:
    """Return what comes out of a cell, and how long it took."""
    began = time.monotonic()
    with warnings.catch_warnings():
        # That a learner's assumption does not hold is what some cells are there to show.
        warnings.simplefilter("ignore", AssumptionWarning)
        result = cell.work()
    return replace(result, seconds=time.monotonic() - began)


@lru_cache
def each(names: tuple[str, ...], kind: Any) -> Any:
    """Return the type of mappings from just these names to values of one type."""
    return cast("Any", TypedDict)("Found", dict.fromkeys(names, kind))
