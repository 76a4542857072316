"""Cases in worker processes: what each ends in, and how often.

A case is decided by the seed, its kind and its number, so every one can be run again on its own. It is fine if it
works or raises a `MissMDPError`. Trouble is everything else: another exception or warning, a process that dies, more
than `PATIENCE` seconds, more than `MEMORY` bytes.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

PATIENCE = 10.0
"""Seconds after which a case counts as hanging."""
MEMORY = 2**30
"""Bytes above what a worker takes before its first case."""
_START = 600.0
"""Seconds for a worker to make its material, which may compile kernels."""


class Kind:
    """A kind of case; made once per worker.

    Parameters
    ----------
    folder
        A folder of its own, for material and for what cases write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tell: Callable[[str], None] = lambda _: None
        self._note = ""

    @property
    def note(self) -> str:
        """What the present case is, in a few words; set before anything can go wrong."""
        return self._note

    @note.setter
    def note(self, note: str) -> None:
        self._note = note
        self.tell(note)

    def run(self, rng: random.Random) -> None:
        """Make a case and run it."""
        raise NotImplementedError


class Trouble(Exception):  # noqa: N818 (it says what was found)
    """What a kind raises where something is wrong though nothing was raised."""


@dataclass
class Book:
    """What the cases of a kind ended in."""

    kind: str
    fine: int = 0
    refused: int = 0
    seconds: float = 0.0
    troubles: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    """By what went wrong and where: numbers of cases, and what they were."""

    @property
    def n_troubles(self) -> int:
        """How many cases were trouble."""
        return sum(map(len, self.troubles.values()))

    def trouble(self, what: str, number: int, note: str) -> None:
        """Write down a case that did not end as it should."""
        self.troubles.setdefault(what, []).append((number, note))

    def __str__(self) -> str:
        cases = self.fine + self.refused + self.n_troubles
        lines = [
            f"{self.kind}: {cases} cases in {self.seconds:.0f} s: {self.fine} worked, {self.refused} refused, "
            f"{self.n_troubles} in trouble"
        ]
        for what, found in sorted(self.troubles.items(), key=lambda item: -len(item[1])):
            number, note = min(found)
            lines.append(f"  {len(found)} × {what}\n      first: --case {number}: {note}")
        return "\n".join(lines)


def case_rng(seed: int, kind: str, number: int) -> random.Random:
    """Return the random numbers of a case."""
    return random.Random(f"{seed}/{kind}/{number}")


def run_kind(
    name: str,
    kind: type[Kind],
    seed: int,
    numbers: Iterable[int],
    workers: int = 1,
    *,
    patience: float = PATIENCE,
    memory: int = MEMORY,
) -> Book:
    """Run the cases with these numbers; a worker that dies or hangs is replaced, and the rest goes on."""
    book, start = Book(name), time.monotonic()
    todo = list(numbers)
    shares = [todo[i::workers] for i in range(workers)]
    with tempfile.TemporaryDirectory(prefix="missmdp-fuzz-") as folder:
        crew = [
            _Worker((name, kind, seed, Path(folder) / str(i), memory), share, patience)
            for i, share in enumerate(shares)
        ]
        try:
            while any(worker.numbers for worker in crew):
                wait([w.answers for w in crew if w.numbers], timeout=0.5)
                for worker in crew:
                    worker.attend(book)
        finally:
            for worker in crew:
                worker.end()
    book.seconds = time.monotonic() - start
    return book


class _Worker:
    """A process that runs cases one after the other, and what is known of it here."""

    def __init__(
        self, what: tuple[str, type[Kind], int, Path, int], numbers: list[int], patience: float
    ) -> None:
        self.numbers = numbers
        self._what, self._patience = what, patience
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.answers, answers = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(answers, *self._what, self.numbers), daemon=True)
        self._process.start()
        answers.close()
        self._note, self._since, self._ready = "making its material", time.monotonic(), False

    def attend(self, book: Book) -> None:
        """Take down what the process has said, and replace it if it has died or hangs."""
        while self.numbers:
            try:
                if not self.answers.poll():
                    break
                what, text = self.answers.recv()
            except EOFError:
                self._died(book)
                return
            self._take(book, what, text)
        late = time.monotonic() - self._since > (self._patience if self._ready else _START)
        if self.numbers and late:
            self.end()
            self._lost(book, f"hangs (over {self._patience:.0f} s)")

    def _take(self, book: Book, what: str, text: str) -> None:
        self._since = time.monotonic()
        if what == "note":
            self._note, self._ready = text, True
            return
        number = self.numbers.pop(0)
        if what == "fine":
            book.fine += 1
        elif what == "refused":
            book.refused += 1
        else:
            book.trouble(text, number, self._note)

    def _died(self, book: Book) -> None:
        self._process.join()
        code = self._process.exitcode or 0
        if code == 0:
            self._start()
            return
        self._lost(book, f"dies ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})")

    def _lost(self, book: Book, what: str) -> None:
        if not self._ready:
            raise RuntimeError(f"{book.kind}: a worker {what} while {self._note}")
        book.trouble(what, self.numbers.pop(0), self._note)
        if self.numbers:
            self._start()

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _work(
    answers: Connection,
    name: str,
    kind: type[Kind],
    seed: int,
    folder: Path,
    memory: int,
    numbers: list[int],
) -> None:
    """Run cases, and say what each is before it runs and what it ended in."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    folder.mkdir(parents=True, exist_ok=True)
    one = kind(folder)
    before = _peak()
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + 3 * memory, resource.RLIM_INFINITY))
    one.tell = lambda note: answers.send(("note", note[:500]))
    for number in numbers:
        one.note = "?"
        outcome = attempt(lambda n=number: one.run(case_rng(seed, name, n)))
        if _peak() - before > memory:
            answers.send(("trouble", f"takes {_peak() - before >> 20} MB"))
            return  # the peak never falls: go on in a new process
        answers.send(outcome)


def attempt(case: Callable[[], None]) -> tuple[str, str]:
    """Return what a case ends in: "fine", "refused" or "trouble", and where the trouble is."""
    from missmdp.errors import AssumptionWarning, MissMDPError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AssumptionWarning)
        try:
            case()
        except MissMDPError as error:
            outcome = ("refused", "") if len(str(error)) < 10_000 else ("trouble", "a message of over 10,000")
        except Exception as error:
            outcome = ("trouble", _place(error))
        else:
            outcome = ("fine", "")
    return outcome


def _place(error: BaseException) -> str:
    """Return an error with the last line of ours that it went through."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "missmdp" in frame.filename]
    where = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno}, {ours[-1].name})" if ours else ""
    return f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}{where}"


def _peak() -> int:
    """Return the most memory that this process has had; the usual call also counts that of the process it came from."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _mapped() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return MEMORY
