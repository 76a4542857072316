"""The table of learners: commands, runs, experiments, the diagnosis and reports take from it what they know of each.

Importing it loads no learner. A learner of this package has an entry in `_LEARNERS` below; one of a user's own is added
by `register_learner`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from missmdp.checks import checked_text
from missmdp.errors import DataError, ParameterError
from missmdp.words import did_you_mean

if TYPE_CHECKING:
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.learn.diagnosis.result import Diagnosis
    from missmdp.model.mdp import FactoredMDP


@dataclass(frozen=True)
class LearnerOption:
    """A parameter of learners that commands offer as an option."""

    name: str
    """The parameter of the constructor."""
    kind: Literal["number", "integer", "choice", "features", "blocks", "graph"]
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    default: str | None = None
    """What holds if it is not given, in words."""
    flag: str | None = None
    """The option, where it is not called as the parameter."""

    @property
    def typed(self) -> str:
        """The option as typed, such as --block."""
        return f"--{(self.flag or self.name).replace('_', '-')}"


OPTIONS: Mapping[str, LearnerOption] = MappingProxyType(
    {
        option.name: option
        for option in (
            LearnerOption(
                "smoothing", "number", "added to every count", least=0.0, most=1e9, default="0.001"
            ),
            LearnerOption(
                "unseen",
                "choice",
                "distribution for groups of states without data",
                choices=("uniform", "pooled"),
                default="uniform",
            ),
            LearnerOption(
                "always_observed", "features", "this feature is known to be always observed", flag="always"
            ),
            LearnerOption("ignore", "features", "this feature is known not to matter"),
            LearnerOption(
                "patterns",
                "choice",
                "learn all patterns, or only those seen in the log",
                choices=("all", "seen"),
                default="all",
            ),
            LearnerOption(
                "assume", "choice", "assume that missingness depends on less", choices=("smar", "mcar")
            ),
            LearnerOption("graph", "graph", "a DOT file with the m-graph, or `model` for the model's own"),
            LearnerOption("blocks", "blocks", "these features go missing together", flag="block"),
            LearnerOption(
                "structure",
                "choice",
                "what missingness may depend on; auto searches the data",
                choices=("auto", "mcar", "smar", "logistic", "saturated"),
                default="auto",
            ),
            LearnerOption(
                "pseudo_count",
                "number",
                "observations added to each group of states",
                least=0.0,
                most=1e9,
                default="1",
            ),
            LearnerOption(
                "seed", "integer", "seed of random starts and of the bootstrap", least=0, default="0"
            ),
        )
    }
)
"""Parameter → the option that commands offer for it."""


def _anything(diagnosis: Diagnosis) -> bool:
    return True


@dataclass(frozen=True)
class RegisteredLearner:
    """What is known of a learner without loading it."""

    label: str
    """As typed in commands."""
    name: str
    """The name of its class."""
    home: str | Callable[..., MissingnessEstimator]
    """Where its class is, as "module:Class"; or the class, or a function that makes a learner."""
    says: str
    """What missingness may depend on, for lists of learners: "depends on always-observed features"."""
    short: str
    """What it assumes, in a column of a table: "simple MAR"."""
    meaning: str
    """What it assumes, in plain words for a report."""
    clause: str
    """The same where a sentence goes on after it."""
    has_bound: bool
    """Whether its bound is guaranteed for a finite number of samples; if not, it has intervals from a bootstrap."""
    needs_histories: bool = False
    """Whether it learns from whole histories, so counts of observations are not enough."""
    options: tuple[str, ...] = ()
    """The names of its options, which are in `OPTIONS`."""
    by_default: bool = False
    """Whether a run has it unless told otherwise."""
    suits: Callable[[Diagnosis], bool] = _anything
    """Whether a diagnosis is in accord with what it assumes."""
    shape: str = "hexagon"
    """Of its mark in charts."""
    colour: str = "#5B5B5B"
    stands_for: Mapping[str, str] = field(default_factory=dict[str, str])
    """Option → the parameter that it sets, where they are called differently."""

    def factory(self) -> Callable[..., MissingnessEstimator]:
        """Return the class, or the function that makes a learner."""
        if not isinstance(self.home, str):
            return self.home
        module, _, name = self.home.partition(":")
        return getattr(importlib.import_module(module), name)

    def make(self, mdp: FactoredMDP, **options: Any) -> MissingnessEstimator:
        """Return a new learner for an MDP, with those of the options that it knows.

        What is None or empty is left to the learner.
        """
        factory = self.factory()
        known = inspect.signature(factory).parameters
        chosen: dict[str, Any] = {}
        for option, value in options.items():
            name = self.stands_for.get(option, option)
            empty = value is None or (isinstance(value, tuple | list) and len(cast("list[Any]", value)) == 0)
            if name in known and not empty:
                chosen[name] = value
        return factory(**({"mdp": mdp} if "mdp" in known else {}), **chosen)


def _is_mcar(diagnosis: Diagnosis) -> bool:
    return diagnosis.type == "MCAR"


def _is_simple_mar(diagnosis: Diagnosis) -> bool:
    return diagnosis.type in ("MCAR", "simple MAR")


def _without_self_censoring(diagnosis: Diagnosis) -> bool:
    return not diagnosis.self_censoring


def _independent(diagnosis: Diagnosis) -> bool:
    """Return whether no feature drives its own missingness, and blocks go missing independently of each other."""
    home = {name: i for i, block in enumerate(diagnosis.blocks) for name in block}
    joined = any(home[a] != home[b] for a, b in diagnosis.graph.dependent)
    return not diagnosis.self_censoring and not joined


_LEARNERS: dict[str, RegisteredLearner] = {
    entry.label: entry
    for entry in (
        RegisteredLearner(
            "amcar",
            "AMCAR",
            "missmdp.learn.asmar:AMCAR",
            says="by pure chance, whatever the state",
            short="MCAR",
            meaning="gaps are pure chance",
            clause="gaps are pure chance",
            has_bound=True,
            options=("smoothing", "unseen", "always_observed", "patterns"),
            by_default=True,
            suits=_is_mcar,
            shape="triangle",
            colour="#A85A00",
        ),
        RegisteredLearner(
            "asmar",
            "AsMAR",
            "missmdp.learn.asmar:AsMAR",
            says="depends on always-observed features",
            short="simple MAR",
            meaning="gaps depend only on values that are always seen",
            clause="gaps depend only on values that are always recorded",
            has_bound=True,
            options=("smoothing", "unseen", "always_observed", "ignore", "patterns"),
            by_default=True,
            suits=_is_simple_mar,
            shape="circle",
            colour="#0B62A6",
        ),
        RegisteredLearner(
            "aimi",
            "AIMI",
            "missmdp.learn.aimi:AIMI",
            says="depends on other features, each indicator on its own",
            short="no self-censoring",
            meaning="a gap may depend on all other values, but not on the missing one nor on other gaps",
            clause="no value hides itself, and no gap depends on another",
            has_bound=True,
            options=("smoothing", "unseen", "always_observed", "assume", "graph", "blocks"),
            by_default=True,
            suits=_independent,
            shape="square",
            colour="#00745A",
        ),
        RegisteredLearner(
            "icin",
            "ICIN",
            "missmdp.learn.icin:ICIN",
            says="depends on other features and on what else is missing; its intervals are not guaranteed",
            short="no self-censoring, gaps joined",
            meaning="a gap may depend on all other values and on other gaps, but not on the missing value itself",
            clause="no value hides itself",
            has_bound=False,
            options=("smoothing", "unseen", "always_observed", "blocks"),
            suits=_without_self_censoring,
            shape="hexagon",
            colour="#8A2B62",
        ),
        RegisteredLearner(
            "em",
            "DynamicsEM",
            "missmdp.learn.em.estimator:DynamicsEM",
            says="depends on anything, including the value itself, as far as the dynamics reveal it; its intervals are "
            "not guaranteed",
            short="a structure, found",
            meaning="a gap may depend on anything, in the way that was found in the data; the dynamics are as in the "
            "model",
            clause="gaps depend on what was found in the data, and the dynamics are as in the model",
            has_bound=False,
            needs_histories=True,
            options=("always_observed", "graph", "blocks", "structure", "pseudo_count", "seed"),
            by_default=True,
            shape="wedge",
            colour="#5B4AA8",
            stands_for={"graph": "structure"},
        ),
    )
}
"""Label → learner, from what assumes most to what assumes least."""

_OWN = frozenset(_LEARNERS)
_TAKEN = frozenset(("auto", "all", "none", "optimal", "prior", "random", "truth"))
"""Labels that stand for something else in a run."""


def learners() -> Mapping[str, RegisteredLearner]:
    """Return label → learner, from what assumes most to what assumes least, and then those of users."""
    return MappingProxyType(_LEARNERS)


def run_by_default() -> tuple[str, ...]:
    """Return the labels of the learners that a run has unless told otherwise."""
    return tuple(label for label, entry in _LEARNERS.items() if entry.by_default)


def learners_with(option: str) -> tuple[str, ...]:
    """Return the labels of the learners that know an option."""
    return tuple(label for label, entry in _LEARNERS.items() if option in entry.options)


def find_learner(name: str) -> RegisteredLearner:
    """Return a learner by its label or by the name of its class, in upper or lower case.

    Raises
    ------
    ParameterError
        If there is none.
    """
    wanted = str(name).lower()
    for entry in _LEARNERS.values():
        if wanted in (entry.label, entry.name.lower()):
            return entry
    known = ", ".join(_LEARNERS)
    problem = f"there is no learner {name!r}; there are {known}{did_you_mean(name, _LEARNERS)}"
    raise ParameterError("learner", name, f"one of {known}", problem)


def learner_name(label: str) -> str:
    """Return what a learner is called."""
    return find_learner(label).name


def register_learner(
    make: Callable[..., MissingnessEstimator],
    label: str,
    *,
    assumes: str,
    short: str | None = None,
    by_default: bool = False,
) -> RegisteredLearner:
    """Add a learner, so runs and commands know it by its label.

    Parameters
    ----------
    make
        Its class, or a function that returns a new one. Options reach it if it has parameters of their names, and
        the MDP if it has one called `mdp`.
    label
        What it is called: lower-case letters, digits and hyphens.
    assumes
        What must hold for it to be right, in plain words: "gaps depend on the hour only".
    short
        The same for a column of a table.
    by_default
        Whether a run has it unless told otherwise.

    Examples
    --------
    >>> import missmdp as mm
    >>> class Cautious(mm.AsMAR):
    ...     '''AsMAR that takes nothing as impossible.'''
    >>> mm.register_learner(Cautious, "cautious", assumes="gaps depend only on values that are always seen").name
    'Cautious'
    >>> mm.forget_learner("cautious")
    """
    if not callable(make):
        raise ParameterError("make", make, "a class, or a function that returns a new learner")
    if not isinstance(label, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", label):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("label", label, "a word of lower-case letters, digits and hyphens")
    if label in _TAKEN or label in _OWN:
        raise ParameterError(
            "label", label, "a new word", f"{label!r} already stands for something else in a run"
        )
    try:
        known = tuple(inspect.signature(make).parameters)
    except ValueError:  # a class written in C, such as dict
        known = ()
    for name, text in (("assumes", assumes), ("short", short)):
        if text is not None:
            checked_text(name, text)
    try:
        one: Any = make(**({"mdp": None} if "mdp" in known else {}))
    except (TypeError, ValueError) as error:
        raise ParameterError("make", make, f"callable without arguments, other than mdp ({error})") from error
    if not hasattr(one, "has_bound") or not hasattr(one, "fit"):
        raise DataError(f"{label}: expected a MissingnessEstimator, got {type(one).__name__}")
    entry = RegisteredLearner(
        label,
        type(one).__name__,
        make,
        says=assumes,
        short=short or assumes,
        meaning=assumes,
        clause=assumes,
        has_bound=one.has_bound,
        needs_histories=one.needs_histories,
        options=tuple(name for name in OPTIONS if name in known),
        by_default=by_default,
    )
    _LEARNERS[label] = entry
    return entry


def forget_learner(label: str) -> None:
    """Remove a learner that was registered; those of the package stay."""
    if not isinstance(label, str) or label in _OWN or label not in _LEARNERS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("label", label, "the label of a registered learner")
    del _LEARNERS[label]
