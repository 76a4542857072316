"""A cluster of two worker processes, one of which is killed on the way."""

import os
import signal
from pathlib import Path

import pytest

from experiments.reproduce.pretend import TINY, pretend, slow_pretend
from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.runner import reproduce

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:::distributed", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


def test_a_killed_worker_changes_nothing(cluster, tmp_path):
    with distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
    killed = []

    def kill_one(finished, wanted, cell, seconds):
        if finished == 5:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    done = reproduce(
        TINY,
        tmp_path / "cluster",
        dask=cluster.scheduler_address,
        progress=False,
        report=kill_one,
        work=slow_pretend,
    )
    assert killed
    assert (done.status, done.failed) == ("finished", {})
    reproduce(TINY, tmp_path / "here", workers=1, progress=False, work=pretend)
    assert tables(tmp_path / "cluster") == tables(tmp_path / "here")


def tables(folder):
    return {path.name: path.read_bytes() for path in (Path(folder) / "tables").iterdir()}


def test_nobody_there(tmp_path):
    with pytest.raises(MissMDPError, match="no Dask scheduler answers"):
        reproduce(TINY, tmp_path, dask="tcp://127.0.0.1:9", progress=False, work=pretend)


def test_workers_of_another_version_are_refused(cluster, tmp_path, monkeypatch):
    from missmdp.experiments.grid import executors

    monkeypatch.setattr(executors, "__version__", "0.0.1")
    with pytest.raises(MissMDPError, match=r"this is 0\.0\.1"):
        reproduce(TINY, tmp_path, dask=cluster.scheduler_address, progress=False, work=pretend)
