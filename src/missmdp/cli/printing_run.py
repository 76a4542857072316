"""What `missmdp run` prints."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

import click

from missmdp.cli.columns import Column, columns_width, print_columns, print_sentence
from missmdp.cli.printing import make_console
from missmdp.cli.wording import what_is_wrong
from missmdp.errors import MissMDPError
from missmdp.experiments.run.figures import places, with_error
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.meaning import meaning
from missmdp.experiments.run.result import RunResult, World
from missmdp.words import interval_text

__all__ = ["print_kept", "print_run", "print_shortly", "with_what_is_kept"]

_NOTHING = "–"
_KNOWS = {"optimal": "knows the truth", "prior": "½ everywhere", "random": _NOTHING}
"""What policies that learned nothing take for granted."""
_INTERVALS = 2
"""The place of intervals in the table."""
_IN_SHORT = {
    "amcar": "MCAR",
    "asmar": "simple MAR",
    "aimi": "no self-censoring",
    "em": "a structure, found",
}


def print_run(result: RunResult) -> None:
    """Print one table of what policies are worth, and what that means."""
    console = make_console()
    console.print()
    columns = _columns(result)
    for dispensable in (-1, _INTERVALS):
        # What is assumed is said below, and intervals are in the report too.
        if console.is_terminal and columns_width(columns) > console.width:
            del columns[dispensable]
    print_columns(columns)
    console.print()
    first, *others = meaning(result)
    for sentence in [f"* {first}", *others, *_troubles(result)]:
        print_sentence(sentence)
    console.print()
    if result.report_failed is None:
        print_sentence(f"Report: {result.report}")
    print_sentence(f"Policy: {result.folder.policy}")
    if result.folder.certified.exists():
        print_sentence(f"Certified: {result.folder.certified}")


def print_shortly(result: RunResult) -> None:
    """Print one line."""
    label = result.recommendation.label
    evaluation = result.world.comparison[label]
    where = "in the true model" if result.problem.truth is not None else "if it is right"
    value = with_error(evaluation.mean, evaluation.stderr)
    click.echo(f"{result.recommended.name} is recommended: worth {value} {where}; see {result.report}")


def _columns(result: RunResult) -> list[Column]:
    """Return the table: values in the truth, or where that is unknown in the world of each learner."""
    confidence, world = result.settings.confidence, result.world
    names = list(world.comparison.evaluations)
    marked = [f"{name} *" if name == result.recommendation.label else name for name in names]
    known = result.problem.truth is not None
    title = "value" if known else f"if {result.learned[world.name].name} is right"
    columns = [
        ["policy", *marked],
        [title, *(_value(world, name) for name in names)],
        [f"{100 * confidence:g} % interval", *(_interval(world, name, confidence) for name in names)],
    ]
    if known:
        columns.append(["normalised", *(_normalised(world, name) for name in names)])
    columns += [
        [f"if {result.learned[other.name].name} is right", *(_value(other, name) for name in names)]
        for other in result.worlds.values()
        if other is not world
    ]
    columns.append(["assumes", *({**_IN_SHORT, **_KNOWS}.get(name, _NOTHING) for name in names)])
    return columns


def _value(world: World, name: str) -> str:
    evaluation = world.comparison[name]
    return with_error(evaluation.mean, evaluation.stderr)


def _interval(world: World, name: str, confidence: float) -> str:
    evaluation = world.comparison[name]
    interval = evaluation.interval(confidence)
    finite = all(map(math.isfinite, interval))
    return interval_text(interval, places(evaluation.stderr, evaluation.mean)) if finite else _NOTHING


def _normalised(world: World, name: str) -> str:
    value = world.normalised.get(name)
    if value is None:
        return _NOTHING
    if value.stderr == 0.0:
        return f"{value.mean:g}"
    return with_error(value.mean, value.stderr)


def _troubles(result: RunResult) -> list[str]:
    """Return what should not be overlooked."""
    nothing_missing = not any(result.log.dataset.missing_rates().values())
    found = ["Nothing is missing in the data, so there was nothing to learn."] if nothing_missing else []
    found += [
        f"{label} could not learn from these data: {why.rstrip('.')}."
        for label, why in result.skipped.items()
    ]
    searches = {
        **result.solved,
        **{name: base.result for name, base in result.baselines.items() if base.result},
    }
    stopped = [
        name for name, search in searches.items() if search.status in ("interrupted", "timeout", "memory")
    ]
    if stopped:
        found.append(
            f"Not solved to the precision asked for: {', '.join(stopped)}; better policies may exist (--timeout)."
        )
    problems = len(result.log.problems)
    if problems:
        found.append(
            f"The log does not fit the model in {problems} respect{'s' * (problems > 1)}: see the report."
        )
    status = next(iter(result.world.comparison.evaluations.values())).status
    if status == "interrupted":
        found.append("Evaluating was interrupted: values are of the episodes that were finished.")
    return found


def print_kept(folder: RunFolder, before: Mapping[str, int]) -> None:
    """Print what an interrupted run leaves, on standard error; `before` is what there was when it began."""
    kept = _kept(folder, before)
    if kept:
        # Whoever reads may have gone.
        with contextlib.suppress(OSError):
            click.echo(f"{kept[0].upper()}{kept[1:]}.", err=True)


def with_what_is_kept(
    error: MissMDPError | OSError, folder: RunFolder, before: Mapping[str, int]
) -> Exception:
    """Return the error with a word on what was made before it happened, if anything was."""
    message = what_is_wrong(error).replace("pass overwrite=True", "give --overwrite")
    kept = _kept(folder, before)
    return click.ClickException(f"{message} ({kept})" if kept else message)


def _kept(folder: RunFolder, before: Mapping[str, int]) -> str:
    made = [name for name, when in folder.made().items() if when != before.get(name)]
    inside = dict.fromkeys(f"{name.partition('/')[0]}/" if "/" in name else name for name in made)
    return f"what was made before is in {folder.path}: {', '.join(inside)}" if made else ""
