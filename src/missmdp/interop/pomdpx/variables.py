"""The variables of a `.pomdpx` file: states in two time slices, actions, observations, rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.interop.incoming import MAX_COUNT
from missmdp.interop.pomdpx.positioned_xml import Element
from missmdp.model.space import FeatureSpace, Rows

Codes = dict[str, NDArray[np.int64]]
"""Values of variables by their names in tables, as codes; all arrays have one length."""

_MAX_VARIABLES = 1000

_LETTERS = {"StateVar": "s", "ActionVar": "a", "ObsVar": "o"}
"""What the values of a variable that gives only their number are called: s0, s1, …."""


class Variable:
    """A variable and its values.

    Attributes
    ----------
    label : str
        What it is called in tuples: the common part of the names in the two slices.
    labels : sequence
        Its values: words, or 0, 1, 2, … where the file gives a number.
    """

    def __init__(self, element: Element) -> None:
        self.element = element
        if element.tag == "StateVar":
            self.previous, self.current = element.attribute("vnamePrev"), element.attribute("vnameCurr")
            self.label = _common_part(self.previous, self.current) or self.current
        else:
            self.previous = self.current = self.label = element.attribute("vname")
        self.labels = _values(element)
        letter = _LETTERS[element.tag]
        counted = isinstance(self.labels, range)
        self._index = {f"{letter}{i}" if counted else label: i for i, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fully_observed(self) -> bool:
        """Whether a state variable is seen as it is."""
        word = self.element.attributes.get("fullyObs", "false").strip().lower()
        if word not in ("true", "false", "1", "0"):
            raise self.element.error(f'fullyObs must be "true" or "false", not {word!r}')
        return word in ("true", "1")

    @cached_property
    def words(self) -> frozenset[str]:
        """What its values are called in a table, in lower case."""
        return frozenset(map(str.lower, self._index))

    def find(self, word: str) -> int | None:
        """Return the index of a value given by its name or its number, or None."""
        index = self._index.get(word)
        if index is None and word.isdecimal() and len(word) < 10 and int(word) < len(self):
            return int(word)
        return index


def _common_part(one: str, other: str) -> str:
    """Return what two names start with, as in rover for rover_0 and rover_1."""
    length = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return one[:length].rstrip("_")


def _values(element: Element) -> Sequence[Any]:
    kinds = list(element.all("ValueEnum", "NumValues"))
    if len(kinds) != 1:
        raise element.error(f"<{element.tag}> needs one <ValueEnum> or one <NumValues>")
    words = kinds[0].words
    if kinds[0].tag == "NumValues":
        word = kinds[0].word()
        if not word.isdecimal() or len(word) > 18 or not 1 <= int(word) <= MAX_COUNT:
            raise kinds[0].error(f"the number of values must be 1 to {MAX_COUNT:,}, not {word!r}")
        return range(int(word))
    if not words:
        raise kinds[0].error("<ValueEnum> lists no values")
    seen: set[str] = set()
    for word in words:
        if word in ("*", "-"):
            raise kinds[0].error(f"{word!r} cannot be a value: it stands for all values")
        if word in seen:
            raise kinds[0].error(f"the value {word!r} is listed twice")
        seen.add(word)
    return words


class Combinations:
    """All combinations of the values of some variables, numbered with the last one changing fastest."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables
        self.sizes = [len(variable) for variable in variables]
        self.count = math.prod(self.sizes)
        if self.count >= 2**62:
            raise ModelError(
                f"{len(variables)} variables have about 10^{math.log10(self.count):.0f} combinations"
            )
        self._weights = [math.prod(self.sizes[i + 1 :]) for i in range(len(self.sizes))]

    def rank(self, codes: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
        """Return the number of each combination of values, given as one array per variable."""
        ranks = np.zeros(length, dtype=np.int64)
        for code, weight in zip(codes, self._weights, strict=True):
            ranks += code * weight
        return ranks

    def codes(self, ranks: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the values in combinations given by their numbers, one array per variable."""
        return [ranks // weight % size for weight, size in zip(self._weights, self.sizes, strict=True)]

    def labels(self, ranks: NDArray[np.int64], *, observations: bool = False) -> Sequence[Any]:
        """Return combinations as labels: values of one variable as they are, of several as named tuples."""
        if len(self.variables) == 1:
            own = self.variables[0].labels
            return own if len(ranks) == len(own) else [own[i] for i in ranks]
        names = [variable.label for variable in self.variables]
        if len(set(names)) < len(names):
            names = [variable.current for variable in self.variables]
        space = FeatureSpace({n: v.labels for n, v in zip(names, self.variables, strict=True)})
        codes = np.stack(self.codes(ranks), axis=1)
        return Rows(codes, space.decode_observation if observations else space.decode)


class Variables:
    """All variables of a file, also by the names under which tables refer to them.

    Attributes
    ----------
    states, actions, observations : list of Variable
        The variables by kind, in the order of the file.
    rewards : list of str
        The names of the rewards.
    slots : dict
        Name in tables → variable; state variables have a name for each time slice.
    state, action, seen : Combinations
        States, actions and observations as combinations of values; what is fully observed is part of the latter.
    """

    def __init__(self, element: Element) -> None:
        self.states: list[Variable] = []
        self.actions: list[Variable] = []
        self.observations: list[Variable] = []
        self.rewards: list[str] = []
        self.slots: dict[str, Variable] = {}
        if len(element.children) > _MAX_VARIABLES:
            raise element.error(
                f"there are {len(element.children):,} variables, more than {_MAX_VARIABLES:,}"
            )
        for child in element.all("StateVar", "ActionVar", "ObsVar", "RewardVar"):
            if child.tag == "RewardVar":
                self._claim(child, {child.attribute("vname")})
                self.rewards.append(child.attribute("vname"))
                continue
            variable = Variable(child)
            if child.tag == "StateVar" and variable.previous == variable.current:
                raise child.error(f"vnamePrev and vnameCurr are both {variable.current!r}; they must differ")
            self._claim(child, {variable.previous, variable.current})
            self.slots[variable.previous] = self.slots[variable.current] = variable
            {"StateVar": self.states, "ActionVar": self.actions, "ObsVar": self.observations}[
                child.tag
            ].append(variable)
        for kind, found in (("StateVar", self.states), ("ActionVar", self.actions)):
            if not found:
                raise element.error(f"<Variable> has no <{kind}>")
        self.state = self._product(element, self.states)
        self.action = self._product(element, self.actions)
        self.seen = self._product(
            element, [*(v for v in self.states if v.fully_observed), *self.observations]
        )
        if self.action.count > MAX_COUNT:
            raise element.error(f"there are {self.action.count:,} actions, more than {MAX_COUNT:,}")

    def codes(self, ranks: NDArray[np.int64], actions: int | NDArray[np.int64], time: str) -> Codes:
        """Return the values in states and actions, by the names of the variables in the time slice."""
        values = zip(self.states, self.state.codes(ranks), strict=True)
        codes = {v.previous if time == "previous" else v.current: code for v, code in values}
        chosen = np.broadcast_to(np.asarray(actions, dtype=np.int64), ranks.shape)
        return codes | {v.current: c for v, c in zip(self.actions, self.action.codes(chosen), strict=True)}

    def _product(self, element: Element, variables: list[Variable]) -> Combinations:
        try:
            return Combinations(variables)
        except ModelError as error:
            raise element.error(str(error)) from None

    def _claim(self, element: Element, names: set[str]) -> None:
        taken = sorted(names & (set(self.slots) | set(self.rewards)))
        if taken:
            raise element.error(f"there is already a variable {taken[0]!r}")
