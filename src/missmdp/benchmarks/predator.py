"""Predator: a predator chases a prey that it seldom sees.

The paper describes this benchmark, a variant of Tag, in words and sizes; the maps and numbers below are
ours. Features are the columns and rows of predator (u, v) and prey (x, y). In the one initial state nobody
is on the board yet: every coordinate has the value that is one past the edge of the map.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP

MAPS = {
    "smar": "..^.. ..... ^...^ ..... ..^..",
    "mnar-unid": "JJ^JJ JJ.JJ ^...^ ..... ..^..",
    "mcar": ".......... .##.##.##. .......... .#......#. ..........",
}
"""Rows from top to bottom; `.` plains, `^` mountain, `J` jungle, `#` blocked."""
SCATTERED_JUNGLE = "J.^.J .J... ^...^ ...J. J.^.J"
"""A first map for mnar-unid, on which other solvers were run. Jungle matters to what is seen only. With so little of
it, the policy of an uninformed prior comes within 2 % of the optimal one, on the scale from random to optimal: too
close to tell methods apart. The forest in the north makes it 5 to 6 %, and learners that miss the self-censoring are
little better than the prior."""

MOVES = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}
DISCOUNT = 0.95
START_DISTANCE = 3
"""Predator and prey start at least this far apart (Manhattan)."""
STUMBLE = {".": 0.05, "J": 0.05, "^": 0.25}
"""P(the predator's move fails), by where it stands."""
FLEES = 0.8
CATCH = 10.0

HIDDEN_MCAR = 0.95
HIDDEN_FROM = {"^": 0.1, ".": 0.95}
"""smar: P(prey missing), by where the predator stands."""
HIDDEN_IN_JUNGLE = 0.98
HIDDEN_OUTSIDE_JUNGLE = {"^": 0.05, ".": 0.2, "J": 0.2}
"""mnar-unid: P(prey missing) with the prey in the jungle, and else by where the predator stands."""

Cell = tuple[int, int]


class Board:
    """A map and the moves on it; cells are (column, row) with row 0 on top."""

    def __init__(self, text: str) -> None:
        self.rows = text.split()
        self.height = len(self.rows)
        self.width = len(self.rows[0])

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells that are not blocked."""
        return [(c, r) for r, row in enumerate(self.rows) for c, biome in enumerate(row) if biome != "#"]

    def biome(self, cell: Cell) -> str:
        """Return the letter of a cell."""
        return self.rows[cell[1]][cell[0]]

    def neighbours(self, cell: Cell) -> list[Cell]:
        """Return the free cells next to a cell."""
        beside = [(cell[0] + dc, cell[1] + dr) for dc, dr in MOVES.values()]
        return [other for other in beside if other in self.cells]

    def moved(self, cell: Cell, action: str) -> dict[Cell, float]:
        """Return where a predator's move ends: into a wall or a blocked cell it stays."""
        ahead = (cell[0] + MOVES[action][0], cell[1] + MOVES[action][1])
        if ahead not in self.cells:
            return {cell: 1.0}
        fails = STUMBLE[self.biome(cell)]
        return {ahead: 1.0 - fails, cell: fails}

    def fled(self, prey: Cell, hunter: Cell) -> dict[Cell, float]:
        """Return where the prey goes, reacting to where the predator was."""
        away = [cell for cell in self.neighbours(prey) if distance(cell, hunter) > distance(prey, hunter)]
        if not away:
            return {prey: 1.0}
        return {prey: 1.0 - FLEES, **{cell: FLEES / len(away) for cell in away}}


def distance(a: Cell, b: Cell) -> int:
    """Return the Manhattan distance of two cells."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _dynamics(board: Board) -> FactoredMDP:
    off = (board.width, board.height, board.width, board.height)

    def transition(state: Any, action: str) -> dict[Any, float]:
        if state == off:
            pairs = [(h, p) for h in board.cells for p in board.cells if distance(h, p) >= START_DISTANCE]
            return {(*hunter, *prey): 1.0 / len(pairs) for hunter, prey in pairs}
        hunter, prey = (state.u, state.v), (state.x, state.y)
        successors: dict[Any, float] = {}
        for ahead, p in board.moved(hunter, action).items():
            escapes = {prey: 1.0} if ahead == prey else board.fled(prey, hunter)
            for escape, q in escapes.items():
                successors[(*ahead, *escape)] = p * q
        return successors

    def reward(state: Any, action: str) -> float:
        if state == off:
            return 0.0
        return CATCH * board.moved((state.u, state.v), action).get((state.x, state.y), 0.0)

    columns, rows = range(board.width + 1), range(board.height + 1)
    return FactoredMDP(
        features={"u": columns, "v": rows, "x": columns, "y": rows},
        actions=tuple(MOVES),
        transition=transition,
        reward=reward,
        initial={off: 1.0},
        terminal=lambda state: state != off and (state.u, state.v) == (state.x, state.y),
        discount=DISCOUNT,
        progress=False,
    )


def _hidden(variant: str, board: Board) -> Callable[[Any], float]:
    """Return P(x and y missing) as a function of the state."""

    def smar(state: Any) -> float:
        return HIDDEN_FROM[board.biome((state.u, state.v))]

    def mnar_unid(state: Any) -> float:
        if board.biome((state.x, state.y)) == "J":
            return HIDDEN_IN_JUNGLE
        return HIDDEN_OUTSIDE_JUNGLE[board.biome((state.u, state.v))]

    if variant == "mcar":
        return lambda state: HIDDEN_MCAR
    on_board = smar if variant == "smar" else mnar_unid
    return lambda state: 0.0 if state.u == board.width else on_board(state)


def predator(variant: str, board_map: str | None = None) -> MissMDP:
    """Return the Predator benchmark with one of its missingness functions: smar, mnar-unid or mcar.

    Another map can be given, as rows from top to bottom with spaces between them; see `MAPS`.
    """
    board = Board(MAPS[variant] if board_map is None else board_map)
    mdp = _dynamics(board)
    missingness = MissingnessFunction.blocks(mdp, {("x", "y"): _hidden(variant, board)})
    return MissMDP(mdp, missingness, name=f"predator-{variant}")
