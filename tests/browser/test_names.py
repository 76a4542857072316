"""Names that try to be more than names, in a real browser: they are shown as text, and nothing else happens."""

from urllib.parse import quote

import pytest

import missmdp as mm
from hostile_names import ACTIONS, FEATURES, VALUES, hostile_model
from missmdp.errors import AssumptionWarning
from missmdp.words import printable

pytestmark = pytest.mark.browser


def squeezed(text):
    """Return a text with every space as one."""
    return " ".join(text.split())


def test_a_report_shows_hostile_names_as_text(visit):
    page = visit("hostile")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    text = squeezed(page.inner_text("main"))
    for name in (*FEATURES, *VALUES, *ACTIONS):
        assert squeezed(printable(name)) in text
    assert page.title().startswith("Deciding with missing values: ward")
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator("main img, main b, iframe, object, embed, link, base, form").count() == 0
    # Events, places to go and what to load: nothing but links within the page.
    attributes = """() => [...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a =>
      a.name.startsWith('on') || ['src', 'action', 'srcset'].includes(a.name) || /javascript:/i.test(a.value)
      || (a.name.endsWith('href') && !a.value.startsWith('#'))).map(a => a.name + '=' + a.value)"""
    assert page.evaluate(attributes) == []


def test_a_report_runs_its_own_script_and_no_other(browser, folders):
    """Even if a name got through as markup."""
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto((folders("hostile") / "report.html").as_uri())
    assert refused == []
    page.evaluate(
        """() => { const image = document.createElement('img'); image.setAttribute('onerror', "document.title='gone'");
          image.src = 'https://example.com/x.png'; document.body.append(image);
          const script = document.createElement('script'); script.textContent = "document.title='gone'";
          document.body.append(script) }"""
    )
    page.wait_for_timeout(200)
    assert page.title() != "gone"
    assert len(refused) == 3
    assert all("Content Security Policy" in message for message in refused)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.close()


def test_notebooks_show_hostile_names_as_text(visit, tmp_path):
    model = hostile_model()
    log = mm.collect(model, 400, seed=0)
    with pytest.warns(AssumptionWarning):
        bound = mm.AMCAR().fit(log).bound()
    shown = [model, model.mdp, model.missingness, log, bound]
    parts = [one._repr_html_() for one in shown]
    (tmp_path / "report.html").write_text(
        f"<!DOCTYPE html><meta charset=utf-8><main>{'<hr>'.join(parts)}</main>"
    )
    page = visit(tmp_path)
    assert page.title() == ""
    assert page.evaluate("document.scripts.length") == 0
    assert page.locator("main img, main b").count() == 0
    assert squeezed(printable(FEATURES[0])) in squeezed(page.inner_text("main"))


@pytest.mark.parametrize("kind", ["m-graph", "policy", "log"])
def test_pictures_with_hostile_names_open_as_images(visit, tmp_path, kind):
    model = hostile_model()
    picture = {
        "m-graph": model.mgraph,
        "policy": lambda: mm.Sarsop(precision=0.5, progress=False).solve(model).policy.graph(),
        "log": lambda: mm.describe(mm.collect(model, 400, seed=0)),
    }[kind]()
    path = picture.draw(tmp_path / "picture.svg", title=FEATURES[0])
    page = visit(tmp_path, file=path.name)
    assert page.evaluate("document.documentElement.tagName") == "svg"
    assert page.locator("script, image, parsererror").count() == 0
    loaded = """path => new Promise(done => { const image = new Image(); image.onerror = () => done(0);
      image.onload = () => done(image.naturalWidth); image.src = path })"""
    assert page.evaluate(loaded, "data:image/svg+xml," + quote(path.read_bytes())) > 100
