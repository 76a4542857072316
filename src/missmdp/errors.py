"""The errors that missmdp raises: all derive from `MissMDPError` and speak to the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import EllipsisType
from typing import Any, Self, cast

from missmdp.words import LONGEST_VALUE, printable, shortened, shown

_LONG_WORD = re.compile(rf"\S{{{2 * LONGEST_VALUE},}}")
_LONGEST = 4000
"""Letters of a message; more than a few thousand nobody reads."""


@dataclass(frozen=True)
class Argument:
    """An argument that a message speaks of, so the command line can name its option instead."""

    name: str
    value: object = None
    """What to pass, where the message says so. An ellipsis, also within a list or dict, is for the reader to choose."""
    python: str | None = None
    """How the value is written in Python, where that says more than its repr."""

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}={_shown(self.value) if self.python is None else self.python}"


def _shown(value: object) -> str:
    """Return a value as one would write it in Python."""
    match value:
        case EllipsisType():
            return "…"
        case list():
            return f"[{', '.join(map(_shown, cast('list[object]', value)))}]"
        case dict():
            items = cast("dict[object, object]", value).items()
            return f"{{{', '.join(f'{shown(key)}: {_shown(one)}' for key, one in items)}}}"
        case _:
            return shown(value)


def readable(text: str) -> str:
    """Return a message in which names and values of others do no harm: what is not text is escaped, long words cut."""
    text = printable(shortened(text, 10 * _LONGEST))
    return shortened(_LONG_WORD.sub(lambda found: shortened(found[0], LONGEST_VALUE), text), _LONGEST)


class Message(str):
    """A text in parts, of which some are an `Argument`. As a text it is for users of Python."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Self:
        """Put the parts together."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = parts
        return message

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> Self:
        """Return lines, of which some may be messages, as one."""
        parts = [part for line in lines for part in ("\n", line)]
        return cls(*parts[1:])

    def text(self, argument: Callable[[Argument], str] = str) -> str:
        """Return the text, with arguments written as `argument` says."""
        return _text(self.parts, argument)


def _text(parts: Iterable[object], argument: Callable[[Argument], str]) -> str:
    return "".join(
        argument(part)
        if isinstance(part, Argument)
        else part.text(argument)
        if isinstance(part, Message)
        else str(part)
        for part in parts
    )


class MissMDPError(Exception):
    """Base of every error that missmdp raises deliberately; its text is safe to print whatever data it speaks of.

    A message is one text, or several parts of which some are an `Argument` or a `Message`: in Python `step='day'`, on
    the command line `--step day`. Where an error is raised again with a word before it, its parts are kept:
    `raise DataError(f"{path}: ", *error.args)`.
    """

    def text(self, argument: Callable[[Argument], str] = str) -> str:
        """Return the message, with arguments written as `argument` says."""
        return readable(_text(self.args, argument))

    def __str__(self) -> str:
        return self.text()


class ModelError(MissMDPError, ValueError):
    """An invalid model: the message names the feature, state or action at fault."""


class DataError(MissMDPError, ValueError):
    """Data that cannot be used: the message names the file, row, episode or column at fault."""


class FormatError(MissMDPError, ValueError):
    """A file that is damaged, foreign, or from a version that this one cannot read."""


class ParameterError(ModelError, DataError):
    """An argument that cannot be. It is a `ModelError` and a `DataError`, whichever the caller looks out for.

    Attributes
    ----------
    name : str
        The argument.
    value
        What was given.
    expected : str
        What it must be, to be read after "must be".
    problem : str or None
        What is wrong, where that says more than what was expected; a `Message` where it speaks of other arguments.
    """

    def __init__(self, name: str, value: object, expected: str, problem: str | None = None) -> None:
        wrong = (f" must be {expected}, got {shown(value)}",) if problem is None else (": ", problem)
        super().__init__(Argument(name), *wrong)
        self.name = name
        self.value = value
        self.expected = expected
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way back from a worker process."""
        return (type(self), (self.name, self.value, self.expected, self.problem))


class MissingExtra(MissMDPError, ImportError):  # noqa: N818 (it says what is not there)
    """A feature that needs an extra which is not installed: the message says how to install it."""

    def __init__(self, *parts: str | Argument, name: str | None = None) -> None:
        super().__init__(*parts)
        self.name = name


class ImpossibleObservation(MissMDPError):  # noqa: N818 (it says what was seen, not what went wrong)
    """An observation of probability zero under the model.

    Attributes
    ----------
    belief : numpy.ndarray
        The belief before the step, shape (S,).
    action
        The action taken, or None for the first observation.
    observation : tuple
        What was seen, None for missing.
    """

    def __init__(self, message: str, *, belief: object, action: object, observation: object) -> None:
        super().__init__(message)
        self.belief = belief
        self.action = action
        self.observation = observation

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way back from a worker process."""
        rebuild = partial(type(self), belief=self.belief, action=self.action, observation=self.observation)
        return (rebuild, self.args)


class AssumptionWarning(UserWarning):
    """The data contradict something that a learner assumes."""

    def __str__(self) -> str:
        return readable(super().__str__())
