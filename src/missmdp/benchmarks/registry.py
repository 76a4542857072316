"""The benchmarks and examples by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from missmdp.benchmarks.examples import EXAMPLES, example
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


def list_benchmarks() -> list[str]:
    """Return the names of the paper's six benchmarks."""
    return list(_BENCHMARKS)


def list_examples() -> list[str]:
    """Return the names of the paper's small examples, which `load_benchmark` also knows."""
    return list(_EXAMPLES)


def load_benchmark(name: str) -> MissMDP:
    """Return a benchmark or an example of the paper by name; models are immutable, so each is built once."""
    known = {**_BENCHMARKS, **_EXAMPLES}
    if checked_text("name", name) not in known:
        meant = did_you_mean(name, known)
        listing = f"{' The' if meant else '; the'} benchmarks are {', '.join(known)}"
        raise ModelError(f"there is no benchmark {name!r}{meant}{listing}")
    return _built(name)


@cache
def _built(name: str) -> MissMDP:
    return {**_BENCHMARKS, **_EXAMPLES}[name]()
