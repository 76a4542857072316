"""Options of `missmdp reproduce`: one for each field of the configuration."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

import click

__all__ = ["ConfiguredCommand", "given_settings"]


class ConfiguredCommand(click.Command):
    """A command with an option for each field of `ReproduceConfig`, and --only for those of single benchmarks.

    They are made when they are needed, since the configuration knows benchmarks and baselines, which take long to load.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all options."""
        return [*super().get_params(ctx)[:-1], *_config_options(), *super().get_params(ctx)[-1:]]


@lru_cache
def _config_options() -> tuple[click.Option, ...]:
    from missmdp.experiments.reproduce.config import ReproduceConfig

    only = click.Option(
        ["--only"],
        multiple=True,
        metavar="BENCHMARK.SETTING=VALUE",
        help="A setting of one benchmark, as in predator-mcar.max_trials=12; repeat.",
    )
    return (*(_option(known) for known in fields(ReproduceConfig) if known.name != "only"), only)


def _option(known: Any) -> click.Option:
    from missmdp.experiments.reproduce.config import field_type

    kind, several, optional = field_type(known)
    flag = f"--{known.name.replace('_', '-')}"
    if kind is bool:
        return click.Option(
            [f"{flag}/--no-{flag[2:]}", known.name], default=None, help=known.metadata["help"]
        )
    words = {int: "N", float: "X", str: "NAME"}[kind]
    metavar = f"{words},…" if several else f"{words}|none" if optional else words
    return click.Option([flag, known.name], metavar=metavar, help=known.metadata["help"])


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return what was typed, as settings; options that were not given are left out."""
    from missmdp.experiments.reproduce.config import ReproduceConfig

    names = {known.name: known for known in fields(ReproduceConfig)}
    found = {
        name: _value(names[name], text)
        for name, text in options.items()
        if name != "only" and text is not None
    }
    only: dict[str, dict[str, Any]] = {}
    for item in options["only"]:
        left, equals, text = item.partition("=")
        benchmark, dot, name = left.partition(".")
        name = name.replace("-", "_")
        if not (equals and dot) or name not in names or name == "only":
            raise click.UsageError(
                f"--only {item}: expected BENCHMARK.SETTING=VALUE, as in predator-mcar.max_trials=12"
            )
        only.setdefault(benchmark, {})[name] = _value(names[name], text)
    return {**found, **({"only": only} if only else {})}


def _value(known: Any, text: Any) -> Any:
    from missmdp.experiments.reproduce.config import field_type

    kind, several, optional = field_type(known)
    if isinstance(text, bool) or (optional and text.lower() == "none"):
        return text if isinstance(text, bool) else None
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise click.UsageError(f"{known.name}: expected true or false, got {text!r}")
        return text.lower() == "true"
    if several and text.lower() == "none":
        return ()
    words = [word.strip() for word in text.split(",") if word.strip()] if several else [text]
    values = [_number(known.name, kind, word) for word in words]
    return tuple(values) if several else values[0]


def _number(name: str, kind: type, word: str) -> Any:
    """Return a word as what the field takes; 1e5 and 10_000 are whole numbers too."""
    if kind is str:
        return word
    try:
        value = float(word.replace("_", ""))
    except ValueError:
        raise click.UsageError(f"--{name.replace('_', '-')}: {word!r} is not a number") from None
    if kind is float:
        return value
    if not value.is_integer():
        raise click.UsageError(f"--{name.replace('_', '-')}: {word!r} is not a whole number")
    return int(value)
