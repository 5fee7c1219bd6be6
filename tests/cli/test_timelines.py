"""Timelines as a user asks for them: this machine, a virtual phone, and trials that came from elsewhere."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Workplace
from tests.cli.test_phones import lab as lab
from tests.cli.test_phones import write_fleet, write_plan
from tests.devices.adb_server import AdbServer
from tests.devices.fixtures import StartPhone
from tests.unit.trace_checks import Event, checked, tracks


def drawn(workplace: Workplace, name: str) -> list[Event]:
    content = (workplace.folder / name).read_bytes()
    return checked(gzip.decompress(content) if name.endswith(".gz") else content)


def test_a_run_is_drawn_in_time(workplace: Workplace) -> None:
    """Every inference at the time that the device's clock had; one process a trial; then the same trials imported."""
    plan = workplace.quick_plan(blocks="2:2", loads='["cpu:1@20"]')
    assert workplace.devbench("run", "--plan", plan, "--quiet").status in (0, 5)
    trials = workplace.exported()
    done = workplace.devbench("timeline", "-o", "run.json.gz")
    assert done.status == 0, done.stderr
    assert done.stdout.startswith(f"run.json.gz: {len(trials)} trials, ")
    assert "ui.perfetto.dev" in done.stderr and "chrome://tracing" in done.stderr
    events = drawn(workplace, "run.json.gz")
    assert len({event["pid"] for event in events}) == len(trials)
    assert [event["args"]["latency_us"] for event in events if event["name"] == "inference"] == pytest.approx(
        [sample for trial in trials for sample in trial["samples_us"]], abs=0.001
    )
    found = tracks(events)
    assert {"trial", "stages of the measured process", "inferences", "load thread 0 (cpu:1@20)"} <= set(found)
    assert not [event for event in found["inferences"] if "reconstructed" in event["name"]]

    imported = workplace.devbench("export", "-o", "trials.jsonl")
    assert imported.status == 0
    assert workplace.devbench("timeline", "trials.jsonl", "--block", "1", "-o", "other.json").status == 0
    names = {event["name"] for event in tracks(drawn(workplace, "other.json"))["inferences"]}
    assert names == {"inference (reconstructed)", "warm-up inference (reconstructed)"}


def test_a_phone_shows_its_clocks_heat_and_operators(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """What the agent sampled there, and the operators of the profile pass; the tool's summary is one slice."""
    write_fleet(lab, adb_server, one=phone())
    assert lab.devbench("run", "--plan", write_plan(lab, blocks="1:1"), "--profile", "--quiet").status == 0
    done = lab.devbench("timeline", "--device", "one", "-o", "trials", "--json")
    assert done.status == 0, done.stderr
    files = [row["path"] for row in done.json["files"]]
    assert len(files) == 2 and {Path(name).parent.name for name in files} == {"trials"}
    for name in files:
        events = drawn(lab, name)
        counters = {event["name"] for event in events if event["ph"] == "C"}
        assert {"cpu0 frequency MHz", "battery %", "memory available MB"} <= counters
        assert any("°C" in name for name in counters)
        found = tracks(events)
        assert len(found["operators of a typical inference (profile pass)"]) > 50
        assert "inferences" not in found
        measured = next(event for event in found["stages of the measured process"] if event["name"] == "measured")
        assert measured["args"]["summary_us"]["count"] >= 5


def test_a_choice_that_leaves_nothing_is_refused_with_what_there_is(workplace: Workplace) -> None:
    """A wrong device, cell, block or place; nothing is written."""
    line = (
        '{"schema":"devbench.trial","version":1,"run":"r","device":"pixel8","model":"m","model_sha256":"ab",'
        '"runner":"litert_runner","delegate":"xnnpack","threads":1,"affinity":"any","load":"idle","block":3,'
    )
    ran = line + '"outcome":"measured","samples_us":[812.5]}\n'
    never = line.replace("pixel8", "moto") + '"outcome":"skipped","reason":"no delegate"}\n'
    workplace.write("trials.jsonl", ran + never)
    refusals = {
        ("--device", "pixel9"): ('no trial of device "pixel9"', "there are: moto, pixel8"),
        ("--cell", "gpu"): ('no trial of a cell like "gpu"', "m (xnnpack, 1 thread, load idle) on pixel8"),
        ("--block", "4"): ("no trial of block 4", "blocks are 3 to 3"),
        ("-o", "trace.txt"): ("trace.txt is neither a folder nor a .json or .json.gz", "name one of them"),
        ("-o", "trials.jsonl/x.json"): ("cannot write trials.jsonl/x.json", "choose another place"),
        ("--device", "moto"): ("none of the 1 chosen trials ran: no delegate", "choose others"),
    }
    for arguments, (fact, remedy) in refusals.items():
        done = workplace.devbench("timeline", "trials.jsonl", *arguments)
        assert done.status == 2 and fact in done.stderr and remedy in done.stderr, done.stderr
    assert [path.name for path in workplace.folder.iterdir()] == ["trials.jsonl"]
    done = workplace.devbench("timeline", "trials.jsonl")
    assert done.status == 0 and "left out: 1 that never ran" in done.stderr
    assert (workplace.folder / "timeline-r.json").exists()
    assert workplace.devbench("timeline").status == 6  # there is no store
