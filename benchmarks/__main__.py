"""`make bench`: every measurement, or those whose names are given."""

from __future__ import annotations

import sys

from benchmarks import bench_collect, bench_learn, bench_model

BENCHES = {"model": bench_model.run, "collect": bench_collect.run, "learn": bench_learn.run}


def main(names: list[str]) -> None:
    """Run the named measurements, or all."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no measurement {unknown[0]!r}; there are {', '.join(BENCHES)}")
    for name in names or BENCHES:
        print(f"\n{name}")
        BENCHES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
