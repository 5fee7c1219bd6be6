"""The report page: how large it is, how long it takes to write, and how soon a reader can use it."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from orchestrator.clock import SYSTEM
from orchestrator.reports.page.page import page
from orchestrator.reports.run_content import gather
from orchestrator.store import Store
from tests.bench.synthetic_store import LARGE, Shape, filled
from tests.pages.browser import MISSING, Browser, opened_browser

_ROUNDS = 5
_SMALL = Shape(devices=("this-machine",), models=("a", "b"), threads=(1, 2), delegates=("xnnpack",), samples=400)


def size_and_time_to_interactive() -> None:
    """size of the file, time to write it, and from opening it to a page that can be used (median of five)"""
    with tempfile.TemporaryDirectory(prefix="devbench-") as folder:
        for name, shape in (("small", _SMALL), ("large", LARGE)):
            store = filled(Path(folder) / name, shape)
            _figure(name, store, Path(folder) / f"{name}.html")
            store.close()


def _figure(name: str, store: Store, path: Path) -> None:
    began = SYSTEM.monotonic_s()
    content = gather(store, store.find_run("last"))
    gathered = SYSTEM.monotonic_s()
    path.write_text(page(content), encoding="utf-8")
    written = SYSTEM.monotonic_s()
    cells, trials, devices = len(content.summary.cells), len(content.trials), len(content.sessions)
    print(f"{name}: {devices} devices, {cells} cells, {trials} trials: {path.stat().st_size / 1e6:.2f} MB")
    print(f"  read and analysed in {gathered - began:.1f} s, written in {written - gathered:.1f} s")
    if MISSING:
        print(f"  not opened: {MISSING}")
        return
    with opened_browser() as browser:
        ready = [_interactive_ms(browser, path) for _ in range(_ROUNDS)]
        middle = statistics.median(ready)
        print(f"  interactive after {middle:.0f} ms ({min(ready):.0f} to {max(ready):.0f})")
        print(
            f"  evidence of a trial after {_evidence_ms(browser):.0f} ms, sorting the table {_sort_ms(browser):.0f} ms"
        )


def _interactive_ms(browser: Browser, path: Path) -> float:
    browser.open(path)
    return float(browser.run("return performance.getEntriesByName('devbench-interactive')[0].startTime"))


def _evidence_ms(browser: Browser) -> float:
    """From the click to the trial, its chunk unpacked."""
    timed = """
        const done = arguments[0], began = performance.now();
        const isOpen = () => document.querySelector("dialog[open] h2");
        const look = () => isOpen() ? done(performance.now() - began) : setTimeout(look);
        const link = document.querySelector("#cells-table tbody a").getAttribute("href");
        location.hash = link.replace("cell", "trial") + "/0";
        look();
    """
    return float(browser.driver.execute_async_script(timed))


def _sort_ms(browser: Browser) -> float:
    timed = """
        const began = performance.now();
        document.querySelector("#cells-table th.figure button").click();
        return performance.now() - began;
    """
    return float(browser.run(timed))
