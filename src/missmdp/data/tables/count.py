"""Counting the observations of tables that are too large to load.

Parquet files and ibis tables are grouped by a query engine, values as they are; only the few distinct ones
come back and are matched to the features. If any of them makes no sense, or if the rows do not make
histories, and for files without types (CSV), the rows are read in batches, as `Dataset.from_table` reads them:
with the same bounded memory, and able to say which row is at fault.

A table of a query has the columns `e` (episode), `s` (step) and `idle` (whether there is no action).
"""

from __future__ import annotations

import glob
import logging
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from missmdp.data.tables.cells import compute, pa, parquet
from missmdp.data.tables.content import TableOptions
from missmdp.data.tables.encoding import ColumnEncoder
from missmdp.data.tables.matching import UNKNOWN
from missmdp.data.tables.ordered_rows import OpenTable, all_parts, open_table
from missmdp.data.tables.parts import reading
from missmdp.data.tables.read import dataset_from_table
from missmdp.data.tables.rows import Episodes, encoded_batches
from missmdp.data.tables.structure import Orderly, Place, explain_episode
from missmdp.data.tables.write import read_metadata
from missmdp.errors import DataError, MissMDPError
from missmdp.files import removed_after
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING
from missmdp.progress import show_progress

if TYPE_CHECKING:
    from missmdp.data.counts import RankCounter
    from missmdp.data.dataset import Behaviour

ibis: Any = import_module("ibis")

_MEMORY = "800MB"
_WINDOW = 32
"""Steps of which one integer says which are there."""


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Keep to ourselves that the library of queries calls its engine in ways that will change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


@contextmanager
def engine() -> Generator[tuple[Any, Path], None, None]:
    """Give an embedded query engine of bounded memory, and a folder for what does not fit; both go away."""
    with quiet(), removed_after(Path(tempfile.mkdtemp(prefix="missmdp-"))) as folder:
        connection = ibis.duckdb.connect(
            memory_limit=_MEMORY, temp_directory=str(folder / "spill"), preserve_insertion_order=False
        )
        try:
            yield connection, folder
        finally:
            connection.disconnect()


