"""Options and help texts that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from missmdp.learn.registry import OPTIONS, learners, learners_with

__all__ = [
    "CONFIDENCE",
    "DATA_HELP",
    "FILE",
    "MDP_HELP",
    "MODEL_HELP",
    "POMDP_HELP",
    "POSITIVE",
    "LearnerChoice",
    "Number",
    "Whole",
    "behaviour_option",
    "confidence_option",
    "feature_blocks",
    "features_option",
    "fully_observed_option",
    "grouped",
    "horizon_option",
    "learner_help",
    "learner_option",
    "learners_without_bound",
    "quiet_option",
    "seed_option",
    "table_arguments",
    "table_options",
    "threads_option",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

MODEL_HELP = "MODEL is a benchmark's name, an .mmdp file, or module:function."
MDP_HELP = (
    "MODEL is a benchmark's name, an .mmdp file, module:function (returning a MissMDP or a FactoredMDP), or a folder "
    "of tables (see `missmdp --help`)."
)
POMDP_HELP = "MODEL is a benchmark's name, an .mmdp file, module:function, or a .pomdp or .pomdpx file."
DATA_HELP = "DATA is one or more CSV or Parquet files, folders of such files, or patterns."


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


FILE = click.Path(dir_okay=False, path_type=Path)
POSITIVE = Number(min=0.0, min_open=True)
CONFIDENCE = Number(0.0, 1.0, min_open=True, max_open=True)


def grouped(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def seed_option(help: str = "Seed of everything random.") -> Decorator:
    """Return the option for a seed."""
    return click.option("--seed", type=Whole(min=0), default=0, show_default=True, help=help)


def confidence_option(help: str) -> Decorator:
    """Return the option for a confidence."""
    return click.option("--confidence", type=CONFIDENCE, default=0.95, show_default=True, help=help)


def quiet_option(help: str = "Print one line at the end and no progress.") -> Decorator:
    """Return the option for programs that call a command."""
    return click.option("-q", "--quiet", is_flag=True, help=help)


threads_option = click.option(
    "--threads",
    type=Whole(min=1),
    help="Number of threads; the result does not depend on it.  [default: one per core]",
)
horizon_option = click.option("--horizon", type=Whole(min=1), help="Maximum number of decisions per episode.")
fully_observed_option = click.option(
    "--fully-observed", is_flag=True, help="Use the same model with nothing missing."
)
behaviour_option = click.option(
    "--behaviour",
    type=click.Choice(["blind", "adaptive"]),
    help="Whether actions in the log were chosen without looking at observations (blind) or may depend on them "
    "(adaptive).  [default: what the file says, else adaptive]",
)


class LearnerChoice(click.Choice[str]):
    """The label of a registered learner, or module:label for one that a module of the user's registers."""

    def __init__(self, *others: str, only_bounded: bool = False) -> None:
        super().__init__((), case_sensitive=False)
        self._others = others
        self._only_bounded = only_bounded

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return what may be typed."""
        self._look()
        return super().get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the label, or raise `click.BadParameter`."""
        module, colon, label = str(value).rpartition(":")
        if colon:
            from missmdp.cli.files import load_module

            load_module(module, str(value))
        self._look()
        return super().convert(label, param, ctx)

    def _look(self) -> None:
        left_out = learners_without_bound() if self._only_bounded else ()
        self.choices = (*(label for label in learners() if label not in left_out), *self._others)


def learners_without_bound() -> tuple[str, ...]:
    """Return the learners whose intervals come from a bootstrap."""
    return tuple(label for label, learner in learners().items() if not learner.has_bound)


def learner_help() -> str:
    """Return what each learner assumes."""
    return " ".join(f"{label}: {learner.says}." for label, learner in learners().items())


def learner_option(name: str) -> Decorator:
    """Return the option for a parameter of learners; None or empty if it is not given."""
    known = OPTIONS[name]
    several = known.kind in ("features", "blocks")
    kinds: dict[str, Any] = {
        "number": Number(known.least, known.most),
        "integer": Whole(None if known.least is None else int(known.least)),
        "choice": click.Choice(known.choices, case_sensitive=False),
    }
    owners = learners_with(name)
    everyone = len(owners) == len(learners())
    text = known.help[0].upper() + known.help[1:] if everyone else f"{', '.join(owners)}: {known.help}"
    repeat = "; repeat for more" if several else ""
    default = f"  [default: {known.default}]" if known.default else ""
    return click.option(
        known.typed,
        name,
        type=kinds.get(known.kind),
        multiple=several,
        metavar={"features": "FEATURE", "blocks": "A,B", "graph": "FILE"}.get(known.kind),
        help=f"{text}{repeat}.{default}",
    )


def feature_blocks(typed: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return what the option for blocks took, as features."""
    blocks = tuple(tuple(name.strip() for name in block.split(",")) for block in typed)
    for text, block in zip(typed, blocks, strict=True):
        if len(block) < 2:
            raise click.UsageError(f"--block {text}: a block is two features or more, as in --block x,y")
    return blocks


_COLUMNS = {
    "episode": "Column with the episode.",
    "step": "Column with the step.",
    "action": "Column with the action.",
    "terminated": "Column that marks the last step of an episode, if there is one.",
}
table_options = grouped(
    *(
        click.option(f"--{name}", default=name, show_default=True, help=text)
        for name, text in _COLUMNS.items()
    ),
    click.option(
        "--bins",
        multiple=True,
        metavar="COLUMN=EDGES",
        help="Divide a column into bins, as in fever=37.5,38.5; repeat for more.",
    ),
    click.option("--per-file", is_flag=True, help="Each file numbers its own episodes."),
    click.option(
        "--missing",
        multiple=True,
        metavar="WORD",
        help="This word also means that a value is missing, like NA and null; repeat for more.",
    ),
)
"""The options that say how a table is to be read."""


def _names(context: click.Context, option: click.Parameter, typed: str | None) -> tuple[str, ...] | None:
    if typed is None:
        return None
    names = tuple(name.strip() for name in typed.split(","))
    if not all(names):
        raise click.UsageError(f"--features {typed}: expected names with commas between them")
    return names


features_option = click.option(
    "--features",
    metavar="COLUMN,…",
    callback=_names,
    help="Without MODEL: the columns that are features.  [default: all that have no other role]",
)


def table_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `table_options` took, as arguments for reading a table; other options are left out."""
    same = {name: options[name] for name in (*_COLUMNS, "per_file", "missing")}
    return {**same, "bins": _bins(options["bins"])}


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
