"""A folder with files of all kinds, good and damaged, to make mistakes with."""

import gzip

import numpy as np

import missmdp as mm
from command_output import solved
from missmdp.interop import write_model, write_policyx

MODULE = """
import sys
import missmdp as mm
def nothing(): return None
def number(): return 3
def generator(): yield 1
def broken(): raise KeyError("oops")
def wordy(): raise ValueError("one\\ntwo\\n\\nthree")
def leaves(): sys.exit(5)
def needs(argument): return argument
def mdp(): return mm.load_benchmark("example-1").mdp
def half(): return mm.FactoredMDP({"x": [1, 2]}, ["a"], lambda s, a: {s: 0.5}, 0.0, {(1,): 1.0})
def nan(): return mm.FactoredMDP({"x": [1, 2]}, ["a"], lambda s, a: {s: float("nan")}, 0.0, {(1,): 1.0})
"""
NOISE = np.random.default_rng(0).bytes(3000)


def make_files(folder):
    """Write them: `one` stands for example-1, and what is `cut` has lost its end."""
    model = mm.load_benchmark("example-1")
    model.save(folder / "one.mmdp")
    policy = solved(model, folder / "one.mmpolicy")
    write_policyx(policy, folder / "one.policyx")
    for suffix in (".pomdp", ".pomdpx"):
        write_model(model, folder / f"one{suffix}")
    log = mm.collect(model, 60, seed=0)
    log.to_csv(folder / "log.csv")
    log.to_parquet(folder / "log.parquet")
    (folder / "log.csv.gz").write_bytes(gzip.compress((folder / "log.csv").read_bytes()))
    (folder / "header.csv").write_text("episode,step,first,second,action\n")
    (folder / "latin.csv").write_bytes("episode,step,first,second,action\n1,0,é,x,\n".encode("latin-1"))
    (folder / "unknown.csv").write_text("episode,step,first,second,action\n1,0,z,x,\n")
    for name in (
        *(f"one.{kind}" for kind in ("mmdp", "mmpolicy", "policyx", "pomdp", "pomdpx")),
        "log.parquet",
    ):
        content = (folder / name).read_bytes()
        (folder / f"cut{(folder / name).suffix}").write_bytes(content[: len(content) // 2])
    (folder / "cut.csv.gz").write_bytes((folder / "log.csv.gz").read_bytes()[:60])
    for suffix in ("mmdp", "mmpolicy", "csv", "parquet", "pomdp", "pomdpx", "json", "dot", "toml"):
        (folder / f"noise.{suffix}").write_bytes(NOISE)
        (folder / f"empty.{suffix}").write_bytes(b"")
    (folder / "zero.json").write_text('{"layers": 0}')
    (folder / "open.toml").write_text("sizes = [1,\n")
    (folder / "other.toml").write_text("sises = [1]\n")
    (folder / "negative.toml").write_text("runs = -1\n")
    (folder / "open.dot").write_text("digraph { a -> ")
    (folder / "wrong_call_models.py").write_text(MODULE)
    (folder / "wrong_call_syntax.py").write_text("def (:\n")
    (folder / "wrong_call_exit.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "file").write_text("x")
    for name, file, text in (
        ("other-config", "config.toml", "sises = [1]\n"),
        ("cut-run", "run.json", "{"),
        ("other-run", "run.json", "[]"),
    ):
        (folder / name).mkdir()
        (folder / name / file).write_text(text)
    for name in ("folder", "folder.mmdp", "folder.csv", "folder.svg", "folder.mmpolicy", "folder.pomdp"):
        (folder / name).mkdir()
