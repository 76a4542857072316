"""The report as a page: its order, that it needs nothing else, that it can be read aloud, and nulls."""

import copy
import json
import os
import re
import subprocess
import sys
import typing
from itertools import pairwise

import msgspec
import pytest

from experiments.report.sample_run import emptied, renamed, sample, sample_record, write
from missmdp.errors import FormatError
from missmdp.experiments.record.coding import encode_record, read_identity, read_record
from missmdp.experiments.report.write import write_report
from pages.read_page import Node, read_page

SECTIONS = [
    "data",
    "why",
    "graph",
    "learned",
    "assumptions",
    "heldout",
    "solving",
    "values",
    "certificate",
    "sensitivity",
    "limits",
    "method",
]
SAMPLES = {
    "known": sample(),
    "unknown": sample(known=False),
    "emptied": emptied(sample()),
    "emptied, unknown": emptied(sample(known=False)),
}


def page_of(run, folder):
    return read_page(write_report(write(run, folder)).read_text(encoding="utf-8"))


@pytest.fixture(params=SAMPLES)
def any_page(request, tmp_path):
    return page_of(SAMPLES[request.param], tmp_path)


@pytest.fixture
def page(tmp_path):
    return page_of(sample(), tmp_path)


@pytest.mark.parametrize("known", [True, False])
def test_a_record_survives_being_written(tmp_path, known):
    record = sample_record(known=known)
    (tmp_path / "run.json").write_bytes(encode_record(record))
    assert read_record(tmp_path / "run.json") == record


def test_all_is_there_in_order(page):
    assert [node.attributes["id"] for node in page.all("section")] == SECTIONS
    assert [node.attributes["href"] for node in page.one("nav").all("a")] == [f"#{key}" for key in SECTIONS]
    main = page.one("main")
    assert main.children[0].has(class_="headline")
    assert page.one("html").attributes["lang"] == "en"


def test_every_figure_says_what_it_means(any_page):
    for figure in any_page.all("figure"):
        caption = figure.one("figcaption").text
        assert caption.endswith(".")
        assert len(caption) > 20


def test_it_needs_nothing_but_itself(any_page):
    linked = {"src", "srcset", "data", "poster", "action", "background", "xlink:href", "ping", "formaction"}
    for node in any_page.walk():
        assert node.tag not in (
            "link",
            "img",
            "iframe",
            "object",
            "embed",
            "base",
            "form",
            "image",
            "use",
            "video",
        )
        assert not linked & set(node.attributes)
        assert not [key for key in node.attributes if key.startswith("on")]
        if "href" in node.attributes:
            assert node.attributes["href"].startswith("#")
    (style,) = any_page.all("style")
    assert not re.search(r"url\(|@import|https?:|//", style.text)
    (script,) = any_page.all("script")
    assert not re.search(r"fetch|XMLHttp|import|https?:", script.text)


