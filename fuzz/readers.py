"""A kind of case per reader: a valid file is changed, read, and what was read is used."""

from __future__ import annotations

import csv
import io
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import missmdp as mm
from fuzz.harness import Kind, Trouble
from fuzz.material import TIGER, mdp_tables, network, tiger, ward
from fuzz.mutations import FLOATS, HOSTILE, INTEGERS, Archive, mutate_rows, mutate_text, mutate_tree
from missmdp.errors import MissMDPError
from missmdp.experiments.grid.cell import Cell, CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.record.coding import read_record
from missmdp.experiments.report.write import write_report
from missmdp.interop import read_miss_mdp, read_model, read_policyx, write_model, write_policyx


def use_model(model: Any) -> None:
    """Do with a model what reaches the kernels."""
    if model.n_states > 200 or model.n_actions > 50:
        return
    mm.evaluate(None, model, episodes=4, horizon=5, seed=0, threads=1, progress=False)
    if isinstance(model, mm.MissMDP):
        model.types()
        mm.collect(model, steps=20, seed=0)
    result = mm.Sarsop(timeout=0.1, progress=False).solve(model)
    if not result.lower <= result.upper + 1e-6 * (1 + abs(result.upper)):
        raise Trouble("bounds cross")


def _solved(model: Any) -> Any:
    return mm.Sarsop(precision=1e-1, timeout=5, progress=False).solve(model)


class Models(Kind):
    """Files of models: .mmdp."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "model.mmdp"
        ward().save(self._path)
        self._valid = Archive(self._path)
        use_model(mm.MissMDP.load(self._path))

    def run(self, rng: random.Random) -> None:
        self.note = self._valid.mutated(rng, self._path)
        use_model(mm.MissMDP.load(self._path))


class Policies(Kind):
    """Files of policies of all kinds: .mmpolicy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "policy.mmpolicy"
        model, other = ward(), tiger(folder)
        vectors = _solved(model)
        pairs: dict[str, tuple[Any, Any]] = {
            "vectors": (vectors.policy, model),
            "vectors of a POMDP": (
                _solved(other).policy,
                other,
            ),
            "controller": (vectors.controller or mm.FiniteController.from_policy(vectors.policy), model),
            "network": (network(model), model),
        }
        self._valid: dict[str, tuple[Archive, Any]] = {}
        for name, (policy, truth) in pairs.items():
            policy.save(self._path)
            self._valid[name] = Archive(self._path), truth
            self._use(truth)

    def run(self, rng: random.Random) -> None:
        name = rng.choice(sorted(self._valid))
        valid, truth = self._valid[name]
        self.note = f"{name}: {valid.mutated(rng, self._path)}"
        self._use(truth)

    def _use(self, truth: Any) -> None:
        policy = mm.load_policy(self._path)
        mm.evaluate(policy, truth, episodes=4, horizon=5, seed=0, threads=1, progress=False)
        own = getattr(policy, "model", None)
        if own is not None and own.n_states < 200:
            mm.evaluate(policy, own, episodes=4, horizon=5, seed=0, threads=1, progress=False)


class Counts(Kind):
    """Files of counts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._path = folder / "counts.mmcounts"
        self._model = ward()
        mm.ObservationCounts.from_dataset(mm.collect(self._model, steps=200, seed=0)).save(self._path)
        self._valid = Archive(self._path)
        self._use()

    def run(self, rng: random.Random) -> None:
        self.note = self._valid.mutated(rng, self._path)
        self._use()

    def _use(self) -> None:
        counts = mm.ObservationCounts.load(self._path, self._model.mdp)
        mm.AIMI().fit(counts)
        mm.AMCAR().fit(counts)


@dataclass(frozen=True)
class _Sum(Cell, kind="fuzz", version=1):
    a: int

    def estimates_shape(self) -> tuple[int, int]:
        return (2, 3)

    def work(self) -> CellResult:
        return CellResult({"sum": self.a})


class Cells(Kind):
    """Finished cells of experiments: .cell."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._store, self._cell = CellStore(folder / "cells"), _Sum(1)
        self._result = CellResult({"sum": 1, "words": "a", "list": [1.0, 2.0]}, np.ones((2, 3)), 0.5)
        self._store.write(self._cell, self._result)
        self._valid = Archive(self._store.path(self._cell))
        self._use()

    def run(self, rng: random.Random) -> None:
        self.note = self._valid.mutated(rng, self._store.path(self._cell))
        self._use()

    def _use(self) -> None:
        found = self._store.read(self._cell)
        if found is None:
            raise MissMDPError("not finished")
        if not (
            isinstance(found.found, dict)
            and found.estimates.dtype == np.float64
            and found.estimates.ndim == 2
            and np.isfinite(found.seconds)
        ):
            raise Trouble("a cell that is none")


class Texts(Kind):
    """A text that is changed word by word."""

    name = "x.txt"
    text = ""

    def run(self, rng: random.Random) -> None:
        content, self.note = mutate_text(self.text, rng)
        (self.folder / self.name).write_bytes(content)
        self.use(self.folder / self.name)

    def use(self, path: Path) -> None:
        """Read the text, and do with it what reaches the kernels."""
        raise NotImplementedError


