"""Random search for PPO's hyperparameters, as in the paper: train, evaluate, keep the best.

Trial k's hyperparameters and seed depend on (seed, k) alone. So a search can be stopped anywhere and goes on where it
was, in any number of sessions, and more trials extend fewer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from missmdp.checks import checked_integer, checked_seed
from missmdp.errors import ParameterError
from missmdp.evaluation.value import Evaluation, evaluate
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.ppo_trials import (
    Trial,
    TrialFolder,
    fresh_seed,
    sample_settings,
    selection_seed,
    training_seed,
)
from missmdp.experiments.tables import write_table
from missmdp.files import held_folder, write_atomically
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings
from missmdp.plan.ppo.solver import PPO, PPOResult
from missmdp.plan.stopping import raise_if_interrupted
from missmdp.words import decimals, signed

_log = logging.getLogger(__name__)

Trainer = Callable[[MissMDP, PPOSettings, int], PPOResult]
"""(model, settings, seed) → what training gave."""
SearchStatus = Literal["finished", "interrupted"]
"""Whether all trials are finished, or Ctrl-C came before."""


@dataclass(frozen=True, eq=False)
class PPOSearch:
    """The trials of a search, and what its winner is worth."""

    trials: tuple[Trial, ...]
    """Finished trials, the best first."""
    wanted: int
    """How many trials were asked for."""
    again: Evaluation
    """The winner in episodes that it was not chosen by."""
    policy: PPOPolicy
    """The winner."""
    folder: Path
    status: SearchStatus

    @property
    def best(self) -> Trial:
        """The trial with the highest value. The best of several is optimistic; see `again`."""
        return self.trials[0]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per trial, the best first."""
        return [trial.row() for trial in self.trials]

    def __str__(self) -> str:
        return f"{_estimate(self.again)} with the settings of trial {self.best.number}, the best of {len(self.trials)}"

    def __repr__(self) -> str:
        return f"PPOSearch({self})"

    def describe(self) -> str:
        """Return what came out, in a few sentences."""
        lines = [
            f"Trial {self.best.number} is the best of {len(self.trials)}: {_estimate(self.best)} over "
            f"{self.best.episodes:,} episodes.",
            f"In {self.again.episodes:,} other episodes it is worth {_estimate(self.again)}; this is the figure to "
            "report, since the best of several is chosen by its luck too.",
        ]
        if self.status == "interrupted":
            done = sum(trial.number <= self.wanted for trial in self.trials)
            lines.append(f"Interrupted: {done} of {self.wanted} trials are finished; run it again to resume.")
        return "\n".join(lines)


def _estimate(of: Trial | Evaluation) -> str:
    value = of.value if isinstance(of, Trial) else of.mean
    places = decimals(of.stderr)
    return f"{signed(value, places)} ± {of.stderr:.{places}f}"


def search_ppo(
    model: MissMDP,
    folder: str | Path,
    trials: int = 20,
    steps: int = 1_000_000,
    memory: bool = False,
    seed: int = 0,
    episodes: int = 2000,
    progress: bool | None = None,
    *,
    horizon: int | None = None,
    report: Callable[[Trial, bool], None] | None = None,
    train: Trainer | None = None,
) -> PPOSearch:
    """Return the best of several PPO policies with hyperparameters at random, from the paper's search space.

    Finished trials are kept in the folder. Another call with the same model and settings goes on with it, and may ask
    for more trials. If it asks for fewer, those beyond are ranked all the same. Ctrl-C ends the search with the trials
    that are finished. In the end the folder also has the winner (`best.mmpolicy`), its hyperparameters (`best.json`)
    and a table of all trials (`trials.csv`).

    Parameters
    ----------
    model
        What to train in.
    folder
        Where finished trials are kept.
    trials
        How many trials to make.
    steps
        Steps to train for, per trial.
    memory
        Whether networks see the last frames rather than the current observation alone.
    seed
        For everything random.
    episodes
        How many episodes each trial is evaluated on; actions are drawn from the network's distribution.
    progress
        Whether to show progress; by default on a terminal.
    horizon
        The most decisions per episode, in training and evaluation; by default the model's L.
    report
        Called with each trial when it is finished, and whether it was found in the folder.
    train
        How to train; by default with `PPO`.

    Raises
    ------
    DataError
        If the folder holds a search of another model, or with other settings, or another one is under way there.
    """
    search = _Search(
        model=checked_model(model),
        seed=checked_seed(seed),
        # Made for a trial, since that checks what is given.
        common=sample_settings(0, 1, steps=steps, memory=memory, horizon=horizon),
        episodes=_checked_episodes(episodes),
        progress=progress,
        train=_trainer(progress) if train is None else train,
    )
    checked_integer("trials", trials, least=1)
    with held_folder(folder):
        return search.do(TrialFolder(folder, search.identity()), trials, report)


