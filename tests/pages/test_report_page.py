"""The report page as a reader has it: opened from a file, in a real browser, light and dark, wide and narrow."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.reports.page.page import page
from orchestrator.reports.run_content import gather
from tests.bench.synthetic_store import Shape, filled
from tests.pages.browser import MISSING, Browser, opened_browser

pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

SMALL = Shape(
    models=("mobilenet_f32", "mobilenet_int8"), threads=(1, 4), loads=("idle", "cpu:2@50"), blocks=6, earlier_runs=1
)
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
ENDING = "</script><script>document.title='owned'</script>\u2028"
TURNED = "\u202eelbon\u202c \u2066x\u2069"
LONG = "m" * 10_000
FIRST_CELL = "document.querySelector('#cells-table tbody a').getAttribute('href')"


def write(folder: Path, shape: Shape, *, with_baseline: bool) -> Path:
    store = filled(folder / "store", shape)
    runs = store.runs()
    content = gather(store, runs[0], baseline=runs[1] if with_baseline else None)
    path = folder / "report.html"
    path.write_text(page(content), encoding="utf-8")
    store.close()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("small"), SMALL, with_baseline=True)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(
        devices=(HOSTILE, TURNED),
        models=(ENDING, LONG),
        threads=(1, 2),
        loads=("idle", "model:" + HOSTILE),
        blocks=3,
        log=f"{HOSTILE}{ENDING}\n\x00\x1b[31m",
        earlier_runs=0,
    )
    return write(tmp_path_factory.mktemp("hostile"), shape, with_baseline=False)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.size(1280)
    chromium.media()
    yield chromium


def draw_everything(browser: Browser) -> None:
    """Bring every chart into view once; charts are drawn when they are seen."""
    browser.run("for (const chart of document.querySelectorAll('.chart')) chart.drawn()")


def is_clean(browser: Browser, report: Path) -> None:
    said, asked = browser.drain()
    assert said == []
    assert {address.partition("#")[0] for address in asked} == {report.as_uri()}


def test_it_opens_from_a_file_and_asks_for_nothing(browser: Browser, small: Path) -> None:
    """Not a word on the console, and no request but for the file itself, with all charts drawn."""
    browser.open(small)
    draw_everything(browser)
    is_clean(browser, small)
    assert browser.run("return document.querySelector('h1').textContent") == "2 models on 2 devices"


def test_every_kind_of_chart_is_drawn(browser: Browser, small: Path) -> None:
    """Each has marks of its own besides its axes; none is blank."""
    browser.open(small)
    draw_everything(browser)
    marks = browser.run(
        "const count = chart => chart.querySelectorAll('path').length;"
        "return [...document.querySelectorAll('.chart')].map(chart => [chart.closest('section').id, count(chart)])"
    )
    assert {part for part, _ in marks} == {"compare", "charts", "sizes", "operators", "history"}
    assert all(count > 3 for _, count in marks)
    dots = browser.run("return document.querySelector('#charts .chart').getAttribute('aria-label')")
    assert re.match(r"Latency of every trial, \d+ dots in 6 rows", dots)


def test_the_answer_comes_first(browser: Browser, small: Path) -> None:
    """The first part of the page has a card for each model and device, with setting, latency and sentence."""
    browser.open(small)
    assert browser.run("return document.querySelector('main section').id") == "answers"
    cards = browser.run("return [...document.querySelectorAll('.card')].map(c => c.innerText)")
    assert len(cards) == 4
    assert all("When idle" in card and "Under load" in card and re.search(r"\d\s*ms", card) for card in cards)
    assert any("use gpu, 1 thread" in card for card in cards)


def test_filters_narrow_everything_and_can_be_cleared(browser: Browser, small: Path) -> None:
    """Table, answers and charts follow the filters; a search that finds nothing says so."""
    browser.open(small)
    choose = (
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    )
    browser.run(choose, "filter-device", "pixel8")
    browser.run(choose, "filter-load", "idle")
    rows = browser.run("return [...document.querySelectorAll('#cells-table tbody tr')].map(r => r.innerText)")
    assert len(rows) == 6
    assert all("pixel8" in row and "idle" in row for row in rows)
    assert len(browser.run("return [...document.querySelectorAll('.card')]")) == 2
    assert "pixel8" in browser.run("return document.querySelector('#charts h3').textContent")
    browser.run("const s = document.getElementById('search'); s.value = 'zzz'; s.dispatchEvent(new Event('input'))")
    assert "No cell matches" in browser.run("return document.querySelector('#cells-table tbody').textContent")
    assert "0 of 24 cells" in browser.run("return document.querySelector('.said').textContent")
    browser.run("document.querySelector('.said button').click()")
    assert len(browser.run("return [...document.querySelectorAll('#cells-table tbody tr')]")) == 24


def test_the_table_sorts_and_what_was_not_measured_stays_last(browser: Browser, small: Path) -> None:
    """Up and down by p50: a cell without trials that count is neither the fastest nor the slowest."""
    browser.open(small)
    column = "return [...document.querySelectorAll('#cells-table tbody tr')].map(r => r.cells[5].textContent)"
    press = (
        "[...document.querySelectorAll('#cells-table th button')].find(b => b.textContent.startsWith('p50')).click()"
    )
    for turn in (1, -1):
        browser.run(press)
        shown = browser.run(column)
        measured = [turn * float(text) for text in shown if text != "not measured"]
        assert measured == sorted(measured)
        assert 0 < len(measured) < len(shown) == 24
        assert shown[len(measured) :] == ["not measured"] * (len(shown) - len(measured))
    assert browser.run("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"


def test_the_table_is_copied_for_a_spreadsheet(browser: Browser, small: Path) -> None:
    """Tab-separated, one row a cell, as it is sorted."""
    browser.open(small)
    browser.run(
        "window.copied = null;"
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() };"
        "document.getElementById('copy-table').click()"
    )
    lines = browser.until("return window.copied").split("\n")
    assert lines[0].split("\t")[:4] == ["Device", "Model", "Delegate", "Load"]
    assert len(lines) == 25
    assert {len(line.split("\t")) for line in lines} == {len(lines[0].split("\t"))}


def test_a_number_leads_to_its_trials_and_their_evidence(browser: Browser, small: Path) -> None:
    """From the table to the cell, to a trial, to its log, flags, hashes, state and artifacts; and back."""
    browser.open(small)
    link = browser.run(
        "const rows = [...document.querySelectorAll('#cells-table tbody tr')];"
        "const row = rows.find(r => r.cells[2].textContent === 'xnnpack');"
        "const a = row.querySelector('a'); a.click(); return a.getAttribute('href')"
    )
    browser.until("return document.querySelector('dialog[open] table tbody a')")
    assert browser.run("return location.hash") == link
    shown = browser.run("return document.querySelector('dialog').innerText")
    assert "6 trials" in shown and "model SHA-256" in shown
    browser.run("document.querySelectorAll('dialog table tbody a')[2].click()")
    browser.until("return document.querySelector('dialog h2').textContent.startsWith('Trial 3')")
    text = browser.run("return document.querySelector('dialog').textContent")
    for evidence in (
        "--num_threads=",
        "nodes_delegated",
        "temperature_c",
        "artifacts/",
        "Initialized TensorFlow",
        "exit",
    ):
        assert evidence in text
    assert browser.run("return document.querySelectorAll('dialog .chart path').length") > 3
    browser.driver.back()
    browser.until("return document.querySelector('dialog h2').textContent.startsWith('mobilenet')")
    browser.run("document.querySelector('dialog').close()")
    browser.until("return location.hash === ''")


def test_a_traced_cell_says_where_its_trace_is(browser: Browser, small: Path) -> None:
    """The file stays in the store; the page has its path, its size, why it was made, and how to look at it."""
    browser.open(small)
    browser.run(
        "const rows = [...document.querySelectorAll('#cells-table tbody tr')];"
        "const has = (row, ...words) => words.every(word => [...row.cells].some(c => c.textContent === word));"
        "rows.find(row => has(row, 'pixel8', 'xnnpack', 'idle', '1')).querySelector('a').click()"
    )
    browser.until("return document.querySelector('dialog[open] table tbody a')")
    shown = browser.run("return document.querySelector('dialog').innerText")
    assert "1 system trace" in shown and "traced because its trials fall into two groups" in shown
    assert ".perfetto-trace (2.4\u202fMB, 20,000 events)" in shown and "Open trace file" in shown


def test_a_link_to_a_trial_can_be_shared(browser: Browser, small: Path) -> None:
    """A fragment opens its trial at once; one that names nothing says so and hurts nobody."""
    browser.open(small)
    cell = browser.run(f"return {FIRST_CELL}").removeprefix("#cell/")
    browser.open(small, f"#trial/{cell}/0")
    assert browser.until("return document.querySelector('dialog[open] h2')?.textContent").startswith("Trial 1 of ")
    for nonsense in ("#cell/nothing", "#trial/%E0%A4%A", "#<img src=x>"):
        browser.open(small, nonsense)
    is_clean(browser, small)


def test_it_can_be_used_by_keyboard(browser: Browser, small: Path) -> None:
    """Everything that acts is a link, a button or a field, has a name, and evidence closes with Escape."""
    browser.open(small)
    nameless = browser.run(
        "return [...document.querySelectorAll('button, a, select, input, summary')]"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    )
    assert nameless == 0
    assert browser.run(
        "return [...document.querySelectorAll('.chart')].every(c => c.getAttribute('aria-label').length > 20)"
    )
    browser.run("document.querySelector('#cells-table tbody a').focus()")
    keyboard = browser.driver.switch_to.active_element
    keyboard.send_keys("\ue007")
    browser.until("return document.querySelector('dialog[open]')")
    browser.driver.switch_to.active_element.send_keys("\ue00c")
    browser.until("return !document.querySelector('dialog[open]')")


def test_a_mark_tells_what_it_is_and_leads_to_its_trial(browser: Browser, small: Path) -> None:
    """The mouse over a dot shows its figures, within the page's policy; a click opens the trial."""
    browser.open(small)
    draw_everything(browser)
    browser.run("document.querySelector('#charts').scrollIntoView({ behavior: 'instant' })")
    at = browser.until(
        "const middle = box => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });"
        "const isDot = box => box.width > 5 && box.width < 9 && box.height < 9;"
        "const at = path => middle(path.getBoundingClientRect());"
        "const isOnTop = path => path === document.elementFromPoint(at(path).x, at(path).y);"
        "const paths = [...document.querySelectorAll('#charts figure.wide .chart path')];"
        "const dot = paths.find(path => isDot(path.getBoundingClientRect()) && isOnTop(path));"
        "return dot && middle(dot.getBoundingClientRect())"
    )
    mouse = {"button": "left", "clickCount": 1, **at}
    browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **at})
    words = (
        "const texts = [...document.querySelectorAll('.chart div')].map(part => part.innerText);"
        "return texts.find(text => /trial \\d+, block \\d+/.test(text))"
    )
    assert "ms" in browser.until(words)
    for kind in ("mousePressed", "mouseReleased"):
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, **mouse})
    assert browser.until("return document.querySelector('dialog[open] h2')?.textContent").startswith("Trial ")
    is_clean(browser, small)


