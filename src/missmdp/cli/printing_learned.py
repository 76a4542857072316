"""What `missmdp learn` prints."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.markup import escape

from missmdp.cli.printing import make_console, make_table
from missmdp.cli.wording import as_typed
from missmdp.evaluation.distance import total_variation
from missmdp.learn.base import Estimator
from missmdp.learn.bounds import Bound, GroupBound, counted
from missmdp.learn.em.estimator import DynamicsEM
from missmdp.learn.table import missing_in
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP

if TYPE_CHECKING:
    from missmdp.data.validation import DataReport

__all__ = ["print_learned", "print_report"]

_WIDE = 4
"""Patterns up to which each has a column of its own."""


def print_report(report: DataReport, notes: tuple[str, ...]) -> None:
    """Print what is odd about a log, on standard error."""
    console = make_console(stderr=True)
    for note in notes:
        console.print(escape(f"Note: {note}"))
    for problem in report.problems:
        console.print(escape(as_typed(f"Problem: {problem}")), style="yellow")


def print_learned(
    learner: Estimator, n_steps: int, bound: Bound | None, known: MissMDP | None, *, most: int
) -> None:
    """Print learned probabilities with intervals, how sure they are, and what speaks against them."""
    console = make_console()
    always = ", ".join(learner.always_observed_) or "none"
    console.print(f"[bold]{escape(_title(learner))}[/bold] on {n_steps:,} observations")
    console.print(escape(f"always observed: {always}"))
    if isinstance(learner, DynamicsEM):
        _print_structure(learner)
    if bound is not None:
        shown = [group for group in bound.per_group if not group.never_missing]
        for _, part in groupby(shown, key=lambda group: group.features):
            _print_part(list(part), most)
        console.print()
        console.print(escape(as_typed(bound.describe())))
    if learner.unseen_:
        console.print(
            f"Without data, and given the {learner.unseen_[0].gets} distribution: "
            f"{counted(len(learner.unseen_), 'group')}."
        )
    if known is not None:
        distance = total_variation(learner.missingness_, known)
        console.print(
            f"Distance from the model's own M in total variation: {distance.average:.4f} on average, "
            f"{distance.worst:.4f} at worst, {distance.weighted:.4f} weighted by visits."
        )
    for finding in learner.warnings_:
        console.print(escape(as_typed(f"Warning: {finding}")), style="yellow")


def _title(learner: Estimator) -> str:
    """Return the learner; an MDP has no short name."""
    return (
        repr(learner)
        if not isinstance(learner, DynamicsEM)
        else "DynamicsEM"
        if isinstance(learner.structure, MissingnessGraph)
        else f"DynamicsEM(structure={learner.structure!r})"
    )


def _print_structure(learner: DynamicsEM) -> None:
    """Print what missingness depends on as far as was found, and how well that explains the data."""
    console, graph = make_console(), learner.graph_
    for feature in graph.can_go_missing:
        parents = graph.parents(feature)
        own = ": it hides itself" if feature in parents else ""
        depends = f"depends on {', '.join(parents)}{own}" if parents else "does not depend on any value"
        console.print(escape(f"whether {feature} is missing {depends}"))
    for a, b in graph.dependent:
        console.print(escape(f"{a} and {b} do not go missing independently"))
    ended = "converged" if learner.converged_ else "not converged"
    console.print(
        f"log-likelihood {f'{learner.log_likelihood_:,.1f}'.replace('-', '−')}, "
        f"{counted(learner.n_parameters_, 'free parameter')}, "
        f"{counted(len(learner.trace_), 'iteration')}, {ended}"
    )


def _print_part(groups: list[GroupBound], most: int) -> None:
    console = make_console()
    first = groups[0]
    # Groups of a learned structure need not go by the same features: one that does not matter has no value there.
    by = list(dict.fromkeys(name for group in groups for name in group.given))
    listed = sorted(groups, key=lambda group: -group.samples)[:most]
    kept = [group for group in groups if group in listed]
    names = ", ".join(first.features)
    title = (
        f"\nP({names} missing)"
        if len(first.patterns) == 2
        else f"\nProbability of what is missing of {names}"
    )
    if len(kept) < len(groups):
        title += f", {len(kept)} of {len(groups)} groups, those with most samples"
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
        values = [escape(str(group.given.get(name, "any"))) for name in by]
        row = [*values, f"{group.samples:,}"]
        if places:
            # Under each other, so that several patterns fit beside each other.
            between = " " if len(places) == 1 else "\n"
            table.add_row(*row, *[_interval(group, k, between=between) for k in places])
            continue
        for k in sorted(range(len(patterns)), key=lambda k: -group.estimate[k])[:_WIDE]:
            table.add_row(*row, escape(patterns[k]), _interval(group, k))
            row = [""] * len(row)
    if kept:
        console.print(table)


def _interval(group: GroupBound, k: int, *, between: str = " ") -> str:
    """Return an estimate and its interval."""
    return f"{group.estimate[k]:.3f}{between}[dim]({group.lower[k]:.3f}–{group.upper[k]:.3f})[/dim]"
