"""A real browser, offline, and the pages that it is shown."""

import json
import shutil

import pytest

from browser.pages import PAGES

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "these tests need Chromium: make test-browser says how to get it"
    return found


@pytest.fixture(scope="session")
def browser():
    # Here, so that tests can be collected where there is no playwright.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Where each page lies, made when it is first asked for."""
    root, made = tmp_path_factory.mktemp("pages"), {}

    def folder(name):
        if name not in made:
            made[name] = PAGES[name](root / name)
        return made[name]

    return folder


@pytest.fixture
def visit(browser, folders):
    """Open a page by its name, or a file by its folder.

    Whatever it asks the network for, and whatever it complains about, is an error.
    """
    contexts, asked, complaints = [], [], []

    def open_page(name, width=1280, file="report.html", **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(((folders(name) if isinstance(name, str) else name) / file).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints
    assert len(asked) == len(contexts), f"requests beyond the page itself: {json.dumps(asked)}"
