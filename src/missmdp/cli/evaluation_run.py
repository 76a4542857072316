"""What `missmdp evaluate` does, one thing after another, and what it prints."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from missmdp.cli.failures import echo, what_is_wrong
from missmdp.cli.files import AskedPolicy, read_policy
from missmdp.cli.printing import (
    Column,
    columns_width,
    print_columns,
    print_labelled,
    print_sentence,
)
from missmdp.cli.printing_results import print_problem
from missmdp.errors import MissMDPError, ModelError
from missmdp.evaluation.compare import Comparison, NormalisedValue, compare
from missmdp.evaluation.simulation import Arena
from missmdp.evaluation.value import Evaluation
from missmdp.experiments.baselines import BaselineSettings, MadePolicy, make_baseline
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.policy_store import KEPT, PolicyStore
from missmdp.experiments.tables import write_columns, write_table
from missmdp.experiments.value_table import named_end, normalised_values, return_columns, value_rows
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.terminal import make_console
from missmdp.words import decimals, interval_text, rounded_up, signed

__all__ = ["EvaluationRun"]

_WIDE_GAP = 0.05
"""Relative gap from which a solved policy deserves a word."""
_NOTHING = "–"
_ROUNDING = 1e-12
_WENT_ON = ("admitted", "restarted", "ignored")
"""What a policy does after an observation that its own model excludes."""


class EvaluationRun:
    """One evaluation: policies are made, simulated, printed and written.

    Whoever reads what is printed may go: then the work is done all the same, and written if it was to be.

    Parameters
    ----------
    asked
        The policies.
    model, shown
        The model to act in, and what it is called.
    settings
        How baselines are made.
    options
        What was typed, by name.
    quiet
        Whether to print values alone.
    by_default
        Whether nobody asked for these very policies: then those that cannot be made are no failure.
    """

    def __init__(
        self,
        asked: Sequence[AskedPolicy],
        model: MissMDP | POMDP,
        shown: str,
        settings: BaselineSettings,
        options: dict[str, Any],
        *,
        quiet: bool,
        by_default: bool = False,
    ) -> None:
        self.asked = asked
        self.model = model
        self.shown = shown
        self.settings = settings
        self.options = options
        self.quiet = quiet
        self.by_default = by_default
        self.progress = False if quiet else None
        self.failed: list[str] = []
        self._gone: OSError | SystemExit | None = None

    def run(self, name: str, output: Path | None, returns: Path | None) -> None:
        """Do it all; raise in the end if something could not be kept, written or printed."""
        made = self.make_all()
        comparison = self.compare(made)
        self.show(comparison, made)
        self.write(comparison, made, name, output, returns)
        if self.failed:
            raise click.ClickException("; ".join(self.failed))
        if self._gone is not None:
            raise self._gone

    def _say(self, show: Callable[..., object], *arguments: Any, **options: Any) -> None:
        if self._gone is not None:
            return
        try:
            show(*arguments, **options)
        except (OSError, SystemExit) as gone:
            # rich leaves the program where nobody reads any more.
            self._gone = gone

    def make_all(self) -> dict[str, MadePolicy]:
        """Return all policies by name: files first, so what is wrong with them is known before long work."""
        from missmdp.evaluation.simulation import Arena
        from missmdp.experiments.policy_store import PolicyStore

        options = self.options
        arena = Arena(
            self.model, options["seed"], options["horizon"], control_variate=options["control_variate"]
        )
        read: dict[str, MadePolicy] = {}
        for policy in self.asked:
            if policy.path is not None:
                read[policy.name] = read_policy(policy.path, self.model)
                try:
                    arena.store(read[policy.name].policy)
                except ModelError as error:
                    raise ModelError(f"{policy.path}: {error}") from error
        if not self.quiet:
            self._say(print_problem, self.model, self.shown, observe_initial=None)
            self._say(_print_setting, arena, options["episodes"], options["until_stderr"])
        folder = options["save_policies"]
        kept = None if folder is None else PolicyStore(folder, self.model, self.settings)
        made: dict[str, MadePolicy] = {}
        baselines: dict[str, tuple[MadePolicy, str] | str] = {}
        for policy in self.asked:
            note = ""
            if policy.baseline is None:
                made[policy.name] = read[policy.name]
            else:
                if policy.baseline not in baselines:
                    baselines[policy.baseline] = self._made(policy.baseline, kept)
                found = baselines[policy.baseline]
                if isinstance(found, str):
                    self._skip(policy.name, found)
                    continue
                made[policy.name], note = found
            if not self.quiet:
                self._say(_print_made, policy.name, made[policy.name], note)
        if not made:
            raise ModelError("; ".join(self.failed))
        return made

    def _made(self, baseline: str, folder: PolicyStore | None) -> tuple[MadePolicy, str] | str:
        """Return a baseline and what is to be said about it, or why it cannot be made for this model."""
        try:
            return self._make(baseline, folder)
        except ModelError as error:
            return what_is_wrong(error)
        except MemoryError:
            return "there is too little memory for it"

    def _skip(self, name: str, why: str) -> None:
        """Go on without a policy."""
        if not self.by_default:
            self.failed.append(f"{name} was left out: {why}")
        if not self.quiet:
            self._say(print_labelled, name, f"left out: {why}")
        elif self.by_default:
            self._say(echo, f"{name} was left out: {why}", err=True)

    def _make(self, baseline: str, folder: PolicyStore | None) -> tuple[MadePolicy, str]:
        """Return a baseline, and what is to be said about where it is kept."""
        if folder is None or baseline not in KEPT:
            return make_baseline(baseline, self.model, self.settings, progress=self.progress), ""
        found = folder.find(baseline)
        if found is not None:
            return found, f"found in {folder.file(baseline)}"
        made = make_baseline(baseline, self.model, self.settings, progress=self.progress)
        try:
            return made, f"kept in {folder.keep(baseline, made)}"
        except (MissMDPError, OSError) as error:
            self.failed.append(what_is_wrong(error))
            return made, ""

    def compare(self, made: dict[str, MadePolicy]) -> Comparison:
        """Return all policies' values."""
        if not self.quiet:
            # Why simulating ended is said below the table.
            logging.getLogger("missmdp.evaluation").addHandler(logging.NullHandler())
        names = ("episodes", "seed", "until_stderr", "max_episodes", "horizon", "control_variate", "timeout")
        asked = self.options["reference"]
        reference = (asked if asked in made else None) or named_end("optimal", made) or next(iter(made))
        return compare(
            {name: policy.policy for name, policy in made.items()},
            self.model,
            reference=reference,
            threads=self.options["threads"],
            progress=self.progress,
            **{name: self.options[name] for name in names},
        )

    def show(self, comparison: Comparison, made: dict[str, MadePolicy]) -> None:
        """Print the results."""
        if self.quiet:
            self._say(echo, str(comparison))
            return
        self._say(_print_values, comparison, made, confidence=self.options["confidence"])
        self._say(_print_notes, comparison, made, until_stderr=self.options["until_stderr"])

    def write(
        self,
        comparison: Comparison,
        made: dict[str, MadePolicy],
        model: str,
        output: Path | None,
        returns: Path | None,
    ) -> None:
        """Write what can be written, and take note of what cannot."""

        def write_values(path: Path) -> None:
            rows = value_rows(comparison, made, self._about(model), confidence=self.options["confidence"])
            write_table(rows, path)

        def write_returns(path: Path) -> None:
            write_columns(return_columns(comparison), path)

        for path, write in ((output, write_values), (returns, write_returns)):
            if path is None:
                continue
            try:
                write(path)
                if not self.quiet:
                    self._say(echo, f"Written to {path}")
            except (MissMDPError, OSError) as error:
                self.failed.append(what_is_wrong(error))

    def _about(self, model: str) -> dict[str, Any]:
        """Return what all rows have in common."""
        try:
            fingerprint = model_hash(self.model)
        except MissMDPError:
            # Values that no file can hold have no hash; that is no reason to write nothing.
            fingerprint = None
        names = ("fully_observed", "until_stderr", "max_episodes", "timeout")
        return {"model": model, "model_sha256": fingerprint, **{name: self.options[name] for name in names}}


