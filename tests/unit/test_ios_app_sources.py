"""The app's sources against what devbench reads: they cannot be compiled here, so at least they must speak alike."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ios_harness
from ios_harness import app_protocol as app
from ios_harness.app_runner import IOS_APP
from orchestrator.plan import Measure
from orchestrator.runners.base import Places
from tests.unit.trial_factory import make_cell

APP = Path(ios_harness.__file__).parent / "benchmark_app"
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in (APP / "Sources").glob("*.swift")}
README = (APP / "README.md").read_text(encoding="utf-8")


def fields(struct: str) -> set[str]:
    """The keys of one of the app's messages."""
    found = re.search(rf"struct {struct}\b.*?\n}}\n", SOURCES["Messages.swift"], re.DOTALL)
    assert found
    return set(re.findall(r"^    (?:let|var) (\w+)", found[0], re.MULTILINE))


def test_schema_and_version_are_the_same() -> None:
    """Otherwise no result would be believed."""
    text = SOURCES["Messages.swift"]
    assert f'let requestSchema = "{app.REQUEST}"' in text
    assert f'let resultSchema = "{app.RESULT}"' in text
    assert f"let schemaVersion = {app.VERSION}\n" in text


def test_the_app_knows_every_key_of_a_request() -> None:
    """What it does not know it would ignore without a word."""
    command = IOS_APP.command(make_cell(), Places("", {}, "Documents/devbench-file-x"), Measure())
    assert json.loads(command.argv[1]).keys() | {"nonce", "deadline_s", "verify", "max_age_days"} == fields("Request")


@pytest.mark.parametrize(
    ("struct", "keys"),
    [
        ("Answer", {"schema", "version", "nonce", "app", "device", "state_before", "state_after", "error", "files"}),
        ("Answer", {"removed", "model_sha256", "delegate", "threads", "init_us", "memory"}),
        ("Answer", {"samples_us", "warmup_us", "count", "stopped_by"}),
        ("AppFacts", {"version", "executable_sha256", "runtime", "runtime_version"}),
        ("DeviceFacts", {"product", "os_version", "cores", "memory_bytes"}),
        ("State", {"thermal_state", "low_power_mode", "battery_percent", "charging"}),
        ("Memory", {"before_bytes", "after_bytes", "peak_bytes"}),
        ("Trouble", {"kind", "message", "remedy"}),
    ],
)
def test_the_app_writes_every_key_that_is_read(struct: str, keys: set[str]) -> None:
    """And its README describes them."""
    assert keys <= fields(struct)
    assert [key for key in keys if f"`{key}`" not in README] == []


def test_names_of_files_and_lines_are_the_same() -> None:
    """Requests, results, models, and the line that tells the process."""
    assert 'appendingPathComponent("devbench-request-\\(nonce).json")' in SOURCES["Documents.swift"]
    assert 'appendingPathComponent("devbench-result-\\(nonce).json")' in SOURCES["Documents.swift"]
    assert 'filePrefix = "devbench-file-"' in SOURCES["Documents.swift"]
    assert (app.request_path("n"), app.result_path("n"), app.file_path("d")) == (
        "Documents/devbench-request-n.json",
        "Documents/devbench-result-n.json",
        "Documents/devbench-file-d",
    )
    assert 'print("devbench: started \\(nonce) pid \\(getpid())")' in SOURCES["App.swift"]
    assert app.started_pid(["x", "devbench: started ab12 pid 77"], "ab12") == 77


def test_the_app_has_every_delegate_of_its_runner() -> None:
    """By the same names."""
    made = set(re.findall(r'case "(\w+)":', SOURCES["Model.swift"]))
    assert made == set(IOS_APP.delegates)


def test_the_project_is_generated() -> None:
    """And has the identifier and the name that devbench expects."""
    project = (APP / "project.yml").read_text(encoding="utf-8")
    assert f"PRODUCT_BUNDLE_IDENTIFIER: {app.BUNDLE}\n" in project
    assert f"{re.search('^name: (.*)$', project, re.MULTILINE)[1]}.app" == app.APP_FOLDER
    assert not list(APP.glob("*.xcodeproj"))
