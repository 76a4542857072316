"""Reports in a real browser: on phones, on screens, in the dark and on paper."""

import io

import pytest

from browser.pages import LONG, ODD, PAGES

pytestmark = pytest.mark.browser

EVERY_PAGE = pytest.mark.parametrize("name", PAGES)
WIDTHS = pytest.mark.parametrize("width", [320, 360, 768, 1280])

TOO_WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll *, pre *, .skip, script') && e.getClientRects().length)
  .map(e => [e.tagName, e.className.baseVal ?? e.className, e.getBoundingClientRect()])
  .filter(([, , box]) => box.width && (box.right > innerWidth + 0.5 || box.left < -0.5))
  .map(([tag, kind, box]) => `${tag}.${kind} ${box.left}–${box.right}`)"""

SHOWN = "[...document.querySelectorAll('svg')].filter(s => s.getClientRects().length)"
LETTERS_OUTSIDE = (
    f"""() => {SHOWN}"""
    """.flatMap(svg => {
  const view = svg.viewBox.baseVal;
  return [...svg.querySelectorAll('text')].map(t => [t, t.getBBox()]).filter(([, box]) =>
    box.x < -2 || box.y < -2 || box.x + box.width > view.width + 2 || box.y + box.height > view.height + 2)
    .map(([t, box]) => `${svg.getAttribute('aria-labelledby')}: ${t.textContent} ${box.x} ${box.y} ${box.width}`)})"""
)

LETTERS_ON_LETTERS = (
    f"""() => {SHOWN}"""
    """.flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()]);
  return texts.flatMap(([a, p], i) => texts.slice(i + 1).filter(([, q]) =>
    Math.min(p.x + p.width, q.x + q.width) - Math.max(p.x, q.x) > 1 &&
    Math.min(p.y + p.height, q.y + q.height) - Math.max(p.y, q.y) > 4)
    .map(([b]) => `${svg.getAttribute('aria-labelledby')}: ${a} / ${b}`))})"""
)

CONTRASTS = """() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b) };
  const behind = e => { for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255] };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.getClientRects().length || e.closest('script, title, desc')) continue;
    const style = getComputedStyle(e), ink = numbers(e.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.textContent.trim().slice(0, 30)]);
  }
  return found }"""

SECTIONS = "() => [...document.querySelectorAll('section h2')].map(h => h.textContent)"


@EVERY_PAGE
@WIDTHS
def test_nothing_sticks_out(visit, name, width):
    page = visit(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(TOO_WIDE) == []


@EVERY_PAGE
@WIDTHS
def test_letters_stay_inside_their_pictures(visit, name, width):
    page = visit(name, width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(LETTERS_OUTSIDE) == []


@EVERY_PAGE
@pytest.mark.parametrize("width", [360, 1280])
def test_letters_do_not_cover_each_other(visit, name, width):
    page = visit(name, width)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(LETTERS_ON_LETTERS) == []


@EVERY_PAGE
def test_letters_are_large_enough_on_a_phone(visit, name):
    page = visit(name, 360)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('svg')].filter(s => s.getClientRects().length).flatMap(svg =>
        [...svg.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize) * svg.getScreenCTM().a))"""
    )
    assert min(sizes, default=12) >= 11


