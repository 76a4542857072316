"""ICU: a doctor treats an infection that is seldom seen.

The paper describes this benchmark in words and sizes; the numbers below are ours. `test` says how fresh
the last ordered test is: 4 = ordered in the step just made, then 3, 2, 1, and 0 = nothing on file.
Temperature and test are always observed; the infection is seen mostly through a fresh test, whose success
depends on other features; the heart rate drops out on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, Protocol

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.sums import one_by_one

FEATURES = {"infection": range(4), "test": range(5), "temperature": range(4), "heart_rate": range(10)}
ACTIONS = ("wait", "antibiotics", "test")
DISCOUNT = 0.95

CURE = 0.95
"""Antibiotics: one level down with this probability, else unchanged."""
WORSE = (0.20, 0.30, 0.30, 0.0)
BETTER = (0.0, 0.05, 0.05, 0.05)
"""Without antibiotics: one level up or down, by infection."""

TEMPERATURE_KEEPS = 0.4
TEMPERATURE_WIDTH = 1.6
HEART_RATE_BASE, HEART_RATE_SLOPE, HEART_RATE_WIDTH = 1.5, 2.2, 3.5

INFECTION_PENALTY = (0.0, 2.0, 10.0, 40.0)
ACTION_COST = {"wait": 0.0, "antibiotics": 8.0, "test": 0.5}

INITIAL_INFECTION = (0.4, 0.3, 0.2, 0.1)
INITIAL_TEST, INITIAL_TEMPERATURE = 0, 1
"""The first temperature is drawn as if the one before it had been this."""

SEEN_ANYWAY = 0.03
"""P(infection observed) without any test."""
FRESHNESS = (0.0, 0.05, 0.15, 0.4, 1.0)
"""How much of a test's success is left, by its freshness."""
SUCCESS_BY_TEMPERATURE = (0.95, 0.8, 0.3, 0.1)
SUCCESS_BY_INFECTION = (1.0, 0.9, 0.4, 0.05)
HEART_RATE_MISSING_BY_TEMPERATURE = (0.2, 0.3, 0.5, 0.7)
HEART_RATE_MISSING = 0.4
LEAST_SUCCESS = 0.02


class _State(Protocol):
    """What the functions below read of a state."""

    infection: int
    test: int
    temperature: int
    heart_rate: int


def _bell(centre: float, width: float, size: int) -> tuple[float, ...]:
    weights = [math.exp(-0.5 * ((k - centre) / width) ** 2) for k in range(size)]
    total = one_by_one(weights)
    return tuple(weight / total for weight in weights)


@cache
def _temperature(infection: int, before: int) -> tuple[float, ...]:
    drawn = _bell(infection, TEMPERATURE_WIDTH, len(FEATURES["temperature"]))
    return tuple(
        TEMPERATURE_KEEPS * (k == before) + (1.0 - TEMPERATURE_KEEPS) * p for k, p in enumerate(drawn)
    )


@cache
def _heart_rate(infection: int) -> tuple[float, ...]:
    return _bell(
        HEART_RATE_BASE + HEART_RATE_SLOPE * infection, HEART_RATE_WIDTH, len(FEATURES["heart_rate"])
    )


def _infection(level: int, action: str) -> dict[int, float]:
    if action == "antibiotics":
        return {0: 1.0} if level == 0 else {level - 1: CURE, level: 1.0 - CURE}
    up, down = WORSE[level], BETTER[level]
    moves = {level: 1.0 - up - down, level + 1: up, level - 1: down}
    return {after: p for after, p in moves.items() if p > 0.0}


def _patients(infection: dict[int, float], test: int, temperature: int) -> dict[Any, float]:
    """Return the states that follow from an infection's distribution, with vitals that depend on it."""
    return {
        (level, test, warm, beat): p * p_warm * p_beat
        for level, p in infection.items()
        for (warm, p_warm), (beat, p_beat) in product(
            enumerate(_temperature(level, temperature)), enumerate(_heart_rate(level))
        )
    }


def _transition(state: _State, action: str) -> dict[Any, float]:
    test = 4 if action == "test" else max(state.test - 1, 0)
    return _patients(_infection(state.infection, action), test, state.temperature)


def _reward(state: _State, action: str) -> float:
    return -INFECTION_PENALTY[state.infection] - ACTION_COST[action]


def _infection_missing(success: Callable[[_State], float]) -> Callable[[_State], float]:
    return lambda state: 1.0 - (SEEN_ANYWAY + (1.0 - SEEN_ANYWAY) * success(state) * FRESHNESS[state.test])


VARIANTS: dict[str, dict[str, Callable[[_State], float] | float]] = {
    "smar": {
        "infection": _infection_missing(lambda state: SUCCESS_BY_TEMPERATURE[state.temperature]),
        "heart_rate": lambda state: HEART_RATE_MISSING_BY_TEMPERATURE[state.temperature],
    },
    "mnar-id": {
        "infection": _infection_missing(lambda state: max(0.95 - 0.1 * state.heart_rate, LEAST_SUCCESS)),
        "heart_rate": HEART_RATE_MISSING,
    },
    "mnar-unid": {
        "infection": _infection_missing(
            lambda state: max(
                (0.95 - 0.1 * state.heart_rate) * SUCCESS_BY_INFECTION[state.infection], LEAST_SUCCESS
            )
        ),
        "heart_rate": HEART_RATE_MISSING,
    },
}
"""P(missing) of each feature that can go missing, by variant."""


def icu(variant: str) -> MissMDP:
    """Return the ICU benchmark with one of its missingness functions: smar, mnar-id or mnar-unid."""
    mdp = FactoredMDP(
        features=FEATURES,
        actions=ACTIONS,
        transition=_transition,
        reward=_reward,
        initial=_patients(dict(enumerate(INITIAL_INFECTION)), INITIAL_TEST, INITIAL_TEMPERATURE),
        discount=DISCOUNT,
        progress=False,
    )
    return MissMDP(mdp, MissingnessFunction.independent(mdp, VARIANTS[variant]), name=f"icu-{variant}")
