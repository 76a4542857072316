"""The documentation says what is so: code runs, pictures are current, links lead somewhere."""

import doctest
import importlib
import re
import runpy
import shlex
from pathlib import Path

import click
import pytest

from missmdp.cli.main import cli
from missmdp.experiments.grid.cell import run_cell
from missmdp.experiments.studies.catalogue import STUDIES
from missmdp.experiments.studies.learning import LEARNING
from missmdp.experiments.studies.study import read_rows

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if "_build" not in path.parts
    ),
]
ELSEWHERE = ("docs/ppo.md", "docs/tutorial-")
"""Whose code other tests run: it needs an extra, or commands between the blocks."""
WITH_CODE = [
    document
    for document in DOCUMENTS
    if "```python\n" in (ROOT / document).read_text() and not document.startswith(ELSEWHERE)
]
SOURCE = ROOT / "src" / "missmdp"
WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if re.search(r"^\s+>>> ", path.read_text(), re.MULTILINE)
]


@pytest.fixture
def root():
    return ROOT


@pytest.mark.parametrize("document", WITH_CODE)
def test_the_code_in_documents_runs(root, tmp_path, monkeypatch, capsys, document):
    blocks = re.findall(r"```python\n(.*?)```", (root / document).read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)
    if document == "README.md":
        assert capsys.readouterr().out.endswith("\nantibiotics\n")
    if document == "docs/first-steps.md":
        assert "MNAR" in capsys.readouterr().out
        assert (tmp_path / "ward.svg").exists()
        assert (tmp_path / "ward.mmdp").exists()


def commands_in(document):
    """Return the commands that a document tells to type, as lists of words."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    typed = [block for language, block in blocks if language in ("", "console")]
    lines = [line.removeprefix("$ ") for block in typed for line in block.splitlines()]
    return [
        shlex.split(line.split(" || ")[0], comments=True) for line in lines if line.startswith("missmdp ")
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_their_options_exist(document):
    for _, *words in commands_in(document):
        if words == ["--help"]:
            continue
        command = cli.commands[words[0]]
        context = click.Context(command, info_name=words[0])
        # Raises for an option that is not there, or that has no value; whether files exist is not looked at.
        command.make_parser(context).parse_args(list(words[1:]))


def test_documents_tell_what_to_type():
    assert sum(len(commands_in(document)) for document in DOCUMENTS) >= 40


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(importlib.import_module(f"missmdp.{module}"))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("name", STUDIES)
def test_the_tables_in_the_pages_are_those_of_the_rows(root, name):
    study, results = STUDIES[name], root / "docs" / "results"
    if study.template and not (results / study.page).exists():
        pytest.skip(f"the grid was not run yet; `make {name}` makes the page")
    rows = read_rows(results / "tables" / f"{table}.csv" for table in study.rows({}))
    text = (results / study.page).read_text()
    tables = study.tables(rows)
    assert tables
    for mark, table in tables.items():
        assert f"<!-- {mark} -->\n{table}\n<!-- end of {mark} -->" in text, (
            "run `make tables` or `make beyond`"
        )


@pytest.mark.slow
def test_the_table_of_learning_is_what_the_cells_find(root):
    rows = read_rows([root / "docs" / "results" / "tables" / "learning-options.csv"])
    assert LEARNING.rows({cell: run_cell(cell) for cell in LEARNING.cells()}) == rows, "run `make tables`"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files(root, document):
    path = root / document
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target.split("#")[0]).exists(), target


def test_every_question_is_answered_with_something_to_use(root):
    """How do I …?: each answer has code, a command or a link."""
    questions = re.split(r"^### ", (root / "docs" / "how-do-i.md").read_text(), flags=re.MULTILINE)[1:]
    assert len(questions) >= 20
    for question in questions:
        assert re.search(r"```|`[^`]+`|\]\(", question.split("\n", 1)[1]), question


def test_the_glossary_explains_every_term_once(root):
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", (root / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    terms = [term for term, meaning in rows if meaning.endswith(".")]
    assert len(terms) >= 50
    assert len(set(terms)) == len(terms)
    assert {"belief", "certificate", "MNAR", "m-graph", "positivity", "self-censoring"} <= set(terms)


@pytest.mark.usefixtures("same_matplotlib")
def test_figures_are_what_make_figures_draws(root, tmp_path):
    draw_all = runpy.run_path(str(root / "docs" / "make.py"))["draw_all"]
    drawn = draw_all(tmp_path)
    assert len(drawn) == 13
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
