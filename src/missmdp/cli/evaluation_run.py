"""What `missmdp evaluate` does, one thing after another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from missmdp.cli.policy_words import AskedPolicy
from missmdp.cli.wording import what_is_wrong
from missmdp.errors import MissMDPError, ModelError
from missmdp.evaluation.compare import Comparison
from missmdp.experiments.baselines import BaselineSettings, MadePolicy
from missmdp.experiments.kept_policies import PolicyFolder
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["EvaluationRun"]


class EvaluationRun:
    """One evaluation: policies are made, simulated, printed and written.

    Whoever reads what is printed may go: then the work is done all the same, and written if it was to be.

    Parameters
    ----------
    asked
        The policies.
    model, shown
        The model to act in, and what it is called.
    settings
        How baselines are made.
    options
        What was typed, by name.
    quiet
        Whether to print values alone.
    """

    def __init__(
        self,
        asked: Sequence[AskedPolicy],
        model: MissMDP | POMDP,
        shown: str,
        settings: BaselineSettings,
        options: dict[str, Any],
        *,
        quiet: bool,
    ) -> None:
        self.asked = asked
        self.model = model
        self.shown = shown
        self.settings = settings
        self.options = options
        self.quiet = quiet
        self.progress = False if quiet else None
        self.failed: list[str] = []
        self._gone: OSError | SystemExit | None = None

    def run(self, name: str, output: Path | None, returns: Path | None) -> None:
        """Do it all; raise in the end if something could not be kept, written or printed."""
        made = self.make_all()
        comparison = self.compare(made)
        self.show(comparison, made)
        self.write(comparison, made, name, output, returns)
        if self.failed:
            raise click.ClickException("; ".join(self.failed))
        if self._gone is not None:
            raise self._gone

    def _say(self, show: Callable[..., object], *arguments: Any, **options: Any) -> None:
        if self._gone is not None:
            return
        try:
            show(*arguments, **options)
        except (OSError, SystemExit) as gone:
            # rich leaves the program where nobody reads any more.
            self._gone = gone

    def make_all(self) -> dict[str, MadePolicy]:
        """Return all policies by name: files first, so that what is wrong with them is known before long work."""
        from missmdp.cli.policy_words import read_policy
        from missmdp.cli.printing_solved import print_problem
        from missmdp.cli.printing_values import print_made, print_setting
        from missmdp.evaluation.arena import Arena
        from missmdp.experiments.kept_policies import PolicyFolder

        options = self.options
        arena = Arena(
            self.model, options["seed"], options["horizon"], control_variate=options["control_variate"]
        )
        read: dict[str, MadePolicy] = {}
        for policy in self.asked:
            if policy.path is not None:
                read[policy.name] = read_policy(policy.path, self.model)
                try:
                    arena.store(read[policy.name].policy)
                except ModelError as error:
                    raise ModelError(f"{policy.path}: {error}") from error
        if not self.quiet:
            self._say(print_problem, self.model, self.shown, observe_initial=None)
            self._say(print_setting, arena, options["episodes"], options["until_stderr"])
        folder = options["save_policies"]
        kept = None if folder is None else PolicyFolder(folder, self.model, self.settings)
        made: dict[str, MadePolicy] = {}
        baselines: dict[str, tuple[MadePolicy, str]] = {}
        for policy in self.asked:
            note = ""
            if policy.baseline is None:
                made[policy.name] = read[policy.name]
            else:
                if policy.baseline not in baselines:
                    baselines[policy.baseline] = self._make(policy.baseline, kept)
                made[policy.name], note = baselines[policy.baseline]
            if not self.quiet:
                self._say(print_made, policy.name, made[policy.name], note)
        return made

    def _make(self, baseline: str, folder: PolicyFolder | None) -> tuple[MadePolicy, str]:
        """Return a baseline, and what is to be said about where it is kept."""
        from missmdp.experiments.baselines import make_baseline
        from missmdp.experiments.kept_policies import KEPT

        if folder is None or baseline not in KEPT:
            return make_baseline(baseline, self.model, self.settings, progress=self.progress), ""
        found = folder.find(baseline)
        if found is not None:
            return found, f"found in {folder.file(baseline)}"
        made = make_baseline(baseline, self.model, self.settings, progress=self.progress)
        try:
            return made, f"kept in {folder.keep(baseline, made)}"
        except (MissMDPError, OSError) as error:
            self.failed.append(what_is_wrong(error))
            return made, ""

    def compare(self, made: dict[str, MadePolicy]) -> Comparison:
        """Return all policies' values."""
        from missmdp.evaluation.compare import compare
        from missmdp.experiments.value_table import named_end

        if not self.quiet:
            # Why simulating ended is said below the table.
            logging.getLogger("missmdp.evaluation").addHandler(logging.NullHandler())
        names = ("episodes", "seed", "until_stderr", "max_episodes", "horizon", "control_variate", "timeout")
        reference = self.options["reference"] or named_end("optimal", made) or next(iter(made))
        return compare(
            {name: policy.policy for name, policy in made.items()},
            self.model,
            reference=reference,
            workers=self.options["workers"],
            progress=self.progress,
            **{name: self.options[name] for name in names},
        )

    def show(self, comparison: Comparison, made: dict[str, MadePolicy]) -> None:
        """Print the results."""
        from missmdp.cli.printing_values import print_notes, print_values

        if self.quiet:
            self._say(click.echo, str(comparison))
            return
        self._say(print_values, comparison, made, confidence=self.options["confidence"])
        self._say(print_notes, comparison, made, until_stderr=self.options["until_stderr"])

    def write(
        self,
        comparison: Comparison,
        made: dict[str, MadePolicy],
        model: str,
        output: Path | None,
        returns: Path | None,
    ) -> None:
        """Write what can be written, and take note of what cannot."""
        from missmdp.experiments.tables import write_columns, write_table
        from missmdp.experiments.value_table import return_columns, value_rows

        def write_values(path: Path) -> None:
            rows = value_rows(comparison, made, self._about(model), confidence=self.options["confidence"])
            write_table(rows, path)

        def write_returns(path: Path) -> None:
            write_columns(return_columns(comparison), path)

        for path, write in ((output, write_values), (returns, write_returns)):
            if path is None:
                continue
            try:
                write(path)
                if not self.quiet:
                    self._say(click.echo, f"Written to {path}")
            except (MissMDPError, OSError) as error:
                self.failed.append(what_is_wrong(error))

    def _about(self, model: str) -> dict[str, Any]:
        """Return what all rows have in common."""
        from missmdp.experiments.grid.fingerprint import model_hash

        try:
            fingerprint = model_hash(self.model)
        except MissMDPError:
            # Values that no file can hold have no hash; that is no reason to write nothing.
            fingerprint = None
        names = ("fully_observed", "until_stderr", "max_episodes", "timeout")
        return {"model": model, "model_sha256": fingerprint, **{name: self.options[name] for name in names}}
