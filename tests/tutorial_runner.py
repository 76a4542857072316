"""Runs a tutorial as a reader would: what it says to save, what it says to type, what it shows, in order.

- A Python block is run, unless the text before it says "save this as `NAME`": then it becomes that file.
- A console block has commands behind `$`, and below each what it prints.
- A text block is what the Python block before it prints.

In what is shown, … stands for anything, spaces do not count, and decimals may be a little off.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(python|console|text|csv|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"[Ss]ave this as `([^`]+)`:\s*$")


@dataclass(frozen=True)
class Block:
    """A piece of a page that is run, saved or compared."""

    kind: str
    text: str
    name: str | None
    """The file that it becomes."""


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    found = []
    for match in BLOCK.finditer(page):
        saved = SAVED.search(page[: match.start()])
        found.append(Block(match[1], match[2], saved[1] if saved else None))
    return found


def run_tutorial(path: Path, folder: Path, stand_ins: dict[str, str]) -> None:
    """Run a tutorial in a folder; names in its commands are replaced by what stands in for them here."""
    names: dict[str, object] = {"__name__": "tutorial"}
    printed = None
    sys.path.insert(0, str(folder))
    known = set(sys.modules)
    try:
        for block in blocks_of(path.read_text()):
            if block.name is not None:
                (folder / block.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.name).write_text(block.text)
            elif block.kind == "python":
                printed = run_python(block.text, names, path)
            elif block.kind == "text":
                check_shown(block.text, printed)
            elif block.kind == "console":
                run_console(block.text, folder, stand_ins)
    finally:
        sys.path.remove(str(folder))
        for module in set(sys.modules) - known:
            # What was saved belongs to this tutorial only.
            if str(folder) in str(getattr(sys.modules[module], "__file__", "")):
                del sys.modules[module]


def run_python(text: str, names: dict[str, object], path: Path) -> str:
    """Run a block and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, str(path), "exec"), names)
    return out.getvalue()


def run_console(text: str, folder: Path, stand_ins: dict[str, str]) -> None:
    """Run the commands of a block, and compare what they print with what is shown."""
    first, *commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not first.strip(), f"a console block begins with a command: {first}"
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": beside,
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for entry in commands:
        command, shown = split_command(entry)
        for name, stand_in in stand_ins.items():
            command = command.replace(name, stand_in)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        check_shown(shown, done.stdout)


def split_command(entry: str) -> tuple[str, str]:
    """Return a command, which goes on after a backslash, and what is shown below it; comments are left out."""
    lines = entry.splitlines()
    end = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
    return "\n".join(lines[:end]), "\n".join(lines[end:])


def check_shown(shown: str, printed: str | None) -> None:
    """Compare what a page shows with what was printed."""
    assert printed is not None, "nothing was run that could have printed this"
    told = plain(shown)
    pattern = "".join(_pattern(token) for token in TOKENS.findall(told))
    found = re.fullmatch(pattern, plain(printed), re.DOTALL)
    close = found and all(map(_close, DECIMAL.findall(told), found.groups()))
    assert close, f"shown:\n{shown}\nprinted:\n{printed}"


DECIMAL = re.compile(r"\d[\d,]*\.\d+")
TOKENS = re.compile(rf"…|{DECIMAL.pattern}|.", re.DOTALL)


def _pattern(token: str) -> str:
    if token == "…":
        return ".*?"
    return f"({DECIMAL.pattern})" if DECIMAL.fullmatch(token) else re.escape(token)


def _close(shown: str, printed: str) -> bool:
    """Whether two numbers differ no more than machines do in rounding, after a search that rounding steers."""
    told, found = (float(text.replace(",", "")) for text in (shown, printed))
    return abs(told - found) <= 0.01 + 0.02 * abs(told)


def plain(text: str) -> str:
    """Return text without spaces and line ends."""
    return re.sub(r"\s+", "", text)