class Pomdps(Texts):
    """Models in .pomdp."""

    name, text = "tiger.pomdp", TIGER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        use_model(tiger(folder))

    def use(self, path: Path) -> None:
        use_model(read_model(path))


class Pomdpxs(Texts):
    """Models in .pomdpx."""

    name = "model.pomdpx"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._texts: list[str] = []
        for model in (ward(), tiger(folder)):
            write_model(model, folder / self.name)
            self._texts.append((folder / self.name).read_text())
            use_model(read_model(folder / self.name))
        write_model(mm.load_benchmark("fleet-2"), folder / self.name, by_features=True)
        self._texts.append((folder / self.name).read_text())
        use_model(read_miss_mdp(folder / self.name))
        self._read: Callable[[Path], Any] = read_model

    def run(self, rng: random.Random) -> None:
        self.text = rng.choice(self._texts)
        self._read = rng.choice((read_model, read_miss_mdp))
        super().run(rng)

    def use(self, path: Path) -> None:
        use_model(self._read(path))


class Policyxs(Texts):
    """Policies in .policyx."""

    name = "policy.policyx"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._model = tiger(folder)
        policy = _solved(self._model).policy
        write_policyx(policy, folder / self.name)
        self.text = (folder / self.name).read_text()
        self.use(folder / self.name)

    def use(self, path: Path) -> None:
        policy = read_policyx(path, self._model)
        mm.evaluate(policy, self._model, episodes=4, horizon=5, seed=0, threads=1, progress=False)


class Graphs(Texts):
    """M-graphs in DOT."""

    name = "graph.dot"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.text = ward().mgraph().to_dot()

    def use(self, path: Path) -> None:
        graph = mm.MissingnessGraph.from_dot(path)
        if mm.MissingnessGraph.from_dot(graph.to_dot()) != graph:
            raise Trouble("a graph does not come back from DOT")


class Configs(Texts):
    """Settings of experiments in TOML."""

    name = "config.toml"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.text = mm.ReproduceConfig().to_toml()

    def use(self, path: Path) -> None:
        mm.ReproduceConfig.from_dict({}, mm.ReproduceConfig.load(path)).to_toml()


class Settings(Kind):
    """Settings of PPO in JSON."""

    def run(self, rng: random.Random) -> None:
        tree, self.note = mutate_tree(json.loads(mm.PPOSettings().to_json()), rng)
        mm.PPOSettings.from_json(json.dumps(tree)).to_json()


class Records(Kind):
    """What a run found: run.json, and the report that is made of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        settings = mm.RunSettings(steps=200, learners=("amcar", "asmar"), timeout=0.5, episodes=50)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mm.run(ward(), folder=folder / "run", settings=settings, progress=False)
        self._path = folder / "run" / "run.json"
        self._valid = json.loads(self._path.read_bytes())
        write_report(folder / "run")

    def run(self, rng: random.Random) -> None:
        tree, self.note = mutate_tree(self._valid, rng)
        content = json.dumps(tree).encode("utf-8", errors="surrogatepass")
        if rng.random() < 0.2:
            content, note = mutate_text(content.decode("utf-8", errors="replace"), rng)
            self.note = f"{self.note}; {note}"
        self._path.write_bytes(content)
        read_record(self._path)
        write_report(self._path.parent)


class Logs(Texts):
    """Logs in CSV: changed word by word, or cell by cell and written as it should be."""

    name = "log.csv"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._model = ward()
        mm.collect(self._model, steps=60, seed=0, keep_states=True).to_csv(folder / self.name)
        self.text = (folder / self.name).read_text()
        self.use(folder / self.name)

    def run(self, rng: random.Random) -> None:
        if rng.random() < 0.4:
            super().run(rng)
            return
        rows, self.note = mutate_rows(list(csv.reader(io.StringIO(self.text))), rng)
        with (self.folder / self.name).open("w", newline="", encoding="utf-8", errors="replace") as file:
            csv.writer(file).writerows(rows)
        self.use(self.folder / self.name)

    def use(self, path: Path) -> None:
        data = mm.Dataset.from_table(path, self._model.mdp)
        counts = mm.ObservationCounts.from_table(path, self._model.mdp)
        if int(counts.counts.sum()) != data.n_steps:
            raise Trouble("more or fewer rows counted than read")
        mm.validate(data, self._model.mdp)
        str(mm.describe(data))
        _use_without_model(path)


def _use_without_model(path: Path) -> None:
    log = mm.Dataset.from_table(path, reward="reward")
    str(mm.describe(log))
    again = mm.Dataset.from_table(log.to_arrow(), features=log.features, reward="reward")
    if not np.array_equal(again.rewards, log.rewards, equal_nan=True):
        raise Trouble("other rewards after writing and reading")


class ParquetLogs(Kind):
    """Logs in Parquet with columns of every type."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._model = ward()
        self._table = mm.collect(self._model, steps=60, seed=0, keep_states=True).to_arrow()

    def run(self, rng: random.Random) -> None:
        table, notes = self._table, list[str]()
        for _ in range(rng.choice((1, 1, 2, 3))):
            table, note = self._changed(table, rng)
            notes.append(note)
        self.note = "; ".join(notes)
        path = self.folder / "log.parquet"
        pq.write_table(table, path)
        mm.validate(mm.Dataset.from_table(path, self._model.mdp), self._model.mdp)
        _use_without_model(path)

    @staticmethod
    def _changed(table: pa.Table, rng: random.Random) -> tuple[pa.Table, str]:
        name = rng.choice(table.column_names) if table.column_names else ""
        place, n = (table.column_names.index(name) if name else 0), table.num_rows
        match rng.randrange(6):
            case 0 if name:
                return table.remove_column(place), f"no {name}"
            case 1:
                new = rng.choice((*HOSTILE[:-6], "episode", "step", "level"))
                new = new.encode("utf-8", errors="replace").decode()
                if new in table.column_names:
                    return table, "as it is"
                return table.append_column(new, pa.nulls(n)), f"also {new[:20]!r}"
            case 2:
                return table.slice(rng.randrange(n + 1), rng.randrange(n + 1)), "fewer rows"
            case 3:
                order = list(range(n))
                rng.shuffle(order)
                return table.take(pa.array(order, pa.int64())), "other order"
            case 4 if name:
                values = table.column(name).to_pylist()
                if values:
                    values[rng.randrange(n)] = rng.choice(
                        (None, -1, 2**40, 1e300, 0.5, "x", HOSTILE[1], True)
                    )
                return _with_values(table, place, name, values), f"{name} with one other value"
            case _ if name:
                make = rng.choice(_COLUMNS)
                return _with_values(
                    table, place, name, [make(i) for i in range(n)]
                ), f"{name} of another type"
            case _:
                return table, "as it is"


