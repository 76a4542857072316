"""The tables of a run as Markdown, put between marks into a page that people write."""

from __future__ import annotations

from pathlib import Path

from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.summary import Summary, summarise
from missmdp.experiments.reproduce.text import TextTable, text_tables
from missmdp.model.archive import write_atomically

__all__ = ["markdown_tables", "write_results_markdown"]

NO_BREAK = "\N{NO-BREAK SPACE}"


def markdown_tables(summary: Summary) -> dict[str, str]:
    """Return the tables that have anything in them, by name, as Markdown."""
    return {name: _markdown(table) for name, table in text_tables(summary).items()}


def _markdown(table: TextTable) -> str:
    aligned = ["---:" if i in table.numbers else ":---" for i in range(len(table.columns))]
    lines = [table.columns, tuple(aligned), *table.rows]
    # Figures with their errors stay on one line where columns are narrow.
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def write_results_markdown(run: str | Path | Summary, target: Path) -> list[str]:
    """Put a run's tables into a page, each between its marks, and return the names of those that were put there.

    The marks of a table are the lines <!-- claims --> and <!-- end of claims -->, and so on; what was between them
    is replaced. A page that does not exist yet is made, with all tables.

    Raises
    ------
    MissMDPError
        If the page cannot be read or written, or a table's end is not marked.
    """
    tables = markdown_tables(run if isinstance(run, Summary) else summarise(run))
    text = _page(target, tables)
    put: list[str] = []
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if start not in text:
            continue
        before, rest = text.split(start, 1)
        if end not in rest:
            raise MissMDPError(f"{target}: there is {start} without {end} after it")
        text = f"{before}{start}\n{table}\n{end}{rest.split(end, 1)[1]}"
        put.append(name)
    write_atomically(target, text.encode())
    return put


def _page(target: Path, tables: dict[str, str]) -> str:
    try:
        return target.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "\n\n".join(f"<!-- {name} -->\n<!-- end of {name} -->" for name in tables) + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise MissMDPError(f"{target}: cannot be read ({error})") from error
