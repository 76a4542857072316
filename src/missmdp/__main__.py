"""The command `missmdp`, also as `python -m missmdp`."""

import os
import signal
from types import FrameType

_SAID = {signal.SIGINT: b"Interrupted\n", signal.SIGTERM: b"Terminated\n"}


class Interrupt(KeyboardInterrupt):
    """Ctrl-C. Where a plain one passes through `exec`, Python forgets our exit code and ends by the signal."""


def main() -> None:
    """Run the command line, and leave the program; while nothing is open yet, a signal ends it at once."""
    heard = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else ignored, as in background jobs
    terminable = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if heard:
        signal.signal(signal.SIGINT, _end)
    if terminable:
        signal.signal(signal.SIGTERM, _end)
    try:
        from missmdp.cli.main import main as run

        if heard:
            signal.signal(signal.SIGINT, _interrupt)
        if terminable:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        run()
    except KeyboardInterrupt:
        _end(signal.SIGINT, None)
    finally:
        if heard:
            # Python may have to wait for threads, and would show where it was interrupted.
            signal.signal(signal.SIGINT, _end)


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
