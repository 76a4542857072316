"""The command `evaluate`: what policies are worth, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.options import (
    POMDP_HELP,
    POSITIVE,
    Number,
    Whole,
    confidence_option,
    fully_observed_option,
    grouped,
    horizon_option,
    quiet_option,
    seed_option,
    threads_option,
)
from missmdp.errors import FormatError, MissMDPError, ModelError
from missmdp.files import read_text

if TYPE_CHECKING:
    from missmdp.cli.files import AskedPolicy
    from missmdp.experiments.baselines import BaselineSettings
    from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["evaluate"]

_FILE = click.Path(path_type=Path)

evaluate_options = grouped(
    click.option(
        "--policy",
        "policies",
        multiple=True,
        metavar="POLICY",
        help="A policy's name or file, or NAME=FILE; repeat for more.  [default: random, prior and optimal]",
    ),
    click.option(
        "--reference", metavar="NAME", help="Compare with this policy.  [default: optimal, or the first]"
    ),
    fully_observed_option,
    click.option(
        "--episodes",
        type=Whole(min=1),
        default=2000,
        show_default=True,
        help="Episodes per policy; a minimum with --until-stderr (and at least 1,000).",
    ),
    seed_option("Seed of the episodes, which are the same for all policies."),
    click.option(
        "--until-stderr",
        type=POSITIVE,
        metavar="ERROR",
        help="Continue until the standard error of every difference, or of a single value, is at most this.",
    ),
    click.option("--max-episodes", type=Whole(min=1), help="Maximum number of episodes with --until-stderr."),
    horizon_option,
    click.option(
        "--control-variate",
        is_flag=True,
        help="Subtract the luck that the fully observed MDP explains, which makes errors smaller.",
    ),
    click.option(
        "--timeout",
        type=POSITIVE,
        metavar="SECONDS",
        help="Time limit for simulating all policies.  [default: no limit]",
    ),
    threads_option,
    confidence_option("Confidence of the intervals."),
    click.option(
        "--solve-timeout",
        type=Number(min=0.0),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit for solving optimal and prior, each.",
    ),
    click.option(
        "--precision",
        type=Number(min=0.0),
        default=1e-3,
        show_default=True,
        help="Solve to this relative gap between the bounds.",
    ),
    click.option(
        "--expansions",
        type=Whole(min=1),
        default=1000,
        show_default=True,
        help="online: beliefs to expand per action.",
    ),
    click.option(
        "--tree-queries",
        type=Whole(min=1),
        default=1000,
        show_default=True,
        help="pomcp: tree queries per action.",
    ),
    click.option(
        "--max-depth",
        type=Whole(min=1),
        default=20,
        show_default=True,
        help="pomcp: maximum depth of the tree.",
    ),
    click.option(
        "--exploration",
        type=Number(min=0.0),
        default=1.0,
        show_default=True,
        help="pomcp: the exploration constant c of UCB.",
    ),
    click.option(
        "--belief",
        type=click.Choice(["particles", "exact"]),
        default="particles",
        show_default=True,
        help="pomcp: how to track the belief.",
    ),
    click.option(
        "--ppo-steps",
        type=Whole(min=1),
        help="ppo: training steps.  [default: those of --ppo-settings, else 1,000,000]",
    ),
    click.option(
        "--ppo-settings",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="JSON",
        help="ppo: a file of hyperparameters, such as best.json of `missmdp tune-ppo`; one with and one without memory "
        "may be given.",
    ),
    click.option(
        "--policy-seed",
        type=Whole(min=0),
        default=0,
        show_default=True,
        help="Seed for making policies. pomcp plans while it acts, so its search follows --seed; so does online.",
    ),
    click.option(
        "--save-policies",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Store policies that are solved or trained, and reuse those already stored.",
    ),
    click.option(
        "-o",
        "--output",
        type=_FILE,
        help="Also write the results to this .csv, .json or .parquet file, one row per policy.",
    ),
    click.option(
        "--returns", type=_FILE, help="Also write the returns of all episodes to this .csv or .parquet file."
    ),
    quiet_option("Print one line per value and difference, and no progress."),
)
"""The options that say which policies, and how they are made and evaluated."""


def check_usage(asked: Sequence[AskedPolicy], model: str, is_file: bool, options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together, or are no numbers."""
    from missmdp.checks import checked_confidence
    from missmdp.evaluation.stopping import StoppingRule
    from missmdp.experiments.baselines import FEATURES_NEEDED
    from missmdp.plan.online.solver import OnlinePlanner
    from missmdp.plan.sarsop.solver import Sarsop

    names = [policy.name for policy in asked]
    if options["reference"] is not None and options["reference"] not in names:
        raise click.UsageError(f"--reference {options['reference']}: the policies are {', '.join(names)}")
    if is_file:
        for policy in asked:
            if policy.baseline in FEATURES_NEEDED:
                raise click.UsageError(
                    f"{policy.baseline} is for miss-MDPs: no features go missing in {model}; use random, "
                    "optimal, pomcp, online or a policy's file"
                )
        if options["fully_observed"]:
            raise click.UsageError(f"--fully-observed is for miss-MDPs: no features go missing in {model}")
    if options["max_episodes"] is not None and options["until_stderr"] is None:
        raise click.UsageError("--max-episodes goes with --until-stderr; otherwise give --episodes")
    checked_confidence(options["confidence"])
    Sarsop(precision=options["precision"], timeout=options["solve_timeout"])
    OnlinePlanner(expansions=options["expansions"])
    StoppingRule(options["episodes"], options["until_stderr"], options["max_episodes"], options["timeout"])