def _print_setting(arena: Arena, episodes: int, until_stderr: float | None) -> None:
    """Print how policies are evaluated."""
    count = (
        f"{episodes:,} episodes" if until_stderr is None else f"until a standard error of {until_stderr:g}"
    )
    control = ", with a control variate" if arena.controls else ""
    print_labelled(
        "evaluation", f"{count}, at most {arena.horizon:,} decisions each, seed {arena.seed}{control}"
    )
    print_labelled("", f"later decisions are worth at most {rounded_up(arena.truncation)}")


def _print_made(name: str, made: MadePolicy, note: str = "") -> None:
    """Print where a policy comes from."""
    print_labelled(name, made.how)
    if note:
        print_labelled("", note, whole=True)


def _print_values(comparison: Comparison, made: Mapping[str, MadePolicy], *, confidence: float) -> None:
    """Print one table of values, differences and normalised values, or two where one would not fit."""
    console = make_console()
    values = _value_columns(comparison, confidence)
    others = [
        *(_difference_columns(comparison, confidence) if len(comparison.evaluations) > 1 else []),
        *_normalised_column(normalised_values(comparison, made)[0]),
    ]
    names = ["policy", *comparison.evaluations]
    console.print()
    if columns_width([names, *values, *others]) <= console.width or not console.is_terminal:
        print_columns([names, *values, *others])
        return
    print_columns([names, *values])
    if others:
        console.print()
        print_columns([names, *others])


