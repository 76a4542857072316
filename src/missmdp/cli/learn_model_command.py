"""The command `learn-model`: the dynamics, and how values go missing, from a log alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from missmdp.cli.options import (
    DATA_HELP,
    FILE,
    Number,
    features_option,
    table_arguments,
    table_options,
    threads_option,
)

__all__ = ["learn_model"]

LEARN_MODEL_HELP = f"""\b
Examples:
  missmdp learn-model log.csv --reward reward --discount 0.95 -o ward.mmdp
  missmdp learn-model "visits/*.csv" --reward score --discount 0.97 --features wear,load -o plant.mmdp -o plant.svg
  missmdp learn-model log.csv --reward reward --discount 0.95 --caution 1 --fewest 5 -o careful.mmdp
  missmdp solve ward.mmdp -o ward.mmpolicy

{DATA_HELP} Where the columns are measurements, give --bins.
"""

_MISSINGNESS = ("auto", "mcar", "smar", "logistic", "saturated")
_PICTURES = (".svg", ".png", ".pdf")
_SUFFIXES = (".mmdp", ".txt", *_PICTURES)


@click.command("learn-model", epilog=LEARN_MODEL_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--reward", required=True, metavar="COLUMN", help="The column of rewards.")
@click.option(
    "--discount",
    required=True,
    type=Number(0.0, 1.0, max_open=True),
    help="How much a reward counts one step later.",
)
@features_option
@click.option(
    "--missingness",
    type=click.Choice(_MISSINGNESS),
    default="auto",
    show_default=True,
    help="What gaps may depend on; auto finds it in the log.",
)
@click.option(
    "--caution",
    type=Number(min=0.0),
    help="Write a model with less reward where little was seen: the dynamics may be off by this many standard "
    "deviations.  [default: write the model as learned]",
)
@click.option(
    "--fewest",
    type=Number(min=0.0),
    help="Write a model in which actions cost all that can be lost where they were tried less often than this.",
)
@threads_option
@table_options
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    help="An .mmdp file for the model, a .txt file for its description, or an .svg, .png or .pdf picture; repeat for "
    "more.",
)
def learn_model(
    data: tuple[str, ...],
    reward: str,
    discount: float,
    features: tuple[str, ...] | None,
    missingness: Any,
    caution: float | None,
    fewest: float | None,
    threads: int | None,
    outputs: tuple[Path, ...],
    **table: Any,
) -> None:
    """Learn a whole model from a log: the dynamics, the rewards, and how values go missing.

    Prints what the next value of each feature depends on, and what drives the gaps. It assumes that actions depended
    only on what was recorded. No guarantee covers learned dynamics; where the log hardly went, they are a guess (see
    --caution and --fewest).
    """
    from missmdp.cli.failures import echo
    from missmdp.cli.files import check_outputs, files_of_data, write_all
    from missmdp.data.dataset import Dataset
    from missmdp.errors import AssumptionWarning
    from missmdp.files import write_atomically
    from missmdp.learn.joint.estimator import JointEM

    for output in outputs:
        if output.suffix.lower() not in _SUFFIXES:
            raise click.UsageError(f"{output}: the name must end in .mmdp, .txt, .svg, .png or .pdf")
        if output.resolve() in files_of_data(data):
            raise click.UsageError(f"{output}: this would overwrite the log")
    check_outputs(outputs)
    source = data[0] if len(data) == 1 else list(data)
    log = Dataset.from_table(source, features=features, reward=reward, **table_arguments(table))
    for note in log.notes:
        echo(f"Note: {note}.")
    learner = JointEM(missingness, discount=discount, threads=threads)
    with warnings.catch_warnings():
        # They are part of the description.
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(log)
    words = learner.describe()
    echo(words)
    careful = caution is not None or fewest is not None
    model = learner.pessimistic_model(caution or 0.0, fewest=fewest or 0.0) if careful else learner.miss_mdp_

    def write(output: Path) -> object:
        match output.suffix.lower():
            case ".mmdp":
                return model.save(output)
            case ".txt":
                return write_atomically(output, f"{words}\n".encode())
            case _:
                return learner.draw(output)

    write_all(dict.fromkeys(outputs, write))
