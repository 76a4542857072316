"""The options of `missmdp run`, and what cannot be asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.options import Number, Whole
from missmdp.cli.wording import as_typed
from missmdp.errors import MissMDPError

if TYPE_CHECKING:
    from missmdp.experiments.run.settings import RunSettings

__all__ = ["check_usage", "run_options", "run_settings"]

_OPTIONS = (
    click.option(
        "-o",
        "--output",
        "folder",
        type=click.Path(path_type=Path),
        default="missmdp-run",
        show_default=True,
        metavar="FOLDER",
        help="Where everything goes: empty, or with this very run in it.",
    ),
    click.option(
        "--overwrite", is_flag=True, help="Also where FOLDER holds another run, which is lost then."
    ),
    click.option(
        "--steps", type=Whole(min=1), help="Without DATA: observations to simulate.  [default: 10,000]"
    ),
    click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="For all that is random."),
    click.option(
        "--unknown-truth",
        is_flag=True,
        help="Take no notice of how values go missing in MODEL, as if only its MDP were known.",
    ),
    click.option(
        "--learner",
        "learners",
        multiple=True,
        type=click.Choice(["amcar", "asmar", "aimi", "em", "auto"], case_sensitive=False),
        help="amcar: by pure chance, whatever the state. asmar: depends on always-observed features. aimi: depends "
        "on other features, each indicator on its own. em: depends on anything, also on the value itself, as far as "
        "the dynamics give it away; without a guarantee. auto: the one that the diagnosis recommends, alone. Repeat.  "
        "[default: all but auto]",
    ),
    click.option(
        "--confidence",
        type=Number(0.0, 1.0, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="Of bounds and intervals.",
    ),
    click.option(
        "--behaviour",
        type=click.Choice(["blind", "adaptive"]),
        help="Whether whoever acted never reacted to what was observed, or may have; by default what the file says "
        "of itself, else adaptive.",
    ),
    click.option(
        "--smoothing", type=Number(0.0, 1e9), default=1e-3, show_default=True, help="Added to every count."
    ),
    click.option(
        "--unseen",
        type=click.Choice(["uniform", "pooled"]),
        default="uniform",
        show_default=True,
        help="What groups of states without data get.",
    ),
    click.option("--always", multiple=True, metavar="FEATURE", help="Known to be always observed; repeat."),
    click.option(
        "--patterns",
        type=click.Choice(["all", "seen"]),
        default="all",
        show_default=True,
        help="amcar, asmar: which patterns to learn.",
    ),
    click.option(
        "--block", "blocks", multiple=True, metavar="A,B", help="aimi, em: go missing together; repeat."
    ),
    click.option(
        "--diagnosis/--no-diagnosis",
        default=True,
        show_default=True,
        help="Look for why values are missing before learning.",
    ),
    click.option(
        "--folds",
        type=Whole(min=2),
        default=5,
        show_default=True,
        help="Parts of the log that are held out in turn, to compare learners.",
    ),
    click.option(
        "--precision",
        type=Number(min=0.0),
        default=0.01,
        show_default=True,
        help="Solve to this relative gap between bounds.",
    ),
    click.option(
        "--timeout",
        type=Number(min=0.0),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="For solving, of each model; there are up to six.",
    ),
    click.option("--max-trials", type=Whole(min=0), help="Rounds of solving, of each model."),
    click.option(
        "--episodes",
        type=Whole(min=2),
        default=2000,
        show_default=True,
        help="Of every policy, to find what it is worth.",
    ),
    click.option(
        "--sensitivity-episodes",
        type=Whole(min=0),
        default=300,
        show_default=True,
        help="The same in each of the changed models that show how much depends on the model; 0 for none.",
    ),
    click.option(
        "--certificate/--no-certificate",
        default=True,
        show_default=True,
        help="Say how far from optimal the policy can be in truth.",
    ),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a run is done."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_usage(model: str, data: tuple[str, ...], folder: Path, options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together."""
    if data and options["steps"] is not None:
        raise click.UsageError("--steps is for simulating, and there are DATA; leave one of the two out")
    here = folder.resolve()
    for name in data:
        if Path(name).resolve().is_relative_to(here):
            raise click.UsageError(f"{name}: DATA must not lie in {folder}, which is written to")
    if Path(model).exists() and here in Path(model).resolve().parents:
        raise click.UsageError(f"{model}: MODEL must not lie in {folder}, which is written to")


def run_settings(options: dict[str, Any]) -> RunSettings:
    """Return how the run is done.

    Raises
    ------
    click.UsageError
        If it cannot be done so.
    """
    from missmdp.experiments.run.settings import RunSettings

    same = (
        "unknown_truth",
        "confidence",
        "behaviour",
        "smoothing",
        "unseen",
        "patterns",
        "diagnosis",
        "folds",
        "precision",
        "timeout",
        "max_trials",
        "episodes",
        "sensitivity_episodes",
        "certificate",
        "seed",
    )
    given: dict[str, Any] = {name: options[name] for name in same}
    if options["learners"]:
        given["learners"] = tuple(dict.fromkeys(options["learners"]))
    if options["steps"] is not None:
        given["steps"] = options["steps"]
    try:
        return RunSettings(**given, always_observed=options["always"], blocks=_blocks(options["blocks"]))
    except MissMDPError as error:
        raise click.UsageError(as_typed(str(error))) from None


def _blocks(given: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    blocks = tuple(tuple(name.strip() for name in block.split(",")) for block in given)
    for typed, block in zip(given, blocks, strict=True):
        if len(block) < 2:
            raise click.UsageError(f"--block {typed}: a block is two features or more, as in --block x,y")
    return blocks
