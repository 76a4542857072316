"""Try hostile input: `make fuzz`, or `python -m fuzz KIND … [--cases N] [--seed N]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from pathlib import Path

from fuzz import kinds
from fuzz.harness import case_rng, run_kind


def main(arguments: list[str] | None = None) -> int:
    """Run cases; return how many kinds are in trouble."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Try hostile input, made from valid input."
    )
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"what to try: {', '.join(kinds.KINDS)}; by default all"
    )
    parser.add_argument("--cases", type=int, default=10_000, help="cases per kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases (default: 0)")
    parser.add_argument("--case", type=int, help="run this case of one kind alone, and show where it ends")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)"
    )
    parser.add_argument(
        "--bounds-check",
        action="store_true",
        help="compile kernels so that reading outside an array raises; they are kept apart, in .fuzz-kernels",
    )
    options = parser.parse_args(arguments)
    for name in options.kinds:
        if name not in kinds.KINDS:
            parser.error(f"there is no kind {name!r}; there are {', '.join(kinds.KINDS)}")
    if options.bounds_check:
        os.environ.update(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(Path(".fuzz-kernels").absolute()))
    names = options.kinds or list(kinds.KINDS)
    if options.case is not None:
        return _one(names[0], options.seed, options.case)
    troubled = 0
    for name in names:
        book = run_kind(name, kinds.load(name), options.seed, range(options.cases), options.workers)
        print(book, flush=True)
        troubled += book.n_troubles > 0
    return troubled


def _one(name: str, seed: int, number: int) -> int:
    """Run one case here, and show what it is and where it ends."""
    with tempfile.TemporaryDirectory(prefix="missmdp-fuzz-") as folder:
        kind = kinds.load(name)(Path(folder))
        kind.tell = lambda note: print(note[:2000], flush=True)
        try:
            kind.run(case_rng(seed, name, number))
        except Exception:
            traceback.print_exc()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
