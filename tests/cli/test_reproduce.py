"""`devbench reproduce` and `bisect` as a user types them, on a virtual phone and builds whose speed is known."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.duel import side_of
from orchestrator.errors import RunNotFound, StoreError, UsageError
from orchestrator.exchange import read_file, write_file
from orchestrator.fleet import Device
from orchestrator.plan import read_plan
from orchestrator.reproduce import device_of, find_case
from orchestrator.store import RunRecord, Store, open_store
from tests.cli.conftest import Done, Workplace, a_workplace
from tests.devices.adb_server import AdbServer
from tests.devices.build import build_variant
from tests.devices.nights import Nights
from tests.devices.virtual_phone import FLAGSHIP, PhoneRack, VirtualPhone


@dataclass
class Lab:
    """A workplace, one phone, and runs of builds whose speed is known, by name."""

    workplace: Workplace
    nights: Nights
    phone: VirtualPhone
    runs: dict[str, str]

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Closed again at once: a database that is open here must not be copied here."""
        opened = open_store(self.workplace.folder / "devbench-results")
        yield opened
        opened.close()

    def reproduce(self, *arguments: str) -> Done:
        return self.workplace.devbench("reproduce", *arguments)


@pytest.fixture(scope="module")
def lab(
    tmp_path_factory: pytest.TempPathFactory, adb_server: AdbServer, rack: PhoneRack, benchmark_model: Path
) -> Iterator[Lab]:
    """Three nights: the second build is 10 % slower than the first, the third is as slow as the second."""
    one = rack.start(FLAGSHIP)
    adb_server.connect(one)
    one.set_benchmark(time_scale=0.01, noise=0.02)
    workplace = a_workplace(tmp_path_factory.mktemp("lab"))
    binaries = workplace.folder / "binaries"
    workplace.env["DEVBENCH_BINARIES"] = str(binaries)
    plan = workplace.quick_plan(blocks="1:1", threads="[1, 2]")
    plan.write_text(plan.read_text().replace("[conditions]", '[conditions]\ncanary = "off"'))
    store = open_store(workplace.folder / "devbench-results")
    device = Device("pixel", "adb", address={"serial": one.address, "adb_server": f"127.0.0.1:{adb_server.port}"})
    nights = Nights(store, device, read_plan(plan), binaries, benchmark_model)
    with pytest.MonkeyPatch.context() as patched:
        for name in ("DEVBENCH_BINARIES", "DEVBENCH_LOCKS"):
            patched.setenv(name, workplace.env[name])
        runs = {name: nights.measure(name, speed) for name, speed in (("first", 1.0), ("second", 1.1), ("third", 1.1))}
    store.close()
    shutil.rmtree(binaries)  # the store has the bytes, and nothing else is asked
    address = f'serial = "{one.address}"\nadb_server = "127.0.0.1:{adb_server.port}"\n'
    workplace.write("devices.toml", f'[[device]]\nname = "pixel"\ntransport = "adb"\n{address}')
    yield Lab(workplace, nights, one, runs)
    adb_server.run("disconnect", one.address)
    rack.stop(one)


def test_a_slower_build_is_reproduced_and_one_as_slow_is_not(lab: Lab) -> None:
    """Exit 0 and 1; before it starts it says what differs about the phone now."""
    lab.phone.set_state("wakefulness", "Asleep")
    found = lab.reproduce(lab.runs["second"], "threads=2", "--device", "pixel", "--blocks", "6:6")
    assert found.status == 0, found.stderr
    assert found.stdout.startswith("reproduced +")
    assert "what differs: runner" in found.stderr
    assert found.stderr.index("screen on then, screen off now") < found.stderr.index("block 0")
    false = lab.reproduce(lab.runs["third"], "threads=2", "--json", "--quiet", "--profile")
    assert false.status == 1, false.stderr
    assert false.json["answer"] == "not_reproduced"
    assert false.json["baseline"] == lab.runs["second"]
    assert false.json["decided_by"]["verdict"] == "same"
    assert false.json["operators"]["ops"]
    lab.phone.set_state("wakefulness", "Awake")


def test_a_budget_that_is_too_small_leaves_it_unknown(lab: Lab) -> None:
    """Exit 5, with the reason; what was measured is kept."""
    done = lab.reproduce(lab.runs["second"], "threads=1", "--budget", "500ms", "--json", "--quiet")
    assert done.status == 5, done.stderr
    assert done.json["answer"] == "unknown"
    assert done.json["reason"] == "budget spent"


