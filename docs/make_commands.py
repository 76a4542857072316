"""Write the page of all commands, docs/commands.md, from what the commands say about themselves."""

from __future__ import annotations

from pathlib import Path

import click

from missmdp.cli.main import SECTIONS

PAGE = Path(__file__).parent / "commands.md"

HEAD = """# All commands

`missmdp COMMAND --help` lists the options of a command and gives more examples. [The command line](command-line.md)
explains exit codes and signals, and [How do I …?](how-do-i.md) starts from what you want to do. This page is written by
`docs/make_commands.py`.
"""


def first_example(command: click.Command) -> str:
    """Return the first example in the help of a command."""
    lines = (line.strip() for line in (command.epilog or "").splitlines())
    return next(
        line.partition(" # ")[0].rstrip() for line in lines if line.startswith(f"missmdp {command.name}")
    )


def commands_page() -> str:
    """Return the page: a table for each section."""
    parts = [HEAD]
    for title, commands in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| command | what it does | example |\n|---|---|---|\n")
        for command in commands:
            says = command.get_short_help_str(limit=200)
            example = first_example(command).replace("|", "\\|")
            parts.append(f"| `{command.name}` | {says} | `{example}` |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
    print(PAGE)
