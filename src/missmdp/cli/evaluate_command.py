"""The command `evaluate`: what policies are worth, side by side."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.errors import MissMDPError, ModelError

if TYPE_CHECKING:
    from missmdp.cli.policy_words import AskedPolicy
    from missmdp.evaluation.compare import Comparison
    from missmdp.experiments.baselines import BaselineSettings, MadePolicy
    from missmdp.experiments.kept_policies import PolicyFolder
    from missmdp.model.missmdp import MissMDP
    from missmdp.model.pomdp import POMDP
    from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["evaluate"]

EPILOG = """\b
Examples:
  missmdp evaluate icu-smar
  missmdp evaluate icu-smar --policy optimal --policy mine=icu.mmpolicy --save-policies made
  missmdp evaluate icu-smar --policy optimal --policy pomcp --episodes 200
  missmdp evaluate icu-smar --policy icu.mmpolicy --control-variate --until-stderr 0.05
  missmdp evaluate learned.mmdp --policy ppo --ppo-settings tuned/best.json -o values.csv
  missmdp evaluate tiger.pomdp --policy optimal --policy random --horizon 100

\b
Policies:
  random      uniformly random actions
  prior       optimal if every feature goes missing with probability 0.5
  optimal     optimal for MODEL, as far as it is solved
  pomcp       plans online by tree search
  ppo         a network that is trained on the current observation
  ppo-memory  a network that is trained on the last observations and actions
  FILE        .mmpolicy, or .policyx of a policy for MODEL

MODEL is a benchmark's name, an .mmdp file, module:function, or a .pomdp or .pomdpx file (for random, optimal, pomcp and
files of policies).
"""

_FILE = click.Path(path_type=Path)
_SECONDS = click.FloatRange(min=0.0, min_open=True)


@click.command(epilog=EPILOG)
@click.argument("model")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="POLICY",
    help="A policy's name or file, or NAME=FILE; repeat. By default random, prior and optimal.",
)
@click.option(
    "--reference", metavar="NAME", help="Compare with this policy; by default optimal, or the first."
)
@click.option("--fully-observed", is_flag=True, help="In the model in which nothing goes missing.")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Episodes per policy; with --until-stderr, at least.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="For the episodes, which are the same for all policies.",
)
@click.option(
    "--until-stderr",
    type=_SECONDS,
    metavar="ERROR",
    help="Go on until the standard error of every difference, or of the value of a single policy, is at most this.",
)
@click.option("--max-episodes", type=click.IntRange(min=1), help="The most episodes with --until-stderr.")
@click.option("--horizon", type=click.IntRange(min=1), help="The most decisions per episode.")
@click.option(
    "--control-variate",
    is_flag=True,
    help="Subtract luck that the fully observed MDP explains: smaller errors.",
)
@click.option(
    "--timeout", type=_SECONDS, metavar="SECONDS", help="For simulating all policies; by default no limit."
)
@click.option("--workers", type=click.IntRange(min=1), help="Threads; by default one per core.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of intervals.",
)
@click.option(
    "--solve-timeout",
    type=click.FloatRange(min=0.0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="For solving, of optimal and prior each.",
)
@click.option(
    "--precision",
    type=click.FloatRange(min=0.0),
    default=1e-3,
    show_default=True,
    help="Solve to this relative gap.",
)
@click.option(
    "--tree-queries", type=click.IntRange(min=1), default=1000, show_default=True, help="pomcp: per action."
)
@click.option("--max-depth", type=click.IntRange(min=1), default=20, show_default=True, help="pomcp.")
@click.option(
    "--exploration", type=click.FloatRange(min=0.0), default=1.0, show_default=True, help="pomcp: UCB's c."
)
@click.option(
    "--belief",
    type=click.Choice(["particles", "exact"]),
    default="particles",
    show_default=True,
    help="pomcp: how it tracks the belief.",
)
@click.option(
    "--ppo-steps",
    type=click.IntRange(min=1),
    help="ppo: steps to train; by default 1,000,000, or what the settings say.",
)
@click.option(
    "--ppo-settings",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="JSON",
    help="ppo: hyperparameters, such as best.json of `missmdp tune-ppo`; repeat for with and without memory.",
)
@click.option(
    "--policy-seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="For what is random in making policies.",
)
@click.option(
    "--save-policies",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Keep policies that are solved or trained, and use those that are there already.",
)
@click.option(
    "-o", "--output", type=_FILE, help="Also write the results, as .csv, .json or .parquet: a row per policy."
)
@click.option("--returns", type=_FILE, help="Also write the returns of all episodes, as .csv or .parquet.")
@click.option("-q", "--quiet", is_flag=True, help="Print one line per value and difference, and no progress.")
def evaluate(
    model: str,
    policies: tuple[str, ...],
    output: Path | None,
    returns: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Say what policies are worth in a model, by simulating them.

    All policies meet the same luck, so that differences between them have small errors. Where optimal and prior are
    among them, values are also normalised: 1 is what optimal is worth, 0 what prior is worth.

    Ctrl-C ends what is being done, and goes on with the best so far.
    """
    from missmdp.cli.models import load_model_or_pomdp
    from missmdp.cli.policy_words import asked_policies
    from missmdp.experiments.baselines import check_baseline
    from missmdp.model.variants import fully_observed_model

    is_file = _is_pomdp_file(model)
    asked = asked_policies(policies or (("random", "optimal") if is_file else ("random", "prior", "optimal")))
    _check_usage(asked, model, is_file, options)
    _check_files(output, returns, options["save_policies"])
    settings = _settings(asked, options)
    loaded = load_model_or_pomdp(model)
    shown = model
    if options["fully_observed"]:
        loaded, shown = fully_observed_model(_as_missmdp(loaded)), f"{model}, fully observed"
    for policy in asked:
        if policy.baseline is not None:
            check_baseline(policy.baseline, loaded)
    run = _Run(asked, loaded, shown, settings, options, quiet=quiet)
    made = run.make_all()
    comparison = run.compare(made)
    try:
        run.show(comparison, made)
    finally:
        # Also if whoever reads what is printed has gone: the work is not to be lost.
        run.write(comparison, made, model, output, returns)


