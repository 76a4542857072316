"""Write `.pomdpx` files, the XML format of the APPL toolkit, in a form that pomdpsol accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._version import __version__
from missmdp.checks import checked_flag
from missmdp.errors import ModelError
from missmdp.files import write_atomically
from missmdp.interop.outgoing import (
    ACTS_FIRST,
    WrittenNames,
    is_name,
    number_text,
    outgoing_pomdp,
    pieces,
    plain_words,
)
from missmdp.interop.pomdpx.factorise import Factored, StateVariable, factorise, split_groups
from missmdp.interop.pomdpx.feature_writer import FeatureWriter, why_not_by_features
from missmdp.interop.pomdpx.lines import Row, entry, table_lines, value_lines
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

_ACTION, _SIGNAL, _REWARD = "action", "observation", "reward"


_LARGE = 200_000
"""Probabilities from which on a model is written feature by feature if it can be."""


def write_pomdpx(model: POMDP | MissMDP, path: str | Path, *, by_features: bool | None = None) -> None:
    """Write a model as a `.pomdpx` file that APPL (pomdpsol) and others read.

    A miss-MDP is written in one of two ways. As a whole, it becomes two state variables, one fully observed that
    combines the features that are always observed, and one hidden that combines the others, with one observation
    variable for what is seen of it. By features, every feature becomes a state variable, and every set of features
    that go missing together an observation variable, so the file is as small as the tables; `read_miss_mdp` reads it.
    A POMDP becomes one hidden variable and one observation variable. Combinations of values that are no states get
    a harmless row.

    Numbers have up to 17 significant digits. As a whole, the factors are chosen so that their products are the model's
    probabilities bit for bit; where no floats do that, which is rare, a product is off by one unit in the last place.
    By features, transitions and missingness are written as they are; rewards are taken apart into a sum, and a first
    distribution into a product, which give them back up to rounding.
    The format acts first; the file says so where the model makes an observation before.

    Parameters
    ----------
    model
        The model.
    path
        Where to write it.
    by_features
        Whether to write feature by feature. By default only if the file would be large otherwise, and the next values
        of features are independent given the state and the action.

    Raises
    ------
    ModelError
        If the file would be larger than what anybody reads, or the model cannot be written by features.
    """
    if writes_by_features(model, by_features):
        assert isinstance(model, MissMDP)
        write_atomically(path, pieces(_by_features(model)))
        return
    pomdp = outgoing_pomdp(model)
    title = (model.name or "") if isinstance(model, MissMDP) else ""
    write_atomically(path, pieces(_Writer(pomdp, factorise(model)).lines(title)))


def writes_by_features(model: POMDP | MissMDP, asked: bool | None) -> bool:
    """Return whether to write a model feature by feature."""
    if asked is not None and checked_flag("by_features", asked):
        if not isinstance(model, MissMDP):
            raise ModelError("a POMDP cannot be written by features: it has none")
        reason = why_not_by_features(model)
        if reason is not None:
            raise ModelError(f"this model cannot be written by features: {reason}")
        return True
    if asked is not None or not isinstance(model, MissMDP):
        return False
    if model.mdp.n_entries <= _LARGE:
        return False
    return why_not_by_features(model) is None


def _by_features(model: MissMDP) -> Iterator[str]:
    """Yield the lines of a file that is written feature by feature."""
    yield from _head(model.name or "", model.discount, observe_initial=True)
    yield from FeatureWriter(model).lines()
    yield "</pomdpx>"


def _head(title: str, discount: float, *, observe_initial: bool) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<pomdpx version="1.0" id="missmdp">'
    note = f" {ACTS_FIRST}" if observe_initial else ""
    name = escape(" ".join("".join(c for c in title if c.isprintable()).split()))
    yield f"<Description>{name or 'A POMDP'}, written by missmdp {__version__}.{note}</Description>"
    yield f"<Discount>{number_text(discount)}</Discount>"


class _Variable:
    """A state variable as it is called in the file."""

    def __init__(self, part: StateVariable, *, observed: bool, taken: set[str]) -> None:
        base = plain_words(part.name)[:60]
        base = base if is_name(base) else f"state_{base}"
        while base in taken:
            base += "_2"
        taken.add(base)
        self.previous, self.current = f"{base}_0", f"{base}_1"
        self.names = WrittenNames(part.labels, "s", numbers_as_words=True)
        self.of_state = part.of_state
        self.observed = observed


class _Writer:
    """One model on its way to a file."""

    def __init__(self, pomdp: POMDP, factored: Factored) -> None:
        self.pomdp = pomdp
        self.factored = factored
        taken = {_ACTION, _SIGNAL, _REWARD}
        self.parts = [
            _Variable(part, observed=part is factored.observed, taken=taken)
            for part in (factored.observed, factored.hidden)
            if part is not None
        ]
        self.actions = WrittenNames(pomdp.actions, "a", numbers_as_words=True)
        self.signals = WrittenNames(factored.signals, "o", numbers_as_words=True)

    def lines(self, title: str) -> Iterator[str]:
        """Yield the lines of the file."""
        yield from _head(title, self.pomdp.discount, observe_initial=self.pomdp.observe_initial)
        yield from self._variables()
        yield "<InitialStateBelief>"
        yield from self._initial()
        yield "</InitialStateBelief>"
        yield "<StateTransitionFunction>"
        yield from self._transition()
        yield "</StateTransitionFunction>"
        if len(self.signals):
            yield "<ObsFunction>"
            yield from self._observation()
            yield "</ObsFunction>"
        yield "<RewardFunction>"
        yield from self._reward()
        yield "</RewardFunction>"
        yield "</pomdpx>"

    def _variables(self) -> Iterator[str]:
        yield "<Variable>"
        for part in self.parts:
            observed = "true" if part.observed else "false"
            yield f'<StateVar vnamePrev="{part.previous}" vnameCurr="{part.current}" fullyObs="{observed}">'
            yield from value_lines(part.names)
            yield "</StateVar>"
        for tag, name, names in (("ObsVar", _SIGNAL, self.signals), ("ActionVar", _ACTION, self.actions)):
            if len(names):
                yield f'<{tag} vname="{name}">'
                yield from value_lines(names)
                yield f"</{tag}>"
        yield f'<RewardVar vname="{_REWARD}"/>'
        yield "</Variable>"

    def _initial(self) -> Iterator[str]:
        initial = sparse.csr_array(self.pomdp.initial[None])
        first, second = self._factors(initial)
        own = self.parts[0]
        rows = [((), first.indices, first.data)]
        yield from table_lines(own.previous, (), own.names, rows, ())
        if second is not None:
            given, other = self.parts[0], self.parts[1]
            # Here APPL adds up entries that cover each other, so harmless rows are written one by one.
            possible = {x: (indices, data) for _, x, indices, data in second}
            harmless = (np.zeros(1, dtype=np.int64), np.ones(1))
            rows = [((name,), *possible.get(x, harmless)) for x, name in enumerate(given.names.names)]
            yield from table_lines(other.previous, (given.previous,), other.names, rows, (len(given.names),))

    def _transition(self) -> Iterator[str]:
        names = [part.names for part in self.parts]
        parents = (_ACTION, *(part.previous for part in self.parts))
        sizes = (len(self.actions), *(len(own) for own in names))
        factors = [self._factors(matrix) for matrix in self.pomdp.transition]
        states = self._state_words()
        first_rows = (
            ((self.actions[a], *states[s]), *_row(first, s))
            for a, (first, _) in enumerate(factors)
            for s in range(len(states))
        )
        yield from table_lines(self.parts[0].current, parents, names[0], first_rows, sizes)
        if len(self.parts) == 2:
            second_rows = (
                ((self.actions[a], *states[s], names[0][x]), indices, data)
                for a, (_, second) in enumerate(factors)
                for s, x, indices, data in second or ()
            )
            yield from table_lines(
                self.parts[1].current,
                (*parents, self.parts[0].current),
                names[1],
                second_rows,
                (*sizes, sizes[1]),
            )

    def _factors(
        self, matrix: sparse.csr_array
    ) -> tuple[sparse.csr_array, list[tuple[int, int, NDArray[np.integer], NDArray[np.float64]]] | None]:
        """Return P(x′ | row), and (row, x′, possible y′, P(y′ | row, x′)) unless there is one variable only."""
        if len(self.parts) == 1:
            return matrix, None
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        x, y = (part.of_state[matrix.indices] for part in self.parts)
        order = np.lexsort((y, x, row))
        row, x, y, values = row[order], x[order], y[order], matrix.data[order]
        starts = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(x) != 0)))
        totals, shares = split_groups(values, starts)
        first = sparse.csr_array(
            (totals, (row[starts], x[starts])), shape=(matrix.shape[0], len(self.parts[0].names))
        )
        stops = np.append(starts[1:], len(values))
        groups = zip(row[starts].tolist(), x[starts].tolist(), starts, stops, strict=True)
        return first, [(r, own, y[i:j], shares[i:j]) for r, own, i, j in groups]

    def _state_words(self) -> list[tuple[str, ...]]:
        """Return the values of each state's variables."""
        columns = [[part.names[v] for v in part.of_state.tolist()] for part in self.parts]
        return list(zip(*columns, strict=True))

    def _observation(self) -> Iterator[str]:
        matrices = self.factored.observation
        shared = len(matrices) == 1
        parts = [self.parts[-1]] if shared and self._only_hidden_matters(matrices[0]) else self.parts
        rows: dict[tuple[str, ...], Row] = {}
        for a, matrix in enumerate(matrices):
            for s in range(matrix.shape[0]):
                words = tuple(part.names[int(part.of_state[s])] for part in parts)
                key = words if shared else (self.actions[a], *words)
                rows.setdefault(key, (key, *_row(matrix, s)))
        parents = tuple(part.current for part in parts)
        sizes = tuple(len(part.names) for part in parts)
        if not shared:
            parents, sizes = (_ACTION, *parents), (len(self.actions), *sizes)
        yield from table_lines(_SIGNAL, parents, self.signals, rows.values(), sizes)

    def _only_hidden_matters(self, matrix: sparse.csr_array) -> bool:
        rows: dict[int, tuple[bytes, bytes]] = {}
        for s, y in enumerate(self.parts[-1].of_state.tolist()):
            indices, data = _row(matrix, s)
            own = (indices.tobytes(), data.tobytes())
            if rows.setdefault(y, own) != own:
                return False
        return True

    def _reward(self) -> Iterator[str]:
        states = self._state_words()
        yield "<Func>"
        yield f"<Var>{_REWARD}</Var>"
        yield f"<Parent>{' '.join((_ACTION, *(part.previous for part in self.parts)))}</Parent>"
        yield '<Parameter type="TBL">'
        # Some readers want at least one entry, also where all rewards are zero.
        yield entry(("*",) * (1 + len(self.parts)), "0.0", "ValueTable")
        for s, a in np.argwhere(self.pomdp.reward != 0.0).tolist():
            yield entry((self.actions[a], *states[s]), number_text(self.pomdp.reward[s, a]), "ValueTable")
        yield "</Parameter>"
        yield "</Func>"


def _row(matrix: sparse.csr_array, row: int) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
    start, stop = matrix.indptr[row], matrix.indptr[row + 1]
    return matrix.indices[start:stop], matrix.data[start:stop]
