"""Where a fit, or its data, give reason for doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from missmdp.learn.assumptions import Finding
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit
from missmdp.model.mdp import FactoredMDP

__all__ = ["doubts"]

_SAME, _SAME_EACH = 0.5, 1e-3
"""Nats within which two starts have found the same likelihood: these, and so many more for each parameter."""
_APART = 0.02
"""Total variation, over visits, above which two M are not the same."""


def doubts(mdp: FactoredMDP, best: EMFit, fits: Sequence[EMFit], histories: Histories) -> Iterator[Finding]:
    """Yield what a user should know of a fit: data that do not fit, no convergence, starts that disagree."""
    if histories.impossible:
        yield Finding(
            f"{histories.impossible:,} of {histories.n_steps:,} observations cannot happen after what came "
            "before them, whatever is missing, and are left out (missmdp.validate says which)",
            (),
        )
    if not best.converged:
        yield Finding(f"the likelihood still rises after {len(best.trace):,} iterations (max_iterations)", ())
    visits = best.expected.sum(axis=0) / max(float(best.expected.sum()), 1e-300)
    apart = [float(0.5 * np.abs(fit.table - best.table).sum(axis=0) @ visits) for fit in fits]
    lower = [best.objective - fit.objective for fit in fits]
    same = _SAME + _SAME_EACH * best.model.n_parameters(mdp.reachable)
    equal = [distance for gap, distance in zip(lower, apart, strict=True) if gap <= same]
    if max(equal) > _APART:
        yield Finding(
            f"different M explain the data equally well (total variation {max(equal):.2f} over visits): M "
            "is not identified with this structure; see missmdp.identifiability",
            (),
        )
    elif max(lower) > same:
        yield Finding(
            f"starts disagree: some end at a log-likelihood that is {max(lower):,.1f} lower; the best is "
            "kept, and more starts may find a better one",
            (),
        )