class _Run:
    """One evaluation, from policies to results."""

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
            print_problem(self.model, self.shown, observe_initial=None)
            print_setting(arena, options["episodes"], options["until_stderr"])
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
                print_made(policy.name, made[policy.name], note)
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
            self.failed.append(str(error))
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
            click.echo(str(comparison))
            return
        print_values(comparison, made, confidence=self.options["confidence"])
        print_notes(comparison, made, until_stderr=self.options["until_stderr"])

    def write(
        self,
        comparison: Comparison,
        made: dict[str, MadePolicy],
        model: str,
        output: Path | None,
        returns: Path | None,
    ) -> None:
        """Write what can be written, and raise if some cannot."""
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
                    click.echo(f"Written to {path}")
            except (MissMDPError, OSError) as error:
                self.failed.append(str(error))
        if self.failed:
            raise click.ClickException("; ".join(self.failed))

    def _about(self, model: str) -> dict[str, Any]:
        """Return what all rows have in common."""
        from missmdp.experiments.fingerprint import model_hash

        try:
            fingerprint = model_hash(self.model)
        except MissMDPError:
            # Values that no file can hold have no hash; that is no reason to write nothing.
            fingerprint = None
        names = ("fully_observed", "until_stderr", "max_episodes", "timeout")
        return {"model": model, "model_sha256": fingerprint, **{name: self.options[name] for name in names}}


def _is_pomdp_file(model: str) -> bool:
    from missmdp.interop.model_files import SUFFIXES

    return Path(model).suffix.lower() in SUFFIXES