def test_dark_and_light_follow_the_system_and_the_reader(browser: Browser, small: Path) -> None:
    """The ground is dark or light, the text contrasts, and charts are drawn anew."""
    browser.media(prefers_color_scheme="dark")
    browser.open(small)
    draw_everything(browser)
    luminance = (
        "return getComputedStyle(document.body).{}.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"
    )
    label = "return document.querySelector('#charts .chart text').getAttribute('fill')"
    assert browser.run(luminance.format("backgroundColor")) < 150 < browser.run(luminance.format("color"))
    dark = browser.run(label)
    browser.run("const t = document.getElementById('theme'); t.value = 'light'; t.dispatchEvent(new Event('change'))")
    assert browser.run(luminance.format("backgroundColor")) > 600 > browser.run(luminance.format("color"))
    assert browser.until(f"const now = (() => {{ {label} }})(); return now !== '{dark}' && now")


@pytest.mark.parametrize("report", ["small", "hostile"])
def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Browser, report: str, request: pytest.FixtureRequest
) -> None:
    """At 390 pixels the page is as wide as the window; wide tables scroll by themselves. So does the evidence."""
    browser.size(390)
    browser.open(request.getfixturevalue(report))
    draw_everything(browser)
    assert browser.run("return document.documentElement.scrollWidth") == 390
    browser.run(f"location.hash = {FIRST_CELL}.replace('cell', 'trial') + '/0'")
    browser.until("return document.querySelector('dialog[open] h2')")
    browser.run("for (const fold of document.querySelectorAll('dialog details')) fold.open = true")
    assert browser.run("return document.querySelector('dialog').scrollWidth") <= 390


