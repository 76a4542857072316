"""The arrays that the solver's kernels share.

What grows is a pool with a counter: `Points` (beliefs), `Seen` and `Entries` (what can follow a point and an
action), `MixtureWeights` (of which points an entry is a mixture), `Vectors` (α-vectors). Python owns the arrays and
makes them larger; kernels say when they need room.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from missmdp._kernels.records import record

Int32s: TypeAlias = Any
Int64s: TypeAlias = Any
Floats: TypeAlias = Any
Bools: TypeAlias = Any
"""Arrays by their element type. Numba checks it; to the type checker they are anything, as elements of arrays are."""

POINTS, SUPPORT, SEEN, ENTRIES, WEIGHTS, VECTORS, VALUES, CHOICES, NEAR, BACKUPS, WORK = range(11)
"""Places in the counters: how much of each pool is in use, backups made, multiplications spent."""
N_COUNTERS = 11


@record
class Compiled(NamedTuple):
    """A POMDP as the kernels see it: C classes of states in components, A actions, N nodes (observations), P pairs.

    A *pair* is a node and a class that it leaves possible. Classes of one component are neighbours, and so are pairs of
    one node. The start may be the last class, alone in the last component: its row is what comes first.
    """

    reward: Floats
    """(C, A)"""
    start: Int64s
    """(C · A + 1,): row c · A + a of the joint probabilities is start[row] .. start[row + 1]."""
    pair: Int32s
    node: Int32s
    target: Int32s
    """The pair, node and class of each entry of a row."""
    prob: Floats
    """γ P(node, class′ | class, action)."""
    pair_class: Int32s
    """(P,)"""
    node_start: Int64s
    """(N + 1,): the pairs of each node."""
    node_component: Int32s
    """(N,)"""
    component_start: Int64s
    """(B + 1,): the classes of each component."""
    component_of: Int32s
    """(C,)"""
    next_start: Int64s
    """(B · A + 1,): the nodes that can follow a component and an action."""
    next_node: Int32s
    least: Floats
    """(C,): what every plan is worth there, at least."""


@record
class Points(NamedTuple):
    """Beliefs, and what is known about their values. The first C points are the corners: one class each."""

    start: Int64s
    """(points + 1,): the classes that are possible at each point."""
    support: Int32s
    prob: Floats
    component: Int32s
    next_in_component: Int32s
    first_in_component: Int32s
    """(B,)"""
    n_in_component: Int64s
    """(B,)"""
    holding: Int32s
    """(places, 2): for each place in `support` its point, and the next place with the same class, −1 for none. The
    list of a class begins at the place of its corner, which is the class. Empty where such lists are not kept."""
    hash: Int64s
    slots: Int32s
    """Hash table of points, −1 where empty; its length is a power of two."""
    reward: Floats
    """(points, A)"""
    base: Floats
    """(points, A): the reward, and the upper bounds of the corners that can follow."""
    q: Floats
    """(points, A): upper bounds on the value of taking an action."""
    upper: Floats
    """max over actions of q."""
    seen: Int64s
    """(points, A): where the corners that can follow begin, −1 where what follows has not been worked out."""
    n_seen: Int32s
    """(points, A)"""
    entries: Int64s
    """(points, A): where the other beliefs that can follow begin."""
    n_entries: Int32s
    """(points, A)"""
    lower: Floats
    """The highest value of any vector there so far. It is at most V*, though the vector may be gone: all vectors are
    values of plans, or plans followed by such."""
    best: Int32s
    """The α-vector that is best at the point."""
    value: Floats
    """Its value at the point."""
    visits: Floats
    """Expected discounted visits from the start under the optimistic policy."""


@record
class Seen(NamedTuple):
    """What can follow a point and an action where nothing is left in doubt: a corner."""

    point: Int32s
    prob: Floats


@record
class Entries(NamedTuple):
    """What else can follow a point and an action: a belief, written as a mixture of points."""

    prob: Floats
    node: Int32s
    hash: Int64s
    lower: Floats
    """A lower bound on the value of the belief."""
    first: Int64s
    """Where its weights begin."""
    size: Int32s
    room: Int32s
    """How many weights fit there."""
    excess: Floats
    """What the mixture has beyond the belief is worth so much, at least."""
    stamp: Int64s
    """Points in the component when the mixture was made; −1 if the belief is itself a point."""


@record
class MixtureWeights(NamedTuple):
    point: Int32s
    weight: Floats


@record
class Vectors(NamedTuple):
    """α-vectors, each over the classes of one component, and the controller that they form."""

    start: Int64s
    """Where the values begin: one per class of the component."""
    values: Floats
    planned: Bools
    """For each place in `values`, whether it is the value of the plan; elsewhere it is what every plan is worth, at
    least."""
    component: Int32s
    action: Int32s
    choice_start: Int64s
    choice: Int32s
    """The vector that follows, for each node that can follow the component and the action."""
    origin: Int32s
    """The point at which the vector was made; −1 for blind ones, and where the point is gone."""
    fall: Floats
    """How far the vector was above the value of its plan when last evaluated, in some class."""
    needed: Bools
    """Whether the start's vector leads to it."""
    next_in_component: Int32s
    first_in_component: Int32s
    """(B,)"""
    default: Int32s
    """(N,): the vector for nodes that have probability zero at a point."""
    near: Int32s
    """(C + entries, 2): lists of the vectors that are best at some point with a class. Each entry is a vector and the
    next entry, −1 for none; row c is for class c, without a vector. Empty where such lists are not kept."""


@record
class Scratch(NamedTuple):
    """Working space; D is the size of the largest component."""

    joint: Floats
    """(P,), all zero between calls."""
    touched: Int32s
    """(N,)"""
    mark: Bools
    """(N,), all False between calls."""
    row_of: Int32s
    """(C,), all −1 between calls."""
    support: Int32s
    """(D,)"""
    prob: Floats
    """(D,)"""
    inverse: Floats
    """(E, E), by columns: E is D, or less. Components and beliefs with more than E classes are *wide*."""
    rows: Int32s
    """(E,)"""
    share: Floats
    """(E,)"""
    level: Floats
    """(D,)"""
    rest: Floats
    """(D,)"""
    price: Floats
    """(C,), the least values between calls."""
    candidate: Int32s
    """Points that may come into a mixture."""
    saving: Floats
    """What each of them saved when they were listed."""
    direction: Floats
    """(D,)"""
    basis: Int32s
    """(D,)"""
    weight: Floats
    """(2 D,)"""
    mixed: Int32s
    """(2 D,)"""
    per_action: Floats
    """(A,)"""
    base: Int64s
    """(N,)"""
    choice: Int32s
    """(N,)"""
    best_choice: Int32s
    """(N,)"""
    seen_at: Int64s
    """(C,), all −1 between calls."""
