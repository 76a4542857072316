"""How much memory there is, and whether a piece of work fits into it.

Whatever grows like a product of sizes is estimated before it is begun: if it does not fit, an error says what it would
take and what to do instead.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from missmdp.errors import ModelError

MB = 2**20


def check_fits(what: str, nbytes: float, instead: str) -> None:
    """Raise `ModelError` if a piece of work would take more memory than is free.

    Parameters
    ----------
    what
        The piece of work, as the subject of a sentence.
    nbytes
        What it takes at its peak, roughly.
    instead
        What to do instead.
    """
    free = free_memory()
    if nbytes > free:
        raise ModelError(
            f"{what} would take about {memory_text(nbytes)} of memory, and {memory_text(free)} is free; {instead}"
        )


def memory_text(nbytes: float) -> str:
    """Return a number of bytes in words: "12 GB"."""
    for unit, size in (("MB", 1e6), ("GB", 1e9), ("TB", 1e12)):
        if nbytes < 1000.0 * size:
            return f"{nbytes / size:.0f} {unit}" if nbytes >= 10.0 * size else f"{nbytes / size:.1f} {unit}"
    return f"{nbytes / 1e12:.2g} TB"


def free_memory() -> float:
    """Return how many bytes this process can still take, as far as the system says."""
    pages = [*map(int, next(iter(_lines(Path("/proc/self/statm"))), "0 0").split()[:2])]
    mapped, resident = (page * os.sysconf("SC_PAGE_SIZE") if page else 0 for page in pages)
    addresses, container = address_limit(), container_limit()
    left = [
        float("inf") if addresses is None else addresses - mapped,
        float("inf") if container is None else container - resident,
        _machine_free(),
    ]
    return max(min(left), 0.0)


def _machine_free() -> float:
    """Return the memory of the machine that nobody uses, swap included; all of it where the system does not say."""
    said = [line.split() for line in _lines(Path("/proc/meminfo"))]
    free = [1024.0 * int(words[1]) for words in said if words[0] in ("MemAvailable:", "SwapFree:")]
    if free:
        return sum(free)
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on this system
        return float("inf")


def address_limit() -> int | None:
    """Return the most bytes that this process may map."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def container_limit(system: Path = Path("/")) -> int | None:
    """Return the most bytes of memory for this process and the others in its control group.

    With swap a low limit makes programs slow, and does not end them.
    """
    swap = [line.split()[1] for line in _lines(system / "proc/meminfo") if line.startswith("SwapTotal:")]
    if swap != ["0"]:
        return None
    limits: list[int] = []
    for line in _lines(system / "proc/self/cgroup"):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        inside = PurePosixPath(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            found = _lines(system / "sys/fs/cgroup" / root / folder / name)
            limits += [int(number) for number in found if number.isdecimal()]
    return min(limits, default=None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
