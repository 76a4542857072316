"""Sentences of the library for people who type: what a Python user would pass is an option."""

from __future__ import annotations

import re
import shlex

__all__ = ["as_typed"]


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