def test_a_killed_one_goes_on(lab: Lab) -> None:
    """No trial is lost or doubled, and `compare` says the same of it."""
    process = lab.workplace.start("reproduce", lab.runs["second"], "1", "thread", "--blocks", "6:6")
    assert process.stderr is not None
    assert any("block 3" in line for line in iter(process.stderr.readline, ""))
    process.kill()
    process.communicate()
    done = lab.reproduce("--resume", "--json")
    assert done.status == 0, done.stderr
    with lab.store() as store:
        trials = store.trials(done.json["duel"])
    slots = [(trial.slot.block, trial.slot.arm) for trial in trials]
    assert sorted(slots) == sorted(
        {(block, arm) for block in range(len(slots) // 2) for arm in ("baseline", "candidate")}
    )
    shown = lab.workplace.devbench("compare", done.json["duel"], "--json")
    assert shown.json["cells"][0]["ci_low_percent"] == done.json["decided_by"]["ci_low_percent"]


def test_what_cannot_be_reproduced_is_named(lab: Lab, tmp_path: Path) -> None:
    """A word that fits several cells, a first night, a device of another fleet, a run without its bytes."""
    second, folder = lab.runs["second"], lab.workplace.folder
    exported, elsewhere = tmp_path / "trials.jsonl", tmp_path / "elsewhere"
    broken = shutil.copytree(folder / "devbench-results", tmp_path / "broken")
    with lab.store() as store:
        with pytest.raises(UsageError, match='"tiny" may mean 2 cells') as ambiguous:
            find_case(store, second, "tiny", device=None, baseline=None)
        assert "1 thread" in ambiguous.value.remedy and "2 threads" in ambiguous.value.remedy
        with pytest.raises(RunNotFound, match="no run before"):
            find_case(store, lab.runs["first"], "threads=1", device=None, baseline=None)
        case = find_case(store, second, "threads=1", device=None, baseline=None)
        with pytest.raises(UsageError, match="was not measured on other"):
            device_of(case.run, "other", case.suspect.cell, None)
        write_file(exported, store.trials(second))
    shutil.rmtree(broken / "blobs" / str(case.base.cell.runner_sha256))
    with pytest.raises(StoreError, match="has lost the file"):
        find_case(open_store(broken), second, "threads=1", device=None, baseline=None)
    imported = open_store(elsewhere)
    imported.take_in(list(read_file(exported)), "2026-01-01T00:00:00.000Z")
    with pytest.raises(UsageError, match="was imported: its trials are here, but not the bytes"):
        side_of(imported, second, case.suspect.cell)


def test_the_first_slow_one_of_sixteen_builds_is_found_after_a_kill(lab: Lab) -> None:
    """Killed in the middle of a step it goes on from its log: the right build, no decision made twice, and one passed
    over that does not run on the phone."""
    folder = lab.workplace.folder
    names = [f"v{index:02d}" for index in range(16)]
    for index, name in enumerate(names):
        built = build_variant(lab.nights.original, folder / name, slowdown=1.1 if index >= 11 else 1.0, name=name)
        if name == "v09":
            content = bytearray(built.read_bytes())
            content[18] = 0xB7  # it says that it is for aarch64, and does not run on this phone
            built.write_bytes(content)
    what = ("--run", lab.runs["second"], "--cell", "threads=2", "--blocks", "6:6", "--log", "log.jsonl")
    process = lab.workplace.start("bisect", "--binaries", *names, *what)
    assert process.stderr is not None
    assert any("v07 (candidate) against v15 (bad)" in line for line in iter(process.stderr.readline, ""))
    assert any("block 2" in line for line in iter(process.stderr.readline, ""))
    process.kill()
    process.communicate()
    for name in ("v00", "v07", "v15"):
        (folder / name).unlink()  # what was begun with is in the store
    done = lab.workplace.devbench("bisect", "--resume", "log.jsonl", "--json", "--quiet")
    assert done.status == 0, done.stderr
    assert Path(done.json["first_bad"]).name == "v11" and Path(done.json["last_good"]).name == "v10"
    assert done.json["change"]["ci_low_percent"] < 10 < done.json["change"]["ci_high_percent"]
    assert done.json["sure"] > 0.9
    assert [Path(name).name for name in done.json["skipped"]] == ["v09"]
    runs = [step["run"] for step in done.json["steps"]]
    with lab.store() as store:
        assert len(set(runs)) == len(runs) == len([run for run in store.runs() if _is_of_bisect(run)])
    assert "first bad: v11 (item 12 of 16), +" in lab.workplace.devbench("bisect", "--resume", "log.jsonl").stdout


def _is_of_bisect(record: RunRecord) -> bool:
    return record.duel is not None and record.duel["origin"]["command"] == "bisect"


def test_ends_that_are_as_fast_end_a_search(lab: Lab) -> None:
    """Exit 1. The items are made by a command here, and what to run is said by a plan."""
    for name in ("one", "two"):
        build_variant(lab.nights.original, lab.workplace.folder / f"{name}.bin", name=name)
    made = ("--command", "cp {}.bin made", "--produces", "made", "--revisions", "one,two")
    done = lab.workplace.devbench(
        "bisect", "--binaries", *made, "--plan", "plan.toml", "--threads", "1", "--blocks", "6:12"
    )
    assert done.status == 1, done.stderr
    assert done.stdout.startswith("no difference: the last is not slower than the first")
