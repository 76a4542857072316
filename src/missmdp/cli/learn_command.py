"""The command `missmdp learn`."""

from __future__ import annotations

import glob
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import AnswerIsNo
from missmdp.cli.options import DATA_HELP, MDP_HELP, Number, Whole, table_arguments, table_options

if TYPE_CHECKING:
    from missmdp.learn.base import MissingnessEstimator

__all__ = ["learn"]

EPILOG = f"""\b
Examples:
  missmdp learn icu-smar log.parquet
  missmdp learn ward/ "visits/*.csv" --learner amcar --episode patient --step hour -o learned.mmdp
  missmdp learn predator-smar log.csv --learner aimi --block x,y --assume smar
  missmdp learn models.py:ward log.csv --bins temperature=36.5,37.5,38.5 -o table.csv

{MDP_HELP} {DATA_HELP}
"""

_LEARNERS = ("amcar", "asmar", "aimi")
# Spelled out, since importing them would load numpy for every command.
_METHODS = ("auto", "okamoto", "clopper-pearson", "weissman", "anytime")
_SUFFIXES = (".mmdp", ".csv", ".parquet", ".pq")


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--learner",
    type=click.Choice(_LEARNERS, case_sensitive=False),
    default="asmar",
    show_default=True,
    help="amcar: by pure chance, whatever the state. asmar: depends on always-observed features. aimi: depends "
    "on other features, each indicator on its own.",
)
@click.option(
    "--confidence",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="That all intervals hold.",
)
@click.option(
    "--method", type=click.Choice(_METHODS), default="auto", show_default=True, help="Of the bounds."
)
@click.option(
    "--behaviour",
    type=click.Choice(["blind", "adaptive"]),
    help="Whether whoever acted never reacted to what was observed, or may have; by default what the file says "
    "of itself, else adaptive.",
)
@click.option(
    "--smoothing", type=Number(0.0, 1e9), default=1e-3, show_default=True, help="Added to every count."
)
@click.option(
    "--unseen",
    type=click.Choice(["uniform", "pooled"]),
    default="uniform",
    show_default=True,
    help="What groups of states without data get.",
)
@click.option(
    "--always", "always", multiple=True, metavar="FEATURE", help="Known to be always observed; repeat."
)
@click.option("--ignore", multiple=True, metavar="FEATURE", help="asmar: known not to matter; repeat.")
@click.option(
    "--patterns",
    type=click.Choice(["all", "seen"]),
    help="amcar, asmar: which patterns to learn.  [default: all]",
)
@click.option("--assume", type=click.Choice(["smar", "mcar"]), help="aimi: indicators depend on less.")
@click.option("--graph", metavar="FILE", help="aimi: an m-graph in DOT, or `model` for the model's own.")
@click.option("--block", "blocks", multiple=True, metavar="A,B", help="aimi: go missing together; repeat.")
@table_options
@click.option(
    "--validate/--no-validate",
    default=True,
    show_default=True,
    help="Hold every step against the model. Without it files are counted but never loaded.",
)
@click.option("--strict", is_flag=True, help="Stop if the log does not fit the model, rather than say so.")
@click.option("--most", type=Whole(min=0), default=20, show_default=True, help="Groups to list.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="An .mmdp file for the model with what was learned, or .csv or .parquet for the table; repeat.",
)
def learn(model: str, data: tuple[str, ...], outputs: tuple[Path, ...], **options: Any) -> None:
    """Learn from a log how values go missing, and how sure that is.

    Prints the learned probabilities with intervals that hold all at once with the confidence given, if what the
    learner assumes is true. Where the data speak against that, it says so.
    """
    from missmdp.cli.models import load_mdp
    from missmdp.cli.output import check_outputs
    from missmdp.cli.printing_learned import print_learned
    from missmdp.data.counts import ObservationCounts
    from missmdp.data.dataset import Dataset
    from missmdp.errors import AssumptionWarning
    from missmdp.learn.table import write_learned
    from missmdp.model.missmdp import MissMDP

    for output in outputs:
        if output.suffix.lower() not in _SUFFIXES:
            raise click.UsageError(f"{output}: what was learned goes to an .mmdp, .csv or .parquet file")
        if output.resolve() in _inputs(data):
            raise click.UsageError(f"{output}: would be written over the log that is read")
    check_outputs(outputs, model=model)
    if options["strict"] and not options["validate"]:
        raise click.UsageError("--strict goes with --validate, not with --no-validate")
    mdp, known = load_mdp(model)
    learner = _learner(options, known)
    source = data[0] if len(data) == 1 else list(data)
    table = table_arguments(options)
    if options["validate"]:
        from missmdp.cli.printing_learned import print_report
        from missmdp.data.validation.validate import validate

        log = Dataset.from_table(source, mdp, **table)
        report = validate(log, mdp)
        print_report(report, log.notes)
        if options["strict"] and not report.ok:
            raise AnswerIsNo("the log does not fit the model, and --strict says to stop")
    else:
        log = ObservationCounts.from_table(source, mdp, **table)
    with warnings.catch_warnings():
        # Printed below, as sentences.
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(log)
    bound = learner.bound(options["confidence"], options["method"], behaviour=options["behaviour"])
    print_learned(learner, bound, known, most=options["most"])
    for output in outputs:
        if output.suffix.lower() == ".mmdp":
            name = known.name if known is not None else None
            MissMDP(mdp, learner.missingness_, name=name).save(output)
        else:
            write_learned(bound, mdp.space.features.names, output)
        click.echo(f"Written to {output}")


def _inputs(data: tuple[str, ...]) -> set[Path]:
    """Return the files that DATA stands for."""
    found: set[Path] = set()
    for name in data:
        path = Path(name)
        inside = path.rglob("*") if path.is_dir() else map(Path, glob.glob(name, recursive=True))
        found |= {file.resolve() for file in (path, *inside)}
    return found


def _learner(options: dict[str, Any], known: Any) -> MissingnessEstimator:
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR

    common: dict[str, Any] = {
        "smoothing": options["smoothing"],
        "unseen": options["unseen"],
        "always_observed": options["always"] or None,
    }
    kind = options["learner"].lower()
    for name, kinds in {
        "ignore": ("asmar",),
        "patterns": ("amcar", "asmar"),
        "assume": ("aimi",),
        "graph": ("aimi",),
        "blocks": ("aimi",),
    }.items():
        if options[name] and kind not in kinds:
            flag = {"blocks": "block"}.get(name, name)
            raise click.UsageError(f"--{flag} is for --learner {' or '.join(kinds)}")
    match kind:
        case "amcar":
            return AMCAR(**common, patterns=options["patterns"] or "all")
        case "asmar":
            return AsMAR(**common, ignore=options["ignore"], patterns=options["patterns"] or "all")
        case _:
            blocks = [[name.strip() for name in block.split(",")] for block in options["blocks"]]
            for given, block in zip(options["blocks"], blocks, strict=True):
                if len(block) < 2:
                    raise click.UsageError(
                        f"--block {given}: a block is two features or more, as in --block x,y"
                    )
            return AIMI(
                **common,
                assume=options["assume"],
                blocks=blocks or (),
                graph=_graph(options["graph"], known),
            )


def _graph(graph: str | None, known: Any) -> Any:
    from missmdp.model.mgraph import MissingnessGraph

    if graph is None:
        return None
    if graph != "model":
        return MissingnessGraph.from_dot(Path(graph))
    if known is None:
        raise click.UsageError("--graph model: this model does not say how values go missing")
    return known.mgraph()
