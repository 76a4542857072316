"""The command `missmdp`, also as `python -m missmdp`."""

import atexit
import os
import signal
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading `typing` would take time in which a signal is not heard
    from typing import Any

_SAID = {signal.SIGINT: b"Interrupted\n", signal.SIGTERM: b"Terminated\n"}


class Interrupt(KeyboardInterrupt):
    """Ctrl-C. Where a plain one passes through `exec`, Python forgets our exit code and ends by the signal."""


def main() -> None:
    """Run the command line, and leave the program; while nothing is open yet, a signal ends it at once."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    # Others are left alone: background jobs ignore Ctrl-C.
    ours = [number for number, handler in defaults.items() if signal.getsignal(number) is handler]

    def handle(handlers: "dict[signal.Signals, Any]") -> None:
        for number in ours:
            signal.signal(number, handlers[number])

    handle(dict.fromkeys(ours, _end))
    # All is done then, and only Python itself has to end.
    atexit.register(handle, dict.fromkeys(ours, signal.SIG_IGN))
    try:
        from missmdp.cli.main import main as run

        handle({signal.SIGINT: _interrupt, signal.SIGTERM: signal.SIG_DFL})
        run()
    except KeyboardInterrupt:
        _end(signal.SIGINT, None)
    finally:
        # Python may have to wait for threads, and would show where it was interrupted.
        handle(dict.fromkeys(ours, _end))


def _interrupt(number: int, frame: FrameType | None) -> None:
    from missmdp.cli.watchdog import comes_too_early

    if not comes_too_early(number, frame):
        raise Interrupt


def _end(number: int, frame: object) -> None:
    """End the process, with a word; an exception could be lost within an import, or show where it came from."""
    try:
        os.write(
            2, (b"\n" if os.isatty(2) and number == signal.SIGINT else b"") + _SAID[signal.Signals(number)]
        )
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    main()
