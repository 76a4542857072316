"""What an m-graph says by itself: whether M is identified from single observations, whatever T is.

The full law of states and indicators is identified if and only if the m-graph has no self-censoring edge S_i → R_i
and no colluder S_j → R_i ← R_j (Nabi, Bhattacharya and Shpitser, ICML 2020), provided that every pattern is possible.
The graphs of that theorem have directed edges between indicators. Ours have none: a dependence R_i — R_j is taken
as an edge in whichever direction makes a colluder, since nothing in the graph rules it out.
"""

from __future__ import annotations

from missmdp.learn.identifiability.result import Identifiability, Unidentified
from missmdp.model.mgraph import MissingnessGraph

__all__ = ["identified_from_snapshots"]


def identified_from_snapshots(graph: MissingnessGraph) -> Identifiability:
    """Return whether single observations identify M under an m-graph, and what stands against it."""
    edges = set(graph.edges)
    found: dict[str, list[str]] = {}
    for name in graph.self_censoring:
        found.setdefault(name, []).append(f"S_{name} → R_{name} is self-censoring")
    for one, other in graph.dependent:
        for i, j in ((one, other), (other, one)):
            if (j, i) in edges:
                found.setdefault(i, []).append(f"S_{j} → R_{i} ← R_{j} is a colluder")
    return Identifiability(
        structure="m-graph, single observations",
        identified=not found,
        globally=not found,
        locally=None,
        horizon=None,
        n_parameters=None,
        rank=None,
        unidentified=tuple(
            Unidentified((name,), {}, ((name,),), None, why=", ".join(reasons))
            for name, reasons in found.items()
        ),
        states=None,
        undetermined=(),
        margin=1.0,
    )
