"""Writing datasets as trajectory tables, so that reading them gives the same dataset; their metadata both ways.

Features keep their values where these have one type that tables know, and are written as words otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._version import __version__
from missmdp.data.binning import Binning
from missmdp.data.tables.cells import arrow_csv, pa, parquet
from missmdp.data.tables.matching import USUAL
from missmdp.data.tables.parts import CSV_SUFFIXES, PARQUET_SUFFIXES, Part
from missmdp.data.tables.structure import Names
from missmdp.errors import DataError, MissMDPError
from missmdp.files import removed_after
from missmdp.model.space import MISSING, NO_ACTION, FeatureSpace

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from missmdp.data.dataset import Behaviour, Dataset

_KEY = b"missmdp"


class TableMetadata(NamedTuple):
    """What is known about how a log came about."""

    seed: int | None = None
    behaviour: Behaviour | None = None
    bins: dict[str, Binning] | None = None


def _write_metadata(dataset: Dataset) -> dict[bytes, bytes]:
    """Return metadata for the schema of a table."""
    content = {
        "version": __version__,
        "seed": dataset.seed,
        "behaviour": dataset.behaviour,
        "bins": None if dataset.bins is None else {n: b.to_json() for n, b in dataset.bins.items()},
        "features_sha256": _digest(dataset.feature_space),
    }
    return {_KEY: json.dumps(content).encode()}


def read_metadata(parts: Sequence[Part]) -> TableMetadata:
    """Return what all parts agree on; metadata that make no sense count as absent."""
    each = [_parsed(part.metadata) for part in parts]
    first = each[0]
    return TableMetadata(
        first.seed if len(each) == 1 else None,
        first.behaviour if all(one.behaviour == first.behaviour for one in each) else None,
        first.bins if all(one.bins == first.bins for one in each) else None,
    )


def _parsed(metadata: Mapping[bytes, bytes]) -> TableMetadata:
    try:
        found = json.loads(metadata.get(_KEY, b"{}"))
    except (ValueError, RecursionError):
        return TableMetadata()
    if not isinstance(found, dict):
        return TableMetadata()
    content = cast("dict[str, Any]", found)
    seed, behaviour = content.get("seed"), content.get("behaviour")
    return TableMetadata(
        seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else None,
        behaviour if behaviour in ("blind", "adaptive") else None,
        _parsed_bins(content.get("bins")),
    )


def _parsed_bins(content: Any) -> dict[str, Binning] | None:
    if not isinstance(content, dict):
        return None
    try:
        return {name: Binning.from_json(value) for name, value in cast("dict[str, Any]", content).items()}
    except DataError:
        return None


def _digest(features: FeatureSpace) -> str:
    return hashlib.sha256(repr(list(features.as_dict().items())).encode(errors="replace")).hexdigest()


_CHUNK_ROWS = 1 << 20
_SIMPLE: dict[type, Any] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def to_arrow(dataset: Dataset) -> Any:
    """Return a dataset as a trajectory table."""
    schema, batches = _batches(dataset)
    return pa.Table.from_batches(list(batches), schema=schema)


def to_pandas(dataset: Dataset) -> pd.DataFrame:
    """Return a dataset as a pandas frame with nullable columns; words are categories."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissMDPError("to_pandas() needs pandas; install it, or use to_arrow()") from error
    nullable: dict[Any, Any] = {
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.float64(): pd.Float64Dtype(),
    }
    table = to_arrow(dataset).replace_schema_metadata(None)
    return table.to_pandas(types_mapper=nullable.get)


def to_polars(dataset: Dataset) -> pl.DataFrame:
    """Return a dataset as a polars frame."""
    try:
        import polars as pl
    except ImportError as error:
        raise MissMDPError("to_polars() needs polars; install it, or use to_arrow()") from error
    return cast("pl.DataFrame", cast("Any", pl).from_arrow(to_arrow(dataset)))


