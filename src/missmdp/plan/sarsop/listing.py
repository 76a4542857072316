"""Whether a model can be solved with lists of its states and observations, and what to do where it cannot."""

from __future__ import annotations

import math

from missmdp.memory import check_fits, free_memory
from missmdp.model.missing_factors import count_patterns
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.factored.search import structured_parts

BYTES_PER_ENTRY = 100
"""What a joint probability takes while a model is compiled; afterwards it is a fifth of that."""


_SMALL_PART = 2
"""Features whose gaps come together in a part of M that is small."""
_BYTES_ONLINE = 60.0
"""What OnlinePlanner takes per transition, and per pair of a state and what is seen of it."""


def check_entries(
    model: MissMDP | POMDP, entries: float, more: float = 0.0, *, observe_initial: bool = True
) -> None:
    """Raise `ModelError` if lists of so many joint probabilities, and more bytes, would not fit into memory."""
    check_fits(
        f"searching a model with {entries:.2g} joint probabilities of next states and observations",
        BYTES_PER_ENTRY * entries + more,
        what_works(model, observe_initial=observe_initial),
    )


def check_listable(model: MissMDP, *, observe_initial: bool) -> None:
    """Raise `ModelError` if a large model cannot be listed, before anything is."""
    if model.mdp.is_small and model.missingness.is_small:
        return
    per_state = math.prod(float((part.table > 0.0).sum(axis=1).mean()) for part in model.missingness.parts)
    check_entries(model, model.mdp.n_entries * per_state, observe_initial=observe_initial)


def without_lists(model: MissMDP | POMDP) -> str:
    """Return which solver to use instead of one that lists what can be seen."""
    if isinstance(model, MissMDP) and structured_parts(model) is not None:
        return "use Sarsop, which works feature by feature"
    return "use a coarser model, or fewer features that go missing"


def what_works(model: MissMDP | POMDP, *, observe_initial: bool = True) -> str:
    """Return what to do with a model that is too large to be listed."""
    online = "plan while acting with OnlinePlanner"
    if not isinstance(model, MissMDP):
        return online
    sights = float(model.n_states) * count_patterns(model.missingness.parts)
    ways = [online] if _BYTES_ONLINE * (model.mdp.n_entries + sights) <= free_memory() else []
    if not observe_initial:
        ways.insert(0, "let the policy act after the first observation, as is the default")
    elif model.mdp.factors is None:
        ways.insert(0, "write the dynamics down feature by feature (FactoredMDP.from_factors)")
    elif max((len(factor.features) for factor in model.missingness.factors or ()), default=99) > _SMALL_PART:
        ways.insert(
            0,
            "use an M that is a product of small parts, such as AIMI(assume='simple MAR') or AIMI(graph=…) learn it",
        )
    return ", or ".join(ways) or "use fewer features or values: too many of them depend on each other"