def test_it_prints(browser: Browser, small: Path) -> None:
    """A PDF of a few pages with the charts in it, none of the controls, and light even where the screen is dark."""
    browser.media(prefers_color_scheme="dark")
    browser.open(small)
    printed = browser.printed()
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 2 <= pages <= 12
    streams = [_inflated(part) for part in re.findall(rb"stream\r?\n(.*?)endstream", printed, re.DOTALL)]
    assert sum(len(re.findall(rb"\b(?:re|c|l)\b", stream)) for stream in streams) > 500, "charts are drawn as paths"
    assert browser.run("return document.documentElement.dataset.theme") is None, "the screen is as it was"


def test_print_is_light_and_has_every_chart(browser: Browser, small: Path) -> None:
    """Whatever the screen was and however far the reader had scrolled; afterwards the screen is dark again."""
    browser.media(prefers_color_scheme="dark")
    browser.open(small)
    ink = "return getComputedStyle(document.body).color.match(/\\d+/)[0]"
    assert int(browser.run(ink)) > 200
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert int(browser.run(ink)) < 60
    assert browser.run("return [...document.querySelectorAll('.chart')].every(chart => chart.querySelector('svg'))")
    fill = browser.run("return document.querySelector('#charts .chart text').getAttribute('fill')")
    assert int(re.findall(r"\d+", fill)[0]) < 120
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert int(browser.run(ink)) > 200


