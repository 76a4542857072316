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
    from missmdp.experiments.record.coding import RUN_FILE
    from missmdp.experiments.report.write import write_report
    from missmdp.experiments.reproduce.store import is_reproduction

    if (folder / RUN_FILE).exists():
        path = write_report(folder)
    elif is_reproduction(folder):
        from missmdp.experiments.reproduce.page import write_page

        path = write_page(folder)
    else:
        raise click.UsageError(
            f"{folder} is no folder of `missmdp run` (it has no {RUN_FILE}), nor of `missmdp reproduce` "
            "(it has no config.toml)"
        )
    click.echo(str(path))
