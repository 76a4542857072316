"""The options of `missmdp learn` that say who learns, and the learner that they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.options import Number, Whole

if TYPE_CHECKING:
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.model.mdp import FactoredMDP
    from missmdp.model.missmdp import MissMDP

__all__ = ["bootstrap_draws", "check_learner_options", "learner_options", "make_learner"]

_LEARNERS = ("amcar", "asmar", "aimi", "em")
_COUNTING = ("amcar", "asmar", "aimi")
# Spelled out, since importing them would load numpy for every command.
_METHODS = ("auto", "okamoto", "clopper-pearson", "weissman", "anytime")
_STRUCTURES = ("auto", "mcar", "smar", "logistic", "saturated")

_MEANT_FOR: dict[str, tuple[str, ...]] = {
    "method": _COUNTING,
    "behaviour": _COUNTING,
    "smoothing": _COUNTING,
    "unseen": _COUNTING,
    "ignore": ("asmar",),
    "patterns": ("amcar", "asmar"),
    "assume": ("aimi",),
    "graph": ("aimi", "em"),
    "blocks": ("aimi", "em"),
    "structure": ("em",),
    "pseudo_count": ("em",),
    "draws": ("em",),
    "seed": ("em",),
}
"""Option → the learners that know it. None of these has a value of its own, so that what was typed can be told."""

_OPTIONS = (
    click.option(
        "--learner",
        type=click.Choice(_LEARNERS, case_sensitive=False),
        default="asmar",
        show_default=True,
        help="amcar: by pure chance, whatever the state. asmar: depends on always-observed features. aimi: depends "
        "on other features, each indicator on its own. em: depends on anything, also on the value itself, as far as "
        "the dynamics give it away; its intervals are no guarantee.",
    ),
    click.option(
        "--confidence",
        type=Number(0.0, 1.0, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="That all intervals hold; with em, of each on its own.",
    ),
    click.option("--method", type=click.Choice(_METHODS), help="Of the bounds.  [default: auto]"),
    click.option(
        "--behaviour",
        type=click.Choice(["blind", "adaptive"]),
        help="Whether whoever acted never reacted to what was observed, or may have; by default what the file says "
        "of itself, else adaptive.",
    ),
    click.option("--smoothing", type=Number(0.0, 1e9), help="Added to every count.  [default: 0.001]"),
    click.option(
        "--unseen",
        type=click.Choice(["uniform", "pooled"]),
        help="What groups of states without data get.  [default: uniform]",
    ),
    click.option(
        "--always", "always", multiple=True, metavar="FEATURE", help="Known to be always observed; repeat."
    ),
    click.option("--ignore", multiple=True, metavar="FEATURE", help="asmar: known not to matter; repeat."),
    click.option(
        "--patterns",
        type=click.Choice(["all", "seen"]),
        help="amcar, asmar: which patterns to learn.  [default: all]",
    ),
    click.option("--assume", type=click.Choice(["smar", "mcar"]), help="aimi: indicators depend on less."),
    click.option(
        "--graph", metavar="FILE", help="aimi, em: an m-graph in DOT, or `model` for the model's own."
    ),
    click.option(
        "--block", "blocks", multiple=True, metavar="A,B", help="aimi, em: go missing together; repeat."
    ),
    click.option(
        "--structure",
        type=click.Choice(_STRUCTURES, case_sensitive=False),
        help="em: what missingness may look like; auto looks for reasons in the data.  [default: auto]",
    ),
    click.option(
        "--pseudo-count",
        type=Number(0.0, 1e9),
        help="em: observations that each group of states gets beside its own, as asmar has them.  [default: 1]",
    ),
    click.option(
        "--draws",
        type=Whole(min=0),
        help="em: logs that the bootstrap draws for intervals; 0 for none.  [default: 100; 0 for logistic, where each "
        "takes long]",
    ),
    click.option(
        "--seed", type=Whole(min=0), help="em: of random starts and of the bootstrap.  [default: 0]"
    ),
)


def learner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who learns."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_learner_options(options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together."""
    kind = options["learner"].lower()
    for name, kinds in _MEANT_FOR.items():
        if options[name] not in (None, ()) and kind not in kinds:
            flag = {"blocks": "block"}.get(name, name).replace("_", "-")
            listed = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
            raise click.UsageError(f"--{flag} is for --learner {listed}")
    if options["structure"] and options["graph"]:
        raise click.UsageError("give either --structure or --graph: an m-graph is a structure")
    for given in options["blocks"]:
        if len(given.split(",")) < 2:
            raise click.UsageError(f"--block {given}: a block is two features or more, as in --block x,y")


def make_learner(options: dict[str, Any], mdp: FactoredMDP, known: MissMDP | None) -> MissingnessEstimator:
    """Return the learner that was asked for, with options that go together."""
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR
    from missmdp.learn.em.estimator import DynamicsEM

    always = options["always"] or None
    blocks = [[name.strip() for name in block.split(",")] for block in options["blocks"]]
    graph = _graph(options["graph"], known)
    if options["learner"].lower() == "em":
        return DynamicsEM(
            mdp,
            graph or options["structure"] or "auto",
            blocks=blocks or None,
            always_observed=always,
            **_given(options, "pseudo_count", "seed"),
        )
    common: dict[str, Any] = {**_given(options, "smoothing", "unseen"), "always_observed": always}
    match options["learner"].lower():
        case "amcar":
            return AMCAR(**common, **_given(options, "patterns"))
        case "asmar":
            return AsMAR(**common, ignore=options["ignore"], **_given(options, "patterns"))
        case _:
            return AIMI(**common, assume=options["assume"], blocks=blocks or (), graph=graph)


def bootstrap_draws(options: dict[str, Any]) -> int:
    """Return how many logs to draw for the intervals of em."""
    if options["draws"] is not None:
        return options["draws"]
    return 0 if (options["structure"] or "").lower() == "logistic" else 100


def _given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options that were typed; the library knows what the others are."""
    return {name: options[name] for name in names if options[name] is not None}


def _graph(graph: str | None, known: MissMDP | None) -> Any:
    from missmdp.model.mgraph import MissingnessGraph

    if graph is None:
        return None
    if graph != "model":
        return MissingnessGraph.from_dot(Path(graph))
    if known is None:
        raise click.UsageError("--graph model: this model does not say how values go missing")
    return known.mgraph()
