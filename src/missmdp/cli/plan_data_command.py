"""The command `missmdp plan-data`: how much data a certificate takes."""

from __future__ import annotations

import click

from missmdp.cli.options import MODEL_HELP, Number

__all__ = ["plan_data"]

EPILOG = f"""\b
Examples:
  missmdp plan-data icu-smar --epsilon 10
  missmdp plan-data predator-mcar --epsilon 0.05 --relative --learner amcar --timeout 0
  missmdp plan-data guess.mmdp --epsilon 2 --confidence 0.9 --always-observed ward

{MODEL_HELP} Its missingness function is what you expect; how much data it takes depends on it.
"""


@click.command("plan-data", epilog=EPILOG)
@click.argument("model")
@click.option(
    "--epsilon",
    type=Number(min=0.0, min_open=True),
    required=True,
    help="How far from optimal a policy may be, in units of value.",
)
@click.option(
    "--relative",
    is_flag=True,
    help="Epsilon is a share of the value of the best minus that of the worst controller.",
)
@click.option(
    "--confidence",
    type=Number(min=0.0, max=1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The probability with which it is to hold.",
)
@click.option(
    "--learner",
    type=click.Choice(["amcar", "asmar", "aimi"], case_sensitive=False),
    default="asmar",
    show_default=True,
)
@click.option(
    "--always-observed", multiple=True, metavar="FEATURE", help="Known never to go missing; repeat."
)
@click.option(
    "--solver-gap", type=Number(min=0.0), default=0.0, show_default=True, help="Set aside for the solver."
)
@click.option(
    "--timeout",
    type=Number(min=0.0),
    default=30.0,
    show_default=True,
    help="Seconds for each model that is solved; with 0 none is, and the sharpest answer is left out.",
)
def plan_data(
    model: str,
    epsilon: float,
    relative: bool,
    confidence: float,
    learner: str,
    always_observed: tuple[str, ...],
    solver_gap: float,
    timeout: float,
) -> None:
    """Say how much data it takes to certify a policy.

    That is, until with the confidence given the policy for what is learned is within epsilon of the best policy, if
    actions in the log are random and values go missing as in the model. Ends with code 1 if no number of samples that
    is known would do.
    """
    from missmdp.cli.failures import AnswerIsNo
    from missmdp.cli.models import load_model
    from missmdp.evaluation.certificate.plan_data import plan_data
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR

    loaded = load_model(model)
    made = {"amcar": AMCAR, "asmar": AsMAR, "aimi": AIMI}[learner.lower()](
        always_observed=list(always_observed) or None
    )
    found = plan_data(
        loaded,
        epsilon,
        confidence,
        learner=made,
        relative=relative,
        solver_gap=solver_gap,
        timeout=timeout,
    )
    click.echo(found.describe())
    if found.samples is None:
        raise AnswerIsNo("no number of samples that is known is enough")