def episode_summary(table: Any) -> Any:
    """Return a query with one row per episode: `e`, `n` rows, the first step `low`, and whether it is `broken`.

    An episode is broken if it has no name, if a step is missing, or occurs twice or not at all, or if an action is
    missing before the last step.
    """
    # Within a window each step is one bit. The bits sum to what they or to exactly if no step occurs twice,
    # which takes an integer per window rather than a set of all steps.
    bit = ibis.literal(1, type="int64") << (table.s % _WINDOW)
    # The largest of these tells the last step and whether that one is idle.
    step_and_idle = 2 * table.s + table.idle.cast("int64")
    rows = table.mutate(window=table.s // _WINDOW, bit=bit, step_and_idle=step_and_idle)
    windows = rows.group_by(["e", "window"]).agg(
        n=rows.count(),
        low=rows.s.min(),
        last=rows.step_and_idle.max(),
        total=rows.bit.sum(),
        any=rows.bit.bit_or(),
        idle=rows.idle.cast("int64").sum(),
    )
    episodes = windows.group_by("e").agg(
        n=windows.n.sum(),
        low=windows.low.min(),
        last=windows["last"].max(),
        nameless_steps=windows.window.isnull().any(),
        twice=(windows.total != windows["any"]).any(),
        idle=windows.idle.sum(),
    )
    gaps = episodes["last"] // 2 - episodes.low + 1 != episodes.n
    early = episodes.idle != episodes["last"] % 2
    faulty = episodes.e.isnull() | episodes.nameless_steps
    return episodes.select("e", "n", "low", broken=faulty | episodes.twice | gaps | early)


class Health(NamedTuple):
    """What can be wrong with the rows of a table, in numbers."""

    rows: int
    broken: int
    """Episodes with something wrong but where they start."""
    low: int
    """The smallest first step of an episode."""
    high: int
    """The largest first step of an episode."""

    @property
    def first(self) -> int:
        """From where steps count."""
        return 1 if self.low == self.high == 1 else 0

    @property
    def good(self) -> bool:
        """Whether all episodes are histories."""
        return self.rows > 0 and self.broken == 0 and self.low == self.high == self.first


def health(summary: Any) -> Health:
    """Return what a summary of episodes says altogether."""
    result = summary.agg(
        rows=summary.n.sum(),
        broken=summary.broken.cast("int64").sum(),
        low=summary.low.min(),
        high=summary.low.max(),
    ).to_pyarrow()
    row = result.to_pylist()[0]
    return Health(*(int(-1 if row[name] is None else row[name]) for name in Health._fields))


_log = logging.getLogger(__name__)

_MOST_GROUPS = 2_000_000


def count_table(
    source: Any,
    mdp: FactoredMDP,
    options: TableOptions,
    counter: RankCounter,
    *,
    progress: bool | None = None,
) -> Behaviour | None:
    """Count the observations of a trajectory table and return its behaviour; see `ObservationCounts.from_table`."""
    table = open_table(source, mdp, options)
    if all(part.path is None and part.query is None for part in table.parts):
        counter.add(dataset_from_table(source, mdp, options, progress=progress).observations)
    elif not _by_query(table, mdp, counter):
        _by_reading(table, mdp, counter, progress=progress)
    return read_metadata(table.parts).behaviour


def _by_query(table: OpenTable, mdp: FactoredMDP, counter: RankCounter) -> bool:
    """Count by a query on the source as it is; return False, with nothing counted, if something is unusual or wrong."""
    part = table.parts[0]
    if table.missing.further or table.encoders.reward is not None:
        return (
            False  # to an engine, a word that means missing is a word; and rewards are checked cell by cell
        )
    try:
        if part.query is not None:
            with quiet():
                return _query_counts(part.query, table, mdp, counter)
        if not _engine_understands(table):
            return False
        with engine() as (connection, _):
            files = connection.read_parquet([str(part.path) for part in table.parts], filename=table.per_file)
            return _query_counts(files, table, mdp, counter)
    except MissMDPError:
        raise
    except Exception as error:
        # Back ends differ in what they can do and in how they fail; reading tells what is really wrong.
        _log.info("counting by a query failed (%s); reading the rows instead", error)
        return False


def _engine_understands(table: OpenTable) -> bool:
    """Return whether all parts are Parquet files that have the same types and names without pitfalls."""
    first = table.parts[0]
    for part in table.parts:
        if part.schema is None or glob.has_magic(str(part.path)):
            return False
        # The engine does not tell upper from lower case.
        if len({name.lower() for name in part.columns}) < len(part.columns) or "filename" in part.columns:
            return False
        columns = table.encoders.needed(part)
        if columns != table.encoders.needed(first):
            return False
        if any(part.schema.field(name).type != first.schema.field(name).type for name in columns):
            return False
    return True


def _types_are_simple(schema: Any, table: OpenTable) -> bool:
    """Return whether values mean the same to the query engine as to Python."""
    names = table.encoders.names
    types = {name: schema[name] for name in table.encoders.needed(table.parts[0])}
    simple = all(t.is_integer() or t.is_string() or t.is_boolean() or t.is_floating() for t in types.values())
    whole = types[names.step].is_integer() and not types[names.step].is_unsigned_integer()
    episodes = types[names.episode].is_integer() or types[names.episode].is_string()
    numbers = all(types[name].is_integer() or types[name].is_floating() for name in table.bins)
    return simple and whole and episodes and numbers


def _query_counts(rows: Any, table: OpenTable, mdp: FactoredMDP, counter: RankCounter) -> bool:
    """Count rows in a back end; return False, with nothing counted, if anything about them is unusual or wrong."""
    if not _types_are_simple(rows.schema(), table):
        return False
    names, encoders = table.encoders.names, table.encoders
    places = {f"f{i}": name for i, name in enumerate(encoders.features)}
    chosen = rows.select(
        **{short: _grouped(rows[name], table, name) for short, name in places.items()},
        e=rows[names.episode],
        s=rows[names.step],
        action=rows[names.action],
        idle=_is_null(rows[names.action]),
        **({"file": rows["filename"]} if table.per_file and "filename" in rows.columns else {}),
    )
    asked: list[tuple[Any, ColumnEncoder | None]] = [
        (chosen.select(v=chosen.action).distinct(), encoders.action)
    ]
    if names.terminated in encoders.needed(table.parts[0]):
        asked.append((rows.select(v=rows[names.terminated]).distinct(), encoders.terminated))
    for query, encoder in asked:
        values = query.to_pyarrow().column("v")
        if encoder is not None and (encoder.encode(values, is_text=False) == UNKNOWN).any():
            return False
    if not health(episode_summary(_with_own_episodes(chosen))).good:
        return False
    return _grouped_counts(chosen, list(places), table, mdp, counter)


def _grouped(column: Any, table: OpenTable, name: str) -> Any:
    """Return what to group by: the values as they are, or the number of their bin."""
    if name not in table.bins:
        return column
    bins = sum((column >= edge).cast("int64") for edge in table.bins[name].edges)
    return ibis.ifelse(_is_null(column), ibis.null("int64"), bins)


def _is_null(column: Any) -> Any:
    return column.isnull() | column.isnan() if column.type().is_floating() else column.isnull()


def _with_own_episodes(chosen: Any) -> Any:
    """Return rows whose episodes are also told apart by file, if files number their own."""
    if "file" not in chosen.columns:
        return chosen
    return chosen.mutate(e=chosen.file + "\n" + chosen.e.cast("string"))


def _grouped_counts(
    chosen: Any, columns: list[str], table: OpenTable, mdp: FactoredMDP, counter: RankCounter
) -> bool:
    features = mdp.space.features
    query = chosen.group_by(columns).agg(n=chosen.count())
    # So many groups can only come from values that make no sense, such as measurements without bins.
    result = query.limit(_MOST_GROUPS + 1).to_pyarrow()
    if result.num_rows > _MOST_GROUPS:
        return False
    codes = np.empty((result.num_rows, len(columns)), dtype=np.int64)
    for place, (name, encoder) in enumerate(table.encoders.features.items()):
        values = result.column(columns[place])
        if name in table.bins:
            codes[:, place] = np.asarray(compute.fill_null(values, MISSING))
        else:
            codes[:, place] = encoder.encode(values, is_text=False)
    if (codes == UNKNOWN).any():
        return False
    counts = np.asarray(result.column("n"), dtype=np.int64)
    counter.add_ranks(features.rank(codes), counts)
    return True


def _by_reading(table: OpenTable, mdp: FactoredMDP, counter: RankCounter, *, progress: bool | None) -> None:
    """Count by reading batches."""
    episodes, orderly = Episodes(table.per_file), Orderly()
    dtype = mdp.space.features.code_dtype
    with show_progress("Counting", enabled=progress) as advance:
        for batch in encoded_batches(table.parts, table.encoders, episodes):
            counter.add(batch.observations.astype(dtype, copy=False))
            if orderly.so_far:
                orderly.add(batch.episode, batch.step, batch.actions == MISSING)
            advance(len(batch.step))
    if not episodes.ids:
        raise DataError(f"{all_parts(table.parts)}: the table has no rows")
    if not orderly.so_far:
        _check_in_any_order(table, progress=progress)


def _check_in_any_order(table: OpenTable, *, progress: bool | None) -> None:
    """Raise `DataError` unless rows make histories; they are compared across batches by way of a file."""
    episodes = Episodes(table.per_file)
    schema = pa.schema(
        {"e": pa.int64(), "s": pa.int64(), "idle": pa.bool_(), "part": pa.int32(), "row": pa.int64()}
    )
    with engine() as (connection, folder), reading("the rows of the table, sorted in a temporary file,"):
        path = folder / "rows.parquet"
        with (
            show_progress("Sorting", enabled=progress) as advance,
            parquet.ParquetWriter(path, schema) as file,
        ):
            for batch in encoded_batches(table.parts, table.encoders, episodes):
                n = len(batch.step)
                columns = [
                    batch.episode,
                    batch.step,
                    batch.actions == MISSING,
                    np.full(n, batch.part, dtype=np.int32),
                    np.arange(batch.row, batch.row + n),
                ]
                file.write_batch(pa.record_batch([pa.array(column) for column in columns], schema=schema))
                advance(n)
        _check(connection.read_parquet(str(path)), table, episodes)


def _check(rows: Any, table: OpenTable, episodes: Episodes) -> None:
    """Raise `DataError` for the first episode that is no history."""
    summary = episode_summary(rows)
    state = health(summary)
    if state.good:
        return
    broken = summary.filter(summary.broken | (summary.low != state.first))
    number = int(broken.e.min().to_pyarrow().as_py())
    found = rows.filter(rows.e == number).order_by(["s", "part", "row"]).to_pyarrow()
    part, row = (np.asarray(found.column(name)).tolist() for name in ("part", "row"))
    names = [part.name for part in table.parts]
    raise DataError(
        explain_episode(
            np.asarray(found.column("s")),
            np.where(np.asarray(found.column("idle")), MISSING, 0),
            episodes.ids[number],
            state.first,
            lambda place: Place(names[part[place]], row[place] + 1),
            table.encoders.names,
        )
    )
