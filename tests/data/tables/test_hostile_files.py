"""Tables are read from regular files only: what may never end, or never begin, is refused in one line."""

import errno
import os
from pathlib import Path

import pytest

import missmdp as mm

MDP = mm.load_benchmark("example-1").mdp


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no such devices")
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_pipes_and_devices_are_no_logs(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"zero{ending}").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(mm.DataError, match=r"cannot be read \(it is a pipe or device, not a file\)"):
            mm.Dataset.from_table(tmp_path / f"{name}{ending}", MDP)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no such devices")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_pipes_and_devices_are_no_tables_of_a_model(tmp_path, ending):
    path = tmp_path / f"transitions{ending}"
    path.symlink_to("/dev/zero")
    with pytest.raises(mm.FormatError, match="cannot be read .it is a pipe or device"):
        mm.FactoredMDP.from_tables(path, {"a": [1]}, {"a": [1]})


def test_a_folder_with_what_is_no_file_in_it(tmp_path):
    os.mkfifo(tmp_path / "log.csv")
    with pytest.raises(mm.DataError, match="the folder contains no tables"):
        mm.Dataset.from_table(tmp_path, MDP)


@pytest.mark.parametrize("where", ["logs", "logs/inner"])
def test_a_folder_that_cannot_be_looked_into_is_not_said_to_be_empty(tmp_path, monkeypatch, where):
    (tmp_path / "logs" / "inner").mkdir(parents=True)
    (tmp_path / "logs" / ".hidden").mkdir()
    (tmp_path / "logs" / "log.csv").write_text("a\n1\n")
    look = os.scandir

    def refuse(path):
        if Path(path) in (tmp_path / where, tmp_path / "logs" / ".hidden"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(mm.DataError, match=f"{where} cannot be read .Permission denied"):
        mm.Dataset.from_table(tmp_path / "logs", MDP)


def test_a_row_that_is_no_text_is_refused_without_a_traceback_beside_it(tmp_path):
    """Arrow would print one, which pytest turns into a failure."""
    path = tmp_path / "log.csv"
    rows = "".join(f"0,{step},x,y,guess x\n" for step in range(20_000))
    path.write_bytes(f"episode,step,first,second,action\n{rows}".encode() + b"0,20000,\xff,a,too,many,x,y\n")
    with pytest.raises(mm.DataError, match="cannot be read"):
        mm.Dataset.from_table(path, MDP)
