"""Tables of results: what is written is what is read, whatever is in the cells."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_names import ACTIONS, FEATURES, VALUES
from missmdp.data.tables.cells import parquet
from missmdp.experiments.tables import write_table

WORDS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from([*FEATURES, *VALUES, *ACTIONS])


def read(path):
    match path.suffix:
        case ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        case ".json":
            return json.loads(path.read_text(encoding="utf-8"))
        case _:
            return parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), name=WORDS)
def test_names_and_values_of_any_kind_survive(tmp_path_factory, ending, rows, name):
    table = [{f"1{name}": one, "policy": other} for one, other in rows]
    path = tmp_path_factory.mktemp("table") / f"values.{ending}"
    write_table(table, path)
    assert read(path) == table


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_bytes_of_file_names_that_are_no_text_are_escaped(tmp_path, ending):
    path = tmp_path / f"values.{ending}"
    write_table([{"policy": "x\udcff", "settings": {"file": "y\udcff"}}], path)
    (row,) = read(path)
    settings = row["settings"] if ending == "json" else json.loads(row["settings"])
    assert settings == {"file": "y\udcff"}
    assert row["policy"] == ("x\udcff" if ending == "json" else r"x\udcff")
