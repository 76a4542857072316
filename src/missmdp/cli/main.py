"""The command `missmdp`: parsing and printing only."""

from __future__ import annotations

import io
import os
import sys

import click

from missmdp._version import __version__
from missmdp.cli.diagnose_command import diagnose
from missmdp.cli.evaluate_command import evaluate
from missmdp.cli.failures import Commands, echo, sigterm_raises
from missmdp.cli.learn_commands import learn
from missmdp.cli.learn_model_command import learn_model
from missmdp.cli.model_commands import (
    benchmarks,
    collect,
    coverage,
    describe,
    export,
    graph,
    plan_data,
    show,
    validate,
)
from missmdp.cli.reproduce_commands import plot, reproduce
from missmdp.cli.run_commands import report, run
from missmdp.cli.solve_commands import solve, tune_ppo
from missmdp.cli.watchdog import signals_end_the_program

__all__ = ["SECTIONS", "cli", "main"]

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "All in one": (run, report),
    "Models": (benchmarks, show, graph, coverage, export),
    "Logs": (collect, describe, validate, plan_data),
    "How values go missing": (diagnose, learn, learn_model),
    "Policies": (solve, evaluate, tune_ppo),
    "Experiments of the paper": (reproduce, plot),
}
"""The commands, in the order in which help lists them."""

EPILOG = """\b
Exit codes:
  0    success
  1    the answer is no: for example, the log does not fit the model (validate, learn --strict)
  2    the request was wrong; one line on standard error says what to change
  130  interrupted by Ctrl-C before there was a result
  143  ended by SIGTERM
"""


class Program(Commands):
    """All commands, listed by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(limit=100)) for one in commands])


@click.group(
    cls=Program,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="missmdp")
@click.pass_context
def cli(context: click.Context) -> None:
    """Decisions when part of the state goes missing.

    MODEL is a benchmark's name (see `missmdp benchmarks`), an .mmdp file, or module:function: a function without
    arguments that returns a MissMDP. `solve`, `evaluate` and `export` also read .pomdp and .pomdpx files.

    Commands that learn how values go missing also accept an MDP: module:function that returns a FactoredMDP, or a
    folder of tables (.csv or .parquet) called transitions, rewards, initial and, if needed, terminal. Every table has
    one column per feature. transitions also has action, next_<feature> and probability, rewards has action and reward,
    and initial has probability. The folder may also hold discount.txt, and a table called features with the columns
    feature and value, which sets the order of values; without it, words are in alphabetical order.
    """
    if context.invoked_subcommand is None:
        echo(context.get_help())


for section in SECTIONS.values():
    for command in section:
        cli.add_command(command)


def main() -> None:
    """Run the command line, and leave the program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started us: what is printed goes nowhere, and not into the next file that is opened.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open to the end)
        elif isinstance(stream, io.TextIOWrapper):
            # Bars and dots are not worth failing for where the terminal or file cannot hold them.
            stream.reconfigure(errors="replace")
    with sigterm_raises(), signals_end_the_program():
        cli(prog_name="missmdp")
