"""Random `.pomdpx` files with everything that the format has, and RockSample as one."""

from __future__ import annotations

import numpy as np

from missmdp.benchmarks.rocksample import MOVES, Map

LETTERS = {"StateVar": "s", "ActionVar": "a", "ObsVar": "o"}


class RandomFile:
    """A file with one to three state variables, in random forms."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.values: dict[str, list[str]] = {}
        self.lines = [
            "<pomdpx>",
            "<Description>made at random</Description>",
            "<Discount>0.9</Discount>",
            "<Variable>",
        ]
        self.states = [f"v{i}" for i in range(rng.integers(1, 4))]
        self.actions = [f"act{i}" for i in range(rng.integers(1, 3))]
        self.signals = [f"sig{i}" for i in range(rng.integers(0, 3))]
        self.rewards = [f"r{i}" for i in range(rng.integers(0, 3))]
        for name in self.states:
            observed = rng.choice(["true", "false"])
            attributes = f'vnamePrev="{name}_0" vnameCurr="{name}_1" fullyObs="{observed}"'
            self._declare("StateVar", attributes, [f"{name}_0", f"{name}_1"])
        for tag, names in (("ActionVar", self.actions), ("ObsVar", self.signals)):
            for name in names:
                self._declare(tag, f'vname="{name}"', [name])
        self.lines += [f'<RewardVar vname="{name}"/>' for name in self.rewards]
        self.lines.append("</Variable>")
        before, after = [f"{name}_0" for name in self.states], [f"{name}_1" for name in self.states]
        self._section("InitialStateBelief", before, [])
        self._section("StateTransitionFunction", after, [*before, *self.actions])
        if self.signals:
            self._section("ObsFunction", self.signals, [*after, *self.actions], chained=False)
        if self.rewards:
            self._rewards([*before, *after, *self.actions, *self.signals])
        self.lines.append("</pomdpx>")

    @property
    def text(self) -> str:
        """The file."""
        return "\n".join(self.lines)

    def _declare(self, tag: str, attributes: str, names: list[str]) -> None:
        count = int(self.rng.integers(1, 4))
        counted = self.rng.random() < 0.5
        own = [f"{LETTERS[tag]}{i}" if counted else f"{names[0]}-{i}" for i in range(count)]
        self.values |= dict.fromkeys(names, own)
        inner = f"<NumValues>{count}</NumValues>" if counted else f"<ValueEnum>{' '.join(own)}</ValueEnum>"
        self.lines.append(f"<{tag} {attributes}>{inner}</{tag}>")

    def _section(self, section: str, children: list[str], others: list[str], *, chained: bool = True) -> None:
        """Write one table per child; a child may depend on children before it in a hidden order."""
        rng = self.rng
        order = list(rng.permutation(children))
        tables: list[str] = []
        for i, child in enumerate(order):
            possible = [*others, *(order[:i] if chained else [])]
            size = int(rng.integers(0, min(len(possible), 4) + 1))
            parents = [str(p) for p in rng.choice(possible, size=size, replace=False)] if possible else []
            tables.append(self._table(str(child), parents))
        rng.shuffle(tables)
        self.lines += [f"<{section}>", *tables, f"</{section}>"]

    def _row(self, child: str) -> str:
        size = len(self.values[child])
        weights = (
            self.rng.dirichlet(np.ones(size))
            if self.rng.random() < 0.5
            else np.eye(size)[self.rng.integers(size)]
        )
        return " ".join(repr(float(w)) for w in weights)

    def _table(self, child: str, parents: list[str]) -> str:
        rng = self.rng
        diagram = rng.random() < 0.3
        entries = [] if diagram else [self._entry(["*" for _ in parents] + ["-"], self._row(child))]
        for _ in range(0 if diagram else rng.integers(0, 5)):
            words = [str(rng.choice(["*", "-", *self.values[parent]])) for parent in parents]
            free = int(
                np.prod([len(self.values[p]) for p, w in zip(parents, words, strict=True) if w == "-"])
            )
            numbers = " ".join(self._row(child) for _ in range(free))
            dashes = [p for p, w in zip(parents, words, strict=True) if w == "-"]
            if rng.random() < 0.2:
                numbers = "uniform"
            elif (
                len(dashes) == 1
                and len(self.values[dashes[0]]) == len(self.values[child])
                and rng.random() < 0.5
            ):
                numbers = "identity"
            entries.append(self._entry([*words, "-"], numbers))
            if "-" not in words and rng.random() < 0.5:
                own = zip(self.values[child], self._row(child).split(), strict=True)
                entries += [self._entry([*words, value], number) for value, number in own]
        inner = self._diagram(child, parents) if diagram else "\n".join(entries)
        kind = "DD" if diagram else "TBL"
        return (
            f"<CondProb><Var>{child}</Var><Parent>{' '.join(parents) or 'null'}</Parent>"
            f'<Parameter type="{kind}">{inner}</Parameter></CondProb>'
        )

    def _entry(self, words: list[str], numbers: str, tag: str = "ProbTable") -> str:
        return f"<Entry><Instance>{' '.join(words)}</Instance><{tag}>{numbers}</{tag}></Entry>"

    def _diagram(self, child: str, parents: list[str]) -> str:
        template = f'<SubDAGTemplate id="t">{self._leaf(child, parents)}</SubDAGTemplate>'
        return f"<DAG>{self._node(child, parents, list(self.rng.permutation(parents)))}</DAG>{template}"

    def _node(self, child: str, parents: list[str], left: list[str]) -> str:
        if not left or self.rng.random() < 0.2:
            use = self.rng.random() < 0.3
            return '<SubDAG type="template" idref="t"/>' if use else self._leaf(child, parents)
        edges = "".join(
            f'<Edge val="{value}">{self._node(child, parents, left[1:])}</Edge>'
            for value in self.values[left[0]]
        )
        return f'<Node var="{left[0]}">{edges}</Node>'

    def _leaf(self, child: str, parents: list[str]) -> str:
        kinds = ["uniform", "deterministic", "node"]
        if child.endswith("_1") and child.replace("_1", "_0") in parents:
            kinds.append("persistent")
        match self.rng.choice(kinds):
            case "node":
                edges = zip(self.values[child], self._row(child).split(), strict=True)
                inner = "".join(f'<Edge val="{v}"><Terminal>{p}</Terminal></Edge>' for v, p in edges)
                return f'<Node var="{child}">{inner}</Node>'
            case "deterministic":
                value = self.rng.choice(self.values[child])
                return f'<SubDAG type="deterministic" var="{child}" val="{value}"/>'
            case kind:
                return f'<SubDAG type="{kind}" var="{child}"/>'

    def _rewards(self, possible: list[str]) -> None:
        rng = self.rng
        self.lines.append("<RewardFunction>")
        for name in self.rewards:
            parents = [
                str(p)
                for p in rng.choice(
                    possible, size=int(rng.integers(1, min(4, len(possible)) + 1)), replace=False
                )
            ]
            entries: list[str] = []
            for _ in range(rng.integers(1, 5)):
                words = [str(rng.choice(["*", "-", *self.values[parent]])) for parent in parents]
                free = int(
                    np.prod([len(self.values[p]) for p, w in zip(parents, words, strict=True) if w == "-"])
                )
                numbers = " ".join(str(n / 2) for n in rng.integers(-6, 7, size=free))
                entries.append(self._entry(words, numbers, "ValueTable"))
            self.lines.append(
                f"<Func><Var>{name}</Var><Parent>{' '.join(parents)}</Parent>"
                f'<Parameter type="TBL">{"".join(entries)}</Parameter></Func>'
            )
        self.lines.append("</RewardFunction>")


def rocksample_file(world: Map) -> str:
    """Return RockSample as a `.pomdpx` file with one variable per rock, as APPL's own files have it.

    The observation has all rocks among its parents, though each action asks for one of them only.
    """
    size, n_rocks = world.size, len(world.rocks)
    rocks = [f"rock{i}" for i in range(n_rocks)]
    cells = [f"c{x}-{y}" for y in range(size) for x in range(size)]
    actions = [*MOVES, "sample", *(f"check{i}" for i in range(n_rocks))]

    def entry(instance: str, numbers: str, tag: str = "ProbTable") -> str:
        return f"<Entry><Instance>{instance}</Instance><{tag}>{numbers}</{tag}></Entry>"

    def table(child: str, parents: str, entries: list[str], tag: str = "CondProb") -> str:
        inside = "".join(entries)
        return f'<{tag}><Var>{child}</Var><Parent>{parents}</Parent><Parameter type="TBL">{inside}</Parameter></{tag}>'

    stay = entry("* - -", "identity")
    rover, reward, sensor = [stay], [], [entry(" ".join(["*"] * (2 + n_rocks)) + " -", "1 0 0")]
    for y in range(size):
        for x in range(size):
            for name, (dx, dy) in MOVES.items():
                there = f"c{min(max(x + dx, 0), size - 1)}-{min(max(y + dy, 0), size - 1)}"
                if x + dx == size:
                    there = "left"
                    reward.append(entry(f"{name} c{x}-{y}" + " *" * n_rocks, "10", "ValueTable"))
                row = " ".join("1" if cell == there else "0" for cell in [*cells, "left"])
                rover.append(entry(f"{name} c{x}-{y} -", row))
            for i, (at_x, at_y) in enumerate(world.rocks):
                accuracy = 0.5 + 0.5 * 2.0 ** (-float(np.hypot(x - at_x, y - at_y)) / 20.0)
                before, after = " *" * i, " *" * (n_rocks - 1 - i)
                for value, numbers in (
                    ("good", f"0 {accuracy!r} {1 - accuracy!r}"),
                    ("bad", f"0 {1 - accuracy!r} {accuracy!r}"),
                ):
                    sensor.append(entry(f"check{i} c{x}-{y}{before} {value}{after} -", numbers))
    changes = []
    for i, (x, y) in enumerate(world.rocks):
        before, after = " *" * i, " *" * (n_rocks - 1 - i)
        for value, paid in (("good", "10"), ("bad", "-10")):
            reward.append(entry(f"sample c{x}-{y}{before} {value}{after}", paid, "ValueTable"))
        same = entry("* * - -", "identity")
        sampled = entry(f"sample c{x}-{y} - -", "0 1 0 1")
        changes.append(table(f"{rocks[i]}_1", f"action rover_0 {rocks[i]}_0", [same, sampled]))
    start = " ".join(
        "1" if cell == f"c{world.start[0]}-{world.start[1]}" else "0" for cell in [*cells, "left"]
    )
    return "\n".join(
        [
            "<pomdpx><Discount>0.95</Discount><Variable>",
            '<StateVar vnamePrev="rover_0" vnameCurr="rover_1" fullyObs="true">'
            f"<ValueEnum>{' '.join(cells)} left</ValueEnum></StateVar>",
            *(
                f'<StateVar vnamePrev="{r}_0" vnameCurr="{r}_1"><ValueEnum>good bad</ValueEnum></StateVar>'
                for r in rocks
            ),
            '<ObsVar vname="sensor"><ValueEnum>nothing good bad</ValueEnum></ObsVar>',
            f'<ActionVar vname="action"><ValueEnum>{" ".join(actions)}</ValueEnum></ActionVar>',
            '<RewardVar vname="reward"/></Variable><InitialStateBelief>',
            table("rover_0", "null", [entry("-", start)]),
            *(table(f"{r}_0", "null", [entry("-", "0.5 0.5")]) for r in rocks),
            "</InitialStateBelief><StateTransitionFunction>",
            table("rover_1", "action rover_0", rover),
            *changes,
            "</StateTransitionFunction><ObsFunction>",
            table("sensor", f"action rover_1 {' '.join(f'{r}_1' for r in rocks)}", sensor),
            "</ObsFunction><RewardFunction>",
            table("reward", f"action rover_0 {' '.join(f'{r}_0' for r in rocks)}", reward, "Func"),
            "</RewardFunction></pomdpx>",
        ]
    )
