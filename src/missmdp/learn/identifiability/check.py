"""The question whether M is identified, given T or together with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_integer, checked_names, checked_seed
from missmdp.errors import ParameterError
from missmdp.learn.blocks import Blocks, checked_feature_blocks
from missmdp.learn.em.iterate import PenalisedFactors
from missmdp.learn.em.logistic import Logistic, logistic_model
from missmdp.learn.em.structures import Factors, graph_factors, named_factors
from missmdp.learn.identifiability.chains import Chains, Flow
from missmdp.learn.identifiability.counterexample import counterexample
from missmdp.learn.identifiability.dynamics_structures import as_dynamics, checked_transitions
from missmdp.learn.identifiability.global_condition import globally_identified
from missmdp.learn.identifiability.possible_observations import PossibleObservations, possible_observations
from missmdp.learn.identifiability.result import (
    Identifiability,
    identified_from_snapshots,
    nothing_to_identify,
    open_entries,
    open_states,
)
from missmdp.learn.identifiability.spans import (
    NullSpace,
    Span,
    known_rows,
    left_rows,
    null_space,
    one_step_spans,
    stacked,
    widest_spans,
)
from missmdp.learn.identifiability.tangent import Tangent, is_saturated, open_in_saturated, tangent_of
from missmdp.learn.identifiability.with_dynamics import identified_with_dynamics
from missmdp.learn.joint.estimator import JointEM
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.words import listed

StructureChoice = Literal["mcar", "smar", "logistic", "saturated"] | MissingnessGraph | Factors | Logistic

_NAMES = ("mcar", "smar", "logistic", "saturated")

_MANY = 3000
"""Probabilities of a saturated M from which on what is open is looked for one observation at a time first."""

_FEWER = "ask about a model with fewer features that go missing"


TransitionsChoice = Literal["known", "unknown"] | Mapping[str, Any]


def identifiability(
    mdp: FactoredMDP | MissMDP | JointEM | None,
    structure: StructureChoice | None = None,
    *,
    transitions: TransitionsChoice | None = None,
    blocks: Sequence[Sequence[str]] | None = None,
    policy: Policy | Callable[[Any], Any] | None = None,
    horizon: int | None = None,
    seed: int = 0,
) -> Identifiability:
    """Return whether M is identified by what can be observed, given the dynamics T, or together with T.

    The distribution of the observations z₀ … z_h given the actions is a function of M. M is identified if no other
    M of the structure has the same distribution. Every pattern of the features that can go missing is assumed to be
    possible in every state, full observation in particular.

    Three things are computed: a condition on ranks of T that suffices for M to be identified; the rank of the
    Jacobian of the distribution at a random M, where full rank means that no small change of M goes unnoticed; and
    what no history, however long, can reveal, or another M with the same distribution, either of which shows that M
    is not identified.

    With `transitions` unknown the question is about T, b₀ and M together: whether no other T, b₀ and M, at least none
    close by, have the same distribution. What cannot happen under the given T and b₀ counts as known.

    Parameters
    ----------
    mdp
        The MDP, or a miss-MDP, whose M then says what can go missing, and nothing else. A `JointEM` that was fitted
        asks about what it learned, T included: its T̂ and its structures. None asks what single
        observations identify under an m-graph, without known dynamics: M is identified if and only if there is no
        self-censoring edge S_i → R_i and no colluder S_j → R_i ← R_j, where a dependence of indicators counts as an
        edge in either direction.
    structure
        What is known about M: "mcar", "smar" (simple MAR), a `MissingnessGraph`, "logistic", "saturated", as for
        `DynamicsEM`. By default that of the learner; without one it is needed.
    transitions
        What is known about T: "known", which is the default for an MDP; "unknown", where every state and action has a
        distribution of its own; or the features on which the next value of each feature depends besides the action, as
        for `JointEM`. The default for a `JointEM` is the structure that it found. Where T is unknown, b₀ is, too.
    blocks
        What can go missing: lists of features that are seen or missing as a whole. By default what goes missing in the
        miss-MDP; each feature of the m-graph that can go missing, on its own; or all features, each on its own.
    policy
        The policy that produces the data, which decides what is visited; by default every action is possible. A
        policy without memory, or a function from observation to action or {action: probability}.
    horizon
        How many steps to follow histories after a full observation, if single steps leave something open; by default 2
        if T is known, and otherwise until longer ones say nothing more, 12 at most.
    seed
        Draws the M at which ranks are computed; for almost every M they are the same.

    Examples
    --------
    >>> import missmdp as mm
    >>> truth = mm.load_benchmark("icu-mnar-unid")
    >>> mm.identifiability(truth.mdp, truth.mgraph()).identified
    True
    >>> mm.identifiability(None, truth.mgraph()).identified
    False
    >>> small = mm.load_benchmark("predator-mnar-unid")
    >>> mm.identifiability(small, small.mgraph(), transitions="unknown").identified
    True
    """
    learner = mdp if isinstance(mdp, JointEM) else None
    if learner is not None:
        learner.check_fitted()
        structure, mdp = _learned_structure(learner, structure), learner.miss_mdp_
    if structure is None:
        raise ParameterError(
            "structure", structure, "what is known about M", "only a fitted JointEM has its own"
        )
    chosen = checked_transitions(transitions, learner)
    if mdp is None:
        if not isinstance(structure, MissingnessGraph):
            problem = f"without an MDP the question is about an m-graph, not about {structure!r}"
            raise ParameterError("structure", structure, "a MissingnessGraph", problem)
        if chosen != "known":
            problem = "without an MDP there are no transitions to ask about"
            raise ParameterError("transitions", transitions, "left out", problem)
        return identified_from_snapshots(structure)
    if isinstance(mdp, MissMDP):
        if blocks is None and not isinstance(structure, Factors | Logistic):
            blocks = _blocks_of(mdp)
        mdp = mdp.mdp
    mdp = checked_mdp(mdp)
    horizon = None if horizon is None else checked_integer("horizon", horizon, least=1)
    rng = np.random.default_rng(checked_seed(seed))
    made = as_structure(mdp, structure, blocks)
    if chosen != "known":
        if not made.blocks.names:
            made = named_factors(mdp, made.blocks, "mcar")
        dynamics = as_dynamics(mdp, chosen, learner)
        seen = possible_observations(mdp, made.blocks.patterns, policy)
        return identified_with_dynamics(mdp, made, dynamics, seen, horizon, rng)
    if not made.blocks.names:
        return nothing_to_identify(mdp, made.name)
    return _identifiability(mdp, made, policy, 2 if horizon is None else horizon, rng)


def _learned_structure(learner: JointEM, structure: StructureChoice | None) -> StructureChoice:
    """Return the structure of M to ask about: the one that was found, unless another is given."""
    if structure is not None:
        return structure
    if learner.fit_ is None:
        return cast("MissingnessGraph", learner.graph_)
    model = learner.fit_.model
    return model.factors if isinstance(model, PenalisedFactors) else cast("Logistic", model)


def _blocks_of(model: MissMDP) -> tuple[tuple[str, ...], ...]:
    """Return what can go missing in reachable states, features that always do so together in one block."""
    known = model.missingness
    occurs = (known.probabilities[model.mdp.reachable] > 0.0).any(axis=0)
    return Blocks.seen_in(model.mdp, known.patterns[occurs]).names


def _identifiability(
    mdp: FactoredMDP,
    structure: Factors | Logistic,
    policy: Policy | Callable[[Any], Any] | None,
    horizon: int,
    generator: np.random.Generator,
) -> Identifiability:
    seen = possible_observations(mdp, structure.blocks.patterns, policy)
    tangent = tangent_of(structure, mdp.reachable, generator)
    rows = known_rows(mdp, seen)
    spans = one_step_spans(rows, seen.members)
    offsets = seen.pattern * mdp.n_states
    whole = stacked(spans, seen.members, offsets, tangent.table.size)
    spread = min(span.margin for span in spans)
    if isinstance(structure, Factors) and is_saturated(structure) and tangent.n_parameters > _MANY:
        widest = _widest(mdp, seen, spans, generator)
        unseen = open_in_saturated(structure, seen, widest, tangent, generator)
        if unseen.dimension:
            return _Facts(mdp, structure, seen, spans, tangent, horizon, spread).answer(
                identified=False,
                locally=False,
                open_=unseen.some,
                moved=unseen.some,
                left=unseen.dimension,
            )
    if isinstance(structure, Factors):
        margin = globally_identified(mdp, structure, seen, whole, rows, tangent)
        if margin:
            nothing = np.zeros((tangent.n_parameters, 0))
            facts = _Facts(mdp, structure, seen, spans, tangent, horizon, min(margin, spread))
            return facts.answer(identified=True, locally=True, open_=nothing, moved=nothing)
    one_step = null_space(sparse.csr_array(whole @ tangent.jacobian))
    wide = stacked(_widest(mdp, seen, spans, generator), seen.members, offsets, tangent.table.size)
    never = null_space(sparse.csr_array(wide @ tangent.jacobian)) if one_step.dimension else one_step
    open_ = _left_open(mdp, seen, rows, tangent, one_step, never, horizon)
    another = None
    if isinstance(structure, Factors) and not never.dimension:
        another = counterexample(structure, mdp.reachable, wide, generator)
    return _Facts(mdp, structure, seen, spans, tangent, horizon, min(one_step.margin, spread)).answer(
        identified=False if never.dimension or another is not None else None,
        locally=True if open_.shape[1] == 0 else False if never.dimension else None,
        open_=open_,
        moved=open_ if another is None else np.concatenate([open_, another.difference[:, None]], axis=1),
    )


class _Facts(NamedTuple):
    """What every answer is made from."""

    mdp: FactoredMDP
    structure: Factors | Logistic
    seen: PossibleObservations
    spans: Sequence[Span]
    tangent: Tangent
    horizon: int
    margin: float

    def answer(
        self,
        *,
        identified: bool | None,
        locally: bool | None,
        open_: NDArray[np.float64],
        moved: NDArray[np.float64],
        left: int | None = None,
    ) -> Identifiability:
        """Return the answer, with directions that are open and those in which M moves unnoticed, columns each.

        `left` says how many are open where these are only some of them.
        """
        decode = self.mdp.space.features.decode_observation
        return Identifiability(
            structure=self.structure.name,
            identified=identified,
            globally=identified is True,
            locally=locally,
            horizon=self.horizon,
            n_parameters=self.tangent.n_parameters,
            rank=self.tangent.n_parameters - (open_.shape[1] if left is None else left),
            unidentified=open_entries(self.mdp, self.structure, self.tangent, moved),
            states=open_states(self.mdp, self.tangent, moved),
            undetermined=tuple(
                decode(codes)
                for span, codes in zip(self.spans, self.seen.codes, strict=True)
                if not span.full
            ),
            margin=self.margin,
        )


def _widest(
    mdp: FactoredMDP, seen: PossibleObservations, spans: Sequence[Span], generator: np.random.Generator
) -> list[Span]:
    """Return all that histories of any length could say at each observation."""
    narrow = [z for z, span in enumerate(spans) if not span.full]
    wide = widest_spans(mdp, seen, left_rows(mdp, seen), narrow, generator)
    return [wide.get(z, span) for z, span in enumerate(spans)]


def _left_open(
    mdp: FactoredMDP,
    seen: PossibleObservations,
    rows: sparse.csc_array,
    tangent: Tangent,
    one_step: NullSpace,
    never: NullSpace,
    horizon: int,
) -> NDArray[np.float64]:
    """Return the directions in which no law of z₀ … z_h changes, h ≤ horizon, orthonormal, shape (P, left)."""
    surely = never.basis.toarray()
    if one_step.dimension == never.dimension:
        return surely
    rest = _beyond(one_step.basis.toarray(), surely)
    chains = Chains(seen, Flow.known(mdp, seen, rows), tangent, rest)
    if not chains.affordable:
        return np.concatenate([surely, rest], axis=1)
    return np.concatenate([surely, rest @ chains.unseen_directions(horizon)], axis=1)


def _beyond(space: NDArray[np.float64], inside: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis of what a space has beyond a space in it, columns each."""
    rest = space - inside @ (inside.T @ space)
    basis, _, _ = np.linalg.svd(rest, full_matrices=False)
    return basis[:, : space.shape[1] - inside.shape[1]]