def _with_values(table: pa.Table, place: int, name: str, values: list[Any]) -> pa.Table:
    try:
        column = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        column = pa.array([None if value is None else str(value) for value in values])
    return table.set_column(place, name, column)


_COLUMNS = (
    lambda i: i,
    float,
    lambda i: i % 2 == 0,
    str,
    lambda i: str(i).encode(),
    lambda i: [i],
    lambda i: {"a": i},
    lambda i: None,
    lambda i: float("nan"),
    lambda i: date(2020, 1, 1) + timedelta(i),
    lambda i: timedelta(i),
    lambda i: 10**18 + i,
)


class Tables(Kind):
    """MDPs as folders of tables."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._valid = mdp_tables(folder / "valid")
        self._read(self._valid)

    def run(self, rng: random.Random) -> None:
        target = self.folder / "changed"
        target.mkdir(exist_ok=True)
        names = sorted(path.name for path in self._valid.iterdir())
        chosen = rng.choice(names)
        for name in names:
            content = (self._valid / name).read_bytes()
            if name == chosen:
                content, note = mutate_text(content.decode(), rng)
                self.note = f"{name}: {note}"
            (target / name).write_bytes(content)
        self._read(target)

    @staticmethod
    def _read(folder: Path) -> None:
        from missmdp.cli.files import load_mdp

        mdp, _ = load_mdp(str(folder))
        use_model(
            mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {mdp.space.features.names[0]: 0.5}))
        )


class Values(Kind):
    """Odd names and values in models, which are saved, shown, drawn and written in every format."""

    def run(self, rng: random.Random) -> None:
        features = {
            self._name(rng, f"f{i}"): tuple({self._value(rng, j): j for j in range(rng.randrange(1, 4))})
            for i in range(rng.randrange(1, 4))
        }
        actions = [*{self._value(rng, f"a{i}"): i for i in range(rng.randrange(1, 4))}]
        self.note = f"{str(features)[:200]}, {str(actions)[:100]}"
        start = {tuple(values[0] for values in features.values()): 1.0}
        mdp = mm.FactoredMDP(
            features, actions, lambda s, a: [(s, 1.0)], lambda s, a: 1.0, start, discount=0.5
        )
        model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {next(iter(features)): 0.5}))
        repr(model)
        model.mgraph().to_dot()
        for ending, write in (
            (".mmdp", model.save),
            (".pomdp", lambda path: write_model(model, path)),
            (".pomdpx", lambda path: write_model(model, path)),
        ):
            write(self.folder / f"x{ending}")
        mm.MissMDP.load(self.folder / "x.mmdp")
        read_model(self.folder / "x.pomdp")
        read_model(self.folder / "x.pomdpx")
        log = mm.collect(model, steps=5, seed=0)
        log.to_csv(self.folder / "x.csv")
        again = mm.Dataset.from_table(self.folder / "x.csv", mdp)
        if not np.array_equal(again.observations, log.observations):
            raise Trouble("a log does not come back from CSV")

    @staticmethod
    def _name(rng: random.Random, usual: str) -> str:
        return rng.choice(HOSTILE) if rng.random() < 0.3 else usual

    @staticmethod
    def _value(rng: random.Random, usual: Any) -> Any:
        return rng.choice((*HOSTILE, *INTEGERS, *FLOATS, (1, "x"))) if rng.random() < 0.15 else usual
