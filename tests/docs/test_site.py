"""The documentation builds without a warning, has every public name, and works without a network."""

import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import missmdp as mm
from missmdp import interop

pytest.importorskip("sphinx", reason="the site needs the dependency group docs")


@pytest.fixture(scope="module")
def site(request, tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    doctrees = ["-d", str(tmp_path_factory.mktemp("doctrees"))]
    built = subprocess.run(
        [*command, *doctrees, "docs", str(target)],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return target


LOADS = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
}
"""Tag → the attribute that names what a browser then fetches."""


class Page(HTMLParser):
    """What a page loads, where it leads, and where one can jump to."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.links, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif given.get(LOADS.get(tag)):
            self.loaded.append(given[LOADS[tag]])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def test_every_public_name_is_in_the_reference(site):
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    documented = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    assert {f"missmdp.{name}" for name in mm.__all__} - documented == set()
    assert {f"missmdp.interop.{name}" for name in interop.__all__} - documented == set()


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = [source for page in pages.values() for source in page.loaded]
    assert loaded
    assert [source for source in loaded if urlsplit(source).netloc] == []
    for style in site.rglob("*.css"):
        found = re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""", style.read_text())
        assert [target for target in found if re.match(r"(https?:)?//", target)] == [], style


def test_what_is_loaded_is_there(pages):
    for path, page in pages.items():
        for source in page.loaded:
            if not source.startswith("data:"):
                assert (path.parent / unquote(urlsplit(source).path)).exists(), f"{path}: {source}"


def test_links_lead_somewhere(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.name}: {link}"


def test_code_between_backticks_is_not_lost(site):
    """File endings keep their dot, and placeholders their brackets, which Sphinx's own role would drop."""
    assert ">.pomdp<" in (site / "api" / "files.html").read_text()
    assert "next_&lt;feature&gt;" in (site / "api" / "models.html").read_text()
