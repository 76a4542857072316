"""The commands about logs: `collect`, `describe` and `validate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from missmdp.cli.options import DATA_HELP, MDP_HELP, MODEL_HELP, Whole, table_arguments, table_options
from missmdp.cli.wording import as_typed

__all__ = ["collect", "describe", "validate"]

DESCRIBE_HELP = """\b
Examples:
  missmdp describe log.csv
  missmdp describe visits/ --episode patient --step hour --picture missing.svg
  missmdp describe "2024-*.parquet" --most 20
  missmdp describe log.csv --ignore note --ignore nurse
"""
COLLECT_HELP = f"""\b
Examples:
  missmdp collect icu-smar --steps 10000 -o icu.parquet
  missmdp collect ward.mmdp --steps 500 --seed 7 -o - | head

{MODEL_HELP}
"""
VALIDATE_HELP = f"""\b
Examples:
  missmdp validate icu-smar log.parquet
  missmdp validate ward/ "visits/*.csv" --episode patient --step hour

{MDP_HELP} {DATA_HELP}
"""


@click.command(epilog=DESCRIBE_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Also draw an .svg, .png or .pdf."
)
@click.option(
    "--most", type=Whole(min=0), default=10, show_default=True, help="How many of each kind to list."
)
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; repeat.")
@table_options
def describe(
    data: tuple[str, ...],
    picture: Path | None,
    most: int,
    ignore: tuple[str, ...],
    **table: Any,
) -> None:
    """Describe what is missing in a log.

    How often features are missing, together with what, at which steps, and beside which values of others. No
    model is needed.

    DATA is one or more CSV or Parquet files, folders of these, or patterns such as "*.csv", with one row per
    step. Columns are the episode, the step, the action, and the features; reward and terminated are left out.
    Words that hardly ever recur, such as ids and notes, are left out as well. An empty cell is a missing value.
    """
    from missmdp.cli.output import check_picture
    from missmdp.cli.printing_data import print_description
    from missmdp.data.description.describe import describe

    if picture is not None:
        check_picture(picture)
    source = data[0] if len(data) == 1 else list(data)
    described = describe(source, ignore=ignore, **table_arguments(table))
    print_description(described, most=most)
    if picture is not None:
        described.draw(picture)
        click.echo(f"\nDrawn to {picture}")


@click.command(epilog=COLLECT_HELP)
@click.argument("model")
@click.option("-o", "--output", help="A .parquet or .csv file, or - to print CSV.")
@click.option("--steps", type=Whole(min=1), required=True, help="How many observations.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Seed of the simulation.")
@click.option("--horizon", type=Whole(min=1), help="The most observations per episode.")
@click.option("--threads", type=Whole(min=1), help="By default one per core; the result is the same.")
def collect(
    model: str, output: str | None, steps: int, seed: int, horizon: int | None, threads: int | None
) -> None:
    """Simulate a log under random actions, and write it to a file.

    Parquet files also say that behaviour was blind, which makes the bounds of `missmdp learn` tighter; for CSV files
    tell it with --behaviour blind.
    """
    from missmdp.cli.models import load_model
    from missmdp.cli.output import STANDARD_OUTPUT, dataset_writer
    from missmdp.cli.printing_data import print_collected
    from missmdp.data.collect import collect

    write = dataset_writer(output)
    dataset = collect(load_model(model), steps, seed=seed, horizon=horizon, threads=threads)
    write(dataset)
    # What is printed about a log must not get into a log that is printed.
    print_collected(dataset, output, stderr=output == STANDARD_OUTPUT)


@click.command(epilog=VALIDATE_HELP)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@table_options
def validate(model: str, data: tuple[str, ...], **table: Any) -> None:
    """Say whether a log fits a model.

    Values that no feature has, steps that the model cannot make, states that were never visited. Ends with code 1
    if something in the log is impossible or unknown.
    """
    from missmdp.cli.models import load_mdp
    from missmdp.data.validation import validate

    mdp, _ = load_mdp(model)
    report = validate(data[0] if len(data) == 1 else list(data), mdp, **table_arguments(table))
    click.echo(as_typed(report.describe()))
    sys.exit(0 if report.ok else 1)