def test_headings_are_real_and_in_order(any_page):
    levels = [int(node.tag[1]) for node in any_page.walk() if re.fullmatch("h[1-6]", node.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_names_of_places_are_unique_and_lead_somewhere(any_page):
    ids = [node.attributes["id"] for node in any_page.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    wanted = [
        key
        for node in any_page.walk()
        for name in ("aria-labelledby", "aria-describedby")
        for key in (node.attributes.get(name) or "").split()
    ]
    wanted += [node.attributes["href"][1:] for node in any_page.all("a")]
    assert set(wanted) <= set(ids)


def test_pictures_can_be_read_aloud(any_page):
    for picture in any_page.all("svg"):
        assert picture.attributes["role"] == "img"
        title, description = (child for child in picture.children[:2] if isinstance(child, Node))
        assert (title.tag, description.tag) == ("title", "desc")
        assert title.text
        assert description.text


def test_tables_have_headers(any_page):
    for table in any_page.all("table"):
        assert table.one("caption").text
        assert all(cell.attributes["scope"] == "col" for cell in table.one("thead").all("th"))
        width = len(table.one("thead").all("th"))
        for row in table.one("tbody").all("tr"):
            cells = [child for child in row.children if isinstance(child, Node)]
            assert len(cells) == width
            assert cells[0].attributes["scope"] == "row"
    for box in any_page.all("div", class_="scroll"):
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["aria-label"]


def test_the_same_run_gives_the_same_bytes_in_any_process(tmp_path):
    write(sample(), tmp_path)
    code = (
        "import pathlib, sys; from missmdp.experiments.report.write import write_report; "
        "write_report(pathlib.Path(sys.argv[1]))"
    )
    pages = []
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        pages.append((tmp_path / "report.html").read_bytes())
    assert pages[0] == pages[1] == write_report(tmp_path).read_bytes()


def test_only_run_json_is_read(tmp_path):
    before = write_report(write(sample(), tmp_path / "a")).read_bytes()
    folder = write(sample(), tmp_path / "b")
    for name in ("learners", "tables"):
        (folder / name).mkdir()
    (folder / "tables" / "learned.csv").write_text("rubbish")
    assert write_report(folder).read_bytes() == before


def test_many_groups_do_not_make_a_huge_page(tmp_path):
    run = sample()
    group = run["learners"][2]["groups"][5]
    for learner in run["learners"]:
        learner["groups"] = [
            {**copy.deepcopy(group), "given": {"test": str(i)}, "samples": i} for i in range(1000)
        ]
    run["data"]["missing_rates"] = {f"feature {i}": (i + 1) / 200 for i in range(150)}
    assert write_report(write(run, tmp_path)).stat().st_size < 500_000


NAMES = {
    "infection": "<script>alert('1')</script>",
    "heart_rate": 'a&b "quoted" </svg>',
    "test": "Ünïcödé 温度 עברית",
    "AsMAR": "As<b>MAR",
}


def test_names_are_shown_as_they_are(tmp_path):
    page = page_of(renamed(sample(), NAMES), tmp_path)
    for name in NAMES.values():
        assert name in page.text
    assert len(page.all("script")) == 1
    assert not page.all("b")
    labels = {node.text for picture in page.all("svg") for node in picture.all("text")}
    assert any("<script>alert('1')</script>" in label for label in labels)


def test_characters_that_no_document_holds_are_escaped(tmp_path):
    page = page_of(renamed(sample(), {"infection": "in\x00fec\x1btion\u202e"}), tmp_path)
    assert r"in\x00fec\x1btion\u202e" in page.text


def nullable(record, path=()):
    """Yield the places of a run at which its types allow null, and what is there."""
    if isinstance(record, msgspec.Struct):
        hints = typing.get_type_hints(type(record))
        for name, hint in hints.items():
            value = getattr(record, name)
            if type(None) in typing.get_args(hint):
                yield (*path, name)
            yield from nullable(value, (*path, name))
    elif isinstance(record, dict):
        for key, value in record.items():
            yield from nullable(value, (*path, key))
    elif isinstance(record, tuple):
        for i, value in enumerate(record):
            yield from nullable(value, (*path, i))


def with_null(run, path):
    run = copy.deepcopy(run)
    place = run
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = None
    return run


@pytest.mark.parametrize("known", [True, False])
def test_whatever_may_be_null_can_be(tmp_path, known):
    run = sample(known=known)
    places = list(nullable(sample_record(known=known)))
    assert len(places) > 50
    # One of each kind: the same keys in another group or row are treated alike.
    kinds = {tuple(key for key in path if not isinstance(key, int)): path for path in places}
    for path in kinds.values():
        page = page_of(with_null(run, path), tmp_path)
        assert "None" not in page.one("main").text.replace("None, or left out", "").replace(": None", "")
        assert not re.search(r"\bnan\b|\binf\b|\bnull\b", page.one("main").text)


def test_without_anything_known_it_still_reads_well(tmp_path):
    text = page_of(emptied(sample(known=False)), tmp_path).one("main").text
    assert "This was not examined in this run." in text
    assert "No value is missing in these data." in text
    assert "None" not in text.replace("None, or left out", "")


@pytest.mark.parametrize("empty", ["skipped", "baselines"])
def test_lists_may_be_empty(tmp_path, empty):
    page = page_of(sample() | {empty: []}, tmp_path)
    assert [node.attributes["id"] for node in page.all("section")] == SECTIONS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "run.json: cannot be read"),
        ("{", "run.json: damaged"),
        ("[]", "not what `missmdp run` writes"),
        ('{"kind": "PPO search"}', "not what `missmdp run` writes"),
        (
            '{"kind": "missmdp run", "version": "0.1"}',
            "run.json: format 1, written by an older version of missmdp (0.1)",
        ),
        ('{"kind": "missmdp run", "format": 3}', "format 3, written by a newer version of missmdp"),
        (
            '{"kind": "missmdp run", "format": 2, "version": 3}',
            "version: expected a string, got a whole number",
        ),
        (
            '{"kind": "missmdp run", "format": 2, "settings": 3}',
            "settings: expected an object, got a whole number",
        ),
        ('{"kind": "missmdp run", "format": 2}', "run.json: version: is missing"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path, content, message):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(FormatError, match=re.escape(message)):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def _numbers(tree, path=()):
    """Yield where numbers are, of a list only in its first entry."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(tree, list):
        yield from _numbers(tree[0], (*path, 0)) if tree else ()
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path


def test_integers_that_are_too_large_are_refused_everywhere(tmp_path):
    """Python reads integers of any size, and raises when one becomes a decimal."""
    tree = json.loads(json.dumps(sample()))
    places = list(_numbers(tree))
    assert len(places) > 50
    for *way, last in places:
        changed = copy.deepcopy(tree)
        place = changed
        for key in way:
            place = place[key]
        place[last] = -(10**400)
        (tmp_path / "run.json").write_text(json.dumps(changed))
        with pytest.raises(FormatError, match=r"run\.json: .*(out of range|this version reads format)"):
            read_record(tmp_path / "run.json")


@pytest.mark.parametrize(
    "content",
    [
        b'{"kind": "missmdp run", "format": 2, "model": ' + b"[" * 100_000,
        b'{"kind": "missmdp run", "format": ' + b"9" * 5_000 + b"}",
        b'{"kind": "missmdp run", "format": 1e999}',
        b'{"kind": "missmdp run", "format": 2, "version": "\xc1"}',
        b'{"kind": "missmdp run", "format": 2, "x": {"y\xed": 1}}',
        b"\xff",
        b"",
        b"[]",
    ],
    ids=range(8),
)
def test_what_is_no_record_is_refused_and_no_run(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(FormatError, match=r"run\.json: "):
        read_record(tmp_path / "run.json")
    assert read_identity(tmp_path / "run.json") is None


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("learners", 0, "heldout", "difference"), 1.7e308),
        (("learners", 0, "heldout", "difference"), -1.7e308),
        (("certificates", 0, "found", "epsilon"), 5e-324),
        (("data", "steps"), 0),
    ],
)
def test_numbers_at_the_edge_can_be_reported(tmp_path, where, value):
    tree = json.loads(json.dumps(sample()))
    place = tree
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    page_of(tree, tmp_path)


def test_a_graph_joins_its_own_features(tmp_path):
    tree = json.loads(json.dumps(sample()))
    tree["model"]["truth"]["graph"]["edges"][0][0] = "nobody"
    with pytest.raises(FormatError, match="'nobody' is not among the features"):
        page_of(tree, tmp_path)
