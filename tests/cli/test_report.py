"""`devbench report` and `run --report` as a user calls them, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchestrator.cli import app
from orchestrator.errors import DevbenchError, HostError, RunNotFound, StoreError, UsageError
from tests.bench.synthetic_store import Shape, filled
from tests.cli.conftest import Workplace

SMALL = Shape(models=("m",), threads=(1, 2), loads=("idle", "app"), blocks=6, earlier_runs=1)
OLD, NEW = "2026-11-10T02:00:00Z-0000", "2026-11-11T02:00:00Z-0001"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "store"
    filled(folder, SMALL).close()
    return folder


@pytest.fixture
def kept(workplace: Workplace, store: Path) -> Workplace:
    """A folder to write into, with runs to write about."""
    workplace.env["DEVBENCH_STORE"] = str(store)
    return workplace


def test_a_run_is_written_when_it_ends(workplace: Workplace) -> None:
    """`run --report FILE` leaves the table on standard output and the page in the file, and show says the same."""
    done = workplace.devbench(
        "run", "--plan", workplace.quick_plan(threads="[1, 2]"), "--quiet", "--report", "out/a.html"
    )
    assert done.status == 0, done.stderr
    assert re.search(r"report: out/a\.html \(\d\.\d MB\)", done.stderr)
    page = (workplace.folder / "out" / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    said = re.findall(r": (use .*|\d threads are .*)", done.stdout)
    assert said and all("not settled: what was measured of it is insufficient" in line for line in said)
    told = workplace.devbench("show", "--json").json["recommendations"]
    assert told[0]["text"] in " ".join(done.stdout.split())
    assert told[0]["text"] in page


def test_the_page_gets_a_name_that_any_mail_takes(kept: Workplace) -> None:
    """Without colons; standard output stays empty."""
    done = kept.devbench("report")
    assert (done.status, done.stdout) == (0, "")
    assert (kept.folder / "devbench-2026-11-11T020000Z-0001.html").is_file()


def test_formats_go_to_standard_output_or_a_file(kept: Workplace) -> None:
    """`--format` says which; otherwise the file's ending does."""
    csv = kept.devbench("report", OLD, "--format", "csv").stdout.splitlines()
    assert csv[0].startswith("run,cell,arm,device,model,") and len(csv) == 13
    assert kept.devbench("report", "-o", "b.MD").status == 0
    assert (kept.folder / "b.MD").read_text(encoding="utf-8").startswith("## devbench: m on 2 devices")


def test_a_baseline_is_compared(kept: Workplace) -> None:
    """With the names of both runs; `last` is the run before it."""
    text = kept.devbench("report", "--baseline", "last", "--format", "markdown").stdout
    assert f"{NEW} against {OLD}: by p50 " in text


def test_show_says_what_the_report_says(kept: Workplace) -> None:
    """The same sentences, in the table and in --json."""
    shown = " ".join(kept.devbench("show").stdout.split())
    told = json.loads(kept.devbench("show", "--json").stdout)["recommendations"]
    assert len(told) == 2
    for item in told:
        assert f"{item['model']} · {item['runner']} · {item['device']}: {item['text']}" in shown


REFUSED: dict[tuple[str, ...], tuple[type[DevbenchError], str, str]] = {
    ("--format", "pdf"): (UsageError, '--format: "pdf" is unknown', "html, markdown, csv"),
    ("-o", "a.pdf"): (UsageError, "its ending does not say what to write", "end it in .html, .md or .csv"),
    ("nothing",): (RunNotFound, 'no run "nothing"', "`last` is the newest"),
    ("--baseline", "nothing"): (RunNotFound, 'no run "nothing"', "`last` is the newest"),
    ("--ignore", "load"): (UsageError, "--ignore is about a comparison", "say --baseline RUN with it"),
    ("--baseline", OLD, "--ignore", "modle"): (UsageError, "--ignore modle: no such field", "model"),
    ("a.jsonl",): (UsageError, "a.jsonl is a file", "`devbench import a.jsonl` first"),
    ("--store", "elsewhere"): (StoreError, "no store in elsewhere", "devbench run"),
    ("-o", "a.jsonl/a.html"): (HostError, "cannot write a.jsonl/a.html", "name another file with -o"),
    ("-o", "folder.html"): (HostError, "cannot write folder.html", "name another file with -o"),
}


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_cannot_be_written_is_refused_by_name(
    arguments: tuple[str, ...], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a remedy, and nothing is left behind."""
    (tmp_path / "a.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEVBENCH_STORE", str(store))
    error, fact, remedy = REFUSED[arguments]
    with pytest.raises(error) as raised:
        app(["report", *arguments], standalone_mode=False)
    assert fact in raised.value.fact and remedy in raised.value.remedy
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "folder.html"]


def test_a_run_hears_about_its_report_before_it_measures(workplace: Workplace) -> None:
    """Not after the night."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(), "--report", "a.pdf")
    assert (done.status, done.stdout) == (2, "")
    assert "a.pdf: its ending does not say what to write" in done.stderr
    assert not (workplace.folder / "devbench-results").exists()


def test_a_resumed_run_is_written_too(kept: Workplace) -> None:
    """`--report` goes with --resume: it does not say what to measure."""
    done = kept.devbench("run", "--resume", "last", "--report", "a.pdf")
    assert (done.status, "its ending does not say" in done.stderr) == (2, True)


def test_a_report_that_is_there_survives_a_failure(kept: Workplace) -> None:
    """A file is replaced whole or not at all."""
    path = kept.write("a.html", "precious")
    assert kept.devbench("report", "--baseline", "nothing", "-o", "a.html").status == 2
    assert path.read_text(encoding="utf-8") == "precious"
