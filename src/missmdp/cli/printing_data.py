"""What the commands about logs print."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape

from missmdp.cli.printing import make_console, make_table
from missmdp.data.dataset import Dataset
from missmdp.data.description.description import FAMILY_LEVEL, Description, of, percent

__all__ = ["print_collected", "print_description"]

BLOCKS = "▁▂▃▄▅▆▇█"
BAR = 24
"""Letters of the longest bar."""


def print_description(described: Description, *, most: int) -> None:
    """Print how often features are missing, together with what, over steps, and by which values."""
    console = make_console()
    console.print(f"[bold]{described.size}[/bold]\n")
    _, *later = described.over_steps.labels
    steps = f"over steps 0 to {described.lengths[2] - 1}" if later else "at step 0"
    rates = make_table("feature", "missing", "95% interval", steps)
    lower, upper = described.intervals
    for i, name in enumerate(described.features):
        interval = f"{percent(float(lower[i]))} to {percent(float(upper[i]))}"
        strip = _strip(described.over_steps.rates[:, i].tolist()) if described.missing[i] else ""
        rates.add_row(escape(name), percent(float(described.rates[i])), interval, strip)
    console.print(rates)
    if most and described.can_go_missing:
        _print_patterns(described, most)
        _print_associations(described, most)
    for note in described.notes:
        console.print(escape(f"\nNote: {note}"))


def _print_patterns(described: Description, most: int) -> None:
    table = make_table("missing together", "rows", "share", "", title="\nWhat is missing together")
    patterns = described.together(most)
    longest = int(described.pattern_rows[0])
    for number, (names, rows) in enumerate(patterns):
        # No bar for all rarer patterns together, which may dwarf the frequent ones.
        bar = "█" * max(1, round(BAR * rows / longest)) if number < most else ""
        table.add_row(escape(names), f"{rows:,}", percent(rows / described.n_rows), bar)
    make_console().print(table)


def _print_associations(described: Description, most: int) -> None:
    console = make_console()
    found = described.strongest()
    if not found:
        console.print("\nNo feature is clearly more often missing at some values of another than at others.")
        return
    more = f" (the {most} clearest of {len(found)})" if len(found) > most else ""
    table = make_table(
        "missing",
        "most often where",
        "",
        "least often where",
        "",
        title=f"\nBy the value of another feature{more}",
    )
    for a in found[:most]:
        most_often, least_often = (f"{a.given} is {value}" for value in (a.highest, a.lowest))
        table.add_row(
            escape(a.feature),
            escape(most_often),
            percent(a.highest_rate),
            escape(least_often),
            percent(a.lowest_rate),
        )
    console.print(table)
    console.print(
        f"If rows were independent, chance alone would list anything in fewer than {FAMILY_LEVEL:.0%} of logs. In an "
        "episode they are not, so take this, like the intervals, as an indication. "
        "Whether a value goes missing because of itself cannot be seen in single rows."
    )


def _strip(rates: Iterable[float]) -> str:
    """Return rates as a row of blocks, full ones for always missing."""
    return "".join(BLOCKS[min(int(rate * len(BLOCKS)), len(BLOCKS) - 1)] for rate in rates)


def print_collected(dataset: Dataset, where: str | None, *, stderr: bool = False) -> None:
    """Print what was simulated, where it went, and how often features are missing in it."""
    console = make_console(stderr=stderr)
    console.print(
        f"{of(dataset.n_steps, 'simulated observation')} in {of(dataset.n_episodes, 'episode')} "
        f"(uniformly random actions, seed {dataset.seed})"
        + ("" if stderr else f" written to {escape(str(where))}")
    )
    rates = make_table("feature", "missing")
    for name, rate in dataset.missing_rates().items():
        rates.add_row(escape(name), percent(rate))
    console.print(rates)
