"""What `diagnose`, `learn`, `solve` and `tune-ppo` print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.markup import escape
from rich.text import Text

from missmdp.cli.failures import as_typed, echo
from missmdp.cli.printing import Column, cell, make_table, print_columns, print_sentence
from missmdp.errors import ModelError
from missmdp.evaluation.distance import total_variation
from missmdp.learn.diagnosis.result import (
    doubt_words,
    dynamics_words,
    p_words,
    recommended_name,
    type_words,
    variable_words,
)
from missmdp.learn.table import missing_in
from missmdp.model.missmdp import MissMDP
from missmdp.plan.state_text import short_text
from missmdp.plan.value_function import NO_VECTOR
from missmdp.terminal import Console, make_console
from missmdp.words import count, decimals, label, rate_text, signed

if TYPE_CHECKING:
    from missmdp.data.validation import DataReport
    from missmdp.experiments.ppo_search import PPOSearch
    from missmdp.experiments.ppo_trials import Trial
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.learn.bounds import Bound, GroupBound
    from missmdp.learn.diagnosis.result import ClassScore, Diagnosis, Driver, NestedTest
    from missmdp.model.missingness import MissingnessFunction
    from missmdp.model.pomdp import POMDP
    from missmdp.plan.alpha import AlphaVectorPolicy
    from missmdp.plan.factored.policy import MemoryPolicy
    from missmdp.plan.solving import SolveResult

__all__ = [
    "first_action",
    "print_diagnosis",
    "print_learned",
    "print_problem",
    "print_report",
    "print_result",
    "print_search",
    "print_trial",
]


def print_diagnosis(found: Diagnosis, notes: Iterable[str] = ()) -> None:
    """Print the type, what drives missingness, how sure that is, and which learner suits."""
    console = make_console()
    for line in doubt_words(found):
        console.print(escape(line), style="yellow")
    if found.blocks:
        console.print(f"[bold]{escape(type_words(found))}[/bold]")
        _print_drivers(console, found)
        _print_classes(console, found.classes)
        _print_tests(console, found.tests, found.own_tests)
        console.print()
        for line in dynamics_words(found):
            console.print(escape(line))
        console.print(f"[bold]Learner: {recommended_name(found)}[/bold]")
        console.print(escape(found.reason))
    else:
        console.print(f"Nothing is missing in {count(found.n_steps, 'observation')}.")
        for line in dynamics_words(found):
            console.print(escape(line))
    for note in (*found.notes, *notes):
        console.print(escape(f"Note: {note}"))


def _print_drivers(console: Console, found: Diagnosis) -> None:
    table = make_table(
        "missing", "rate", "by", "lowest", "highest", "points apart", title="\nWhat drives missingness"
    )
    for block, rate in zip(found.blocks, found.rates, strict=True):
        own: Sequence[Driver | None] = [d for d in found.drivers if d.features == block] or [None]
        for number, driver in enumerate(own):
            first = (cell(", ".join(block)), rate_text(rate)) if number == 0 else ("", "")
            table.add_row(*first, *(_driver_cells(driver) if driver is not None else ("nothing",)))
    console.print(table)
    if any(driver.interval is not None for driver in found.drivers):
        console.print(
            "Other features are as in the log. The 95% intervals come from a bootstrap and are approximate."
        )


def _driver_cells(driver: Driver) -> tuple[str | Text, ...]:
    difference = f"{100.0 * driver.difference:.1f}"
    if driver.interval is not None:
        low, high = driver.interval
        difference += f" ({100.0 * low:.1f} to {100.0 * high:.1f})"
    return (
        cell(variable_words(driver)),
        cell(f"{rate_text(driver.lowest_rate)} at {driver.lowest}"),
        cell(f"{rate_text(driver.highest_rate)} at {driver.highest}"),
        difference,
    )


def _print_classes(console: Console, classes: Iterable[ClassScore]) -> None:
    table = make_table(
        "class of reasons", "parameters", "score below the best", title="\nWhich reasons explain the log best"
    )
    for row in classes:
        table.add_row(row.name, f"{row.n_parameters:,}", f"{row.behind:,.1f}")
    console.print(table)


def _print_tests(console: Console, chain: Sequence[NestedTest], own: Sequence[NestedTest]) -> None:
    tests = (*chain, *own)
    if not tests:
        return
    table = make_table(
        "tested",
        "against",
        "of",
        "",
        "",
        title=f"\nWhat the log contradicts, at level {tests[0].level:.4g}",
    )
    for test in tests:
        names = cell(", ".join(test.features)) if test in own else ""
        verdict = "rejected" if test.rejected else "not rejected"
        table.add_row(test.null, test.alternative, names, p_words(test.p_value), verdict)
    console.print(table)


_WIDE = 4
"""Patterns up to which each has a column of its own."""


def print_report(report: DataReport, notes: tuple[str, ...]) -> None:
    """Print what is odd about a log, on standard error."""
    console = make_console(stderr=True)
    for note in notes:
        console.print(escape(f"Note: {note}"))
    for problem in report.problems:
        console.print(escape(f"Problem: {as_typed(problem)}"), style="yellow")


def print_learned(
    learner: MissingnessEstimator, n_steps: int, bound: Bound | None, known: MissMDP | None, *, most: int
) -> None:
    """Print learned probabilities with intervals, how sure they are, and what speaks against them."""
    console = make_console()
    always = ", ".join(learner.always_observed_) or "none"
    console.print(f"[bold]{escape(learner.title())}[/bold] on {n_steps:,} observations")
    console.print(escape(f"always observed: {always}"))
    for line in learner.details():
        console.print(escape(line))
    if bound is not None:
        shown = [group for group in bound.per_group if not group.never_missing]
        for _, part in groupby(shown, key=lambda group: group.features):
            _print_part(list(part), most)
        console.print()
        console.print(escape(as_typed(bound.describe())))
    if learner.unseen_:
        console.print(
            f"Groups without data, which get the {learner.unseen_[0].gets} distribution: "
            f"{count(len(learner.unseen_), 'group')}."
        )
    if known is not None:
        console.print(escape(_distance_words(learner.missingness_, known)))
    for finding in learner.warnings_:
        console.print(escape(f"Warning: {as_typed(finding.message)}"), style="yellow")


def _distance_words(learned: MissingnessFunction, known: MissMDP) -> str:
    """Return how far M̂ is from a model's own M, or what that would take."""
    try:
        distance = total_variation(learned, known)
    except ModelError as error:
        return f"Distance from the model's own M: {error}."
    return (
        f"Distance from the model's own M in total variation: {distance.average:.4f} on average, "
        f"{distance.worst:.4f} at worst, {distance.weighted:.4f} weighted by visits."
    )


