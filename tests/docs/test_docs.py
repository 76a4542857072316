"""The documentation says what is so: code runs, pictures are current, links lead somewhere."""

import doctest
import importlib
import re
import runpy

import pytest

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/notation.md", "docs/architecture.md", "docs/benchmarks.md"]


@pytest.fixture
def root(request):
    return request.config.rootpath


def test_the_code_in_the_readme_runs(root, tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "MNAR" in capsys.readouterr().out
    assert (tmp_path / "ward.svg").exists()
    assert (tmp_path / "ward.mmdp").exists()


@pytest.mark.parametrize("module", ["mdp", "missingness", "mgraph"])
def test_the_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(importlib.import_module(f"missmdp.model.{module}"))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(root, document):
    path = root / document
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target.split("#")[0]).exists(), target


def test_figures_are_what_make_figures_draws(root, tmp_path):
    draw_all = runpy.run_path(str(root / "docs" / "make_figures.py"))["draw_all"]
    drawn = draw_all(tmp_path)
    assert len(drawn) == 11
    for path in drawn:
        committed = root / "docs" / "figures" / path.name
        assert committed.read_bytes() == path.read_bytes(), f"{path.name} is out of date: run `make figures`"


def test_the_benchmarks_page_has_the_right_numbers(root):
    import missmdp as mm

    text = (root / "docs" / "benchmarks.md").read_text()
    for name in mm.list_benchmarks():
        model = mm.load_benchmark(name)
        types = model.types()
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:3] == [f"{model.n_states:,}", f"{model.n_observations:,}"]
        assert cells[3].split(",")[0] == types.name
        assert cells[5] == ("independent" if types.independent else "dependent")
        assert cells[6] == (", ".join(types.learners) or "none")
        assert f"mgraph-{name}.svg" in text
    for name, few, steps in [
        ("icu-smar", 72, 2.0e6),
        ("predator-smar", 281, 7.2e6),
        ("predator-mcar", 1286, 2.1e8),
    ]:
        coverage = mm.behaviour_coverage(mm.load_benchmark(name))
        assert len(coverage.rare()) == few
        assert f"{few:,}" in text
        assert coverage.steps_for() == pytest.approx(steps, rel=0.03)
