"""The question whether the MDP that was given fits the log, whatever made values go missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from missmdp.checks import checked_number, checked_threads
from missmdp.data.counts import as_counts
from missmdp.data.dataset import Dataset
from missmdp.data.validation import validate
from missmdp.errors import DataError, ParameterError
from missmdp.learn.blocks import Blocks, block_names
from missmdp.learn.dynamics.models import (
    Missingness,
    acts_together,
    given_missingness,
    nothing_missing,
    searched,
    single_effects,
    with_found,
)
from missmdp.learn.dynamics.next_rows import next_rows, targets
from missmdp.learn.dynamics.ratios import Ratio, Tester, holm
from missmdp.learn.dynamics.result import DynamicsCheck
from missmdp.learn.dynamics.telling import Teller, Tested
from missmdp.learn.dynamics.tilted import tilted_histories
from missmdp.learn.em.histories import Histories, checked_log, prepare_histories
from missmdp.learn.em.iterate import asmar_table
from missmdp.learn.em.observation_classes import merged_states
from missmdp.learn.em.search import Found, Searcher
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.progress import show_status

DynamicsStructure = Literal["auto", "mcar", "smar", "saturated"] | MissingnessGraph

_STRUCTURES = ("auto", "mcar", "smar", "saturated")

_EXAMPLES = 3


def check_dynamics(
    log: Dataset,
    mdp: FactoredMDP,
    *,
    level: float = 0.01,
    shift: float = 0.05,
    structure: DynamicsStructure = "auto",
    threads: int | None = None,
    progress: bool | None = None,
) -> DynamicsCheck:
    """Return whether an MDP fits a log with gaps, and where not: tests of T and b₀, with M unknown."""
    checked_number("level", level, above=0.0, below=1.0)
    checked_number("shift", shift, above=0.0, below=1.0)
    checked_threads(threads)
    if not isinstance(structure, MissingnessGraph) and structure not in _STRUCTURES:
        raise ParameterError(
            "structure", structure, "a MissingnessGraph, 'auto', 'mcar', 'smar' or 'saturated'"
        )
    data = checked_log(mdp, log, "check_dynamics")
    if data.n_steps == 0:
        raise DataError("there are no observations to check")
    counts = as_counts(data)
    names = block_names(mdp.space.features, counts.observed)
    blocks = Blocks.of(mdp.space.features, names, mdp.n_states)
    with show_status("Checking the dynamics", enabled=progress) as say:
        histories = prepare_histories(data, blocks)
        searcher = Searcher(
            mdp,
            blocks,
            histories,
            asmar_table(counts, blocks),
            1.0,
            threads=threads,
            tell=lambda name, value: say(f"{name}, log-likelihood {value:,.1f}"),
        )
        checker = Checker(data, histories, searcher, level=level, say=say)
        return checker.check(structure, shift)


class Checker:
    """Checks a log that is ready for expectation steps."""

    def __init__(
        self,
        log: Dataset,
        histories: Histories,
        searcher: Searcher[Histories],
        *,
        level: float,
        say: Callable[[str], None],
    ) -> None:
        self.log, self.mdp, self.histories, self.searcher = log, log.mdp, histories, searcher
        self.level, self.say = level, say
        self.classes = merged_states(self.mdp)
        self.rows = [
            rows
            for feature in range(len(self.mdp.space.features))
            for rows in next_rows(self.mdp, self.classes, histories, feature)
        ]

    def check(self, structure: DynamicsStructure, shift: float) -> DynamicsCheck:
        """Return the result."""
        missingness = self._missingness(structure)
        tester, found = self._tested(missingness)
        adjusted = holm([1.0 if one.ratio is None else one.ratio.p_value for one in found])
        each = self.level / max(len(found), 1)
        teller = Teller(self.mdp, self.classes, tester, self.level, each, shift)
        return DynamicsCheck(
            tuple(teller.row(one, p) for one, p in zip(found, adjusted, strict=True)),
            self.level,
            shift,
            missingness.words,
            self.histories.impossible,
            self._examples(),
            self.log.n_steps,
        )

    def _missingness(self, structure: DynamicsStructure) -> Missingness:
        if not self.searcher.blocks.names:
            return nothing_missing(self.searcher)
        if structure != "auto":
            return given_missingness(self.searcher, structure)
        return self._explained(searched(self.searcher))

    def _explained(self, found: Found) -> Missingness:
        """Return the kind of M with what was found, unless a change of T explains better what was found.

        Reasons that act together can do much of what a wrong T does, so a search that takes T for granted finds some.
        """
        if not acts_together(found):
            return with_found(self.searcher, found)
        _, tested = self._tested(single_effects(self.searcher))
        clear = [one for one in tested if one.ratio is not None]
        if not clear:
            return with_found(self.searcher, found)
        best = min(clear, key=lambda one: _p_value(one.ratio))
        if best.ratio is None or best.ratio.p_value * len(tested) >= self.level:
            return with_found(self.searcher, found)
        tilted = tilted_histories(self.histories, best.target, best.ratio.tilt)
        own = self.searcher
        searcher = Searcher(
            own.mdp, own.blocks, tilted, own.prior, own.pseudo_count, threads=own.threads, tell=own.tell
        )
        other = searched(searcher)
        cost = 0.5 * best.ratio.freedom * math.log(self.log.n_steps) + math.log(len(tested))
        return with_found(own, other if other.score - cost > found.score else found)

    def _tested(self, missingness: Missingness) -> tuple[Tester, list[Tested]]:
        self.say("fitting how values go missing")
        tester = Tester(self.histories, missingness.model, missingness.table, self.searcher.threads)
        listed = [
            target
            for rows in self.rows
            for target in targets(rows, self.mdp.n_actions, rows.counts(tester.uses))
        ]
        found: list[Tested] = []
        for number, target in enumerate(listed):
            self.say(f"test {number + 1} of {len(listed)}")
            curvature = tester.curvature(target)
            found.append(Tested(target, curvature, tester.ratio(target, curvature)))
        return tester, found

    def _examples(self) -> tuple[str, ...]:
        """Return the first few observations that cannot happen."""
        if not self.histories.impossible:
            return ()
        report = validate(self.log, self.mdp, progress=False)
        findings = (report.impossible_starts, report.impossible_transitions, report.impossible_histories)
        return tuple(str(example) for finding in findings for example in finding.examples)[:_EXAMPLES]


def _p_value(ratio: Ratio | None) -> float:
    return 1.0 if ratio is None else ratio.p_value
