"""Where goes what a command has made."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from missmdp.data.dataset import Dataset

__all__ = ["STANDARD_OUTPUT", "check_outputs", "check_picture", "check_writable", "dataset_writer"]

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


def check_picture(path: Path) -> None:
    """Raise unless a picture can be drawn there; call it before long work."""
    from missmdp.model.picture import check_picture_name

    check_picture_name(path)
    check_writable(path)


def check_outputs(outputs: Iterable[Path], *, model: str | None = None) -> None:
    """Raise `click.UsageError` unless files can be written, each is given once, and none is what a model is read from.

    Call it before long work.
    """
    from missmdp.cli.models import files_of_model

    read = set[Path]() if model is None else files_of_model(model)
    seen: set[Path] = set()
    for path in outputs:
        if path.resolve() in seen:
            raise click.UsageError(f"{path} is given twice; each result needs a file of its own")
        if path.resolve() in read:
            raise click.UsageError(f"{path}: would be written over the model that is read")
        seen.add(path.resolve())
        check_writable(path)


def dataset_writer(output: str | None) -> Callable[[Dataset], None]:
    """Return what writes a dataset to a file by its ending, or prints it; call it before long work.

    Raises
    ------
    click.UsageError
        If there is no output, its ending says nothing, or it cannot be written.
    """
    if not output:
        raise click.UsageError("say where the log goes: -o log.parquet, -o log.csv, or -o - to print CSV")
    if output == STANDARD_OUTPUT:
        return _print_csv
    if Path(output).is_dir():
        raise click.UsageError(
            f"{output} is a folder; give a file in it, such as -o {Path(output) / 'log.parquet'}"
        )
    suffix = Path(output).suffix.lower()
    if suffix not in (".parquet", ".pq", ".csv"):
        raise click.UsageError(f"{output}: a log's name must end in .parquet or .csv")
    check_writable(Path(output))
    return lambda dataset: dataset.to_csv(output) if suffix == ".csv" else dataset.to_parquet(output)


def _print_csv(dataset: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        dataset.to_csv(path)
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
