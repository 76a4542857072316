"""The command `plot`: the figures of a reproduction."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["plot"]

EPILOG = """\b
Examples:
  missmdp reproduce --profile smoke -o RUN
  missmdp plot RUN
  missmdp plot RUN --format pdf --format png -o paper/figures
"""
_FORMATS = ("svg", "png", "pdf")


@click.command(epilog=EPILOG)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("svg",),
    show_default=True,
    type=click.Choice(_FORMATS),
    help="Of the files; repeat for several.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where figures go; by default RUN/figures.",
)
def plot(run: Path, formats: tuple[str, ...], folder: Path | None) -> None:
    """Draw what `missmdp reproduce` has found in the folder RUN, also of a run that is not finished.

    Nothing is run: the figures show the cells that are stored. The same cells give the same files.
    """
    from missmdp.errors import MissMDPError
    from missmdp.experiments.reproduce.pictures import draw_figures
    from missmdp.experiments.reproduce.summary import summarise

    if folder is not None and folder.is_file():
        raise click.UsageError(f"{folder} is a file; figures need a folder")
    summary = summarise(run)
    paths = draw_figures(summary, [f".{ending}" for ending in formats], folder)
    done = f"{summary.finished:,} of {len(summary.cells):,} cells are finished"
    if not paths:
        raise MissMDPError(f"{run}: nothing to draw; {done}, none with total variation or normalised values")
    for path in paths:
        click.echo(str(path))
    if summary.finished < len(summary.cells):
        click.echo(f"{done}; the figures show these", err=True)
