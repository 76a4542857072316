"""Fleet and plant: families of models with any number of machines, to see how work grows with the model.

A machine has wear 0, 1 or 2 (broken), which is often missing. The load of a step is 0 or 1 with probability ½ and
always seen. The actions are to run, or to run and fix one machine, which is then new. In `fleet-k`, k machines are
alike and know nothing of each other. In `plant-k`, machines stand in a line and differ: a broken machine wears out its
neighbour to the right, the gaps of a machine depend on the wear of its neighbour to the left, and those of the first on
its own wear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

LOADS, WEARS, BROKEN = range(2), range(3), 2
DISCOUNT = 0.95

FLEET_INCOME, PLANT_INCOME = 2.0, 0.5
"""Per step at no load: of the whole fleet, and of each machine of a plant."""
FLEET_RATE, FLEET_PENALTY, FLEET_COST = 0.1, 3.0, 4.0
"""P(wear rises) at no load; what a broken machine costs per step; what fixing costs."""
FLEET_MISSING, FLEET_MISSING_BY_LOAD = 0.5, 0.3

PLANT_RATES, PLANT_PENALTIES, PLANT_COSTS = (0.08, 0.12, 0.16), (3.0, 2.0, 4.0), (4.0, 3.0, 5.0)
"""The same for the machines of a plant, in turn."""
RATE_BY_LOAD, RATE_BY_NEIGHBOUR = 0.1, 0.2
"""What is added to the rate at full load, and if the machine to the left is broken."""
FIRST_MISSING, OTHERS_MISSING = (0.3, 0.5, 0.8), (0.4, 0.5, 0.7)
"""P(wear missing): of the first machine by its own wear, of the others by the wear of the machine to the left."""


def machine(number: int) -> str:
    """Return the name of the feature that is the wear of a machine; numbers begin at 1."""
    return f"wear_{number}"


def fleet(k: int) -> MissMDP:
    """Return the fleet of k machines, which has 2·3^k states."""

    def next_wear(number: int) -> tuple[list[str], Any]:
        def table(wear: int, load: int, action: str) -> dict[int, float]:
            return _worn(wear, FLEET_RATE + RATE_BY_LOAD * load, fixed=action == _fix(number))

        return [machine(number), "load"], table

    numbers = range(1, k + 1)
    mdp = _machines(
        {machine(i): next_wear(i) for i in numbers},
        FLEET_INCOME,
        [FLEET_PENALTY] * k,
        [FLEET_COST] * k,
    )
    missing = "load", FLEET_MISSING + FLEET_MISSING_BY_LOAD * np.array(LOADS)
    gaps = MissingnessFunction.independent(mdp, {machine(i): missing for i in numbers})
    return MissMDP(mdp, gaps, name=f"fleet-{k}")


def plant(k: int) -> MissMDP:
    """Return the plant of k machines, which has 2·3^k states."""

    def next_wear(number: int) -> tuple[list[str], Any]:
        def table(wear: int, load: int, *left_and_action: Any) -> dict[int, float]:
            *left, action = left_and_action
            rate = (
                PLANT_RATES[(number - 1) % 3] + RATE_BY_LOAD * load + RATE_BY_NEIGHBOUR * (left == [BROKEN])
            )
            return _worn(wear, rate, fixed=action == _fix(number))

        return [machine(number), "load", *([machine(number - 1)] if number > 1 else [])], table

    numbers = range(1, k + 1)
    mdp = _machines(
        {machine(i): next_wear(i) for i in numbers},
        PLANT_INCOME * k,
        [PLANT_PENALTIES[(i - 1) % 3] for i in numbers],
        [PLANT_COSTS[(i - 1) % 3] for i in numbers],
    )
    missing = {machine(i): (machine(i - 1), np.array(OTHERS_MISSING)) for i in numbers[1:]}
    missing[machine(1)] = machine(1), np.array(FIRST_MISSING)
    gaps = MissingnessFunction.independent(mdp, missing)
    return MissMDP(mdp, gaps, name=f"plant-{k}")


def _fix(number: int) -> str:
    return f"fix {number}"


def _worn(wear: int, rate: float, *, fixed: bool) -> dict[int, float]:
    """Return the distribution of a machine's next wear."""
    if fixed:
        return {0: 1.0}
    return {BROKEN: 1.0} if wear == BROKEN else {wear: 1.0 - rate, wear + 1: rate}


def _machines(
    transitions: Mapping[str, tuple[list[str], Any]],
    income: float,
    penalties: Sequence[float],
    costs: Sequence[float],
) -> FactoredMDP:
    """Return the MDP of some machines, all new at first; a load doubles the income."""
    names = list(transitions)
    earned = np.add.outer(income * (1.0 + np.array(LOADS)), -np.array([0.0, *costs]))
    lost = [np.multiply.outer([0.0, 0.0, -penalty], np.ones(len(names) + 1)) for penalty in penalties]
    fair = {0: 0.5, 1: 0.5}

    def next_load(action: str) -> dict[int, float]:
        return fair

    return FactoredMDP.from_factors(
        features={"load": LOADS, **dict.fromkeys(names, WEARS)},
        actions=["run", *(_fix(number) for number in range(1, len(names) + 1))],
        transitions={"load": ([], next_load), **transitions},
        reward=[("load", earned), *zip(names, lost, strict=True)],
        initial={"load": fair, **dict.fromkeys(names, 0)},
        discount=DISCOUNT,
    )
