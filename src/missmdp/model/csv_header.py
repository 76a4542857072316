"""The header of a CSV file, and what its cells are separated by."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Collection
from typing import NamedTuple, TextIO

__all__ = ["CsvHeader", "encoding_advice", "read_header"]

_DELIMITERS = (",", ";", "\t")


class CsvHeader(NamedTuple):
    """What the beginning of a CSV file says."""

    names: list[str]
    """Empty if there is no header."""
    delimiter: str
    skip: int
    """The number of rows up to and including the header."""


def read_header(open_file: Callable[[], TextIO], known: Collection[str]) -> CsvHeader:
    """Return the header of a file; its delimiter is the one that gives most of the known columns.

    A first line such as `sep=;`, which Excel writes and reads, says what the delimiter is.
    """
    with open_file() as file:
        first = file.readline(100).strip().strip('"').lower()
    given = first.removeprefix("sep=") if first.startswith("sep=") else None
    if first == "sep=":  # a tab, of which stripping leaves nothing
        given = "\t"
    # The first of equals wins, a comma before all others.
    headers = [
        _header(open_file, d, given is not None) for d in ([given] if given in _DELIMITERS else _DELIMITERS)
    ]
    return max(headers, key=lambda header: (len(set(known).intersection(header.names)), len(header.names)))


def _header(open_file: Callable[[], TextIO], delimiter: str, has_separator: bool) -> CsvHeader:
    """Return the names in the first line that is not blank."""
    with open_file() as file:
        for place, row in enumerate(csv.reader(file, delimiter=delimiter)):
            if row and not (has_separator and place == 0):
                return CsvHeader([name.strip() for name in row], delimiter, place + 1)
    return CsvHeader([], delimiter, 0)


def encoding_advice(start: bytes) -> str:
    """Return what to do about a file that is no UTF-8 text, given how it starts."""
    is_wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in start[:100]
    found = "UTF-16" if is_wide else "Latin-1 or Windows-1252"
    return f"it is no UTF-8 text but looks like {found}; save it as UTF-8 (in Excel: CSV UTF-8)"
