"""Reports in a real browser: nothing fails, nothing is fetched, and what steers the network does so."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import gibbsian as gb
from report_pages import HOSTILE, hostile_table

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (apt-get install chromium)"),
    pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning"),
]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports on house votes, on hostile names and on 300 variables."""
    folder = tmp_path_factory.mktemp("reports")
    votes = gb.datasets.load_house_votes()
    gb.BoltzmannMachine(learner="mle", l2=0.01).fit(votes.complete_rows()).report(folder / "votes.html")
    rows = hostile_table()
    gb.BoltzmannMachine(learner="mple", l2=0.05).fit(rows).report(folder / "hostile.html", rows)
    rng = np.random.default_rng(0)
    edges = sorted({tuple(sorted(pair)) for pair in rng.integers(0, 300, (500, 2)).tolist() if pair[0] != pair[1]})
    many = gb.BoltzmannMachine(learner="mple", graph=edges, l2=0.05, max_iter=5)
    many.fit(rng.integers(0, 2, (200, 300)))
    # moments take chains of seconds, and a page about a fit that has not converged has no network
    many.result_ = replace(many.result_, moments=None, converged=True)
    many.report(folder / "many.html")
    for name, width in (("image", 64), ("bars", 9)):
        bits = rng.integers(0, 2, (100, width))
        gb.RestrictedBoltzmannMachine(5, max_iter=2, random_state=0).fit(bits).report(folder / f"{name}.html")
    return folder


@pytest.fixture
def opened(browser, reports):
    """Return what opens a report and listens to all that goes wrong in it."""
    pages = []

    def open_report(name):
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.troubles, page.requests = [], []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto((reports / name).as_uri())
        page.wait_for_selector("html.ready", state="attached")
        pages.append(page)
        return page

    yield open_report
    for page in pages:
        page.close()


@pytest.mark.parametrize(("name", "nodes"), [("votes.html", 17), ("hostile.html", len(HOSTILE)), ("many.html", 300)])
def test_pages_load_without_errors_or_requests(opened, name, nodes):
    page = opened(name)
    assert page.troubles == []
    assert len(page.requests) == 1  # the file itself
    assert page.locator(".node").count() == nodes
    assert page.evaluate("window.broken === undefined")
    assert page.evaluate("document.querySelectorAll('main section').length") >= 5
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_slider_thins_the_network_out(opened):
    page = opened("votes.html")
    slider, shown = page.locator("#strongest"), page.locator(".edge:not(.off)")
    slider.fill("5")
    assert shown.count() == 5
    sizes = page.eval_on_selector_all(".edge", "edges => edges.map(e => [Number(e.dataset.size), e.matches('.off')])")
    assert min(size for size, off in sizes if not off) >= max(size for size, off in sizes if off)
    assert page.locator("#threshold").inner_text().startswith("5 of 136, from ")
    slider.fill("136")
    assert shown.count() == 136
    slider.fill("0")
    assert page.locator(".node.alone").count() == 17


def test_search_finds_a_variable(opened):
    page = opened("votes.html")
    page.locator("#search").fill("REPUB")
    assert page.locator(".node.found").count() == 1
    assert page.locator(".node.found title").text_content() == "republican"
    assert page.locator("#said").inner_text().startswith("1 found. republican: ")
    page.locator("#search").fill("no such thing")
    assert page.locator("#said").inner_text().startswith("0 found")
    page.locator("#search").fill("")
    assert page.locator(".found").count() == 0


def test_layouts_move_nodes_with_their_lines(opened):
    page = opened("votes.html")
    at = "() => [...document.querySelectorAll('.node')].map(n => n.transform.baseVal[0].matrix).map(m => [m.e, m.f])"
    ends = "() => document.querySelector('.edge:not(.off)').getAttribute('d')"
    force, line = page.evaluate(at), page.evaluate(ends)
    page.get_by_label("circle").check()
    circle = np.array(page.evaluate(at)) - (500, 380)
    np.testing.assert_allclose(np.hypot(*(circle / (410 * 0.74, 340 * 0.74)).T), 1.0, atol=0.01)
    assert page.evaluate(ends) != line
    page.get_by_label("force").check()
    assert page.evaluate(at) == force
    assert page.evaluate(ends) == line


def test_pointing_says_the_pair_with_its_strength(opened):
    page = opened("votes.html")
    edge = page.locator(".edge:not(.off)").last
    edge.dispatch_event("pointerover")
    assert page.locator("#said").inner_text() == edge.locator("title").text_content()
    assert ": coupling " in page.locator("#said").inner_text()


def test_the_keyboard_reaches_every_node(opened):
    page = opened("votes.html")
    page.locator("input[name=layout]").first.focus()
    page.keyboard.press("Tab")
    seen = []
    for _ in range(17):
        seen.append(page.evaluate("document.activeElement.dataset.name"))
        assert page.locator("#said").inner_text().startswith(seen[-1])
        page.keyboard.press("ArrowRight")
    assert len(set(seen)) == 17
    assert page.evaluate("document.activeElement.dataset.name") == seen[0]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.name") == seen[-1]


def test_hostile_names_are_shown_and_found(opened):
    page = opened("hostile.html")
    page.locator("#search").fill("<script>")
    assert page.locator(".node.found").count() == 1
    assert page.locator(".node.found title").text_content() == HOSTILE[0]
    page.locator(".node").first.hover()
    page.locator("#said").click()
    assert page.evaluate("window.broken === undefined")
    assert page.locator("script").count() == 1


@pytest.mark.parametrize(("name", "pieces"), [("image.html", "path"), ("bars.html", "rect:has(title)")])
def test_hidden_units_show_their_weights(opened, name, pieces):
    page = opened(name)
    assert page.troubles == []
    tiles = page.locator("#filters .filter")
    assert tiles.count() == 5
    boxes = [tiles.nth(k).bounding_box() for k in range(5)]
    for one, two in pairwise(boxes):  # side by side, none over another
        assert one["x"] + one["width"] <= two["x"] or one["y"] + one["height"] <= two["y"]
    assert tiles.first.locator(pieces).count() >= 6
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_page_prints(opened):
    page = opened("votes.html")
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert page.locator("#net").is_visible()
    written = page.pdf(format="A4", print_background=True)
    assert written.startswith(b"%PDF")
    assert len(written) > 20_000