def _print_part(groups: list[GroupBound], most: int) -> None:
    console = make_console()
    first = groups[0]
    # Groups of a learned structure need not go by the same features: one that does not matter has no value there.
    by = list(dict.fromkeys(name for group in groups for name in group.given))
    listed = sorted(groups, key=lambda group: -group.samples)[:most]
    kept = [group for group in groups if group in listed]
    names = ", ".join(map(label, first.features))
    title = (
        f"\nP({names} missing)" if len(first.patterns) == 2 else f"\nProbability of each pattern of {names}"
    )
    if len(kept) < len(groups):
        title += f", {len(kept)} of {len(groups)} groups, those with the most samples"
    patterns = [missing_in(first.features, pattern) for pattern in first.patterns]
    if len(patterns) == 2:
        columns, places = ["probability"], [1]
    elif len(patterns) <= _WIDE:
        columns, places = patterns, list(range(len(patterns)))
    else:
        columns, places = ["what", "probability"], []
    table = make_table(*by, "samples", *columns, title=escape(title))
    for column in table.columns[len(by) + 1 :]:
        column.min_width = 13 if len(places) > 1 else None
    for group in kept:
        values = [cell(group.given.get(name, "any")) for name in by]
        row = [*values, f"{group.samples:,}"]
        if places:
            # Under each other, so that several patterns fit beside each other.
            between = " " if len(places) == 1 else "\n"
            table.add_row(*row, *[_interval(group, k, between=between) for k in places])
            continue
        for k in sorted(range(len(patterns)), key=lambda k: -group.estimate[k])[:_WIDE]:
            table.add_row(*row, cell(patterns[k]), _interval(group, k))
            row = [""] * len(row)
    if kept:
        console.print(table)


