"""Options and help texts that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

__all__ = ["DATA_HELP", "MDP_HELP", "MODEL_HELP", "Number", "Whole", "table_arguments", "table_options"]

MODEL_HELP = "MODEL is a benchmark's name, an .mmdp file, or module:function."
MDP_HELP = (
    "MODEL is a benchmark's name, an .mmdp file, module:function (a MissMDP or a FactoredMDP), or a folder of tables "
    "(see `missmdp --help`)."
)
DATA_HELP = "DATA is one or more CSV or Parquet files, folders of these, or patterns."


class Whole(click.IntRange):
    """An integer in a range, and called that."""

    name = "integer"


class Number(click.FloatRange):
    """A number in a range; NaN, which is in every range of click's, is none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or raise `click.BadParameter`."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


_TABLE_OPTIONS = (
    click.option("--episode", default="episode", show_default=True, help="Column of the episode."),
    click.option("--step", default="step", show_default=True, help="Column of the step."),
    click.option("--action", default="action", show_default=True, help="Column of the action."),
    click.option(
        "--terminated",
        default="terminated",
        show_default=True,
        help="Column that marks the last step, if any.",
    ),
    click.option(
        "--bins", multiple=True, metavar="COLUMN=EDGES", help="Bin a column, as in fever=37.5,38.5; repeat."
    ),
    click.option("--per-file", is_flag=True, help="Each file numbers its own episodes."),
    click.option(
        "--missing",
        multiple=True,
        metavar="WORD",
        help="Means that a value is missing, besides NA, null and the like; repeat.",
    ),
)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a table is to be read."""
    for option in reversed(_TABLE_OPTIONS):
        command = option(command)
    return command


def table_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `table_options` took, as arguments for reading a table; other options are left out."""
    names = ("episode", "step", "action", "terminated", "per_file", "missing")
    return {**{name: options[name] for name in names}, "bins": _bins(options["bins"])}


def _bins(given: tuple[str, ...]) -> dict[str, Any] | None:
    from missmdp.data.binning import Binning

    bins: dict[str, Any] = {}
    for item in given:
        column, _, edges = item.rpartition("=")
        try:
            numbers = [float(edge) for edge in edges.split(",")]
        except ValueError:
            raise click.UsageError(
                f"--bins {item}: expected COLUMN=EDGE,EDGE,… with numbers as edges"
            ) from None
        bins[column] = Binning.from_edges(numbers)
    return bins or None