def _as_missmdp(model: MissMDP | POMDP) -> MissMDP:
    from missmdp.model.missmdp import checked_model

    return checked_model(model)


@contextmanager
def _usage() -> Generator[None, None, None]:
    """Turn what the library says about an argument into wrong usage."""
    try:
        yield
    except MissMDPError as error:
        raise click.UsageError(str(error)) from None


def _check_usage(asked: Sequence[AskedPolicy], model: str, is_file: bool, options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together, or are no numbers."""
    from missmdp.data.arguments import checked_confidence
    from missmdp.evaluation.rounds import Limits
    from missmdp.experiments.baselines import FEATURES_NEEDED
    from missmdp.plan.sarsop.solver import Sarsop

    names = [policy.name for policy in asked]
    if options["reference"] is not None and options["reference"] not in names:
        raise click.UsageError(
            f"--reference {options['reference']}: this is none of the policies: {', '.join(names)}"
        )
    if is_file:
        for policy in asked:
            if policy.baseline in FEATURES_NEEDED:
                raise click.UsageError(
                    f"{policy.baseline} is for miss-MDPs: in {model} no features go missing; there are random, "
                    "optimal, pomcp and files of policies"
                )
        if options["fully_observed"]:
            raise click.UsageError(f"--fully-observed is for miss-MDPs: in {model} no features go missing")
    if options["max_episodes"] is not None and options["until_stderr"] is None:
        raise click.UsageError("--max-episodes goes with --until-stderr; otherwise give --episodes")
    with _usage():
        checked_confidence(options["confidence"])
        Sarsop(precision=options["precision"], timeout=options["solve_timeout"])
        Limits(options["episodes"], options["until_stderr"], options["max_episodes"], options["timeout"])


def _check_files(output: Path | None, returns: Path | None, folder: Path | None) -> None:
    from missmdp.cli.output import check_writable
    from missmdp.experiments.tables import LONG_TABLES, TABLES, listed

    for path, what, endings in ((output, "results", TABLES), (returns, "returns", LONG_TABLES)):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise click.UsageError(f"{path}: the name of a file of {what} must end in {listed(endings)}")
        check_writable(path)
    if output is not None and output == returns:
        raise click.UsageError(f"{output}: results and returns cannot go to one file")
    if folder is not None:
        check_writable(folder / "policy.mmpolicy")


def _settings(asked: Sequence[AskedPolicy], options: dict[str, Any]) -> BaselineSettings:
    from missmdp.experiments.baselines import BaselineSettings

    wanted = {policy.baseline == "ppo-memory" for policy in asked if policy.baseline in ("ppo", "ppo-memory")}
    names = ("solve_timeout", "precision", "tree_queries", "max_depth", "exploration", "belief")
    found: dict[bool, tuple[Path, PPOSettings]] = {}
    for path in options["ppo_settings"]:
        settings = _read_settings(path)
        if settings.memory in found:
            both = f"{found[settings.memory][0]} and {path}"
            raise click.UsageError(
                f"{both} both have settings for PPO {'with' if settings.memory else 'without'} memory"
            )
        if settings.memory not in wanted:
            policy = "ppo-memory" if settings.memory else "ppo"
            raise click.UsageError(f"{path} has settings for {policy}: also give --policy {policy}")
        found[settings.memory] = path, settings
    chosen = BaselineSettings(**{name: options[name] for name in names}, seed=options["policy_seed"])
    both = {
        "ppo": found[False][1] if False in found else chosen.ppo,
        "ppo_memory": found[True][1] if True in found else chosen.ppo_memory,
    }
    if options["ppo_steps"] is not None:
        both = {name: replace(settings, steps=options["ppo_steps"]) for name, settings in both.items()}
    return replace(chosen, **both)


def _read_settings(path: Path) -> PPOSettings:
    from missmdp.plan.ppo.settings import PPOSettings

    try:
        return PPOSettings.from_json(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, MissMDPError) as error:
        raise ModelError(f"{path}: {error}") from error
