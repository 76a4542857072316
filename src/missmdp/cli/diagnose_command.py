"""The command `missmdp diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.options import DATA_HELP, MDP_HELP, Number, Whole, table_arguments, table_options

if TYPE_CHECKING:
    from missmdp.learn.diagnosis.result import Diagnosis

__all__ = ["diagnose"]

EPILOG = f"""\b
Examples:
  missmdp diagnose icu-mnar-unid log.parquet
  missmdp diagnose ward/ "visits/*.csv" --episode patient --step hour -o why.json -o why.svg
  missmdp diagnose ward/ log.csv --snapshots
  missmdp diagnose ward/ log.csv -o why.dot && missmdp learn ward/ log.csv --learner em --graph why.dot

{MDP_HELP} {DATA_HELP}
"""

_PICTURES = (".svg", ".png", ".pdf")
_DOT = (".dot", ".gv")


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--level",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Of the tests.",
)
@click.option(
    "--draws",
    type=Whole(min=0),
    default=100,
    show_default=True,
    help="Logs to draw for the bootstrap intervals; 0 for no intervals.",
)
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Decides what is drawn.")
@click.option("--threads", type=Whole(min=1), help="By default one per core; the result is the same.")
@click.option(
    "--snapshots",
    is_flag=True,
    help="Look at single observations only: what can be said without the dynamics.",
)
@table_options
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A .json file for all of it, .dot, .svg, .png or .pdf for the m-graph; repeat.",
)
def diagnose(
    model: str,
    data: tuple[str, ...],
    level: float,
    draws: int,
    seed: int,
    threads: int | None,
    snapshots: bool,
    outputs: tuple[Path, ...],
    **table: Any,
) -> None:
    """Say why values go missing in a log.

    Which type it is (MCAR, simple MAR, MAR, MNAR), what drives it and how much, whether values go missing because of
    what they are, and which learner suits. The model's dynamics tell what was missing; how the model says that
    values go missing is not looked at.
    """
    from missmdp.cli.models import load_mdp
    from missmdp.cli.output import check_outputs
    from missmdp.cli.printing_diagnosis import print_diagnosis
    from missmdp.data.dataset import Dataset
    from missmdp.learn.diagnosis.diagnose import diagnose

    for output in outputs:
        if output.suffix.lower() not in (".json", *_DOT, *_PICTURES):
            raise click.UsageError(
                f"{output}: a diagnosis goes to a .json file, its m-graph to a .dot, .svg, .png or .pdf file"
            )
    check_outputs(outputs, model=model)
    mdp, _ = load_mdp(model)
    log = Dataset.from_table(data[0] if len(data) == 1 else list(data), mdp, **table_arguments(table))
    found = diagnose(log, None if snapshots else mdp, level=level, draws=draws, seed=seed, threads=threads)
    print_diagnosis(found, log.notes)
    for output in outputs:
        _write(found, output)
        click.echo(f"Written to {output}")


def _write(found: Diagnosis, output: Path) -> None:
    import json

    from missmdp.model.archive import write_atomically

    suffix = output.suffix.lower()
    if suffix == ".json":
        write_atomically(output, (json.dumps(found.as_dict(), indent=2, ensure_ascii=False) + "\n").encode())
    elif suffix in _DOT:
        write_atomically(output, found.graph.to_dot().encode())
    else:
        found.graph.draw(output, title="What drives missingness")
