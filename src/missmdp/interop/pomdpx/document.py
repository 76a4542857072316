"""A parsed `.pomdpx` file: its variables, and one table for each, as written."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from missmdp.errors import FormatError, MissMDPError, ModelError
from missmdp.interop.pomdpx.positioned_xml import Element, read_xml
from missmdp.interop.pomdpx.tables import Table, read_table
from missmdp.interop.pomdpx.variables import Variables
from missmdp.model.probabilities import checked_discount


class Document:
    """A file's variables and tables, with nothing multiplied out.

    Attributes
    ----------
    discount : float
        γ.
    variables : Variables
        The variables of states, actions and observations.
    initial, transition, observation, rewards : list of Table
        One table per variable, each after those of its parents, and one per reward.
    """

    def __init__(self, root: Element) -> None:
        self.root = root
        self.path = root.path
        sections = ("InitialStateBelief", "StateTransitionFunction", "ObsFunction", "RewardFunction")
        list(root.all("Description", "Discount", "Variable", *sections))
        self.discount = _discount(root.one("Discount"))
        self.variables = variables = Variables(root.one("Variable"))
        previous = [v.previous for v in variables.states]
        current = [v.current for v in variables.states]
        action = [v.current for v in variables.actions]
        observed = [v.current for v in variables.observations]
        self.initial = self._tables("InitialStateBelief", previous, previous)
        self.transition = self._tables("StateTransitionFunction", current, [*previous, *current, *action])
        self.observation = (
            self._tables("ObsFunction", observed, [*current, *action, *observed]) if observed else []
        )
        self.rewards = self._rewards([*previous, *current, *action, *observed])

    def joint_probabilities(self) -> float:
        """Return about how many probabilities of next states and observations there are, multiplied out."""
        pairs = float(self.variables.state.count) * self.variables.action.count
        return pairs * math.prod(table.mean_support for table in (*self.transition, *self.observation))

    def _tables(self, section: str, children: Sequence[str], allowed: Sequence[str]) -> list[Table]:
        """Return the tables of a section, one per child, each after the tables of its parents."""
        element = self.root.one(section)
        tables: dict[str, Table] = {}
        for item in element.all("CondProb"):
            child = _variable(item.one("Var"), children, section)
            if child in tables:
                raise item.error(f"<{section}> has {child!r} twice")
            parents = _parents(item, allowed, child)
            tables[child] = read_table(item, child, parents, self.variables, reward=False)
        for child in children:
            if child not in tables:
                raise element.error(f"<{section}> has no <CondProb> for {child!r}")
        return list(_in_order(tables))

    def _rewards(self, allowed: Sequence[str]) -> list[Table]:
        if not self.variables.rewards:
            return []
        element = self.root.one("RewardFunction")
        found: dict[str, Table] = {}
        for item in element.all("Func"):
            name = _variable(item.one("Var"), self.variables.rewards, "RewardFunction")
            if name in found:
                raise item.error(f"<RewardFunction> has {name!r} twice")
            found[name] = read_table(item, name, _parents(item, allowed, name), self.variables, reward=True)
        for name in self.variables.rewards:
            if name not in found:
                raise element.error(f"<RewardFunction> has no <Func> for {name!r}")
        return list(found.values())


@contextmanager
def damage_of(path: str | Path) -> Generator[None]:
    """Turn errors about a model into errors that name the file."""
    try:
        yield
    except FormatError:
        raise
    except MissMDPError as error:
        raise FormatError(f"{path}: {error}") from error


def read_document(path: str | Path) -> Document:
    """Return the variables and tables of a file."""
    root = read_xml(path)
    if root.tag != "pomdpx":
        raise root.error(f"expected <pomdpx>, found <{root.tag}>")
    with damage_of(path):
        return Document(root)


def _discount(element: Element) -> float:
    word = element.word()
    try:
        return checked_discount(float(word))
    except (ValueError, ModelError):
        hint = "; without discounting use one close to 1, such as 0.999" if word in ("1", "1.0") else ""
        raise element.error(f"the discount must be a number in [0, 1), not {word!r}{hint}") from None


def _variable(element: Element, known: Sequence[str], section: str) -> str:
    name = element.word()
    if name not in known:
        raise element.error(f"{name!r} has no place in <{section}>; expected one of {', '.join(known)}")
    return name


def _parents(item: Element, allowed: Sequence[str], child: str) -> list[str]:
    element = item.one("Parent")
    parents = [] if element.words == ["null"] else element.words
    for parent in parents:
        if parent not in allowed or parent == child:
            raise element.error(
                f"{parent!r} cannot be a parent of {child!r}; expected null, or some of "
                f"{', '.join(name for name in allowed if name != child)}"
            )
    if len(set(parents)) < len(parents):
        raise element.error("a parent is named twice")
    return parents


def _in_order(tables: dict[str, Table]) -> Iterator[Table]:
    """Yield tables in the order of the file, except that parents come before their children."""
    waiting = dict(tables)
    while waiting:
        ready = next(
            (t for t in waiting.values() if not any(parent in waiting for parent in t.parents)), None
        )
        if ready is None:
            names = ", ".join(waiting)
            raise next(iter(waiting.values())).element.error(f"these variables depend on each other: {names}")
        del waiting[ready.child]
        yield ready
