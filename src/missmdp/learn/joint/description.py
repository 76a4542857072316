"""What was learned of dynamics, for people: trees in words, and a picture of what depends on what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.joint.dynamics import Chain, Family, Variables
from missmdp.learn.joint.trees import Tree, leaves_in_words
from missmdp.model.picture import check_picture_name, draw_text, save_picture
from missmdp.words import count, listed, percent, printable

if TYPE_CHECKING:
    from missmdp.learn.joint.estimator import JointEM

_MOST_LEAVES = 40
_LIKELY = 0.005


class _Names:
    """Variables in words."""

    def __init__(self, learner: JointEM, ahead: str = "next") -> None:
        self.mdp = learner.mdp_
        self.ahead = ahead
        self.variables = Variables(self.mdp.space.features, self.mdp.n_actions)

    def name(self, variable: int) -> str:
        """Return what a variable is called."""
        variables = self.variables
        if variable == variables.action:
            return "action"
        if variable == variables.ended:
            return "the episode ends"
        name = variables.features.names[variables.feature(variable)]
        return name if variable < variables.action else f"{self.ahead} {name}"

    def ordered(self, variable: int) -> bool:
        """Return whether the values of a variable have an order."""
        return self.variables.ordered(variable)

    def values(self, variable: int) -> list[str]:
        """Return the values of a variable."""
        if variable == self.variables.action:
            return [*map(str, self.mdp.actions)]
        if variable == self.variables.ended:
            return ["no", "yes"]
        return [*map(str, self.variables.values(variable))]


def describe_dynamics(learner: JointEM) -> str:
    """Return what was learned, as text."""
    lines = [learner.title(), *(f"  {line}" for line in learner.details())]
    if learner.fit_ is None:
        lines.append("  the dynamics were given")
    else:
        names = _Names(learner)
        dynamics, point, expected = (
            learner.fit_.dynamics,
            learner.fit_.parameters.dynamics,
            learner.fit_.expected,
        )
        for chain, thetas, weight, title in (
            (dynamics.steps, point.steps, expected.moved, "Dynamics"),
            (dynamics.start, point.start, expected.began, "Start"),
        ):
            if chain is dynamics.start and dynamics.initial_given is not None:
                continue
            own = names if chain is dynamics.steps else _Names(learner, "first")
            lines += ["", title, *_chain(chain, thetas, weight.reshape(-1), own)]
        lines += [*_ends(learner), *_rewards(learner, names)]
    lines += ["", f"This assumes {learner.assumed_}."]
    lines += [f"Doubt: {finding}" for finding in learner.warnings_]
    return printable("\n".join(lines))


def _chain(
    chain: Chain, thetas: tuple[NDArray[np.float64], ...], weight: NDArray[np.float64], names: _Names
) -> Iterator[str]:
    for family, theta, counts in zip(chain.families, thetas, chain.counted(weight), strict=True):
        asked = [names.name(v) for v in family.partition.asked]
        depends = f"depends on {listed(asked)}" if asked else "depends on nothing"
        yield f"  {names.name(family.target)}: {depends} ({count(family.partition.count, 'leaf', 'leaves')})"
        if not isinstance(family.partition, Tree):
            continue
        leaves = leaves_in_words(family.partition, names)
        for shown, (leaf, said) in enumerate(leaves):
            if shown == _MOST_LEAVES:
                yield f"    … and {family.partition.count - _MOST_LEAVES} more leaves"
                break
            told = family.outcomes.way[family.outcomes.block] == family.way[leaf]
            steps = float(counts[leaf][told].sum())
            where = " and ".join(said) or "always"
            yield f"    {where} ({steps:,.0f} steps): {'; '.join(_distributions(family, theta, leaf, names))}"


def _distributions(family: Family, theta: NDArray[np.float64], leaf: int, names: _Names) -> Iterator[str]:
    """Yield the distributions of a leaf in words: one of values, or one of changes for each kind of value before."""
    way, table = int(family.way[leaf]), family.outcomes.column[int(family.way[leaf])]
    values = names.values(family.target)
    probability = theta[leaf] * family.outcomes.share
    if way == 0:
        yield _outcomes([(values[v], float(probability[column])) for v, column in enumerate(table[0])])
        return
    met: dict[int, list[str]] = {}
    for before in range(len(table)):
        met.setdefault(int(family.outcomes.block[table[before, before]]), []).append(values[before])
    for before in range(len(table)):
        block = int(family.outcomes.block[table[before, before]])
        if met[block][0] != values[before]:
            continue
        pairs = [(_change(v - before), float(probability[c])) for v, c in enumerate(table[before])]
        yield f"from {listed(met[block], 'or')}: {_outcomes(pairs)}"


def _change(step: int) -> str:
    return "same" if step == 0 else f"{step:+d}".replace("-", "−")


def _outcomes(pairs: list[tuple[str, float]]) -> str:
    likely = [(value, p) for value, p in pairs if p >= _LIKELY]
    return ", ".join(f"{value} {percent(p, 0 if p > 0.1 else 1)}" for value, p in likely)


def _ends(learner: JointEM) -> Iterator[str]:
    terminal = learner.mdp_.terminal
    if terminal.any():
        yield ""
        yield f"Episodes end in {count(int(terminal.sum()), 'state')} of {learner.mdp_.n_states:,}."


def _rewards(learner: JointEM, names: _Names) -> Iterator[str]:
    if learner.rewards_ is None:
        return
    own = learner.rewards_
    yield ""
    yield f"Rewards (what is left over: ± {own.residual:.4g})"
    for leaf, said in leaves_in_words(own.tree, names):
        yield f"  {' and '.join(said) or 'always'} ({own.rows[leaf]:,.0f} steps): {_number(own.mean[leaf])}"


def _number(value: float) -> str:
    """Return a number with four digits and a minus sign."""
    return f"{value:.4g}".replace("-", "−")


def draw_dynamics(learner: JointEM, path: Path) -> Path:
    """Draw what next values and gaps depend on: features now on the left, next on the right."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    names = list(learner.mdp_.features)
    n, graph = len(names), learner.graph_
    figure = Figure(figsize=(7.0, 1.2 + 0.8 * (n + 1)))
    axes: Any = cast("Any", figure).add_axes((0.02, 0.02, 0.96, 0.9))
    axes.set_axis_off()
    left = {i: (0.0, float(n - i)) for i in range(n)} | {n: (0.0, 0.0)}
    right = {i: (2.0, float(n - i)) for i in range(n)}
    for family in () if learner.fit_ is None else learner.fit_.dynamics.steps.families:
        end = right[family.target - n - 1]
        for variable in family.partition.asked:
            start = left[variable] if variable <= n else right[variable - n - 1]
            bend = 0.0 if variable <= n else 0.5
            axes.annotate(
                "",
                xy=(end[0] - (0.25 if variable <= n else -0.22), end[1]),
                xytext=(start[0] + 0.25, start[1]),
                arrowprops={"arrowstyle": "->", "color": "#557799", "connectionstyle": f"arc3,rad={bend}"},
            )
    for place, name in [*((left[i], names[i]) for i in range(n)), (left[n], "action")]:
        draw_text(axes, *place, name)
    for i, name in enumerate(names):
        draw_text(axes, *right[i], f"next {name}")
        if graph is not None and name in graph.can_go_missing:
            parents = graph.parents(name)
            draw_text(axes, 3.4, right[i][1], f"gap: {', '.join(parents) if parents else 'by chance'}")
    axes.set_xlim(-0.6, 4.2)
    axes.set_ylim(-0.6, n + 0.6)
    return save_picture(figure, path)
