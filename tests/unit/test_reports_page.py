"""The page as a file: what is in it, what cannot be, and how it stays small."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ComparisonRefused
from orchestrator.reports.page.evidence import Detail, trial_evidence
from orchestrator.reports.page.page import json_text, page
from orchestrator.reports.run_content import RunContent, gather
from orchestrator.store import Annals
from orchestrator.trial import Outcome, Trial
from tests.bench.synthetic_store import Shape, filled
from tests.unit.trial_factory import make_trial

SMALL = Shape(models=("m",), threads=(1, 2), loads=("idle", "app"), blocks=3, earlier_runs=1)
FULL = Detail.of(1)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> RunContent:
    store = filled(tmp_path_factory.mktemp("store"), SMALL)
    found = gather(store, store.find_run("last"))
    store.close()
    return found


class Elements(HTMLParser):
    """The elements of a page as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", []).append(data)


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def parts(text: str) -> tuple[Any, list[Any]]:
    front = re.search(r'id="payload">([^<]*)<', text)
    assert front
    return unpacked(front[1]), [unpacked(chunk) for chunk in re.findall(r'class="chunk">([^<]*)<', text)]


def test_the_policy_names_every_script_and_style_by_its_hash(content: RunContent) -> None:
    """Nothing else may run, load or connect; there are no addresses to load from either."""
    text = page(content)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    stated = policy[1].replace("&#x27;", "'")
    assert "default-src 'none'" in stated and "connect-src 'none'" in stated and "unsafe" not in stated
    inline = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", text, re.DOTALL)
    assert len(inline) == 3
    for block in inline:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'" in stated
    assert [attributes for _, attributes in Elements(text).tags if {"src", "href"} & attributes.keys()] == []


def test_every_trial_is_in_it_with_its_evidence(content: RunContent) -> None:
    """In the chunk that the front names for its cell, in the order in which they were made."""
    front, chunks = parts(page(content))
    assert len(front["cells"]) == 12
    for cell in front["cells"]:
        details = chunks[front["chunks"][cell["id"]]][cell["id"]]
        assert [row["block"] for row in details] == [block for block, _, _ in cell["trials"]] == [0, 1, 2]
        assert all(row["argv"] and row["log"]["text"] for row in details if row["outcome"] == "measured")


def test_what_was_not_measured_has_no_latency_to_be_drawn_at(content: RunContent) -> None:
    """Also a rejected trial, which has samples."""
    trial = next(trial for trial in content.trials if trial.outcome is Outcome.MEASURED)
    doubted = replace(content, trials=(replace(trial, outcome=Outcome.REJECTED, reason="busy"),))
    front, _ = parts(page(doubted))
    dots = [dot for cell in front["cells"] for dot in cell["trials"]]
    assert dots == [[trial.slot.block, "rejected", None]]


def test_tags_and_notes_go_along(tmp_path: Path) -> None:
    """What people said of the run, for those who read it elsewhere."""
    store = filled(tmp_path, replace(SMALL, blocks=1))
    run = store.find_run("last")
    Annals(store).tag(run.id, "release")
    Annals(store).note(run.id, "after the fix")
    front, _ = parts(page(gather(store, run)))
    store.close()
    assert (front["run"]["tags"], front["run"]["notes"]) == (["release"], ["after the fix"])


def test_two_sides_of_one_run_are_compared_without_being_asked(tmp_path: Path) -> None:
    """Each side has cells of its own, a row of the comparison leads to the new side's, and no baseline is taken."""
    store = filled(tmp_path, replace(SMALL, arms=("baseline", "candidate"), blocks=8, earlier_runs=1))
    runs = store.runs()
    front, chunks = parts(page(gather(store, runs[0])))
    assert (front["compared"]["base"], front["compared"]["new"]) == ("baseline", "candidate")
    cells = {cell["id"]: cell for cell in front["cells"]}
    assert len(cells) == 24
    for row in front["compared"]["rows"]:
        assert cells[row["cell"]]["arm"] == "candidate"
        assert len(chunks[front["chunks"][row["cell"]]][row["cell"]]) == 8
    told = [row["verdict"] for row in front["compared"]["rows"] if row["metric"] == "p50" and row["n"][1] == 8]
    assert "slower" in told and "faster" not in told
    with pytest.raises(ComparisonRefused, match="two sides of its own"):
        gather(store, runs[0], baseline=runs[1])
    store.close()


def test_the_same_run_gives_the_same_file(content: RunContent) -> None:
    """So that a file can be told by its hash."""
    assert page(content) == page(content)


def test_a_reader_without_scripts_has_the_answers(content: RunContent) -> None:
    """As plain text, escaped."""
    named = replace(content.recommendations[0], model="<b>x</b>")
    text = page(replace(content, recommendations=(named,)))
    noscript = text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "&lt;b&gt;x&lt;/b&gt; on " in noscript and "use " in noscript


def test_content_cannot_leave_its_element(tmp_path: Path) -> None:
    """Whatever names, reasons and logs say, the page has the elements it would have with harmless ones."""
    evil = "</script><!--<script>]]>\u2028&lt;img onerror=x>"
    plain_shape = replace(SMALL, earlier_runs=0)
    shapes = (plain_shape, replace(plain_shape, devices=(evil, "x" + evil), models=(evil,), log=evil))
    found = []
    for number, shape in enumerate(shapes):
        store = filled(tmp_path / str(number), shape)
        found.append([tag for tag, _ in Elements(page(gather(store, store.find_run("last")))).tags if tag != "li"])
        store.close()
    assert found[0] == found[1]


