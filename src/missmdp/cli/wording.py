"""Sentences of the library for people who type: on one line, and what a Python user would pass is an option."""

from __future__ import annotations

import re
import shlex

from missmdp.errors import MissMDPError

__all__ = ["as_typed", "one_line", "what_is_wrong"]


def as_typed(message: str) -> str:
    """Return a message in which arguments that a Python user would pass are options that one can type."""
    message = re.sub(
        r"\bpass (episode|step|action)='([^']*)'",
        lambda found: f"give --{found[1]} {shlex.quote(found[2])}",
        message,
    )
    message = re.sub(
        r"\bblocks=\[\(([^)]*)\)\]",
        lambda found: "--block " + shlex.quote(",".join(re.findall(r"'([^']*)'", found[1]))),
        message,
    )
    message = re.sub(
        r"bins=\{'([^']*)': [^}]*\}", lambda found: f"--bins {shlex.quote(found[1] + '=EDGE,…')}", message
    )
    message = re.sub(r"\balways_observed=(\[…\])?", "--always FEATURE", message)
    message = re.sub(r"\bpatterns='seen'", "--patterns seen", message)
    message = re.sub(
        r"\bmissing=\(?\[?'([^']*)'[^ ,;.)\]]*[)\]]?",
        lambda found: f"--missing {shlex.quote(found[1])}",
        message,
    )
    return re.sub(r"\b(?:pass )?per_file=True", "give --per-file", message).replace("give give", "give")


def what_is_wrong(error: MissMDPError | OSError) -> str:
    """Return what an error says, for people who type; also what the system says begins with the file."""
    if isinstance(error, MissMDPError):
        return as_typed(str(error))
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def one_line(message: str) -> str:
    """Return a message without line breaks."""
    return " ".join(line.strip() for line in message.splitlines() if line.strip())
