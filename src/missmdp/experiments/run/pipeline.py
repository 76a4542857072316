"""The main job: from a model and data to a policy, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from missmdp.benchmarks.registry import load_benchmark
from missmdp.data.dataset import Dataset
from missmdp.errors import Argument, DataError, ParameterError
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.record.coding import RunIdentity, plain
from missmdp.experiments.run.ahead import compiling_ahead
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.reading import data_hash
from missmdp.experiments.run.result import Problem, RunResult
from missmdp.experiments.run.settings import RunSettings
from missmdp.experiments.run.stages import Stages
from missmdp.experiments.run.work import RunWork
from missmdp.files import held_folder
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP


def as_problem(model: Any, name: str | None, *, unknown_truth: bool) -> Problem:
    """Return the problem that a miss-MDP, an MDP or a benchmark's name poses.

    Raises
    ------
    ParameterError
        If it is none of these.
    MissMDPError
        If it cannot be saved, which what is learned will have to be.
    """
    source = name if name is not None else model if isinstance(model, str) else None
    if isinstance(model, str):
        model = load_benchmark(model)
    if isinstance(model, MissMDP):
        mdp, known = model.mdp, model
    elif isinstance(model, FactoredMDP):
        mdp, known = model, None
    else:
        raise ParameterError("model", model, "a MissMDP, a FactoredMDP or the name of a benchmark")
    truth = None if unknown_truth else known
    own = known.name if known is not None else None
    # What is known of M is part of the problem only where it is to be looked at.
    hashed = truth or MissMDP(mdp, MissingnessFunction.fully_observed(mdp))
    return Problem(
        name=own or source or "model",
        source=source or own or "model",
        mdp=mdp,
        truth=truth,
        simulator=known,
        sha256=model_hash(hashed),
    )


def run(
    model: MissMDP | FactoredMDP | str,
    data: Any = None,
    folder: str | Path = "missmdp-run",
    settings: RunSettings | None = None,
    *,
    name: str | None = None,
    table: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> RunResult:
    """Return what learning, planning and evaluating find, and write all of it to a folder, with a report.

    Data are read or simulated, checked against the model and described, and a diagnosis says why values are
    missing. Each learner learns from them how values go missing, with bounds, or with bootstrap intervals, which
    are not guaranteed. The learners are compared on data that they have not seen, and one is recommended. A policy
    is computed for what each has learned, and the policies are evaluated: in the true model if it is known, next to
    the optimal policy, the prior policy and random actions; otherwise in one world per learner, in which that
    learner is right. A sensitivity analysis shows how much the value of the recommended policy depends on the
    model. Finally, a certificate says how far from optimal it can be in the true model.

    Results are written as soon as they are ready. Ctrl-C while solving continues with the best policy so far;
    during the diagnosis, the sensitivity analysis or the certificate, it skips that part.

    Parameters
    ----------
    model
        A miss-MDP, which is then the truth; an MDP, if it is not known how values go missing; or the name of a
        benchmark.
    data
        A `Dataset`, or a table as `Dataset.from_table` reads it; None to simulate the miss-MDP.
    folder
        Where everything is written. It must be empty, or contain this very run.
    settings
        How to do it.
    name
        What to call the model in reports.
    table
        How to read a table: arguments of `Dataset.from_table` by name.
    overwrite
        Whether to replace another run in the folder.
    progress
        Whether to show stages on standard error; by default on a terminal.

    Raises
    ------
    DataError
        If there is nothing to learn from, or the folder cannot be used: another run may be under way there.
    """
    settings = RunSettings() if settings is None else settings
    problem = as_problem(model, name, unknown_truth=settings.unknown_truth)
    _check(problem, data, settings)
    where = RunFolder(folder)
    options = dict(table or {})
    files = files_of(data)
    if data is not None and not files and not isinstance(data, Dataset):
        data = Dataset.from_table(data, problem.mdp, **options, progress=False)
    # Files are known by their names, and what is in memory by what is in it.
    content = data_hash(data) if isinstance(data, Dataset) else None
    own = {**settings.as_dict(simulated=data is None), "table": _table_options(options), "data": content}
    identity = RunIdentity(plain(own), problem.sha256, files)
    with held_folder(where.path):
        where.check(identity, overwrite=overwrite)
        with compiling_ahead():
            return RunWork(problem, settings, where, identity, Stages(progress)).do(data, options)


def files_of(data: Any) -> list[str]:
    """Return the files that data come from, as they were given; what is in memory has none."""
    if isinstance(data, str | Path):
        return [str(data)]
    listed = cast("list[Any]", data) if isinstance(data, list | tuple) else []
    return [str(item) for item in listed if isinstance(item, str | Path)]


def _check(problem: Problem, data: Any, settings: RunSettings) -> None:
    """Raise `DataError` for what cannot go well; call it before long work."""
    if data is None and problem.simulator is None:
        raise DataError(
            f"{problem.name}: it is not known how values go missing in it, so no data can be simulated; pass ",
            Argument("data"),
        )
    for make in settings.makers(problem.mdp).values():
        make().check_parameters(problem.mdp.space.features)


def _table_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table is read, for a file."""
    bins: Mapping[str, Any] = options.get("bins") or {}
    missing = list(options.get("missing", ()))
    return {
        **options,
        "missing": missing,
        "bins": {column: list(binning.edges) for column, binning in bins.items()},
    }