def check_files(output: Path | None, returns: Path | None, folder: Path | None) -> None:
    """Raise `click.UsageError` if what is asked for cannot be written; call it before long work."""
    from missmdp.cli.files import check_writable
    from missmdp.experiments.tables import LONG_TABLES, TABLES
    from missmdp.words import listed

    for path, what, endings in ((output, "results", TABLES), (returns, "returns", LONG_TABLES)):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise click.UsageError(f"{path}: the file of {what} must end in {listed(endings, 'or')}")
        check_writable(path)
    if output is not None and returns is not None and output.resolve() == returns.resolve():
        raise click.UsageError(f"{output}: results and returns cannot go to the same file")
    if folder is not None:
        check_writable(folder / "policy.mmpolicy")


def baseline_options(asked: Sequence[AskedPolicy], options: dict[str, Any]) -> BaselineSettings:
    """Return how baselines are made; every file of settings must be for one that is asked for."""
    from missmdp.experiments.baselines import BaselineSettings

    wanted = {policy.baseline == "ppo-memory" for policy in asked if policy.baseline in ("ppo", "ppo-memory")}
    names = ("solve_timeout", "precision", "expansions", "tree_queries", "max_depth", "exploration", "belief")
    found: dict[bool, tuple[Path, PPOSettings]] = {}
    for path in options["ppo_settings"]:
        settings = _read_settings(path)
        if settings.memory in found:
            both = f"{found[settings.memory][0]} and {path}"
            raise click.UsageError(
                f"{both} both have settings for PPO {'with' if settings.memory else 'without'} memory"
            )
        if settings.memory not in wanted:
            policy = "ppo-memory" if settings.memory else "ppo"
            raise click.UsageError(f"{path} has settings for {policy}: also give --policy {policy}")
        found[settings.memory] = path, settings
    chosen = BaselineSettings(**{name: options[name] for name in names}, seed=options["policy_seed"])
    both = {
        "ppo": found[False][1] if False in found else chosen.ppo,
        "ppo_memory": found[True][1] if True in found else chosen.ppo_memory,
    }
    if options["ppo_steps"] is not None:
        both = {name: replace(settings, steps=options["ppo_steps"]) for name, settings in both.items()}
    return replace(chosen, **both)


def _read_settings(path: Path) -> PPOSettings:
    from missmdp.plan.ppo.settings import PPOSettings

    try:
        return PPOSettings.from_json(read_text(path))
    except FormatError:
        raise
    except MissMDPError as error:
        raise ModelError(f"{path}: {error}") from error


EVALUATE_HELP = f"""\b
Examples:
  missmdp evaluate icu-smar
  missmdp evaluate icu-smar --policy optimal --policy mine=icu.mmpolicy --save-policies made
  missmdp evaluate icu-smar --policy optimal --policy pomcp --episodes 200
  missmdp evaluate icu-smar --policy icu.mmpolicy --control-variate --until-stderr 0.05
  missmdp evaluate learned.mmdp --policy ppo --ppo-settings tuned/best.json -o values.csv
  missmdp evaluate tiger.pomdp --policy optimal --policy random --horizon 100

\b
Policies:
  random      uniformly random actions
  prior       optimal if every feature were missing with probability 0.5
  optimal     optimal for MODEL, to the precision reached
  pomcp       online planning by tree search
  online      online planning by a search with bounds, for large models
  ppo         a network trained on the current observation
  ppo-memory  a network trained on the last observations and actions
  FILE        an .mmpolicy file, or a .policyx file of a policy for MODEL

{POMDP_HELP} For the last two, the policies are random, optimal, pomcp, online and files.
"""


@click.command(epilog=EVALUATE_HELP)
@click.argument("model")
@evaluate_options
def evaluate(
    model: str,
    policies: tuple[str, ...],
    output: Path | None,
    returns: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Estimate what policies are worth by simulating them.

    All policies face the same random events, so differences between them have small errors. If optimal and prior are
    among them, values are also normalised: optimal is 1 and prior is 0. A policy that cannot be made for MODEL is left
    out, and the others are evaluated.

    Ctrl-C while a policy is being solved or trained continues with the best policy so far; a second Ctrl-C ends the
    command. Ctrl-C during simulation ends it with the results of the finished episodes. There are no results until
    every policy has finished one episode; policies stored with --save-policies are kept.
    """
    from missmdp.cli.evaluation_run import EvaluationRun
    from missmdp.cli.files import asked_policies, load_model_or_pomdp
    from missmdp.experiments.baselines import check_baseline, make_baseline
    from missmdp.interop.model_files import SUFFIXES
    from missmdp.model.missmdp import checked_model, fully_observed_model

    is_file = Path(model).suffix.lower() in SUFFIXES
    asked = asked_policies(policies or (("random", "optimal") if is_file else ("random", "prior", "optimal")))
    check_usage(asked, model, is_file, options)
    check_files(output, returns, options["save_policies"])
    settings = baseline_options(asked, options)
    loaded = load_model_or_pomdp(model)
    shown = model
    if options["fully_observed"]:
        loaded, shown = fully_observed_model(checked_model(loaded)), f"{model}, fully observed"
    for policy in asked:
        if policy.baseline is not None:
            check_baseline(policy.baseline, loaded)
        if policy.baseline == "pomcp":
            # Ready at once, unless its settings cannot be.
            make_baseline("pomcp", loaded, settings)
    run = EvaluationRun(asked, loaded, shown, settings, options, quiet=quiet, by_default=not policies)
    run.run(model, output, returns)
