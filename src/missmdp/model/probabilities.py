"""Distributions that users give, and the functions and numbers behind them; errors name the state at fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_number
from missmdp.errors import ModelError, ParameterError

SUM_TOLERANCE = 1e-5
"""Sums this close to one are rounding (probabilities typed with six digits) and are scaled to one."""

_EXACT = 1e-12
"""Sums this close to one are left alone, so checking twice changes nothing."""

LARGEST_VALUE = 1e150
"""What values may be at most: sums, differences and squares of some of them must be finite."""


def checked_discount(discount: object) -> float:
    """Return the discount as a float in [0, 1)."""
    return checked_number("discount", discount, least=0.0, below=1.0, expected="a number in [0, 1)")


def checked_rewards(
    reward: NDArray[np.float64], discount: float, name: Callable[[int, int], str]
) -> NDArray[np.float64]:
    """Return rewards, shape (S, A), with which values and their squares are finite; `name` is for the error."""
    size = np.abs(reward)
    bad = np.argwhere(~np.isfinite(reward))
    if bad.size:
        s, a = map(int, bad[0])
        raise ModelError(f"{name(s, a)} is {reward[s, a]}; it must be finite")
    largest = float(size.max(initial=0.0))
    if largest > LARGEST_VALUE * (1.0 - discount):
        s, a = np.unravel_index(int(size.argmax()), size.shape)
        raise ModelError(
            f"{name(int(s), int(a))} is {reward[s, a]:g}; with the discount {discount:.15g} values are as large as "
            "|reward| / (1 − discount), which is too much for floating-point numbers: divide all rewards by a constant"
        )
    return reward


def _problem(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    return "infinite" if np.isinf(value) else f"negative ({value:g})"


def _bad_entry(values: NDArray[np.float64]) -> int | None:
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    return int(bad[0]) if bad.size else None


def checked_distribution(
    weights: NDArray[np.float64], what: str, name: Callable[[int], object]
) -> NDArray[np.float64]:
    """Return one distribution, shape (S,), whose entries are probabilities that sum to one."""
    bad = _bad_entry(weights)
    if bad is not None:
        raise ModelError(f"{what}: the probability of {name(bad)!r} is {_problem(weights[bad])}")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ModelError(f"{what}: the probabilities sum to {total:.10g}, not 1")
    return weights / total if abs(total - 1.0) > _EXACT else weights.copy()


def checked_table(table: NDArray[np.float64], what: Callable[[int], str]) -> NDArray[np.float64]:
    """Return distributions as rows of a dense table, checked as in `checked_distribution`."""
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0.0)))
    if bad.size:
        row, column = map(int, bad[0])
        raise ModelError(f"{what(row)}: a probability is {_problem(table[row, column])}")
    with np.errstate(over="ignore"):
        totals = table.sum(axis=1)
    _raise_on_sums(totals, what)
    scale = np.where(np.abs(totals - 1.0) > _EXACT, totals, 1.0)
    return table / scale[:, None]


def checked_rows(matrix: sparse.csr_array, what: Callable[[int], str], hint: str = "") -> sparse.csr_array:
    """Return distributions as rows of a sparse matrix, checked, sorted, and without stored zeros.

    `hint` is added to the message where a row sums to less than one.
    """
    matrix = matrix.copy()
    matrix.sum_duplicates()
    bad = _bad_entry(matrix.data)
    if bad is not None:
        row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
        raise ModelError(f"{what(row)}: the probability is {_problem(matrix.data[bad])}")
    matrix.eliminate_zeros()
    matrix.sort_indices()
    with np.errstate(over="ignore"):
        totals = np.asarray(matrix.sum(axis=1), dtype=np.float64).reshape(-1)
    _raise_on_sums(totals, what, hint)
    scale = np.where(np.abs(totals - 1.0) > _EXACT, totals, 1.0)
    if (scale != 1.0).any():
        matrix.data = matrix.data / np.repeat(scale, np.diff(matrix.indptr))
    return matrix


def _raise_on_sums(totals: NDArray[np.float64], what: Callable[[int], str], hint: str = "") -> None:
    off = np.flatnonzero(np.abs(totals - 1.0) > SUM_TOLERANCE)
    if off.size:
        row = int(off[0])
        more = f" (and {off.size - 1} more rows)" if off.size > 1 else ""
        raise ModelError(
            f"{what(row)}: the probabilities sum to {totals[row]:.10g}, not 1{more}"
            + (f"; {hint}" if hint and totals[row] < 1.0 else "")
        )


def number(value: Any, what: str, *arguments: Any) -> float:
    """Return a value as a float; `what` names it in the error, formatted with the arguments only then."""
    if type(value) is float:
        return value
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{what.format(*arguments) if arguments else what} is {value!r}, not a number"
        ) from None


def as_floats(values: Any, what: str) -> NDArray[np.float64]:
    """Return an array of floats."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"got {array.dtype}")
        with np.errstate(over="ignore"):
            # Wider floats become infinite, which is refused by those who need finite numbers.
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what}: expected an array of numbers ({error})") from None


def as_integers(values: Any, name: str) -> NDArray[np.integer[Any]]:
    """Return an array of integers, of the type that they have."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(name, type(values).__name__, "an array of integers") from error
    if array.dtype.kind not in "iu":
        raise ParameterError(name, str(array.dtype), "an array of integers")
    return array


def as_flags(values: Any, what: str, expected: str = "True or False, or 1 or 0") -> NDArray[np.bool_]:
    """Return an array of booleans, from booleans or from the numbers 0 and 1."""
    try:
        given = as_floats(values, what)
    except ModelError as error:
        raise ParameterError(what, values, expected) from error
    odd = given[(given != 0.0) & (given != 1.0)]
    if odd.size:
        raise ParameterError(what, float(odd[0]), expected)
    return given.astype(np.bool_)


def call(function: Callable[..., Any], what: str, *arguments: Any) -> Any:
    """Return what a user's function gives; its exceptions become a `ModelError` that names the arguments."""
    try:
        return function(*arguments)
    except Exception as error:
        given = ", ".join(repr(argument) for argument in arguments)
        raise ModelError(f"{what}({given}) raised {type(error).__name__}: {error}") from error
