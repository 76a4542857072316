"""The commands that make policies: `solve` and `tune-ppo`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import echo
from missmdp.cli.options import (
    MODEL_HELP,
    POMDP_HELP,
    Number,
    Whole,
    fully_observed_option,
    horizon_option,
    quiet_option,
    seed_option,
    threads_option,
)
from missmdp.files import held_folder

if TYPE_CHECKING:
    from missmdp.plan.solving import SolveResult

__all__ = ["solve", "tune_ppo"]

SOLVE_HELP = f"""\b
Examples:
  missmdp solve icu-smar --timeout 60 -o icu.mmpolicy
  missmdp solve learned.mmdp --precision 0.01 --trace trace.csv --plot bounds.svg
  missmdp solve Tiger.pomdp --quiet

{POMDP_HELP}
"""

_POLICIES = (".mmpolicy", ".policyx")
_FILE = click.Path(path_type=Path)


@click.command(epilog=SOLVE_HELP)
@click.argument("model")
@click.option(
    "--precision",
    type=Number(min=0.0),
    default=1e-3,
    show_default=True,
    help="Stop when (upper − lower)/|lower| is at most this.",
)
@click.option(
    "--absolute-precision",
    type=Number(min=0.0),
    help="Also stop when upper − lower is at most this.",
)
@click.option(
    "--timeout",
    type=Number(min=0.0),
    metavar="SECONDS",
    help="Stop after this time.  [default: no limit]",
)
@click.option(
    "--memory",
    type=Number(min=0.0),
    metavar="MB",
    help="Stop before using more memory.  [default: three quarters of the machine's]",
)
@click.option("--max-trials", type=Whole(min=0), help="Stop after this many rounds.")
@click.option(
    "--observe-initial/--act-first",
    default=None,
    help="Whether an observation comes before the first action.  [default: yes for miss-MDPs, no for .pomdp and "
    ".pomdpx files]",
)
@seed_option("Seed for sampling beliefs and breaking ties.")
@threads_option
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=_FILE,
    help="An .mmpolicy file (the policy with its model) or a .policyx file (for other tools); repeat for more.",
)
@click.option("--trace", type=_FILE, metavar="CSV", help="Also write the bounds over time to this .csv file.")
@click.option(
    "--plot",
    type=_FILE,
    metavar="PICTURE",
    help="Also draw the bounds over time to this .svg, .png or .pdf file.",
)
@quiet_option("Print one line and no progress.")
def solve(
    model: str,
    outputs: tuple[Path, ...],
    trace: Path | None,
    plot: Path | None,
    quiet: bool,
    **limits: Any,
) -> None:
    """Find a policy for a model, with bounds on its value.

    The policy is worth at least the lower bound, and no policy is worth more than the upper bound. The search stops
    when the two are close enough, at a limit, or at Ctrl-C, always with the best policy so far and valid bounds. A
    second Ctrl-C stops at once, without a result.
    """
    from missmdp.cli.files import acts_first, check_outputs, load_model_or_pomdp
    from missmdp.cli.printing_results import print_problem, print_result
    from missmdp.plan.sarsop.solver import Sarsop

    for path in outputs:
        if path.suffix.lower() not in _POLICIES:
            raise click.UsageError(f"{path}: a policy's name must end in {' or '.join(_POLICIES)}")
    check_outputs(path for path in (*outputs, trace, plot) if path is not None)
    files = _files(outputs, trace, plot)
    solver = Sarsop(**limits, progress=False if quiet else None)
    loaded = load_model_or_pomdp(model)
    if not quiet:
        print_problem(loaded, model, observe_initial=solver.observe_initial)
    if acts_first(model, loaded) and solver.observe_initial is None:
        echo(
            "Note: this file acts first. It is solved feature by feature, and the policy acts after a first "
            "observation, which is worth something; --act-first does without it, and lists all that can be seen",
            err=True,
        )
    result = solver.solve(loaded)
    try:
        if quiet:
            echo(str(result))
        else:
            print_result(result)
    finally:
        # Also if whoever reads what is printed has gone: the search is not to be lost.
        _write_all(result, model, files, quiet=quiet)


def _files(outputs: Sequence[Path], trace: Path | None, plot: Path | None) -> dict[Path, str]:
    """Return what goes where."""
    from missmdp.model.picture import check_picture_name

    files = {path: path.suffix.lower() for path in outputs}
    if trace is not None:
        if trace.suffix.lower() != ".csv":
            raise click.UsageError(f"{trace}: a trace's name must end in .csv")
        files[trace] = "trace"
    if plot is not None:
        check_picture_name(plot)
        files[plot] = "plot"
    return files


def _write_all(result: SolveResult, model: str, files: dict[Path, str], *, quiet: bool) -> None:
    """Write all files that can be written, and raise if some cannot."""
    from missmdp.cli.files import write_all
    from missmdp.interop.pomdpx.policyx import write_policyx

    writers: dict[str, Callable[[Path], object]] = {
        ".mmpolicy": result.policy.save,
        ".policyx": lambda path: write_policyx(result.policy, path),
        "trace": result.trace.to_csv,
        "plot": lambda path: result.plot(path, title=f"{model}: bounds over time"),
    }
    write_all({path: writers[kind] for path, kind in files.items()}, quiet=quiet)


TUNE_HELP = f"""\b
Examples:
  missmdp tune-ppo icu-smar -o tuned
  missmdp tune-ppo icu-smar -o tuned-memory --memory --trials 5
  missmdp evaluate icu-smar --policy optimal --policy ppo=tuned/best.mmpolicy
  missmdp evaluate learned.mmdp --policy ppo --ppo-settings tuned/best.json

