"""What the tests of commands share."""

import pytest
from click.testing import CliRunner

from missmdp.cli.main import cli
from tiger import TIGER


@pytest.fixture
def run():
    """Run a command with arguments of any type, and give what it printed and how it ended."""

    def invoke(*arguments):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=True)

    return invoke


@pytest.fixture
def tiger(tmp_path):
    path = tmp_path / "tiger.pomdp"
    path.write_text(TIGER)
    return path
