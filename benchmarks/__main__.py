"""`make bench`: every measurement, or those whose names are given.

`python -m benchmarks solve`, `online` and `scale` take options; `--help` after the name lists them. `scale` is run only
if it is named; it goes on where an interrupted run has stopped.
"""

from __future__ import annotations

import sys

from benchmarks import (
    bench_collect,
    bench_compile,
    bench_em,
    bench_evaluate,
    bench_learn,
    bench_model,
    bench_online,
    bench_pomcp,
    bench_ppo,
    bench_scale,
    bench_solve,
)

BENCHES = {
    "model": bench_model.run,
    "collect": bench_collect.run,
    "compile": bench_compile.run,
    "learn": bench_learn.run,
    "em": bench_em.run,
    "solve": bench_solve.run,
    "pomcp": bench_pomcp.run,
    "online": bench_online.run,
    "evaluate": bench_evaluate.run,
    "ppo": bench_ppo.run,
}


def main(arguments: list[str]) -> None:
    """Run the named measurements, or all that take minutes."""
    if arguments[:1] == ["scale"]:
        bench_scale.run(arguments[1:])
        return
    with_options = {"solve": bench_solve.run, "online": bench_online.run}
    if len(arguments) > 1 and arguments[0] in with_options and arguments[1].startswith("-"):
        with_options[arguments[0]](arguments[1:])
        return
    unknown = [name for name in arguments if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no measurement {unknown[0]!r}; there are {', '.join([*BENCHES, 'scale'])}")
    for name in arguments or BENCHES:
        print(f"\n{name}")
        BENCHES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
