"""The command `diagnose`: why values go missing in a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.options import (
    CONFIDENCE,
    DATA_HELP,
    FILE,
    MDP_HELP,
    Whole,
    features_option,
    seed_option,
    table_arguments,
    table_options,
    threads_option,
)

if TYPE_CHECKING:
    from missmdp.learn.diagnosis.result import Diagnosis

__all__ = ["diagnose"]

DIAGNOSE_HELP = f"""\b
Examples:
  missmdp diagnose icu-mnar-unid log.parquet
  missmdp diagnose ward/ "visits/*.csv" --episode patient --step hour -o why.json -o why.svg
  missmdp diagnose ward/ log.csv --snapshots
  missmdp diagnose log.csv                           # no model: the dynamics are learned too
  missmdp diagnose ward/ log.csv -o why.dot && missmdp learn ward/ log.csv --learner em --graph why.dot

{MDP_HELP} Without MODEL, the dynamics are learned from the log, and fitted along with every reason for gaps.
{DATA_HELP}
"""

_PICTURES = (".svg", ".png", ".pdf")
_DOT = (".dot", ".gv")


@click.command(epilog=DIAGNOSE_HELP)
@click.argument("model_and_data", nargs=-1, required=True, metavar="[MODEL] DATA...")
@click.option(
    "--level",
    type=CONFIDENCE,
    default=0.01,
    show_default=True,
    help="Significance level of the tests.",
)
@click.option(
    "--draws",
    type=Whole(min=0),
    default=100,
    show_default=True,
    help="With MODEL: number of bootstrap samples for the intervals; 0 for no intervals.",
)
@seed_option("Seed of the bootstrap.")
@threads_option
@click.option(
    "--snapshots",
    is_flag=True,
    help="Use single observations only, without the dynamics.",
)
@click.option(
    "--dynamics/--no-dynamics",
    default=True,
    show_default=True,
    help="Also check whether the dynamics of MODEL fit the log.",
)
@features_option
@table_options
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    help="A .json file for everything, or a .dot, .svg, .png or .pdf file for the m-graph; repeat for more.",
)
def diagnose(
    model_and_data: tuple[str, ...],
    features: tuple[str, ...] | None,
    level: float,
    draws: int,
    seed: int,
    threads: int | None,
    snapshots: bool,
    dynamics: bool,
    outputs: tuple[Path, ...],
    **table: Any,
) -> None:
    """Explain why values go missing in a log.

    Prints the type of missingness (MCAR, simple MAR, MAR or MNAR), what drives it and how strongly, whether values hide
    themselves, and which learner to use. The dynamics of MODEL show what the missing values could have been; how values
    go missing in MODEL is ignored. If the log contradicts the dynamics, that comes first.
    """
    from missmdp.cli.files import check_outputs, is_log, load_mdp, write_all
    from missmdp.cli.printing_results import print_diagnosis
    from missmdp.data.dataset import Dataset
    from missmdp.learn.diagnosis.diagnose import diagnose

    for output in outputs:
        if output.suffix.lower() not in (".json", *_DOT, *_PICTURES):
            raise click.UsageError(
                f"{output}: the name must end in .json, or in .dot, .svg, .png or .pdf for the m-graph"
            )
    model = None if is_log(model_and_data[0]) else model_and_data[0]
    data = model_and_data if model is None else model_and_data[1:]
    if not data:
        raise click.UsageError("Missing argument 'DATA...'.")
    if model is None and snapshots:
        raise click.UsageError("--snapshots goes with a MODEL, of which it uses the features")
    if model is not None and features is not None:
        raise click.UsageError("--features goes with a log alone; a MODEL has its own features")
    check_outputs(outputs, model=model)
    source = data[0] if len(data) == 1 else list(data)
    mdp = None if model is None else load_mdp(model)[0]
    log = Dataset.from_table(source, mdp, features=features, **table_arguments(table))
    found = diagnose(
        log,
        None if snapshots else mdp,
        level=level,
        draws=draws,
        seed=seed,
        dynamics=dynamics,
        threads=threads,
    )
    print_diagnosis(found, log.notes)
    write_all(dict.fromkeys(outputs, lambda output: _write(found, output)))


def _write(found: Diagnosis, output: Path) -> None:
    import json

    from missmdp.files import write_atomically

    suffix = output.suffix.lower()
    if suffix == ".json":
        write_atomically(output, (json.dumps(found.as_dict(), indent=2, ensure_ascii=False) + "\n").encode())
    elif suffix in _DOT:
        write_atomically(output, found.graph.to_dot().encode())
    else:
        found.graph.draw(output, title="What drives missingness")