def as_structure(
    mdp: FactoredMDP, structure: StructureChoice, blocks: Sequence[Sequence[str]] | None
) -> Factors | Logistic:
    """Return the structure over blocks of features that can go missing.

    Raises
    ------
    DataError
        If it is none.
    """
    if isinstance(structure, Factors | Logistic):
        if blocks is not None:
            raise ParameterError("blocks", blocks, "None", "these factors have their blocks already")
        return structure
    features = mdp.space.features
    if isinstance(structure, MissingnessGraph):
        checked_names("structure", structure.features, features.names)
        own = _covering(
            structure.can_go_missing, [] if blocks is None else checked_feature_blocks(features, blocks)
        )
        return graph_factors(mdp, Blocks.of(features, own, mdp.n_states, _FEWER), structure)
    if not isinstance(structure, str) or structure not in _NAMES:  # pyright: ignore[reportUnnecessaryIsInstance]
        names = listed([repr(name) for name in _NAMES], "or")
        raise ParameterError("structure", structure, f"a MissingnessGraph, {names}")
    own = [(name,) for name in features.names] if blocks is None else checked_feature_blocks(features, blocks)
    made = Blocks.of(features, own, mdp.n_states, _FEWER)
    if structure == "logistic":
        even = np.full((len(made.missing), mdp.n_states), 1.0 / len(made.missing))
        return logistic_model(mdp, made, [features.names] * len(made.names), even, 0.0)
    return named_factors(mdp, made, structure)


def _covering(names: Sequence[str], blocks: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the blocks, and one for every other name."""
    inside = {name for block in blocks for name in block}
    return [*blocks, *((name,) for name in names if name not in inside)]