def _value_columns(comparison: Comparison, confidence: float) -> list[Column]:
    columns: list[Column] = [["value"], ["s.e."], [_interval_title(confidence)]]
    for evaluation in comparison.evaluations.values():
        _add(columns, evaluation.mean, evaluation.stderr, evaluation.interval(confidence))
    return columns


def _difference_columns(comparison: Comparison, confidence: float) -> list[Column]:
    columns: list[Column] = [[f"− {comparison.reference}"], [_interval_title(confidence)]]
    for name in comparison.evaluations:
        if name == comparison.reference:
            for column in columns:
                column.append(_NOTHING)
            continue
        gap = comparison.difference(name)
        places = 0 if gap.mean == gap.stderr == 0.0 else _places(gap.mean, gap.stderr)
        columns[0].append(signed(gap.mean, places))
        columns[1].append(_interval(gap.interval(confidence), places))
    return columns


def _normalised_column(scale: Mapping[str, NormalisedValue]) -> list[Column]:
    if not scale:
        return []
    column = ["normalised"]
    for value in scale.values():
        if value.stderr == 0.0:
            column.append(f"{value.mean:g}")
            continue
        places = decimals(value.stderr)
        column.append(f"{signed(value.mean, places)} ± {value.stderr:.{places}f}")
    return [column]


def _add(columns: list[Column], mean: float, stderr: float, interval: tuple[float, float]) -> None:
    places = _places(mean, stderr)
    columns[0].append(signed(mean, places))
    columns[1].append(_NOTHING if math.isnan(stderr) else f"{stderr:.{places}f}")
    columns[2].append(_interval(interval, places))


def _places(mean: float, stderr: float) -> int:
    """Return how many decimals a figure deserves; an error of the size of rounding is none."""
    return decimals(0.0 if stderr <= _ROUNDING * abs(mean) else stderr)


def _interval(interval: tuple[float, float], places: int) -> str:
    return interval_text(interval, places) if all(map(math.isfinite, interval)) else _NOTHING


def _interval_title(confidence: float) -> str:
    return f"{100 * confidence:g} % interval"


def _print_notes(
    comparison: Comparison, made: Mapping[str, MadePolicy], *, until_stderr: float | None
) -> None:
    """Print what deserves a sentence."""
    for i, note in enumerate(_notes(comparison, made, until_stderr)):
        if i == 0:
            make_console().print()
        print_sentence(note)


def _notes(
    comparison: Comparison, made: Mapping[str, MadePolicy], until_stderr: float | None
) -> Iterable[str]:
    for name, policy in made.items():
        gap = policy.relative_gap
        if gap is not None and gap > _WIDE_GAP:
            share = f" of {100 * gap:.0f} %" if gap < 1.0 else ""
            advice = "increase --solve-timeout before you rely on its value"
            if policy.status == "exhausted":
                advice = "the solver has nothing more to try here; --policy online or pomcp may do better"
            yield f"{name} was solved only to a wide gap{share}: {advice}."
        if policy.status == "interrupted":
            yield f"{name} was interrupted while it was being made: this is the best so far."
        yield from _happened(name, comparison[name])
    _, reason = normalised_values(comparison, made)
    if reason is not None:
        yield f"No normalised values: {reason}."
    yield from _ended(list(comparison.evaluations.values()), until_stderr)


def _happened(name: str, evaluation: Evaluation) -> Iterable[str]:
    decisions = int(evaluation.decisions.sum())
    if evaluation.impossible:
        what = ", ".join(
            f"{count:,} {kind}" for kind, count in evaluation.events.items() if count and kind in _WENT_ON
        )
        yield (
            f"{name} saw {evaluation.impossible:,} times in {decisions:,} decisions something that its own "
            f"model rules out, and continued ({what}; see docs/policies.md)."
        )
    collapsed = evaluation.events.get("collapsed", 0)
    if collapsed:
        yield (
            f"{name}: no particle survived {collapsed:,} times in {decisions:,} decisions; it continued with particles "
            "from the exact belief."
        )


def _ended(evaluations: list[Evaluation], until_stderr: float | None) -> Iterable[str]:
    status, counts = evaluations[0].status, sorted({evaluation.episodes for evaluation in evaluations})
    simulated = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    if status in ("timeout", "interrupted"):
        why = "The time limit was reached" if status == "timeout" else "Interrupted"
        yield f"{why} after {simulated} episodes of each policy."
        if len(counts) > 1:
            yield "Differences use the episodes that both policies finished."
    elif until_stderr is not None and status == "episodes":
        yield f"After {simulated} episodes the standard error is still above {until_stderr:g}."
