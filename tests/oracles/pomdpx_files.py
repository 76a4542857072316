"""A small `.pomdpx` file by brute force: every number is looked up for one full assignment of values at a time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import product
from typing import Any

LETTERS = {"StateVar": "s", "ActionVar": "a", "ObsVar": "o"}
Assignment = dict[str, str]


class Brute:
    """Probabilities and rewards of a correct file, by labels: tuples of the values' names, in the order of the file."""

    def __init__(self, text: str) -> None:
        self.root = ET.fromstring(text)
        self.values: dict[str, list[str]] = {}
        self.kinds: dict[str, list[ET.Element]] = {"StateVar": [], "ActionVar": [], "ObsVar": []}
        for element in self.root.find("Variable"):
            if element.tag != "RewardVar":
                self.kinds[element.tag].append(element)
                count = element.find("NumValues")
                own = (
                    [f"{LETTERS[element.tag]}{i}" for i in range(int(count.text))]
                    if count is not None
                    else element.find("ValueEnum").text.split()
                )
                for attribute in ("vname", "vnamePrev", "vnameCurr"):
                    if attribute in element.attrib:
                        self.values[element.get(attribute)] = own
        self.previous = [element.get("vnamePrev") for element in self.kinds["StateVar"]]
        self.current = [element.get("vnameCurr") for element in self.kinds["StateVar"]]
        self.acting = [element.get("vname") for element in self.kinds["ActionVar"]]
        self.signals = [element.get("vname") for element in self.kinds["ObsVar"]]
        self.shown = [e.get("vnameCurr") for e in self.kinds["StateVar"] if e.get("fullyObs") == "true"]

    def all(self, names: list[str]) -> list[tuple[str, ...]]:
        """Return every combination of values."""
        return list(product(*(self.values[name] for name in names)))

    def initial(self, state: tuple[str, ...]) -> float:
        """Return b₀(s)."""
        return self._product("InitialStateBelief", dict(zip(self.previous, state, strict=True)))

    def transition(self, state: tuple[str, ...], action: tuple[str, ...], after: tuple[str, ...]) -> float:
        """Return T(s′ | s, a)."""
        return self._product("StateTransitionFunction", self._step(state, action, after))

    def signal(self, action: tuple[str, ...], after: tuple[str, ...], signal: tuple[str, ...]) -> float:
        """Return P(signal | s′, a)."""
        given = dict(
            zip([*self.acting, *self.current, *self.signals], [*action, *after, *signal], strict=True)
        )
        return self._product("ObsFunction", given) if self.signals else 1.0

    def reward(self, state: tuple[str, ...], action: tuple[str, ...]) -> float:
        """Return ρ(s, a)."""
        functions = self.root.findall("RewardFunction/Func")
        total = 0.0
        for after in self.all(self.current):
            moved = self.transition(state, action, after)
            for signal in self.all(self.signals) if moved else []:
                given = self._step(state, action, after) | dict(zip(self.signals, signal, strict=True))
                weight = moved * self.signal(action, after, signal)
                total += weight * sum(self._number(function, given, reward=True) for function in functions)
        return total

    def _step(self, state: tuple[str, ...], action: tuple[str, ...], after: tuple[str, ...]) -> Assignment:
        return dict(
            zip([*self.previous, *self.acting, *self.current], [*state, *action, *after], strict=True)
        )

    def _product(self, section: str, given: Assignment) -> float:
        result = 1.0
        for table in self.root.find(section):
            result *= self._number(table, given, reward=False)
        return result

    def _number(self, table: ET.Element, given: Assignment, *, reward: bool) -> float:
        parents = [name for name in table.find("Parent").text.split() if name != "null"]
        names = parents if reward else [*parents, table.find("Var").text.strip()]
        parameter = table.find("Parameter")
        if parameter.get("type") == "DD":
            return self._diagram(parameter.find("DAG")[0], given, parameter)
        number = 0.0
        for entry in parameter:
            words = entry.find("Instance").text.split()
            if all(w in ("*", "-", given[name]) for w, name in zip(words, names, strict=True)):
                free = [name for w, name in zip(words, names, strict=True) if w == "-"]
                number = self._cell(entry[1].text.split(), free, given)
        return number

    def _cell(self, numbers: list[str], free: list[str], given: Assignment) -> float:
        if numbers == ["uniform"]:
            return 1.0 / len(self.values[free[-1]])
        places = [self.values[name].index(given[name]) for name in free]
        if numbers == ["identity"]:
            return float(places[0] == places[1])
        return float(numbers[self.all(free).index(tuple(given[name] for name in free))])

    def _diagram(self, element: ET.Element, given: Assignment, parameter: ET.Element) -> float:
        if element.tag == "Terminal":
            return float(element.text)
        if element.tag == "Node":
            for edge in element:
                if edge.get("val") == given[element.get("var")]:
                    return self._diagram(edge[0], given, parameter)
            return 0.0
        kind, name = element.get("type"), element.get("var")
        if kind == "template":
            templates: dict[Any, ET.Element] = {t.get("id"): t for t in parameter.findall("SubDAGTemplate")}
            return self._diagram(templates[element.get("idref")][0], given, parameter)
        if kind == "uniform":
            return 1.0 / len(self.values[name])
        if kind == "deterministic":
            return float(given[name] == element.get("val"))
        return float(given[name] == given[self.previous[self.current.index(name)]])
