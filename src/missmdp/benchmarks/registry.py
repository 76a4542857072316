"""The benchmarks and examples by name.

A family has a number in its name: `fleet-4` is the fleet of four machines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from missmdp.benchmarks.examples import EXAMPLES, example
from missmdp.benchmarks.fleet import fleet, plant
from missmdp.benchmarks.icu import icu
from missmdp.benchmarks.predator import predator
from missmdp.checks import checked_text
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.words import did_you_mean

_BENCHMARKS: dict[str, Callable[[], MissMDP]] = {
    "icu-smar": partial(icu, "smar"),
    "icu-mnar-id": partial(icu, "mnar-id"),
    "icu-mnar-unid": partial(icu, "mnar-unid"),
    "predator-smar": partial(predator, "smar"),
    "predator-mnar-unid": partial(predator, "mnar-unid"),
    "predator-mcar": partial(predator, "mcar"),
}
_EXAMPLES: dict[str, Callable[[], MissMDP]] = {name: partial(example, name) for name in EXAMPLES}


class Family(NamedTuple):
    """Benchmarks that differ in their number of machines, k."""

    build: Callable[[int], MissMDP]
    least: int
    most: int
    states: str
    """How many states it has, as a formula of k."""
    observations: str
    """How many observations are in Z."""
    can_go_missing: str


FAMILIES = {
    "fleet-k": Family(fleet, 1, 13, "2·3^k", "3·4^k", "wear_1, …, wear_k"),
    "plant-k": Family(plant, 2, 13, "2·3^k", "3·4^k", "wear_1, …, wear_k"),
}
"""By what they are called in lists. With 14 machines, a model has 10 million states and takes gigabytes."""


def list_benchmarks() -> list[str]:
    """Return the names of the paper's six benchmarks.

    `load_benchmark` also knows `fleet-k` and `plant-k` for up to 13 machines, such as `fleet-4`.
    """
    return list(_BENCHMARKS)


def list_examples() -> list[str]:
    """Return the names of the paper's small examples, which `load_benchmark` also knows."""
    return list(_EXAMPLES)


def is_benchmark(name: str) -> bool:
    """Return whether there is a benchmark or an example of that name; of a family, any number counts."""
    return name in _BENCHMARKS or name in _EXAMPLES or _family(name) is not None


def load_benchmark(name: str) -> MissMDP:
    """Return a benchmark or an example by name; models are immutable, so each is built once.

    Parameters
    ----------
    name
        One of `list_benchmarks` or `list_examples`, or `fleet-k` or `plant-k` with a number for k.
    """
    if not is_benchmark(checked_text("name", name)):
        raise ModelError(_no_benchmark(name))
    return _built(name)


def _no_benchmark(name: str) -> str:
    """Return that there is no such benchmark, and what may have been meant."""
    known = [*_BENCHMARKS, *_EXAMPLES]
    number = re.search("[1-9][0-9]*$", name)
    k = number[0] if number else "4"
    meant = did_you_mean(name, [*known, *(f"{family[:-1]}{k}" for family in FAMILIES)])
    listing = (
        f"{' The' if meant else '; the'} benchmarks are {', '.join([*known, *FAMILIES])} (k is a number)"
    )
    return f"there is no benchmark {name!r}{meant}{listing}"


def _family(name: str) -> tuple[Family, int] | None:
    """Return the family that a name belongs to, and its number of machines."""
    found = re.fullmatch("(.*-)(0|[1-9][0-9]*)", name)
    family = FAMILIES.get(f"{found[1]}k") if found else None
    return (family, int(found[2][:9])) if found and family else None


@cache
def _built(name: str) -> MissMDP:
    found = _family(name)
    if found is None:
        return {**_BENCHMARKS, **_EXAMPLES}[name]()
    family, k = found
    if not family.least <= k <= family.most:
        raise ModelError(
            f"there is no benchmark {name!r}: k goes from {family.least} to {family.most} "
            f"(a model has {family.states} states)"
        )
    return family.build(k)