def _inflated(part: bytes) -> bytes:
    try:
        return zlib.decompress(part)
    except zlib.error:
        return b""


def test_hostile_names_are_text(browser: Browser, hostile: Path) -> None:
    """Markup, the end of a script, marks that turn text, and names without end: shown, and nothing else happens."""
    browser.open(hostile)
    draw_everything(browser)
    title = browser.run("return document.title")
    assert title.startswith("devbench · 2026")
    assert browser.run("return document.querySelectorAll('img, iframe, object, script:not([type])').length") == 2
    assert HOSTILE in browser.run("return document.body.textContent")
    browser.run(f"location.hash = {FIRST_CELL}.replace('cell', 'trial') + '/0'")
    log = browser.until("return document.querySelector('dialog[open] pre.log')?.textContent")
    assert HOSTILE in log and "</script>" in log
    assert browser.run("return document.title") == title
    is_clean(browser, hostile)


def test_the_policy_lets_nothing_in_or_out(browser: Browser, small: Path) -> None:
    """A script put into the page does not run, and a request is refused, whoever asks."""
    browser.open(small)
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    )
    refused = (
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'), error => done(error.name))"
    )
    assert browser.driver.execute_async_script(refused) == "TypeError"
    assert browser.run("return window.owned ?? null") is None
    said, _ = browser.drain()
    assert len([line for line in said if "Content Security Policy" in line]) >= 2


def test_motion_is_spared_those_who_ask(browser: Browser, small: Path) -> None:
    """Nothing slides where the system asks for less motion."""
    browser.media(prefers_reduced_motion="reduce")
    browser.open(small)
    assert browser.run("return getComputedStyle(document.documentElement).scrollBehavior") == "auto"
