"""The data of a run, read or simulated, and what can be said of them before anything is learned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from missmdp.data.collect import collect
from missmdp.data.dataset import Dataset, check_terms
from missmdp.data.description.describe import describe
from missmdp.data.validation import validate
from missmdp.errors import MissMDPError
from missmdp.evaluation.likelihood import log_likelihood
from missmdp.experiments.run.result import Log, Problem, Reasons
from missmdp.experiments.run.settings import RunSettings
from missmdp.learn.diagnosis.diagnose import diagnose
from missmdp.model.mdp import FactoredMDP


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
        check_terms(data, mdp)
        return data.with_mdp(mdp) if data.mdp is None else data
    return Dataset.from_table(data, mdp, **table, progress=False)


_DRAWS = 50
"""Logs that the bootstrap draws for intervals of effects."""


def find_reasons(dataset: Dataset, mdp: FactoredMDP, seed: int) -> Reasons:
    """Return why values are missing; whatever goes wrong with that is told, and not raised."""
    try:
        return Reasons(diagnose(dataset, mdp, draws=_DRAWS, seed=seed, dynamics=False, progress=False))
    except KeyboardInterrupt:
        return Reasons(None, "it was interrupted")
    except MissMDPError as error:
        return Reasons(None, str(error))
    except MemoryError:
        return Reasons(None, "there is too little memory for it")
    except (ArithmeticError, ValueError):
        # Odd logs make odd matrices; that is no reason to do without a policy.
        return Reasons(None, "the computation failed on these data")


def data_hash(dataset: Dataset) -> str:
    """Return the SHA-256 of what was seen and done in a log."""
    digest = hashlib.sha256()
    for array in (dataset.observations, dataset.actions, dataset.offsets):
        # Whatever the width of integers.
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    return digest.hexdigest()
