"""The command `tune-ppo`: the paper's random search for PPO's hyperparameters."""

from __future__ import annotations

from pathlib import Path

import click

from missmdp.cli.options import Whole

__all__ = ["tune_ppo"]

EPILOG = """\b
Examples:
  missmdp tune-ppo icu-smar -o tuned
  missmdp tune-ppo icu-smar -o tuned-memory --memory --trials 5
  missmdp evaluate icu-smar --policy optimal --policy ppo=tuned/best.mmpolicy
  missmdp evaluate learned.mmdp --policy ppo --ppo-settings tuned/best.json

MODEL is a benchmark's name, an .mmdp file, or module:function.
"""


@click.command("tune-ppo", epilog=EPILOG)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where trials are kept; a folder of the same search is gone on with.",
)
@click.option("--trials", type=Whole(min=1), default=20, show_default=True)
@click.option("--steps", type=Whole(min=1), default=1_000_000, show_default=True, help="To train, per trial.")
@click.option("--memory", is_flag=True, help="The network sees the last observations and actions.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="For everything random.")
@click.option(
    "--episodes",
    type=Whole(min=2),
    default=2000,
    show_default=True,
    help="To evaluate each trial on, the same for all.",
)
@click.option("--horizon", type=Whole(min=1), help="The most decisions per episode.")
@click.option("--fully-observed", is_flag=True, help="In the model in which nothing goes missing.")
@click.option("-q", "--quiet", is_flag=True, help="Print one line in the end, and no progress.")
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
    """Train PPO with hyperparameters at random, as in the paper, and keep the best.

    Each finished trial is kept in FOLDER. Whatever ends the search, running it again goes on with it, and more trials
    extend fewer. In the end FOLDER has the best policy of all trials in it (best.mmpolicy), its hyperparameters
    (best.json) and a table of all trials (trials.csv).
    """
    from missmdp.cli.models import load_model
    from missmdp.cli.output import check_writable
    from missmdp.cli.printing_solved import print_problem
    from missmdp.cli.printing_trials import print_search, print_trial
    from missmdp.experiments.baselines import check_baseline
    from missmdp.experiments.ppo_search import search_ppo
    from missmdp.model.missmdp import fully_observed_model

    if folder.is_file():
        raise click.UsageError(f"{folder} is a file; a search needs a folder")
    check_writable(folder / "search.json")
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
        click.echo(str(search))
    else:
        print_search(search)
