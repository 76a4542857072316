"""Checks on arguments, written once: each returns the value in its proper type or raises a `ParameterError`."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from missmdp.errors import ParameterError
from missmdp.words import did_you_mean, listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


A = TypeVar("A", bound=_Shaped)


def checked_integer(
    name: str, value: Any, *, least: int | None = None, most: int | None = None, expected: str | None = None
) -> int:
    """Return an integer from `least` to `most`; `expected` replaces the words for that."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or _outside(number, least, most):
        raise ParameterError(name, value, expected or f"an integer{_range_words(least, most)}")
    return number


def checked_seed(value: Any, name: str = "seed") -> int:
    """Return an integer of at least 0."""
    return checked_integer(name, value, least=0)


def checked_threads(value: Any) -> int | None:
    """Return a number of threads, or None for one per core."""
    return None if value is None else checked_integer("threads", value, least=1)


def checked_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    finite: bool = True,
    expected: str | None = None,
) -> float:
    """Return a number in a range, whose ends belong to it (`least`, `most`) or do not (`above`, `below`)."""
    number = _as_float(value)
    wrong = (
        number is None
        or math.isnan(number)
        or (finite and math.isinf(number))
        or _outside(number, least, most)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    )
    if wrong:
        words = expected or _number_words(least, most, above, below, finite=finite)
        raise ParameterError(name, value, words)
    return cast("float", number)


def checked_confidence(value: Any, name: str = "confidence") -> float:
    """Return a number strictly between 0 and 1."""
    words = "a number between 0 and 1, such as 0.95"
    return checked_number(name, value, above=0.0, below=1.0, expected=words)


def checked_choice(name: str, value: Any, choices: Sequence[T]) -> T:
    """Return a value that is one of the choices."""
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    raise ParameterError(name, value, listed([repr(choice) for choice in choices], "or", most=len(choices)))


def checked_flag(name: str, value: Any) -> bool:
    """Return True or False, and nothing that only looks like it."""
    if not isinstance(value, bool):
        raise ParameterError(name, value, "True or False")
    return value


def checked_instance(
    name: str, value: Any, kind: type[T] | tuple[type[T], ...], expected: str, advice: str = ""
) -> T:
    """Return a value of a class, or of one of several; `advice` says how to get one."""
    if not isinstance(value, kind):
        more = f" ({advice})" if advice else ""
        raise ParameterError(name, value, expected, f"expected {expected}, got {type(value).__name__}{more}")
    return value


def checked_path(value: Any, name: str = "path") -> Path:
    """Return the name of a file or folder: text, or a path."""
    found: Any = os.fspath(cast("os.PathLike[Any]", value)) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise ParameterError(name, cast("Any", value), "the name of a file or folder")
    return Path(found)


def checked_text(name: str, value: Any) -> str:
    """Return text, and nothing that could be made into text."""
    if not isinstance(value, str):
        raise ParameterError(name, value, "text")
    return value


def checked_title(value: Any) -> str | None:
    """Return a title, or None for none."""
    return None if value is None else checked_text("title", value)


def checked_callable(name: str, value: Any, expected: str) -> Callable[..., Any]:
    """Return a function, or what can be called like one."""
    if not callable(value) or isinstance(value, type):
        raise ParameterError(name, value, expected)
    return value


def checked_mapping(name: str, value: Any, expected: str) -> dict[Any, Any]:
    """Return a mapping as a dict."""
    if not isinstance(value, Mapping):
        problem = f"expected {expected}, got {type(value).__name__}"
        raise ParameterError(name, value, expected, problem)
    return dict(cast("Mapping[Any, Any]", value))


def checked_list(name: str, value: Any, expected: str) -> list[Any]:
    """Return the items of something that has some, other than text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ParameterError(name, value, expected)
    given = cast("Iterable[Any]", value)
    try:
        return list(given)
    except TypeError:  # an array without axes
        raise ParameterError(name, given, expected) from None


def checked_generator(value: Any, name: str = "seed") -> np.random.Generator:
    """Return random numbers from a seed, from None (others each time), or from a generator."""
    import numpy as np

    if value is None or isinstance(value, np.random.Generator):
        return np.random.default_rng(value)
    return np.random.default_rng(checked_seed(value, name))


def checked_shape(name: str, array: A, shape: tuple[int, ...], axes: str = "") -> A:
    """Return an array that has a shape; `axes` says in words what the shape is of, as in "(states, actions)"."""
    if array.shape != shape:
        raise ParameterError(name, array.shape, f"of shape {f'{axes} = ' if axes else ''}{shape}")
    return array


def checked_mask(name: str, value: Any, size: int) -> NDArray[np.bool_]:
    """Return true or false for each of so many things, shape (size,)."""
    import numpy as np

    found: Any = value
    if not isinstance(found, np.ndarray) or found.dtype != np.bool_ or found.shape != (size,):  # pyright: ignore[reportUnknownMemberType]
        raise ParameterError(name, cast("Any", found), f"a boolean array of shape ({size},)")
    return cast("NDArray[np.bool_]", found)


def checked_names(name: str, value: Any, known: Sequence[str], what: str = "feature") -> tuple[str, ...]:
    """Return a list of known names; the error says which one is unknown, and what may have been meant."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(name, value, f"a list of {what}s")
    given = tuple(cast("Iterable[Any]", value))
    for one in given:
        if not isinstance(one, str) or one not in known:
            problem = (
                f"there is no {what} {one!r}; the {what}s are {', '.join(known)}{did_you_mean(one, known)}"
            )
            raise ParameterError(name, one, f"a list of {what}s", problem)
    return given


def _as_float(value: Any) -> float | None:
    """Return a number as a float; None for anything that is none, booleans and words included."""
    if isinstance(value, bool | str | bytes | complex):
        return None
    if getattr(getattr(value, "dtype", None), "kind", "") == "c":
        # numpy would drop the imaginary part, with a warning.
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _outside(value: float, least: float | None, most: float | None) -> bool:
    return (least is not None and value < least) or (most is not None and value > most)


def _range_words(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    if least is not None:
        return f" of at least {least:g}"
    return "" if most is None else f" of at most {most:g}"


def _number_words(
    least: float | None, most: float | None, above: float | None, below: float | None, *, finite: bool
) -> str:
    """Return what a number must be, in words."""
    if above == 0.0 and below is None and most is None:
        return "a positive number"
    kind = "a finite number" if finite and least is None and above is None else "a number"
    words = kind + _range_words(least, most)
    if above is not None and below is not None:
        return f"{words} between {above:g} and {below:g}"
    if above is not None:
        words += f" above {above:g}"
    return words if below is None else f"{words} below {below:g}"
