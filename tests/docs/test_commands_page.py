"""The page of all commands is what the commands say about themselves."""

import runpy
from pathlib import Path

from missmdp.cli.main import SECTIONS, cli

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_commands_lists_them_all():
    commands_page = runpy.run_path(str(DOCS / "make_commands.py"))["commands_page"]
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert page == commands_page(), "run `python docs/make_commands.py`"
    for name in cli.commands:
        assert f"| `{name}` |" in page


def test_every_command_is_in_one_section():
    listed = [command.name for commands in SECTIONS.values() for command in commands]
    assert sorted(listed) == sorted(cli.commands)
