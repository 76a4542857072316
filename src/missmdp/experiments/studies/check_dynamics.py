"""How often `check_dynamics` rejects: an MDP that is right, and MDPs that are off by five points.

A plant has pumps that wear and vibrate. The log comes from one MDP, and another one is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, TypedDict, cast

from missmdp.data.collect import collect
from missmdp.experiments.grid.cell import Cell, CellResult, Count, Finite, each
from missmdp.experiments.studies.study import Finished, Rows, Study
from missmdp.experiments.tables import markdown_table
from missmdp.learn.dynamics.check import check_dynamics
from missmdp.learn.dynamics.result import DynamicsRow
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

WEAR, VIBRATION, LOAD = ("new", "used", "worn", "failing"), ("low", "raised", "high"), ("half", "full")
WEARS = {"half": 0.06, "full": 0.15}
SHAKES = {
    "new": (0.70, 0.25, 0.05),
    "used": (0.50, 0.35, 0.15),
    "worn": (0.25, 0.40, 0.35),
    "failing": (0.10, 0.30, 0.60),
}
LEVEL = 0.01
LEVEL_LOGS, LEVEL_STEPS = 1_000, 3_000
POWER_LOGS, POWER_STEPS = 100, 10_000
PER_CELL = 50
"""Logs that one cell checks."""
BEHAVIOURS = ("random", "reacts")
STRUCTURES = {"auto": "nothing", "smar": "simple MAR"}
"""What is assumed about gaps, in words."""


class Wrong(TypedDict):
    """How often each feature was rejected."""

    rejected: Count
    rows: Finite
    """How many tests there were, on average."""
    unsure: Finite
    """How many of them could not tell, on average."""
    wear: Count
    vibration: Count
    load: Count
    alone: Count
    """How often the test of what is wrong would have rejected, had it been the only one."""


GAPS: dict[str, dict[str, float | Callable[[Any], float]]] = {
    "by chance": {"wear": 0.5, "vibration": 0.5},
    "by load": {
        "wear": lambda s: {"half": 0.35, "full": 0.65}[s.load],
        "vibration": lambda s: {"half": 0.6, "full": 0.4}[s.load],
    },
    "self-censoring": {
        "wear": lambda s: {"new": 0.4, "used": 0.5, "worn": 0.65, "failing": 0.75}[s.wear],
        "vibration": lambda s: {"low": 0.4, "raised": 0.6, "high": 0.7}[s.vibration],
    },
}
"""Kinds of gaps; wear and vibration are seen in about half of all steps."""


class Error(NamedTuple):
    """What is wrong with an MDP."""

    words: str
    feature: str
    """The feature that should be found."""
    where: str
    """The end of what the test of the wrong row is about; "" for all rows."""


TRUTHS: dict[str, Error] = {
    "nothing": Error("–", "–", "–"),
    "wear": Error(
        "P(used) where a new pump runs at half load: 0.06, true 0.11", "wear", "wear is new and load is half"
    ),
    "vibration when new": Error(
        "P(high vibration) of new pumps: 0.05, true 0.10", "vibration", "next wear is new"
    ),
    "vibration when used": Error(
        "P(high vibration) of used pumps: 0.15, true 0.20", "vibration", "next wear is used"
    ),
    "load": Error("P(full load): 0.45, true 0.85", "load", ""),
}
"""What is wrong with the MDP."""


@dataclass(frozen=True)
class DynamicsCell(Cell, kind="dynamics", version=2):
    """How often a check rejects, in logs that differ by their seed."""

    truth: str
    gaps: str
    behaviour: str
    size: int
    first: int
    structure: str = "auto"
    """What is assumed about M."""
    logs: int = PER_CELL

    def label(self) -> str:
        """Return what it is in a few words."""
        words = f"{self.truth}-{self.gaps}-{self.behaviour}".replace(" ", "-")
        return f"dynamics-{words}-{self.structure}-{self.size}-{self.first:04d}"

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return self.logs * (0.08 + 1e-5 * self.size)

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return each(tuple(Wrong.__annotations__), Finite)

    def work(self) -> CellResult:
        """Return how often the check rejects."""
        full = 0.45 if self.truth == "load" else 0.5
        given, true = pumps(full=full), changed_pumps(self.truth)
        chances = GAPS[self.gaps]
        model = MissMDP(true, MissingnessFunction.independent(true, chances))
        act = _reacts if self.behaviour == "reacts" else _random
        found = dict.fromkeys(Wrong.__annotations__, 0.0)
        for seed in range(self.first, self.first + self.logs):
            log = collect(model, self.size, act, seed=seed, horizon=60, threads=1, progress=False)
            check = check_dynamics(
                log, given, level=LEVEL, structure=cast("Any", self.structure), threads=1, progress=False
            )
            found["rejected"] += check.rejected
            found["rows"] += len(check.rows) / self.logs
            found["unsure"] += sum(row.verdict == "cannot tell" for row in check.rows) / self.logs
            for feature in check.features:
                found[feature] += 1.0
            found["alone"] += any(
                _asks(row, TRUTHS[self.truth]) and row.p_value < LEVEL for row in check.rows
            )
        return CellResult(found)


def _asks(row: DynamicsRow, error: Error) -> bool:
    """Return whether a test is about just what is wrong."""
    about = row.where.endswith(error.where) if error.where else (row.action, row.where) == (None, "")
    return row.feature == error.feature and not row.first and about


def _random(_: Any) -> dict[str, float]:
    return {"run": 0.9, "overhaul": 0.1}


def _reacts(seen: Any) -> dict[str, float]:
    """Return what a foreman does who overhauls what was found worn, and sometimes what shakes or is silent."""
    doubt = 0.5 if seen.wear in ("worn", "failing") else 0.15 if seen.vibration in (None, "high") else 0.05
    return {"run": 1.0 - doubt, "overhaul": doubt}


def changed_pumps(truth: str) -> FactoredMDP:
    """Return the pumps as they really are."""
    match truth:
        case "wear":
            return pumps(wears=lambda load, level: 0.11 if (load, level) == ("half", 0) else WEARS[load])
        case "vibration when new":
            return pumps(shakes={**SHAKES, "new": (0.65, 0.25, 0.10)})
        case "vibration when used":
            return pumps(shakes={**SHAKES, "used": (0.45, 0.35, 0.20)})
        case "load":
            return pumps(full=0.85)
        case _:
            return pumps()


def pumps(
    *,
    wears: Callable[[str, int], float] = lambda load, level: WEARS[load],
    shakes: Mapping[str, tuple[float, ...]] = SHAKES,
    full: float = 0.5,
) -> FactoredMDP:
    """Return pumps that wear under load and vibrate when they are worn.

    Parameters
    ----------
    wears
        P(one level worse), by load and level.
    shakes
        P(vibration), by wear.
    full
        P(full load).
    """
    loads = (("half", 1.0 - full), ("full", full))

    def begun(level: int, chance: float) -> list[tuple[Any, float]]:
        return [
            ((WEAR[level], vibration, load), chance * shaking * loaded)
            for vibration, shaking in zip(VIBRATION, shakes[WEAR[level]], strict=True)
            for load, loaded in loads
        ]

    def transition(state: Any, action: Any) -> list[tuple[Any, float]]:
        if action == "overhaul":
            return begun(0, 1.0)
        level = WEAR.index(state.wear)
        if level == 3:
            return begun(3, 1.0)
        worse = wears(state.load, level)
        return begun(level, 1.0 - worse) + begun(level + 1, worse)

    return FactoredMDP(
        features={"wear": WEAR, "vibration": VIBRATION, "load": LOAD},
        actions=["run", "overhaul"],
        transition=transition,
        reward=0.0,
        initial=dict(begun(0, 1.0)),
        discount=0.95,
    )


def cells() -> list[Cell]:
    """Return all cells, some of each kind after the other."""
    level = [
        DynamicsCell("nothing", gaps, behaviour, LEVEL_STEPS, first)
        for first, gaps, behaviour in product(range(0, LEVEL_LOGS, PER_CELL), GAPS, BEHAVIOURS)
    ]
    power = [
        DynamicsCell(truth, gaps, "random", POWER_STEPS, 10_000 + first, structure)
        for first, truth, gaps, structure in product(
            range(0, POWER_LOGS, PER_CELL), list(TRUTHS)[1:], GAPS, STRUCTURES
        )
        if structure == "auto" or (truth == "vibration when used" and gaps != "self-censoring")
    ]
    return [*level, *power]


def rows(finished: Finished) -> dict[str, Rows]:
    """Return a row per cell."""
    found = [
        {
            "truth": cell.truth,
            "gaps": cell.gaps,
            "behaviour": cell.behaviour,
            "assumed": STRUCTURES[cell.structure],
            "steps": str(cell.size),
            "first": str(cell.first),
            "logs": str(cell.logs),
            **{name: f"{result.found[name]:g}" for name in Wrong.__annotations__},
        }
        for cell, result in finished.items()
    ]
    return {"check-dynamics": found}


def tables(found: Mapping[str, Rows]) -> dict[str, str]:
    """Return how often an MDP that is right is rejected, and how often errors are found."""
    listed = found["check-dynamics"]
    kept: list[tuple[str, ...]] = []
    for gaps, behaviour in product(GAPS, BEHAVIOURS):
        own = [
            row
            for row in listed
            if (row["truth"], row["gaps"], row["behaviour"]) == ("nothing", gaps, behaviour)
        ]
        if own:
            n, wrong = _sum(own, "logs"), _sum(own, "rejected")
            chance = _binomial_tail(wrong, n)
            kept.append((gaps, behaviour, f"{n:,}", str(wrong), f"{wrong / n:.1%}", f"{chance:.2g}"))
    seen: list[tuple[str, ...]] = []
    for truth, gaps, assumed in product(list(TRUTHS)[1:], GAPS, STRUCTURES.values()):
        own = [row for row in listed if (row["truth"], row["gaps"], row["assumed"]) == (truth, gaps, assumed)]
        if own:
            words, feature, _ = TRUTHS[truth]
            n = _sum(own, "logs")
            others = [name for name in ("wear", "vibration", "load") if name != feature]
            wrong = max(_sum(own, name) for name in others)
            shares = (f"{count / n:.1%}" for count in (_sum(own, feature), wrong, _sum(own, "alone")))
            seen.append((words, gaps, assumed, f"{n:,}", *shares))
    result: dict[str, str] = {}
    if kept:
        columns = ("gaps", "behaviour", "logs", "rejected", "share", "P(as many or more)")
        result["check-dynamics-level"] = markdown_table(columns, kept, words=range(2))
    if seen:
        columns = (
            "what is wrong",
            "gaps",
            "assumed of gaps",
            "logs",
            "found",
            "another feature",
            "one test alone",
        )
        result["check-dynamics-power"] = markdown_table(columns, seen, words=range(3))
    return result


def _sum(own: Rows, column: str) -> int:
    return round(sum(float(row[column]) for row in own))


def _binomial_tail(wrong: int, n: int) -> float:
    """Return how likely so many rejections are, or more, if each has the probability of the level."""
    from scipy import special

    return float(special.bdtrc(wrong - 1, n, LEVEL)) if wrong else 1.0


CHECK_DYNAMICS = Study(
    "check-dynamics",
    "how often check_dynamics rejects an MDP that is right, and finds what is wrong: half an hour",
    "check-dynamics.md",
    cells,
    rows,
    tables,
)