def to_csv(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as a CSV file, with tabs and compressed where its name says so."""
    _check_name(path, CSV_SUFFIXES, "CSV", "to_parquet for .parquet")
    _refuse_what_csv_cannot_tell(dataset)
    schema, batches = _batches(dataset, plain_words=True)
    name = str(path).lower()
    options = arrow_csv.WriteOptions(delimiter="\t" if name.endswith((".tsv", ".tsv.gz")) else ",")
    with (
        _replacing(path) as temporary,
        pa.output_stream(temporary, compression="gzip" if name.endswith(".gz") else None) as stream,
        arrow_csv.CSVWriter(stream, schema, write_options=options) as file,
    ):
        for batch in batches:
            file.write_batch(batch)


def to_parquet(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as a Parquet file, with checksums."""
    _check_name(path, PARQUET_SUFFIXES, "Parquet", "to_csv for .csv")
    schema, batches = _batches(dataset)
    with (
        _replacing(path) as temporary,
        parquet.ParquetWriter(temporary, schema, write_page_checksum=True) as file,
    ):
        for batch in batches:
            file.write_batch(batch)


def _check_name(path: str | Path, suffixes: tuple[str, ...], kind: str, other: str) -> None:
    """Raise `DataError` for a name by which reading would not know what a file holds."""
    if not str(path).lower().endswith(suffixes):
        raise DataError(
            f"{path}: the name of a {kind} file must end in {' or '.join(suffixes)}, which tells its type "
            f"(use {other})"
        )


def _batches(dataset: Dataset, *, plain_words: bool = False) -> tuple[Any, Iterator[Any]]:
    """Return the schema and the rows, a chunk at a time; `plain_words` leaves out dictionaries of words."""
    names = Names().checked(dataset.feature_space.names)
    features = dataset.feature_space
    lookups = {
        name: _lookup(values, f"feature {name!r}", plain_words=plain_words)
        for name, values in features.as_dict().items()
    }
    actions = _lookup(dataset.action_names, "the actions", plain_words=plain_words)
    ids = _id_lookup(dataset)
    has_rewards = dataset.logged_rewards is not None or dataset.states is not None
    rewards = dataset.rewards if has_rewards and names.reward not in features.names else None
    has_end = names.terminated not in features.names

    def rows(start: int, stop: int) -> Any:
        here = slice(start, min(stop, dataset.n_steps))
        row = np.arange(start, here.stop)
        episode = np.searchsorted(dataset.offsets, row, side="right") - 1
        taken = dataset.actions[here]
        columns: dict[str, Any] = {
            names.episode: ids(episode),
            names.step: pa.array(row - dataset.offsets[episode]),
        }
        for position, (name, look_up) in enumerate(lookups.items()):
            columns[name] = look_up(dataset.observations[here, position])
        columns[names.action] = actions(taken)
        if rewards is not None:
            nothing = (taken == NO_ACTION) | np.isnan(rewards[here])
            columns[names.reward] = pa.array(rewards[here], mask=nothing)
        if has_end:
            last = row == dataset.offsets[episode + 1] - 1
            columns[names.terminated] = pa.array(last & dataset.terminated[episode])
        return pa.RecordBatch.from_pydict(columns)

    schema = rows(0, 0).schema.with_metadata(_write_metadata(dataset))
    starts = range(0, dataset.n_steps, _CHUNK_ROWS)
    return schema, (rows(start, start + _CHUNK_ROWS).cast(schema) for start in starts)


def _lookup(values: Sequence[Any], what: str, *, plain_words: bool) -> Callable[[NDArray[Any]], Any]:
    """Return the function from codes to a column of values."""
    kinds: set[type] = {type(value) for value in values}
    kind = next(iter(kinds)) if len(kinds) == 1 else object
    in_range = kind is not int or all(-(2**63) <= value < 2**63 for value in values)
    if kind not in _SIMPLE or not in_range:
        values, kind = _words(values, what), str
    try:
        array = pa.array(values, type=_SIMPLE[kind])
    except UnicodeEncodeError as error:
        raise DataError(f"{what}: {error.object!r} cannot be written as text") from error

    def look_up(codes: NDArray[Any]) -> Any:
        indices = pa.array(codes.astype(np.int32), mask=codes == MISSING)
        return (
            pa.DictionaryArray.from_arrays(indices, array)
            if kind is str and not plain_words
            else array.take(indices)
        )

    return look_up


def _words(values: Sequence[Any], what: str) -> list[str]:
    words = [str(value) for value in values]
    twice = next((place for place, word in enumerate(words) if words.index(word) < place), None)
    if twice is not None:
        first = values[words.index(words[twice])]
        raise DataError(
            f"{what}: {first!r} and {values[twice]!r} are written alike, so a table cannot tell them apart"
        )
    return words


def _id_lookup(dataset: Dataset) -> Callable[[NDArray[np.int64]], Any]:
    ids = dataset.episode_ids
    if ids is None:
        return pa.array
    return _lookup(ids, "the episode ids", plain_words=True)


def _refuse_what_csv_cannot_tell(dataset: Dataset) -> None:
    """Raise `DataError` for words that would be read as something else, since spaces around words do not count."""
    for name, values in {**dataset.features, "action": dataset.action_names}.items():
        words = [str(value).strip() for value in values]
        for word, value in zip(words, values, strict=True):
            if not word:
                raise DataError(
                    f"{name!r}: the value {value!r} would be an empty cell in CSV; write Parquet instead"
                )
            if words.count(word) > 1:
                raise DataError(
                    f"{name!r}: {value!r} and another value look alike in CSV; write Parquet instead"
                )
    for name in dataset.episode_ids or ():
        if str(name).strip() != str(name) or USUAL.include(str(name), is_text=True):
            raise DataError(
                f"the episode {name!r} would be read as another one from CSV; write Parquet instead"
            )


@contextmanager
def _replacing(path: str | Path) -> Generator[Path, None, None]:
    """Give a temporary name beside a path, and rename the file to it once it is complete."""
    try:
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with removed_after(path.with_name(f".{path.name}.{uuid.uuid4().hex}")) as temporary:
            yield temporary
            os.replace(temporary, path)
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, MissMDPError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise MissMDPError(f"{path}: cannot be written ({reason})") from error