@dataclass(frozen=True)
class _Search:
    """What all trials of a search have in common."""

    model: MissMDP
    seed: int
    common: PPOSettings
    episodes: int
    progress: bool | None
    train: Trainer

    def identity(self) -> dict[str, Any]:
        """Return what makes the search what it is."""
        return {
            "model": model_hash(self.model),
            "steps": self.common.steps,
            "memory": self.common.memory,
            "seed": self.seed,
            "episodes": self.episodes,
            "horizon": self.common.horizon,
        }

    def settings(self, number: int) -> PPOSettings:
        common = self.common
        return sample_settings(
            self.seed, number, steps=common.steps, memory=common.memory, horizon=common.horizon
        )

    def training_seed(self, number: int) -> int:
        return training_seed(self.seed, number)

    def finished(self, store: TrialFolder) -> dict[int, Trial]:
        """Return all trials that the folder has, by number."""
        read = {number: store.read(number) for number in store.numbers()}
        return {number: trial for number, trial in read.items() if trial is not None}

    def value_of(self, policy: PPOPolicy, seed: int) -> Evaluation:
        return evaluate(
            policy, self.model, self.episodes, seed, horizon=self.common.horizon, progress=self.progress
        )

    def do(self, store: TrialFolder, trials: int, report: Callable[[Trial, bool], None] | None) -> PPOSearch:
        """Do the trials that the folder does not have, and return what came of all."""
        finished = self.finished(store)
        status: SearchStatus = "finished"
        for number in range(1, trials + 1):
            known = number in finished
            try:
                if not known:
                    finished[number] = self.run(number, store)
            except KeyboardInterrupt:
                if not finished:
                    raise
                status = "interrupted"
                break
            if report is not None:
                report(finished[number], known)
        ranked = tuple(sorted(finished.values(), key=lambda trial: (-trial.value, trial.number)))
        policy = store.policy(ranked[0].number)
        _write_winner(store, ranked, policy)
        again = self.value_of(policy, fresh_seed(self.seed))
        return PPOSearch(ranked, trials, again, policy, store.path, status)

    def run(self, number: int, store: TrialFolder) -> Trial:
        """Train, evaluate and keep a trial; raise `KeyboardInterrupt` if Ctrl-C came in between."""
        settings, own_seed = self.settings(number), self.training_seed(number)
        result = self.train(self.model, settings, own_seed)
        raise_if_interrupted(result.status)
        evaluation = self.value_of(result.policy, selection_seed(self.seed))
        raise_if_interrupted(evaluation.status)
        trial = Trial(
            number=number,
            settings=settings,
            training_seed=own_seed,
            value=evaluation.mean,
            stderr=evaluation.stderr,
            episodes=evaluation.episodes,
            steps=result.steps,
            seconds=result.seconds,
        )
        store.write(trial, result.policy)
        _log.info("trial %d: %s", number, evaluation)
        return trial


def _write_winner(store: TrialFolder, ranked: tuple[Trial, ...], policy: PPOPolicy) -> None:
    policy.save(store.path / "best.mmpolicy")
    write_atomically(store.path / "best.json", f"{ranked[0].settings.to_json()}\n".encode())
    write_table([trial.row() for trial in ranked], store.path / "trials.csv")


def _checked_episodes(episodes: int) -> int:
    if checked_integer("episodes", episodes, least=1) < 2:
        problem = "one episode has no error; evaluate at least two"
        raise ParameterError("episodes", episodes, "at least 2", problem)
    return episodes


def _trainer(progress: bool | None) -> Trainer:
    def train(model: MissMDP, settings: PPOSettings, seed: int) -> PPOResult:
        return PPO.from_settings(settings, seed=seed, progress=progress).solve(model)

    return train
