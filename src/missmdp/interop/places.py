"""Where in a file something is wrong: every error of a reader starts with path:line:column."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import FormatError

__all__ = ["MAX_COUNT", "error_at", "read_text"]

MAX_COUNT = 5_000_000
"""States, actions or observations above which a count in a file is taken for a mistake."""


def error_at(path: str | Path, line: int, column: int, message: str) -> FormatError:
    """Return the error for a place in a file, lines and columns counted from one."""
    return FormatError(f"{path}:{line}:{column}: {message}")


def read_text(path: str | Path) -> str:
    """Return the text of a file; whatever is wrong with it becomes a `FormatError`."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise FormatError(f"{path}: cannot be read ({reason})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Comments in old files are often in Latin-1; names and numbers are ASCII either way.
        text = content.decode("latin-1")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        column = text.index("\0") - text.rfind("\n", 0, text.index("\0"))
        raise error_at(path, line, column, "this is no text: it has a zero byte")
    return text
