"""What `missmdp tune-ppo` prints."""

from __future__ import annotations

from rich.markup import escape

from missmdp.cli.printing import make_console, make_table
from missmdp.evaluation.statistics import decimals, signed
from missmdp.experiments.ppo_search import PPOSearch
from missmdp.experiments.trial_folder import Trial

__all__ = ["print_search", "print_trial"]


def print_trial(trial: Trial, trials: int, *, known: bool) -> None:
    """Print a trial when it is finished, or that it was before."""
    took = "was there" if known else f"{trial.steps:,} steps in {trial.seconds:.1f} s"
    make_console().print(f"trial {trial.number} (of 0 to {trials - 1}): {_estimate(trial)}, {took}")


def print_search(search: PPOSearch) -> None:
    """Print all trials, the best first, and what the best is worth."""
    console = make_console()
    table = make_table(
        "trial",
        "value",
        "s.e.",
        "layers",
        "units",
        "clip",
        "entropy",
        "KL",
        "actor",
        "critic",
        "batch",
        "epochs",
    )
    for column in table.columns:
        column.justify = "right"
    for trial in search.trials:
        settings, places = trial.settings, decimals(trial.stderr)
        table.add_row(
            str(trial.number),
            signed(trial.value, places),
            f"{trial.stderr:.{places}f}",
            str(settings.layers),
            str(settings.units),
            f"{settings.clip_range:.2f}",
            f"{settings.entropy:.1e}",
            f"{settings.target_kl:.3f}",
            f"{settings.actor_learning_rate:.1e}",
            f"{settings.critic_learning_rate:.1e}",
            str(settings.minibatch),
            str(settings.epochs),
        )
    console.print()
    console.print(table)
    console.print()
    console.print(escape(search.describe()))
    for name in ("best.json", "best.mmpolicy", "trials.csv"):
        console.print(escape(f"Written to {search.folder / name}"))


def _estimate(trial: Trial) -> str:
    places = decimals(trial.stderr)
    return f"{signed(trial.value, places)} ± {trial.stderr:.{places}f}"