def _interval(group: GroupBound, k: int, *, between: str = " ") -> str:
    """Return an estimate and its interval."""
    return f"{group.estimate[k]:.3f}{between}[dim]({group.lower[k]:.3f}–{group.upper[k]:.3f})[/dim]"


_WIDTH = 14
"""Of the words on the left, as in `SolveResult.describe`."""


def print_problem(model: MissMDP | POMDP, name: str, *, observe_initial: bool | None) -> None:
    """Print the size of what is to be solved."""
    if isinstance(model, MissMDP):
        observations = model.missingness.count_occurring(model.mdp.reachable)
        observes = True if observe_initial is None else observe_initial
    else:
        observations = model.n_observations
        observes = model.observe_initial if observe_initial is None else observe_initial
    begins = "observes, then acts" if observes else "acts, then observes"
    _print_line(
        "model",
        f"{name}: {model.n_states:,} states, {len(model.actions):,} actions, {observations:,} observations, "
        f"discount {model.discount:g}; {begins}",
    )


def print_result(result: SolveResult) -> None:
    """Print the bounds, why the search ended, and what to do first if that is one thing."""
    console = make_console()
    console.print(escape(result.describe()))
    action = first_action(result.policy)
    if action is not None:
        whatever = ", whatever is seen" if result.policy.observe_initial else ""
        _print_line("first action", f"{label(short_text(action))}{whatever}")


def _print_line(what: str, text: str) -> None:
    make_console().print(escape(f"{what:<{_WIDTH}}{text}"))


def first_action(policy: AlphaVectorPolicy | MemoryPolicy) -> Any:
    """Return the first action, or None if it depends on what is seen or everything has ended before."""
    from missmdp.plan.factored.policy import MemoryPolicy

    if isinstance(policy, MemoryPolicy):
        first = policy.first_actions
        return first[0] if len(first) == 1 else None
    pomdp = policy.pomdp
    if not (pomdp.initial[~pomdp.terminal] > 0.0).any():
        return None
    if not policy.observe_initial:
        return policy.action(pomdp.initial)
    outcomes = policy.value_function.outcomes(pomdp.initial, 0)
    vectors = np.unique(outcomes.vector[(outcomes.probability > 0.0) & (outcomes.vector != NO_VECTOR)])
    actions = {
        int(policy.components[component].actions[row])
        for component, row in map(policy.value_function.place_of, vectors.tolist())
    }
    return pomdp.actions[actions.pop()] if len(actions) == 1 else None


def print_trial(trial: Trial, trials: int, *, known: bool) -> None:
    """Print a trial when it is finished, or that it was before."""
    took = "finished earlier" if known else f"{trial.steps:,} steps in {trial.seconds:.1f} s"
    make_console().print(f"trial {trial.number} of {trials}: {' ± '.join(_figures(trial))}, {took}")


def print_search(search: PPOSearch) -> None:
    """Print all trials, the best first, and what the best is worth."""
    columns: list[Column] = [[title] for title in _TITLES]
    for trial in search.trials:
        for column, text in zip(columns, _cells(trial), strict=True):
            column.append(text)
    console = make_console()
    console.print()
    print_columns(columns)
    console.print()
    for sentence in search.describe().splitlines():
        print_sentence(sentence)
    for name in ("best.json", "best.mmpolicy", "trials.csv"):
        echo(f"Written to {search.folder / name}")


_TITLES = (
    "trial",
    "value",
    "s.e.",
    "layers",
    "clip",
    "entropy",
    "KL",
    "actor",
    "critic",
    "batch",
    "epochs",
)


def _cells(trial: Trial) -> tuple[str, ...]:
    settings = trial.settings
    return (
        str(trial.number),
        *_figures(trial),
        f"{settings.layers}×{settings.units}",
        f"{settings.clip_range:.2f}",
        _small(settings.entropy),
        _small(settings.target_kl or 0.0),
        _small(settings.actor_learning_rate),
        _small(settings.critic_learning_rate),
        str(settings.minibatch),
        str(settings.epochs),
    )


def _figures(trial: Trial) -> tuple[str, str]:
    places = decimals(trial.stderr)
    return signed(trial.value, places), f"{trial.stderr:.{places}f}"


def _small(number: float) -> str:
    """Return a small number with two digits, such as 7.9e-5."""
    digits, _, exponent = f"{number:.1e}".partition("e")
    return f"{digits}e{int(exponent)}"
