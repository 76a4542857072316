"""The command `report`: the page of a run, made again from what is stored."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["report"]

EPILOG = """\b
Examples:
  missmdp run icu-smar -o ward         # writes ward/report.html, among others
  missmdp report ward                  # makes it again, from ward/run.json alone
  missmdp report results               # a folder of `missmdp reproduce`
"""


@click.command(epilog=EPILOG)
@click.argument(
    "folder", metavar="RUN", type=click.Path(exists=True, file_okay=False, readable=True, path_type=Path)
)
def report(folder: Path) -> None:
    """Write the report of a run: one HTML page that needs no network.

    RUN is a folder that `missmdp run` or `missmdp reproduce` wrote. Nothing is computed; the same folder gives the same
    page.
    """
    from missmdp.experiments.report.run_file import RUN_FILE
    from missmdp.experiments.report.write import write_report

    path: Path
    if (folder / RUN_FILE).exists():
        path = write_report(folder)
    elif (folder / "config.toml").exists() and (folder / "tables").is_dir():
        from missmdp.experiments.reproduce.page import (  # pyright: ignore[reportMissingImports]
            write_page,  # pyright: ignore[reportUnknownVariableType]
        )

        path = write_page(folder)
    else:
        raise click.UsageError(
            f"{folder} is no folder of `missmdp run` (it has no {RUN_FILE}), nor a finished one of "
            "`missmdp reproduce` (config.toml and tables)"
        )
    click.echo(str(path))
