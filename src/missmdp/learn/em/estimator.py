"""DynamicsEM: maximum likelihood from whole histories, with the dynamics known."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import (
    checked_confidence,
    checked_integer,
    checked_names,
    checked_number,
    checked_seed,
    checked_threads,
)
from missmdp.data.counts import as_counts
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.errors import AssumptionWarning, DataError, ParameterError
from missmdp.learn.assumptions import never_observed
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.blocks import Blocks, block_names, checked_feature_blocks
from missmdp.learn.bounds import Bound
from missmdp.learn.em.apart import Apart, learn_apart
from missmdp.learn.em.clusters import Cluster, clusters_of_log
from missmdp.learn.em.histories import Histories, checked_log, prepare_histories
from missmdp.learn.em.iterate import EMFit, StructureModel, asmar_table, iterate, penalised, perturbed
from missmdp.learn.em.learned_structure import factor_truths, factors_graph, fit_warnings
from missmdp.learn.em.logistic import logistic_model
from missmdp.learn.em.resampling import (
    bootstrap_bound,
    cells_without_data,
    n_units,
    resampled_fits,
    units_of,
)
from missmdp.learn.em.search import Found, Searcher, allowed_parents
from missmdp.learn.em.structures import graph_factors, named_factors
from missmdp.learn.limits import Method
from missmdp.learn.table import GroupTruth
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_status
from missmdp.words import count, listed

StructureChoice = Literal["auto", "mcar", "smar", "logistic", "saturated"] | MissingnessGraph

_NAMES: dict[str, str] = {
    "auto": "auto",
    "mcar": "mcar",
    "smar": "smar",
    "simple mar": "smar",
    "logistic": "logistic",
    "saturated": "saturated",
}


def checked_structure(structure: Any, name: str) -> str:
    """Return the plain name of a structure of M, "m-graph" for a graph; raise `ParameterError` for anything else."""
    if isinstance(structure, MissingnessGraph):
        return "m-graph"
    if str(structure).lower() not in _NAMES:
        names = listed([repr(one) for one in dict.fromkeys(_NAMES.values())], "or")
        raise ParameterError(name, structure, f"a MissingnessGraph, {names}")
    return _NAMES[str(structure).lower()]


class DynamicsEM(MissingnessEstimator):
    """Learns M from whole histories: the known dynamics tell what was probably missing.

    What came before and after says how likely each hidden state was. M is fitted to that, and the two steps are
    repeated until the likelihood stops rising (Baum–Welch with T known). All observations count, including
    incomplete ones. Features may drive their own missingness, as far as the dynamics reveal it: `identifiability`
    says how far. The behaviour in the log may have reacted to what was seen.

    Parameters
    ----------
    mdp
        The MDP whose dynamics are known.
    structure
        What M may look like. "auto" looks for reasons in the data: for each feature or block a tree of questions
        about features (its own included) and about which others are missing, by a score like BIC. A
        `MissingnessGraph`: indicators depend on their parents, and are independent except for the graph's
        dependences. "mcar", "smar" (simple MAR), "logistic" (independent indicators, effects of values and of pairs
        of values) or "saturated" (any distribution in every state).
    pseudo_count
        Observations added to each group of states, distributed as AsMAR estimates them; 0 for plain maximum
        likelihood.
    lump
        With an m-graph: whether values of the parents with the same effect may share their probability, if the
        score says so.
    blocks
        Features that go missing together, such as [("x", "y")]; by default those that do so in the data.
    always_observed
        The features that are known to be always observed.
    starts
        How many starting points to use: AsMAR's estimate, and random ones. A warning says if they disagree.
    tolerance
        Stop when an iteration gains less than this per observation, in nats.
    max_iterations
        Stop after this many iterations, with a warning.
    seed
        Decides the random starts.
    threads
        How many threads to use; by default one per core. The result does not depend on it.
    progress
        Whether to show progress, with the log-likelihood; by default on a terminal.

    Attributes
    ----------
    log_likelihood_ : float
        The log-likelihood of the observations given the actions, in nats. Whether an episode continues or has ended
        counts as observed.
    bic_ : float
        The log-likelihood minus half the number of parameters times log n: higher is better.
    n_parameters_ : int
        The free parameters of M.
    trace_ : tuple of float
        The penalised log-likelihood, iteration by iteration; it never falls.
    converged_ : bool
        Whether the iterations converged.
    graph_ : MissingnessGraph
        What M depends on: given, or found.
    blocks_ : tuple of tuple of str
        The features that go missing; those that go missing together are one block.
    patterns_ : numpy.ndarray
        The patterns of the blocks (True = observed), shape (K, n).
    expected_counts_ : numpy.ndarray
        How often each pattern came with each state, in expectation, shape (K, S).
    apart_ : Apart or None
        If features were learned in clusters: these, with a learner for each, which then have `patterns_` and
        `expected_counts_`.
    starts_ : tuple of float
        The penalised log-likelihood that each start reached.

    Notes
    -----
    There is no finite-sample bound. `bound` returns bootstrap intervals, which are not guaranteed.

    If patterns × transitions are more than 100,000, features are learned in clusters that the dynamics do not tie
    together, however long the log is. That takes an MDP whose features move independently given the state
    (`FactoredMDP.from_factors`, or matrices in which that is found), and assumes that gaps depend on features of their
    own cluster and on those that are always seen. The log-likelihood is then that given how features moved that are
    always seen and do not depend on hidden ones.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("predator-mnar-unid")
    >>> log = mm.collect(truth, 20_000, seed=0)
    >>> learner = mm.DynamicsEM(truth.mdp).fit(log)
    >>> mm.total_variation(learner.missingness_, truth).average < 0.02
    True
    """

    needs_histories = True

    log_likelihood_: float
    bic_: float
    trace_: tuple[float, ...]
    converged_: bool
    graph_: MissingnessGraph
    blocks_: tuple[tuple[str, ...], ...]
    patterns_: NDArray[np.bool_]
    expected_counts_: NDArray[np.float64]
    starts_: tuple[float, ...]
    found_: Found | None
    fit_: EMFit
    histories_: Histories
    apart_: Apart | None

    def __init__(
        self,
        mdp: FactoredMDP,
        structure: StructureChoice = "auto",
        *,
        pseudo_count: float = 1.0,
        lump: bool = True,
        blocks: Sequence[Sequence[str]] | None = None,
        always_observed: Sequence[str] | None = None,
        starts: int = 2,
        tolerance: float = 1e-7,
        max_iterations: int = 1000,
        seed: int = 0,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.mdp = mdp
        self.structure = structure
        self.pseudo_count = pseudo_count
        self.lump = lump
        self.blocks = blocks
        self.always_observed = always_observed
        self.starts = starts
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.seed = seed
        self.threads = threads
        self.progress = progress

    @property
    def assumes(self) -> str:
        """Known dynamics, and the structure."""
        if isinstance(self.structure, MissingnessGraph):
            what = "indicators that depend on their parents in the m-graph only"
        else:
            what = {
                "auto": "that missingness has the structure found in the data",
                "mcar": "MCAR",
                "smar": "simple MAR",
                "logistic": "independent indicators with effects of single values and pairs",
                "saturated": "nothing about M",
            }[_NAMES[self.structure.lower()]]
        return f"known dynamics, and {what}"

    def check_parameters(self, features: FeatureSpace) -> None:
        """Raise `DataError` if a parameter is invalid."""
        checked_mdp(self.mdp)
        checked_structure(self.structure, "structure")
        checked_number("pseudo_count", self.pseudo_count, least=0.0, most=1e9)
        checked_number("tolerance", self.tolerance, above=0.0, below=1.0)
        checked_integer("starts", self.starts, least=1)
        checked_integer("max_iterations", self.max_iterations, least=1)
        checked_seed(self.seed)
        checked_threads(self.threads)
        if self.blocks is not None:
            checked_feature_blocks(features, self.blocks)
        if self.always_observed is not None:
            checked_names("always_observed", self.always_observed, features.names)

    def fit(self, data: Dataset) -> Self:
        """Learn M̂ from a log with its actions, and return self."""
        log = checked_log(self.mdp, data, "DynamicsEM")
        features = log.feature_space
        self.check_parameters(features)
        if log.n_steps == 0:
            raise DataError("there are no observations to learn from")
        counts = as_counts(log)
        for name, rate in counts.missing_rates().items():
            if rate > 0.0 and name in (self.always_observed or ()):
                raise DataError(f"{name!r} is declared always observed, but it goes missing")
        names = block_names(features, counts.observed, self.blocks)
        clusters = self._clusters(log, names)
        if clusters:
            return self._fit_apart(log, clusters, names)
        blocks = Blocks.of(features, names, log.known_mdp.n_states)
        prior = asmar_table(counts, blocks)
        with show_status("Learning from the dynamics", enabled=self.progress) as say:

            def tell(name: str, value: float) -> None:
                say(f"{name}, log-likelihood {value:,.1f}")

            histories = prepare_histories(log, blocks)
            searcher = Searcher(
                log.known_mdp, blocks, histories, prior, self.pseudo_count, threads=self.threads, tell=tell
            )
            model, found = self._model(searcher)
            fits = self._fits(searcher, model, prior if found is None else found.fit.table)
        self._keep(log, searcher, fits, found)
        return self

    def _clusters(self, log: Dataset, names: Sequence[Sequence[str]]) -> list[Cluster]:
        """Return the clusters that are learned on their own; none if the log is learned from as a whole."""
        if isinstance(self.structure, MissingnessGraph):
            return clusters_of_log(log, names, self.structure)
        saturated = _NAMES[self.structure.lower()] == "saturated"
        return [] if saturated else clusters_of_log(log, names)

    def _fit_apart(self, log: Dataset, clusters: Sequence[Cluster], names: Sequence[Sequence[str]]) -> Self:
        learners: list[DynamicsEM] = []
        for cluster in clusters:
            kept, own = cluster.mdp.space.features.names, cluster.hidden
            structure, parameters = self.structure, self.get_params()
            hidden = log.feature_space.chosen(np.isin(np.arange(len(log.feature_space)), own))
            if isinstance(structure, MissingnessGraph):
                structure = _restricted(structure, kept, hidden)
            parameters |= {
                "mdp": cluster.mdp,
                "structure": structure,
                "blocks": [block for block in names if block[0] in hidden],
                "always_observed": [name for name in kept if name not in hidden],
            }
            learners.append(DynamicsEM(**parameters))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            apart = learn_apart(log, clusters, learners)
        self._keep_apart(apart)
        return self

    def _keep_apart(self, apart: Apart) -> None:
        log, learners = apart.log, apart.learners
        self.apart_, self.data_, self.found_ = apart, log, None
        self.missingness_ = apart.function([learner.missingness_ for learner in learners])
        self.log_likelihood_ = apart.added(lambda one: one.log_likelihood_) + apart.log_chance
        self.bic_ = apart.added(lambda one: one.bic_) + apart.log_chance
        self.n_parameters_ = sum(one.n_parameters_ for one in learners)
        self.trace_ = apart.traces(lambda one: one.trace_)
        self.starts_ = apart.traces(lambda one: one.starts_)
        self.converged_ = all(one.converged_ for one in learners)
        self.blocks_ = tuple(block for one in learners for block in one.blocks_)
        self.graph_ = apart.graph()  # pyright: ignore[reportIncompatibleVariableOverride]
        self.always_observed_ = self.graph_.always_observed
        self.unseen_ = apart.unseen()
        self.assumed_ = (
            f"{self.assumes}, in which gaps depend only on features that the dynamics tie to the missing one and on "
            "those that are always seen"
        )
        self.warnings_ = (*never_observed(as_counts(log)), *apart.findings())
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=4)

    def _model(self, searcher: Searcher[Histories]) -> tuple[StructureModel, Found | None]:
        """Return the structure with its prior, and how it was found where it was looked for."""
        mdp, blocks = searcher.mdp, searcher.blocks
        if isinstance(self.structure, MissingnessGraph):
            factors = graph_factors(mdp, blocks, self.structure)
            if not self.lump or not blocks.names:
                return self._penalised(searcher, factors), None
            found = searcher.search(allowed_parents(mdp, blocks, self.structure))
            return self._penalised(searcher, found.factors), found
        name = _NAMES[self.structure.lower()]
        if name == "auto" and blocks.names:
            everything = mdp.space.features.names
            found = searcher.search([(everything, tuple(range(i))) for i in range(len(blocks.names))])
            return self._penalised(searcher, found.factors), found
        if name == "logistic" and blocks.names:
            everything = [mdp.space.features.names] * len(blocks.names)
            return logistic_model(mdp, blocks, everything, searcher.prior, self.pseudo_count), None
        shape = "mcar" if name in ("auto", "logistic") else name
        return self._penalised(searcher, named_factors(mdp, blocks, shape)), None

    def _penalised(self, searcher: Searcher[Histories], factors: Any) -> StructureModel:
        return penalised(factors, searcher.prior, searcher.visits, self.pseudo_count)

    def _fits(
        self, searcher: Searcher[Histories], model: StructureModel, first: NDArray[np.float64]
    ) -> list[EMFit]:
        """Return the fits from all starts, that from AsMAR (or from the search) first."""
        generator = np.random.default_rng(self.seed)
        starts = [first, *(perturbed(searcher.prior, generator) for _ in range(self.starts - 1))]
        return [
            iterate(
                searcher.histories,
                model,
                start,
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
                threads=self.threads,
                report=None
                if searcher.tell is None
                else lambda _, value: cast("Any", searcher.tell)(model.name, value),
            )
            for start in starts
        ]

    def _keep(
        self, log: Dataset, searcher: Searcher[Histories], fits: list[EMFit], found: Found | None
    ) -> None:
        mdp, blocks, histories = log.known_mdp, searcher.blocks, searcher.histories
        self.apart_ = None
        best = max(fits, key=lambda fit: fit.objective)
        self.fit_, self.found_, self.histories_ = best, found, histories
        self.data_ = log
        self.missingness_ = _function(mdp, blocks, best.table)
        self.log_likelihood_ = best.log_likelihood
        self.n_parameters_ = best.model.n_parameters(mdp.reachable)
        self.bic_ = best.bic(log.n_steps, mdp.reachable)
        self.trace_, self.converged_ = best.trace, best.converged
        self.starts_ = tuple(fit.objective for fit in fits)
        self.blocks_, self.patterns_ = blocks.names, blocks.patterns
        self.expected_counts_ = best.expected
        self.always_observed_ = tuple(n for n in mdp.space.features.names if n not in blocks.features)
        self.graph_ = factors_graph(mdp, best.model)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.unseen_ = cells_without_data(mdp, best)
        self.assumed_ = self.assumes
        self.warnings_ = (*never_observed(as_counts(log)), *fit_warnings(mdp, best, fits, histories))
        for finding in self.warnings_:
            warnings.warn(str(finding), AssumptionWarning, stacklevel=3)

    def bootstrap(self, draws: int = 100, seed: int = 0) -> list[MissingnessFunction]:
        """Return M̂ fitted to logs that are drawn from the log with replacement, with the structure fixed.

        Whole episodes are drawn, or pieces between full observations where there are fewer than 20 episodes.
        """
        self.check_fitted()
        checked_integer("draws", draws, least=1)
        if self.apart_ is not None:
            drawn = [learner.bootstrap(draws, seed) for learner in self.apart_.learners]
            return [self.apart_.function(functions) for functions in zip(*drawn, strict=True)]
        fits = resampled_fits(
            self.histories_, self.fit_, draws, checked_seed(seed), self.threads, self.progress
        )
        blocks = self.fit_.model.blocks
        return [_function(self.mdp, blocks, fit.table) for fit in fits]

    def bound(
        self,
        confidence: float = 0.95,
        method: Method = "auto",
        *,
        behaviour: Behaviour | None = None,
        draws: int = 100,
        seed: int = 0,
    ) -> Bound:
        """Return bootstrap intervals for M. They are not guaranteed: there is no finite-sample bound.

        Parameters
        ----------
        confidence
            The confidence of each interval separately.
        method
            "bootstrap" is the only method; "auto" means the same.
        behaviour
            Without effect: the likelihood is the same, whatever the behaviour reacted to.
        draws
            How many logs to draw.
        seed
            Decides what is drawn.
        """
        self.check_fitted()
        self._check_bootstrap(method)
        checked_integer("draws", draws, least=1)
        checked_confidence(confidence)
        if self.apart_ is not None:
            declared = self.always_observed or ()
            return self.apart_.bound(
                self.missingness_, confidence, self.assumed_, declared, draws, checked_seed(seed)
            )
        fits = resampled_fits(
            self.histories_, self.fit_, draws, checked_seed(seed), self.threads, self.progress
        )
        return bootstrap_bound(
            self.mdp,
            self.fit_,
            fits if self.enough_to_resample() else (),
            confidence,
            self.assumed_,
            self.always_observed or (),
        )

    def enough_to_resample(self) -> bool:
        """Return whether there are data enough for a bootstrap; without, `bound` claims nothing, with a warning."""
        self.check_fitted()
        learners = (self,) if self.apart_ is None else self.apart_.learners
        fewest = min(learners, key=lambda one: n_units(one.histories_)).histories_
        return self._warn_of_few(n_units(fewest), units_of(fewest))

    def group_truths(self, bound: Bound, truth: MissMDP, weights: NDArray[np.float64]) -> list[GroupTruth]:
        """Return what is true of each group of a bound, in its order, where the true M is known."""
        if self.apart_ is not None:
            return self.apart_.group_truths(truth, weights)
        return factor_truths(self.fit_.model, truth, weights)

    def title(self) -> str:
        """Return the learner as a heading; an MDP has no short name, nor has an m-graph."""
        return (
            "DynamicsEM"
            if isinstance(self.structure, MissingnessGraph)
            else f"DynamicsEM(structure={self.structure!r})"
        )

    def details(self) -> list[str]:
        """Return what missingness depends on as far as was found, and how well that explains the data."""
        self.check_fitted()
        lines: list[str] = []
        for feature in self.graph_.can_go_missing:
            parents = self.graph_.parents(feature)
            own = ": it hides itself" if feature in parents else ""
            depends = f"depends on {', '.join(parents)}{own}" if parents else "does not depend on any value"
            lines.append(f"whether {feature} is missing {depends}")
        lines += [f"{a} and {b} do not go missing independently" for a, b in self.graph_.dependent]
        if self.apart_ is not None:
            lines.append(
                f"learned in {len(self.apart_.clusters)} clusters that the dynamics do not tie together"
            )
        ended = "converged" if self.converged_ else "not converged"
        lines.append(
            f"log-likelihood {f'{self.log_likelihood_:,.1f}'.replace('-', '−')}, "
            f"{count(self.n_parameters_, 'free parameter')}, {count(len(self.trace_), 'iteration')}, {ended}"
        )
        return lines


def _restricted(graph: MissingnessGraph, kept: Sequence[str], hidden: Sequence[str]) -> MissingnessGraph:
    """Return what a graph says of some features that go missing."""
    return MissingnessGraph(
        [(parent, child) for parent, child in graph.edges if child in hidden],
        features=kept,
        can_go_missing=[name for name in graph.can_go_missing if name in hidden],
        dependent=[pair for pair in graph.dependent if pair[0] in hidden],
    )


def _function(mdp: FactoredMDP, blocks: Blocks, table: NDArray[np.float64]) -> MissingnessFunction:
    return MissingnessFunction(mdp.space, blocks.patterns, np.ascontiguousarray(table.T))
