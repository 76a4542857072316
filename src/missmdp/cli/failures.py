"""How a command that fails ends: one line on standard error, and an exit code that says what kind of failure it was.

| code | meaning |
|---|---|
| 0 | all went well |
| 1 | the answer is no: a log does not fit a model |
| 2 | something was wrong with what was asked: words, numbers, files, folders |
| 70 | something was wrong with missmdp itself |
| 130 | interrupted by Ctrl-C |
| 143 | ended by SIGTERM |
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Any

import click

from missmdp.cli.wording import one_line, what_is_wrong
from missmdp.errors import MissMDPError

__all__ = ["AnswerIsNo", "Commands", "Terminated"]

ANSWER_IS_NO, WRONG_CALL, MISTAKE_OF_OURS, INTERRUPTED, TERMINATED = 1, 2, 70, 130, 143
NOBODY_READS = 1
"""As click and rich end where whoever reads what is printed has gone, which is no failure: nothing is said."""
DEBUG = "MISSMDP_DEBUG"
"""The variable that makes failures show where they come from."""


class AnswerIsNo(click.ClickException):
    """Nothing was wrong with the call, but the answer to what it asked is no."""

    exit_code = ANSWER_IS_NO


class Interrupted(BaseException):
    """Ctrl-C, out of the reach of click, which would print an empty line."""


class Terminated(BaseException):
    """SIGTERM; unlike Ctrl-C it never means to go on with what there is."""


class EarlyEnd(Exception):  # noqa: N818 (it says what happened)
    """An `EOFError`, which click would take for Ctrl-D."""


class Commands(click.Group):
    """Commands that end as the table above says."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            if error.ctx is None and command is not None:
                # The parser does not say whose options it could not understand.
                error.ctx = click.Context(command, parent=ctx, info_name=command.name)
            raise
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except EOFError as error:
            raise EarlyEnd(f"EOFError: {error}") from error

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command line and leave the program; if not `standalone_mode`, raise what goes wrong instead."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            ended = super().main(*args, standalone_mode=False, **extra)
            sys.stdout.flush()
        except SystemExit:
            raise
        except BrokenPipeError as error:
            _drop_what_cannot_be_printed()
            raise SystemExit(NOBODY_READS) from error
        except BaseException as error:
            _drop_what_cannot_be_printed()
            raise SystemExit(_tell(error)) from error
        sys.exit(ended if isinstance(ended, int) else 0)


def _drop_what_cannot_be_printed() -> None:
    """Let go of what is still to be printed where that fails: Python would try again at the end, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _tell(error: BaseException) -> int:
    """Print what went wrong; return the exit code."""
    message, code = _failure(error)
    # Whoever would read it may have gone.
    with contextlib.suppress(OSError):
        if os.environ.get(DEBUG, "") not in ("", "0"):
            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        if code == INTERRUPTED and sys.stderr.isatty():
            click.echo(err=True)  # terminals show ^C, without a new line
        click.echo(one_line(message), err=True)
    return code


def _failure(error: BaseException) -> tuple[str, int]:
    """Return what to say, and the exit code."""
    match error:
        case click.UsageError():
            return f"Error: {_usage(error)}", WRONG_CALL
        case click.ClickException():
            code = ANSWER_IS_NO if isinstance(error, AnswerIsNo) else WRONG_CALL
            return f"Error: {error.format_message()}", code
        case MissMDPError() | OSError():
            return f"Error: {what_is_wrong(error)}", WRONG_CALL
        case MemoryError():
            return f"Error: there is not enough memory for this ({str(error) or 'MemoryError'})", WRONG_CALL
        case Interrupted() | KeyboardInterrupt() | click.Abort():
            return "Interrupted", INTERRUPTED
        case Terminated():
            return "Terminated", TERMINATED
        case _:
            what = str(error) if isinstance(error, EarlyEnd) else f"{type(error).__name__}: {error}"
            return f"Error: unexpected {what}; please report this ({DEBUG}=1 shows where)", MISTAKE_OF_OURS


def _usage(error: click.UsageError) -> str:
    """Return what is wrong with what was typed, and where to read how it is done."""
    message = one_line(error.format_message()).removesuffix(".")
    return message if error.ctx is None else f"{message} (see {error.ctx.command_path} --help)"
