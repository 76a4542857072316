"""Tutorials do what they say, from the first line to the last."""

import pytest

import missmdp as mm
from tutorial_runner import blocks_of, check_shown, run_tutorial

TUTORIALS = ["tutorial-own-data", "tutorial-reproduce", "tutorial-extend"]


@pytest.mark.parametrize("name", TUTORIALS)
@pytest.mark.filterwarnings(f"ignore::{mm.AssumptionWarning.__module__}.AssumptionWarning")
def test_tutorials_run(request, tmp_path, monkeypatch, name):
    root = request.config.rootpath
    monkeypatch.chdir(tmp_path)
    run_tutorial(root / "docs" / f"{name}.md", tmp_path, {"path/to/missmdp": str(root)})


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("value in […, …] (gap …)\n", "value   in [1.0, 2.0]\n(gap 0.1)\n"),
        ("a −58.51 …\n3 of 4\n", "a −58.49 ± 0.1\n3 of 4\n"),
        ("…\nwritten\n", "1.0\n2.0\nwritten\n"),
    ],
)
def test_what_is_shown_is_so(shown, printed):
    check_shown(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("1 passed in …\n", "1 failed in 0.1 s\n"),
        ("2\n", "2\n3\n"),
        ("3 of 4\n", "3 of 5\n"),
        ("value 58.51\n", "value 60.51\n"),
        ("value −1.5\n", "value 1.5\n"),
        ("…\nwritten\n", "nothing\n"),
    ],
)
def test_what_is_shown_and_not_so_is_found(shown, printed):
    with pytest.raises(AssertionError):
        check_shown(shown, printed)


def test_blocks_are_found():
    page = "Save this as `a.py`:\n\n```python\nx = 1\n```\n\nThen\n\n```console\n$ ls\na.py\n```\n"
    saved, typed = blocks_of(page)
    assert (saved.kind, saved.name, saved.text) == ("python", "a.py", "x = 1\n")
    assert (typed.kind, typed.name) == ("console", None)
