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
import logging
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from types import EllipsisType, FrameType
from typing import Any, cast

import click

from missmdp.cli.memory import check_memory, is_out_of_memory
from missmdp.cli.watchdog import Terminated, comes_too_early, last_signal, leave_at_once
from missmdp.errors import Argument, Message, MissMDPError, ParameterError, readable
from missmdp.words import printable

__all__ = [
    "AnswerIsNo",
    "Commands",
    "Terminated",
    "as_typed",
    "echo",
    "one_line",
    "sigterm_raises",
    "what_is_wrong",
]


def as_typed(message: str | MissMDPError) -> str:
    """Return a message in which arguments are the options of the command that runs."""
    if not isinstance(message, Message | MissMDPError):
        return message
    known = _parameters()
    return message.text(lambda argument: _as_option(argument, known.get(argument.name)))


def _parameters() -> dict[str | None, click.Parameter]:
    """Return the options and arguments of the command that runs, or has just failed, by name."""
    context = click.get_current_context(silent=True)
    command = None if context is None else context.command
    if isinstance(command, click.Group):
        command = command.commands.get((context and context.invoked_subcommand) or "")
    if context is None or command is None:
        return {}
    return {known.name: known for known in command.get_params(context)}


def _as_option(argument: Argument, known: click.Parameter | None) -> str:
    """Return an argument as one would type it; one that is no option keeps its name."""
    if not isinstance(known, click.Option):
        return str(argument) if known is None else known.human_readable_name
    names, value = known.opts, argument.value
    if known.is_flag:
        names, value = (known.opts if value in (None, True) else known.secondary_opts or known.opts), None
    name = max(names, key=len)
    if value is None:
        return name
    return " ".join(f"{name} {_word(one, known)}" for one in _single(value, several=known.multiple))


def _single(value: object, *, several: bool) -> list[object]:
    """Return what one would type the option for, one by one."""
    if isinstance(value, dict):
        return [*cast("dict[object, object]", value).items()]
    return cast("list[object]", value) if isinstance(value, list) and several else [value]


def _word(value: object, option: click.Option) -> str:
    """Return a value as one word of the shell; what the reader must choose is named as in the help."""
    chosen = option.metavar or "…"
    match value:
        case EllipsisType():
            return chosen
        case (str(key), EllipsisType()):
            return f"{shlex.quote(key)}={chosen.partition('=')[2]}"
        case list() | tuple():
            return shlex.quote(",".join(map(str, cast("Iterable[object]", value))))
        case _:
            return shlex.quote(str(value))


def what_is_wrong(error: MissMDPError | OSError) -> str:
    """Return what an error says, for people who type; also what the system says begins with the file."""
    if isinstance(error, MissMDPError):
        return as_typed(error)
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text that may hold anything, and so not steer the terminal; commands print with this or a console alone."""
    click.echo(printable(text), err=err, nl=nl)  # noqa: TID251 (as nobody else does)


class _HarmlessFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def one_line(message: str) -> str:
    """Return a message without line breaks."""
    return " ".join(line.strip() for line in message.splitlines() if line.strip())


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
        except MissMDPError as error:
            # Here it is still known which command ran, and so what its options are called.
            known = isinstance(error, ParameterError) and error.name in _parameters()
            see = f" (see {ctx.command_path} {ctx.invoked_subcommand} --help)" if known else ""
            error.args = (f"{as_typed(error)}{see}",)
            raise
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except EOFError as error:
            raise EarlyEnd(f"EOFError: {error}") from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was asked for, if there is memory enough for it to begin."""
        found = super().resolve_command(ctx, args)
        name, _, rest = found
        if not {*ctx.help_option_names} & {*rest}:
            check_memory(str(name))
        return found

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command line and leave the program; if not `standalone_mode`, raise what goes wrong instead."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        if logging.lastResort is not None:
            # Prints what is logged, where nobody has said what to do with it.
            logging.lastResort.setFormatter(_HarmlessFormatter())
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
            code = _tell(error)
            if code in (INTERRUPTED, TERMINATED):
                leave_at_once(code)
            raise SystemExit(code) from error
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
            echo("".join(traceback.format_exception(error)), err=True, nl=False)
        if code == INTERRUPTED and sys.stderr.isatty():
            echo(err=True)  # terminals show ^C, without a new line
        echo(readable(one_line(message)), err=True)
    return code


def _failure(error: BaseException) -> tuple[str, int]:
    """Return what to say, and the exit code."""
    match error:
        case click.UsageError():
            return f"Error: {_usage(error)}", WRONG_CALL
        case click.ClickException():
            code = ANSWER_IS_NO if isinstance(error, AnswerIsNo) else WRONG_CALL
            return f"Error: {error.format_message()}", code
        case MissMDPError():
            return f"Error: {error}", WRONG_CALL
        case Exception() if is_out_of_memory(error):
            reason = str(error) or type(error).__name__
            return f"Error: there is not enough memory for this ({reason})", WRONG_CALL
        case OSError():
            return f"Error: {what_is_wrong(error)}", WRONG_CALL
        case Interrupted() | KeyboardInterrupt() | click.Abort():
            return "Interrupted", INTERRUPTED
        case Terminated():
            return "Terminated", TERMINATED
        case Exception() if (came := last_signal()) is not None:
            return ("Terminated", TERMINATED) if came is signal.SIGTERM else ("Interrupted", INTERRUPTED)
        case _:
            what = str(error) if isinstance(error, EarlyEnd) else f"{type(error).__name__}: {error}"
            return f"Error: unexpected {what}; please report this ({DEBUG}=1 shows where)", MISTAKE_OF_OURS


def _usage(error: click.UsageError) -> str:
    """Return what is wrong with what was typed, and where to read how it is done."""
    message = one_line(error.format_message()).removesuffix(".")
    return message if error.ctx is None else f"{message} (see {error.ctx.command_path} --help)"


@contextmanager
def sigterm_raises() -> Generator[None, None, None]:
    """Turn SIGTERM into `Terminated`, so what is open is closed; a second one ends the process at once.

    Where SIGTERM is ignored or handled already, and outside the main thread, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL:
        yield
        return
    here = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if comes_too_early(number, frame):
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() != here:
            # A process that was forked from this one, and inherited this function: it ends as others do.
            os.kill(os.getpid(), signal.SIGTERM)
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
