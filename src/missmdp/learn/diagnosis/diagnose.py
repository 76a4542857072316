"""Why do values go missing? Which type, what drives it, and which learner suits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from missmdp.checks import checked_flag, checked_integer, checked_number, checked_seed, checked_threads
from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.data.dataset import Dataset
from missmdp.errors import AssumptionWarning, DataError, MissMDPError, ParameterError
from missmdp.learn.aimi import AIMI
from missmdp.learn.assumptions import dependent_indicators
from missmdp.learn.blocks import Blocks, block_names
from missmdp.learn.bootstrap import FEWEST_UNITS
from missmdp.learn.diagnosis.apart import joined_classes, joined_graph, joined_tests, widest_type
from missmdp.learn.diagnosis.classes import ALL, Best, best_structures, find_drivers
from missmdp.learn.diagnosis.nested_tests import chain_tests, own_tests
from missmdp.learn.diagnosis.result import JOINT, ClassScore, Diagnosis, NestedTest
from missmdp.learn.diagnosis.snapshots import Snapshots
from missmdp.learn.dynamics.check import Searched, check_dynamics, check_searched
from missmdp.learn.dynamics.result import DynamicsCheck
from missmdp.learn.em.clusters import Cluster, clusters_of_log
from missmdp.learn.em.histories import Histories, checked_log, prepare_histories
from missmdp.learn.em.iterate import EMFit, Evidence, Maximised, asmar_table, iterate
from missmdp.learn.em.learned_structure import factors_graph
from missmdp.learn.em.resampling import n_units, resampled_fits
from missmdp.learn.em.search import Found, Searcher, Tell
from missmdp.learn.identifiability.check import identifiability
from missmdp.learn.joint.estimator import JointEM
from missmdp.learn.joint.fit import FittedAlong
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.types import classify
from missmdp.progress import show_status
from missmdp.words import listed

_TOLERANCE = 1e-7
"""Of the structure that is reported, per observation in nats; searching is rougher."""

_FEW = 500
"""Observations below which a note says that they are few."""

_FEWER = "diagnose a log with fewer of these features; learners that count, such as AsMAR, take them all"

_MOST_STATES = 2_000
"""States up to which it is looked at whether the dynamics determine M."""


def diagnose(
    dataset: Dataset | ObservationCounts,
    mdp: FactoredMDP | JointEM | None = None,
    *,
    level: float = 0.01,
    draws: int = 100,
    seed: int = 0,
    dynamics: bool = True,
    threads: int | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """Return why values go missing: the type, what drives it, the m-graph, and which learner suits.

    Features that are missing in the same rows are one block. In each class of reasons (MCAR, simple MAR, MAR, no
    self-censoring, all parents) the best structure is searched; the type is that of the structure with the best
    score, which is like BIC. Likelihood-ratio tests say how clearly the data speak against each class. All this takes
    the MDP's dynamics as given, so these are checked too (`check_dynamics`).

    Without an MDP, dynamics are learned from the log by `JointEM`. Their trees are kept; their probabilities are fitted
    along with every structure and on both sides of every test.

    Parameters
    ----------
    dataset
        The log; or its counts, which are single observations.
    mdp
        The MDP whose dynamics tell what was missing, usually `dataset.mdp`. Without it, if the log has an MDP, single
        observations are looked at only: whether missingness depends on values that are not seen, their own included,
        they cannot tell. A `JointEM` learns the dynamics, or has learned them from this log; for a log without a model
        this is the default.
    level
        Of the tests.
    draws
        How many logs to draw for the bootstrap intervals of effects; 0 for none. Learned dynamics have none.
    seed
        Decides what is drawn.
    dynamics
        Whether to check the dynamics.
    threads
        How many threads to use; by default one per core. The result does not depend on it.
    progress
        Whether to show progress; by default on a terminal.

    Examples
    --------
    >>> import missmdp as mm
    >>> log = mm.collect(mm.load_benchmark("predator-mnar-unid"), 5_000, seed=0)
    >>> found = mm.diagnose(log, log.known_mdp, draws=0)
    >>> found.type, found.self_censoring, found.recommended
    ('MNAR', ('x', 'y'), 'em')
    """
    checked_number("level", level, above=0.0, below=1.0)
    checked_integer("draws", draws, least=0)
    checked_seed(seed)
    checked_threads(threads)
    checked_flag("dynamics", dynamics)
    if isinstance(mdp, JointEM) or (mdp is None and isinstance(dataset, Dataset) and dataset.mdp is None):
        known = mdp.transitions if isinstance(mdp, JointEM) else None
        if not isinstance(known, FactoredMDP):
            # What rewards are worth plays no part in why values go missing.
            learner = (
                JointEM(discount=0.0, reward=0.0, threads=threads, progress=progress) if mdp is None else mdp
            )
            given = JointEM() if mdp is None else mdp
            return _with_learned(_learned(dataset, learner), given, level, threads, progress)
        mdp = known
        if isinstance(dataset, Dataset) and dataset.mdp is not mdp:
            dataset = dataset.with_mdp(mdp)
    counts = as_counts(dataset)
    if counts.n_steps == 0:
        raise DataError("there are no observations to look at")
    snapshots = mdp is None or not isinstance(dataset, Dataset)
    names = block_names(counts.mdp.space.features, counts.observed)
    if not names:
        found = _nothing_missing(counts.mdp, counts.n_steps, snapshots)
        if mdp is None or not isinstance(dataset, Dataset) or not dynamics:
            return found
        return _with_check(found, checked_log(mdp, dataset, "diagnose"), level, threads, progress)
    if mdp is not None and isinstance(dataset, Dataset):
        log = checked_log(mdp, dataset, "diagnose")
        clusters = clusters_of_log(log, names)
        if clusters:
            found = [
                diagnose(
                    cluster.log(log),
                    cluster.mdp,
                    level=level,
                    draws=draws,
                    seed=seed,
                    dynamics=False,
                    threads=threads,
                    progress=progress,
                )
                for cluster in clusters
            ]
            joined = _together(log, counts, clusters, found, level)
            return _with_check(joined, log, level, threads, progress) if dynamics else joined
    blocks = Blocks.of(counts.mdp.space.features, names, counts.mdp.n_states, _FEWER)
    with show_status("Looking for reasons", enabled=progress) as say:

        def tell(name: str, value: float) -> None:
            say(f"{name}, log-likelihood {value:,.1f}")

        evidence: Histories | Snapshots
        if mdp is None or not isinstance(dataset, Dataset):
            evidence = Snapshots.of(counts, blocks)
            own = counts.mdp
        else:
            log = checked_log(mdp, dataset, "diagnose")
            evidence = prepare_histories(log, blocks)
            own = log.known_mdp
        looked = _look(own, counts, blocks, evidence, level, threads, tell)
        fits = _redrawn(evidence, looked.fit, draws, seed, threads, say)
        check, unchecked = None, ""
        if dynamics and isinstance(evidence, Histories):
            ready = Searcher(
                own, blocks, evidence, asmar_table(counts, blocks), 1.0, threads=threads, tell=tell
            )
            check, unchecked = _check(
                checked_log(own, dataset, "diagnose"), Searched(ready, _natural(looked.classes)), level, say
            )
    notes = [*_notes(counts, evidence, snapshots), *([unchecked] if unchecked else [])]
    if looked.kind == "MNAR" and not snapshots:
        notes += _open_questions(own, looked.graph, blocks)
    return _answer(looked, counts, fits, notes, check)


def _learned(dataset: Dataset | ObservationCounts, learner: JointEM) -> JointEM:
    """Return a learner of dynamics that was fitted to a log."""
    if not isinstance(dataset, Dataset):
        raise ParameterError("dataset", dataset, "a Dataset", "dynamics are learned from whole histories")
    if hasattr(learner, "missingness_"):
        if learner.data_ is not dataset:
            raise ParameterError(
                "mdp", learner, "a JointEM", "this one was fitted to another log; give one that is not fitted"
            )
        return learner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return learner.fit(dataset)


def _with_learned(
    learner: JointEM, given: JointEM, level: float, threads: int | None, progress: bool | None
) -> Diagnosis:
    """Return the diagnosis in which dynamics with learned trees are fitted along; `given` is what to learn with."""
    fit, prepared = learner.fit_, learner.prepared_
    assert fit is not None
    assert prepared is not None
    assert isinstance(learner.data_, Dataset)
    counts = as_counts(learner.data_.with_mdp(learner.mdp_))
    blocks = prepared.histories.layout.blocks
    if not blocks.names:
        return _nothing_missing(learner.mdp_, counts.n_steps, False)
    evidence = FittedAlong.of(prepared.histories, fit)
    with show_status("Looking for reasons", enabled=progress) as say:

        def tell(name: str, value: float) -> None:
            say(f"{name}, log-likelihood {value:,.1f}")

        looked = _look(learner.mdp_, counts, blocks, evidence, level, threads, tell)
    notes = [
        *_notes(counts, evidence, False),
        "The dynamics were learned from this log too: T and b₀ were fitted along with every structure and on both "
        "sides of every test, with the trees that JointEM found. That the trees came from the same log is not "
        "accounted for",
        *(f"JointEM: {finding}" for finding in learner.warnings_),
    ]
    if looked.kind == "MNAR":
        notes += _open_questions(learner, looked.graph, blocks)
    structure: Any = {"MCAR": "mcar", "simple MAR": "smar", "MAR": "auto"}.get(looked.kind, looked.graph)
    reason = "It learns the dynamics and how values go missing together. It has neither bounds nor intervals."
    return replace(
        _answer(looked, counts, [], notes, None),
        recommended=JOINT,
        reason=reason,
        joint=JointEM(**given.get_params() | {"missingness": structure}),
    )


class _Looked(NamedTuple):
    """What was found of the reasons."""

    mdp: FactoredMDP
    blocks: Blocks
    classes: list[Best]
    best: Best
    fit: EMFit
    tests: tuple[NestedTest, ...]
    own_tests: tuple[NestedTest, ...]
    snapshots: bool

    @property
    def graph(self) -> MissingnessGraph:
        """The m-graph of the best structure."""
        return factors_graph(self.mdp, self.fit.model)

    @property
    def kind(self) -> str:
        """The type."""
        kind = _type(self.mdp, self.blocks, self.fit)
        return "not simple MAR" if self.snapshots and kind not in ("MCAR", "simple MAR") else kind


def _look(
    mdp: FactoredMDP,
    counts: ObservationCounts,
    blocks: Blocks,
    evidence: Evidence,
    level: float,
    threads: int | None,
    tell: Tell,
) -> _Looked:
    """Return the best structure of each class, the best of all, and the tests."""
    snapshots = isinstance(evidence, Snapshots)
    prior = asmar_table(counts, blocks)
    searcher: Searcher[Evidence] = Searcher(mdp, blocks, evidence, prior, 1.0, threads=threads, tell=tell)
    classes = best_structures(searcher, snapshots=snapshots)
    best = max(classes, key=lambda one: one.found.score)
    fit = iterate(evidence, best.found.fit.model, best.found.fit.table, tolerance=_TOLERANCE, threads=threads)
    tests = tuple(chain_tests(searcher, classes, level))
    own_tested = () if snapshots else tuple(own_tests(searcher, classes, best, tests, level))
    return _Looked(mdp, blocks, classes, best, fit, tests, own_tested, snapshots)


def _answer(
    looked: _Looked,
    counts: ObservationCounts,
    fits: Sequence[Maximised],
    notes: Sequence[str],
    check: DynamicsCheck | None,
) -> Diagnosis:
    own, blocks, graph, kind = looked.mdp, looked.blocks, looked.graph, looked.kind
    snapshots = looked.snapshots
    dependent = blocks_seem_dependent(counts, blocks) if snapshots else blocks_depend(graph, blocks.names)
    label, reason = recommended(kind, graph, dependent=dependent, snapshots=snapshots)
    rates = counts.missing_rates()
    return Diagnosis(
        kind,
        graph.self_censoring,
        blocks.names,
        graph,
        tuple(_scores(own, looked.classes, looked.best)),
        looked.tests,
        looked.own_tests,
        tuple(find_drivers(own, blocks, looked.best, looked.fit, fits)),
        tuple(rates[block[0]] for block in blocks.names),
        label,
        reason,
        snapshots,
        counts.n_steps,
        tuple(notes),
        dynamics=check,
        mdp=own,
    )


def _natural(classes: Sequence[Best]) -> Found | None:
    """Return the best structure of the widest class, if its blocks depend on each other in their own order."""
    widest = classes[-1]
    return widest.found if widest.name == ALL and list(widest.order) == sorted(widest.order) else None


def _check(
    log: Dataset, ready: Searched | None, level: float, say: Callable[[str], None], threads: int | None = None
) -> tuple[DynamicsCheck | None, str]:
    """Return the check of the dynamics; or None, and why there is none."""
    try:
        if ready is not None:
            return check_searched(log, ready, level, say), ""
        return check_dynamics(log, log.known_mdp, level=level, threads=threads, progress=False), ""
    except MissMDPError as error:
        return None, f"The dynamics were not checked: {error}"


def _with_check(
    found: Diagnosis, log: Dataset, level: float, threads: int | None, progress: bool | None
) -> Diagnosis:
    with show_status("Checking the dynamics", enabled=progress) as say:
        check, unchecked = _check(log, None, level, say, threads)
    return replace(found, dynamics=check, notes=(*found.notes, *([unchecked] if unchecked else [])))


def _together(
    log: Dataset,
    counts: ObservationCounts,
    clusters: Sequence[Cluster],
    found: Sequence[Diagnosis],
    level: float,
) -> Diagnosis:
    """Return the diagnosis of all features from those of clusters."""
    features = log.feature_space
    graph = joined_graph(features.names, (one.graph for one in found))
    blocks = tuple(
        sorted((block for one in found for block in one.blocks), key=lambda b: features.position(b[0]))
    )
    kind = widest_type(found)
    label, reason = recommended(kind, graph, dependent=blocks_depend(graph, blocks), snapshots=False)
    rates = counts.missing_rates()
    notes = {note: None for one in found for note in one.notes}
    return Diagnosis(
        kind,
        graph.self_censoring,
        blocks,
        graph,
        joined_classes(log, clusters, found),
        joined_tests(found, graph.can_go_missing, level),
        tuple(test for one in found for test in one.own_tests),
        tuple(driver for one in found for driver in one.drivers),
        tuple(rates[block[0]] for block in blocks),
        label,
        reason,
        snapshots_only=False,
        n_steps=counts.n_steps,
        notes=(
            *notes,
            f"This was found in {len(clusters)} clusters of features that the dynamics do not tie together; whether "
            "gaps depend on features of other clusters was not looked at",
        ),
        mdp=log.known_mdp,
    )


def _nothing_missing(mdp: FactoredMDP, n_steps: int, snapshots: bool) -> Diagnosis:
    return Diagnosis(
        "MCAR",
        (),
        (),
        MissingnessGraph(features=mdp.space.features.names),
        (),
        (),
        (),
        (),
        (),
        "amcar",
        "Nothing goes missing in this log.",
        snapshots,
        n_steps,
        mdp=mdp,
    )


def _type(mdp: FactoredMDP, blocks: Blocks, fit: EMFit) -> str:
    """Return the narrowest type of a fitted structure: states of one group have equal probabilities."""
    learned = MissingnessFunction(mdp.space, blocks.patterns, np.ascontiguousarray(fit.table.T))
    return classify(learned, mdp.reachable).name


def _scores(mdp: FactoredMDP, classes: list[Best], best: Best) -> list[ClassScore]:
    return [
        ClassScore(
            one.name,
            one.found.fit.log_likelihood,
            one.found.fit.model.n_parameters(mdp.reachable),
            one.found.score,
            best.found.score - one.found.score,
            factors_graph(mdp, one.found.fit.model),
        )
        for one in classes
    ]


def _redrawn(
    evidence: Histories | Snapshots,
    fit: EMFit,
    draws: int,
    seed: int,
    threads: int | None,
    say: Callable[[str], None],
) -> list[Maximised]:
    """Return M fitted to resampled logs; none if there are too few data to draw from."""
    found: list[Maximised] = []
    if (n_units(evidence) if isinstance(evidence, Histories) else evidence.n_steps) < FEWEST_UNITS:
        return found
    if isinstance(evidence, Histories):
        for one in resampled_fits(evidence, fit, draws, seed, threads, progress=False):
            found.append(one)
            say(f"log {len(found)} of {draws} resampled")
        return found
    generator = np.random.default_rng(seed)
    return [iterate(evidence.redrawn(generator), fit.model, fit.table).maximised for _ in range(draws)]


def _notes(counts: ObservationCounts, evidence: Any, snapshots: bool) -> list[str]:
    notes: list[str] = []
    if counts.n_steps < _FEW:
        notes.append(f"In {counts.n_steps:,} observations only strong reasons show")
    if snapshots:
        notes.append(
            "Single observations cannot tell whether a value goes missing because of what it is (self-censoring), "
            "nor MAR from MNAR: that takes the dynamics"
        )
    if evidence.impossible:
        notes.append(
            f"{evidence.impossible:,} of {counts.n_steps:,} observations cannot happen according to the model, and are "
            "left out (missmdp.validate says which)"
        )
    notes += [
        f"{name} is missing in every observation: what is said of it rests on the dynamics alone"
        for name, rate in counts.missing_rates().items()
        if rate == 1.0
    ]
    return notes


def _open_questions(model: FactoredMDP | JointEM, graph: MissingnessGraph, blocks: Blocks) -> list[str]:
    """Return a note where the dynamics do not determine M, even if the m-graph is right."""
    learned = isinstance(model, JointEM)
    if (model.mdp_ if learned else model).n_states > _MOST_STATES:
        return []
    try:
        known = identifiability(model, graph, blocks=blocks.names).identified
    except MissMDPError:
        # Too large a question, or one that it has no answer to; the diagnosis stands without it.
        return []
    if known is not False:
        return []
    what = "The log does not determine T and M together" if learned else "The dynamics do not determine M"
    return [
        f"{what} with this m-graph: another M, and perhaps another reason, may explain the log as well "
        "(missmdp.identifiability says what is left open)"
    ]


def recommended(kind: str, graph: MissingnessGraph, *, dependent: bool, snapshots: bool) -> tuple[str, str]:
    """Return the label of the learner that suits a type, and the reason in a sentence or two.

    Parameters
    ----------
    kind
        The type.
    graph
        The m-graph of the best structure.
    dependent
        Whether blocks depend on whether others are missing.
    snapshots
        Whether single observations were looked at only.
    """
    match kind:
        case "MCAR":
            return (
                "amcar",
                "What is missing depends on nothing: AMCAR pools all observations, and it has bounds.",
            )
        case "simple MAR":
            return "asmar", (
                "What is missing depends on always-observed features only: AsMAR counts by these, and it has bounds."
            )
        case _ if snapshots:
            if dependent:
                return "icin", (
                    "Missingness depends on values that go missing themselves, and indicators depend on each other: "
                    "ICIN allows both, if no feature drives its own missingness. Single observations cannot tell; "
                    "give the MDP to find out."
                )
            return "aimi", (
                "Missingness depends on values that go missing themselves: AIMI allows that, if indicators are "
                "independent and no feature drives its own missingness. Single observations cannot tell; give the MDP "
                "to find out."
            )
        case "MAR":
            return "em", (
                "Missingness depends on values where these are seen, so indicators depend on each other: "
                "DynamicsEM learns that. It has intervals from a bootstrap, but no bounds."
            )
        case _ if graph.self_censoring:
            return "em", (
                f"Values of {listed(graph.self_censoring)} go missing because of what they are: only DynamicsEM "
                "learns that, from the dynamics. It has intervals from a bootstrap, but no bounds."
            )
        case _ if dependent:
            return "em", (
                "Missingness depends on values that go missing themselves, and indicators depend on each other: "
                "DynamicsEM learns that from all observations. It has intervals from a bootstrap, but no bounds."
            )
        case _:
            return "em", (
                "Missingness depends on values that go missing themselves, but no feature drives its own: DynamicsEM "
                "learns from all observations. AIMI is valid too and has bounds, but it uses only observations that "
                "show everything else."
            )


def blocks_depend(graph: MissingnessGraph, blocks: Sequence[Sequence[str]]) -> bool:
    """Return whether an m-graph joins features of different blocks."""
    return any(not any(a in block and b in block for block in blocks) for a, b in graph.dependent)


def blocks_seem_dependent(counts: ObservationCounts, blocks: Blocks) -> bool:
    """Return whether single observations speak against independent blocks, if no feature drives its own missingness."""
    learner = AIMI(blocks=[block for block in blocks.names if len(block) > 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(counts)
    return any(True for _ in dependent_indicators(counts, learner.counts_))
