"""The data of a run, read or simulated, with what can be said of them before anything is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from missmdp.data.collect import collect
from missmdp.data.dataset import Dataset
from missmdp.data.description.describe import describe
from missmdp.data.validation import validate
from missmdp.errors import DataError
from missmdp.evaluation.likelihood import log_likelihood
from missmdp.experiments.run.result import Log, Problem
from missmdp.experiments.run.settings import RunSettings

__all__ = ["read_log"]


def read_log(
    data: Any, table: Mapping[str, Any], files: tuple[str, ...], problem: Problem, settings: RunSettings
) -> Log:
    """Return the data, simulated where there are none.

    Parameters
    ----------
    data
        A dataset, or a table as `Dataset.from_table` reads it; None to simulate.
    table
        How to read a table.
    files
        Where it comes from, as it was given.
    """
    dataset = _dataset(data, table, problem, settings)
    report = validate(dataset, problem.mdp, progress=False)
    return Log(
        dataset,
        data is None,
        files,
        describe(dataset),
        report,
        0 if data is None or not report.ok else _ruled_out(dataset, problem),
    )


def _ruled_out(dataset: Dataset, problem: Problem) -> int:
    """Return how many episodes are impossible as values go missing in the truth."""
    return 0 if problem.truth is None else len(log_likelihood(dataset, problem.truth).impossible)


def _dataset(data: Any, table: Mapping[str, Any], problem: Problem, settings: RunSettings) -> Dataset:
    mdp, simulator = problem.mdp, problem.simulator
    if data is None:
        assert simulator is not None
        return collect(simulator, settings.steps, seed=settings.seeds.data, progress=False)
    if isinstance(data, Dataset):
        if data.mdp.space.features != mdp.space.features or data.mdp.actions != mdp.actions:
            raise DataError("the dataset has other features, values or actions than the model")
        return data
    return Dataset.from_table(data, mdp, **table, progress=False)
