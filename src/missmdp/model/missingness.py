"""Missingness functions M: from a state to a distribution over which features are seen.

The paper's M: S → Δ(Z) is kept as P(pattern | state), where a pattern is the vector r of missingness indicators
(True = observed). The observation then follows from state and pattern, so z ⪯ s holds by construction and
equalities between states are equalities of rows.

M is a product of parts, each over the indicators of some features. Where the table over all patterns and states is
small it is multiplied out at once, and everything is read from it. Where it is large, everything is worked out from
the parts, and the table only if somebody asks for it.

Deviation: the paper writes equalities of M(z | s) across states; they hold for indicators r, not for
observations z, which carry the state's own values (M(z | s) has the factor 1[z ⪯ s]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_generator, checked_instance, checked_list, checked_shape
from missmdp.errors import ModelError, ParameterError
from missmdp.memory import check_fits
from missmdp.model.missing_factors import (
    MissingFactor,
    Part,
    can_go_missing,
    count_patterns,
    distinct_patterns,
    found_factors,
    given_rate,
    joint_groups,
    listed_patterns,
    pattern_order,
)
from missmdp.model.probabilities import as_flags, as_floats, call, checked_table, number
from missmdp.model.space import MISSING, Rows, StateSpace
from missmdp.pages.notebook import notebook_table
from missmdp.progress import show_progress
from missmdp.words import count, percent, percent_range

if TYPE_CHECKING:
    from missmdp.model.mdp import FactoredMDP

_SMALL = 20_000_000
"""Entries of P(pattern | state) up to which it is multiplied out at once (160 MB)."""

_MAX_PATTERNS = 2_000_000
"""Patterns above which they are not listed."""

_WITHOUT_TABLE = "M.factors, M.missing_rate(feature) and M.likelihood(observation) need no such list"

_MANY_PAIRS = 4_000_000
"""Pairs of patterns above which they are not compared one by one."""


Rate = Callable[[Any], float] | float | tuple[Sequence[str] | str, Callable[..., float] | NDArray[np.float64]]
"""P(missing): a function of the state, one number, or (features, function of their values or array)."""


class Occurring(NamedTuple):
    """What can be observed, and from where: entry j is state[j] under pattern[j], seen as observation place[j]."""

    observations: Rows
    """Distinct observations in order of rank."""
    state: NDArray[np.int64]
    pattern: NDArray[np.int64]
    place: NDArray[np.int64]


class MissingnessFunction:
    """P(observed pattern | state) over the patterns that occur.

    Parameters
    ----------
    space
        The states, usually `mdp.space`.
    patterns
        Distinct vectors of indicators (True = observed), shape (K, n).
    probabilities
        P(pattern | state), shape (S, K). Patterns of probability zero in every state are dropped.

    Attributes
    ----------
    patterns : numpy.ndarray
        The patterns that occur, fully observed first, shape (K, n).
    probabilities : numpy.ndarray
        P(pattern | state), shape (S, K); multiplied out when asked for, where it is large.
    factors : tuple of MissingFactor or None
        M taken apart into independent sets of indicators.
    parts : tuple of Part
        M as it was given.

    Examples
    --------
    >>> import missmdp as mm
    >>> M = mm.load_benchmark("example-1").missingness
    >>> M.distribution(("y", "x"))
    {Observation(first='y', second='x'): 0.5, Observation(first='y', second=None): 0.5}
    """

    def __init__(
        self, space: StateSpace, patterns: NDArray[np.bool_], probabilities: NDArray[np.float64]
    ) -> None:
        space = checked_instance("space", space, StateSpace, "a StateSpace", "an MDP has one in .space")
        observed = as_flags(patterns, "patterns", "True for observed and False for missing")
        table = as_floats(probabilities, "probabilities")
        if observed.ndim != 2 or observed.shape[1] != len(space.features) or len(observed) == 0:
            raise ParameterError("patterns", observed.shape, f"of shape (patterns, {len(space.features)})")
        checked_shape("probabilities", table, (len(space), len(observed)), "(states, patterns)")
        if len(distinct_patterns(observed)[0]) != len(observed):
            raise ParameterError("patterns", patterns, "distinct", "a pattern is listed twice")
        table = checked_table(table, lambda row: f"missingness of state {space.state(row)!r}")
        occurs = np.flatnonzero((table > 0.0).any(axis=0))
        order = occurs[pattern_order(observed[occurs])]
        self.space = space
        self.patterns = _frozen(observed[order])
        self.probabilities = _frozen(table[:, order])
        self.parts: tuple[Part, ...] = (
            Part(tuple(range(len(space.features))), self.patterns, self.probabilities, None),
        )
        self.is_small: bool = True
        """Whether everything is read from the table over all patterns and states."""

    @classmethod
    def from_parts(cls, space: StateSpace, parts: Iterable[Part]) -> MissingnessFunction:
        """Return the M that is a product of parts, independent of each other given the state."""
        whole = tuple(parts)
        n_patterns = count_patterns(whole)
        if not whole or (n_patterns <= _MAX_PATTERNS and len(space) * n_patterns <= _SMALL):
            made = cls(space, *_multiplied_out(space, whole))
        else:
            made = cls.__new__(cls)
            made.space, made.is_small = space, False
        made.parts = whole
        return made

    @cached_property
    def patterns(self) -> NDArray[np.bool_]:
        """The patterns that occur, fully observed first, shape (K, n)."""
        if count_patterns(self.parts) > _MAX_PATTERNS:
            raise ModelError(
                f"there are {count_patterns(self.parts):.2g} patterns, too many to list them; {_WITHOUT_TABLE}"
            )
        return _frozen(listed_patterns(self.space, self.parts))

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """P(pattern | state), shape (S, K); parts are multiplied out here.

        Raises
        ------
        ModelError
            If the table would not fit into memory.
        """
        entries = float(len(self.space)) * len(self.patterns)
        what = f"the table of {len(self.patterns):,} patterns by {len(self.space):,} states"
        # Each probability takes 8 bytes, and as much again three times while it is made.
        check_fits(what, 32.0 * entries, _WITHOUT_TABLE)
        return MissingnessFunction(self.space, *_multiplied_out(self.space, self.parts)).probabilities

    @cached_property
    def _pattern_index(self) -> dict[tuple[bool, ...], int]:
        return {tuple(map(bool, row)): k for k, row in enumerate(self.patterns)}

    @cached_property
    def factors(self) -> tuple[MissingFactor, ...] | None:
        """M taken apart: sets of indicators that are independent given the state, and what each depends on.

        None if the states are not all combinations of the features' values. Features that are always seen are in no
        factor. Equalities hold up to rounding (10⁻¹²).
        """
        return found_factors(self.space, self.parts) if self.space.is_product else None

    @classmethod
    def independent(cls, mdp: FactoredMDP, missing: Mapping[str, Rate]) -> MissingnessFunction:
        """Return the M in which features go missing independently.

        Parameters
        ----------
        missing
            Feature → P(missing): one number, a function of the state, or a pair of the features that it depends on
            and a table. A table is a function of their values, or an array with one axis for each; it is evaluated
            once per combination of those values, however many states there are. Features that are not named are
            always observed.

        Examples
        --------
        >>> import missmdp as mm
        >>> mdp = mm.load_benchmark("icu-smar").mdp
        >>> M = mm.MissingnessFunction.independent(
        ...     mdp, {"heart_rate": ("temperature", lambda temperature: 0.1 + 0.1 * (temperature == 0)), "test": 0.2}
        ... )
        """
        if not isinstance(missing, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _no_mapping("feature", missing)
        return cls.blocks(mdp, {(name,): probability for name, probability in missing.items()})

    @classmethod
    def blocks(cls, mdp: FactoredMDP, missing: Mapping[Sequence[str] | str, Rate]) -> MissingnessFunction:
        """Return the M in which blocks of features go missing together, and the blocks independently.

        Parameters
        ----------
        missing
            Block of features → P(the whole block is missing), given as in `independent`. Features in no block are
            always observed.
        """
        space = _space(mdp)
        if not isinstance(missing, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _no_mapping("block", missing)
        blocks = [_checked_block(block) for block in missing]
        masks = [space.features.mask(block) for block in blocks]
        if masks:
            owners = np.sum(masks, axis=0)
            if (owners > 1).any():
                problem = f"the feature {space.features.chosen(owners > 1)[0]!r} is in two blocks"
                raise ParameterError("missing", missing, "disjoint blocks", problem)
            if not all(mask.any() for mask in masks):
                raise ParameterError("missing", missing, "blocks of features", "a block of features is empty")
        return cls.from_parts(
            space,
            [given_rate(rate, block, space) for block, rate in zip(blocks, missing.values(), strict=True)],
        )

    @classmethod
    def from_patterns(
        cls, mdp: FactoredMDP, function: Callable[[Any], Mapping[Any, float]]
    ) -> MissingnessFunction:
        """Return the M given by a function state → {pattern: probability}.

        A pattern is the paper's r: a tuple with one entry per feature, in order, where True or 1 means
        observed and False or 0 means missing.
        """
        space = _space(mdp)
        if not callable(function):
            raise ParameterError("function", function, "a function state → {pattern: probability}")
        numbers: dict[tuple[bool, ...], int] = {}
        entries: list[tuple[int, int, float]] = []
        with show_progress("Evaluating the missingness function", len(space)) as advance:
            for s, state in enumerate(space.states):
                advance()
                given = call(function, "the missingness function", state)
                if not isinstance(given, Mapping):
                    raise ModelError(
                        f"missingness of state {state!r}: expected {{pattern: probability}}, got {type(given).__name__}"
                    )
                for pattern, probability in cast("Mapping[Any, Any]", given).items():
                    key = _checked_pattern(pattern, len(space.features), state)
                    weight = number(
                        probability, "missingness of state {!r}: the probability of {!r}", state, pattern
                    )
                    entries.append((s, numbers.setdefault(key, len(numbers)), weight))
        table = np.zeros((len(space), max(len(numbers), 1)))
        for s, k, weight in entries:
            table[s, k] += weight
        patterns = np.array(list(numbers) or [(True,) * len(space.features)], dtype=np.bool_)
        return cls(space, patterns, table)

    @classmethod
    def fully_observed(cls, mdp: FactoredMDP) -> MissingnessFunction:
        """Return the M under which nothing ever goes missing."""
        return cls.blocks(mdp, {})

    def __repr__(self) -> str:
        return (
            f"MissingnessFunction({self._n_patterns_text()} patterns over {len(self.space)} states; "
            f"can go missing: {', '.join(self.can_go_missing) or 'nothing'})"
        )

    def _n_patterns_text(self) -> str:
        return str(len(self.patterns) if self.is_small else count_patterns(self.parts))

    def _repr_html_(self) -> str:
        """Return how often features are missing as a table, for notebooks."""
        patterns = self.n_patterns if self.is_small else count_patterns(self.parts)
        title = f"MissingnessFunction: {count(patterns, 'pattern')} over {count(len(self.space), 'state')}"
        rows = [[name, rate] for name, rate in self.rate_texts().items()]
        return notebook_table(title, ["feature", "missing in"], rows)

    def rate_texts(self, states: NDArray[np.bool_] | None = None) -> dict[str, str]:
        """Return how often each feature is missing, as "20–70 %" over states, or those of a mask, shape (S,)."""
        if self.is_small:
            rates = self.probabilities @ (~self.patterns).astype(np.float64)
        else:
            rates = np.stack([self.missing_rate(name) for name in self.space.features.names], axis=1)
        shown = rates if states is None else rates[states]
        low, high = shown.min(axis=0).tolist(), shown.max(axis=0).tolist()
        return {
            name: percent(low[i]) if high[i] - low[i] < 5e-4 else percent_range(low[i], high[i])
            for i, name in enumerate(self.space.features.names)
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MissingnessFunction)
            and self.space == other.space
            and (self._same_parts(other) or self._same_table(other))
        )

    def _same_parts(self, other: MissingnessFunction) -> bool:
        return len(self.parts) == len(other.parts) and all(
            mine.features == theirs.features
            and np.array_equal(mine.patterns, theirs.patterns)
            and np.array_equal(mine.table, theirs.table)
            and (
                np.array_equal(mine.rows(self.space), theirs.rows(self.space))
                if mine.groups is not theirs.groups
                else True
            )
            for mine, theirs in zip(self.parts, other.parts, strict=True)
        )

    def _same_table(self, other: MissingnessFunction) -> bool:
        if self.is_small and other.is_small:
            return np.array_equal(self.patterns, other.patterns) and np.array_equal(
                self.probabilities, other.probabilities
            )
        mine, theirs = self.factors, other.factors
        return (
            mine is not None
            and theirs is not None
            and [(one.features, one.parents) for one in mine]
            == [(one.features, one.parents) for one in theirs]
            and all(
                np.array_equal(one.patterns, two.patterns) and np.array_equal(one.table, two.table)
                for one, two in zip(mine, theirs, strict=True)
            )
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def n_patterns(self) -> int:
        """The number of patterns that occur."""
        return len(self.patterns)

    @property
    def always_observed(self) -> tuple[str, ...]:
        """I_always: the features that are never missing in any state, reachable or not."""
        return self.space.features.chosen(~self._can_go_missing)

    @property
    def can_go_missing(self) -> tuple[str, ...]:
        """I_mis: the features that can be missing in some state, reachable or not."""
        return self.space.features.chosen(self._can_go_missing)

    @cached_property
    def _can_go_missing(self) -> NDArray[np.bool_]:
        return ~np.all(self.patterns, axis=0) if self.is_small else can_go_missing(self.space, self.parts)

    def missing_rate(self, feature: str) -> NDArray[np.float64]:
        """Return P(feature missing | state), shape (S,)."""
        position = self.space.features.position(feature)
        if self.is_small:
            missing = ~self.patterns[:, position]
            return np.minimum(self.probabilities[:, missing].sum(axis=1), 1.0)
        for part in self.parts:
            if position in part.features:
                missing = ~part.patterns[:, part.features.index(position)]
                return np.minimum(part.table[:, missing].sum(axis=1), 1.0)[part.rows(self.space)]
        return np.zeros(len(self.space))

    def pattern_of(self, observation: object) -> int:
        """Return the index of an observation's pattern in `patterns`, or −1 if M never produces it."""
        codes = self.space.features.encode_observation(observation)
        return self._pattern_index.get(tuple(code != MISSING for code in codes), -1)

    def likelihood(self, observation: object) -> NDArray[np.float64]:
        """Return M(z | s) for every state s, shape (S,)."""
        return self.likelihood_of_codes(self.space.features.encode_observation(observation))

    def likelihood_of_codes(self, codes: Sequence[int]) -> NDArray[np.float64]:
        """Return M(z | s) for an observation given by its codes, shape (S,)."""
        if not self.is_small:
            return self._likelihood_by_parts(codes)
        pattern = self._pattern_index.get(tuple(code != MISSING for code in codes))
        if pattern is None:
            return np.zeros(len(self.space))
        return np.where(self.space.admit(codes), self.probabilities[:, pattern], 0.0)

    def _likelihood_by_parts(self, codes: Sequence[int]) -> NDArray[np.float64]:
        seen = np.asarray(codes) != MISSING
        likelihood = np.zeros(len(self.space))
        states = np.flatnonzero(self.space.admit(codes))
        weights = np.ones(len(states))
        for part in self.parts:
            same = (part.patterns == seen[list(part.features)]).all(axis=1)
            weights *= part.table[:, same].sum(axis=1)[part.rows(self.space, states)]
            seen[list(part.features)] = True
        if seen.all():
            likelihood[states] = weights
        return likelihood

    def probability(self, observation: object, state: object) -> float:
        """Return M(z | s) for one observation and one state."""
        return float(self.likelihood(observation)[self.space.index(state)])

    def distribution(self, state: object) -> dict[Any, float]:
        """Return M(s) as {observation: probability}, observations with None for missing."""
        s = self.space.index(state)
        codes = self.space.codes[s]
        patterns, row = self.patterns, self.probabilities[s] if self.is_small else self._row(s)
        return {
            self.space.features.decode_observation(np.where(pattern, codes, MISSING)): float(probability)
            for pattern, probability in zip(patterns, row, strict=True)
            if probability > 0.0
        }

    def _row(self, state: int) -> NDArray[np.float64]:
        """Return P(pattern | state) for one state, shape (K,)."""
        row = np.ones(self.n_patterns)
        for part in self.parts:
            own = self.patterns[:, list(part.features)]
            row *= same_patterns(own, part.patterns) @ part.table[part.rows(self.space, [state])[0]]
        return row

    def observe(
        self, states: NDArray[np.integer[Any]], patterns: NDArray[np.integer[Any]]
    ) -> NDArray[np.integer[Any]]:
        """Return the observations of states (indices) under patterns (indices), as codes, shape (…, n)."""
        return np.where(
            self.patterns[patterns], self.space.codes[states], self.space.codes.dtype.type(MISSING)
        )

    def occurring(self, states: NDArray[np.bool_] | None = None) -> Occurring:
        """Return the observations of positive probability, in all states or in those that a mask picks.

        Raises
        ------
        ModelError
            If they are too many to list.
        """
        return self._everywhere if states is None else self._occurring(states)

    @cached_property
    def _everywhere(self) -> Occurring:
        """What can be observed in all states; it is asked for often."""
        return self._occurring(np.ones(len(self.space), dtype=np.bool_))

    def _occurring(self, states: NDArray[np.bool_]) -> Occurring:
        n_states = int(states.sum())
        pairs, n_patterns = float(n_states) * count_patterns(self.parts), count_patterns(self.parts)
        what = f"listing what can be seen, in {n_patterns:,} patterns of {n_states:,} states,"
        check_fits(what, pairs * (100.0 + 4.0 * len(self.space.features)), _WITHOUT_TABLE)
        possible = self.probabilities > 0.0
        state, pattern = np.nonzero(possible if states.all() else possible & states[:, None])
        ranks, place = np.unique(self.space.features.rank(self.observe(state, pattern)), return_inverse=True)
        codes = self.space.features.unrank(ranks)
        return Occurring(
            Rows(codes, self.space.features.decode_observation), state, pattern, place.reshape(-1)
        )

    def count_occurring(self, states: NDArray[np.bool_] | None = None) -> int:
        """Return how many observations `occurring` would list, without listing them where all patterns can come."""
        space, own = self.space, {feature for part in self.parts for feature in part.features}
        everywhere = space.is_product and (states is None or bool(states.all()))
        if not everywhere or any((part.table <= 0.0).any() for part in self.parts):
            return len(self.occurring(states).observations)
        sizes = space.features.sizes
        total = math.prod(int(size) for feature, size in enumerate(sizes) if feature not in own)
        for part in self.parts:
            of_part = np.where(part.patterns, sizes[list(part.features)], 1)
            total *= sum(math.prod(map(int, row)) for row in of_part)
        return total

    def sample(self, states: Iterable[Any], seed: int | np.random.Generator | None = None) -> list[Any]:
        """Return one observation per state, drawn from M, with None for missing.

        For one state, give a list with that state. `sample_codes` does the same on arrays.
        """
        given = checked_list("states", states, "a list of states")
        index = np.array([self.space.index(state) for state in given], dtype=np.int64)
        return [self.space.features.decode_observation(codes) for codes in self.sample_codes(index, seed)]

    def sample_codes(
        self, states: NDArray[np.integer[Any]], seed: int | np.random.Generator | None = None
    ) -> NDArray[np.integer[Any]]:
        """Return one observation per state index, drawn from M, as codes with `MISSING`, shape (len, n)."""
        random = checked_generator(seed)
        if not self.is_small:
            return self._sampled_by_parts(states, random)
        uniform = random.random(states.shape)
        cumulative = np.cumsum(self.probabilities, axis=1)
        cumulative /= cumulative[:, -1:]
        drawn = (uniform[..., None] >= cumulative[states]).sum(axis=-1)
        return self.observe(states, np.minimum(drawn, self.n_patterns - 1))

    def _sampled_by_parts(
        self, states: NDArray[np.integer[Any]], random: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        codes = self.space.codes[states]
        for part in self.parts:
            cumulative = np.cumsum(part.table, axis=1)
            cumulative /= cumulative[:, -1:]
            uniform = random.random(states.shape)
            drawn = (uniform[..., None] >= cumulative[part.rows(self.space, states)]).sum(axis=-1)
            seen = part.patterns[np.minimum(drawn, len(part.patterns) - 1)]
            codes[..., list(part.features)] = np.where(seen, codes[..., list(part.features)], MISSING)
        return codes


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def _multiplied_out(
    space: StateSpace, parts: Sequence[Part], states: Any = slice(None)
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the patterns of all parts together, shape (K, n), and their probabilities in some states, shape (…, K)."""
    n_features = len(space.features)
    patterns = np.ones((1, n_features), dtype=np.bool_)
    table = np.ones((len(space.codes[states]), 1))
    for part in parts:
        own, rows = part.observed(n_features), part.over_states(space, states)
        patterns = (own[:, None, :] & patterns).reshape(-1, n_features)
        table = (rows[:, :, None] * table[:, None, :]).reshape(len(table), -1)
    return patterns, table


def pattern_distance(
    patterns: NDArray[np.bool_],
    table: NDArray[np.float64],
    other_patterns: NDArray[np.bool_],
    other_table: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the total variation between the rows of two tables over patterns, shape (rows,).

    Parameters
    ----------
    patterns, other_patterns
        Distinct indicators, shape (K, n) each, in any order; a pattern that one lacks has probability 0 there.
    table, other_table
        Probabilities, shape (rows, K) each.
    """
    distinct, place = distinct_patterns(np.concatenate([patterns, other_patterns]))
    difference = np.zeros((len(table), len(distinct)))
    difference[:, place[: len(patterns)]] += table
    difference[:, place[len(patterns) :]] -= other_table
    return 0.5 * np.abs(difference).sum(axis=1)


def missingness_distance(estimate: MissingnessFunction, truth: MissingnessFunction) -> NDArray[np.float64]:
    """Return the total variation between two missingness functions over the same states, by state, shape (S,).

    Raises
    ------
    ModelError
        If they are large, and too many states differ from each other.
    """
    if estimate.is_small and truth.is_small:
        return pattern_distance(
            estimate.patterns, estimate.probabilities, truth.patterns, truth.probabilities
        )
    space = estimate.space
    mine, theirs = (_by_parents(one) for one in (estimate, truth))
    states, label = joint_groups(space, [part.groups for part in (*mine, *theirs)])
    entries = float(len(states)) * (count_patterns(mine) + count_patterns(theirs))
    what = f"comparing {len(states):,} kinds of states pattern by pattern, {entries:.2g} probabilities,"
    check_fits(what, 24.0 * entries, "compare missing_rate(feature) instead")
    tables = (_multiplied_out(space, parts, states) for parts in (mine, theirs))
    return pattern_distance(*next(tables), *next(tables))[label]


def _by_parents(missingness: MissingnessFunction) -> Sequence[Part]:
    """Return parts that go by as few features as possible."""
    factors = missingness.factors
    return missingness.parts if factors is None else [factor.as_part() for factor in factors]


def same_patterns(
    patterns: NDArray[np.bool_], others: NDArray[np.bool_]
) -> NDArray[np.float64] | sparse.csr_array:
    """Return 1 where a row of indicators equals one of others, shape (K, L); sparse where that would be large."""
    if len(patterns) * len(others) <= _MANY_PAIRS:
        return (patterns[:, None, :] == others[None, :, :]).all(axis=2).astype(np.float64)
    places: dict[bytes, list[int]] = {}
    for k, row in enumerate(np.packbits(others, axis=1)):
        places.setdefault(row.tobytes(), []).append(k)
    pairs = [
        (k, place)
        for k, row in enumerate(np.packbits(patterns, axis=1))
        for place in places.get(row.tobytes(), ())
    ]
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    shape = (len(patterns), len(others))
    return sparse.csr_array(sparse.coo_array((np.ones(len(pairs)), (rows, columns)), shape=shape))


def _space(mdp: object) -> StateSpace:
    """Return the states of an MDP, or of a miss-MDP."""
    found = getattr(mdp, "space", None)
    if not isinstance(found, StateSpace):
        raise ParameterError("mdp", mdp, "a FactoredMDP")
    return found


def _no_mapping(key: str, missing: Any) -> ParameterError:
    expected = f"a mapping from {key} to P(missing)"
    return ParameterError("missing", missing, expected, f"expected {expected}, got {type(missing).__name__}")


def _checked_block(block: Any) -> tuple[str, ...]:
    names = (block,) if isinstance(block, str) else block
    if not isinstance(names, Iterable) or not all(
        isinstance(name, str) for name in cast("Iterable[Any]", names)
    ):
        problem = f"a block is a feature's name or a tuple of names, got {block!r}"
        raise ParameterError("missing", block, "a block of features", problem)
    return tuple(cast("Iterable[str]", names))


def _checked_pattern(pattern: Any, n_features: int, state: Any) -> tuple[bool, ...]:
    entries = cast("Sequence[Any]", pattern) if isinstance(pattern, tuple | list | np.ndarray) else None
    if entries is None or len(entries) != n_features or any(entry not in (0, 1) for entry in entries):
        raise ModelError(
            f"missingness of state {state!r}: {pattern!r} is not a pattern; expected a tuple of {n_features} "
            "entries, True for observed and False for missing"
        )
    return tuple(bool(entry) for entry in entries)
