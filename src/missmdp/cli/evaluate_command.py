"""The command `evaluate`: what policies are worth, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from missmdp.cli.evaluate_options import baseline_options, check_files, check_usage, evaluate_options

__all__ = ["evaluate"]

EPILOG = """\b
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
  prior       optimal if every feature goes missing with probability 0.5
  optimal     optimal for MODEL, as far as it is solved
  pomcp       plans online by tree search
  ppo         a network that is trained on the current observation
  ppo-memory  a network that is trained on the last observations and actions
  FILE        .mmpolicy, or .policyx of a policy for MODEL

MODEL is a benchmark's name, an .mmdp file, module:function, or a .pomdp or .pomdpx file (for random, optimal, pomcp and
files of policies).
"""


@click.command(epilog=EPILOG)
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
    """Say what policies are worth in a model, by simulating them.

    All policies meet the same luck, so that differences between them have small errors. Where optimal and prior are
    among them, values are also normalised: 1 is what optimal is worth, 0 what prior is worth.

    Ctrl-C while a policy is solved or trained ends that, and goes on with the best so far; a second one ends the
    command. While policies are simulated, it ends with the results of the episodes that are finished. Before every
    policy has one, there are no results: only policies that --save-policies kept remain.
    """
    from missmdp.cli.evaluation_run import EvaluationRun
    from missmdp.cli.models import load_model_or_pomdp
    from missmdp.cli.policy_words import asked_policies
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
    EvaluationRun(asked, loaded, shown, settings, options, quiet=quiet).run(model, output, returns)
