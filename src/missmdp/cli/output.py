"""Where goes what a command has made."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from missmdp.data.dataset import Dataset

__all__ = ["STANDARD_OUTPUT", "check_writable", "dataset_writer"]

STANDARD_OUTPUT = "-"


def check_writable(path: Path) -> None:
    """Raise `click.UsageError` unless a file can be written there, by trying; call it before long work.

    Folders that do not exist yet are made when something is written.
    """
    try:
        if path.is_dir():
            raise click.UsageError(f"{path} is a folder; give the name of a file")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}."):
            pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"{path}: cannot be written ({reason})") from None


def dataset_writer(output: str | None) -> Callable[[Dataset], None]:
    """Return what writes a dataset to a file by its ending, or prints it; call it before long work.

    Raises
    ------
    click.UsageError
        If there is no output, or its ending says nothing.
    """
    if output is None:
        raise click.UsageError("say where the log goes: -o log.parquet, -o log.csv, or -o - to print CSV")
    if output == STANDARD_OUTPUT:
        return _print_csv
    if Path(output).is_dir():
        raise click.UsageError(
            f"{output} is a folder; give a file in it, such as -o {Path(output) / 'log.parquet'}"
        )
    match Path(output).suffix.lower():
        case ".parquet" | ".pq":
            return lambda dataset: dataset.to_parquet(output)
        case ".csv":
            return lambda dataset: dataset.to_csv(output)
        case _:
            raise click.UsageError(f"{output}: a log's name must end in .parquet or .csv")


def _print_csv(dataset: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        dataset.to_csv(path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
