"""What `missmdp tune-ppo` prints."""

from __future__ import annotations

from missmdp.cli.columns import Column, print_columns, print_sentence
from missmdp.cli.printing import make_console
from missmdp.experiments.ppo_search import PPOSearch
from missmdp.experiments.trial_folder import Trial
from missmdp.words import decimals, signed

__all__ = ["print_search", "print_trial"]


def print_trial(trial: Trial, trials: int, *, known: bool) -> None:
    """Print a trial when it is finished, or that it was before."""
    took = "finished before" if known else f"{trial.steps:,} steps in {trial.seconds:.1f} s"
    make_console().print(f"trial {trial.number} of {trials}: {' ± '.join(_figures(trial))}, {took}")


def print_search(search: PPOSearch) -> None:
    """Print all trials, the best first, and what the best is worth."""
    columns: list[Column] = [[title] for title in _TITLES]
    for trial in search.trials:
        for column, cell in zip(columns, _cells(trial), strict=True):
            column.append(cell)
    console = make_console()
    console.print()
    print_columns(columns)
    console.print()
    for sentence in search.describe().splitlines():
        print_sentence(sentence)
    for name in ("best.json", "best.mmpolicy", "trials.csv"):
        print_sentence(f"Written to {search.folder / name}")


_TITLES = (
    "trial",
    "value",
    "s.e.",
    "layers",
    "clip",
    "entropy",
    "KL",
    "actor",
    "critic",
    "batch",
    "epochs",
)


def _cells(trial: Trial) -> tuple[str, ...]:
    settings = trial.settings
    return (
        str(trial.number),
        *_figures(trial),
        f"{settings.layers}×{settings.units}",
        f"{settings.clip_range:.2f}",
        _small(settings.entropy),
        _small(settings.target_kl or 0.0),
        _small(settings.actor_learning_rate),
        _small(settings.critic_learning_rate),
        str(settings.minibatch),
        str(settings.epochs),
    )


def _figures(trial: Trial) -> tuple[str, str]:
    places = decimals(trial.stderr)
    return signed(trial.value, places), f"{trial.stderr:.{places}f}"


def _small(number: float) -> str:
    """Return a small number with two digits, such as 7.9e-5."""
    digits, _, exponent = f"{number:.1e}".partition("e")
    return f"{digits}e{int(exponent)}"
