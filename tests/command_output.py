"""What tests of commands do with what is printed and written."""

import csv
import subprocess
import sys

import missmdp as mm


def succeeded(result):
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def rows_of(path):
    with path.open(newline="") as file:
        return {row["policy"]: row for row in csv.DictReader(file)}


def start(*arguments, program=None, **options):
    command = ["-m", "missmdp"] if program is None else ["-c", program]
    return subprocess.Popen(
        [sys.executable, *command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **options,
    )


def solved(model, path):
    policy = mm.Sarsop(precision=1e-4).solve(model).policy
    policy.save(path)
    return policy
