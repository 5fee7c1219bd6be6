"""System traces as a user asks for them: this machine, and virtual phones whose tracers write real files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.cli import test_boards as boards
from tests.cli import test_iphones as iphones
from tests.cli.conftest import Workplace
from tests.cli.test_bad_input import refused
from tests.cli.test_iphones import gateway as gateway
from tests.cli.test_iphones import mac as mac
from tests.cli.test_phones import lab as lab
from tests.cli.test_phones import write_fleet
from tests.devices.adb_server import AdbServer
from tests.devices.fixtures import StartBoard, StartPhone
from tests.devices.mac import UDID, Mac
from tests.devices.ssh_board import BoardOptions, SshBoard
from tests.devices.virtual_phone import FLAGSHIP, OLD, VirtualPhone


def traces_of(lab: Workplace, run: str = "last") -> list[dict[str, Any]]:
    done = lab.devbench("trace", "--open", run, "--json")
    assert done.status == 0, done.stderr
    return done.json["traces"]


def left_on(phone: VirtualPhone) -> list[str]:
    """What tracing could have left behind."""
    places = [*phone.path("/data/local/tmp").rglob("*trace*"), *phone.path("/data/misc/perfetto-traces").glob("*")]
    return [path.name for path in places]


def prop(phone: VirtualPhone, name: str) -> str:
    lines = phone.path("/dev/.phone/props").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def test_a_phone_is_traced_after_its_latencies(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """With Perfetto, TFLite's own slices among it; pulled whole, looked into, and the phone is as it was."""
    one = phone()
    write_fleet(lab, adb_server, one=one)
    done = lab.devbench("run", "--plan", lab.quick_plan(blocks="1:1"), "--trace", "--trace-max-size", "2MB")
    assert done.status == 0, done.stderr
    assert "one: trace of tiny_add (benchmark_model, xnnpack, 1 thread, load idle): perfetto: " in done.stderr
    (found,) = traces_of(lab)
    assert (found["kind"], found["outcome"], found["reason"], found["why"]) == ("perfetto", "measured", None, None)
    file = lab.folder / found["file"]
    assert file.stat().st_size == found["trace"]["size_bytes"] > 1000
    assert found["path"].endswith(".perfetto-trace")
    counts = found["trace"]["counts"]
    assert counts["sched_switch"] == 8 * counts["cpu_frequency"] == 8 * counts["packets"]
    assert found["trace"]["tflite_slices"] == counts["packets"]
    assert found["trace"]["duration_s"] > 0
    assert found["distortion"]["ratio"] == found["latency_us"] / found["distortion"]["untraced_us"]
    assert [trial["outcome"] for trial in lab.exported()] == ["measured"]
    assert left_on(one) == []
    assert {path.name for path in one.path("/data/local/tmp/devbench").iterdir()} == {"blobs"}
    assert prop(one, "debug.tflite.trace") == ""
    shown = lab.devbench("trace", "--open").stdout
    assert "tracing costs: " in shown and "ui.perfetto.dev" in shown and found["path"] in shown