@EVERY_PAGE
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_what_is_behind(visit, name, scheme):
    page = visit(name, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = page.evaluate(CONTRASTS)
    assert len(found) > 50
    assert [entry for entry in found if entry[0] < 4.5] == []


def test_dark_is_dark_and_paper_is_white(visit):
    background = "getComputedStyle(document.body).backgroundColor"
    page = visit("known", color_scheme="dark")
    assert page.evaluate(background) != "rgb(255, 255, 255)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


@EVERY_PAGE
@pytest.mark.parametrize("scripts", [True, False])
def test_all_that_is_folded_is_open_in_print(visit, name, scripts):
    page = visit(name, java_script_enabled=scripts)
    # What is folded has a size even if it is not shown; the box around it does not grow.
    hidden = """() => [...document.querySelectorAll('details')].filter(e => {
      const inside = e.querySelector('.folded');
      return !inside.checkVisibility() || e.clientHeight < inside.clientHeight }).length"""
    assert page.evaluate(hidden) == page.locator("details").count()
    page.emulate_media(media="print")
    assert page.evaluate(hidden) == 0


@EVERY_PAGE
def test_the_printed_pages_have_it_all(visit, name):
    from pypdf import PdfReader

    page = visit(name)
    reader = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    assert 2 <= len(reader.pages) <= 40
    text = squeezed("".join(sheet.extract_text() for sheet in reader.pages))
    for heading in page.evaluate(SECTIONS):
        assert squeezed(heading) in text
    for summary in page.locator("summary").all_text_contents():
        assert squeezed(summary) in text
    for caption in page.evaluate("[...document.querySelectorAll('caption')].map(c => c.textContent)"):
        assert squeezed(caption) in text
    # A4, upright.
    assert {(round(sheet.mediabox.width), round(sheet.mediabox.height)) for sheet in reader.pages} == {
        (595, 842)
    }


def squeezed(text):
    """Return a text without spaces, which a PDF puts where it likes, and with letters that are drawn as one apart."""
    for joined, apart in (("\ufb01", "fi"), ("\ufb02", "fl"), ("\ufb00", "ff"), ("\ufb03", "ffi")):
        text = text.replace(joined, apart)
    return "".join(text.split())


@pytest.mark.parametrize("name", ["known", "real"])
def test_it_reads_the_same_without_scripts(visit, name):
    assert visit(name).inner_text("main") == visit(name, java_script_enabled=False).inner_text("main")


def test_only_one_width_of_each_chart_is_shown(visit):
    shown = """() => [...document.querySelectorAll('.chart')].filter(e => e.getClientRects().length)
      .map(e => e.className)"""
    assert set(visit("known", 360).evaluate(shown)) == {"chart narrow"}
    page = visit("known", 1280)
    assert set(page.evaluate(shown)) == {"chart wide"}
    page.set_viewport_size({"width": 360, "height": 800})
    page.emulate_media(media="print")
    assert set(page.evaluate(shown)) == {"chart wide"}


def test_odd_names_are_shown_as_they_are(visit):
    page = visit("odd")
    text = page.inner_text("main")
    for name in ODD.values():
        assert name in text
    assert page.title() == "Deciding with missing values: ward"
    assert page.evaluate("document.scripts.length") == 1
    assert page.locator("main img").count() == 0


def test_a_real_run_with_odd_names_is_shown_as_it_is(visit):
    page = visit("real")
    text = page.inner_text("main")
    for name in ("<b>infection</b>", "ward & bed", "<i>normal</i>", "treat & cure"):
        assert name in text
    assert page.locator("main b, main i").count() == 0


def test_long_names_are_whole_somewhere(visit):
    text = visit("long").inner_text("main")
    for name in LONG.values():
        assert name in text


def test_everything_can_be_reached_by_the_keyboard(visit):
    page = visit("known")
    wanted = page.evaluate("document.querySelectorAll('a, summary, [tabindex]').length")
    seen = []
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
    assert seen[0].startswith('<a href="#findings"')
    visible = (
        "[...document.querySelectorAll('a, summary, [tabindex]')].filter(e => e.checkVisibility()).length"
    )
    assert len(set(seen) - {"<body>"}) >= 0.9 * page.evaluate(visible)
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")


def test_screen_readers_are_told_what_pictures_show(visit):
    page = visit("known")
    snapshot = page.locator("main").aria_snapshot()
    for title in (
        "How often each value is missing",
        "What is missing together",
        "How much each reason matters",
        "The m-graph that explains the data best",
        "The true m-graph",
        "What the bound is made of",
    ):
        assert f'img "{title}' in snapshot