{MODEL_HELP}
"""


@click.command("tune-ppo", epilog=TUNE_HELP)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where trials are stored; an existing search is resumed.",
)
@click.option("--trials", type=Whole(min=1), default=20, show_default=True, help="Number of trials.")
@click.option(
    "--steps", type=Whole(min=1), default=1_000_000, show_default=True, help="Training steps per trial."
)
@click.option("--memory", is_flag=True, help="Let the network see the last observations and actions.")
@seed_option()
@click.option(
    "--episodes",
    type=Whole(min=2),
    default=2000,
    show_default=True,
    help="Episodes to evaluate each trial in, the same for all.",
)
@horizon_option
@fully_observed_option
@quiet_option()
def tune_ppo(
    model: str,
    folder: Path,
    trials: int,
    steps: int,
    memory: bool,
    seed: int,
    episodes: int,
    horizon: int | None,
    fully_observed: bool,
    quiet: bool,
) -> None:
    """Search for good PPO hyperparameters at random, as in the paper.

    Every finished trial is stored in FOLDER. Running the command again resumes the search, whatever ended it, and a
    larger --trials extends it. At the end FOLDER contains the best policy (best.mmpolicy), its hyperparameters
    (best.json) and a table of all trials (trials.csv).
    """
    from missmdp.cli.files import load_model
    from missmdp.cli.printing_results import print_problem, print_search, print_trial
    from missmdp.experiments.baselines import check_baseline
    from missmdp.experiments.ppo_search import search_ppo
    from missmdp.model.missmdp import fully_observed_model

    with held_folder(folder):
        loaded, shown = load_model(model), model
        if fully_observed:
            loaded, shown = fully_observed_model(loaded), f"{model}, fully observed"
        check_baseline("ppo", loaded)
        if not quiet:
            print_problem(loaded, shown, observe_initial=None)
        search = search_ppo(
            loaded,
            folder,
            trials,
            steps,
            memory,
            seed,
            episodes,
            progress=False if quiet else None,
            horizon=horizon,
            report=None if quiet else lambda trial, known: print_trial(trial, trials, known=known),
        )
    if quiet:
        echo(str(search))
    else:
        print_search(search)
