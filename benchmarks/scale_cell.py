"""One cell of `python -m benchmarks scale`: a step on a model, in a process of its own.

`python -m benchmarks.scale_cell fleet-4 solve 20 4000` prints what it took as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOG = 10_000
"""Steps in the log that learners and diagnosis get."""
EPISODES = 500
PRECISION = 0.01
"""The solver is done when its bounds are within 1 %."""
SHORT = 3.0
"""Seconds for a policy that is only needed to evaluate or certify it."""
SETUP = 60.0
"""CPU seconds to make what a step needs, kernels loaded included."""


def levels(n: int) -> Any:
    """Return two machines with n levels of wear each: few features, many states."""
    import numpy as np

    import missmdp as mm

    wear = np.zeros((n, 2, 2, n))
    for now in range(n):
        for load in range(2):
            rate = 0.3 + 0.3 * load if now < n - 1 else 0.0
            wear[now, load, 0, min(now + 1, n - 1)] += rate
            wear[now, load, 0, now] += 1.0 - rate
            wear[now, load, 1, max(now - n // 2, 0)] = 1.0
    worn = -3.0 * np.arange(n)[:, None] / (n - 1) * np.ones(2)
    mdp = mm.FactoredMDP.from_factors(
        {"load": range(2), "first": range(n), "second": range(n)},
        ["run", "repair"],
        {
            "load": ([], np.full((2, 2), 0.5)),
            "first": (["first", "load"], wear),
            "second": (["second", "load"], wear),
        },
        [("load", np.array([[2.0, -2.0], [4.0, 0.0]])), ("first", worn), ("second", worn)],
        {"load": {0: 0.5, 1: 0.5}, "first": 0, "second": 0},
    )
    missing = "load", np.array([0.5, 0.8])
    return mm.MissMDP(
        mdp,
        mm.MissingnessFunction.independent(mdp, {"first": missing, "second": missing}),
        name=f"levels-{n}",
    )


Work = Callable[[], str]
"""What is timed; it returns what came out."""


def _collect(model: Any, seconds: float) -> Work:
    import missmdp as mm

    return lambda: f"{mm.collect(model, LOG, seed=0, progress=False).n_steps:,} steps"


def _count(model: Any, seconds: float) -> Work:
    import missmdp as mm

    log = mm.collect(model, LOG, seed=0, progress=False)
    return lambda: str(mm.AsMAR().fit(log))


def _em(model: Any, seconds: float) -> Work:
    import missmdp as mm

    log = mm.collect(model, LOG, seed=0, progress=False)
    return lambda: type(mm.DynamicsEM(model.mdp).fit(log)).__name__


def _diagnose(model: Any, seconds: float) -> Work:
    import missmdp as mm

    log = mm.collect(model, LOG, seed=0, progress=False)
    return lambda: str(mm.diagnose(log, log.mdp, progress=False)).splitlines()[0]


def _solve(model: Any, seconds: float) -> Work:
    import missmdp as mm

    def solve() -> str:
        result = mm.Sarsop(precision=PRECISION, timeout=seconds, progress=False).solve(model)
        return f"[{result.lower:.2f}, {result.upper:.2f}]"

    return solve


def _policy(model: Any) -> Any:
    import missmdp as mm

    return mm.Sarsop(precision=PRECISION, timeout=SHORT, progress=False).solve(model)


def _evaluate(model: Any, seconds: float) -> Work:
    import missmdp as mm

    try:
        policy, name = _policy(model).policy, "the policy"
    except mm.ModelError:  # too large to be solved
        policy, name = mm.UniformPolicy(), "random actions"
    return lambda: f"{name}: {mm.evaluate(policy, model, episodes=EPISODES, seed=0, progress=False)}"


def _certify(model: Any, seconds: float) -> Work:
    import missmdp as mm

    learner = mm.AsMAR().fit(mm.collect(model, LOG, seed=0, progress=False))
    result = _policy(model.with_missingness(learner.missingness_))
    return lambda: str(mm.certify(result, learner, halve=False, timeout=SHORT, progress=False)).splitlines()[
        0
    ]


STEPS: dict[str, Callable[[Any, float], Work]] = {
    "collect": _collect,
    "count": _count,
    "EM": _em,
    "diagnose": _diagnose,
    "solve": _solve,
    "evaluate": _evaluate,
    "certify": _certify,
}


def _peak() -> float:
    """Return the peak memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1000.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _limit_cpu(seconds: float) -> None:
    """End this process after so many more CPU seconds."""
    if sys.platform == "linux":
        import resource

        used = time.process_time() + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 1, resource.RLIM_INFINITY))


def main(name: str, step: str, seconds: float, memory: float) -> None:
    """Print how large the model is, and then what the step took, each as a line of JSON."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e6), resource.RLIM_INFINITY))
    _limit_cpu(SETUP)
    import missmdp as mm

    record: dict[str, Any] = {"states": 0, "seconds": None, "wall": None, "memory": None, "said": ""}
    try:
        family, _, size = name.rpartition("-")
        model = levels(int(size)) if family == "levels" else mm.load_benchmark(name)
        record["states"] = model.n_states
        print(json.dumps(record), flush=True)
        STEPS[step](levels(3), 1.0)()  # kernels are loaded
        work = STEPS[step](model, seconds)
        # What has a limit of its own comes back by itself, a little later.
        _limit_cpu(1.25 * seconds if step == "solve" else seconds)
        wall, cpu = time.perf_counter(), time.process_time()
        said = work()
        record |= {"seconds": time.process_time() - cpu, "wall": time.perf_counter() - wall, "said": said}
    except mm.MissMDPError as error:
        record["said"] = " ".join(str(error).split())
    except MemoryError:
        record["said"] = f"more than {memory:g} MB of memory"
    record["memory"] = _peak()
    print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
