"""The command `export`: a model as a file for other tools."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["export"]

_HELP = (
    "MODEL is a benchmark's name, an .mmdp file, module:function, or a .pomdp or .pomdpx file. OUT ends in .pomdp "
    "(the format of pomdp-solve, read by most solvers) or .pomdpx (the format of APPL, with what is always observed "
    "split off)."
)


@click.command(epilog=_HELP)
@click.argument("model")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def export(model: str, out: Path) -> None:
    """Write a model as a .pomdp or .pomdpx file that other solvers read, or convert one into the other."""
    from missmdp.cli.models import load_model_or_pomdp
    from missmdp.cli.output import check_outputs
    from missmdp.interop.model_files import SUFFIXES, write_model
    from missmdp.interop.outgoing import outgoing_pomdp

    if out.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{out}: OUT must end in {' or '.join(SUFFIXES)}")
    check_outputs([out], model=model)
    loaded = load_model_or_pomdp(model)
    write_model(loaded, out)
    pomdp = outgoing_pomdp(loaded)
    acts = "; the file acts first, without the model's first observation" if pomdp.observe_initial else ""
    click.echo(
        f"{pomdp.n_states:,} states, {pomdp.n_actions:,} actions and {pomdp.n_observations:,} observations "
        f"written to {out}{acts}"
    )