def test_an_old_phone_is_traced_with_atrace(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Which has come with Android for long; its packed text is unpacked to be counted. Perfetto is refused by name."""
    old = phone(OLD)
    old.set_props({"debug.tflite.trace": "0"})
    write_fleet(lab, adb_server, old=old)
    done = lab.devbench("trace", "--plan", lab.quick_plan(), "--with", "atrace,perfetto", "--json", "--quiet")
    assert done.status == 5, done.stderr
    packed, refused = done.json["traces"]
    assert (packed["kind"], packed["outcome"]) == ("atrace", "measured")
    assert packed["trace"]["counts"]["sched_switch"] == packed["trace"]["tflite_slices"] > 0
    assert (lab.folder / packed["file"]).read_bytes().startswith(b"TRACE:\n")
    assert refused["outcome"] == "skipped"
    assert refused["reason"] == (
        "perfetto: Perfetto takes text configurations from API 29 (Android 10) on, and this is API 24 (try: use atrace)"
    )
    assert lab.exported() == []
    assert left_on(old) == []
    assert prop(old, "debug.tflite.trace") == "0"


def test_simpleperf_when_asked(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """Our own process is sampled, which on a phone that is not rooted is all that is let; what hinders it is put back.
    A phone that lacks it says so."""
    with_it, without = phone(), phone(replace(FLAGSHIP, missing_tools=("simpleperf",)))
    write_fleet(lab, adb_server, one=with_it, two=without)
    done = lab.devbench("trace", "--plan", lab.quick_plan(), "--with", "simpleperf", "--json", "--quiet")
    assert done.status == 5, done.stderr
    found = {trace["device"]: trace for trace in done.json["traces"]}
    assert found["one"]["outcome"] == "measured", found["one"]["reason"]
    assert found["one"]["trace"]["counts"]["samples"] > 10
    assert found["two"]["outcome"] == "skipped"
    assert found["two"]["reason"].startswith("simpleperf: the phone has no simpleperf (try: ")
    assert prop(with_it, "security.perf_harden") == "1"
    assert left_on(with_it) == []


def faster_trials(blocks: int) -> str:
    """An earlier run of the very cell, as a file: each inference took a microsecond then."""
    cell = {"device": "one", "model": "tiny_add", "model_sha256": "ab" * 32, "runner": "benchmark_model"}
    cell |= {"delegate": "xnnpack", "threads": 1, "affinity": "any", "load": "idle"}
    figures = dict.fromkeys(("median", "p5", "p95", "avg", "min", "max"), 1.0) | {"count": 50, "std": 0.0}
    trial = {"schema": "devbench.trial", "version": 1, "run": "2026-01-01T00:00:00Z-aaaa", "outcome": "measured"}
    trial |= {"session": "s", "summary_us": figures, "started_at": "2026-01-01T00:00:00Z", "arm": None, "reason": None}
    places = ({"block": block, "position": 0} for block in range(blocks))
    return "".join(json.dumps(trial | cell | place) + "\n" for place in places)


def test_only_odd_cells_are_traced(lab: Workplace, adb_server: AdbServer, phone: StartPhone) -> None:
    """One that got slower is traced and says why, in what is printed and in the store."""
    write_fleet(lab, adb_server, one=phone())
    assert lab.devbench("import", lab.write("earlier.jsonl", faster_trials(6))).status == 0
    plan = lab.quick_plan(blocks="6:6")
    done = lab.devbench("run", "--plan", plan, "--trace=anomaly", "--baseline", "last")
    assert done.status == 0, done.stderr
    assert "one: 1 of 1 cells are odd and will be traced (1 of them held against an earlier run)\n" in done.stderr
    (found,) = traces_of(lab)
    assert "slower than run 2026-01-01T00:00:00Z-aaaa: p50 by " in found["why"]
    assert f"because it is {found['why']}" in done.stderr
    assert f"traced because it is {found['why']}" in lab.devbench("trace", "--open").stdout


def test_nothing_odd_is_not_traced(workplace: Workplace) -> None:
    """Which is said; then there is nothing to open."""
    done = workplace.devbench("run", "--plan", workplace.quick_plan(blocks="1:1"), "--trace=anomaly")
    assert done.status == 0, done.stderr
    words = "this-machine: nothing is odd about 1 cells, and no earlier run has any of them: no trace is made\n"
    assert words in done.stderr
    none = workplace.devbench("trace", "--open")
    assert none.status == 2 and "has no system traces" in none.stderr


def test_a_board_whose_user_may_not_trace(workplace: Workplace, board: StartBoard) -> None:
    """No perf, no root: skipped with what each tracer lacks and what to do, and the exit code says so."""
    bare = board(BoardOptions(server="dropbear", userland="busybox"))
    boards.write_fleet(workplace, bare=bare)
    plan = workplace.quick_plan(blocks="1:1")
    done = workplace.devbench("run", "--plan", plan, "--runner", "litert_native", "--trace", "--json")
    assert done.status == 5, done.stderr
    assert done.json["trials"]["measured"] == 1
    (found,) = traces_of(workplace)
    assert (found["kind"], found["outcome"]) == (None, "skipped")
    assert "perf: no perf that runs (no such command) (try: install it: " in found["reason"]
    assert "ftrace: the kernel's tracefs is not ours to write (try: log in as root there)" in found["reason"]
    assert f"1 cells have no whole system trace: {found['reason']}" in done.stderr


def test_an_iphone_is_traced_by_its_mac(workplace: Workplace, mac: Mac, gateway: SshBoard) -> None:
    """With Instruments, and with TFLite's signposts switched on for that one launch. No Mac was involved."""
    iphones.write_fleet(workplace, mac, gateway, one=UDID)
    done = workplace.devbench("trace", "--plan", workplace.quick_plan(), "--json", "--quiet")
    assert done.status == 0, done.stderr
    (found,) = done.json["traces"]
    assert (found["kind"], found["outcome"]) == ("xctrace", "measured")
    assert found["trace"]["counts"]["files"] == 2
    launches = [call for call in mac.calls if "launch" in call]
    assert ["--environment-variables" in call for call in launches].count(True) == 1
    assert not list(mac.workdir.rglob("*trace*"))


def test_open_records_nothing(workplace: Workplace) -> None:
    """So that it takes no option that says what to record."""
    assert "--open lists traces of a run and records none" in refused(workplace, "trace", "--open", "--threads", "2")
