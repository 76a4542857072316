"""Command lines with odd words, numbers and files."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
from pathlib import Path
from typing import Any, cast

import click

import missmdp as mm
from fuzz.harness import Kind, Trouble
from fuzz.material import TIGER, mdp_tables, network, ward
from fuzz.mutations import HOSTILE, Archive, mutate_text
from missmdp.errors import MissMDPError

_LONG = {"reproduce", "tune-ppo", "plot"}
"""Commands that are asked for their help only: they take minutes by design."""
_CHEAP = {
    "steps": "50",
    "episodes": "20",
    "timeout": "0.3",
    "solve_timeout": "0.3",
    "seed": "0",
    "learner": "asmar",
    "draws": "5",
    "sensitivity_episodes": "0",
    "tree_queries": "5",
    "ppo_steps": "64",
    "threads": "1",
}
"""What keeps a command short, where it has such an option."""
_WORDS = (
    "0", "1", "-1", "2", "0.5", "1e-3", "1e999", "nan", "inf", "9" * 5000, "true", "auto", "all", "level", "alarm",
    "level=low", "level,alarm", "=", ",", "-", "--", "icu-smar", "nosuch", "os:system", "json:loads",
)  # fmt: skip
_USUAL = (
    "show ward.mmdp --steps 50",
    "coverage ward.mmdp --steps 50",
    "collect ward.mmdp --steps 50 --seed 0 -o out.csv",
    "describe log.csv",
    "validate ward.mmdp log.csv",
    "diagnose ward.mmdp log.csv --draws 5",
    "learn ward.mmdp log.csv --learner all --draws 5",
    "solve tiger.pomdp --timeout 1",
    "evaluate ward.mmdp --policy vectors.mmpolicy --policy network.mmpolicy --episodes 20",
    "evaluate ward.mmdp --policy pomcp --tree-queries 5 --episodes 5",
    "run ward.mmdp --steps 50 --episodes 20 --timeout 0.3 -o out",
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Commands(Kind):
    """The command line, run in this process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from missmdp.cli.main import cli

        self._cli = cli
        os.chdir(folder)
        model = ward()
        model.save("ward.mmdp")
        self._archive = Archive(Path("ward.mmdp"))
        log = mm.collect(model, steps=60, seed=0)
        log.to_csv("log.csv")
        log.to_parquet("log.parquet")
        self._log = Path("log.csv").read_text()
        Path("tiger.pomdp").write_text(TIGER)
        mdp_tables(folder / "tables")
        mm.Sarsop(precision=0.1, progress=False).solve(model).policy.save("vectors.mmpolicy")
        network(model).save("network.mmpolicy")
        model.mgraph().draw("graph.svg")
        Path("graph.dot").write_text(model.mgraph().to_dot())
        self._files = sorted(path.name for path in folder.iterdir())
        for name in (
            "show ward.mmdp",
            "solve ward.mmdp",
            "learn tables log.csv",
            "diagnose ward.mmdp log.csv",
        ):
            with contextlib.suppress(Trouble, MissMDPError):
                self._call(name.split())

    def run(self, rng: random.Random) -> None:
        self._archive.mutated(rng, self.folder / "changed.mmdp")
        (self.folder / "changed.csv").write_bytes(mutate_text(self._log, rng)[0])
        name = rng.choice(sorted(self._cli.commands))
        command = self._cli.commands[name]
        words = [name]
        for parameter in command.params:
            words += self._argument(parameter, rng)
        if name in _LONG:
            words.append("--help" if name != "plot" else "nosuch")
        self.note = " ".join(map(repr, words))[:400]
        self._call(words)

    def _argument(self, parameter: click.Parameter, rng: random.Random) -> list[str]:
        if isinstance(parameter, click.Argument):
            n = rng.choice((1, 1, 1, 2)) if parameter.nargs == -1 else 1
            usual = "log.csv" if "log" in (parameter.name or "") or parameter.name == "data" else "ward.mmdp"
            return [usual if rng.random() < 0.6 else self._word(rng) for _ in range(n)]
        name, cheap = max(parameter.opts, key=len), _CHEAP.get(parameter.name or "")
        chance = rng.random()
        if chance < 0.1:
            return [name] if getattr(parameter, "is_flag", False) else [name, self._word(rng)]
        if cheap is not None:
            return [name, cheap]
        if parameter.name == "certificate" and chance < 0.9:
            return ["--no-certificate"]
        if isinstance(parameter.type, click.Choice) and parameter.type.choices and chance < 0.3:
            return [name, rng.choice(list(parameter.type.choices))]
        if parameter.name in ("output", "folder") and chance < 0.5:
            return [
                name,
                rng.choice(("out.mmdp", "out.csv", "out", "out.html", "out.svg", "out.mmpolicy", "a/b.json")),
            ]
        return []

    def _word(self, rng: random.Random) -> str:
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(self._files)
        if kind < 0.5:
            return rng.choice(("changed.mmdp", "changed.csv"))
        word: str = rng.choice((*_WORDS, *HOSTILE, "/dev/zero", "/dev/full", "/proc/self/mem", "."))
        # What a shell cannot pass: zeros, and halves of surrogate pairs other than those for bytes that are no text.
        return word.replace("\0", "").replace("\ud800", "\udcff") or "x"

    def _call(self, words: list[str]) -> None:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        code: Any = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                self._cli.main(words, prog_name="missmdp")
            except SystemExit as ended:
                code = ended.code
        printed, said = (
            cast("io.BytesIO", one.buffer).getvalue().decode(errors="replace") for one in (out, err)
        )
        if code not in (0, 1, 2):
            raise Trouble(f"code {code}: {said[-200:]}")
        if "Traceback" in said or (code == 2 and not said.strip()):
            raise Trouble(f"code {code} with {said[-200:]!r}")
        if _CONTROL.search(printed + said):
            raise Trouble("control characters are printed")
        if code == 2:
            raise MissMDPError(said)
