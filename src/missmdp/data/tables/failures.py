"""Whatever goes wrong while a table is being read becomes a `DataError` that names it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from missmdp.errors import DataError, MissMDPError

__all__ = ["reading"]


@contextmanager
def reading(name: str, advice: str = "") -> Generator[None, None, None]:
    """Turn every error on the way into a `DataError` about `name`."""
    try:
        yield
    except MissMDPError:
        raise
    except OSError as error:
        reason = error.strerror or _first_line(error)
        raise DataError(f"{name} cannot be read ({reason}){advice}") from error
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # Damaged input can fail anywhere in the libraries below, with errors of any type.
        raise DataError(f"{name} cannot be read ({_first_line(error)}){advice}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