def test_json_takes_what_is_no_number_and_no_letter() -> None:
    """Imported trials may hold NaN; a lone surrogate is escaped, as no file could hold it."""
    assert json.loads(json_text({"a": [math.nan, math.inf, 1.5], "b": "\ud800"})) == {
        "a": [None, None, 1.5],
        "b": "\ud800",
    }
    assert json_text("\ud800\u2028").isascii()


def in_time(trial: Trial) -> Any:
    return trial_evidence(trial, FULL, Path())["time"]


class TestEvidence:
    def test_a_long_log_keeps_its_beginning_and_its_end(self, tmp_path: Path) -> None:
        """And says how much is left out, and where all of it is."""
        (tmp_path / "a.log").write_text("first\n" + "x" * 50_000 + "\nlast", encoding="utf-8")
        log = trial_evidence(replace(make_trial(), log="a.log"), FULL, tmp_path)["log"]
        assert log["path"] == "a.log" and log["bytes"] == 50_011
        assert log["text"].startswith("first\n") and log["text"].endswith("\nlast")
        assert "38011 bytes left out" in log["text"]

    @pytest.mark.parametrize("place", ["../secret", "/etc/hostname", "gone.log", "folder"])
    def test_a_log_outside_the_store_is_not_read(self, tmp_path: Path, place: str) -> None:
        """A store from elsewhere cannot make a report carry this host's files."""
        (tmp_path / "secret").write_text("secret", encoding="utf-8")
        (tmp_path / "store" / "folder").mkdir(parents=True)
        log = trial_evidence(replace(make_trial(), log=place), FULL, tmp_path / "store")["log"]
        assert log == {"path": place, "text": None}

    def test_a_log_that_is_no_text_is_shown_as_far_as_it_is(self, tmp_path: Path) -> None:
        """Devices write what they like."""
        (tmp_path / "a.log").write_bytes(b"a\xff\x00b")
        assert trial_evidence(replace(make_trial(), log="a.log"), FULL, tmp_path)["log"]["text"] == "a\ufffd\x00b"

    def test_many_samples_keep_their_slowest(self) -> None:
        """Of each stretch the median and the slowest are drawn, in time."""
        samples = [100.0 + index % 7 for index in range(5000)]
        samples[1234] = 9000.0
        drawn = in_time(replace(make_trial(), samples_us=tuple(samples)))
        assert drawn["count"] == 5000 and len(drawn["measured"]) <= FULL.samples
        assert 9000.0 in [us for _, us in drawn["measured"]]
        assert drawn["measured"] == sorted(drawn["measured"], key=lambda point: point[0])

    def test_inferences_stand_where_they_were_in_the_process(self) -> None:
        """From the start that the device's clock has; that they are laid end to end is said."""
        trial = replace(make_trial(samples=3), evidence={"started": {"t_ns": 1_000_000_000}}, warmup_us=(5000.0,))
        drawn = in_time(replace(trial, metrics={"steady_from_ns": 1_250_000_000}))
        assert drawn["measured"][0][0] == 250.0 and not drawn["is_recorded"]
        assert drawn["warmup"] == [[245.0, 5000.0]]

    @pytest.mark.parametrize(
        "evidence", [{}, {"observed": 3, "started": [], "argv": "x", "states": None}, {"argv": ["a" * 100_000] * 1000}]
    )
    def test_evidence_of_any_shape_is_taken(self, evidence: dict[str, Any]) -> None:
        """Imported trials may carry anything, and as much of it as they like."""
        found = trial_evidence(replace(make_trial(), evidence=evidence), FULL, Path())
        assert len(json_text(found)) < 1_000_000

    def test_the_more_trials_the_less_of_each(self) -> None:
        """Ten thousand trials must fit into a few megabytes."""
        details = [Detail.of(count) for count in (10, 1000, 10_000)]
        assert [detail.samples for detail in details] == sorted((detail.samples for detail in details), reverse=True)
        assert details[-1].log_bytes_measured == 0 < details[-1].log_bytes


class TestTelemetry:
    def test_counters_become_cpus_kept_busy(self) -> None:
        """As `devbench timeline` has them; of clocks and sensors the highest."""
        telemetry = {
            "t_ms": [0, 100, 200],
            "busy": [[0, 0], [10, 5], [20, 5]],
            "child": [None, {"cpu_ns": 0}, {"cpu_ns": 50_000_000}],
            "freq_khz": [[1_000_000, 2_000_000]] * 3,
            "temp_mc": [[31_000, None], [None, None], [33_500, 20_000]],
            "tick_hz": 100,
        }
        found = in_time(replace(make_trial(), telemetry=telemetry))["counters"]
        assert found["all"] == [[0.0, 1.5], [100.0, 1.0]]
        assert found["measured process"] == [[100.0, 0.5]]
        assert found["MHz"] == [[0.0, 2000.0], [100.0, 2000.0], [200.0, 2000.0]]
        assert found["°C"] == [[0.0, 31.0], [200.0, 33.5]]
        assert "load" not in found

    def test_a_long_trial_has_no_more_points_than_are_drawn(self) -> None:
        """Rates are then over longer stretches, not over single ones picked out."""
        telemetry = {"t_ms": [100 * index for index in range(1001)], "busy": [[20 * index] for index in range(1001)]}
        drawn = in_time(replace(make_trial(), telemetry=telemetry))["counters"]["all"]
        assert 100 < len(drawn) <= FULL.points
        assert {value for _, value in drawn} == {2.0}

    @pytest.mark.parametrize("telemetry", [{}, {"t_ms": [1]}, {"t_ms": "x"}, {"t_ms": [0, 0], "busy": [3, [None]]}])
    def test_telemetry_that_says_nothing_gives_no_curve(self, telemetry: dict[str, Any]) -> None:
        """Absent is not zero."""
        assert in_time(replace(make_trial(), telemetry=telemetry))["counters"] == {}
