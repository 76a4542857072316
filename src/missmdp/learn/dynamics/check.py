"""The question whether the MDP that was given fits the log, whatever made values go missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

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
from missmdp.learn.dynamics.ratios import Tester, holm
from missmdp.learn.dynamics.result import DynamicsCheck, row_words
from missmdp.learn.dynamics.telling import Teller, Tested, p_value
from missmdp.learn.dynamics.tilted import tilted_histories
from missmdp.learn.em.clusters import Cluster, clusters_of_log
from missmdp.learn.em.histories import Histories, checked_log, prepare_histories
from missmdp.learn.em.iterate import asmar_table
from missmdp.learn.em.observation_classes import merged_states
from missmdp.learn.em.search import Found, Searcher
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.progress import show_status
from missmdp.words import listed

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
    """Return whether an MDP fits a log with gaps, and where not, whatever made values go missing.

    Each test asks whether probabilities of one feature's next value are as given: all of them, those after one action,
    those where the feature has one value now, or those of one row of T that many steps use. One more asks about the
    feature's first value. The alternative changes these probabilities and leaves all else; how values go missing is
    fitted along on both sides, so a test keeps its level for every M of the kind that is fitted.

    Parameters
    ----------
    log
        The log.
    mdp
        The MDP whose T and b₀ are tested.
    level
        The probability with which any test rejects if the MDP is right (Holm's adjustment).
    shift
        The error of a probability that matters. A test that would reject such an error with a chance below one half
        says "cannot tell" rather than "fits".
    structure
        How values may go missing. "auto": every feature's value, the missing one included, has an effect on the
        log-odds, and so has whether others are missing; reasons that `DynamicsEM` finds act together. "mcar", "smar"
        (simple MAR) or a `MissingnessGraph` assume more, and see more. "saturated": anything; few errors can be seen
        then.
    threads
        How many threads to use; by default one per core. The result does not depend on it.
    progress
        Whether to show progress; by default on a terminal.

    Raises
    ------
    DataError
        If the log has other features, values or actions than the MDP, or nothing in it; or if the model is too large.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-smar")
    >>> check = mm.check_dynamics(mm.collect(truth, 3_000, seed=0), truth.mdp)
    >>> check.rejected
    False
    """
    checked_number("level", level, above=0.0, below=1.0)
    checked_number("shift", shift, above=0.0, below=1.0)
    checked_threads(threads)
    named = isinstance(structure, str) and structure in _STRUCTURES
    if not named and not isinstance(structure, MissingnessGraph):
        raise ParameterError(
            "structure", structure, "a MissingnessGraph, 'auto', 'mcar', 'smar' or 'saturated'"
        )
    data = checked_log(mdp, log, "check_dynamics")
    if data.n_steps == 0:
        raise DataError("there are no observations to check")
    names = block_names(mdp.space.features, as_counts(data).observed)
    graph = structure if isinstance(structure, MissingnessGraph) else None
    clusters = clusters_of_log(data, names, graph)
    if not clusters and not mdp.is_small:
        raise DataError(
            f"the model has {mdp.n_states:,} states, too many to check as a whole, and it does not fall into clusters "
            "of features that go missing"
        )
    with show_status("Checking the dynamics", enabled=progress) as say:
        checked = (
            [_checked_cluster(data, cluster, structure, level, threads, say) for cluster in clusters]
            if clusters
            else [_checked(data, Searched.of(data, threads, say), structure, level, say)]
        )
    return result_of(data, checked, level=level, shift=shift, clusters=clusters)


def check_searched(
    log: Dataset, ready: Searched, level: float, say: Callable[[str], None], shift: float = 0.05
) -> DynamicsCheck:
    """Return the check of a log in which a structure has been looked for already."""
    return result_of(log, [_checked(log, ready, "auto", level, say)], level=level, shift=shift)


class Searched(NamedTuple):
    """A log ready for a search, and what was found in it where that is known."""

    searcher: Searcher[Histories]
    found: Found | None = None

    @classmethod
    def of(cls, log: Dataset, threads: int | None, say: Callable[[str], None]) -> Searched:
        """Return a log made ready."""
        counts = as_counts(log)
        names = block_names(log.known_mdp.space.features, counts.observed)
        blocks = Blocks.of(log.known_mdp.space.features, names, log.known_mdp.n_states)

        def tell(name: str, value: float) -> None:
            say(f"{name}, log-likelihood {value:,.1f}")

        histories = prepare_histories(log, blocks)
        return cls(
            Searcher(
                log.known_mdp, blocks, histories, asmar_table(counts, blocks), 1.0, threads=threads, tell=tell
            )
        )


class Checked(NamedTuple):
    """The tests of a log or cluster."""

    checker: Checker
    missingness: Missingness
    tester: Tester
    tested: list[Tested]


def _checked(
    log: Dataset,
    searched: Searched,
    structure: DynamicsStructure,
    level: float,
    say: Callable[[str], None],
    features: Sequence[int] | None = None,
    starts: Sequence[int] | None = None,
) -> Checked:
    places = range(len(log.known_mdp.space.features))
    checker = Checker(
        log,
        searched,
        level,
        say,
        places if features is None else features,
        places if starts is None else starts,
    )
    missingness = checker.missingness(structure)
    return Checked(checker, missingness, *checker.tested(missingness))


def _checked_cluster(
    log: Dataset,
    cluster: Cluster,
    structure: DynamicsStructure,
    level: float,
    threads: int | None,
    say: Callable[[str], None],
) -> Checked:
    """Return the tests of the features that a cluster moves; those that are always seen start as the log has it."""
    own = cluster.log(log)
    moved = [cluster.kept.index(feature) for feature in sorted(cluster.moved)]
    hidden = [cluster.kept.index(feature) for feature in cluster.hidden]
    return _checked(own, Searched.of(own, threads, say), structure, level, say, moved, hidden)


def result_of(
    log: Dataset, checked: Sequence[Checked], *, level: float, shift: float, clusters: Sequence[Cluster] = ()
) -> DynamicsCheck:
    """Return the result of all tests together."""
    all_tested = [(one, tested) for one in checked for tested in one.tested]
    adjusted = holm([p_value(tested) for _, tested in all_tested])
    each = level / max(len(all_tested), 1)
    tellers = {
        id(one): Teller(one.checker.mdp, one.checker.classes, one.tester, level, each, shift)
        for one in checked
    }
    left_out = {*range(len(log.known_mdp.space.features))} - {f for own in clusters for f in own.moved}
    notes = [note for one in checked for note in one.checker.notes]
    notes += (
        [
            f"the model is large, so it was checked in {len(clusters)} clusters of features; not checked: "
            + listed([log.known_mdp.space.features.names[feature] for feature in sorted(left_out)])
        ]
        if clusters and left_out
        else []
    )
    impossible = sum(one.checker.histories.impossible for one in checked)
    order = {name: place for place, name in enumerate(log.known_mdp.space.features.names)}
    rows = [tellers[id(one)].row(tested, p) for (one, tested), p in zip(all_tested, adjusted, strict=True)]
    return DynamicsCheck(
        tuple(sorted(rows, key=lambda row: order[row.feature])),
        level,
        shift,
        max((one.missingness.words for one in checked), key=len),
        impossible,
        _examples(log) if impossible else (),
        log.n_steps,
        tuple(notes),
    )


def _examples(log: Dataset) -> tuple[str, ...]:
    """Return the first few observations that cannot happen."""
    report = validate(log, log.known_mdp, progress=False)
    findings = (report.impossible_starts, report.impossible_transitions, report.impossible_histories)
    return tuple(str(example) for finding in findings for example in finding.examples)[:_EXAMPLES]


class Checker:
    """Checks a log that is ready for expectation steps."""

    def __init__(
        self,
        log: Dataset,
        searched: Searched,
        level: float,
        say: Callable[[str], None],
        features: Sequence[int],
        starts: Sequence[int],
    ) -> None:
        self.log, self.mdp = log, log.known_mdp
        self.searcher, self.found = searched
        self.histories = self.searcher.histories
        self.level, self.say, self.starts = level, say, starts
        self.notes: list[str] = []
        """What a reader should know of how missingness was chosen."""
        self.classes = merged_states(self.mdp)
        self.rows = [
            rows
            for feature in features
            for rows in next_rows(self.mdp, self.classes, self.histories, feature)
        ]

    def missingness(self, structure: DynamicsStructure) -> Missingness:
        """Return the kind of M that is fitted along."""
        if not self.searcher.blocks.names:
            return nothing_missing(self.searcher)
        if structure != "auto":
            return given_missingness(self.searcher, structure)
        return self._explained(searched(self.searcher) if self.found is None else self.found)

    def _explained(self, found: Found) -> Missingness:
        """Return the kind of M with what was found, unless a change of T explains better what was found.

        Reasons that act together can do much of what a wrong T does, so a search that takes T for granted finds some.
        """
        if not acts_together(found):
            return with_found(self.searcher, found)
        tester, tested = self.tested(single_effects(self.searcher))
        best = min(tested, key=p_value, default=None)
        if best is None or best.ratio is None or best.ratio.p_value * len(tested) >= self.level:
            return with_found(self.searcher, found)
        tilted = tilted_histories(self.histories, best.target, best.ratio.tilt)
        own = self.searcher
        searcher = Searcher(
            own.mdp, own.blocks, tilted, own.prior, own.pseudo_count, threads=own.threads, tell=own.tell
        )
        other = searched(searcher)
        # As BIC has it, with the steps that tell anything of the change.
        shown = max(tester.seen_steps(best.target), 1.0)
        cost = 0.5 * best.ratio.freedom * math.log(shown) + math.log(len(tested))
        if other.score - cost > found.score:
            return with_found(own, other)
        each = self.level / len(tested)
        row = Teller(self.mdp, self.classes, tester, self.level, each, 0.05).row(best, 0.0)
        self.notes.append(
            "either reasons for gaps act together, which explains the log at least as well and is what was assumed, or "
            f"T is wrong: without such reasons, the log would contradict the MDP ({row_words(row, brief=True)})"
        )
        return with_found(own, found)

    def tested(self, missingness: Missingness) -> tuple[Tester, list[Tested]]:
        """Return all tests, with a kind of M fitted along."""
        self.say("fitting how values go missing")
        tester = Tester(self.histories, missingness.model, missingness.table, self.searcher.threads)
        listed = [
            target
            for rows in self.rows
            for target in targets(rows, self.mdp.n_actions, rows.counts(tester.uses))
            if target.kind != "start" or rows.feature in self.starts
        ]
        found: list[Tested] = []
        for number, target in enumerate(listed):
            self.say(f"test {number + 1} of {len(listed)}")
            curvature = tester.curvature(target)
            found.append(Tested(target, curvature, tester.ratio(target, curvature)))
        return tester, found
