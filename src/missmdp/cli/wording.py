"""Sentences of the library for people who type: on one line, and what a Python user would pass is an option."""

from __future__ import annotations

import re
import shlex

from missmdp.errors import MissMDPError

__all__ = ["as_typed", "one_line", "what_is_wrong"]

_COLUMNS = "episode|step|action|terminated"
_NAMED = {"always_observed": "always", "blocks": "block"}
"""Arguments whose options are called otherwise."""
_ARGUMENTS = (
    "absolute_precision|always_observed|baseline_seeds|baseline_timeout|baselines|benchmarks|bins|blocks|confidence|"
    "episodes|exploration|folds|horizon|ignore|learners|max_depth|max_episodes|max_trials|memory|optimal_trials|"
    "pomcp_episodes|ppo_steps|precision|prior_trials|runs|seed|sizes|smoothing|solve_timeout|timeout|tree_queries|"
    "until_stderr|value_runs|value_sizes"
)
"""Many are ordinary words: they are arguments where a sentence begins with them, and says what they must be."""


def as_typed(message: str) -> str:
    """Return a message in which arguments that a Python user would pass are options that one can type."""
    # Where the library names the option too, that is all one needs here.
    message = re.sub(r" \(--[^()]* for commands\)", "", message)
    message = re.sub(
        rf"\b(pass|leave out) ({_COLUMNS})='([^']*)'",
        lambda found: f"{'give' if found[1] == 'pass' else found[1]} --{found[2]} {shlex.quote(found[3])}",
        message,
    )
    message = re.sub(rf"\b({_COLUMNS})= (and|are|must)\b", r"--\1 \2", message)
    message = message.replace("give either graph or assume", "give either --graph or --assume")
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
    message = re.sub(r"\b(?:pass )?per_file=True", "give --per-file", message).replace("give give", "give")
    message = re.sub(r"\b(tree_queries|max_depth)(?==\d|$)", _option, message)
    return re.sub(rf"^({_ARGUMENTS})(?= must | can |: )", _option, message)


def _option(found: re.Match[str]) -> str:
    """Return the option for an argument."""
    return "--" + _NAMED.get(found[1], found[1]).replace("_", "-")


def what_is_wrong(error: MissMDPError | OSError) -> str:
    """Return what an error says, for people who type; also what the system says begins with the file."""
    if isinstance(error, MissMDPError):
        return as_typed(str(error))
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def one_line(message: str) -> str:
    """Return a message without line breaks."""
    return " ".join(line.strip() for line in message.splitlines() if line.strip())
